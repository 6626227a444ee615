//! Watches the git directories of linked worktrees (`worktrees/*`). Their settings, and the files that connect them
//! with the repository and the worktree, are compared while child processes run. But this process also adds and removes
//! worktrees during that time. So each change of ours is made and recorded under one lock, and every comparison holds
//! the same lock: none of our half-finished changes is ever compared.
//!
//! A git directory that appears while a child runs and that is not ours may be the user's or that of another driver; a
//! child may have made it as well. It stays, but this process never uses it, and it may contain no settings of its own.
//! A worktree that another process holds, or that git is still creating, is treated in the same way: the other process
//! compares it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use crate::{
    git::{
        GitCommand, GitError, Repository,
        files::planted_repositories::has_own_commondir,
        move_aside,
        worktrees::{submodules::find_module_dirs, top_of_git_dir, worktree_link::WorktreeLink},
    },
    mutex::MutexExt,
    process::FileLock,
    safe_files::{self, ChangeStamp, FileKind},
};

/// Files that can run programs, lead git to another repository or worktree, or say whose worktree it is.
const WATCHED: [&str; 4] = ["config.worktree", "commondir", "gitdir", LOCKED];
/// The file with the reason why a worktree is locked.
const LOCKED: &str = "locked";
/// The prefix of the reasons with which our worktrees are locked.
const OUR_LOCK_PREFIX: &[u8] = b"arborist";
/// The reason with which git locks a worktree while it creates it.
const BEING_MADE: &[u8] = b"initializing";
/// When a child process of the run changed something.
const DURING: &str = "while an agent or a command ran";
/// The patterns of a sparse checkout. We write them ourselves when lanes are filled.
const SPARSE: &str = "info/sparse-checkout";
/// Files in the git directory of a submodule that can run programs or hide files.
const MODULE_FILES: [&str; 5] = ["config", "config.worktree", "commondir", "info/attributes", "info/exclude"];
/// This must stay a file. Its content may change.
const HEAD: &str = "HEAD";
/// The content of larger settings files is not kept, so that changes of them cannot be undone.
const LARGEST_SETTINGS_FILE: u64 = 1024 * 1024;
/// How long another process may take to remove a worktree. git removes its files one after the other, and fails if one
/// of them is created again meanwhile.
pub(in crate::git) const REMOVAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The tables of this process, by common git directory.
static TABLES: LazyLock<Mutex<HashMap<PathBuf, GitDirTable>>> = LazyLock::new(Mutex::default);

/// The table of one repository. Clones share it.
#[derive(Debug, Clone, Default)]
struct GitDirTable(Arc<Mutex<GitDirStates>>);

#[derive(Debug, Default)]
struct GitDirStates {
    /// Whether a child process has started. Before that, there is nothing to compare with.
    has_child_started: bool,
    recorded: BTreeMap<PathBuf, GitDirState>,
    /// Git directories that appeared while a child ran and were not made by this process.
    unknown: BTreeSet<PathBuf>,
    /// Git directories that this process is filling with files and submodules, with the number of [`ExemptGitDir`]s.
    exempt: BTreeMap<PathBuf, usize>,
    /// Messages about everything that was restored since the process started.
    changes: Vec<String>,
}

/// The recorded content of one git directory.
#[derive(Debug, Clone)]
struct GitDirState {
    files: [Watched; WATCHED.len()],
    head: Content,
    /// The `.git` in the worktree, which leads git here.
    link: Option<WorktreeLink>,
    /// Files that git changes while a worktree is filled. They are recorded only for our worktrees: the user may change
    /// others.
    fill_files: BTreeMap<PathBuf, Content>,
    modules: BTreeSet<PathBuf>,
}

/// Exempts a git directory that this process fills from the comparison. When it is dropped, the present content is
/// recorded.
#[derive(Debug)]
pub struct ExemptGitDir {
    tables: GitDirTable,
    git_dir: PathBuf,
}

