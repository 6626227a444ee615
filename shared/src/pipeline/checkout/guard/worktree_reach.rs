//! Whether a child process could have changed a worktree. If none could, guards do not compare it.

use std::sync::Mutex;

use super::watched_files;
use crate::{git::Repository, mutex::MutexExt, process::ChildReach};

/// Who could change a worktree since a moment. If bubblewrap keeps it read-only for all children, as for a reviewer that
/// works elsewhere, nothing in it needs to be compared.
#[derive(Debug)]
pub(in crate::pipeline) struct WorktreeReach {
    children: Mutex<ChildReach>,
    repository: Repository,
    /// Whether another process was driving a run at that moment. How its children are confined is not known here.
    had_other_runs: bool,
}

impl WorktreeReach {
    /// From now on. Call this before you read what is compared later.
    pub(in crate::pipeline) fn begin(repository: &Repository) -> Self {
        let git_dirs = watched_files::real_git_dirs(&repository.git_dir);
        let children = ChildReach::begin(repository.worktree.iter().cloned().chain(git_dirs));
        let had_other_runs = repository.has_other_runs();
        Self { children: Mutex::new(children), repository: repository.clone(), had_other_runs }
    }

    /// Whether a child could have changed the worktree. A filter that git runs for us may be a script of the repository, and
    /// is not always confined.
    pub(in crate::pipeline) fn is_reached(&self) -> bool {
        self.children.hold().is_reached()
            || self.had_other_runs
            || self.repository.has_other_runs()
            || self.repository.has_filters()
    }
}
