//! Checks that tracked files have the content of a commit, and had it all the time. Tests, gates and reviewers judge a
//! commit by the files in a worktree, and other processes could change these and restore them before they end. Only the
//! kernel sets a ctime, so a file that was written or replaced can be recognised.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::{OsStr, OsString},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    git::{
        GitError, Repository, TreeChange, files::folder_watch::FolderWatch, index::index_entries::FileFacts,
        objects::write::id_of,
    },
    message::visible,
    mutex::MutexExt,
    name::Oid,
    safe_files::{self, ChangeStamp},
};

/// Two changes of a file within this time may have the same ctime: clocks of file systems tick every 10 ms or faster.
const TICK: Duration = Duration::from_millis(12);

/// How many changes in a row are made to measure the resolution of a clock. They take less time than a tick.
const SAMPLES: usize = 8;

/// Tracked files that the tests of a repository write themselves, by common git directory.
static OWN_WRITES: LazyLock<Mutex<HashMap<PathBuf, HashSet<Vec<u8>>>>> = LazyLock::new(Mutex::default);

/// Which processes could write to a worktree while a child process runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherWriters {
    /// Only the child.
    Alone,
    /// Other children of this process too, which run in other worktrees.
    Others,
}

/// The tracked files of a worktree at one moment.
#[derive(Debug)]
pub struct TrackedFiles {
    /// Files that differ from the tree.
    pub changes: Vec<TreeChange>,
    tree: Oid,
    stamps: Vec<(Vec<u8>, Option<ChangeStamp>)>,
    folders: FolderWatch,
}

/// One tracked file.
struct TrackedFile {
    path: Vec<u8>,
    /// The id and the stat data in the index, if the index is known.
    staged: Option<(Oid, FileFacts)>,
    stamp: Option<ChangeStamp>,
    /// Whether it was changed so recently that another change may get the same ctime.
    is_fresh: bool,
}

impl TrackedFile {
    fn new(path: Vec<u8>) -> Self {
        Self { path, staged: None, stamp: None, is_fresh: false }
    }

    fn staged(path: &[u8], id: Oid, facts: FileFacts) -> Self {
        Self { staged: Some((id, facts)), ..Self::new(path.to_vec()) }
    }
}

impl Repository {
    /// Reads the state of all tracked files. If the index is known to contain `tree`, the stat data of each file is
    /// enough, and git is not asked.
    pub fn read_tracked(&self, tree: Oid, writers: OtherWriters) -> Result<TrackedFiles, GitError> {
        // The guard uses the same scan. An earlier one only makes the judged interval longer.
        let scan = self.scan().filter(|scan| scan.is_complete());
        let mut files: Vec<TrackedFile> = match self.find_entries_of(tree) {
            Some(entries) => {
                entries.files().map(|(path, id, facts)| TrackedFile::staged(path, id, facts)).collect()
            }
            None => self.list_paths_of(tree)?.into_iter().map(TrackedFile::new).collect(),
        };
        // This comes first, so that a folder that is moved away later is noticed.
        let folders = FolderWatch::begin(self.top(), files.iter().map(|file| file.path.as_slice()));
        let has_reliable_ctime = writers == OtherWriters::Alone || self.has_fine_clock();
        if let Some(scan) = &scan {
            for file in &mut files {
                file.stamp = scan.find(&file.path).map(|facts| facts.stamp);
                file.is_fresh = !has_reliable_ctime
                    && file.stamp.is_some_and(|stamp| age_of(&stamp, scan.taken_at()) < TICK);
            }
        }
        // A file that was changed just before the scan may have been changed again since.
        if scan.is_none() || files.iter().any(|file| file.is_fresh) {
            for file in &mut files {
                let found = self.top().join(OsStr::from_bytes(&file.path)).symlink_metadata().ok();
                file.stamp = found.map(|found| ChangeStamp::of(&found));
                file.is_fresh = !has_reliable_ctime
                    && file.stamp.is_some_and(|stamp| age_of(&stamp, SystemTime::now()) < TICK);
            }
        }
        // A file that was changed just now could be changed again with the same ctime.
        if files.iter().any(|file| file.is_fresh) {
            thread::sleep(TICK);
        }
        let is_clean = files.iter().all(|file| self.is_as_staged(file));
        let changes = if is_clean { Vec::new() } else { self.find_tracked_changes(tree)? };
        let stamps = files.into_iter().map(|file| (file.path, file.stamp)).collect();
        Ok(TrackedFiles { changes, tree, stamps, folders })
    }

    fn is_as_staged(&self, file: &TrackedFile) -> bool {
        let (Some((id, facts)), Some(stamp)) = (&file.staged, &file.stamp) else { return false };
        let holds_it = || self.is_content(&self.top().join(OsStr::from_bytes(&file.path)), *id);
        facts.are(stamp) && (!file.is_fresh || holds_it())
    }

    fn list_paths_of(&self, tree: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let all = self.changes(self.empty_tree()?, tree)?.into_iter();
        Ok(all.filter(|change| !change.is_gitlink()).map(|change| change.path).collect())
    }

