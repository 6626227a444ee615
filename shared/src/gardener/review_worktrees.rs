//! Scratch worktrees for reviewers. Each holds one commit and nothing else.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::{
    git::Repository,
    mutex::MutexExt,
    name::{BranchName, Oid},
    pipeline::{PipelineError, ReviewPlace, ReviewPlaces},
    process::Cancel,
    settings::Settings,
    worktree::{Pool, Scratch, WorktreeError, WorktreeOptions},
};

/// The prefix of their directory names.
const KIND: &str = "review";
/// How many worktrees are tried if one cannot be reset.
const MAX_WORKTREE_TRIES: usize = 3;

/// The worktrees for reviewers of a run. They are reused.
#[derive(Debug)]
pub struct ReviewWorktrees {
    /// The worktree settings of the plan's repository.
    options: WorktreeOptions,
    main: PathBuf,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

/// A worktree whose lock this run holds.
#[derive(Debug)]
struct KeptWorktree {
    pool: Arc<Pool>,
    scratch: Scratch,
}

/// A worktree in use. It is returned on drop.
struct Lent {
    kept: Option<KeptWorktree>,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.free.hold().extend(self.kept.take());
    }
}

impl ReviewWorktrees {
    /// For a run in `repository`. Creates no worktree yet.
    #[must_use]
    pub fn new(repository: &Repository, options: WorktreeOptions) -> Self {
        Self { options, main: repository.common_dir.clone(), free: Arc::default() }
    }

    fn find_free(&self, repository: &Repository) -> Option<KeptWorktree> {
        let mut free = self.free.hold();
        let is_same = |kept: &KeptWorktree| kept.scratch.repository.common_dir == repository.common_dir;
        let at = free.iter().position(is_same)?;
        Some(free.swap_remove(at))
    }

    fn open(&self, repository: &Repository, branch: &BranchName) -> Result<Arc<Pool>, WorktreeError> {
        // The worktree settings apply to the plan's repository only.
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
        // Keep the locks of broken worktrees until the end, so that the next try gets another one.
        let (mut last, mut broken) = (None, Vec::new());
        for _ in 0..MAX_WORKTREE_TRIES {
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
                // A reviewer or a crash left it in a state that git cannot use. It holds nothing of value.
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
