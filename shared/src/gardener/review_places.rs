//! Worktrees for reviewers. Their paths are stable and they are reset instead of made again, so a review costs a call or two of
//! git. Several reviews at once have one each.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    git::Repository,
    name::{BranchName, Oid},
    pipeline::{PipelineError, ReviewPlace, ReviewPlaces},
    process::Cancel,
    settings::Settings,
    worktree::{Pool, Scratch, WorktreeError, WorktreeOptions},
};

/// Before a number, the name of their folders.
const KIND: &str = "review";
/// How often a place that cannot be reset is left for another one.
const TRIES: usize = 3;

/// The worktrees for reviewers that a run has used so far.
#[derive(Debug)]
pub struct ReviewWorktrees {
    /// What was configured, for the repository that has the plan.
    options: WorktreeOptions,
    main: PathBuf,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

/// A worktree that this run holds the lock of.
#[derive(Debug)]
struct KeptWorktree {
    pool: Arc<Pool>,
    scratch: Scratch,
}

/// One that is in use.
struct Lent {
    kept: Option<KeptWorktree>,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).extend(self.kept.take());
    }
}

impl ReviewWorktrees {
    /// For a run in `repository`. Nothing is made yet.
    #[must_use]
    pub fn new(repository: &Repository, options: WorktreeOptions) -> Self {
        Self { options, main: repository.common_dir.clone(), free: Arc::default() }
    }

    fn find_free(&self, repository: &Repository) -> Option<KeptWorktree> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &KeptWorktree| kept.scratch.repository.common_dir == repository.common_dir;
        let at = free.iter().position(is_same)?;
        Some(free.swap_remove(at))
    }

    fn open(&self, repository: &Repository, branch: &BranchName) -> Result<Arc<Pool>, WorktreeError> {
        // What is configured for worktrees is meant for the repository that has the plan.
        let options = if repository.common_dir == self.main {
            self.options.clone()
        } else {
            WorktreeOptions::new(&Settings::default(), &Cancel::new())
        };
        Pool::open(repository, branch, options).map(Arc::new)
    }

    fn find(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<KeptWorktree, WorktreeError> {
        // The locks of those that cannot be removed either are held meanwhile, so that the next one is another.
        let (mut last, mut broken) = (None, Vec::new());
        for _ in 0..TRIES {
            let kept = match self.find_free(repository) {
                Some(kept) => kept,
                None => {
                    let pool = self.open(repository, branch)?;
                    let scratch = pool.scratch(KIND, commit)?;
                    KeptWorktree { pool, scratch }
                }
            };
            match kept.pool.reset_scratch(&kept.scratch, commit) {
                Ok(()) => return Ok(kept),
                // A reviewer, or a crash, left it so that git cannot use it. Nothing of it is needed.
                Err(error) => {
                    if kept.pool.remove_scratch(&kept.scratch).is_err() {
                        broken.push(kept);
                    }
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or(WorktreeError::Bare))
    }
}

impl ReviewPlaces for ReviewWorktrees {
    fn take(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<ReviewPlace, PipelineError> {
        let kept = self
            .find(repository, branch, commit)
            .map_err(|error| PipelineError::ReviewPlace(error.to_string()))?;
        let place = kept.scratch.repository.clone();
        let path = kept.scratch.path.to_string_lossy().into_owned();
        let environment = vec![("ARBORIST_WORKTREE".to_owned(), path)];
        let lent = Lent { kept: Some(kept), free: Arc::clone(&self.free) };
        let tree = place.tree_of(commit)?;
        Ok(ReviewPlace { repository: place, tree, environment, held: Box::new(lent) })
    }
}
