//! What agents must leave alone although they can reach it: configuration and hooks, which all agents of a repository
//! share, and what leads from a worktree to its repository.

mod copy;
mod links;
mod surface;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use copy::{AtWork, Copy, PathStates};
use links::Links;
use surface::{How, WatchedItem};

use crate::{
    git::{HiddenMarks, HomeWatch, ObjectWatch, OtherWriters, RefWatch, Repository, SettingsChange},
    message::visible,
    process::WorkPlace,
};

/// Watches what agents share while any of them is at work. Who of them changed it cannot be told. So it is put back as
/// it was before the first of them began, and every one that was at work has trespassed.
#[derive(Debug, Clone, Default)]
pub struct ConfigGuard(Arc<Mutex<Post>>);

/// How many agents, reviewers and tests are watched, in all repositories of this process.
static WATCHES: AtomicUsize = AtomicUsize::new(0);
/// How many of them have ever begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Tells whether a child process was the only one in its repository.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours<'r> {
    repository: &'r Repository,
    at_work: usize,
    begun: usize,
    /// Whether another process was in the middle of a run.
    has_others: bool,
}

impl<'r> Neighbours<'r> {
    /// Call this before the child is watched.
    #[must_use]
    pub fn count(repository: &'r Repository) -> Self {
        let (at_work, begun) = (WATCHES.load(Ordering::SeqCst), BEGUN.load(Ordering::SeqCst));
        Self { repository, at_work, begun, has_others: repository.has_other_runs() }
    }

    /// Who is at work now.
    #[must_use]
    pub fn now(self) -> OtherWriters {
        if self.at_work == 0 && !self.has_others { OtherWriters::Alone } else { OtherWriters::Others }
    }

    /// Who has been at work since, beside a child that `own` watches are for.
    #[must_use]
    pub fn since(self, own: usize) -> OtherWriters {
        let others = BEGUN.load(Ordering::SeqCst).saturating_sub(self.begun) > own;
        if others || self.repository.has_other_runs() { OtherWriters::Others } else { self.now() }
    }
}

#[derive(Debug, Default)]
struct Post {
    at_work: usize,
    before: Option<Copy>,
    modules: Modules,
    /// What is watched and never put back, as it was before the first agent of all.
    outside: Option<PathStates>,
    /// Links and queues in the git directories, as they were before the first agent of all.
    links: Option<Links>,
    /// Everything that was put back since the first of them began.
    changes: Vec<String>,
}

/// What is watched for one agent, until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    config_guard: ConfigGuard,
    /// How many changes were known when it began.
    known: usize,
    /// Whether another one was at work then.
    at_work: AtWork,
    place: PlaceWatch,
    homes: HomeWatch,
    objects: ObjectWatch,
    refs: RefWatch,
}

/// What is watched of one worktree, beside what all of them share.
#[derive(Debug)]
pub struct PlaceWatch {
    own: Copy,
    modules: Modules,
    repository: Repository,
    /// Queues and the like that lay in the worktree.
    special: Vec<PathBuf>,
    /// While the child may be at work, no look at the worktree counts for the next one.
    work_place: Mutex<Option<WorkPlace>>,
}

/// The git directories of submodules below a git directory, as they were.
#[derive(Debug, Default)]
struct Modules {
    git_dir: PathBuf,
    known: Vec<PathBuf>,
}

impl ConfigGuard {
    /// An agent begins to work in the worktree of `repository`.
    #[must_use]
    pub fn watch(&self, repository: &Repository) -> ConfigWatch {
        let mut post = self.post();
        BEGUN.fetch_add(1, Ordering::SeqCst);
        let at_work = match WATCHES.fetch_add(1, Ordering::SeqCst) {
            0 => AtWork::Nobody,
            _ => AtWork::Somebody,
        };
        if post.at_work == 0 {
            let (outside, links) = (post.outside.take(), post.links.take());
            *post = Post::begin(repository, (outside, links), at_work);
        } else {
            post.inspect();
        }
        freeze(repository, at_work);
        post.at_work += 1;
        let known = post.changes.len();
        drop(post);
        let place = PlaceWatch::begin(repository, at_work);
        let homes = repository.watch_homes(at_work == AtWork::Nobody);
        let objects = repository.watch_objects();
        ConfigWatch {
            config_guard: self.clone(),
            known,
            at_work,
            place,
            homes,
            objects,
            refs: repository.watch_refs(),
        }
    }

