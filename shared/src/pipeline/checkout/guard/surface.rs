//! The list of what is watched: everything in a git directory, or named by its configuration, that can run a program or hide
//! a file or a commit.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    git::{Config, Repository},
    safe_files::{self, FileKind},
};

/// How something is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    /// Its content and its mode.
    Whole,
    /// The same for all that is in it.
    Folder,
    /// The `.git` of a submodule. It may go with the whole submodule; whatever else becomes of it is a change.
    Submodule,
    /// Only that it does not become a link, a queue or a device: git changes its content all the time.
    Sort,
    /// Only that it does not appear: git itself changes it where it is there.
    Absence,
    /// Its content, but for lines that we add ourselves.
    Excludes,
}

/// In the git directory that all worktrees share.
pub(super) const SHARED: [(&str, How); 26] = [
    // Runs programs: filters, hooks, editors, drivers.
    ("config", How::Whole),
    ("config.worktree", How::Whole),
    ("hooks", How::Folder),
    // Lead git to another repository.
    ("commondir", How::Whole),
    ("gitdir", How::Whole),
    ("worktrees", How::Sort),
    // Hide files, or change what is taken in.
    ("info", How::Sort),
    ("info/attributes", How::Whole),
    ("info/exclude", How::Excludes),
    ("info/sparse-checkout", How::Absence),
    // Hide commits or bring others in their place.
    ("info/grafts", How::Whole),
    ("refs", How::Sort),
    ("refs/replace", How::Folder),
    ("shallow", How::Absence),
    ("objects", How::Sort),
    ("objects/info", How::Sort),
    ("objects/info/alternates", How::Whole),
    ("objects/info/http-alternates", How::Whole),
    // Would hold git up if it were a queue.
    ("HEAD", How::Sort),
    ("packed-refs", How::Sort),
    // Ours: locks, caches and scratch.
    ("arborist", How::Sort),
    ("arborist/cache", How::Sort),
    ("arborist/doing", How::Sort),
    ("arborist/homes", How::Sort),
    ("arborist/locks", How::Sort),
    ("arborist/logs", How::Sort),
];

/// In the git directory of the worktree that an agent works in.
pub(super) const OWN: [(&str, How); 7] = [
    ("config.worktree", How::Whole),
    ("commondir", How::Whole),
    ("gitdir", How::Whole),
    ("info", How::Sort),
    ("info/sparse-checkout", How::Whole),
    ("HEAD", How::Sort),
    ("index", How::Sort),
];

/// In the git directory of a submodule.
const MODULE: [(&str, How); 6] = [
    ("config", How::Whole),
    ("config.worktree", How::Whole),
    ("hooks", How::Folder),
    ("commondir", How::Whole),
    ("info/attributes", How::Whole),
    ("info/exclude", How::Whole),
];

/// Settings that name a file which hides something or runs it.
const FILES: [&str; 2] = ["core.attributesfile", "core.excludesfile"];

/// So deep below `modules` the git directories of submodules are looked for: their names may have slashes.
const DEPTH: usize = 6;

/// One thing that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedItem {
    pub(super) path: PathBuf,
    pub(super) how: How,
}

/// Files that the configuration of a repository names. Found once, before the first agent begins.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedFiles {
    /// Files of configuration, includes among them, and what they name.
    pub(super) files: Vec<PathBuf>,
    /// `core.hooksPath`, as it is written.
    pub(super) hooks: Option<PathBuf>,
}

impl NamedFiles {
    /// What the configuration names. One that cannot be read names nothing; git itself refuses to work with it then.
    pub(super) fn find(repository: &Repository) -> Self {
        /// A run asks for each of its repositories once.
        static KNOWN: Mutex<Option<HashMap<PathBuf, Arc<NamedFiles>>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let found = known.entry(repository.common_dir.clone());
        let found = found.or_insert_with(|| Arc::new(Self::read(repository).unwrap_or_default()));
        Self::clone(found)
    }

    fn read(repository: &Repository) -> Option<Self> {
        let config = Config::load(repository).ok()?;
        let files = named_files(&config, &repository.dir);
        let hooks = config.find_text("core.hookspath").filter(|path| !path.is_empty()).map(expanded);
        let own = |file: &PathBuf| !file.starts_with(&repository.common_dir);
        let mut files: Vec<PathBuf> =
            files.iter().map(|file| safe_files::resolved(&plain(file))).filter(own).collect();
        files.sort();
        files.dedup();
        Some(Self { files, hooks })
    }
}

/// The files that settings stand in, and those that they name.
fn named_files(config: &Config, dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in config.section("") {
        let origin = entry.origin.strip_prefix("file:").map(|file| dir.join(file));
        let base = origin.as_deref().and_then(Path::parent).unwrap_or(dir);
        let is_include = entry.key.starts_with("include") && entry.key.ends_with(".path");
        if (is_include || FILES.contains(&entry.key.as_str()))
            && let Some(value) = &entry.value
        {
            files.push(base.join(expanded(value)));
        }
        files.extend(origin);
    }
    files
}

