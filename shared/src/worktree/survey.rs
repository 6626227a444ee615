//! Lists our worktrees, with their state and the processes that work in them; and for cleanup also scratch worktrees and
//! what is left of worktrees.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{Pool, REASON, WorktreeError, fill, is_ours, paths, scratch, session_worktree::is_of_session};
use crate::{
    git::{Repository, TRASH, Worktree, target_of},
    name::{BranchName, Oid, TASK_BRANCHES, TaskId, digest},
    process::{FileLock, Holder, OrphanLock},
    safe_files,
};

/// The purpose of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeKind {
    /// A lane of a run, which is given to one task after another.
    Lane,
    /// Created by hand for one task.
    Named,
    /// Created for a session, whose branch is checked out there.
    Session,
    /// A worktree of the user with a task's branch.
    Foreign,
}

/// The state of one worktree.
#[derive(Debug, Clone)]
pub struct WorktreeStatusRow {
    /// Its purpose.
    pub kind: WorktreeKind,
    /// Its top.
    pub path: PathBuf,
    /// The branch that is checked out; `None` if it is free.
    pub branch: Option<BranchName>,
    /// The task that the branch is for.
    pub task: Option<TaskId>,
    /// The commit that is checked out.
    pub head: Option<Oid>,
    /// Whether its directory is gone.
    pub is_missing: bool,
    /// Whether its `.git` file does not lead to its git directory, or that is gone or damaged, so that git does not work in
    /// it.
    pub is_broken: bool,
    /// The process that works in it.
    pub holder: Option<Holder>,
    /// When it was last active, in seconds since 1970.
    pub active: Option<i64>,
    pub(super) worktree: Worktree,
}

impl WorktreeStatusRow {
    /// The name of its directory.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Whether the next task can have it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.kind == WorktreeKind::Lane && self.branch.is_none() && !self.is_missing && !self.is_broken
    }
}

/// A folder that was a worktree.
#[derive(Debug)]
pub(super) struct Orphan {
    pub(super) kind: WorktreeKind,
    pub(super) task: Option<TaskId>,
    pub(super) worktree: Worktree,
}