    /// Runs a child process of any kind, and tells what it did that it may not do. That has been undone: whoever reads
    /// anything afterwards reads what was there before. Everything that runs code of a repository goes through here or
    /// through a [`Watch`]: agents, reviewers, tests, baselines, gates, set-up commands, resolvers and hooks.
    pub fn guard<T>(&self, repository: &Repository, child: impl FnOnce() -> T) -> (T, Option<String>) {
        self.guard_all(&[repository], child)
    }

    /// The same for a child that runs in the first of several worktrees and has no business in the others.
    pub fn guard_all<T>(&self, places: &[&Repository], child: impl FnOnce() -> T) -> (T, Option<String>) {
        let watches: Vec<ConfigWatch> = places.iter().map(|place| self.watch(place)).collect();
        let ended = child();
        let mut found: Vec<String> = Vec::new();
        for change in watches.iter().flat_map(ConfigWatch::end) {
            if !found.contains(&change) {
                found.push(change);
            }
        }
        (ended, joined(&found))
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is watched for one agent alone: its git directory, the folder of hooks in its worktree, and the file that leads
/// from there to the repository. Whoever works there can put another in its place, or a repository of their own.
fn own(repository: &Repository, at_work: AtWork) -> Copy {
    let mut items = surface::own(repository);
    let top = repository.worktree.clone();
    items.extend(top.iter().map(|top| WatchedItem { path: top.join(".git"), how: How::Whole }));
    let inside = [Some(repository.git_dir.clone()), top].into_iter().flatten().collect();
    Copy::take(items, inside, aside(&repository.git_dir), at_work)
}

/// Where a folder goes that took the place of something that is watched.
fn aside(git_dir: &Path) -> PathBuf {
    git_dir.join("replaced")
}

impl Post {
    fn begin(
        repository: &Repository,
        (outside, links): (Option<PathStates>, Option<Links>),
        at_work: AtWork,
    ) -> Self {
        let common_dir = &repository.common_dir;
        let inside = [Some(common_dir.clone()), repository.worktree.clone()].into_iter().flatten();
        let inside = inside.chain(surface::log_folders(repository)).collect();
        let mut before = Copy::take(surface::shared(repository), inside, aside(common_dir), at_work);
        // An agent whose change cannot be put back must not have it accepted by the next attempt.
        let outside = before.keep_outside(outside);
        let modules = Modules::find(common_dir);
        let links = Some(Links::begin(common_dir, links));
        Self { at_work: 0, before: Some(before), modules, outside: Some(outside), links, changes: Vec::new() }
    }

    fn inspect(&mut self) {
        if let Some(before) = &self.before {
            self.changes.extend(before.restore());
        }
        self.changes.extend(self.modules.move_new());
        // Last: what is watched more closely has been put back by now.
        self.changes.extend(self.links.as_mut().map(Links::remove_new).unwrap_or_default());
    }
}

impl Modules {
    fn find(git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), known: surface::modules(git_dir) }
    }

    /// The configuration of a submodule runs programs as soon as git looks into it, so one that an agent added is moved.
    fn move_new(&self) -> Vec<String> {
        let new = surface::modules(&self.git_dir).into_iter().filter(|path| !self.known.contains(path));
        new.map(|path| self.move_away(&path)).collect()
    }

    fn move_away(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.git_dir).unwrap_or(path).display();
        let mut free = (1..).map(|n| aside(&self.git_dir).with_extension(n.to_string()));
        let free = free.find(|free| free.symlink_metadata().is_err()).unwrap_or_else(|| aside(&self.git_dir));
        match crate::safe_files::rename(path, &free) {
            Ok(()) => format!("{shown} was added while it ran: it is kept in {}", free.display()),
            Err(error) => format!("{shown} was added while it ran, and could not be moved away: {error}"),
        }
    }
}

