//! The list of watched files: everything in a git directory, or named by its configuration, that can run a program or
//! hide a file or a commit.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::{
    around::{expanded, expanded_by_git, named_files},
    inner_repos,
    scripts::{self, CommandWords},
};
use crate::{
    git::{
        CHECKOUT_HOOKS, Config, Repository, UsersCheckout, find_module_dirs, husky_folder, plain_path,
        runs_program,
    },
    mutex::MutexExt,
    safe_files::{self, FileKind, FolderEntry},
};

/// How closely something is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchMode {
    /// Content and mode of a file.
    Whole,
    /// Content and mode of a script in a worktree that git runs.
    GitScript,
    /// Content and mode of a script in a worktree that a reviewer runs.
    ReviewScript,
    /// Content and mode of settings that the program of a reviewer reads in a worktree.
    ReviewSettings,
    /// Content and mode of a file that the configuration of another repository of the run includes.
    OtherConfig,
    /// Content and mode of everything in a folder.
    Folder,
    /// Content and mode of everything in a folder, and that the folder does not appear, because git behaves differently if it
    /// exists.
    KnownFolder,
    /// The `.git` of a submodule. It may disappear together with the submodule; anything else is a change.
    Submodule,
    /// Only that it does not become a link, a named pipe or a device, because git changes its content all the time.
    Kind,
    /// Only that it does not appear, because git itself changes it if it exists.
    Absence,
    /// Its content, except for lines that we add ourselves.
    ExcludeFile,
    /// A file of another repository inside the checkout. It may disappear; anything else is a change.
    InnerFile,
    /// Everything in a folder of another repository inside the checkout. It may disappear; anything else is a change.
    InnerFolder,
    /// The configuration of another repository inside the checkout. It may disappear, or become one that runs nothing.
    InnerConfig,
}

impl WatchMode {
    /// Whether everything in a folder is watched.
    pub(super) const fn is_folder(self) -> bool {
        matches!(self, Self::Folder | Self::KnownFolder | Self::InnerFolder)
    }

    /// Whether it is a file of a worktree that is named with its purpose, and that is kept when it is replaced.
    pub(super) const fn is_named(self) -> bool {
        matches!(self, Self::GitScript | Self::ReviewScript | Self::ReviewSettings | Self::OtherConfig)
    }

    /// How the files in a folder are watched.
    pub(super) const fn inside(self) -> Self {
        if matches!(self, Self::InnerFolder) { Self::InnerFile } else { Self::Whole }
    }
}

/// Files in the git directory that all worktrees share.
pub(super) const SHARED: [(&str, WatchMode); 30] = [
    // Runs programs: filters, hooks, editors, drivers.
    ("config", WatchMode::Whole),
    ("config.worktree", WatchMode::Whole),
    ("hooks", WatchMode::Folder),
    // Can lead git to another repository.
    ("commondir", WatchMode::Whole),
    ("gitdir", WatchMode::Whole),
    ("worktrees", WatchMode::Kind),
    // Remotes in the format before configuration, which `git push` still uses.
    ("remotes", WatchMode::Folder),
    ("branches", WatchMode::Folder),
    // If it exists, git records how the user resolves conflicts, and writes what is recorded into the next ones.
    ("rr-cache", WatchMode::KnownFolder),
    // Can hide files, or change how they are read.
    ("info", WatchMode::Kind),
    ("info/attributes", WatchMode::Whole),
    ("info/exclude", WatchMode::ExcludeFile),
    ("info/sparse-checkout", WatchMode::Absence),
    // Can hide or replace commits.
    ("info/grafts", WatchMode::Whole),
    ("refs", WatchMode::Kind),
    ("refs/replace", WatchMode::Folder),
    ("shallow", WatchMode::Absence),
    ("objects", WatchMode::Kind),
    ("objects/info", WatchMode::Kind),
    ("objects/info/alternates", WatchMode::Whole),
    ("objects/info/http-alternates", WatchMode::Whole),
    // A named pipe here would block git.
    ("HEAD", WatchMode::Kind),
    ("packed-refs", WatchMode::Kind),
    // Our own locks, caches and scratch files.
    ("arborist", WatchMode::Kind),
    ("arborist/cache", WatchMode::Kind),
    ("arborist/doing", WatchMode::Kind),
    ("arborist/homes", WatchMode::Kind),
    ("arborist/locks", WatchMode::Kind),
    ("arborist/logs", WatchMode::Kind),
    ("arborist/written", WatchMode::Kind),
];

