//! What cleanup needs from worktrees: a list of all of them and of leftovers, whether a process is at work there, and a
//! fast way to delete them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Pool, WorktreeError, is_ours, scratch, session_worktree::is_of_session, survey};
use crate::{
    git::{Repository, TRASH, Worktree, stale, target_of},
    name::{BranchName, TaskId, digest},
    process::{Cancel, FileLock, Holder, LockError, OrphanLock},
    safe_files,
};

/// A worktree, or what is left of one.
#[derive(Debug, Clone)]
pub struct WorktreeRemains {
    /// Its kind.
    pub kind: PlaceKind,
    /// Its top.
    pub path: PathBuf,
    /// Its entry in git; `None` if git does not know it.
    pub worktree: Option<Worktree>,
    /// Whether its directory is gone.
    pub is_missing: bool,
    /// When it was last active, in seconds since 1970.
    pub active: Option<i64>,
}

/// The kind of a worktree or leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A lane, or a worktree that was created by hand.
    Work,
    /// A scratch worktree of a gate or review. Its files are of no value.
    Scratch,
    /// A worktree of the user in our directory, or with a task's branch.
    Foreign,
    /// Ours, but not in the current directory for worktrees.
    Outside,
    /// A directory whose `.git` file leads to a worktree that git no longer knows.
    Orphan,
    /// Renamed for deletion, and not deleted yet.
    Trash,
}

/// The prefixes of scratch worktrees in which no person works.
const SCRATCH_PREFIXES: [&str; 3] = ["gate-", "phase-", "review-"];
impl WorktreeRemains {
    /// The name of its directory.
    #[must_use]
    pub fn name(&self) -> String {
        survey::name_of(&self.path)
    }

    /// The branch that is checked out there.
    #[must_use]
    pub fn branch(&self) -> Option<&BranchName> {
        self.worktree.as_ref()?.branch.as_ref()
    }
}

impl Pool {
    /// Where worktrees are created.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.places.base
    }

    /// Lists all worktrees of ours, those that have a task's branch, and leftovers in our directory.
    #[must_use]
    pub fn list_places(&self, worktrees: &[Worktree]) -> Vec<WorktreeRemains> {
        let known = worktrees.iter().skip(1).filter_map(|worktree| self.place_of(worktree));
        let mut found: Vec<WorktreeRemains> = known.collect();
        for base in self.bases() {
            for entry in fs::read_dir(base).into_iter().flatten().flatten() {
                let path = entry.path();
                if !worktrees.iter().any(|worktree| worktree.path == path) {
                    found.extend(self.left_over(path));
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// Our directory, and the fallback inside the checkout. Links are resolved, as git does.
    fn bases(&self) -> Vec<PathBuf> {
        let both = [self.places.base.clone(), self.places.inside()];
        both.iter().filter_map(|base| base.canonicalize().ok()).collect()
    }

    fn place_of(&self, worktree: &Worktree) -> Option<WorktreeRemains> {
        let name = survey::name_of(&worktree.path);
        let bases = self.bases();
        let plain = |path: &Path| [self.places.base.as_path(), &self.places.inside()].contains(&path);
        let is_inside = worktree.path.parent().is_some_and(|parent| {
            plain(parent) || parent.canonicalize().is_ok_and(|parent| bases.contains(&parent))
        });
        let is_scratch = worktree.lock.as_deref() == Some(scratch::REASON);
        let is_tested = SCRATCH_PREFIXES.iter().any(|kind| name.starts_with(kind));
        let kind = match (is_ours(worktree) || is_scratch || is_of_session(worktree), is_inside) {
            (true, true) if is_scratch && is_tested => PlaceKind::Scratch,
            (true, true) => PlaceKind::Work,
            (true, false) => PlaceKind::Outside,
            (false, true) => PlaceKind::Foreign,
            (false, false) if worktree.branch.as_ref().and_then(survey::task_of).is_some() => {
                PlaceKind::Foreign
            }
            (false, false) => return None,
        };
        Some(WorktreeRemains {
            kind,
            path: worktree.path.clone(),
            is_missing: !worktree.path.is_dir(),
            active: worktree.git_dir.as_deref().and_then(survey::last_activity),
            worktree: Some(worktree.clone()),
        })
    }

    /// A directory that git does not know is ours if it was renamed for deletion or was a worktree of this repository.
    fn left_over(&self, path: PathBuf) -> Option<WorktreeRemains> {
        let kind = if survey::name_of(&path).starts_with(TRASH) {
            PlaceKind::Trash
        } else {
            let link = safe_files::read(&path.join(".git")).ok()?;
            let homes = self.repository.common_dir.join("worktrees");
            let home = target_of(&path, &link).filter(|home| home.starts_with(&homes))?;
            if home.exists() {
                return None;
            }
            PlaceKind::Orphan
        };
        let active = survey::changed(&path);
        Some(WorktreeRemains { kind, path, worktree: None, is_missing: false, active })
    }

    /// The process that works in a place, according to its lock and the orphan locks that its child processes inherit.
    pub fn find_occupant(&self, path: &Path) -> io::Result<Option<Holder>> {
        let lock = self.repository.worktree_lock(path);
        if let Some(holder) = FileLock::look(&lock)? {
            return Ok(Some(holder));
        }
        if let Some(holder) = FileLock::look(&OrphanLock::beside(&lock))? {
            return Ok(Some(holder));
        }
        let suffix = format!("~{}{}", survey::name_of(path), OrphanLock::SUFFIX);
        for entry in fs::read_dir(self.places.locks()).into_iter().flatten().flatten() {
            let is_of_place = entry.file_name().to_string_lossy().ends_with(&suffix);
            if is_of_place && let Some(holder) = FileLock::look(&entry.path())? {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// The process that works on a task.
    pub fn find_worker(&self, branch: &BranchName, task: &TaskId) -> io::Result<Option<Holder>> {
        FileLock::look(&self.places.locks().join(name_of_task_lock(branch, task)))
    }

    /// Keeps other processes from creating and removing worktrees while the lock exists.
    pub fn close(&self) -> Result<FileLock, WorktreeError> {
        self.gate()
    }

    /// Keeps other processes out of one worktree.
    pub fn occupy(&self, path: &Path) -> Result<FileLock, LockError> {
        let what = "git arborist cleanup";
        FileLock::take_within(
            &self.repository.worktree_lock(path),
            what,
            super::claim::LOOK_TIME,
            &Cancel::new(),
        )
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

    /// Renames a directory, which is fast, and unregisters it. Returns the new path, which is to be deleted. `_gate`
    /// is the lock of [`Pool::close`].
    pub fn throw_away(
        &self,
        _gate: &FileLock,
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
        stale::clear(&self.repository.common_dir.join(format!("{of}.lock")));
    }
}

pub(super) fn name_of_task_lock(branch: &BranchName, task: &TaskId) -> String {
    format!("task-{task}-{}", &digest(branch.as_str().as_bytes())[..12])
}
