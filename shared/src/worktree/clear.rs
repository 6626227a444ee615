//! What cleaning up needs of worktrees: all of them and what is left of others, who is at work there, and a way to be
//! rid of one that nobody waits for.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Pool, WorktreeError, fill, is_ours, places, scratch, session_worktree::is_of_session, survey};
use crate::{
    git::{Repository, Worktree, stale},
    name::{BranchName, TaskId, digest},
    process::{Cancel, Confinement, FileLock, Holder, LockError, OrphanLock, Program},
    safe_files,
};

/// A worktree, or what is left of one.
#[derive(Debug, Clone)]
pub struct WorktreeRemains {
    /// What it is.
    pub kind: PlaceKind,
    /// Its top.
    pub path: PathBuf,
    /// How git has it; `None` if git does not know it.
    pub worktree: Option<Worktree>,
    /// Whether its folder is gone.
    pub is_missing: bool,
    /// When something was last done there, in seconds since 1970.
    pub active: Option<i64>,
}

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A lane, or a worktree that was made by hand.
    Work,
    /// Tests ran there, and what lies there is nobody's work.
    Scratch,
    /// Somebody else's that stands among ours, or that has a task's branch in it.
    Foreign,
    /// Ours, but elsewhere than worktrees are made now.
    Outside,
    /// A folder whose `.git` leads to a worktree that git does not know any more.
    Orphan,
    /// It was thrown away and is not deleted yet.
    Trash,
}

/// Scratch worktrees in which nobody works: their names, before a number.
const TESTED: [&str; 3] = ["gate-", "phase-", "review-"];
/// So many folders are deleted by one program.
const AT_ONCE: usize = 500;
/// Deletes each folder, also where somebody made parts of it read-only.
const DELETE: &str =
    r#"for d; do rm -rf -- "$d" 2>/dev/null || { chmod -R u+rwX -- "$d"; rm -rf -- "$d"; }; done"#;

impl WorktreeRemains {
    /// The name of its folder.
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
    /// Where worktrees are made.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.places.base
    }

    /// All worktrees of ours, those that have a task's branch checked out, and what is left of others in our folder.
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

    /// Our folder, and the one inside the checkout that stands in for it. A link is followed, as git does.
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
        let is_tested = TESTED.iter().any(|kind| name.starts_with(kind));
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

    /// A folder that git does not know is ours if it was thrown away, or was a worktree of this repository.
    fn left_over(&self, path: PathBuf) -> Option<WorktreeRemains> {
        let kind = if survey::name_of(&path).starts_with(places::TRASH) {
            PlaceKind::Trash
        } else {
            let link = safe_files::read(&path.join(".git")).ok()?;
            let homes = self.repository.common_dir.join("worktrees");
            let home = fill::target_of(&path, &link).filter(|home| home.starts_with(&homes))?;
            if home.exists() {
                return None;
            }
            PlaceKind::Orphan
        };
        let active = survey::changed(&path);
        Some(WorktreeRemains { kind, path, worktree: None, is_missing: false, active })
    }

    /// Who is at work in a place, by its lock and by those that the programs share that were started there.
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

    /// Who works on a task.
    pub fn find_worker(&self, branch: &BranchName, task: &TaskId) -> io::Result<Option<Holder>> {
        FileLock::look(&self.places.locks().join(name_of_task_lock(branch, task)))
    }

    /// Keeps all others from making and removing worktrees for as long as this lives.
    pub fn close(&self) -> Result<FileLock, WorktreeError> {
        self.gate()
    }

    /// Keeps all others out of one place.
    pub fn occupy(&self, path: &Path) -> Result<FileLock, LockError> {
        let what = "git arborist cleanup";
        FileLock::take_within(
            &self.repository.worktree_lock(path),
            what,
            super::claim::GLANCE,
            &Cancel::new(),
        )
    }

    /// The repository as it is seen from a place whose folder may be gone.
    #[must_use]
    pub fn look_into(&self, place: &WorktreeRemains) -> Option<Repository> {
        let mut view = self.repository.linked(place.worktree.as_ref()?)?;
        if place.is_missing {
            view.dir.clone_from(&self.repository.common_dir);
            view.worktree = Some(self.repository.common_dir.clone());
        }
        Some(view)
    }

    /// Renames a folder, which is quick, and takes it out of git's register. What it is called then is to be deleted.
    /// Call this only behind [`Pool::close`].
    pub fn throw_away(&self, place: &WorktreeRemains) -> Result<Option<PathBuf>, WorktreeError> {
        let trash = match place.is_missing {
            true => None,
            false => Some(self.rename_to_trash(&place.path)?),
        };
        if place.worktree.is_some() {
            self.repository.forget_worktree(&place.path)?;
        }
        Ok(trash)
    }

    /// Renames something in a worktree into the trash of our folder.
    pub fn rename_to_trash(&self, path: &Path) -> Result<PathBuf, WorktreeError> {
        let name = survey::name_of(path);
        let inside = self.bases().into_iter().find(|base| path.starts_with(base));
        let folder = inside.unwrap_or_else(|| path.parent().unwrap_or(path).to_owned());
        let unique = (0u32..).map(|number| folder.join(format!("{}{name}-{number}", places::TRASH)));
        let trash = unique.into_iter().find(|trash| trash.symlink_metadata().is_err());
        let trash = trash.unwrap_or_else(|| folder.join(places::TRASH));
        safe_files::rename(path, &trash).map_err(WorktreeError::file("remove", path))?;
        Ok(trash)
    }

    /// Waits for a lock file of a git that was killed, and removes it if nobody has it.
    pub fn clear_stale_lock(&self, of: &str) {
        stale::clear(&self.repository.common_dir.join(format!("{of}.lock")));
    }
}

/// Deletes folders in the background, when nobody else wants the machine. What stays is found by the next one.
pub fn delete_in_background(folders: &[PathBuf]) {
    for part in folders.chunks(AT_ONCE) {
        // An agent that lives may replace a folder by a link while it is emptied.
        let beside = part.iter().filter_map(|folder| folder.parent()).map(Path::to_owned);
        let program = Program::new("nice").args(["-n", "19", "sh", "-c", DELETE, "sh"]).args(part);
        // What it deletes is no worktree any more.
        let _ = program.harmless().confined(Confinement::new(beside)).release();
    }
}

pub(super) fn name_of_task_lock(branch: &BranchName, task: &TaskId) -> String {
    format!("task-{task}-{}", &digest(branch.as_str().as_bytes())[..12])
}