/// Files in the git directory of the worktree that a child works in.
pub(super) const OWN: [(&str, WatchMode); 7] = [
    ("config.worktree", WatchMode::Whole),
    ("commondir", WatchMode::Whole),
    ("gitdir", WatchMode::Whole),
    ("info", WatchMode::Kind),
    ("info/sparse-checkout", WatchMode::Whole),
    ("HEAD", WatchMode::Kind),
    ("index", WatchMode::Kind),
];

/// Files in the git directory of a submodule.
const MODULE: [(&str, WatchMode); 8] = [
    ("config", WatchMode::Whole),
    ("config.worktree", WatchMode::Whole),
    ("hooks", WatchMode::Folder),
    ("commondir", WatchMode::Whole),
    ("info/attributes", WatchMode::Whole),
    ("info/exclude", WatchMode::Whole),
    ("remotes", WatchMode::Folder),
    ("branches", WatchMode::Folder),
];

/// Folders at the top of a git directory that git, its extensions and this program make. They are watched in other ways, or contain
/// only data.
const OF_GIT: [&str; 17] = [
    "annex", "arborist", "branches", "hooks", "info", "lfs", "logs", "modules", "objects", "rebase-apply",
    "rebase-merge", "refs", "reftable", "rr-cache", "sequencer", "svn", "worktrees",
];
/// How many files are looked at in all other folders.
const MAX_SEARCHED: usize = 1000;

/// One thing that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WatchedItem {
    pub(super) path: PathBuf,
    pub(super) watch_mode: WatchMode,
}

/// Files that the configuration of a repository names. They are determined once, before the first child begins.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedFiles {
    /// Configuration files, including included ones, and files that settings name.
    pub(super) files: Vec<PathBuf>,
    /// Those whose path begins at the top of each worktree.
    in_worktrees: Vec<PathBuf>,
    /// The value of `core.hooksPath`, and the folder with the hooks that husky runs from there.
    pub(super) hooks: Vec<PathBuf>,
    /// The programs that settings name. Some of them are scripts in the worktree.
    programs: CommandWords,
}

/// The result for each repository, because the configuration must be read before the first child.
static KNOWN_NAMED: Mutex<Option<HashMap<PathBuf, Arc<NamedFiles>>>> = Mutex::new(None);

impl NamedFiles {
    /// Finds what the configuration names. If it cannot be read, it names nothing; git itself refuses to work with it
    /// then.
    pub(super) fn find(repository: &Repository) -> Self {
        let mut known = KNOWN_NAMED.hold();
        let known = known.get_or_insert_default();
        let found = known.entry(repository.common_dir.clone());
        let found = found.or_insert_with(|| Arc::new(Self::read(repository).unwrap_or_default()));
        Self::clone(found)
    }

    /// The files and folders of hooks that the configuration of other repositories names.
    fn find_of_others(repository: &Repository) -> Vec<PathBuf> {
        let mut known = KNOWN_NAMED.hold();
        let others = known.get_or_insert_default().iter().filter(|(dir, _)| **dir != repository.common_dir);
        let named = others.flat_map(|(_, named)| named.files.iter().chain(&named.hooks));
        named.filter(|path| path.is_absolute()).map(|path| safe_files::resolved(path)).collect()
    }

    fn read(repository: &Repository) -> Option<Self> {
        let config = repository.frozen_or_new_config().ok()?;
        let (mut files, in_worktrees) = named_files(&config, repository);
        files.extend(named_programs(&config, repository));
        files.extend(users_files());
        let hooks = config.find_text("core.hookspath").filter(|path| !path.is_empty());
        let hooks = hooks.map(|path| expanded_by_git(repository, path));
        let hooks = hooks.map(|hooks| hook_folders(repository, hooks)).unwrap_or_default();
        let is_other = |file: &PathBuf| !is_listed(repository, file);
        let mut files: Vec<PathBuf> =
            files.iter().map(|file| safe_files::resolved(&plain_path(file))).filter(is_other).collect();
        files.sort();
        files.dedup();
        let mut programs = CommandWords::default();
        let commands = config.section("").filter(|entry| runs_program(&entry.key));
        commands
            .filter_map(|entry| entry.value.as_deref())
            .for_each(|command| programs.add([command].into_iter()));
        Some(Self { files, in_worktrees, hooks, programs })
    }
}

