//! Finds uncommitted files that tasks leave or change in the user's checkout, because later tests there see them. Most
//! are ignored by git; others are left by tests after the work of a task was committed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    git::{GitError, HiddenMarks, Repository, UncommittedFiles},
    mutex::MutexExt,
    name::Oid,
    safe_files::{self, ChangeStamp, FileKind, OpenedFolder},
};

/// The number of files that are named.
const MAX_NAMED: usize = 50;
/// The number of names that are checked for changes, which takes about 20 ms. The dependencies of a project can be a
/// million files.
const MAX_CHECKED: usize = 10_000;
/// The time limit of a check, for slow disks. The clock is read only once per [`NAMES_PER_CLOCK_READ`] names, so that a
/// busy machine does not shorten a small check.
const MAX_CHECK_TIME: Duration = Duration::from_millis(300);
const NAMES_PER_CLOCK_READ: usize = 1_000;

/// The uncommitted files of a checkout. Clones share their state, so that one task's files are known before the next
/// begins.
#[derive(Debug, Clone, Default)]
pub struct IgnoredFiles(Arc<Mutex<IgnoredState>>);

#[derive(Debug, Default)]
struct IgnoredState {
    /// When the task began, or the first one after the last complete one, by the clock of the file system.
    since: Option<(i64, i64)>,
    /// The ignored files at that time.
    before: BTreeSet<Vec<u8>>,
    /// Whether the last task is complete.
    is_accepted: bool,
    /// The ignored files at the last look, so that the next task need not ask git again.
    last: Option<BTreeSet<Vec<u8>>>,
    /// When the last look was, by the clock of the file system.
    looked: Option<(i64, i64)>,
    /// What the last look found.
    found: IgnoredChanges,
    /// The files at the beginning of the run.
    run: Option<RunFiles>,
}

/// The files before the first task of a run.
#[derive(Debug, Default)]
struct RunFiles {
    /// Files in the folder of logs.
    logs: BTreeMap<PathBuf, ChangeStamp>,
    /// Untracked files that git does not ignore.
    others: BTreeMap<Vec<u8>, ChangeStamp>,
    ignored: Arc<UsersIgnoredFiles>,
}

/// The ignored files of the user's checkout before the first task of a run. A task that changes the ignore rules must
/// not commit them.
#[derive(Debug, Default)]
pub struct UsersIgnoredFiles {
    top: PathBuf,
    /// Files, and folders that are ignored as a whole, which end in a slash.
    paths: BTreeSet<Vec<u8>>,
    /// When they were listed, by the clock of the file system.
    since: Option<(i64, i64)>,
}

impl UsersIgnoredFiles {
    /// Whether this is one of the user's files. In a folder that was ignored as a whole, these are the files that did
    /// not change since.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..=at]);
        let is_unchanged = || {
            let found = safe_files::look_at(&self.top.join(OsStr::from_bytes(path)));
            found.zip(self.since).is_some_and(|(found, since)| found.stamp.changed < since)
        };
        self.paths.contains(path)
            || (folders.into_iter().any(|folder| self.paths.contains(folder)) && is_unchanged())
    }
}

/// The files that worktrees got from the user's checkout, by the top of the worktree.
static COPIES: Mutex<BTreeMap<PathBuf, Arc<BTreeSet<PathBuf>>>> = Mutex::new(BTreeMap::new());

/// Records which files of a worktree are copies of ignored files of the user's. No task commits them.
pub fn record_copies(top: &Path, paths: Arc<BTreeSet<PathBuf>>) {
    COPIES.hold().insert(top.to_owned(), paths);
}

/// The files of a worktree that are copies of files of the user's.
pub(super) fn copies_in(top: &Path) -> Arc<BTreeSet<PathBuf>> {
    let copies = COPIES.hold();
    copies.get(top).cloned().unwrap_or_default()
}

/// Changes of uncommitted files since a task began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredChanges {
    /// New ignored files. A folder that an ignore rule matches is one entry, with a trailing slash.
    pub new: Vec<String>,
    /// Ignored files that were written, replaced or renamed. A folder that an ignore rule matches is one entry, with
    /// the number of changed files in it.
    pub changed: Vec<String>,
    /// Files that are not ignored, and that are new or changed since the run began.
    pub others: Vec<String>,
    /// Whether there were too many names to check all of them.
    pub is_cut: bool,
}

