//! Where a task begins: at the run's branch, or at what its remote has beyond that.

use super::{Pool, WorktreeError};
use crate::name::Oid;

/// Where a task begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The commit.
    pub commit: Oid,
    /// Why that one.
    pub reason: Reason,
}

/// Why a task begins where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The run's branch follows no remote, or nobody was to be asked.
    Local,
    /// The remote has nothing that is not here.
    Current,
    /// The remote has more.
    Fetched {
        /// The remote's branch.
        from: String,
        /// How many commits more.
        more: u64,
    },
    /// Both have commits that the other has not.
    Diverged {
        /// The remote's branch.
        from: String,
    },
    /// The remote could not be asked.
    Offline {
        /// The remote.
        remote: String,
        /// git's reason.
        why: String,
    },
}

impl Pool {
    /// Where a task begins now. The remote that the run's branch follows is asked.
    pub fn find_base(&self, tip: Oid) -> Result<Base, WorktreeError> {
        let repository = &self.repository;
        let Some(upstream) = repository.find_upstream(&self.run)? else {
            return Ok(Base { commit: tip, reason: Reason::Local });
        };
        let there = match repository.fetch_upstream(&upstream)? {
            Ok(there) => there,
            Err(why) => {
                let reason = Reason::Offline { remote: upstream.remote, why };
                return Ok(Base { commit: tip, reason });
            }
        };
        let distance = repository.distance(there, tip)?;
        let from = upstream.shown().to_owned();
        Ok(match (distance.ahead, distance.behind) {
            (0, _) => Base { commit: tip, reason: Reason::Current },
            (more, 0) => Base { commit: there, reason: Reason::Fetched { from, more } },
            _ => Base { commit: tip, reason: Reason::Diverged { from } },
        })
    }
}