impl Drop for ExemptGitDir {
    fn drop(&mut self) {
        let mut table = self.tables.lock();
        if let Some(count) = table.exempt.get_mut(&self.git_dir) {
            *count -= 1;
            if *count == 0 {
                table.exempt.remove(&self.git_dir);
            }
        }
        let now = GitDirState::read(&self.git_dir);
        if let Some(recorded) = table.recorded.get_mut(&self.git_dir) {
            (recorded.fill_files, recorded.modules) = (now.fill_files, now.modules);
        }
    }
}

#[derive(Debug, Clone)]
struct Watched {
    name: &'static str,
    content: Content,
    /// The stamp of the file, once it can be trusted.
    stamp: Option<ChangeStamp>,
}

/// The content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Nothing,
    File { bytes: Vec<u8>, mode: u32 },
    Other,
}

/// Watches git directories while a child process runs. Everything that is restored after its start was changed by this
/// child, or by another one at the same time.
#[derive(Debug)]
pub struct GitDirWatch {
    repository: Repository,
    recorded: usize,
}

impl GitDirWatch {
    /// Restores what was changed. Returns messages about everything that was restored since the watch started.
    #[must_use]
    pub fn restore(&self) -> Vec<String> {
        let tables = GitDirTable::of(&self.repository);
        let mut table = tables.lock();
        table.restore_all(&self.repository);
        table.changes.iter().skip(self.recorded).cloned().collect()
    }
}

/// What is done with git directories that changed before a child process starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierChanges {
    /// No other child is running, so the user made them.
    Accept,
    /// Another child may have made them.
    Restore,
    /// The running children cannot make any, so they are compared after a child that can.
    Ignore,
}

impl Repository {
    /// Call this before a child process starts.
    #[must_use]
    pub fn watch_git_dirs(&self, earlier: EarlierChanges) -> GitDirWatch {
        let tables = GitDirTable::of(self);
        let mut table = tables.lock();
        match earlier {
            _ if !table.has_child_started => table.record_present(self),
            EarlierChanges::Accept => table.record_present(self),
            EarlierChanges::Restore => table.restore_all(self),
            EarlierChanges::Ignore => {}
        }
        GitDirWatch { repository: self.clone(), recorded: table.changes.len() }
    }

    /// Call this before the present worktree is filled: its submodules and sparse patterns are not compared until the
    /// returned value is dropped.
    #[must_use]
    pub fn exempt_git_dir(&self) -> ExemptGitDir {
        let tables = GitDirTable::of(self);
        let mut table = tables.lock();
        // Undo changes of others before any git of ours looks into a submodule.
        if table.has_child_started {
            table.restore_all(self);
        }
        *table.exempt.entry(self.git_dir.clone()).or_default() += 1;
        drop(table);
        ExemptGitDir { tables, git_dir: self.git_dir.clone() }
    }

    /// Whether the git directory of a worktree has appeared since the first child process started, and this process
    /// neither made it nor saw it while no child was running.
    pub(in crate::git) fn is_unknown_git_dir(&self, git_dir: &Path) -> bool {
        let tables = GitDirTable::of(self);
        let table = tables.lock();
        table.has_child_started && !table.recorded.contains_key(git_dir)
    }

