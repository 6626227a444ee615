//! The git directories of linked worktrees (`worktrees/*`), as this process knows them. Their settings and what leads from
//! there to the repository are watched while child processes run, but this process makes and removes worktrees itself
//! meanwhile. So each of our own changes is made and noted under one lock, and whoever compares holds the same lock: nobody
//! ever compares with one that is half made or half removed by us.
//!
//! One that appears while a child runs and that is not ours may be the user's or of another process of ours; a child may
//! have made it as well. It stays, but this process never uses it, and it may bring no settings of its own. A worktree
//! that another process holds, or that git is still making, is treated in the same way: the other process compares it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{GitCommand, GitError, Repository, worktrees::top_of_home};
use crate::{
    process::FileLock,
    safe_files::{self, FileKind},
};

/// Run programs, lead git to another repository or to another worktree, or tell whose it is.
const WATCHED: [&str; 4] = ["config.worktree", "commondir", "gitdir", LOCKED];
/// The reason that a worktree is locked with.
const LOCKED: &str = "locked";
/// How the reasons begin that our worktrees are locked with.
const OURS: &[u8] = b"arborist";
/// The reason that git locks a worktree with while it makes it.
const BEING_MADE: &[u8] = b"initializing";
/// Leaves out files of a sparse checkout. We write it ourselves where lanes are filled.
const SPARSE: &str = "info/sparse-checkout";
/// In the git directory of a submodule of the worktree: what runs programs or hides files there.
const MODULE: [&str; 5] = ["config", "config.worktree", "commondir", "info/attributes", "info/exclude"];
/// So deep below `modules` the git directories of submodules are looked for: their names may have slashes.
const DEPTH: usize = 6;
/// Must stay a file. Its content changes all the time.
const HEAD: &str = "HEAD";
/// Larger files of settings are not kept, so a change of one cannot be put back.
const LARGEST: u64 = 1024 * 1024;
/// So long another process may take to remove a worktree: git removes its files one after the other, and fails if one of
/// them comes back meanwhile. On a busy machine that takes a while.
const REMOVAL: Duration = Duration::from_secs(1);
/// After so many seconds without a change the stamp of a file is believed: clocks of file systems tick slowly.
const SETTLED: i64 = 1;

/// The tables of this process, by the common git directory of their repository.
static TABLES: LazyLock<Mutex<HashMap<PathBuf, Homes>>> = LazyLock::new(Mutex::default);

/// What is known of one repository. Copies share it.
#[derive(Debug, Clone, Default)]
struct Homes(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// Whether a child process has begun: before that there is nothing to compare with.
    is_begun: bool,
    known: BTreeMap<PathBuf, Home>,
    /// Those that appeared while a child ran, and that this process did not make.
    strange: BTreeSet<PathBuf>,
    /// Those that this process is about to fill with files and submodules.
    floating: BTreeMap<PathBuf, usize>,
    /// What was put back since the process began, in sentences.
    changes: Vec<String>,
}

/// The watched files of one git directory.
#[derive(Debug, Clone)]
struct Home {
    files: [Watched; WATCHED.len()],
    head: Content,
    /// What git changes while a worktree is filled, by its path. Only we fill ours: in others the user may.
    filling: BTreeMap<PathBuf, Content>,
    modules: BTreeSet<PathBuf>,
}

/// A git directory that this process fills. From when this is dropped on it is compared with what it is then.
#[derive(Debug)]
pub struct FloatingHome {
    homes: Homes,
    home: PathBuf,
}

impl Drop for FloatingHome {
    fn drop(&mut self) {
        let mut table = self.homes.lock();
        if let Some(count) = table.floating.get_mut(&self.home) {
            *count -= 1;
            if *count == 0 {
                table.floating.remove(&self.home);
            }
        }
        let now = Home::read(&self.home);
        if let Some(known) = table.known.get_mut(&self.home) {
            (known.filling, known.modules) = (now.filling, now.modules);
        }
    }
}