impl IgnoredFiles {
    /// A task begins in a worktree with this tree. `log_dir` is the folder of logs.
    pub fn begin(&self, repository: &Repository, tree: Oid, log_dir: &str) -> Result<(), GitError> {
        let mut state = self.0.hold();
        state.found = IgnoredChanges::default();
        // The reviewers of later tasks are told what a task left that failed, because their tests see it.
        let is_accepted = std::mem::take(&mut state.is_accepted);
        if state.since.is_some() && !is_accepted {
            return Ok(());
        }
        state.before = match state.last.take() {
            Some(last) => last,
            None => {
                // What git reports as ignored is remembered only beside a known index. If another git holds its lock, git is
                // asked again later.
                let _ = repository.make_index_known(HiddenMarks::Kept);
                let files = repository.list_uncommitted(tree)?;
                let top = repository.top();
                let others = stamped(top, &files.others);
                let (logs, since) = (list_others_logs(top, log_dir).0, repository.file_time());
                let ignored = UsersIgnoredFiles { top: top.to_owned(), paths: files.ignored.clone(), since };
                state.run.get_or_insert(RunFiles { logs, others, ignored: Arc::new(ignored) });
                files.ignored
            }
        };
        state.since = repository.file_time();
        Ok(())
    }

    /// The task is complete: its reviewer accepted what it left.
    pub fn accept(&self) {
        self.0.hold().is_accepted = true;
    }

    /// The ignored files before the first task of the run.
    #[must_use]
    pub fn users_files(&self) -> Arc<UsersIgnoredFiles> {
        let state = self.0.hold();
        state.run.as_ref().map(|run| Arc::clone(&run.ignored)).unwrap_or_default()
    }

    /// A task begins in a worktree that no other task works in. Files that appeared since the last look were made by a
    /// child of another task, and the tests of this one will see them.
    pub fn continue_from_last_look(&self) {
        let mut state = self.0.hold();
        state.found = IgnoredChanges::default();
        if std::mem::take(&mut state.is_accepted)
            && let Some(last) = state.last.take()
        {
            (state.before, state.since) = (last, state.looked);
        }
    }

    /// Finds uncommitted files that are new or changed, in a worktree with this tree. Ignored files are compared with
    /// the beginning of the task, other files and those in the log folder `log_dir` with the beginning of the run. Logs
    /// of this process are not named.
    pub fn look(
        &self,
        repository: &Repository,
        tree: Oid,
        log_dir: &str,
    ) -> Result<IgnoredChanges, GitError> {
        // Taken first: files that are written meanwhile count at the next look.
        let looked = repository.file_time();
        let UncommittedFiles { ignored: now, others } = repository.list_uncommitted(tree)?;
        let (logs, has_more_logs) = list_others_logs(repository.top(), log_dir);
        let others = stamped(repository.top(), &others);
        let mut state = self.0.hold();
        let log_dir = format!("{}/", log_dir.trim_matches('/')).into_bytes();
        let is_in = |path: &[u8], folder: &[u8]| folder.ends_with(b"/") && path.starts_with(folder);
        let was_there = |path: &Vec<u8>| {
            state.before.contains(path) || state.before.iter().any(|folder| is_in(path, folder))
        };
        let foreign = now.iter().filter(|path| !path.starts_with(&log_dir));
        let (old, new): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = foreign.partition(|path| was_there(path));
        // A new folder that contains the logs is searched like an old one.
        let (around, new): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
            new.into_iter().partition(|path| is_in(&log_dir, path));
        let mut found = IgnoredChanges::default();
        let has_more = |count: usize| count > MAX_NAMED;
        let is_cut = has_more(new.len());
        found.new.extend(new.into_iter().take(MAX_NAMED).map(|path| shown(path)));
        if let Some(since) = state.since {
            let walk = IgnoredWalk {
                top: repository.top(),
                log_dir: &log_dir,
                since,
                looked_at: 0,
                began: Instant::now(),
            };
            // Files in submodules that only these ignore. Other changes there fail the attempt.
            let mut submodules = repository.list_gitlinks()?;
            submodules.iter_mut().for_each(|path| path.push(b'/'));
            let looked_at: Vec<&Vec<u8>> = old.into_iter().chain(around).chain(&submodules).collect();
            (found.changed, found.is_cut) = walk.find_changed(&looked_at);
        }
        let run = state.run.get_or_insert_default();
        let is_new = |(path, stamp): &(&PathBuf, &ChangeStamp)| run.logs.get(*path) != Some(*stamp);
        let strays: Vec<&PathBuf> = logs.iter().filter(is_new).map(|(path, _)| path).collect();
        found.is_cut |= is_cut || has_more_logs || has_more(strays.len());
        found.new.extend(strays.iter().take(MAX_NAMED).map(|path| path.to_string_lossy().into_owned()));
        let is_new = |(path, stamp): &(&Vec<u8>, &ChangeStamp)| run.others.get(*path) != Some(*stamp);
        let others: Vec<&Vec<u8>> = others.iter().filter(is_new).map(|(path, _)| path).collect();
        found.is_cut |= has_more(others.len());
        found.others = others.iter().take(MAX_NAMED).map(|path| shown(path)).collect();
        state.found = found.clone();
        (state.last, state.looked) = (Some(now), looked);
        Ok(found)
    }

    /// Returns what the last look found.
    #[must_use]
    pub fn found(&self) -> IgnoredChanges {
        self.0.hold().found.clone()
    }
}

