//! Folders of worktrees that git has forgotten: their `.git` file leads to a git directory that is gone. Their files are the
//! only copy of uncommitted work, so they are listed as broken and connected again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Pool, REASON, WorktreeError,
    survey::{Orphan, WorktreeKind, name_of},
};
use crate::{
    git::{TRASH, Worktree, target_of},
    name::{BranchName, TaskId},
    safe_files,
};

/// A folder in which new worktrees are made before they take the place of forgotten ones.
const REPAIR_FOLDER: &str = ".repair";
/// How the names of worktrees of sessions begin.
const SESSION_PREFIX: &str = "session-";

impl Pool {
    /// Lists them. A folder with the name of a task had the task's branch, unless that is checked out elsewhere.
    pub(super) fn list_orphans(&self, worktrees: &[Worktree]) -> Result<Vec<Orphan>, WorktreeError> {
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let mut orphans = Vec::new();
        for path in entries.map(|entry| entry.path()) {
            let name = name_of(&path);
            let is_known = worktrees.iter().any(|known| known.path == path) || name.starts_with(TRASH);
            if is_known || !self.is_forgotten(&path) {
                continue;
            }
            let kind = match &name {
                name if super::paths::is_lane(name) => WorktreeKind::Lane,
                name if name.starts_with(SESSION_PREFIX) => WorktreeKind::Session,
                _ => WorktreeKind::Named,
            };
            let task: Option<TaskId> = name.parse().ok().filter(|_| kind == WorktreeKind::Named);
            let branch = task.as_ref().map(|task| self.run.task_branch(task));
            let is_free =
                |branch: &BranchName| worktrees.iter().all(|known| known.branch.as_ref() != Some(branch));
            let branch = branch.filter(is_free);
            let head = match &branch {
                Some(branch) => self.repository.find_branch(branch)?,
                None => None,
            };
            let branch = branch.filter(|_| head.is_some());
            let worktree = Worktree { path, branch, head, ..Worktree::default() };
            orphans.push(Orphan { kind, task, worktree });
        }
        Ok(orphans)
    }

    /// Whether the `.git` file of a folder leads to a git directory of this repository that is gone.
    fn is_forgotten(&self, path: &Path) -> bool {
        let link = safe_files::read(&path.join(".git")).ok();
        let Some(target) = link.and_then(|link| target_of(path, &link)) else { return false };
        let is_ours = target.parent() == Some(&self.repository.common_dir.join("worktrees"));
        is_ours && safe_files::kind_of(&target).is_none()
    }

    /// Whether there is such a folder at a path.
    pub(super) fn is_orphan(&self, path: &Path) -> bool {
        path.is_dir() && self.is_forgotten(path)
    }

    /// Connects a folder with its branch again. Its files stay as they are. If the branch is not known, nothing is done.
    pub(super) fn reconnect(&self, orphan: &Orphan) -> Result<(), WorktreeError> {
        let Worktree { path, branch: Some(branch), head: Some(head), .. } = &orphan.worktree else {
            return Ok(());
        };
        // git makes worktrees only in empty folders.
        let folder = self.places.base.join(REPAIR_FOLDER);
        let made = folder.join(name_of(path));
        safe_files::make_folders(&folder).map_err(WorktreeError::file("make", &folder))?;
        self.repository.add_worktree(&made, *head, REASON)?;
        let worktrees = self.repository.list_worktrees()?;
        let new = worktrees.into_iter().find(|known| known.path == made);
        let git_dir = new.and_then(|new| new.git_dir);
        let git_dir = git_dir.ok_or_else(|| WorktreeError::Missing(name_of(path), made.clone()))?;
        let write = |file: PathBuf, text: String| {
            safe_files::write(&file, text.as_bytes()).map_err(WorktreeError::file("write", file))
        };
        self.repository.change_git_dirs(|| {
            write(path.join(".git"), format!("gitdir: {}\n", git_dir.display()))?;
            write(git_dir.join("gitdir"), format!("{}\n", path.join(".git").display()))
        })?;
        let _ = safe_files::remove_all(&made);
        let _ = safe_files::remove_folder(&folder);
        let worktrees = self.repository.list_worktrees()?;
        let Some(worktree) = worktrees.iter().find(|known| known.path == *path) else { return Ok(()) };
        let lane = self.linked(worktree)?;
        lane.set_head_branch(branch)?;
        Ok(lane.fill_index()?)
    }
}
