//! Freezes the settings from before the first child process. An agent can write to the configuration of its repository
//! at any time, and git runs programs that are named there: filters, merge drivers, signing programs. So while children
//! may run, every git command of ours that obeys such settings gets another common directory, which contains a copy of
//! all settings in one file. Objects, refs and everything else in the real directory are links there.
//!
//! The copy is in the user's state folder, where a sandboxed agent cannot write. It is compared with the values in
//! memory before each use. After the command, it is checked again for files that were written, moved or replaced
//! meanwhile; if there are any, git's answer is not used.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    git::{
        Config, GitCommand, GitError, PrivateIndex, Repository, confined::Helpers,
        files::folder_watch::FolderWatch, settings::harmless_settings::SettingEntry,
    },
    mutex::MutexExt,
    name::digest,
    process::{Program, is_process_alive},
    safe_files::{self, ChangeStamp, FileKind},
};

/// The frozen settings by common directory, or by git directory for a worktree with settings of its own.
static FROZEN: Mutex<BTreeMap<PathBuf, Arc<FrozenSettings>>> = Mutex::new(BTreeMap::new());

/// Commands that obey settings which run programs, hide files or change what is added or written.
const OBEYING_COMMANDS: [&str; 31] = [
    "add", "am", "bisect", "check-attr", "check-ignore", "checkout", "checkout-index", "cherry-pick",
    "clean", "commit-tree", "diff-files", "diff-index", "diff-tree", "fetch", "hash-object", "ls-files",
    "ls-remote", "merge", "merge-file", "merge-tree", "push", "read-tree", "rebase", "reset", "restore",
    "revert", "stash", "status", "update-index", "var", "write-tree",
];

/// Commands that start a git in another repository, which needs the user's own settings there.
const NETWORK_COMMANDS: [&str; 3] = ["fetch", "ls-remote", "push"];

/// Files of the real directory that are always linked: they may be created later.
const ALWAYS_LINKED: [&str; 3] = ["HEAD", "packed-refs", "shallow"];

/// Folders of the real directory that are not linked: they are copied, unused, or ours.
const NOT_LINKED: [&str; 3] = ["info", "hooks", "arborist"];

/// Settings that name a file with rules about which files are added, and how.
const FILE_SETTINGS: [&str; 2] = ["core.attributesfile", "core.excludesfile"];

/// Settings that, if they are on, change names or content of written files, or leave files out.
const CONVERTING_SETTINGS: [&str; 4] =
    ["core.autocrlf", "core.ignorecase", "core.precomposeunicode", "core.sparsecheckout"];

/// Settings that, with any value, change where attributes are read from or how files are written.
const REDIRECTING_SETTINGS: [&str; 3] = ["attr.tree", "core.fsync", "core.fsyncmethod"];

/// The settings of a repository at some time.
#[derive(Debug, Clone)]
struct Settings {
    /// System and global settings. They are read only once: we could not restore their files.
    outer: Vec<SettingEntry>,
    /// Settings of the repository and of the worktree.
    inner: Vec<SettingEntry>,
    /// Settings from the command line. They are in our environment, where every git finds them.
    from_command_line: Vec<SettingEntry>,
    /// All of them, as git listed them when the inner settings were read last.
    listed: Config,
    /// `info/exclude` and `info/attributes`.
    info: Vec<(&'static str, Vec<u8>)>,
    /// Content of the files named by settings, by the key of the setting in the copy.
    named: Vec<(&'static str, Vec<u8>)>,
    /// Whether worktrees may have different settings.
    has_variants: bool,
    /// Stamps of the files, to notice changes.
    stamps: Vec<(PathBuf, Option<ChangeStamp>)>,
}

/// A copy of settings on disk.
#[derive(Debug)]
pub(in crate::git) struct FrozenSettings {
    settings: Settings,
    helpers: Helpers,
    /// The common directory of the repository that has these settings.
    common_dir: PathBuf,
    dir: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
    links: Vec<(PathBuf, PathBuf)>,
    /// Stamps of the files and links of the copy, to notice changes.
    stamps: Vec<(PathBuf, Option<ChangeStamp>)>,
    folders: FolderWatch,
    /// Whether one of the folders was moved, even if it was moved back.
    is_moved: AtomicBool,
    /// Why the copy could not be made.
    failure: Option<String>,
}

/// Whether settings that changed since they were frozen are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsChange {
    /// Yes, because no child process is running.
    Accepted,
    /// No, because a child may have changed them.
    Ignored,
}

impl Repository {
    /// Freezes the present settings. From here on, our git commands obey no others.
    ///
    /// It fails if git cannot read the configuration; then git itself refuses to work anyway.
    pub fn freeze_settings(&self, changes: SettingsChange) -> Result<(), GitError> {
        let known = self.find_recorded();
        let is_kept =
            |known: &Arc<FrozenSettings>| changes == SettingsChange::Ignored || known.settings.are_current();
        if known.as_ref().is_some_and(is_kept) {
            return Ok(());
        }
        let mut settings = self.read_settings()?;
        let earlier = known.or_else(|| FROZEN.hold().get(&self.common_dir).cloned());
        if let Some(earlier) = earlier {
            settings.outer.clone_from(&earlier.settings.outer);
            settings.named.clone_from(&earlier.settings.named);
        }
        let key = if settings.has_variants { &self.git_dir } else { &self.common_dir };
        self.replace_frozen(key.clone(), settings).map(drop)
    }