/// The files of the user that git reads in every repository, whether they exist or not.
fn users_files() -> Vec<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = folder("HOME");
    let config = folder("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let inner = ["git/config", "git/ignore", "git/attributes"];
    let files = config.iter().flat_map(|config| inner.map(|name| config.join(name)));
    files.chain(home.map(|home| home.join(".gitconfig"))).collect()
}

/// The folder of hooks, and the one with the hooks that husky runs from there.
fn hook_folders(repository: &Repository, hooks: PathBuf) -> Vec<PathBuf> {
    let main = repository.main_top();
    let mut tops = repository.worktree.as_deref().into_iter().chain(main);
    let is_husky = tops.any(|top| husky_folder(&plain_path(&top.join(&hooks))).is_some());
    let runs_others = is_husky && hooks.ends_with("_");
    let others = hooks.parent().filter(|_| runs_others).map(Path::to_owned);
    [hooks].into_iter().chain(others).collect()
}

/// What is watched of a folder of hooks. In the top folder of a checkout these are only the hooks.
fn hook_items(top: &Path, folder: PathBuf) -> Vec<WatchedItem> {
    if folder != *top {
        return vec![self::folder(folder)];
    }
    CHECKOUT_HOOKS
        .iter()
        .map(|name| WatchedItem { path: top.join(name), watch_mode: WatchMode::Whole })
        .collect()
}

/// Whether a file in a git directory is watched anyway, in its own way.
fn is_listed(repository: &Repository, file: &Path) -> bool {
    [&repository.common_dir, &repository.git_dir].iter().any(|git_dir| {
        let inner = file.strip_prefix(git_dir);
        inner.is_ok_and(|inner| SHARED.iter().chain(&OWN).any(|(name, _)| inner == Path::new(name)))
    })
}

/// The words of a shell command that could be paths.
fn words_of(command: &str) -> impl Iterator<Item = PathBuf> {
    let is_between = |c: char| c.is_whitespace() || "'\"();|&<>=`".contains(c);
    command.split(is_between).filter(|word| !word.is_empty()).map(PathBuf::from)
}

/// Files in the git directory that occur in the value of a setting. git or a tool of the user may run them.
fn named_programs(config: &Config, repository: &Repository) -> Vec<PathBuf> {
    let common = &repository.common_dir;
    let values = config.section("").filter_map(|entry| entry.value.as_deref());
    let words = values.flat_map(words_of).map(|word| word.to_str().map_or_else(|| word.clone(), expanded));
    let paths = words.map(|word| plain_path(&common.parent().unwrap_or(common).join(word)));
    // git writes its own files all the time: those in its folders, and at the top those with names in capitals.
    let is_of_git = |inner: &Path| {
        let is_capital = inner.to_str().is_some_and(|name| !name.contains(char::is_lowercase));
        is_capital || OF_GIT.iter().any(|folder| inner.starts_with(folder))
    };
    let is_program = |path: &PathBuf| {
        path.strip_prefix(common).is_ok_and(|inner| !is_of_git(inner))
            && safe_files::kind_of(path) == Some(FileKind::File)
    };
    paths.filter(is_program).collect()
}

/// Executable files in folders of the git directory that git does not make itself. Hooks of the user may run them.
fn programs(common: &Path) -> Vec<PathBuf> {
    let is_other = |entry: &FolderEntry| {
        let name = entry.path.file_name().unwrap_or_default();
        entry.kind == FileKind::Folder && !OF_GIT.iter().any(|known| name == *known)
    };
    let list = |folder: &Path| safe_files::list_kinds(folder).unwrap_or_default();
    let mut open: Vec<PathBuf> = list(common).into_iter().filter(is_other).map(|entry| entry.path).collect();
    let (mut found, mut count) = (Vec::new(), 0);
    while let Some(folder) = open.pop().filter(|_| count < MAX_SEARCHED) {
        for entry in list(&folder) {
            count += 1;
            let is_executable =
                || entry.path.symlink_metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
            match entry.kind {
                FileKind::Folder => open.push(entry.path),
                FileKind::File if is_executable() => found.push(entry.path),
                _ => {}
            }
        }
    }
    found
}

