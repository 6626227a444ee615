//! What agents must leave alone although they can reach it: configuration and hooks, which all agents of a repository
//! share, and what leads from a worktree to its repository.

mod copy;
mod links;
mod surface;

use std::{
    collections::HashMap,
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
///
/// There is one for each run, and it watches all repositories of the run for every child: whatever a child is started for,
/// it can write to any of them.
#[derive(Debug, Clone, Default)]
pub struct ConfigGuard(Arc<Mutex<GuardedRepos>>);

/// The repositories that a guard knows.
#[derive(Debug, Default)]
struct GuardedRepos {
    /// What is watched of each, by its common git directory.
    posts: HashMap<PathBuf, Arc<Mutex<Post>>>,
    /// Those that are watched for every child, beside the one that it is started in.
    members: Vec<GuardMember>,
}

impl GuardedRepos {
    fn post(&mut self, repository: &Repository) -> Arc<Mutex<Post>> {
        Arc::clone(self.posts.entry(repository.common_dir.clone()).or_default())
    }

    /// This repository, if it is watched for every child, and the others that are.
    fn members_beside(&self, repository: &Repository) -> (Option<GuardMember>, Vec<GuardMember>) {
        let members = self.members.iter().cloned();
        let (own, others): (Vec<GuardMember>, Vec<GuardMember>) =
            members.partition(|member| member.repository.common_dir == repository.common_dir);
        (own.into_iter().next(), others)
    }
}

/// A repository of a run, as it is seen from where the run works there.
#[derive(Debug, Clone)]
struct GuardMember {
    name: String,
    /// As it was opened before the first child.
    opened: Repository,
    repository: Repository,
    /// Whether the worktree that it is seen from is the run's alone: the user has no business there.
    is_own: bool,
}

impl GuardMember {
    fn place(&self) -> Option<&Repository> {
        self.is_own.then_some(&self.repository)
    }
}

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
    /// The worktree of the run there, also while no child is started in it.
    place: Option<Copy>,
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
    place: PlaceWatch,
    repo: RepoWatch,
    /// The other repositories of the run, by their names.
    beside: Vec<(String, RepoWatch)>,
}

/// What is watched of one repository, whichever of its worktrees a child is started in.
#[derive(Debug)]
struct RepoWatch {
    post: Arc<Mutex<Post>>,
    /// How many changes were known when it began.
    known: usize,
    homes: HomeWatch,
    objects: ObjectWatch,
    refs: RefWatch,
    /// While the child may be at work, no look at the worktree of the run there counts for the next one.
    work_place: Mutex<Option<WorkPlace>>,
}

/// What is watched of one worktree, beside what all of them share.
#[derive(Debug)]
pub struct PlaceWatch {
    at_work: AtWork,
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
    /// From now on this repository is watched for every child.
    pub fn add(&self, name: &str, repository: &Repository) {
        self.add_member(name, repository, false);
    }

    /// The same, with the worktree that it is seen from: nobody but children of the run works there.
    pub fn add_place(&self, name: &str, repository: &Repository) {
        self.add_member(name, repository, true);
    }

    fn add_member(&self, name: &str, repository: &Repository, is_own: bool) {
        let mut repos = self.repos();
        let members = &mut repos.members;
        let at = members.iter().position(|known| known.repository.common_dir == repository.common_dir);
        let opened = at.map(|at| members.remove(at).opened).unwrap_or_else(|| repository.clone());
        members.push(GuardMember { name: name.to_owned(), opened, repository: repository.clone(), is_own });
    }

    /// A repository that is watched for every child, as it was opened before the first one: something else may be at its
    /// path by now.
    #[must_use]
    pub fn find_repository(&self, name: &str) -> Option<Repository> {
        let repos = self.repos();
        repos.members.iter().find(|known| known.name == name).map(|known| known.opened.clone())
    }

    /// An agent begins to work in the worktree of `repository`.
    #[must_use]
    pub fn watch(&self, repository: &Repository) -> ConfigWatch {
        // Held until everything is compared with: whoever is the first accepts what is there, and nobody's child may begin
        // between that thought and the look.
        let mut repos = self.repos();
        BEGUN.fetch_add(1, Ordering::SeqCst);
        let at_work = match WATCHES.fetch_add(1, Ordering::SeqCst) {
            0 => AtWork::Nobody,
            _ => AtWork::Somebody,
        };
        let (own, others) = repos.members_beside(repository);
        let own = own.as_ref().and_then(GuardMember::place);
        let repo = RepoWatch::begin(repos.post(repository), (repository, own), at_work);
        let mut beside = Vec::new();
        for member in others {
            let post = repos.post(&member.repository);
            let watch = RepoWatch::begin(post, (&member.repository, member.place()), at_work);
            beside.push((member.name, watch));
        }
        drop(repos);
        ConfigWatch { place: PlaceWatch::begin(repository, at_work), repo, beside }
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

    fn repos(&self) -> MutexGuard<'_, GuardedRepos> {
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
        (repository, place): (&Repository, Option<&Repository>),
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
        let place = place.map(|place| own(place, at_work));
        let outside = Some(outside);
        Self { at_work: 0, before: Some(before), place, modules, outside, links, changes: Vec::new() }
    }

