//! Settings as they were before the first child process began. An agent can write to the configuration of its repository
//! at any moment, and git runs what stands there: filters, merge drivers, programs that sign. So while children may run,
//! every git of ours that could obey a setting finds another common directory, with a copy of all settings in one file.
//! Objects, refs and whatever else stands in the real one are links there.
//!
//! The copy is in the user's state folder, where a sandboxed agent cannot write. It is compared with what this process
//! remembers before each use, and afterwards it is asked whether anything of it was written, moved or replaced meanwhile: what
//! git said is not used then.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{
    GitCommand, GitError, PrivateIndex, Repository, confined::Helpers, folder_watch::FolderWatch,
    setting_entry::SettingEntry,
};
use crate::{
    process::{Program, is_process_alive},
    safe_files::{self, ChangeStamp, FileKind},
};

/// The settings of each repository, by its common directory; of a worktree with settings of its own, by its git directory.
static FROZEN: Mutex<BTreeMap<PathBuf, Arc<FrozenSettings>>> = Mutex::new(BTreeMap::new());

/// Commands that obey settings which run programs, hide files or change what is taken in or written.
const OBEYING: [&str; 31] = [
    "add",
    "am",
    "bisect",
    "check-attr",
    "check-ignore",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "commit-tree",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "hash-object",
    "ls-files",
    "ls-remote",
    "merge",
    "merge-file",
    "merge-tree",
    "push",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "stash",
    "status",
    "update-index",
    "var",
    "write-tree",
];

/// Those that start a git in another repository, which must find the user's own settings there.
const NETWORK: [&str; 3] = ["fetch", "ls-remote", "push"];

/// Files of the real directory that are always linked: they may appear later.
const LINKED: [&str; 3] = ["HEAD", "packed-refs", "shallow"];

/// Folders of the real directory that are not linked: they are copied, not used, or ours.
const NOT_LINKED: [&str; 3] = ["info", "hooks", "arborist"];

/// Settings that name a file which decides what is taken in, and how.
const NAMING: [&str; 2] = ["core.attributesfile", "core.excludesfile"];

/// Settings that change names or content of files that are written, or leave files out, where they are on.
const CHANGING: [&str; 4] =
    ["core.autocrlf", "core.ignorecase", "core.precomposeunicode", "core.sparsecheckout"];

/// Settings that change, whatever their value is, where attributes are read from or how files are written.
const REDIRECTING: [&str; 3] = ["attr.tree", "core.fsync", "core.fsyncmethod"];

/// What the settings of a repository were.
#[derive(Debug, Clone)]
struct Settings {
    /// Of the machine and of the user. Only the first look counts: nobody can put these back.
    outer: Vec<SettingEntry>,
    /// Of the repository and of the worktree.
    inner: Vec<SettingEntry>,
    /// Of the command line. They are in our environment, and every git finds them there.
    told: Vec<SettingEntry>,
    /// `info/exclude` and `info/attributes`.
    info: Vec<(&'static str, Vec<u8>)>,
    /// Files outside that the settings name, by the setting that the copy gets.
    named: Vec<(&'static str, Vec<u8>)>,
    /// Whether a worktree may have other settings than the next.
    has_variants: bool,
    /// What told that the files were the same.
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
}

/// Inode, size and time of the last change.
type FileStamp = (u64, u64, i64, i64);

/// A copy of settings on the disk.
#[derive(Debug)]
pub(super) struct FrozenSettings {
    settings: Settings,
    helpers: Helpers,
    /// Whose settings they are.
    common_dir: PathBuf,
    dir: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
    links: Vec<(PathBuf, PathBuf)>,
    /// What tells whether the files and links are still those that were made.
    stamps: Vec<(PathBuf, Option<ChangeStamp>)>,
    folders: FolderWatch,
    /// Whether one of the folders was moved, even if it is back.
    is_moved: AtomicBool,
    /// Why there is no copy, if it could not be made.
    fault: Option<String>,
}

/// Whether settings that changed since they were frozen are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsChange {
    /// They are: no child process is running.
    Anew,
    /// They are not: a child may have changed them.
    Once,
}

impl Repository {
    /// Remembers the settings as they are now. From here on, git obeys no others.
    ///
    /// Where that is not possible (git cannot read the configuration), git refuses to work by itself.
    pub fn freeze_settings(&self, freeze: SettingsChange) -> Result<(), GitError> {
        let known = self.recall_frozen();
        let is_kept =
            |known: &Arc<FrozenSettings>| freeze == SettingsChange::Once || known.settings.are_current();
        if known.as_ref().is_some_and(is_kept) {
            return Ok(());
        }
        let mut settings = self.read_settings()?;
        let earlier = known.or_else(|| frozen().get(&self.common_dir).cloned());
        if let Some(earlier) = earlier {
            settings.outer.clone_from(&earlier.settings.outer);
            settings.named.clone_from(&earlier.settings.named);
        }
        let key = if settings.has_variants { &self.git_dir } else { &self.common_dir };
        self.put_frozen(key.clone(), settings).map(drop)
    }