    /// Adds a line of ours to the frozen exclude file.
    pub(in crate::git) fn freeze_excluded(&self, line: &str) -> Result<(), GitError> {
        let is_of_this_repository =
            |(_, known): &(&PathBuf, &Arc<FrozenSettings>)| known.common_dir == self.common_dir;
        let known: Vec<(PathBuf, Settings)> = FROZEN
            .hold()
            .iter()
            .filter(is_of_this_repository)
            .map(|(key, known)| (key.clone(), known.settings.clone()))
            .collect();
        for (key, mut settings) in known {
            settings.add_excluded(line, &self.common_dir.join("info/exclude"));
            self.replace_frozen(key, settings)?;
        }
        Ok(())
    }

    /// Whether no setting converts files that are written to a worktree, and there are no attributes outside of it.
    pub(in crate::git) fn has_plain_settings(&self) -> bool {
        self.find_recorded().is_some_and(|known| known.failure.is_none() && known.settings.are_plain())
    }

    /// Whether settings are frozen, and none of these keys is among them.
    pub(in crate::git) fn lacks_frozen_settings(&self, keys: &[&str]) -> bool {
        self.find_recorded().is_some_and(|known| known.failure.is_none() && !known.settings.has_any(keys))
    }

    /// Whether all worktrees are known to have the same settings: none is included for some of them only, and none has settings
    /// of its own.
    pub(in crate::git) fn has_same_settings_everywhere(&self) -> bool {
        self.find_recorded().is_some_and(|known| known.failure.is_none() && !known.settings.has_variants)
    }

    /// The command with the frozen settings, if it obeys settings and some are frozen.
    pub(in crate::git) fn with_frozen(&self, command: GitCommand) -> GitCommand {
        let may_run = |known: Arc<FrozenSettings>| known.helpers.may_run_in(command.name());
        let is_cleared = self.find_recorded().is_some_and(may_run);
        let command = if is_cleared { command.map_program(Program::ends_descendants) } else { command };
        if !OBEYING_COMMANDS.contains(&command.name()) {
            return command;
        }
        match self.find_frozen() {
            Some(frozen) => frozen.apply(command).with_settings(frozen),
            None => command,
        }
    }

    /// The frozen settings. If the copy was changed, a new one is made.
    fn find_frozen(&self) -> Option<Arc<FrozenSettings>> {
        let known = self.find_recorded()?;
        if known.is_intact() {
            return Some(known);
        }
        let key = if known.settings.has_variants { &self.git_dir } else { &self.common_dir };
        self.replace_frozen(key.clone(), known.settings.clone()).ok().or_else(|| self.find_recorded())
    }

    /// The programs that the frozen settings let git run; `None` while none are frozen.
    pub(in crate::git) fn frozen_helpers(&self) -> Option<Helpers> {
        self.find_recorded().map(|known| known.helpers.clone())
    }