#[derive(Debug, Clone)]
struct Watched {
    name: &'static str,
    content: Content,
    /// What the file is known by, once that can be believed.
    stamp: Option<Stamp>,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Nothing,
    File { bytes: Vec<u8>, mode: u32 },
    Other,
}

/// What tells one writing of a file from the next: file, size, mode, and the time of change, which only the system sets.
type Stamp = (u64, u64, u32, (i64, i64));

/// A child process that is about to run: what is put back from now on is its doing, or that of one beside it.
#[derive(Debug)]
pub struct HomeWatch {
    repository: Repository,
    known: usize,
}

impl HomeWatch {
    /// Puts back what was changed, and says what was put back since the watch began.
    #[must_use]
    pub fn restore(&self) -> Vec<String> {
        let homes = Homes::of(&self.repository);
        let mut table = homes.lock();
        table.inspect(&self.repository);
        table.changes.iter().skip(self.known).cloned().collect()
    }
}

impl Repository {
    /// A child process begins. If no other is at work, what the user did to worktrees since the last one is accepted.
    #[must_use]
    pub fn watch_homes(&self, is_alone: bool) -> HomeWatch {
        let homes = Homes::of(self);
        let mut table = homes.lock();
        if is_alone || !table.is_begun {
            table.learn(self);
        } else {
            table.inspect(self);
        }
        HomeWatch { repository: self.clone(), known: table.changes.len() }
    }

    /// Fills the worktree that this is seen from: its submodules and what is left out of it are ours to change until what is
    /// returned is dropped.
    #[must_use]
    pub fn float_home(&self) -> FloatingHome {
        let homes = Homes::of(self);
        let mut table = homes.lock();
        // What somebody else did there is put back before any git of ours looks into a submodule.
        if table.is_begun {
            table.inspect(self);
        }
        *table.floating.entry(self.git_dir.clone()).or_default() += 1;
        drop(table);
        FloatingHome { homes, home: self.git_dir.clone() }
    }

    /// Whether the git directory of a worktree has appeared since the first child process began, and this process neither
    /// made it nor has seen it while no child was at work.
    pub(super) fn is_strange_home(&self, home: &Path) -> bool {
        let homes = Homes::of(self);
        let table = homes.lock();
        table.is_begun && !table.known.contains_key(home)
    }

    /// Runs a command that makes a worktree at `top`, and gives its git directory.
    pub(super) fn make_home(&self, top: &Path, command: GitCommand) -> Result<PathBuf, GitError> {
        let homes = Homes::of(self);
        let mut table = homes.lock();
        let before: BTreeSet<PathBuf> = list(self).into_iter().collect();
        command.stdout()?;
        let is_made = |home: &PathBuf| {
            !before.contains(home) && top_of_home(home).is_some_and(|found| same(&found, top))
        };
        let mut made = list(self).into_iter().filter(is_made);
        // Of two that lead to the same place only one is ours, and the other was made in this very moment.
        let (Some(home), None) = (made.next(), made.next()) else {
            let what = format!("no git directory of its own for '{}'", top.display());
            return Err(GitError::Strange { command: "worktree add".into(), what });
        };
        table.strange.remove(&home);
        table.refuse_settings(self, &home);
        table.known.insert(home.clone(), Home::read(&home));
        Ok(home)
    }

    /// Runs something that removes worktrees or changes where they are.
    pub fn change_homes<T>(&self, work: impl FnOnce() -> T) -> T {
        let homes = Homes::of(self);
        let mut table = homes.lock();
        let before = places(table.known.keys());
        let done = work();
        let after = places(before.keys());
        for (home, now) in after {
            if now.is_none() && safe_files::kind_of(&home).is_none() {
                table.known.remove(&home);
            } else if before.get(&home) != Some(&now) {
                table.known.insert(home.clone(), Home::read(&home));
            }
        }
        done
    }
}