/// Returns the files that exist, with the stamps of their last change.
fn stamped(top: &Path, paths: &BTreeSet<Vec<u8>>) -> BTreeMap<Vec<u8>, ChangeStamp> {
    let Ok(opened) = OpenedFolder::open(top) else { return BTreeMap::new() };
    let stamp = |path: &Vec<u8>| Some(opened.look_at(Path::new(OsStr::from_bytes(path)))?.stamp);
    paths.iter().filter_map(|path| Some((path.clone(), stamp(path)?))).collect()
}

/// Lists the files in the log folder that this process did not create, relative to the top, and whether there were more
/// than were looked at.
fn list_others_logs(top: &Path, log_dir: &str) -> (BTreeMap<PathBuf, ChangeStamp>, bool) {
    let (mut found, mut looked_at) = (BTreeMap::new(), 0);
    let log_dir = Path::new(log_dir.trim_end_matches('/'));
    // A log folder outside of the worktree is not looked at: no test relies on it.
    let is_inside = log_dir.components().all(|part| matches!(part, Component::Normal(_)));
    let mut open: Vec<PathBuf> = is_inside.then(|| log_dir.to_owned()).into_iter().collect();
    while let Some(folder) = open.pop() {
        let visited = safe_files::visit_stamps(&top.join(&folder), |name, kind, stamp| {
            let path = folder.join(name);
            looked_at += 1;
            if kind == FileKind::Folder {
                open.push(path);
            } else if !safe_files::is_own_log(&path, stamp) {
                found.insert(path, *stamp);
            }
            (looked_at < MAX_CHECKED).then_some(())
        });
        if matches!(visited, Ok(None)) {
            return (found, true);
        }
    }
    (found, false)
}

/// One check of ignored files for changes.
struct IgnoredWalk<'a> {
    top: &'a Path,
    log_dir: &'a [u8],
    since: (i64, i64),
    looked_at: usize,
    began: Instant,
}

/// A folder that an ignore rule matches, and what was changed in it.
struct IgnoredFolder {
    name: String,
    count: usize,
    first: Option<String>,
}

impl IgnoredWalk<'_> {
    /// Returns the files and folders among these that were changed, and whether some were not checked.
    fn find_changed(mut self, paths: &[&Vec<u8>]) -> (Vec<String>, bool) {
        let mut changed = Vec::new();
        let mut folders: Vec<IgnoredFolder> = Vec::new();
        // Folders are read level by level in turns, so that a large one does not hide changes in the others.
        let mut open: VecDeque<(usize, PathBuf)> = VecDeque::new();
        let opened = OpenedFolder::open(self.top).ok();
        for path in paths {
            let inner = Path::new(OsStr::from_bytes(path));
            if path.ends_with(b"/") {
                open.push_back((folders.len(), inner.to_owned()));
                folders.push(IgnoredFolder { name: shown(path), count: 0, first: None });
            } else if let Some(facts) = opened.as_ref().and_then(|opened| opened.look_at(inner)) {
                self.looked_at += 1;
                changed.extend(self.is_changed(&facts.stamp).then(|| shown(path)));
            }
        }
        let mut is_cut = false;
        while let Some((number, folder)) = open.pop_front() {
            let mut inner = Vec::new();
            let visited = safe_files::visit_stamps(&self.top.join(&folder), |name, kind, stamp| {
                let path = folder.join(name);
                match kind {
                    // git writes into the repository of a submodule that is in the worktree.
                    FileKind::Folder if name == ".git" => {}
                    FileKind::Folder if !path.join("").as_os_str().as_bytes().starts_with(self.log_dir) => {
                        inner.push(path);
                    }
                    FileKind::Folder => {}
                    _ => folders[number].note(self.is_changed(stamp), &path),
                }
                self.count_and_continue().then_some(())
            });
            is_cut |= matches!(visited, Ok(None));
            if is_cut {
                break;
            }
            open.extend(inner.into_iter().map(|path| (number, path)));
        }
        changed.extend(folders.iter().filter_map(IgnoredFolder::shown));
        is_cut |= changed.len() > MAX_NAMED;
        changed.truncate(MAX_NAMED);
        (changed, is_cut)
    }

    fn is_changed(&self, stamp: &ChangeStamp) -> bool {
        stamp.changed >= self.since
    }

    fn count_and_continue(&mut self) -> bool {
        self.looked_at += 1;
        let asks_clock = self.looked_at.is_multiple_of(NAMES_PER_CLOCK_READ);
        self.looked_at < MAX_CHECKED && !(asks_clock && self.began.elapsed() > MAX_CHECK_TIME)
    }
}

impl IgnoredFolder {
    fn note(&mut self, is_changed: bool, path: &Path) {
        if is_changed {
            self.count += 1;
            self.first.get_or_insert_with(|| path.to_string_lossy().into_owned());
        }
    }

    fn shown(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(match self.count {
            1 => format!("{} ({first})", self.name),
            count => format!("{} ({count} files, for example {first})", self.name),
        })
    }
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
