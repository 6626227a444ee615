//! Whether tracked files are what a commit has, and were that all the time. Tests, gates and reviewers judge a commit by what
//! lies in a worktree, and whoever else is at work can write there too, and put everything back before they end. The system
//! sets the time of a change, so a file that was written or replaced can be told from one that was not.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::{OsStr, OsString},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    GitError, Repository, TreeChange, folder_watch::FolderWatch, index_entries::FileFacts, write::id_of,
};
use crate::{
    message::visible,
    name::Oid,
    safe_files::{self, ChangeStamp},
};

/// Two changes of a file within this time may have the same time: clocks of file systems tick at up to 10 ms.
const TICK: Duration = Duration::from_millis(12);

/// So many changes in a row are looked at to tell how fine a clock is. They take less time than a tick.
const LOOKS: usize = 8;

/// The tracked files that the tests of a repository write themselves, by its common git directory.
static OWN_WRITES: LazyLock<Mutex<HashMap<PathBuf, HashSet<Vec<u8>>>>> = LazyLock::new(Mutex::default);

/// Who could write to a worktree while a child process runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherWriters {
    /// Nobody but the child.
    Alone,
    /// Other children of this process, in other worktrees.
    Others,
}

/// The tracked files of a worktree at one moment.
#[derive(Debug)]
pub struct TrackedFiles {
    /// Those that are not what the tree has.
    pub changes: Vec<TreeChange>,
    tree: Oid,
    stamps: Vec<(Vec<u8>, Option<ChangeStamp>)>,
    folders: FolderWatch,
}

/// One of them.
struct TrackedFile {
    path: Vec<u8>,
    /// What is staged, and what the index says about the file, if that is known.
    staged: Option<(Oid, FileFacts)>,
    stamp: Option<ChangeStamp>,
    /// Whether it was changed so shortly before that the next change may have the same time.
    is_fresh: bool,
}

impl TrackedFile {
    fn new(path: Vec<u8>) -> Self {
        Self { path, staged: None, stamp: None, is_fresh: false }
    }

    fn staged((path, id, facts): (&[u8], Oid, FileFacts)) -> Self {
        Self { staged: Some((id, facts)), ..Self::new(path.to_vec()) }
    }
}