    /// Adds a line of ours to the frozen exclude file.
    pub(super) fn freeze_excluded(&self, line: &str) -> Result<(), GitError> {
        let of_ours = |(_, known): &(&PathBuf, &Arc<FrozenSettings>)| known.common_dir == self.common_dir;
        let known: Vec<(PathBuf, Settings)> = frozen()
            .iter()
            .filter(of_ours)
            .map(|(key, known)| (key.clone(), known.settings.clone()))
            .collect();
        for (key, mut settings) in known {
            settings.add_excluded(line);
            self.put_frozen(key, settings)?;
        }
        Ok(())
    }

    /// Whether no setting changes what is written to a worktree, and no attributes stand outside of it.
    pub(super) fn has_plain_settings(&self) -> bool {
        self.recall_frozen().is_some_and(|known| known.fault.is_none() && known.settings.are_plain())
    }

    /// The same command with the settings that are frozen, if it obeys settings and some are.
    pub(super) fn with_frozen(&self, command: GitCommand) -> GitCommand {
        let may_run = |known: Arc<FrozenSettings>| known.helpers.may_run_in(command.name());
        let is_cleared = self.recall_frozen().is_some_and(may_run);
        let command = if is_cleared { command.map_program(Program::cleared) } else { command };
        if !OBEYING.contains(&command.name()) {
            return command;
        }
        match self.find_frozen() {
            Some(frozen) => frozen.apply(command).with_settings(frozen),
            None => command,
        }
    }

    /// The frozen settings, after a look whether the copy is still what it was.
    fn find_frozen(&self) -> Option<Arc<FrozenSettings>> {
        let known = self.recall_frozen()?;
        if known.is_intact() {
            return Some(known);
        }
        let key = if known.settings.has_variants { &self.git_dir } else { &self.common_dir };
        self.put_frozen(key.clone(), known.settings.clone()).ok().or_else(|| self.recall_frozen())
    }

    /// What the frozen settings let git run; `None` while none are frozen.
    pub(super) fn frozen_helpers(&self) -> Option<Helpers> {
        self.recall_frozen().map(|known| known.helpers.clone())
    }

    fn recall_frozen(&self) -> Option<Arc<FrozenSettings>> {
        let frozen = frozen();
        let shared = || frozen.get(&self.common_dir).filter(|found| !found.settings.has_variants);
        frozen.get(&self.git_dir).or_else(shared).cloned()
    }

    fn put_frozen(&self, key: PathBuf, settings: Settings) -> Result<Arc<FrozenSettings>, GitError> {
        let failed = |source| GitError::File { path: "a copy of the configuration".into(), source };
        let (made, result) = match FrozenSettings::make(&self.common_dir, settings.clone()) {
            Ok(made) => (made, Ok(())),
            // Every call fails until it can be made: without it git would obey whatever stands in the repository now.
            Err(error) => {
                let fault = error.to_string();
                (FrozenSettings::nowhere(&self.common_dir, settings, fault), Err(failed(error)))
            }
        };
        let made = Arc::new(made);
        let old = frozen().insert(key, Arc::clone(&made));
        // A git of another thread may just begin with the old copy, so that one is removed when the process ends.
        if let Some(old) = old {
            retired().push(old.dir.clone());
        }
        result.map(|()| made)
    }

