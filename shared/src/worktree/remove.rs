//! Removes worktrees without losing work, and without waiting for large directories to be deleted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Pool, WorktreeError, WorktreeKind, WorktreeNote, WorktreeRemains, WorktreeStatusRow,
    claim::{ChosenWorktree, LOOK_TIME, WorktreeOrigin, WorktreeRequest},
    fill, survey,
    trash::{TrashState, delete_in_background},
};
use crate::{
    git::{RefMove, Repository, TRASH, UncommittedPath, Worktree, checkout_locks, target_of},
    message::first_of,
    name::TaskId,
    process::{Cancel, FileLock, LockError, Occupants},
    safe_files,
};

/// What to do with uncommitted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncommittedPolicy {
    /// Keep the worktree.
    Refused,
    /// Save it under a ref first.
    Saved,
}

/// How many paths are named in a message.
const MAX_SHOWN: usize = 5;

impl Pool {
    /// Removes a worktree. Its branch stays.
    pub fn remove(
        &self,
        name: &TaskId,
        unsaved: UncommittedPolicy,
    ) -> Result<(WorktreeStatusRow, Vec<WorktreeNote>), WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let found = self.find(name)?.filter(|row| row.kind != WorktreeKind::Foreign);
        let row = found.ok_or_else(|| WorktreeError::NothingToRemove(name.to_string()))?;
        let _lock = self.lock_worktree(&row.path, name)?;
        let _run = self.lock_run_of(&row, name)?;
        let mut notes = Vec::new();
        if row.is_missing {
            notes.extend(self.save_detached(&row)?);
            self.forget(&row.worktree)?;
            return Ok((row, notes));
        }
        refuse_occupied(&row.path)?;
        if row.worktree.git_dir.is_none() {
            return Err(WorktreeError::Broken(name.to_string(), row.path));
        }
        let lane = self.linked(&row.worktree)?;
        self.repair_link(&lane)?;
        let changed_paths = lane.changed_paths()?;
        if !changed_paths.is_empty() && unsaved == UncommittedPolicy::Refused {
            return Err(WorktreeError::Dirty { name: name.to_string(), what: list(&changed_paths) });
        }
        fill::refuse_dirty_submodules(&lane, &changed_paths)?;
        fill::refuse_inner(&lane, &changed_paths)?;
        self.keep_submodules(&lane)?;
        if !changed_paths.is_empty() {
            // Save it under the task's name, whichever lane it had, so that the task finds it again.
            let owner = row.task.as_ref().map_or_else(|| row.name(), TaskId::to_string);
            notes.extend(self.save(&lane, &owner)?);
        }
        notes.extend(self.save_detached(&row)?);
        self.discard(&row.path)?;
        Ok((row, notes))
    }

    /// Takes the run's lock if the worktree belongs to a session: its run must not be at work.
    fn lock_run_of(&self, row: &WorktreeStatusRow, name: &TaskId) -> Result<Option<FileLock>, WorktreeError> {
        let Some(branch) = row.branch.as_ref().filter(|_| row.kind == WorktreeKind::Session) else {
            return Ok(None);
        };
        let busy = |source| WorktreeError::Busy { task: name.clone(), source };
        let lock = FileLock::try_take(&self.repository.run_lock(branch), "git arborist worktree");
        lock.map(Some).map_err(busy)
    }

    /// Frees a lane for the next task, with its caches. Uncommitted work in it is saved when it is taken.
    pub fn recycle(&self, name: &TaskId) -> Result<WorktreeStatusRow, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let is_lane = |row: &WorktreeStatusRow| row.kind == WorktreeKind::Lane && !row.is_missing;
        let row = self.find(name)?.filter(is_lane).ok_or_else(|| WorktreeError::NoLane(name.to_string()))?;
        let _lock = self.lock_worktree(&row.path, name)?;
        if let Some(head) = row.head {
            self.linked(&row.worktree)?.detach(head)?;
        }
        Ok(row)
    }

    /// Saves a detached `HEAD`, which may be the only reference to commits of the user.
    fn save_detached(&self, row: &WorktreeStatusRow) -> Result<Option<WorktreeNote>, WorktreeError> {
        match row.head.filter(|_| row.branch.is_none()) {
            Some(head) => self.save_head(&row.name(), head),
            None => Ok(None),
        }
    }

    /// Unregisters worktrees whose directories are gone, and deletes leftovers.
    pub fn prune(&self) -> Result<(Vec<PathBuf>, Vec<WorktreeNote>), WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let is_gone = |row: &WorktreeStatusRow| row.is_missing && self.find_moved(&row.worktree).is_none();
        let missing: Vec<WorktreeStatusRow> = self.survey()?.into_iter().filter(is_gone).collect();
        let mut notes = Vec::new();
        for row in missing.iter().filter(|row| row.kind != WorktreeKind::Foreign) {
            notes.extend(self.save_detached(row)?);
            self.forget(&row.worktree)?;
        }
        self.sweep();
        Ok((missing.into_iter().map(|row| row.path).collect(), notes))
    }

    /// The new path of a worktree whose directory was moved but is still next to its old path.
    #[must_use]
    pub fn find_moved(&self, worktree: &Worktree) -> Option<PathBuf> {
        let home = worktree.git_dir.as_deref().filter(|_| !worktree.path.is_dir())?;
        // A directory in the trash was not moved by the user; its cleanup was killed.
        let is_trash = |path: &PathBuf| survey::name_of(path).starts_with(TRASH);
        let leads_home = |path: &PathBuf| {
            let link = safe_files::read(&path.join(".git")).ok();
            let target = link.and_then(|link| target_of(path, &link));
            target.is_some_and(|target| fill::is_same_folder(&target, home))
        };
        let folders = [Some(self.places.base.as_path()), worktree.path.parent()];
        let entries = folders.into_iter().flatten().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        entries.flatten().map(|entry| entry.path()).find(|path| !is_trash(path) && leads_home(path))
    }

    /// Undoes a failed choice. What existed before is not touched.
    pub(super) fn undo(&self, chosen: &ChosenWorktree, request: &WorktreeRequest<'_>) {
        if chosen.origin != WorktreeOrigin::Made {
            return;
        }
        let Ok(_registry_lock) = self.lock_registry() else {
            return;
        };
        let _ = self.discard(&chosen.path);
        if let Some(base) = chosen.made_branch {
            let name = request.branch.to_ref();
            let moves = [RefMove { name: &name, new: None, old: Some(base) }];
            let _ = self.repository.move_refs(&moves, "arborist: undo");
        }
    }

    /// Renames the directory, which is fast, and deletes it in the background.
    pub(super) fn discard(&self, path: &Path) -> Result<(), WorktreeError> {
        let trash = self.rename_to_trash(path)?;
        self.repository.forget_worktree(path)?;
        delete_in_background(&self.repository, &[trash]);
        Ok(())
    }

    /// Deletes directories that killed processes had renamed for deletion.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let trash = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TRASH));
        let is_left = |path: &PathBuf| TrashState::find(&self.repository, path) != TrashState::BeingDeleted;
        let left: Vec<PathBuf> = trash.map(|entry| entry.path()).filter(is_left).collect();
        delete_in_background(&self.repository, &left);
    }

    /// Folders in the trash that could not be deleted, with the reason.
    #[must_use]
    pub fn find_failed_deletions(&self) -> Vec<(PathBuf, String)> {
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let trash = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TRASH));
        let failed = |path: PathBuf| match TrashState::find(&self.repository, &path) {
            TrashState::Failed(why) => Some((path, why)),
            _ => None,
        };
        trash.filter_map(|entry| failed(entry.path())).collect()
    }
}