    fn inspect(&mut self) {
        for before in self.place.iter().chain(&self.before) {
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
        self.place.watch_place(repository)
    }

    /// The same as [`Watch::restore`] once the child and all that it started have ended: from now on the index can be
    /// believed again.
    pub fn end(&self) -> Vec<String> {
        self.place.leave();
        self.beside.iter().for_each(|(_, watch)| watch.leave());
        self.repo.leave();
        let found = self.restore();
        settle(&self.place.repository);
        found
    }

    /// Puts back what was changed since it began, and says what it was.
    pub fn restore(&self) -> Vec<String> {
        let mut found = self.place.restore_files();
        found.extend(self.repo.restore_files());
        let in_repo = |name: &str, found: Vec<String>| {
            let words = found.into_iter().map(|words| format!("in {name}: {words}"));
            words.collect::<Vec<String>>()
        };
        found.extend(self.beside.iter().flat_map(|(name, watch)| in_repo(name, watch.restore_files())));
        // Files first: what git is asked from here on is answered by the configuration that was there before.
        found.extend(self.place.remove_special());
        found.extend(self.repo.refs.restore());
        found.extend(self.beside.iter().flat_map(|(name, watch)| in_repo(name, watch.refs.restore())));
        found.dedup();
        found
    }
}

impl RepoWatch {
    /// A child begins in `repository`, or elsewhere and can reach it. `place` is the worktree of the run there.
    fn begin(
        post: Arc<Mutex<Post>>,
        (repository, place): (&Repository, Option<&Repository>),
        at_work: AtWork,
    ) -> Self {
        let mut known = lock(&post);
        if known.at_work == 0 {
            let before = (known.outside.take(), known.links.take());
            *known = Post::begin((repository, place), before, at_work);
        } else {
            known.inspect();
        }
        freeze(repository, at_work);
        known.at_work += 1;
        let count = known.changes.len();
        drop(known);
        let top = place.and_then(|place| place.worktree.as_deref());
        Self {
            post,
            known: count,
            homes: repository.watch_homes(at_work == AtWork::Nobody),
            objects: repository.watch_objects(),
            refs: repository.watch_refs(),
            work_place: Mutex::new(top.map(WorkPlace::begin)),
        }
    }

    fn leave(&self) {
        drop(self.work_place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Puts back files that git obeys, and says what was put back since it began.
    fn restore_files(&self) -> Vec<String> {
        let mut post = lock(&self.post);
        post.inspect();
        let mut found: Vec<String> = post.changes.iter().skip(self.known).cloned().collect();
        // One look at the folders of objects is enough for both.
        let folders = post.links.as_ref().map(|links| links.objects().to_vec()).unwrap_or_default();
        drop(post);
        found.extend(self.homes.restore());
        found.extend(self.objects.restore(&folders));
        found
    }
}

impl Drop for RepoWatch {
    fn drop(&mut self) {
        lock(&self.post).at_work -= 1;
    }
}

fn lock(post: &Mutex<Post>) -> MutexGuard<'_, Post> {
    post.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlaceWatch {
    fn begin(repository: &Repository, at_work: AtWork) -> Self {
        // First: the same look tells whether the index can be believed.
        let special = repository.list_special();
        settle(repository);
        let work_place = Mutex::new(repository.worktree.as_deref().map(WorkPlace::begin));
        Self {
            at_work,
            own: own(repository, at_work),
            modules: Modules::find(&repository.git_dir),
            special,
            repository: repository.clone(),
            work_place,
        }
    }

    /// Another worktree that the same child can reach.
    #[must_use]
    pub fn watch_place(&self, repository: &Repository) -> Self {
        Self::begin(repository, self.at_work)
    }

    /// The child has ended.
    fn leave(&self) {
        drop(self.work_place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Puts back what was changed here, once the child has ended, and says what it was.
    pub fn end(&self) -> Vec<String> {
        self.leave();
        let found = self.restore();
        settle(&self.repository);
        found
    }

    /// The same while the child is at work.
    pub fn restore(&self) -> Vec<String> {
        let mut found = self.restore_files();
        found.extend(self.remove_special());
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
        WATCHES.fetch_sub(1, Ordering::SeqCst);
    }
}