    /// Runs a command that adds a worktree at `top`, and returns its git directory.
    pub(in crate::git) fn add_git_dir(&self, top: &Path, command: GitCommand) -> Result<PathBuf, GitError> {
        let tables = GitDirTable::of(self);
        let mut table = tables.lock();
        let before: BTreeSet<PathBuf> = list(self).into_iter().collect();
        command.stdout()?;
        let is_complete = |git_dir: &PathBuf| {
            !before.contains(git_dir) && top_of_git_dir(git_dir).is_some_and(|found| same(&found, top))
        };
        let mut made = list(self).into_iter().filter(is_complete);
        // If two point to the same place, one of them was forged just now.
        let (Some(git_dir), None) = (made.next(), made.next()) else {
            let what = format!("'{}' has no git directory", top.display());
            return Err(GitError::unexpected("worktree add", what));
        };
        // git copies the patterns of a sparse checkout. Tests, gates and reviews need all files of a commit: tasks may have
        // added some that the user's checkout leaves out.
        let sparse = git_dir.join(SPARSE);
        match safe_files::remove(&sparse) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::File { path: sparse.display().to_string(), source });
            }
            _ => {}
        }
        table.unknown.remove(&git_dir);
        table.refuse_settings(self, &git_dir);
        table.recorded.insert(git_dir.clone(), GitDirState::read(&git_dir));
        Ok(git_dir)
    }

    /// Runs something that removes or moves worktrees.
    pub fn change_git_dirs<T>(&self, work: impl FnOnce() -> T) -> T {
        let tables = GitDirTable::of(self);
        let mut table = tables.lock();
        let before = places(table.recorded.keys());
        let done = work();
        let after = places(before.keys());
        for (git_dir, now) in after {
            if now.is_none() && safe_files::kind_of(&git_dir).is_none() {
                table.recorded.remove(&git_dir);
            } else if before.get(&git_dir) != Some(&now) {
                table.recorded.insert(git_dir.clone(), GitDirState::read(&git_dir));
            }
        }
        done
    }
}

/// A checkout that is not the run's own: the main worktree, or a linked one of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsersCheckout {
    /// Its git directory.
    pub git_dir: PathBuf,
    /// Its top folder.
    pub top: PathBuf,
}

impl Repository {
    /// The top folders of all linked worktrees.
    pub(in crate::git) fn list_worktree_tops(&self) -> BTreeSet<PathBuf> {
        list(self).iter().filter_map(|git_dir| top_of_git_dir(git_dir)).collect()
    }

    /// The checkouts of this repository that the user works in, other than this one.
    #[must_use]
    pub fn users_checkouts(&self) -> Vec<UsersCheckout> {
        let main = self.main_top();
        let main = main.map(|top| UsersCheckout { git_dir: self.common_dir.clone(), top: top.to_owned() });
        let linked =
            list(self).into_iter().filter(|git_dir| !is_own_git_dir(git_dir)).filter_map(|git_dir| {
                let top = top_of_git_dir(&git_dir)?;
                Some(UsersCheckout { git_dir, top })
            });
        main.into_iter()
            .chain(linked)
            .filter(|checkout| Some(&checkout.top) != self.worktree.as_ref())
            .collect()
    }
}

/// Whether this is the git directory of a worktree that a run has made. Runs lock their worktrees.
pub(in crate::git) fn is_own_git_dir(git_dir: &Path) -> bool {
    safe_files::read(&git_dir.join(LOCKED)).is_ok_and(|why| why.starts_with(OUR_LOCK_PREFIX))
}