impl Homes {
    fn of(repository: &Repository) -> Self {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.entry(repository.common_dir.clone()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Takes everything for known that is there now, but what was strange before.
    fn learn(&mut self, repository: &Repository) {
        self.is_begun = true;
        let now = list(repository);
        self.strange.retain(|home| now.contains(home));
        let mut before = std::mem::take(&mut self.known);
        let is_ours_to_know = |home: &PathBuf| {
            !self.strange.contains(home) && is_made(home) && !is_held_elsewhere(repository, home)
        };
        for home in now.into_iter().filter(is_ours_to_know) {
            let is_same = |known: &Home| {
                known.is_unchanged(&home) && Home::read_filling(&home) == known.filling_parts()
            };
            let known = before.remove(&home).filter(is_same).unwrap_or_else(|| Home::read(&home));
            self.known.insert(home, known);
        }
    }

    fn inspect(&mut self, repository: &Repository) {
        let now = list(repository);
        // A worktree that was removed takes its git directory with it.
        self.known.retain(|home, _| now.contains(home));
        self.strange.retain(|home| now.contains(home));
        for home in now {
            let is_filled = !self.floating.contains_key(&home);
            let is_changed = |known: &&Home| {
                !known.is_unchanged(&home)
                    || (is_filled && Home::read_filling(&home) != known.filling_parts())
            };
            match self.known.get(&home).filter(is_changed).cloned() {
                // Another run has claimed a lane that was free.
                Some(_) if is_held_elsewhere(repository, &home) => {
                    self.known.remove(&home);
                    self.clean(repository, &home);
                }
                Some(known) => self.put_back(repository, &home, &known),
                None if self.known.contains_key(&home) => {}
                None => self.clean(repository, &home),
            }
        }
    }

    fn put_back(&mut self, repository: &Repository, home: &Path, known: &Home) {
        await_removal(home, known);
        if safe_files::kind_of(home).is_none() {
            self.known.remove(home);
            return;
        }
        for Watched { name, content, .. } in &known.files {
            let file = home.join(name);
            let after = Content::of(&file);
            if !is_same(name, content, &after) {
                self.changes.push(put_back(repository, &file, content, &after));
            }
        }
        let file = home.join(HEAD);
        let after = Content::of(&file);
        if !known.head.is_same_sort(&after) {
            self.changes.push(put_back(repository, &file, &known.head, &after));
        }
        if !self.floating.contains_key(home) {
            self.put_back_filling(repository, home, known);
        }
    }

    fn put_back_filling(&mut self, repository: &Repository, home: &Path, known: &Home) {
        for module in modules_in(home).difference(&known.modules) {
            self.changes.push(move_away(repository, module));
        }
        let now = Home::read_filling(home).0;
        let paths: BTreeSet<&PathBuf> = known.filling.keys().chain(now.keys()).collect();
        for path in paths {
            let before = known.filling.get(path).unwrap_or(&Content::Nothing);
            let after = Content::of(path);
            // A submodule that is gone is looked into by nobody.
            let is_gone = after == Content::Nothing && path.parent().is_none_or(|folder| !folder.exists());
            if after != *before && !is_gone {
                self.changes.push(put_back(repository, path, before, &after));
            }
        }
    }

    /// One that is not ours may bring no settings, and must not lead to a place that has a git directory.
    fn clean(&mut self, repository: &Repository, home: &Path) {
        let top = top_of_home(home);
        if top.is_some() && self.known.keys().any(|known| top_of_home(known) == top) {
            self.changes.push(move_away(repository, home));
            return;
        }
        self.strange.insert(home.to_owned());
        self.refuse_settings(repository, home);
    }

    /// Moves settings away that git did not copy there from another worktree.
    fn refuse_settings(&mut self, repository: &Repository, home: &Path) {
        let file = home.join(WATCHED[0]);
        if !self.is_copied(repository, &file) {
            self.changes.push(move_away(repository, &file));
        }
    }

    /// Whether every line of a file of settings stands in that of a worktree that is known, as git copies them.
    fn is_copied(&self, repository: &Repository, file: &Path) -> bool {
        let bytes = match Content::of(file) {
            Content::Nothing => return true,
            Content::Other => return false,
            Content::File { bytes, .. } => bytes,
        };
        let main = Content::of(&repository.common_dir.join(WATCHED[0]));
        let known = self.known.values().map(|home| &home.files[0].content).chain([&main]);
        known.into_iter().any(|known| match known {
            Content::File { bytes: known, .. } => {
                let lines: BTreeSet<&[u8]> = known.split(|byte| *byte == b'\n').collect();
                bytes.split(|byte| *byte == b'\n').all(|line| line.is_empty() || lines.contains(line))
            }
            _ => false,
        })
    }
}

impl Home {
    fn read(home: &Path) -> Self {
        let file = |name: &'static str| {
            let path = home.join(name);
            // The stamp comes first: what is written in between is found by its content.
            let stamp = stamp_of(&path).filter(is_settled);
            Watched { name, content: Content::of(&path), stamp }
        };
        let (filling, modules) = Self::read_filling(home);
        Self { files: WATCHED.map(file), head: Content::of(&home.join(HEAD)), filling, modules }
    }

    fn read_filling(home: &Path) -> (BTreeMap<PathBuf, Content>, BTreeSet<PathBuf>) {
        let is_ours = safe_files::read(&home.join(LOCKED)).is_ok_and(|reason| reason.starts_with(OURS));
        if !is_ours {
            return (BTreeMap::new(), BTreeSet::new());
        }
        let modules = modules_in(home);
        let files = modules.iter().flat_map(|module| MODULE.map(|name| module.join(name)));
        let contents = files.chain([home.join(SPARSE)]).map(|file| (file.clone(), Content::of(&file)));
        (contents.filter(|(_, content)| *content != Content::Nothing).collect(), modules)
    }

    fn filling_parts(&self) -> (BTreeMap<PathBuf, Content>, BTreeSet<PathBuf>) {
        (self.filling.clone(), self.modules.clone())
    }

    fn is_unchanged(&self, home: &Path) -> bool {
        let is_same = |watched: &Watched| {
            let path = home.join(watched.name);
            (watched.stamp.is_some() && stamp_of(&path) == watched.stamp)
                || self::is_same(watched.name, &watched.content, &Content::of(&path))
        };
        self.files.iter().all(is_same) && self.head.is_same_sort(&Content::of(&home.join(HEAD)))
    }
}

impl Content {
    fn of(path: &Path) -> Self {
        let Ok(found) = path.symlink_metadata() else { return Self::Nothing };
        match safe_files::read_up_to(path, LARGEST) {
            Ok(bytes) => Self::File { bytes, mode: found.permissions().mode() & 0o7777 },
            Err(_) if safe_files::kind_of(path).is_none() => Self::Nothing,
            Err(_) => Self::Other,
        }
    }

