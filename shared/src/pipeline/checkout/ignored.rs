//! Files that tasks leave or change in the user's checkout and that no commit holds: the tests there see them. Most are
//! ignored by git; others are left by tests, after the work of a task was committed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    git::{GitError, Repository, UncommittedFiles},
    name::Oid,
    safe_files::{self, ChangeStamp, FileKind, OpenedFolder},
};

/// So many are named.
const MOST: usize = 50;
/// So many names are looked at for changes, which takes about 20 ms: the dependencies of a project can be a million files.
const MOST_LOOKED_AT: usize = 10_000;
/// No longer than this, on a slow disk. The clock is asked once in so many names, so that a busy machine cuts nothing short.
const LONGEST_LOOK: Duration = Duration::from_millis(300);
const BETWEEN_CLOCKS: usize = 1_000;

/// What no commit holds in a checkout, task by task. Copies share it: what one task left is there before the next.
#[derive(Debug, Clone, Default)]
pub struct IgnoredFiles(Arc<Mutex<Looks>>);

#[derive(Debug, Default)]
struct Looks {
    /// When the task began, by the clock of the file system.
    since: Option<(i64, i64)>,
    /// What there was then.
    before: BTreeSet<Vec<u8>>,
    /// When it was last looked at. Nobody asks git for it twice.
    last: Option<BTreeSet<Vec<u8>>>,
    /// When that was, by the clock of the file system.
    looked: Option<(i64, i64)>,
    /// What came in between.
    found: IgnoredChanges,
    /// What there was when the run began.
    run: Option<RunFiles>,
}

/// What there was before the first task of a run.
#[derive(Debug, Default)]
struct RunFiles {
    /// In the folder of logs.
    logs: BTreeMap<PathBuf, ChangeStamp>,
    /// What no commit held, and git does not ignore.
    others: BTreeMap<Vec<u8>, ChangeStamp>,
}

/// What became of ignored files since a task began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredChanges {
    /// Those that were not there. A folder that a rule names is one, and ends in a slash.
    pub new: Vec<String>,
    /// Those that were written, replaced or renamed. A folder that a rule names is one, with the number of files in it.
    pub changed: Vec<String>,
    /// Those that are not ignored, and were not there, or not like that, when the run began.
    pub others: Vec<String>,
    /// Whether there were too many names to look at all of them.
    pub is_cut: bool,
}

impl IgnoredFiles {
    /// A task begins in a worktree that holds `tree`. Logs are in the folder `own`.
    pub fn begin(&self, repository: &Repository, tree: Oid, own: &str) -> Result<(), GitError> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.before = match looks.last.take() {
            Some(last) => last,
            None => {
                let files = repository.list_uncommitted(tree)?;
                let top = repository.top();
                let others = stamped(top, &files.others);
                looks.run.get_or_insert(RunFiles { logs: list_foreign_logs(top, own).0, others });
                files.ignored
            }
        };
        looks.since = repository.file_time();
        looks.found = IgnoredChanges::default();
        Ok(())
    }

    /// A task begins in a worktree that other tasks have no business in. Whatever came there since it was last looked at was
    /// made by a child of one of them, and is there for the tests of this one.
    pub fn go_on(&self) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = looks.last.take() {
            (looks.before, looks.since) = (last, looks.looked);
            looks.found = IgnoredChanges::default();
        }
    }

    /// What no commit holds in a worktree that holds `tree` now, and was not there or was another file before: when the task
    /// began, or, if git does not ignore it or it lies in `own`, the folder of logs, when the run began. Logs that this
    /// process made are not named.
    pub fn look(&self, repository: &Repository, tree: Oid, own: &str) -> Result<IgnoredChanges, GitError> {
        // First: what is written meanwhile counts the next time.
        let looked = repository.file_time();
        let UncommittedFiles { ignored: now, others } = repository.list_uncommitted(tree)?;
        let (logs, has_more_logs) = list_foreign_logs(repository.top(), own);
        let others = stamped(repository.top(), &others);
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = format!("{}/", own.trim_matches('/')).into_bytes();
        let is_in = |path: &[u8], folder: &[u8]| folder.ends_with(b"/") && path.starts_with(folder);
        let was_there = |path: &Vec<u8>| {
            looks.before.contains(path) || looks.before.iter().any(|folder| is_in(path, folder))
        };
        let foreign = now.iter().filter(|path| !path.starts_with(&own));
        let (old, new): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = foreign.partition(|path| was_there(path));
        // What is new beside the logs in a folder that holds them is looked for there.
        let (around, new): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
            new.into_iter().partition(|path| is_in(&own, path));
        let new = new.into_iter().take(MOST);
        let mut found =
            IgnoredChanges { new: new.map(|path| shown(path)).collect(), ..IgnoredChanges::default() };
        if let Some(since) = looks.since {
            let walk = Walk { top: repository.top(), own: &own, since, looked_at: 0, began: Instant::now() };
            let looked_at: Vec<&Vec<u8>> = old.into_iter().chain(around).collect();
            (found.changed, found.is_cut) = walk.find_changed(&looked_at);
        }
        let run = looks.run.get_or_insert_default();
        let is_new = |(path, stamp): &(&PathBuf, &ChangeStamp)| run.logs.get(*path) != Some(*stamp);
        let strays = logs.iter().filter(is_new).map(|(path, _)| path.to_string_lossy().into_owned());
        found.new.extend(strays.take(MOST));
        let is_new = |(path, stamp): &(&Vec<u8>, &ChangeStamp)| run.others.get(*path) != Some(*stamp);
        found.others = others.iter().filter(is_new).map(|(path, _)| shown(path)).take(MOST).collect();
        found.is_cut |= has_more_logs;
        looks.found = found.clone();
        (looks.last, looks.looked) = (Some(now), looked);
        Ok(found)
    }

    /// What the last look found.
    #[must_use]
    pub fn found(&self) -> IgnoredChanges {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }
}