    fn read_settings(&self) -> Result<Settings, GitError> {
        let command = self.act("config").args(["--list", "-z", "--show-scope", "--show-origin"]);
        let printed = command.stdout()?;
        let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let (mut outer, mut inner, mut told, mut files) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for record in fields.chunks_exact(3) {
            let [scope, origin, setting] = record else { continue };
            let entry = SettingEntry::parse(setting);
            match *scope {
                b"system" | b"global" => outer.push(entry),
                b"local" | b"worktree" => {
                    let file =
                        origin.strip_prefix(b"file:").map(|file| self.dir.join(OsStr::from_bytes(file)));
                    files.extend(file);
                    inner.push(entry);
                }
                _ => told.push(entry),
            }
        }
        let info = ["exclude", "attributes"].map(|name| (name, self.common_dir.join("info").join(name)));
        let usual = ["config", "config.worktree"]
            .iter()
            .flat_map(|name| [&self.common_dir, &self.git_dir].map(|folder| folder.join(name)));
        files.extend(usual.chain(info.iter().map(|(_, file)| file.clone())));
        files.sort();
        files.dedup();
        let has_variants = outer.iter().chain(&inner).any(SettingEntry::makes_variants);
        Ok(Settings {
            named: NAMING
                .iter()
                .filter_map(|key| {
                    Some((*key, self.read_named(key, inner.iter().rev().chain(outer.iter().rev()))?))
                })
                .collect(),
            info: info.map(|(name, file)| (name, safe_files::read_users(&file).unwrap_or_default())).into(),
            stamps: files.into_iter().map(|file| (file.clone(), stamp_of(&file))).collect(),
            outer,
            inner,
            told,
            has_variants,
        })
    }

    /// The content of the file that a setting names, or of git's usual one; nothing if there is none. `None` for a path
    /// that only git can find.
    fn read_named<'e>(
        &self,
        key: &str,
        mut strongest_first: impl Iterator<Item = &'e SettingEntry>,
    ) -> Option<Vec<u8>> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("HOME").unwrap_or_default();
        let found = strongest_first.find(|entry| entry.key == key.as_bytes());
        let file = match found.and_then(|entry| entry.value.as_deref()) {
            Some([b'~', b'/', rest @ ..]) => home.join(OsStr::from_bytes(rest)),
            Some([b'~', ..]) => return None,
            Some(value) => self.top().join(OsStr::from_bytes(value)),
            None => {
                let name = if key == "core.excludesfile" { "git/ignore" } else { "git/attributes" };
                variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join(name)
            }
        };
        Some(safe_files::read_users(&file).unwrap_or_default())
    }
}

impl PrivateIndex<'_> {
    /// A call for an index of our own needs no `HEAD`, so it finds none that could be a queue. A sparse checkout has its
    /// patterns in the real git directory.
    pub(super) fn apart(&self, command: GitCommand) -> GitCommand {
        match self.repository.recall_frozen().filter(|frozen| !frozen.settings.is_sparse()) {
            Some(frozen) if OBEYING.contains(&command.name()) => command.env("GIT_DIR", frozen.apart()),
            _ => command,
        }
    }
}

impl Settings {
    fn are_current(&self) -> bool {
        self.stamps.iter().all(|(file, stamp)| stamp_of(file) == *stamp)
    }

    fn is_sparse(&self) -> bool {
        let mut all = self.inner.iter().rev().chain(self.outer.iter().rev());
        all.find(|entry| entry.key == b"core.sparsecheckout").is_some_and(SettingEntry::is_true)
    }

    fn has(&self, prefix: &[u8]) -> bool {
        self.outer.iter().chain(&self.inner).any(|entry| entry.key.starts_with(prefix))
    }

    fn helpers(&self) -> Helpers {
        Helpers::of(self.outer.iter().chain(&self.inner).chain(&self.told))
    }

