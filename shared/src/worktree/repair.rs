//! Repairs worktrees: those that were moved, broken links, lock files that killed processes left, folders that git has
//! forgotten, and worktrees that are only half created.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Pool, REASON, WorktreeError, is_ours,
    survey::{Orphan, WorktreeKind, name_of},
};
use crate::{
    git::{TRASH, Worktree, checkout_locks, has_valid_head, target_of},
    name::{BranchName, TaskId},
    process::{FileLock, shell_word},
    safe_files,
};

/// What a repair did.
#[derive(Debug)]
pub struct RepairedWorktrees {
    /// Worktrees that were broken and now work.
    pub repaired: Vec<PathBuf>,
    /// Worktrees that are still broken.
    pub broken: Vec<PathBuf>,
    /// What git said about worktrees that were moved.
    pub said: String,
}

impl Pool {
    /// Repairs what can be repaired. Returns the worktrees that were broken and now work, those that are still broken,
    /// and git's output.
    pub fn repair(&self) -> Result<RepairedWorktrees, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let before = self.list_broken()?;
        self.repair_ours()?;
        for orphan in self.list_orphans(&self.repository.list_worktrees()?)? {
            let path = &orphan.worktree.path;
            if FileLock::find_holder(&self.repository.worktree_lock(path)).is_none() {
                self.reconnect(&orphan)?;
            }
        }
        // Worktrees that were moved. Git complains about each that it cannot repair.
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let is_known = |path: &PathBuf| path.join(".git").is_file() && !self.is_orphan(path);
        let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_known).collect();
        let said = self.repository.repair_worktrees(&folders)?;
        let broken = self.list_broken()?;
        let repaired = before.into_iter().filter(|path| !broken.contains(path)).collect();
        Ok(RepairedWorktrees { repaired, broken, said })
    }

    fn list_broken(&self) -> Result<Vec<PathBuf>, WorktreeError> {
        let broken = self.survey()?.into_iter().filter(|row| row.is_broken);
        Ok(broken.map(|row| row.path).collect())
    }

    /// What to do about a worktree that cannot be repaired. Its files may be the only copy of uncommitted work.
    #[must_use]
    pub fn advice_for_broken(&self, path: &Path) -> String {
        let why = match self.is_orphan(path) {
            true => "its git directory is gone, and with it the name of its branch",
            false => "its git directory does not say what was checked out",
        };
        let word = shell_word(&path.to_string_lossy());
        let away = shell_word(&format!("{}.old", path.display()));
        format!("{why}; keep its files and move it away with: mv {word} {away}")
    }

    fn repair_ours(&self) -> Result<(), WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        let used: Vec<BranchName> = worktrees.iter().filter_map(|worktree| worktree.branch.clone()).collect();
        for worktree in worktrees.iter().filter(|worktree| is_ours(worktree)) {
            let is_busy = FileLock::find_holder(&self.repository.worktree_lock(&worktree.path)).is_some();
            if is_busy || !worktree.path.is_dir() {
                continue;
            }
            let lane = self.linked(worktree)?;
            lane.restore_common_dir()?;
            lane.restore_head(&used)?;
            self.repair_link(&lane)?;
            for name in ["index.lock", "HEAD.lock"] {
                checkout_locks::clear(&lane.git_dir.join(name));
            }
            checkout_locks::sweep_indexes(&lane.git_dir);
            if has_valid_head(&lane.git_dir) {
                lane.restore_index()?;
            }
        }
        Ok(())
    }
}