impl Repository {
    /// Looks at all tracked files. Where the index is known to hold `tree`, one look at each file tells what it holds, and git
    /// is not asked.
    pub fn look_at_tracked(&self, tree: Oid, company: OtherWriters) -> Result<TrackedFiles, GitError> {
        // What a guard looks at, too. One that was taken earlier makes the time that is judged longer.
        let scan = self.scan().filter(|scan| scan.is_whole());
        let mut files: Vec<TrackedFile> = match self.find_entries_of(tree) {
            Some(entries) => entries.files().map(TrackedFile::staged).collect(),
            None => self.list_paths_of(tree)?.into_iter().map(TrackedFile::new).collect(),
        };
        // First: whoever moves a folder away later is seen.
        let folders = FolderWatch::begin(self.top(), files.iter().map(|file| file.path.as_slice()));
        let is_told = company == OtherWriters::Alone || self.has_fine_clock();
        if let Some(scan) = &scan {
            for file in &mut files {
                file.stamp = scan.find(&file.path).map(|facts| facts.stamp);
                file.is_fresh =
                    !is_told && file.stamp.is_some_and(|stamp| age_of(&stamp, scan.taken_at()) < TICK);
            }
        }
        // What was changed in the moment of the scan may have been changed again since.
        if scan.is_none() || files.iter().any(|file| file.is_fresh) {
            for file in &mut files {
                let found = self.top().join(OsStr::from_bytes(&file.path)).symlink_metadata().ok();
                file.stamp = found.map(|found| ChangeStamp::of(&found));
                file.is_fresh =
                    !is_told && file.stamp.is_some_and(|stamp| age_of(&stamp, SystemTime::now()) < TICK);
            }
        }
        // What was changed in this very moment could be changed again without a newer time.
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

    /// The tracked files that are not what `tree` has, read one by one.
    fn find_tracked_changes(&self, tree: Oid) -> Result<Vec<TreeChange>, GitError> {
        self.refuse_special()?;
        // Nothing is known of any file in an index that was read from a tree, so each one is read.
        let index = self.private_index("tracked")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        // git would look into submodules, with the settings of whatever repository is there.
        let submodules = index.list_gitlinks()?.into_iter();
        let mut submodules =
            submodules.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat()).peekable();
        let mut command = index.git("add").args(["-u", "--sparse"]);
        // A pathspec that matches nothing is an error, also where nothing is tracked.
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

    /// Looks at the same files again. A child that was alone may have written to them what was there before.
    pub fn look_again(&self, before: &TrackedFiles, company: OtherWriters) -> Result<Touched, GitError> {
        let now = self.look_at_tracked(before.tree, OtherWriters::Alone)?;
        let changes: Vec<TreeChange> =
            now.changes.iter().filter(|change| !before.changes.contains(change)).cloned().collect();
        if company == OtherWriters::Alone {
            return Ok(Touched { changes, ..Touched::default() });
        }
        let mut files = before.find_written(&now);
        if let Some(own) = OWN_WRITES.lock().unwrap_or_else(PoisonError::into_inner).get(&self.common_dir) {
            files.retain(|path| !own.contains(path));
        }
        Ok(Touched { changes, files, folders: before.folders.find_moved() })
    }

    /// A baseline has ended, before anybody began to work: the files that it wrote are what the user's own tests write each
    /// time, and say nothing later on.
    pub fn learn_own_writes(&self, before: &TrackedFiles) -> Result<(), GitError> {
        let written = before.find_written(&self.look_at_tracked(before.tree, OtherWriters::Alone)?);
        let mut own = OWN_WRITES.lock().unwrap_or_else(PoisonError::into_inner);
        own.entry(self.common_dir.clone()).or_default().extend(written);
        Ok(())
    }
}

impl TrackedFiles {
    /// The files that were written or replaced between two looks.
    fn find_written(&self, later: &Self) -> BTreeSet<Vec<u8>> {
        let later: HashMap<&[u8], Option<ChangeStamp>> =
            later.stamps.iter().map(|(path, stamp)| (path.as_slice(), *stamp)).collect();
        let is_written = |(path, stamp): &&(Vec<u8>, Option<ChangeStamp>)| {
            stamp.is_some() && later.get(path.as_slice()) != Some(stamp)
        };
        self.stamps.iter().filter(is_written).map(|(path, _)| path.clone()).collect()
    }
}

/// What was done to tracked files while a child process ran.
#[derive(Debug, Default)]
pub struct Touched {
    /// Files that hold something else now.
    pub changes: Vec<TreeChange>,
    /// Files that were written or replaced by the child or by another one.
    files: BTreeSet<Vec<u8>>,
    /// Folders that were moved or removed.
    folders: Vec<PathBuf>,
}

impl Touched {
    /// Everything that was touched, for people.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        let changed = self.changes.iter().map(|change| change.path.clone());
        let files: BTreeSet<Vec<u8>> = changed.chain(self.files.iter().cloned()).collect();
        let files = files.iter().map(|path| visible(&String::from_utf8_lossy(path)));
        files.chain(self.folders.iter().map(|folder| visible(&folder.to_string_lossy()))).collect()
    }
}

impl Repository {
    /// Whether each change of a file that was looked at has a time of its own, as on newer systems.
    fn has_fine_clock(&self) -> bool {
        /// By device.
        static KNOWN: LazyLock<Mutex<HashMap<u64, bool>>> = LazyLock::new(Mutex::default);
        let device = |path: &Path| path.symlink_metadata().map(|found| found.dev()).ok();
        let (Some(here), there) = (device(self.top()), device(&self.common_dir)) else { return false };
        if there != Some(here) {
            return false;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(here).or_insert_with(|| self.measure_clock().unwrap_or(false))
    }

    /// The time that a file gets which is changed now, by the clock of the file system.
    #[must_use]
    pub fn file_time(&self) -> Option<(i64, i64)> {
        let file = self.common_dir.join(format!("arborist/time-{}", std::process::id()));
        safe_files::write(&file, b"").ok()?;
        let found = file.symlink_metadata().ok().map(|found| ChangeStamp::of(&found).changed);
        let _ = safe_files::remove(&file);
        found
    }

    fn measure_clock(&self) -> std::io::Result<bool> {
        let file = self.common_dir.join(format!("arborist/clock-{}", std::process::id()));
        safe_files::write(&file, b"")?;
        let mut times = HashSet::new();
        for look in 0..LOOKS {
            safe_files::set_mode(&file, if look % 2 == 0 { 0o600 } else { 0o644 })?;
            times.insert(ChangeStamp::of(&file.symlink_metadata()?).changed);
        }
        safe_files::remove(&file)?;
        Ok(times.len() == LOOKS)
    }
}

/// How long ago a file was changed at this time.
fn age_of(stamp: &ChangeStamp, at: SystemTime) -> Duration {
    let (seconds, nanos) = stamp.changed;
    let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
    at.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(changed)
}
