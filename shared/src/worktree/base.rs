//! Where a task begins: at the run's branch, or at what its remote has beyond that.

use super::{Pool, WorktreeError};
use crate::name::Oid;

/// Where a task begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchBase {
    /// The commit.
    pub commit: Oid,
    /// Why that one.
    pub reason: BaseReason,
}

/// Why a task begins where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseReason {
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
    pub fn find_base(&self, tip: Oid) -> Result<BranchBase, WorktreeError> {
        let repository = &self.repository;
        let Some(upstream) = repository.find_upstream(&self.run)? else {
            return Ok(BranchBase { commit: tip, reason: BaseReason::Local });
        };
        let there = match repository.fetch_upstream(&upstream)? {
            Ok(there) => there,
            Err(why) => {
                let reason = BaseReason::Offline { remote: upstream.remote, why };
                return Ok(BranchBase { commit: tip, reason });
            }
        };
        let distance = repository.distance(there, tip)?;
        let from = upstream.shown().to_owned();
        Ok(match (distance.ahead, distance.behind) {
            (0, _) => BranchBase { commit: tip, reason: BaseReason::Current },
            (more, 0) => BranchBase { commit: there, reason: BaseReason::Fetched { from, more } },
            _ => BranchBase { commit: tip, reason: BaseReason::Diverged { from } },
        })
    }
}