/// The files that there are, with how they were last changed.
fn stamped(top: &Path, paths: &BTreeSet<Vec<u8>>) -> BTreeMap<Vec<u8>, ChangeStamp> {
    let Ok(opened) = OpenedFolder::open(top) else { return BTreeMap::new() };
    let stamp = |path: &Vec<u8>| Some(opened.look_at(Path::new(OsStr::from_bytes(path)))?.stamp);
    paths.iter().filter_map(|path| Some((path.clone(), stamp(path)?))).collect()
}

/// What lies in the folder of logs and is none that this process made, by its path from the top. Tells too whether there was
/// more than was looked at.
fn list_foreign_logs(top: &Path, own: &str) -> (BTreeMap<PathBuf, ChangeStamp>, bool) {
    let (mut found, mut looked_at) = (BTreeMap::new(), 0);
    let own = Path::new(own.trim_end_matches('/'));
    // Outside of the worktree, nothing that tests may rely on is ours to name.
    let is_inside = own.components().all(|part| matches!(part, Component::Normal(_)));
    let mut open: Vec<PathBuf> = is_inside.then(|| own.to_owned()).into_iter().collect();
    while let Some(folder) = open.pop() {
        let visited = safe_files::visit_stamps(&top.join(&folder), |name, kind, stamp| {
            let path = folder.join(name);
            looked_at += 1;
            if kind == FileKind::Folder {
                open.push(path);
            } else if !safe_files::is_own_log(&path, stamp) {
                found.insert(path, *stamp);
            }
            (looked_at < MOST_LOOKED_AT).then_some(())
        });
        if matches!(visited, Ok(None)) {
            return (found, true);
        }
    }
    (found, false)
}

/// One look at ignored files for changes.
struct Walk<'a> {
    top: &'a Path,
    own: &'a [u8],
    since: (i64, i64),
    looked_at: usize,
    began: Instant,
}

/// A folder that a rule names, and what was changed in it.
struct IgnoredFolder {
    name: String,
    count: usize,
    first: Option<String>,
}

impl Walk<'_> {
    /// Those among these files and folders that were changed, and whether not all of them were looked at.
    fn find_changed(mut self, paths: &[&Vec<u8>]) -> (Vec<String>, bool) {
        let mut changed = Vec::new();
        let mut folders: Vec<IgnoredFolder> = Vec::new();
        // Folders are taken in turns, level by level: a large one hides nothing in the others.
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
                    FileKind::Folder if !path.join("").as_os_str().as_bytes().starts_with(self.own) => {
                        inner.push(path);
                    }
                    FileKind::Folder => {}
                    _ => folders[number].note(self.is_changed(stamp), &path),
                }
                self.goes_on().then_some(())
            });
            is_cut |= matches!(visited, Ok(None));
            if is_cut {
                break;
            }
            open.extend(inner.into_iter().map(|path| (number, path)));
        }
        changed.extend(folders.iter().filter_map(IgnoredFolder::shown));
        is_cut |= changed.len() > MOST;
        changed.truncate(MOST);
        (changed, is_cut)
    }

    fn is_changed(&self, stamp: &ChangeStamp) -> bool {
        stamp.changed >= self.since
    }

    fn goes_on(&mut self) -> bool {
        self.looked_at += 1;
        let asks_clock = self.looked_at.is_multiple_of(BETWEEN_CLOCKS);
        self.looked_at < MOST_LOOKED_AT && !(asks_clock && self.began.elapsed() > LONGEST_LOOK)
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