/// Refuses to remove a directory that a process works in, because its files would vanish from under that process.
fn refuse_occupied(path: &Path) -> Result<(), WorktreeError> {
    let real = safe_files::resolved(path);
    if std::env::current_dir().is_ok_and(|current| current.starts_with(&real)) {
        return Err(WorktreeError::Inside(path.to_owned()));
    }
    match Occupants::find().and_then(|occupants| occupants.of(&real)) {
        Some(pid) => Err(WorktreeError::Occupant { path: path.to_owned(), pid }),
        None => Ok(()),
    }
}

fn list(changed_paths: &[UncommittedPath]) -> String {
    let shown: Vec<String> = changed_paths.iter().map(UncommittedPath::shown).collect();
    first_of(&shown, MAX_SHOWN)
}

impl Pool {
    /// Keeps other processes out of one worktree.
    pub fn occupy(&self, path: &Path) -> Result<FileLock, LockError> {
        let what = "git arborist cleanup";
        FileLock::take_within(&self.repository.worktree_lock(path), what, LOOK_TIME, &Cancel::new())
    }

    /// The repository as seen from a worktree whose directory may be gone.
    #[must_use]
    pub fn look_into(&self, place: &WorktreeRemains) -> Option<Repository> {
        let mut view = self.repository.linked(place.worktree.as_ref()?)?;
        if place.is_missing {
            view.dir.clone_from(&self.repository.common_dir);
            view.worktree = Some(self.repository.common_dir.clone());
        }
        Some(view)
    }

    /// Renames a directory, which is fast, and unregisters it. Returns the new path, which is to be deleted. `_registry_lock`
    /// is the lock of [`Pool::lock_registry`].
    pub fn throw_away(
        &self,
        _registry_lock: &FileLock,
        place: &WorktreeRemains,
    ) -> Result<Option<PathBuf>, WorktreeError> {
        let trash = match place.is_missing {
            true => None,
            false => Some(self.rename_to_trash(&place.path)?),
        };
        if place.worktree.is_some() {
            self.repository.forget_worktree(&place.path)?;
        }
        Ok(trash)
    }

    /// Renames something in a worktree into the trash of our directory.
    pub fn rename_to_trash(&self, path: &Path) -> Result<PathBuf, WorktreeError> {
        let name = survey::name_of(path);
        let inside = self.bases().into_iter().find(|base| path.starts_with(base));
        let folder = inside.unwrap_or_else(|| path.parent().unwrap_or(path).to_owned());
        let unique = (0u32..).map(|number| folder.join(format!("{TRASH}{name}-{number}")));
        let trash = unique.into_iter().find(|trash| trash.symlink_metadata().is_err());
        let trash = trash.unwrap_or_else(|| folder.join(TRASH));
        safe_files::rename(path, &trash).map_err(WorktreeError::file("remove", path))?;
        Ok(trash)
    }

    /// Waits for a lock file of a killed git, and removes it if no process has it.
    pub fn clear_stale_lock(&self, of: &str) {
        checkout_locks::clear(&self.repository.common_dir.join(format!("{of}.lock")));
    }
}