/// Files that the configuration of a submodule, or of another repository, names. Determined once; submodules that a child adds are moved away.
pub(super) fn named_by_module(repository: &Repository, module: &Path) -> Vec<PathBuf> {
    static NAMED_FILES: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = NAMED_FILES.hold();
    let found = known.entry(module.to_owned()).or_insert_with(|| {
        let config = Config::load_file(repository, &module.join("config"));
        let (mut files, in_worktrees) =
            config.as_ref().map(|config| named_files(config, repository)).unwrap_or_default();
        let worktree = config.as_ref().ok().and_then(|config| config.find_text("core.worktree"));
        // Without this setting, the git directory is in the worktree.
        let top = module.join(worktree.unwrap_or(".."));
        files.extend(in_worktrees.iter().map(|file| top.join(file)));
        let mut files: Vec<PathBuf> =
            files.iter().map(|file| safe_files::resolved(&plain_path(file))).collect();
        files.sort();
        files.dedup();
        files
    });
    found.clone()
}

/// A git directory, and where the links in it lead: `objects` may be on another disk.
pub(super) fn real_git_dirs(common_dir: &Path) -> Vec<PathBuf> {
    let entries = safe_files::list_kinds(common_dir).unwrap_or_default().into_iter();
    let links = entries.filter(|entry| entry.kind == FileKind::Link).map(|entry| entry.path);
    [common_dir.to_owned()].into_iter().chain(links).collect()
}