    fn are_plain(&self) -> bool {
        let mut all = self.outer.iter().chain(&self.inner).chain(&self.told);
        let is_plain = |entry: &SettingEntry| {
            let is_switched_on = CHANGING.iter().any(|key| key.as_bytes() == entry.key) && entry.is_true();
            !is_switched_on && !REDIRECTING.iter().any(|key| key.as_bytes() == entry.key)
        };
        let is_naming = |entry: &SettingEntry| NAMING.iter().any(|key| key.as_bytes() == entry.key);
        let has_rules = |text: &[u8]| !text.trim_ascii().is_empty();
        // A file of attributes that only git can find is not among those that are named.
        all.all(is_plain)
            && !self.told.iter().any(is_naming)
            && self.info.iter().all(|(name, text)| *name != "attributes" || !has_rules(text))
            && self.named.iter().any(|(key, text)| *key == NAMING[0] && !has_rules(text))
    }

    fn add_excluded(&mut self, line: &str) {
        for (_, text) in self.info.iter_mut().filter(|(name, _)| *name == "exclude") {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            text.extend([line.as_bytes(), b"\n"].concat());
        }
    }

    /// The one file of configuration, for a copy in `dir`.
    fn to_config(&self, dir: &Path) -> Vec<u8> {
        let kept = self.outer.iter().chain(&self.inner).filter(|entry| entry.is_kept());
        let mut text: Vec<u8> = kept.filter_map(SettingEntry::to_lines).flatten().collect();
        for (key, _) in &self.named {
            let value = Some(copy_of(dir, key).as_os_str().as_bytes().to_vec());
            text.extend(SettingEntry { key: key.as_bytes().to_vec(), value }.to_lines().unwrap_or_default());
        }
        text
    }
}

fn copy_of(dir: &Path, key: &str) -> PathBuf {
    dir.join(key.replace('.', "-"))
}

impl FrozenSettings {
    fn make(common_dir: &Path, settings: Settings) -> io::Result<Self> {
        let dir = new_folder(common_dir)?;
        let mut files = vec![
            (dir.join("config"), settings.to_config(&dir)),
            // git takes only a folder with this file for a git directory.
            (dir.join("apart/HEAD"), b"ref: refs/heads/.invalid\n".to_vec()),
        ];
        files.extend(settings.info.iter().map(|(name, text)| (dir.join("info").join(name), text.clone())));
        files.extend(settings.named.iter().map(|(key, text)| (copy_of(&dir, key), text.clone())));
        if settings.has(b"filter.lfs.") {
            // Its filter keeps files there, and makes the folder only in a directory that is really there.
            safe_files::make_folders(&common_dir.join("lfs"))?;
        }
        let links = linked_names(common_dir).into_iter().map(|name| (dir.join(&name), common_dir.join(name)));
        let (links, common_dir) = (links.collect(), common_dir.to_owned());
        let folders = FolderWatch::begin(&dir, [&b"info/."[..], b"apart/."].into_iter());
        let (stamps, is_moved) = (Vec::new(), AtomicBool::new(false));
        let helpers = settings.helpers();
        let mut made =
            Self { settings, helpers, common_dir, dir, files, links, stamps, folders, is_moved, fault: None };
        for (file, text) in &made.files {
            safe_files::write_with_mode(file, text, 0o600)?;
        }
        for (link, target) in &made.links {
            safe_files::symlink(target, link)?;
        }
        let all = made.files.iter().map(|(file, _)| file).chain(made.links.iter().map(|(link, _)| link));
        made.stamps = all.map(|path| (path.clone(), change_stamp_of(path))).collect();
        Ok(made)
    }

    /// One that could not be made. There is no repository where it leads.
    fn nowhere(common_dir: &Path, settings: Settings, fault: String) -> Self {
        let (dir, common_dir) = (PathBuf::from("/dev/null/settings"), common_dir.to_owned());
        Self {
            helpers: settings.helpers(),
            settings,
            common_dir,
            dir,
            files: Vec::new(),
            links: Vec::new(),
            stamps: Vec::new(),
            folders: FolderWatch::default(),
            is_moved: AtomicBool::new(false),
            fault: Some(fault),
        }
    }

    /// Whether nothing of it was written, moved or replaced since it was made, not even for a moment.
    pub(super) fn is_untouched(&self) -> bool {
        if !self.folders.find_moved().is_empty() {
            self.is_moved.store(true, Ordering::SeqCst);
        }
        !self.is_moved.load(Ordering::SeqCst)
            && self.stamps.iter().all(|(path, stamp)| change_stamp_of(path) == *stamp)
    }

