//! Removing a worktree: nothing is lost, and nobody waits for a large folder to be deleted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Pool, WorktreeError, WorktreeKind, WorktreeNote, WorktreeStatusRow,
    claim::{PlaceClaim, PlaceOrigin, PlaceRequest},
    clear::delete_in_background,
    fill, places, survey,
};
use crate::{
    git::{RefMove, UncommittedPath, Worktree},
    name::TaskId,
    process::FileLock,
    safe_files,
};

/// What becomes of work that no commit holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncommittedPolicy {
    /// The worktree stays.
    Refused,
    /// It is saved under a ref first.
    Saved,
}

/// So many paths are named.
const SHOWN: usize = 5;

impl Pool {
    /// Removes a worktree. Its branch stays.
    pub fn remove(
        &self,
        name: &TaskId,
        unsaved: UncommittedPolicy,
    ) -> Result<(WorktreeStatusRow, Vec<WorktreeNote>), WorktreeError> {
        let _gate = self.gate()?;
        let found = self.find(name)?.filter(|standing| standing.kind != WorktreeKind::Foreign);
        let standing = found.ok_or_else(|| WorktreeError::Absent(name.to_string()))?;
        let _lock = self.lock_place(&standing.path, name)?;
        let _run = self.lock_run_of(&standing, name)?;
        let mut notes = Vec::new();
        if standing.is_missing {
            notes.extend(self.save_detached(&standing)?);
            self.forget(&standing.worktree)?;
            return Ok((standing, notes));
        }
        let lane = self.linked(&standing.worktree)?;
        self.mend_link(&lane)?;
        let changed_paths = lane.changed_paths()?;
        if !changed_paths.is_empty() && unsaved == UncommittedPolicy::Refused {
            return Err(WorktreeError::Dirty { name: name.to_string(), what: list(&changed_paths) });
        }
        fill::refuse_dirty_submodules(&lane, &changed_paths)?;
        fill::refuse_inner(&lane, &changed_paths)?;
        self.keep_submodules(&lane)?;
        if !changed_paths.is_empty() {
            // A task finds its work again by its own name, whichever lane it had.
            let owner = standing.task.as_ref().map_or_else(|| standing.name(), TaskId::to_string);
            notes.extend(self.save(&lane, &owner)?);
        }
        notes.extend(self.save_detached(&standing)?);
        self.discard(&standing.path)?;
        Ok((standing, notes))
    }

    /// Where a session works, its run is at work.
    fn lock_run_of(
        &self,
        standing: &WorktreeStatusRow,
        name: &TaskId,
    ) -> Result<Option<FileLock>, WorktreeError> {
        let Some(branch) = standing.branch.as_ref().filter(|_| standing.kind == WorktreeKind::Session) else {
            return Ok(None);
        };
        let busy = |source| WorktreeError::Busy { task: name.clone(), source };
        let lock = FileLock::try_take(&self.repository.run_lock(branch), "git arborist worktree");
        lock.map(Some).map_err(busy)
    }

    /// Frees a lane for the next task, with its caches. What is not committed there is saved when it is taken.
    pub fn recycle(&self, name: &TaskId) -> Result<WorktreeStatusRow, WorktreeError> {
        let _gate = self.gate()?;
        let is_lane =
            |standing: &WorktreeStatusRow| standing.kind == WorktreeKind::Lane && !standing.is_missing;
        let standing =
            self.find(name)?.filter(is_lane).ok_or_else(|| WorktreeError::NoLane(name.to_string()))?;
        let _lock = self.lock_place(&standing.path, name)?;
        if let Some(head) = standing.head {
            self.linked(&standing.worktree)?.detach(head)?;
        }
        Ok(standing)
    }

    /// With a worktree its `HEAD` goes. Where that is on no branch it may be all that leads to somebody's commits.
    fn save_detached(&self, standing: &WorktreeStatusRow) -> Result<Option<WorktreeNote>, WorktreeError> {
        match standing.head.filter(|_| standing.branch.is_none()) {
            Some(head) => self.save_head(&standing.name(), head),
            None => Ok(None),
        }
    }

    /// Takes away the register's entries of worktrees whose folders are gone, and what is left of others.
    pub fn prune(&self) -> Result<(Vec<PathBuf>, Vec<WorktreeNote>), WorktreeError> {
        let _gate = self.gate()?;
        let is_gone = |standing: &WorktreeStatusRow| {
            standing.is_missing && self.find_moved(&standing.worktree).is_none()
        };
        let missing: Vec<WorktreeStatusRow> = self.survey()?.into_iter().filter(is_gone).collect();
        let mut notes = Vec::new();
        for standing in missing.iter().filter(|standing| standing.kind != WorktreeKind::Foreign) {
            notes.extend(self.save_detached(standing)?);
            self.forget(&standing.worktree)?;
        }
        self.sweep();
        Ok((missing.into_iter().map(|standing| standing.path).collect(), notes))
    }

    /// Where the folder of a worktree was moved to, if it is not where git has it but beside it.
    #[must_use]
    pub fn find_moved(&self, worktree: &Worktree) -> Option<PathBuf> {
        let home = worktree.git_dir.as_deref().filter(|_| !worktree.path.is_dir())?;
        // What was thrown away by one who was killed before he could tell git is not moved.
        let is_trash = |path: &PathBuf| survey::name_of(path).starts_with(places::TRASH);
        let leads_home = |path: &PathBuf| {
            let link = safe_files::read(&path.join(".git")).ok();
            let target = link.and_then(|link| fill::target_of(path, &link));
            target.is_some_and(|target| same(&target, home))
        };
        let folders = [Some(self.places.base.as_path()), worktree.path.parent()];
        let entries = folders.into_iter().flatten().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        entries.flatten().map(|entry| entry.path()).find(|path| !is_trash(path) && leads_home(path))
    }

    /// Undoes a claim that came to nothing. Of what was there before nothing is touched.
    pub(super) fn undo(&self, claim: &PlaceClaim, wish: &PlaceRequest<'_>) {
        if claim.origin != PlaceOrigin::Made {
            return;
        }
        let Ok(_gate) = self.gate() else {
            return;
        };
        let _ = self.discard(&claim.path);
        if let Some(base) = claim.made_branch {
            let name = wish.branch.to_ref();
            let moves = [RefMove { name: &name, new: None, old: Some(base) }];
            let _ = self.repository.move_refs(&moves, "arborist: undo");
        }
    }

    /// The folder is renamed, which is quick, and deleted in the background.
    pub(super) fn discard(&self, path: &Path) -> Result<(), WorktreeError> {
        let trash = self.rename_to_trash(path)?;
        self.repository.forget_worktree(path)?;
        delete_in_background(&[trash]);
        Ok(())
    }

    /// Deletes what was renamed by those who were killed before it was deleted.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let trash = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(places::TRASH));
        delete_in_background(&trash.map(|entry| entry.path()).collect::<Vec<_>>());
    }
}

/// Whether both lead to the same folder, by whatever names.
fn same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn list(changed_paths: &[UncommittedPath]) -> String {
    let shown: Vec<String> = changed_paths.iter().take(SHOWN).map(UncommittedPath::shown).collect();
    match changed_paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