    /// All settings: those that were frozen, unless settings of the repository or the worktree have changed.
    pub fn frozen_or_new_config(&self) -> Result<Config, GitError> {
        match self.find_recorded().filter(|known| known.settings.are_current()) {
            Some(known) => Ok(known.settings.listed.clone()),
            None => Config::load(self),
        }
    }

    /// A digest of the frozen settings, for comparing them with those of another run; `None` while none are frozen.
    pub(in crate::git) fn frozen_digest(&self) -> Option<String> {
        self.find_recorded().map(|known| digest(format!("{:?}", known.settings).as_bytes()))
    }

    fn find_recorded(&self) -> Option<Arc<FrozenSettings>> {
        let frozen = FROZEN.hold();
        let shared = || frozen.get(&self.common_dir).filter(|found| !found.settings.has_variants);
        frozen.get(&self.git_dir).or_else(shared).cloned()
    }

    fn replace_frozen(&self, key: PathBuf, settings: Settings) -> Result<Arc<FrozenSettings>, GitError> {
        let failed = |source| GitError::File { path: "a copy of the configuration".into(), source };
        let (made, result) = match FrozenSettings::make(&self.common_dir, settings.clone()) {
            Ok(made) => (made, Ok(())),
            // Until a copy can be made, every command fails: without it, git would obey the present settings of the
            // repository.
            Err(error) => {
                let failure = error.to_string();
                (FrozenSettings::failed_copy(&self.common_dir, settings, failure), Err(failed(error)))
            }
        };
        let made = Arc::new(made);
        let old = FROZEN.hold().insert(key, Arc::clone(&made));
        // A git of another thread may just be starting with the old copy, so that is removed at the end of the process.
        if let Some(old) = old {
            retired().push(old.dir.clone());
        }
        result.map(|()| made)
    }

