//! All worktrees of ours as they stand, and who is at work in them.

use std::{
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{Pool, WorktreeError, is_ours, places, session_worktree::is_of_session};
use crate::{
    git::{Repository, Worktree},
    name::{BranchName, Oid, TASK_BRANCHES, TaskId},
    process::{FileLock, Holder},
};

/// What a worktree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeKind {
    /// One of a run's lanes, which are given to one task after another.
    Lane,
    /// Made by hand for one task.
    Named,
    /// Made for a whole run: the branch of a session is checked out there.
    Session,
    /// Somebody else's, with a task's branch in it.
    Foreign,
}

/// One worktree as it stands.
#[derive(Debug, Clone)]
pub struct WorktreeStatusRow {
    /// What it is for.
    pub kind: WorktreeKind,
    /// Its top.
    pub path: PathBuf,
    /// The branch that is checked out; `None` if it is free.
    pub branch: Option<BranchName>,
    /// The task that the branch is for.
    pub task: Option<TaskId>,
    /// The commit that is checked out.
    pub head: Option<Oid>,
    /// Whether its folder is gone.
    pub is_missing: bool,
    /// Who is at work in it.
    pub holder: Option<Holder>,
    /// When something was last done in it, in seconds since 1970.
    pub active: Option<i64>,
    pub(super) worktree: Worktree,
}

impl WorktreeStatusRow {
    /// The name of its folder.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Whether the next task can have it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.kind == WorktreeKind::Lane && self.branch.is_none() && !self.is_missing
    }
}

impl Pool {
    /// All worktrees of ours, of whatever run, and those that have a task's branch checked out.
    pub fn survey(&self) -> Result<Vec<WorktreeStatusRow>, WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        Ok(worktrees.into_iter().filter_map(|worktree| self.standing(worktree)).collect())
    }

    /// The worktree of a task of this run, or the one whose folder has this name.
    pub fn find(&self, name: &TaskId) -> Result<Option<WorktreeStatusRow>, WorktreeError> {
        let branch = self.run.task_branch(name);
        let mut all = self.survey()?;
        let by_branch = all.iter().position(|standing| standing.branch.as_ref() == Some(&branch));
        let by_name = || all.iter().position(|standing| standing.name() == name.as_str());
        Ok(by_branch.or_else(by_name).map(|at| all.swap_remove(at)))
    }

    /// The repository as it is seen from a worktree.
    pub fn view(&self, standing: &WorktreeStatusRow) -> Result<Repository, WorktreeError> {
        self.linked(&standing.worktree)
    }

    fn standing(&self, worktree: Worktree) -> Option<WorktreeStatusRow> {
        let task = worktree.branch.as_ref().and_then(task_of);
        let kind = match (is_ours(&worktree), &task) {
            (true, _) if places::is_lane(&name_of(&worktree.path)) => WorktreeKind::Lane,
            (true, _) => WorktreeKind::Named,
            _ if is_of_session(&worktree) => WorktreeKind::Session,
            (false, Some(_)) => WorktreeKind::Foreign,
            (false, None) => return None,
        };
        Some(WorktreeStatusRow {
            kind,
            path: worktree.path.clone(),
            branch: worktree.branch.clone(),
            task,
            head: worktree.head,
            is_missing: !worktree.path.is_dir(),
            holder: FileLock::find_holder(&self.repository.worktree_lock(&worktree.path)),
            active: worktree.git_dir.as_deref().and_then(last_activity),
            worktree,
        })
    }
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn task_of(branch: &BranchName) -> Option<TaskId> {
    branch.as_str().strip_prefix(TASK_BRANCHES)?.split_once('/')?.1.parse().ok()
}

/// When git last wrote down something about this worktree.
pub(super) fn last_activity(git_dir: &Path) -> Option<i64> {
    ["index", "HEAD", "logs/HEAD"].into_iter().filter_map(|name| changed(&git_dir.join(name))).max()
}

/// When a file was last changed, in seconds since 1970.
pub(super) fn changed(path: &Path) -> Option<i64> {
    let time = path.metadata().ok()?.modified().ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}