impl GitDirTable {
    fn of(repository: &Repository) -> Self {
        let mut tables = TABLES.hold();
        tables.entry(repository.common_dir.clone()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, GitDirStates> {
        self.0.hold()
    }
}

impl GitDirStates {
    /// Records everything that is there now, except for git directories of unknown origin.
    fn record_present(&mut self, repository: &Repository) {
        self.has_child_started = true;
        let now = list(repository);
        self.unknown.retain(|git_dir| now.contains(git_dir));
        let mut before = std::mem::take(&mut self.recorded);
        let is_ours_to_know = |git_dir: &PathBuf| {
            !self.unknown.contains(git_dir) && is_complete(git_dir) && !is_held_elsewhere(repository, git_dir)
        };
        for git_dir in now.into_iter().filter(is_ours_to_know) {
            let is_same = |recorded: &GitDirState| {
                recorded.is_unchanged(&git_dir) && recorded.is_filling_unchanged(&git_dir)
            };
            let recorded =
                before.remove(&git_dir).filter(is_same).unwrap_or_else(|| GitDirState::read(&git_dir));
            self.recorded.insert(git_dir, recorded);
        }
    }

    fn restore_all(&mut self, repository: &Repository) {
        let now = list(repository);
        // A removed worktree takes its git directory with it.
        self.recorded.retain(|git_dir, _| now.contains(git_dir));
        self.unknown.retain(|git_dir| now.contains(git_dir));
        for git_dir in now {
            let is_filled = !self.exempt.contains_key(&git_dir);
            let is_changed = |recorded: &&GitDirState| {
                !recorded.is_unchanged(&git_dir) || (is_filled && !recorded.is_filling_unchanged(&git_dir))
            };
            match self.recorded.get(&git_dir).filter(is_changed).cloned() {
                // Another run has claimed a free lane.
                Some(_) if is_held_elsewhere(repository, &git_dir) => {
                    self.recorded.remove(&git_dir);
                    self.check_unknown(repository, &git_dir);
                }
                Some(recorded) => self.restore(repository, &git_dir, &recorded),
                None if self.recorded.contains_key(&git_dir) => {}
                None => self.check_unknown(repository, &git_dir),
            }
        }
    }

    fn restore(&mut self, repository: &Repository, git_dir: &Path, recorded: &GitDirState) {
        await_removal(git_dir, recorded);
        if safe_files::kind_of(git_dir).is_none() {
            self.recorded.remove(git_dir);
            return;
        }
        for Watched { name, content, .. } in &recorded.files {
            let file = git_dir.join(name);
            let after = Content::of(&file);
            if !is_same(name, content, &after) {
                self.changes.push(restore(repository, &file, content, &after));
            }
        }
        let file = git_dir.join(HEAD);
        let after = Content::of(&file);
        if !recorded.head.has_same_kind(&after) {
            self.changes.push(restore(repository, &file, &recorded.head, &after));
        }
        self.changes.extend(recorded.link.as_ref().and_then(|link| link.restore(repository)));
        if !self.exempt.contains_key(git_dir) {
            self.put_back_filling(repository, git_dir, recorded);
        }
    }

    fn put_back_filling(&mut self, repository: &Repository, git_dir: &Path, recorded: &GitDirState) {
        for module in find_module_dirs(git_dir).difference(&recorded.modules) {
            self.changes.push(move_away(repository, module));
        }
        let now = GitDirState::read_filling(git_dir, is_own_git_dir(git_dir)).0;
        let paths: BTreeSet<&PathBuf> = recorded.fill_files.keys().chain(now.keys()).collect();
        for path in paths {
            let before = recorded.fill_files.get(path).unwrap_or(&Content::Nothing);
            let after = Content::of(path);
            // The settings of a submodule that is gone are not read.
            let is_gone = after == Content::Nothing && path.parent().is_none_or(|folder| !folder.exists());
            if after != *before && !is_gone {
                self.changes.push(restore(repository, path, before, &after));
            }
        }
    }

    /// A git directory of unknown origin may contain no settings, and must not lead to another repository or to a worktree
    /// that has another one.
    fn check_unknown(&mut self, repository: &Repository, git_dir: &Path) {
        if !has_own_commondir(git_dir) {
            self.changes.push(move_away(repository, git_dir));
            return;
        }
        let top = top_of_git_dir(git_dir);
        if top.is_some() && self.recorded.keys().any(|recorded| top_of_git_dir(recorded) == top) {
            self.changes.push(move_away(repository, git_dir));
            return;
        }
        self.unknown.insert(git_dir.to_owned());
        self.refuse_settings(repository, git_dir);
    }

    /// Moves settings aside that git did not copy from another worktree.
    fn refuse_settings(&mut self, repository: &Repository, git_dir: &Path) {
        let file = git_dir.join(WATCHED[0]);
        if !self.is_copied(repository, &file) {
            self.changes.push(move_away(repository, &file));
        }
    }

    /// Whether every line of a settings file is in that of a known worktree. `git worktree add` copies them.
    fn is_copied(&self, repository: &Repository, file: &Path) -> bool {
        let bytes = match Content::of(file) {
            Content::Nothing => return true,
            Content::Other => return false,
            Content::File { bytes, .. } => bytes,
        };
        let main = Content::of(&repository.common_dir.join(WATCHED[0]));
        let recorded = self.recorded.values().map(|git_dir| &git_dir.files[0].content).chain([&main]);
        recorded.into_iter().any(|recorded| match recorded {
            Content::File { bytes: recorded, .. } => {
                let lines: BTreeSet<&[u8]> = recorded.split(|byte| *byte == b'\n').collect();
                bytes.split(|byte| *byte == b'\n').all(|line| line.is_empty() || lines.contains(line))
            }
            _ => false,
        })
    }
}

impl GitDirState {
    fn read(git_dir: &Path) -> Self {
        let file = |name: &'static str| {
            let path = git_dir.join(name);
            // The stamp is read first: a write in between is then found by its content.
            let stamp = ChangeStamp::at(&path).filter(ChangeStamp::is_settled);
            Watched { name, content: Content::of(&path), stamp }
        };
        let (fill_files, modules) = Self::read_filling(git_dir, is_own_git_dir(git_dir));
        let (head, link) = (Content::of(&git_dir.join(HEAD)), WorktreeLink::read(git_dir));
        Self { files: WATCHED.map(file), head, link, fill_files, modules }
    }

    fn read_filling(git_dir: &Path, is_ours: bool) -> (BTreeMap<PathBuf, Content>, BTreeSet<PathBuf>) {
        if !is_ours {
            return (BTreeMap::new(), BTreeSet::new());
        }
        let modules = find_module_dirs(git_dir);
        let files = modules.iter().flat_map(|module| MODULE_FILES.map(|name| module.join(name)));
        let contents = files.chain([git_dir.join(SPARSE)]).map(|file| (file.clone(), Content::of(&file)));
        (contents.filter(|(_, content)| *content != Content::Nothing).collect(), modules)
    }

    /// Whether the files that git changes while a worktree is filled are unchanged. The others must have been compared.
    fn is_filling_unchanged(&self, git_dir: &Path) -> bool {
        let is_ours = self.files.iter().any(|file| file.name == LOCKED && file.content.is_lock_of_ours());
        let (fill_files, modules) = Self::read_filling(git_dir, is_ours);
        fill_files == self.fill_files && modules == self.modules
    }

    fn is_unchanged(&self, git_dir: &Path) -> bool {
        let is_same = |watched: &Watched| {
            let path = git_dir.join(watched.name);
            (watched.stamp.is_some() && ChangeStamp::at(&path) == watched.stamp)
                || self::is_same(watched.name, &watched.content, &Content::of(&path))
        };
        self.files.iter().all(is_same)
            && self.head.has_same_kind(&Content::of(&git_dir.join(HEAD)))
            && self.link.as_ref().is_none_or(WorktreeLink::is_unchanged)
    }
}

impl Content {
    fn of(path: &Path) -> Self {
        let Ok(found) = path.symlink_metadata() else { return Self::Nothing };
        match safe_files::read_up_to(path, LARGEST_SETTINGS_FILE) {
            Ok(bytes) => Self::File { bytes, mode: found.permissions().mode() & 0o7777 },
            Err(_) if safe_files::kind_of(path).is_none() => Self::Nothing,
            Err(_) => Self::Other,
        }
    }

