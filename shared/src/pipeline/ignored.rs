//! Ignored files that an attempt leaves or changes in the user's checkout: no commit holds them, but the tests there see
//! them.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    git::{GitError, Repository},
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

/// What git ignores in a checkout, task by task. Copies share it: what one task left is there before the next.
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
    /// What came in between.
    found: IgnoredChanges,
}

/// What became of ignored files since a task began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredChanges {
    /// Those that were not there. A folder that a rule names is one, and ends in a slash.
    pub new: Vec<String>,
    /// Those that were written, replaced or renamed. A folder that a rule names is one, with the number of files in it.
    pub changed: Vec<String>,
    /// Whether there were too many names to look at all of them.
    pub is_cut: bool,
}

impl IgnoredFiles {
    /// A task begins in a worktree that holds `tree`.
    pub fn begin(&self, repository: &Repository, tree: Oid) -> Result<(), GitError> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.before = match looks.last.take() {
            Some(last) => last,
            None => repository.list_matching_ignored(tree)?,
        };
        looks.since = repository.file_time();
        looks.found = IgnoredChanges::default();
        Ok(())
    }

    /// What is ignored in a worktree that holds `tree` now, and was not there or was another file when the task began. What
    /// lies in `own`, a folder of ours, is not named.
    pub fn look(&self, repository: &Repository, tree: Oid, own: &str) -> Result<IgnoredChanges, GitError> {
        let now = repository.list_matching_ignored(tree)?;
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = format!("{}/", own.trim_matches('/')).into_bytes();
        let is_in = |path: &[u8], folder: &[u8]| folder.ends_with(b"/") && path.starts_with(folder);
        let was_there = |path: &Vec<u8>| {
            looks.before.contains(path) || looks.before.iter().any(|folder| is_in(path, folder))
        };
        let foreign = now.iter().filter(|path| !path.starts_with(&own));
        let (old, new): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = foreign.partition(|path| was_there(path));
        let new = new.into_iter().filter(|path| !is_in(&own, path)).take(MOST);
        let mut found =
            IgnoredChanges { new: new.map(|path| shown(path)).collect(), ..IgnoredChanges::default() };
        if let Some(since) = looks.since {
            let walk = Walk { top: repository.top(), own: &own, since, looked_at: 0, began: Instant::now() };
            (found.changed, found.is_cut) = walk.find_changed(&old);
        }
        looks.found = found.clone();
        looks.last = Some(now);
        Ok(found)
    }

    /// What the last look found.
    #[must_use]
    pub fn found(&self) -> IgnoredChanges {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }
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