impl Pool {
    /// Lists all worktrees of ours, of any run, and those that have a task's branch.
    pub fn survey(&self) -> Result<Vec<WorktreeStatusRow>, WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        let orphans = self.list_orphans(&worktrees)?;
        let mut rows: Vec<WorktreeStatusRow> =
            worktrees.into_iter().filter_map(|worktree| self.row(worktree)).collect();
        rows.extend(orphans.into_iter().map(|orphan| self.row_of_orphan(orphan)));
        Ok(rows)
    }

    fn row_of_orphan(&self, Orphan { kind, task, worktree }: Orphan) -> WorktreeStatusRow {
        WorktreeStatusRow {
            kind,
            path: worktree.path.clone(),
            branch: worktree.branch.clone(),
            task,
            head: worktree.head,
            is_missing: false,
            is_broken: true,
            holder: FileLock::find_holder(&self.repository.worktree_lock(&worktree.path)),
            active: changed(&worktree.path),
            worktree,
        }
    }

    /// Finds the worktree of a task of this run, or the one with this directory name.
    pub fn find(&self, name: &TaskId) -> Result<Option<WorktreeStatusRow>, WorktreeError> {
        let branch = self.run.task_branch(name);
        let mut all = self.survey()?;
        let by_branch = all.iter().position(|row| row.branch.as_ref() == Some(&branch));
        let by_name = || all.iter().position(|row| row.name() == name.as_str());
        Ok(by_branch.or_else(by_name).map(|at| all.swap_remove(at)))
    }

    /// The repository as seen from a worktree.
    pub fn view(&self, row: &WorktreeStatusRow) -> Result<Repository, WorktreeError> {
        self.linked(&row.worktree)
    }

    fn row(&self, worktree: Worktree) -> Option<WorktreeStatusRow> {
        let task = worktree.branch.as_ref().and_then(task_of);
        let kind = match (is_ours(&worktree), &task) {
            (true, _) if paths::is_lane(&name_of(&worktree.path)) => WorktreeKind::Lane,
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
            is_broken: worktree.path.is_dir() && !fill::is_connected(&self.repository, &worktree),
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

/// When git last wrote something about this worktree.
pub(super) fn last_activity(git_dir: &Path) -> Option<i64> {
    ["index", "HEAD", "logs/HEAD"].into_iter().filter_map(|name| changed(&git_dir.join(name))).max()
}

/// When a file was last changed, in seconds since 1970.
pub(super) fn changed(path: &Path) -> Option<i64> {
    let time = path.metadata().ok()?.modified().ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

impl Pool {
    /// The warnings. This runs no git command.
    #[must_use]
    pub fn find_warnings(&self) -> Vec<String> {
        let mut words = Vec::new();
        let base = self.places.base.display();
        let count = self.count();
        let warn_from = self.options.warn_worktrees();
        if warn_from > 0 && count >= warn_from {
            words.push(format!("worktrees in '{base}': {count}"));
        }
        let folder = self.places.base.ancestors().find(|folder| folder.is_dir());
        if let Some(free) = folder.and_then(free_at).filter(|free| *free < self.options.warn_free) {
            words.push(format!("only {} MB are free at '{base}'", free / 1_000_000));
        }
        words
    }

    /// The number of worktrees that are locked with our reason.
    #[must_use]
    pub fn count(&self) -> usize {
        let homes =
            fs::read_dir(self.repository.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let is_ours = |home: &fs::DirEntry| {
            safe_files::read(&home.path().join("locked"))
                .is_ok_and(|reason| reason.trim_ascii() == REASON.as_bytes())
        };
        homes.filter(is_ours).count()
    }
}

fn free_at(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    // A file system such as /proc has no blocks, and nothing that is removed makes room there.
    (system.f_blocks > 0).then(|| system.f_bavail.saturating_mul(system.f_frsize))
}

/// A worktree, or what is left of one.
#[derive(Debug, Clone)]
pub struct WorktreeRemains {
    /// Its kind.
    pub kind: RemainsKind,
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
pub enum RemainsKind {
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
        name_of(&self.path)
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
    pub(super) fn bases(&self) -> Vec<PathBuf> {
        let both = [self.places.base.clone(), self.places.inside()];
        both.iter().filter_map(|base| base.canonicalize().ok()).collect()
    }

    fn place_of(&self, worktree: &Worktree) -> Option<WorktreeRemains> {
        let name = name_of(&worktree.path);
        let bases = self.bases();
        let plain = |path: &Path| [self.places.base.as_path(), &self.places.inside()].contains(&path);
        let is_inside = worktree.path.parent().is_some_and(|parent| {
            plain(parent) || parent.canonicalize().is_ok_and(|parent| bases.contains(&parent))
        });
        let is_scratch = worktree.lock.as_deref() == Some(scratch::REASON);
        let is_tested = SCRATCH_PREFIXES.iter().any(|kind| name.starts_with(kind));
        let kind = match (is_ours(worktree) || is_scratch || is_of_session(worktree), is_inside) {
            (true, true) if is_scratch && is_tested => RemainsKind::Scratch,
            (true, true) => RemainsKind::Work,
            (true, false) => RemainsKind::Outside,
            (false, true) => RemainsKind::Foreign,
            (false, false) if worktree.branch.as_ref().and_then(task_of).is_some() => RemainsKind::Foreign,
            (false, false) => return None,
        };
        Some(WorktreeRemains {
            kind,
            path: worktree.path.clone(),
            is_missing: !worktree.path.is_dir(),
            active: worktree.git_dir.as_deref().and_then(last_activity),
            worktree: Some(worktree.clone()),
        })
    }

    /// A directory that git does not know is ours if it was renamed for deletion or was a worktree of this repository.
    fn left_over(&self, path: PathBuf) -> Option<WorktreeRemains> {
        let kind = if name_of(&path).starts_with(TRASH) {
            RemainsKind::Trash
        } else {
            let link = safe_files::read(&path.join(".git")).ok()?;
            let homes = self.repository.common_dir.join("worktrees");
            let home = target_of(&path, &link).filter(|home| home.starts_with(&homes))?;
            if home.exists() {
                return None;
            }
            RemainsKind::Orphan
        };
        let active = changed(&path);
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
        let suffix = format!("~{}{}", name_of(path), OrphanLock::SUFFIX);
        for entry in fs::read_dir(self.repository.lock_folder()).into_iter().flatten().flatten() {
            let is_of_place = entry.file_name().to_string_lossy().ends_with(&suffix);
            if is_of_place && let Some(holder) = FileLock::look(&entry.path())? {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// The process that works on a task.
    pub fn find_worker(&self, branch: &BranchName, task: &TaskId) -> io::Result<Option<Holder>> {
        FileLock::look(&self.repository.lock_folder().join(name_of_task_lock(branch, task)))
    }
}

pub(super) fn name_of_task_lock(branch: &BranchName, task: &TaskId) -> String {
    format!("task-{task}-{}", &digest(branch.as_str().as_bytes())[..12])
}