impl ConfigWatch {
    /// Another worktree that the same child can reach. Call this before the child begins, and end what is returned after
    /// this: what both worktrees share is looked at only once.
    #[must_use]
    pub fn watch_place(&self, repository: &Repository) -> PlaceWatch {
        PlaceWatch::begin(repository, self.at_work)
    }

    /// The same as [`Watch::restore`] once the child and all that it started have ended: from now on the index can be
    /// believed again.
    pub fn end(&self) -> Vec<String> {
        self.place.leave();
        let found = self.restore();
        settle(&self.place.repository);
        found
    }

    /// Puts back what was changed since it began, and says what it was.
    pub fn restore(&self) -> Vec<String> {
        let mut found = self.place.restore_files();
        let mut post = self.config_guard.post();
        post.inspect();
        found.extend(post.changes.iter().skip(self.known).cloned());
        // One look at the folders of objects is enough for both.
        let folders = post.links.as_ref().map(|links| links.objects().to_vec()).unwrap_or_default();
        drop(post);
        found.extend(self.homes.restore());
        found.extend(self.objects.restore(&folders));
        // Files first: what git is asked from here on is answered by the configuration that was there before.
        found.extend(self.place.remove_special());
        found.extend(self.refs.restore());
        found.dedup();
        found
    }
}

impl PlaceWatch {
    fn begin(repository: &Repository, at_work: AtWork) -> Self {
        // First: the same look tells whether the index can be believed.
        let special = repository.list_special();
        settle(repository);
        let work_place = Mutex::new(repository.worktree.as_deref().map(WorkPlace::begin));
        Self {
            own: own(repository, at_work),
            modules: Modules::find(&repository.git_dir),
            special,
            repository: repository.clone(),
            work_place,
        }
    }

    /// The child has ended.
    fn leave(&self) {
        drop(self.work_place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Puts back what was changed here, once the child has ended, and says what it was.
    pub fn end(&self) -> Vec<String> {
        self.leave();
        let mut found = self.restore_files();
        found.extend(self.remove_special());
        settle(&self.repository);
        found
    }

    fn restore_files(&self) -> Vec<String> {
        let mut found = self.own.restore();
        found.extend(self.modules.move_new());
        found
    }

    fn remove_special(&self) -> Option<String> {
        match self.repository.remove_special(&self.special) {
            Ok(paths) if paths.is_empty() => None,
            Ok(paths) => {
                let shown: Vec<String> = paths.iter().map(|path| visible(&path.to_string_lossy())).collect();
                Some(format!(
                    "it left a queue, a socket, a device or a huge file where a file belongs: {}",
                    shown.join(", ")
                ))
            }
            Err(error) => Some(format!(
                "it left a queue, a socket, a device or a huge file that could not be removed: {error}"
            )),
        }
    }
}

/// Where it cannot be done (a git holds the index, or cannot read it), whoever looks at the worktree believes nothing of it,
/// or finds the same fault.
fn settle(repository: &Repository) {
    let _ = repository.settle_index(HiddenMarks::Kept);
}

/// From here on git obeys only the settings that are there now. Where they cannot be read, git refuses to work.
fn freeze(repository: &Repository, at_work: AtWork) {
    let freeze = match at_work {
        AtWork::Nobody => SettingsChange::Anew,
        AtWork::Somebody => SettingsChange::Once,
    };
    let _ = repository.freeze_settings(freeze);
}

/// What was undone, in one sentence.
pub(in crate::pipeline) fn joined(trespasses: &[String]) -> Option<String> {
    (!trespasses.is_empty()).then(|| trespasses.join("; "))
}

impl Drop for ConfigWatch {
    fn drop(&mut self) {
        let mut post = self.config_guard.post();
        post.at_work -= 1;
        WATCHES.fetch_sub(1, Ordering::SeqCst);
    }
}
