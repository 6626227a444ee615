//! Snapshots of the worktree at the end of each turn, while the agent is still working.

use std::{io::ErrorKind, time::Duration};

use crate::{
    git::{GitError, PrivateIndex, Repository, Stamp},
    name::Oid,
    pipeline::checkout::attempt::AttemptCheckout,
    process::{Cancel, within},
};

/// A snapshot during an agent's work takes seconds at most. The agent is not held up for longer than this.
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(120);

/// Takes snapshots at the end of each turn. It has a private index, so that unchanged files are not read again.
#[derive(Debug)]
pub(in crate::pipeline) struct TurnSnapshots<'a> {
    index: PrivateIndex<'a>,
    /// Whether a snapshot timed out because of something that the agent put there. No further one is tried before the
    /// end.
    is_stuck: bool,
    /// The index at the last look, and its tree.
    looked_at: Option<(Stamp, Oid)>,
    last: Oid,
}

impl<'a> TurnSnapshots<'a> {
    /// For an attempt that has begun.
    pub(in crate::pipeline) fn new(
        repository: &'a Repository,
        checkout: &AttemptCheckout,
    ) -> Result<Self, GitError> {
        Ok(Self {
            index: repository.private_index("turns")?,
            is_stuck: false,
            looked_at: None,
            last: checkout.worktree_tree,
        })
    }

    /// Returns the trees of the worktree at the last look and now, if they differ.
    pub(in crate::pipeline) fn look(&mut self) -> Result<Option<(Oid, Oid)>, GitError> {
        if self.is_stuck {
            return Ok(None);
        }
        let after = match within(SNAPSHOT_LIMIT, &Cancel::new(), || self.index.add_again(&mut self.looked_at))
        {
            Err(GitError::Process(error)) if error.source.kind() == ErrorKind::TimedOut => {
                self.is_stuck = true;
                return Ok(None);
            }
            // The cause is removed or reported when the agent ends.
            Err(GitError::Special { .. } | GitError::Failed { .. }) => return Ok(None),
            after => after?,
        };
        let before = std::mem::replace(&mut self.last, after);
        Ok((after != before).then_some((before, after)))
    }
}