    fn is_lock_of_ours(&self) -> bool {
        matches!(self, Self::File { bytes, .. } if bytes.starts_with(OURS))
    }

    fn is_same_sort(&self, other: &Self) -> bool {
        !matches!(self, Self::File { .. }) || matches!(other, Self::File { .. })
    }
}

/// Whether a watched file is as it was. Users lock and unlock worktrees of their own as they like.
fn is_same(name: &str, before: &Content, after: &Content) -> bool {
    before == after || (name == LOCKED && !before.is_lock_of_ours() && !after.is_lock_of_ours())
}

/// Whether git is done with making a worktree: it writes one file after the other.
fn is_made(home: &Path) -> bool {
    let is_written = |name: &str| safe_files::read(&home.join(name)).is_ok_and(|bytes| !bytes.is_empty());
    let is_being_made = || safe_files::read(&home.join(LOCKED)).is_ok_and(|why| why.starts_with(BEING_MADE));
    ["commondir", "gitdir", HEAD].into_iter().all(is_written) && !is_being_made()
}

/// Whether another process of ours has claimed the worktree.
fn is_held_elsewhere(repository: &Repository, home: &Path) -> bool {
    let holder = top_of_home(home).and_then(|top| FileLock::find_holder(&repository.worktree_lock(&top)));
    holder.is_some_and(|holder| holder.pid != std::process::id())
}

/// The git directories of the submodules of a worktree.
fn modules_in(home: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![(home.join("modules"), 0)];
    while let Some((folder, depth)) = open.pop() {
        if safe_files::kind_of(&folder.join(HEAD)).is_some() {
            open.push((folder.join("modules"), depth));
            found.insert(folder);
        } else if depth < DEPTH && safe_files::kind_of(&folder) == Some(FileKind::Folder) {
            let entries = safe_files::list_kinds(&folder).unwrap_or_default().into_iter();
            let folders = entries.filter(|entry| entry.kind == FileKind::Folder);
            open.extend(folders.map(|entry| (entry.path, depth + 1)));
        }
    }
    found
}

/// Another process may be half-way through removing the worktree.
fn await_removal(home: &Path, known: &Home) {
    let end = Instant::now() + REMOVAL;
    let was_there = |content: &Content| *content != Content::Nothing;
    let files = known.files.iter().filter(|file| was_there(&file.content)).map(|file| file.name);
    let names: Vec<&str> = files.chain(was_there(&known.head).then_some(HEAD)).collect();
    let is_going = || names.iter().any(|name| safe_files::kind_of(&home.join(name)).is_none());
    while safe_files::kind_of(home).is_some() && is_going() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
}

fn put_back(repository: &Repository, file: &Path, before: &Content, after: &Content) -> String {
    let shown = shown(repository, file);
    let clear = match (before, after) {
        (_, Content::Nothing) => Ok(()),
        (_, Content::Other) => safe_files::rename(file, &free_place(repository)),
        _ => safe_files::remove(file),
    };
    let write = || match before {
        Content::Nothing => Ok(()),
        Content::File { bytes, mode } => safe_files::write_with_mode(file, bytes, *mode),
        Content::Other => Err(std::io::Error::other("no copy of it was kept")),
    };
    match clear.and_then(|()| write()) {
        Ok(()) if *before == Content::Nothing => format!("{shown} was added while it ran"),
        Ok(()) => format!("{shown} was changed while it ran"),
        Err(error) => format!("{shown} was changed while it ran, and could not be put back: {error}"),
    }
}

fn move_away(repository: &Repository, path: &Path) -> String {
    let (shown, free) = (shown(repository, path), free_place(repository));
    match safe_files::rename(path, &free) {
        Ok(()) => format!("{shown} was added while it ran: it is kept in {}", free.display()),
        Err(error) => format!("{shown} was added while it ran, and could not be moved away: {error}"),
    }
}

/// A name for something that is moved away.
pub(super) fn free_place(repository: &Repository) -> PathBuf {
    let aside = repository.common_dir.join("replaced");
    let free = (1..).map(|number: u32| aside.with_extension(number.to_string()));
    free.into_iter().find(|free| free.symlink_metadata().is_err()).unwrap_or(aside)
}

fn shown(repository: &Repository, path: &Path) -> String {
    let inside = path.strip_prefix(&repository.common_dir).unwrap_or(path);
    crate::message::visible(&inside.to_string_lossy())
}

/// Where the git directories of linked worktrees lead, as far as they are there.
fn places<'a>(homes: impl Iterator<Item = &'a PathBuf>) -> BTreeMap<PathBuf, Option<PathBuf>> {
    homes.map(|home| (home.clone(), top_of_home(home))).collect()
}

fn list(repository: &Repository) -> Vec<PathBuf> {
    let entries = safe_files::list(&repository.common_dir.join("worktrees")).unwrap_or_default();
    entries.into_iter().filter(|entry| entry.kind == FileKind::Folder).map(|entry| entry.path).collect()
}

/// Whether two paths are the same place, also where a folder above is reached through a link of the user's.
fn same(one: &Path, other: &Path) -> bool {
    one.as_os_str().as_bytes() == other.as_os_str().as_bytes()
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    let found = path.symlink_metadata().ok()?;
    Some((found.ino(), found.size(), found.mode(), (found.ctime(), found.ctime_nsec())))
}

fn is_settled((_, _, _, (seconds, _)): &Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).is_ok_and(|now| now > seconds.saturating_add(SETTLED))
}