    fn is_intact(&self) -> bool {
        let is_file = |(file, text): &(PathBuf, Vec<u8>)| {
            safe_files::read_up_to(file, text.len() as u64).is_ok_and(|found| found == *text)
        };
        let is_link =
            |(link, target): &(PathBuf, PathBuf)| fs::read_link(link).is_ok_and(|found| found == *target);
        self.fault.is_none()
            && self.files.iter().all(is_file)
            && self.links.iter().all(is_link)
            && self.is_untouched()
    }

    fn apart(&self) -> PathBuf {
        self.dir.join("apart")
    }

    fn apply(&self, command: GitCommand) -> GitCommand {
        let is_local = !NETWORK.contains(&command.name());
        let command = match &self.fault {
            Some(fault) => command.refused(format!("could not copy the configuration: {fault}")),
            None => command.env("GIT_COMMON_DIR", &self.dir),
        };
        if is_local {
            return command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        }
        command
    }
}

/// What a copy has links to.
fn linked_names(common_dir: &Path) -> Vec<PathBuf> {
    let entries = safe_files::list_kinds(common_dir).unwrap_or_default().into_iter();
    let folders = entries.filter(|entry| entry.kind == FileKind::Folder);
    let names = folders.filter_map(|entry| entry.path.file_name().map(PathBuf::from));
    let is_linked = |name: &PathBuf| !NOT_LINKED.iter().any(|other| name.as_os_str() == *other);
    let mut names: Vec<PathBuf> = names.filter(is_linked).chain(LINKED.map(PathBuf::from)).collect();
    // A user may have linked these themselves.
    names.extend(["objects", "refs"].map(PathBuf::from));
    names.sort();
    names.dedup();
    names
}

fn frozen() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<FrozenSettings>>> {
    FROZEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folders that are only to be removed at the end, such as copies that were replaced.
fn retired() -> MutexGuard<'static, Vec<PathBuf>> {
    static RETIRED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the copies of this process. It starts no git any more.
pub fn remove_frozen() {
    let copies = std::mem::take(&mut *frozen());
    let retired = std::mem::take(&mut *retired());
    for dir in copies.into_values().map(|copy| copy.dir.clone()).chain(retired) {
        let _ = safe_files::remove_all(&dir);
    }
}

/// A new folder for something else that lasts as long as this process.
pub(super) fn new_scratch_folder(common_dir: &Path) -> io::Result<PathBuf> {
    let folder = new_folder(common_dir)?;
    retired().push(folder.clone());
    Ok(folder)
}

/// The folders that are to be removed at the end.
#[cfg(test)]
pub(super) fn retired_folders() -> Vec<PathBuf> {
    retired().clone()
}

/// A new folder for a copy: in the user's state, else among temporary files, else in the repository itself.
fn new_folder(common_dir: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    let bases = state.map(|state| state.join("git-arborist")).into_iter();
    let bases = bases.chain([std::env::temp_dir().join("git-arborist"), common_dir.join("arborist")]);
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for base in
        bases.map(|base| safe_files::resolved(&base.join("settings"))).filter(|base| base.is_absolute())
    {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        if count == 0 {
            remove_abandoned(&base);
        }
        let folder = base.join(format!("{}-{count}", std::process::id()));
        let made = safe_files::remove_all(&folder)
            .and_then(|()| safe_files::make_folders(&base))
            .and_then(|()| safe_files::make_folder(&folder))
            .and_then(|()| {
                ["info", "apart"].iter().try_for_each(|name| safe_files::make_folder(&folder.join(name)))
            });
        match made {
            Ok(()) => return Ok(folder),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Removes copies of processes that were killed.
fn remove_abandoned(base: &Path) {
    for entry in safe_files::list_kinds(base).unwrap_or_default() {
        let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
        if pid.is_some_and(|pid: u32| pid != std::process::id() && !is_process_alive(pid)) {
            let _ = safe_files::remove_all(&entry.path);
        }
    }
}

fn change_stamp_of(path: &Path) -> Option<ChangeStamp> {
    path.symlink_metadata().ok().map(|found| ChangeStamp::of(&found))
}

fn stamp_of(file: &Path) -> Option<FileStamp> {
    let found = fs::metadata(file).ok()?;
    Some((found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}