/// Watched items that all worktrees of a repository share. `reviewers` are the commands of reviewers.
pub(super) fn shared(repository: &Repository, reviewers: &CommandWords) -> Vec<WatchedItem> {
    let common = &repository.common_dir;
    let mut items = items(common, &SHARED);
    // A repository with refs in files has no reason to contain a reftable.
    items.extend(repository.has_files_backend.then(|| folder(common.join("reftable"))));
    for module in find_module_dirs(common) {
        items.extend(self::items(&module, &MODULE));
        let named = named_by_module(repository, &module).into_iter();
        items.extend(named.map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    }
    // git looks for a short name of a branch in the git directory and in `refs` first.
    let branches = repository.run_branches().into_iter().chain(repository.list_user_branches());
    let shadows = branches.flat_map(|branch| [common.join("refs").join(&branch), common.join(branch)]);
    items.extend(shadows.map(|path| WatchedItem { path, watch_mode: WatchMode::Absence }));
    items.extend(users(repository));
    let scripts = users_scripts(repository, reviewers).into_iter();
    items.extend(scripts.map(|path| WatchedItem { path, watch_mode: WatchMode::ReviewScript }));
    let named = NamedFiles::find(repository);
    items.extend(named.files.into_iter().map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    items.extend(programs(common).into_iter().map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    let main = common.parent().unwrap_or(common);
    let hooks = named.hooks.into_iter().filter(|path| path.is_absolute());
    items.extend(hooks.flat_map(|hooks| hook_items(main, hooks)));
    let logs = log_folders(repository).into_iter();
    items.extend(logs.map(|path| WatchedItem { path, watch_mode: WatchMode::Kind }));
    items
}

/// The folders of our logs in the user's checkout, and their parents.
pub(super) fn log_folders(repository: &Repository) -> Vec<PathBuf> {
    let main = repository.main_top();
    let tops: Vec<&Path> = main.into_iter().chain(repository.worktree.as_deref()).collect();
    let is_below = |path: &&Path| tops.iter().any(|top| *path != *top && path.starts_with(top));
    let folders = safe_files::plain_folders();
    folders.iter().flat_map(|folder| folder.ancestors().take_while(is_below)).map(Path::to_owned).collect()
}

/// Opens the top folder of a checkout, and the folders of logs, if a child has closed them: the next step writes there.
pub(super) fn open_folders(repository: &Repository) {
    let tops = repository.worktree.iter().cloned();
    let folders: BTreeSet<PathBuf> = tops.chain(log_folders(repository)).collect();
    folders.iter().for_each(|folder| safe_files::allow_writing_around(folder, &folder.join("file")));
}

/// Programs of reviewers in the user's checkouts, which an agent may reach from elsewhere. Files that git tracks are left
/// out: the user works there, and landings change them.
pub(super) fn users_scripts(repository: &Repository, reviewers: &CommandWords) -> Vec<PathBuf> {
    let is_tracked = |top: &Path, path: &Path| {
        let inner = path.strip_prefix(top).ok().and_then(Path::to_str);
        let find = |commit| repository.find_path(commit, inner?).ok()?;
        repository.head.commit.and_then(find).is_some()
    };
    let checkouts = repository.users_checkouts().into_iter();
    let files = checkouts.flat_map(|checkout| {
        let files = reviewers.full_paths_in(&checkout.top).into_iter();
        files.filter(|path| !is_tracked(&checkout.top, path)).collect::<Vec<PathBuf>>()
    });
    files.collect()
}

/// Watched items of one worktree. `reviewers` are the commands of reviewers.
pub(super) fn own(repository: &Repository, reviewers: &CommandWords) -> Vec<WatchedItem> {
    let mut items = items(&repository.git_dir, &OWN);
    for module in find_module_dirs(&repository.git_dir) {
        items.extend(self::items(&module, &MODULE));
    }
    items.extend(submodules(repository));
    items.extend(inner_repos::items(repository));
    let Some(top) = &repository.worktree else { return items };
    let named = NamedFiles::find(repository);
    let hooks = named.hooks.iter().filter(|path| path.is_relative());
    items.extend(hooks.flat_map(|hooks| hook_items(top, plain_path(&top.join(hooks)))));
    let files = named.in_worktrees.iter().map(|file| plain_path(&top.join(file)));
    items.extend(files.map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    let (of_git, of_reviewers) = scripts_in(repository, reviewers);
    for (scripts, watch_mode) in [(of_git, WatchMode::GitScript), (of_reviewers, WatchMode::ReviewScript)] {
        items.extend(scripts.into_iter().map(|path| WatchedItem { path, watch_mode }));
    }
    // A landing brings them to the checkout in which git reads them.
    let checkouts = UsersCheckouts::of(repository);
    let files = named.files.iter().filter_map(|file| checkouts.counterpart(file));
    items.extend(files.map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    let hooks = named.hooks.iter().filter(|path| path.is_absolute());
    let hooks = hooks.filter_map(|hooks| checkouts.counterpart(&safe_files::resolved(hooks)));
    items.extend(hooks.flat_map(|hooks| hook_items(top, hooks)));
    let of_others = NamedFiles::find_of_others(repository);
    // Files that only the configuration of another repository includes are in no other guard's list.
    let real_top = safe_files::resolved(top);
    let here = |file: &Path| {
        let inner = file.strip_prefix(&real_top).ok().filter(|inner| !inner.starts_with(".git"));
        inner.map(|inner| top.join(inner))
    };
    for path in of_others.iter().filter_map(|file| here(file).or_else(|| checkouts.counterpart(file))) {
        let mut found = if path.is_dir() {
            hook_items(top, path)
        } else {
            vec![WatchedItem { path, watch_mode: WatchMode::OtherConfig }]
        };
        items.append(&mut found);
    }
    items
}

/// The user's other checkouts. They are listed when they are needed for the first time, because that reads a file of each
/// worktree.
struct UsersCheckouts<'a> {
    repository: &'a Repository,
    listed: OnceCell<Vec<UsersCheckout>>,
}

impl<'a> UsersCheckouts<'a> {
    fn of(repository: &'a Repository) -> Self {
        Self { repository, listed: OnceCell::new() }
    }

    /// The path in this worktree of something in a checkout of the user; `None` in that checkout itself.
    fn counterpart(&self, path: &Path) -> Option<PathBuf> {
        let top = self.repository.worktree.as_ref()?;
        let checkouts = self.listed.get_or_init(|| self.repository.users_checkouts());
        // A worktree may be inside of another checkout.
        let inner = checkouts.iter().filter_map(|checkout| path.strip_prefix(&checkout.top).ok());
        let inner = inner.min_by_key(|inner| inner.components().count())?;
        let is_tracked = !path.starts_with(top) && !inner.starts_with(".git");
        is_tracked.then(|| top.join(inner))
    }
}

/// The scripts in a worktree that git runs, and those that reviewers run.
pub(super) fn scripts_in(
    repository: &Repository,
    reviewers: &CommandWords,
) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let Some(top) = &repository.worktree else { return Default::default() };
    let mut of_git = NamedFiles::find(repository).programs.files_in(top);
    let checkouts = UsersCheckouts::of(repository);
    let linked = linked_hooks(repository).into_iter().filter_map(|hook| checkouts.counterpart(&hook));
    of_git.extend(linked.flat_map(|hook| scripts::trail_of(top, &hook)));
    (of_git, reviewers.files_in(top))
}

/// The files to which links in the folder of hooks lead.
fn linked_hooks(repository: &Repository) -> Vec<PathBuf> {
    let entries = safe_files::list_kinds(&repository.common_dir.join("hooks")).unwrap_or_default();
    let links = entries.into_iter().filter(|entry| entry.kind == FileKind::Link);
    links.filter_map(|link| link.path.canonicalize().ok()).collect()
}

/// The `.git` of each submodule in the worktree. A repository that is put there has its own settings, which git obeys
/// as soon as it looks into the submodule.
fn submodules(repository: &Repository) -> Vec<WatchedItem> {
    let Some(top) = &repository.worktree else { return Vec::new() };
    connections(top, known_gitlinks(repository))
}

/// The files that connect the user's checkouts with their repositories. An agent in a lane must not change them, because
/// git runs programs of the repository behind them as soon as the user calls `git status`.
pub(super) fn users(repository: &Repository) -> Vec<WatchedItem> {
    let checkouts = repository.users_checkouts();
    checkouts.iter().flat_map(|checkout| users_checkout(repository, checkout)).collect()
}

fn users_checkout(repository: &Repository, checkout: &UsersCheckout) -> Vec<WatchedItem> {
    let mut gitlinks = known_gitlinks(repository);
    gitlinks.extend(repository.list_gitlinks_at(&checkout.git_dir).unwrap_or_default());
    let mut items = connections(&checkout.top, gitlinks);
    let NamedFiles { hooks, in_worktrees, .. } = NamedFiles::find(repository);
    let hooks = untracked(repository, hooks).map(|hooks| folder(plain_path(&checkout.top.join(hooks))));
    items.extend(hooks);
    let files = untracked(repository, in_worktrees).map(|file| plain_path(&checkout.top.join(file)));
    items.extend(files.map(|path| WatchedItem { path, watch_mode: WatchMode::Whole }));
    if checkout.git_dir != repository.common_dir {
        items.push(WatchedItem { path: checkout.top.join(".git"), watch_mode: WatchMode::Submodule });
        for module in find_module_dirs(&checkout.git_dir) {
            items.extend(self::items(&module, &MODULE));
        }
    }
    items
}

/// Those of these paths that are in each checkout and not tracked, such as the folder of hooks that `husky` makes. Tracked
/// ones are left out: landings change them, and `git status` shows what an agent does to them.
fn untracked(repository: &Repository, paths: Vec<PathBuf>) -> impl Iterator<Item = PathBuf> {
    paths.into_iter().filter(|path| {
        let in_tree: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let find = |commit| repository.find_path(commit, in_tree.to_str()?).ok();
        path.is_relative()
            && in_tree != Path::new("")
            && matches!(repository.head.commit.and_then(find), Some(None))
    })
}

fn connections(top: &Path, gitlinks: BTreeSet<Vec<u8>>) -> Vec<WatchedItem> {
    let mut items = Vec::new();
    for path in gitlinks {
        let path = top.join(OsStr::from_bytes(&path)).join(".git");
        if safe_files::kind_of(&path) == Some(FileKind::Folder) {
            items.extend(self::items(&path, &MODULE));
        }
        items.push(WatchedItem { path, watch_mode: WatchMode::Submodule });
    }
    items
}

/// The paths of submodules: those of the commit when the first child began, and all that an index contained since. A
/// path that a child removes from the index stays known.
pub(super) fn known_gitlinks(repository: &Repository) -> BTreeSet<Vec<u8>> {
    static GITLINKS: Mutex<BTreeMap<PathBuf, BTreeSet<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut known = GITLINKS.hold();
    let known = known.entry(repository.common_dir.clone()).or_insert_with(|| {
        let tree = repository.head.commit.and_then(|commit| repository.tree_of(commit).ok());
        let found = tree.and_then(|tree| repository.list_gitlinks_of(tree).ok());
        found.unwrap_or_default().into_iter().collect()
    });
    known.extend(repository.list_gitlinks().unwrap_or_default());
    known.clone()
}

pub(super) fn items(folder: &Path, list: &[(&str, WatchMode)]) -> Vec<WatchedItem> {
    list.iter()
        .map(|(name, watch_mode)| WatchedItem { path: folder.join(name), watch_mode: *watch_mode })
        .collect()
}

pub(super) fn folder(path: PathBuf) -> WatchedItem {
    WatchedItem { path, watch_mode: WatchMode::Folder }
}
