//! Where a task starts: at the run's branch, or at its upstream if that is ahead.

use super::{Pool, WorktreeError};
use crate::name::Oid;

/// Where a task starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchBase {
    /// The commit.
    pub commit: Oid,
    /// Why that one.
    pub reason: BaseReason,
}

/// Why a task starts there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseReason {
    /// The run's branch has no upstream, or the remote was not to be asked.
    Local,
    /// The remote has nothing new.
    Current,
    /// The remote is ahead.
    Fetched {
        /// The remote's branch.
        from: String,
        /// The number of new commits.
        more: u64,
    },
    /// Both have commits that the other has not.
    Diverged {
        /// The remote's branch.
        from: String,
    },
    /// The remote could not be reached.
    Offline {
        /// The remote.
        remote: String,
        /// Git's error message.
        why: String,
    },
}

impl Pool {
    /// Where a task starts now. Fetches the upstream of the run's branch.
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
