//! Where a reviewer works: a worktree of the commit under review, and nothing else.

use std::fmt;

use super::PipelineError;
use crate::{
    git::Repository,
    name::{BranchName, Oid},
};

/// Gives reviewers places of their own.
pub trait ReviewPlaces: Sync {
    /// A place that holds exactly this commit of a repository, for the run of `branch`. Nobody else has it until it is
    /// dropped, and what was done there is discarded then.
    fn take(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<ReviewPlace, PipelineError>;
}

/// A worktree for one review.
pub struct ReviewPlace {
    /// The repository as it is seen from there.
    pub repository: Repository,
    /// What is checked out there.
    pub tree: Oid,
    /// What programs find in their environment there.
    pub environment: Vec<(String, String)>,
    /// Gives the place back when it is dropped.
    pub held: Box<dyn Send>,
}

impl fmt::Debug for ReviewPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewPlace").field("repository", &self.repository).finish_non_exhaustive()
    }
}