// Folders of worktrees that git has forgotten: their `.git` file leads to a git directory that is gone. Their files are the
// only copy of uncommitted work, so they are listed as broken and connected again.

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
            let worktree =
                Worktree { path, git_dir: None, branch, head, lock: None, is_bare: false, is_unknown: false };
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
    fn reconnect(&self, orphan: &Orphan) -> Result<(), WorktreeError> {
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

/// How long git may outlive the process that started it.
const SETTLE: Duration = Duration::from_millis(200);

impl Pool {
    fn journal(&self) -> PathBuf {
        self.repository.lock_folder().join("worktrees.making")
    }

    /// Notes that a worktree is about to be created at `path`. Only one is created at a time.
    pub(super) fn note_making(&self, path: &Path) -> Result<(), WorktreeError> {
        let file = self.journal();
        safe_files::write(&file, path.as_os_str().as_bytes()).map_err(WorktreeError::file("write", file))
    }

    /// Removes the note: the worktree is complete, or nothing of it is left.
    pub(super) fn note_made(&self) {
        let _ = safe_files::remove(&self.journal());
    }

    /// Removes what a process left that was killed while it created a worktree. A complete one stays: it is a free
    /// lane. Any process can write the note, so it is trusted only for paths at which we create worktrees.
    pub(super) fn repair_half_made(&self) -> Result<(), WorktreeError> {
        let Ok(bytes) = safe_files::read(&self.journal()) else {
            return Ok(());
        };
        let path = PathBuf::from(OsString::from_vec(bytes));
        // The parent of "folder/.." is the folder too, so require a file name.
        if path.file_name().is_some() && self.places.is_place(&path) {
            self.remove_unregistered(&path)?;
        }
        self.note_made();
        Ok(())
    }

    /// Removes what is left of a worktree that this process failed to create.
    pub(super) fn repair_failed(&self, path: &Path) -> Result<(), WorktreeError> {
        self.remove_unregistered(path)?;
        self.note_made();
        Ok(())
    }

    fn remove_unregistered(&self, path: &Path) -> Result<(), WorktreeError> {
        if !self.is_registered(path) {
            thread::sleep(SETTLE);
        }
        if self.is_registered(path) { Ok(()) } else { self.remove_remains(path) }
    }

    fn is_registered(&self, path: &Path) -> bool {
        let worktrees = self.repository.list_worktrees().unwrap_or_default();
        worktrees.iter().any(|worktree| {
            worktree.path == path
                && worktree.head.is_some()
                && super::is_ours(worktree)
                && path.join(".git").is_file()
        })
    }

    /// Removes a worktree that was never filled: it has only its `.git` file. Anything else is not removed.
    fn remove_remains(&self, path: &Path) -> Result<(), WorktreeError> {
        let homes = self.half_made_homes(path);
        for git_dir in &homes {
            let removed = self.repository.change_git_dirs(|| safe_files::remove_all(git_dir));
            removed.map_err(WorktreeError::file("remove", git_dir))?;
        }
        let link = path.join(".git");
        if safe_files::read(&link).is_ok_and(|text| self.leads_nowhere(&text)) {
            let _ = safe_files::remove(&link);
        }
        let _ = safe_files::remove_folder(path);
        Ok(())
    }

    /// Whether a `.git` file names a missing git directory below this repository's `worktrees`.
    fn leads_nowhere(&self, link: &[u8]) -> bool {
        let Some(home) = link.strip_prefix(b"gitdir: ") else { return link.trim_ascii().is_empty() };
        let home = Path::new(OsStr::from_bytes(home.trim_ascii_end()));
        let is_here = home.parent() == Some(&self.repository.common_dir.join("worktrees"));
        is_here && home.symlink_metadata().is_err()
    }

    /// The git directories that were being created for a worktree at `path`: those that name it, and those of its name
    /// that name nothing yet.
    fn half_made_homes(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let entries = fs::read_dir(self.repository.common_dir.join("worktrees")).into_iter().flatten();
        let has_head = self.repository.list_worktrees().unwrap_or_default();
        let has_head = has_head.iter().any(|worktree| worktree.path == path && worktree.head.is_some());
        let is_ours = |home: &PathBuf| match safe_files::read(&home.join("gitdir")) {
            Ok(file) if !file.trim_ascii().is_empty() => {
                file.trim_ascii_end() == path.join(".git").as_os_str().as_bytes() && !has_head
            }
            _ => home.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(name)),
        };
        let homes = entries.flatten().map(|entry| entry.path());
        homes.filter(|home| is_half_made(home) && is_ours(home)).collect()
    }
}

/// Whether git was creating this git directory for us. Git locks it with our reason before it writes anything else, and
/// gives it an index last.
fn is_half_made(home: &Path) -> bool {
    if home.join("index").symlink_metadata().is_ok() {
        return false;
    }
    match safe_files::read(&home.join("locked")) {
        // All our reasons start with the same word. An interrupted write leaves a part of it, or nothing.
        Ok(reason) => {
            let own = super::REASON.as_bytes();
            reason.starts_with(own) || own.starts_with(&reason)
        }
        Err(_) => safe_files::list(home).is_ok_and(|entries| entries.is_empty()),
    }
}