    fn is_lock_of_ours(&self) -> bool {
        matches!(self, Self::File { bytes, .. } if bytes.starts_with(OUR_LOCK_PREFIX))
    }

    fn has_same_kind(&self, other: &Self) -> bool {
        !matches!(self, Self::File { .. }) || matches!(other, Self::File { .. })
    }
}

/// Whether a watched file is unchanged. Users may lock and unlock their own worktrees.
fn is_same(name: &str, before: &Content, after: &Content) -> bool {
    before == after || (name == LOCKED && !before.is_lock_of_ours() && !after.is_lock_of_ours())
}

/// Whether git has finished creating a worktree: it writes one file after the other.
fn is_complete(git_dir: &Path) -> bool {
    let is_written = |name: &str| safe_files::read(&git_dir.join(name)).is_ok_and(|bytes| !bytes.is_empty());
    let is_being_made =
        || safe_files::read(&git_dir.join(LOCKED)).is_ok_and(|why| why.starts_with(BEING_MADE));
    ["commondir", "gitdir", HEAD].into_iter().all(is_written) && !is_being_made()
}

/// Whether another driver has claimed the worktree.
fn is_held_elsewhere(repository: &Repository, git_dir: &Path) -> bool {
    let holder =
        top_of_git_dir(git_dir).and_then(|top| FileLock::find_holder(&repository.worktree_lock(&top)));
    holder.is_some_and(|holder| holder.pid != std::process::id())
}

/// Waits in case another process is just removing the worktree.
fn await_removal(git_dir: &Path, recorded: &GitDirState) {
    let end = Instant::now() + REMOVAL_TIMEOUT;
    let was_there = |content: &Content| *content != Content::Nothing;
    let files = recorded.files.iter().filter(|file| was_there(&file.content)).map(|file| file.name);
    let names: Vec<&str> = files.chain(was_there(&recorded.head).then_some(HEAD)).collect();
    let is_going = || names.iter().any(|name| safe_files::kind_of(&git_dir.join(name)).is_none());
    while safe_files::kind_of(git_dir).is_some() && is_going() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
}

fn restore(repository: &Repository, file: &Path, before: &Content, after: &Content) -> String {
    let shown = shown(repository, file);
    let clear = match (before, after) {
        (_, Content::Nothing) => Ok(()),
        (_, Content::Other) => move_aside(&repository.common_dir, file).map(drop),
        _ => safe_files::remove(file),
    };
    let write = || match before {
        Content::Nothing => Ok(()),
        Content::File { bytes, mode } => safe_files::write_with_mode(file, bytes, *mode),
        Content::Other => Err(std::io::Error::other("no copy of it was kept")),
    };
    match clear.and_then(|()| write()) {
        Ok(()) if *before == Content::Nothing => format!("{shown} was added {DURING}, and was removed"),
        Ok(()) => format!("{shown} was changed {DURING}, and was restored"),
        Err(error) => format!("{shown} was changed {DURING}, and could not be restored: {error}"),
    }
}

fn move_away(repository: &Repository, path: &Path) -> String {
    let shown = shown(repository, path);
    match move_aside(&repository.common_dir, path) {
        Ok(kept) => format!("{shown} was added {DURING}, and is kept in {}", kept.display()),
        Err(error) => format!("{shown} was added {DURING}, and could not be moved away: {error}"),
    }
}

pub(in crate::git) fn shown(repository: &Repository, path: &Path) -> String {
    let in_git = path.strip_prefix(&repository.common_dir).map(|inside| Path::new(".git").join(inside));
    crate::message::visible(&in_git.as_deref().unwrap_or(path).to_string_lossy())
}

/// The worktrees to which git directories point.
fn places<'a>(tables: impl Iterator<Item = &'a PathBuf>) -> BTreeMap<PathBuf, Option<PathBuf>> {
    tables.map(|git_dir| (git_dir.clone(), top_of_git_dir(git_dir))).collect()
}

fn list(repository: &Repository) -> Vec<PathBuf> {
    let entries = safe_files::list(&repository.common_dir.join("worktrees")).unwrap_or_default();
    entries.into_iter().filter(|entry| entry.kind == FileKind::Folder).map(|entry| entry.path).collect()
}

/// Whether two paths are the same place, even if one of them goes through a link of the user.
fn same(one: &Path, other: &Path) -> bool {
    one.as_os_str().as_bytes() == other.as_os_str().as_bytes()
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