    /// Tracked files that differ from `tree`, compared by content.
    fn find_tracked_changes(&self, tree: Oid) -> Result<Vec<TreeChange>, GitError> {
        self.refuse_special()?;
        // An index that was read from a tree has no stat data, so git reads each file.
        let index = self.private_index("tracked")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        // git would look into submodules, with the settings of whatever repository is there.
        let submodules = index.list_gitlinks()?.into_iter();
        let mut submodules =
            submodules.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat()).peekable();
        let mut command = index.git("add").args(["-u", "--sparse"]);
        // A pathspec that matches nothing is an error, even if nothing is tracked.
        if submodules.peek().is_some() {
            command = command.args(["--", ":/"]).args(submodules.map(OsString::from_vec));
        }
        command.stdout()?;
        let now = id_of("write-tree", &index.git("write-tree").arg("--missing-ok").stdout()?)?;
        let is_sparse = self.git_dir.join("info/sparse-checkout").symlink_metadata().is_ok();
        let is_left_out = |change: &TreeChange| is_sparse && change.after.is_none();
        let changes = self.changes(tree, now)?.into_iter();
        Ok(changes.filter(|change| !change.concerns_gitlink() && !is_left_out(change)).collect())
    }

    /// Reads the same files again. A child that was alone may have rewritten them with the same content.
    pub fn look_again(&self, before: &TrackedFiles, writers: OtherWriters) -> Result<Touched, GitError> {
        let now = self.read_tracked(before.tree, OtherWriters::Alone)?;
        let changes = match now.changes == before.changes {
            true => Vec::new(),
            false => self.changes(before.worktree_tree(self)?, now.worktree_tree(self)?)?,
        };
        if writers == OtherWriters::Alone {
            return Ok(Touched { changes, ..Touched::default() });
        }
        let mut files = before.find_written(&now);
        if let Some(own) = OWN_WRITES.hold().get(&self.common_dir) {
            files.retain(|path| !own.contains(path));
        }
        Ok(Touched { changes, files, folders: before.folders.find_moved() })
    }

    /// Records which tracked files the user's own tests write. Call this after a baseline run, before any agent starts;
    /// later writes to these files are ignored.
    pub fn learn_own_writes(&self, before: &TrackedFiles) -> Result<(), GitError> {
        let written = before.find_written(&self.read_tracked(before.tree, OtherWriters::Alone)?);
        let mut own = OWN_WRITES.hold();
        own.entry(self.common_dir.clone()).or_default().extend(written);
        Ok(())
    }
}

impl TrackedFiles {
    /// The tree with these files as they were in the worktree. They may differ from the commit in the user's checkout.
    pub fn worktree_tree(&self, repository: &Repository) -> Result<Oid, GitError> {
        if self.changes.is_empty() { Ok(self.tree) } else { repository.tree_with(self.tree, &self.changes) }
    }

    /// Files that were written or replaced between the two states.
    fn find_written(&self, later: &Self) -> BTreeSet<Vec<u8>> {
        let later: HashMap<&[u8], Option<ChangeStamp>> =
            later.stamps.iter().map(|(path, stamp)| (path.as_slice(), *stamp)).collect();
        let is_written = |(path, stamp): &&(Vec<u8>, Option<ChangeStamp>)| {
            stamp.is_some() && later.get(path.as_slice()) != Some(stamp)
        };
        self.stamps.iter().filter(is_written).map(|(path, _)| path.clone()).collect()
    }
}

/// Changes to tracked files while a child process ran.
#[derive(Debug, Default)]
pub struct Touched {
    /// Files with another content.
    pub changes: Vec<TreeChange>,
    /// Files that were written or replaced, by the child or by another one.
    files: BTreeSet<Vec<u8>>,
    /// Folders that were moved or removed.
    folders: Vec<PathBuf>,
}

impl Touched {
    /// Everything that was touched, for display.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        let changed = self.changes.iter().map(|change| change.path.clone());
        let files: BTreeSet<Vec<u8>> = changed.chain(self.files.iter().cloned()).collect();
        let files = files.iter().map(|path| visible(&String::from_utf8_lossy(path)));
        files.chain(self.folders.iter().map(|folder| visible(&folder.to_string_lossy()))).collect()
    }
}

impl Repository {
    /// Whether the file system gives each change of a file a different ctime, as newer kernels do.
    fn has_fine_clock(&self) -> bool {
        /// By device.
        static FINE_CLOCKS: LazyLock<Mutex<HashMap<u64, bool>>> = LazyLock::new(Mutex::default);
        let device = |path: &Path| path.symlink_metadata().map(|found| found.dev()).ok();
        let (Some(here), there) = (device(self.top()), device(&self.common_dir)) else { return false };
        if there != Some(here) {
            return false;
        }
        let mut known = FINE_CLOCKS.hold();
        *known.entry(here).or_insert_with(|| self.measure_clock().unwrap_or(false))
    }

    /// The ctime that a file gets that is changed now, by the clock of the file system.
    #[must_use]
    pub fn file_time(&self) -> Option<(i64, i64)> {
        let file = self.common_dir.join(format!("arborist/time-{}", std::process::id()));
        safe_files::write(&file, b"").ok()?;
        let found = ChangeStamp::at(&file).map(|found| found.changed);
        let _ = safe_files::remove(&file);
        found
    }

    fn measure_clock(&self) -> std::io::Result<bool> {
        let file = self.common_dir.join(format!("arborist/clock-{}", std::process::id()));
        safe_files::write(&file, b"")?;
        let mut times = HashSet::new();
        for sample in 0..SAMPLES {
            safe_files::set_mode(&file, if sample % 2 == 0 { 0o600 } else { 0o644 })?;
            times.insert(ChangeStamp::of(&file.symlink_metadata()?).changed);
        }
        safe_files::remove(&file)?;
        Ok(times.len() == SAMPLES)
    }
}

/// The time since the last change of a file, at time `at`.
fn age_of(stamp: &ChangeStamp, at: SystemTime) -> Duration {
    let (seconds, nanos) = stamp.changed;
    let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
    at.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(changed)
}