/// What the configuration of a submodule names. Found once: one that an agent adds is moved away.
fn named_by_module(repository: &Repository, module: &Path) -> Vec<PathBuf> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.entry(module.to_owned()).or_insert_with(|| {
        let config = Config::load_file(repository, &module.join("config"));
        let files = config.map(|config| named_files(&config, &repository.dir)).unwrap_or_default();
        let mut files: Vec<PathBuf> = files.iter().map(|file| safe_files::resolved(&plain(file))).collect();
        files.sort();
        files.dedup();
        files
    });
    found.clone()
}

/// What all agents of a repository share.
pub(super) fn shared(repository: &Repository) -> Vec<WatchedItem> {
    let common = &repository.common_dir;
    let mut items = items(common, &SHARED);
    // Where refs are kept in files, nobody has reason to make tables of them.
    items.extend(repository.keeps_loose_refs.then(|| folder(common.join("reftable"))));
    for module in modules(common) {
        items.extend(self::items(&module, &MODULE));
        let named = named_by_module(repository, &module).into_iter();
        items.extend(named.map(|path| WatchedItem { path, how: How::Whole }));
    }
    let named = NamedFiles::find(repository);
    items.extend(named.files.into_iter().map(|path| WatchedItem { path, how: How::Whole }));
    items.extend(named.hooks.filter(|path| path.is_absolute()).map(folder));
    let logs = log_folders(repository).into_iter();
    items.extend(logs.map(|path| WatchedItem { path, how: How::Sort }));
    items
}

/// The folders of our logs in the user's checkout, and those that lead there.
pub(super) fn log_folders(repository: &Repository) -> Vec<PathBuf> {
    let main = repository.common_dir.parent().filter(|_| repository.common_dir.ends_with(".git"));
    let tops: Vec<&Path> = main.into_iter().chain(repository.worktree.as_deref()).collect();
    let is_below = |path: &&Path| tops.iter().any(|top| *path != *top && path.starts_with(top));
    let folders = safe_files::plain_folders();
    folders.iter().flat_map(|folder| folder.ancestors().take_while(is_below)).map(Path::to_owned).collect()
}

/// What is watched for one agent alone.
pub(super) fn own(repository: &Repository) -> Vec<WatchedItem> {
    let mut items = items(&repository.git_dir, &OWN);
    for module in modules(&repository.git_dir) {
        items.extend(self::items(&module, &MODULE));
    }
    items.extend(submodules(repository));
    let top = repository.worktree.iter();
    let hooks = NamedFiles::find(repository).hooks.filter(|path| path.is_relative());
    items.extend(top.zip(hooks).map(|(top, hooks)| folder(plain(&top.join(hooks)))));
    items
}

/// What leads from a worktree to the repositories of its submodules. A repository that is put there has settings of its own,
/// and git obeys them as soon as it looks into the submodule.
fn submodules(repository: &Repository) -> Vec<WatchedItem> {
    let Some(top) = &repository.worktree else { return Vec::new() };
    let mut items = Vec::new();
    for path in known_gitlinks(repository) {
        let path = top.join(OsStr::from_bytes(&path)).join(".git");
        if safe_files::kind_of(&path) == Some(FileKind::Folder) {
            items.extend(self::items(&path, &MODULE));
        }
        items.push(WatchedItem { path, how: How::Submodule });
    }
    items
}

/// The paths of submodules: those that the commit had when the first child began, and all that an index had since. One that
/// an agent takes out of the index stays known.
fn known_gitlinks(repository: &Repository) -> BTreeSet<Vec<u8>> {
    static KNOWN: Mutex<BTreeMap<PathBuf, BTreeSet<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.entry(repository.common_dir.clone()).or_insert_with(|| {
        let tree = repository.head.commit.and_then(|commit| repository.tree_of(commit).ok());
        let found = tree.and_then(|tree| repository.list_gitlinks_of(tree).ok());
        found.unwrap_or_default().into_iter().collect()
    });
    known.extend(repository.list_gitlinks().unwrap_or_default());
    known.clone()
}

/// The git directories of submodules.
pub(super) fn modules(common_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(common_dir.join("modules"), 0)];
    while let Some((folder, depth)) = open.pop() {
        if safe_files::kind_of(&folder.join("HEAD")).is_some() {
            open.push((folder.join("modules"), depth));
            found.push(folder);
        } else if depth < DEPTH {
            open.extend(folders_in(&folder).into_iter().map(|inner| (inner, depth + 1)));
        }
    }
    found.sort();
    found
}

fn items(folder: &Path, list: &[(&str, How)]) -> Vec<WatchedItem> {
    list.iter().map(|(name, how)| WatchedItem { path: folder.join(name), how: *how }).collect()
}

fn folder(path: PathBuf) -> WatchedItem {
    WatchedItem { path, how: How::Folder }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = safe_files::list(folder).unwrap_or_default();
    entries.into_iter().filter(|entry| entry.kind == FileKind::Folder).map(|entry| entry.path).collect()
}

fn plain(path: &Path) -> PathBuf {
    crate::git::plain_path(path)
}

fn expanded(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}