    fn read_settings(&self) -> Result<Settings, GitError> {
        let command = self.act("config").args(["--list", "-z", "--show-scope", "--show-origin"]);
        let printed = command.stdout()?;
        let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let (mut outer, mut inner, mut from_command_line, mut files) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
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
                _ => from_command_line.push(entry),
            }
        }
        let info = ["exclude", "attributes"].map(|name| (name, self.common_dir.join("info").join(name)));
        let standard = ["config", "config.worktree"]
            .iter()
            .flat_map(|name| [&self.common_dir, &self.git_dir].map(|folder| folder.join(name)));
        files.extend(standard.chain(info.iter().map(|(_, file)| file.clone())));
        files.sort();
        files.dedup();
        let has_variants = outer.iter().chain(&inner).any(SettingEntry::makes_variants);
        Ok(Settings {
            listed: Config::parse(&printed)?,
            named: FILE_SETTINGS
                .iter()
                .filter_map(|key| {
                    Some((*key, self.read_named(key, inner.iter().rev().chain(outer.iter().rev()))?))
                })
                .collect(),
            info: info.map(|(name, file)| (name, safe_files::read_users(&file).unwrap_or_default())).into(),
            stamps: files.into_iter().map(|file| (file.clone(), stamp_of(&file))).collect(),
            outer,
            inner,
            from_command_line,
            has_variants,
        })
    }

    /// The content of the file that a setting names, or of git's default file; empty if there is none. `None` for a
    /// path that only git can resolve.
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
    /// Gives a command for a private index a `GIT_DIR` of its own: it needs no `HEAD`, and the real one could be a
    /// named pipe. A sparse checkout needs the patterns in the real git directory.
    pub(in crate::git) fn with_private_index(&self, command: GitCommand) -> GitCommand {
        match self.repository.find_recorded().filter(|frozen| !frozen.settings.is_sparse()) {
            Some(frozen) if OBEYING_COMMANDS.contains(&command.name()) => {
                command.env("GIT_DIR", frozen.separate_git_dir())
            }
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
        Helpers::of(self.outer.iter().chain(&self.inner).chain(&self.from_command_line))
    }

    fn has_any(&self, keys: &[&str]) -> bool {
        let mut all = self.outer.iter().chain(&self.inner).chain(&self.from_command_line);
        all.any(|entry| keys.iter().any(|key| key.as_bytes() == entry.key))
    }

    fn are_plain(&self) -> bool {
        let mut all = self.outer.iter().chain(&self.inner).chain(&self.from_command_line);
        let is_plain = |entry: &SettingEntry| {
            let is_switched_on =
                CONVERTING_SETTINGS.iter().any(|key| key.as_bytes() == entry.key) && entry.is_true();
            !is_switched_on && !REDIRECTING_SETTINGS.iter().any(|key| key.as_bytes() == entry.key)
        };
        let is_file_setting =
            |entry: &SettingEntry| FILE_SETTINGS.iter().any(|key| key.as_bytes() == entry.key);
        let has_rules = |text: &[u8]| !text.trim_ascii().is_empty();
        // An attributes file that only git can find is not in `named`.
        all.all(is_plain)
            && !self.from_command_line.iter().any(is_file_setting)
            && self.info.iter().all(|(name, text)| *name != "attributes" || !has_rules(text))
            && self.named.iter().any(|(key, text)| *key == FILE_SETTINGS[0] && !has_rules(text))
    }

    fn add_excluded(&mut self, line: &str, exclude_file: &Path) {
        for (_, text) in self.info.iter_mut().filter(|(name, _)| *name == "exclude") {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            text.extend([line.as_bytes(), b"\n"].concat());
        }
        let wanted = self.info.iter().find(|(name, _)| *name == "exclude").map(|(_, text)| text);
        for (file, stamp) in self.stamps.iter_mut().filter(|(file, _)| *file == exclude_file) {
            // Taken first: a file that is written meanwhile is read again.
            let now = stamp_of(file);
            if safe_files::read_users(file).ok().as_ref() == wanted {
                *stamp = now;
            }
        }
    }

    /// The content of the one configuration file, for a copy in `dir`.
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
            // git recognises a git directory by this file.
            (dir.join("apart/HEAD"), b"ref: refs/heads/.invalid\n".to_vec()),
        ];
        files.extend(settings.info.iter().map(|(name, text)| (dir.join("info").join(name), text.clone())));
        files.extend(settings.named.iter().map(|(key, text)| (copy_of(&dir, key), text.clone())));
        if settings.has(b"filter.lfs.") {
            // git-lfs keeps files there, and creates the folder only in a directory that is not a link.
            safe_files::make_folders(&common_dir.join("lfs"))?;
        }
        let links = linked_names(common_dir).into_iter().map(|name| (dir.join(&name), common_dir.join(name)));
        let (links, common_dir) = (links.collect(), common_dir.to_owned());
        let folders = FolderWatch::begin(&dir, [&b"info/."[..], b"apart/."].into_iter());
        let (stamps, is_moved) = (Vec::new(), AtomicBool::new(false));
        let helpers = settings.helpers();
        let mut made = Self {
            settings,
            helpers,
            common_dir,
            dir,
            files,
            links,
            stamps,
            folders,
            is_moved,
            failure: None,
        };
        for (file, text) in &made.files {
            safe_files::write_with_mode(file, text, 0o600)?;
        }
        for (link, target) in &made.links {
            safe_files::symlink(target, link)?;
        }
        let all = made.files.iter().map(|(file, _)| file).chain(made.links.iter().map(|(link, _)| link));
        made.stamps = all.map(|path| (path.clone(), ChangeStamp::at(path))).collect();
        Ok(made)
    }

    /// Settings that could not be copied. Their path leads to no repository, so that git fails.
    fn failed_copy(common_dir: &Path, settings: Settings, failure: String) -> Self {
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
            failure: Some(failure),
        }
    }

    /// Whether nothing in the copy was written, moved or replaced since it was made, not even temporarily.
    pub(in crate::git) fn is_untouched(&self) -> bool {
        if !self.folders.find_moved().is_empty() {
            self.is_moved.store(true, Ordering::SeqCst);
        }
        !self.is_moved.load(Ordering::SeqCst)
            && self.stamps.iter().all(|(path, stamp)| ChangeStamp::at(path) == *stamp)
    }

    fn is_intact(&self) -> bool {
        let is_file = |(file, text): &(PathBuf, Vec<u8>)| {
            safe_files::read_up_to(file, text.len() as u64).is_ok_and(|found| found == *text)
        };
        let is_link =
            |(link, target): &(PathBuf, PathBuf)| fs::read_link(link).is_ok_and(|found| found == *target);
        self.failure.is_none()
            && self.files.iter().all(is_file)
            && self.links.iter().all(is_link)
            && self.is_untouched()
    }

    fn separate_git_dir(&self) -> PathBuf {
        self.dir.join("apart")
    }

    fn apply(&self, command: GitCommand) -> GitCommand {
        let is_local = !NETWORK_COMMANDS.contains(&command.name());
        let command = match &self.failure {
            Some(failure) => command.refused(format!("could not copy the configuration: {failure}")),
            None => command.env("GIT_COMMON_DIR", &self.dir),
        };
        if is_local {
            return command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        }
        command
    }
}

/// The names in the real directory to which the copy has links.
fn linked_names(common_dir: &Path) -> Vec<PathBuf> {
    let entries = safe_files::list_kinds(common_dir).unwrap_or_default().into_iter();
    let folders = entries.filter(|entry| entry.kind == FileKind::Folder);
    let names = folders.filter_map(|entry| entry.path.file_name().map(PathBuf::from));
    let is_linked = |name: &PathBuf| !NOT_LINKED.iter().any(|other| name.as_os_str() == *other);
    let mut names: Vec<PathBuf> = names.filter(is_linked).chain(ALWAYS_LINKED.map(PathBuf::from)).collect();
    // The user may have replaced these by links, which are not in the list of folders.
    names.extend(["objects", "refs"].map(PathBuf::from));
    names.sort();
    names.dedup();
    names
}

/// Folders to remove at the end of the process, such as copies that were replaced.
fn retired() -> MutexGuard<'static, Vec<PathBuf>> {
    static RETIRED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    RETIRED.hold()
}

/// Removes the copies of this process. Call this when it starts no git any more.
pub fn remove_frozen_settings() {
    let copies = std::mem::take(&mut *FROZEN.hold());
    let retired = std::mem::take(&mut *retired());
    for dir in copies.into_values().map(|copy| copy.dir.clone()).chain(retired) {
        let _ = safe_files::remove_all(&dir);
    }
}

/// A new folder, which is removed at the end of the process.
pub(in crate::git) fn new_scratch_folder(common_dir: &Path) -> io::Result<PathBuf> {
    let folder = new_folder(common_dir)?;
    remove_at_end(folder.clone());
    Ok(folder)
}

/// Removes this folder or file at the end of the process.
pub fn remove_at_end(path: PathBuf) {
    retired().push(path);
}

/// Our folder in the user's state folder, where a sandboxed agent cannot write. It need not exist.
#[must_use]
pub fn find_state_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    state.map(|state| safe_files::resolved(&state.join("git-arborist"))).filter(|state| state.is_absolute())
}

/// The folders to remove at the end.
#[cfg(test)]
pub(in crate::git) fn retired_folders() -> Vec<PathBuf> {
    retired().clone()
}

/// A new folder for a copy: in the user's state folder, otherwise among temporary files, otherwise in the repository.
fn new_folder(common_dir: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let bases = find_state_folder()
        .into_iter()
        .chain([std::env::temp_dir().join("git-arborist"), common_dir.join("arborist")]);
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

/// Removes folders of processes that were killed. Their names begin with the number of the process.
pub(in crate::git) fn remove_abandoned(base: &Path) {
    for entry in safe_files::list_kinds(base).unwrap_or_default() {
        let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
        if pid.is_some_and(|pid: u32| pid != std::process::id() && !is_process_alive(pid)) {
            let _ = safe_files::remove_all(&entry.path);
        }
    }
}

/// The stamp of a file, behind links: the user's own settings may be links.
fn stamp_of(file: &Path) -> Option<ChangeStamp> {
    fs::metadata(file).ok().map(|found| ChangeStamp::of(&found))
}
