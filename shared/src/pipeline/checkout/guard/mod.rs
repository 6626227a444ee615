//! Guards what agents can write but must not change: configuration and hooks, which all worktrees of a repository
//! share, and the files that connect a worktree with its repository.

mod agent_files;
mod around;
mod concurrent;
mod copy;
mod ignored_settings;
mod inner_repos;
mod killed_runs;
mod links;
mod modules;
mod scripts;
mod surface;

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use agent_files::{AgentFiles, AgentWatch};
pub use concurrent::ConcurrentChildren;
use concurrent::{ACTIVE_WATCHES, WATCHES_BEGUN};
use copy::{PathStates, RunningChildren, WatchedCopy};
use ignored_settings::IgnoredSettings;
pub use inner_repos::move_planted_git;
use inner_repos::take_out_gitlinks;
pub use killed_runs::find_changed_since_kill;
use links::Links;
use modules::{BesideWorktrees, CheckoutLinks, Modules};
use scripts::CommandWords;
use surface::{WatchMode, WatchedItem};

use crate::{
    agent::{ProtectedPath, Runner},
    git::{
        EarlierChanges, GitDirWatch, HiddenMarks, ObjectWatch, RefWatch, Repository, SettingsChange,
        UsersMarks,
    },
    message::visible,
    process::{ChildReach, WorkPlace, put_back_locks},
    settings::ReviewsIn,
};

/// Only a build for tests has no guards: it shows what the sandbox stops alone.
const ARE_GUARDS_ON: bool = !cfg!(feature = "without-guards");

/// Watches what agents share while any of them is running. If something changed, it is not known which agent did it. So
/// it is restored to the state before the first of them began, and every agent that was running fails its attempt.
///
/// There is one guard for each run. It watches all repositories of the run for every child, because a child can write
/// to any of them.
#[derive(Debug, Clone, Default)]
pub struct ConfigGuard(Arc<Mutex<GuardedRepos>>);

/// The repositories that a guard knows.
#[derive(Debug, Default)]
struct GuardedRepos {
    /// The state of each repository, by its common git directory.
    repos: HashMap<PathBuf, Arc<Mutex<RepoState>>>,
    /// The repositories that are watched for every child, wherever it runs.
    members: Vec<GuardMember>,
    /// Configuration of the agent programs.
    agent_files: Option<Arc<Mutex<AgentFiles>>>,
    /// The commands of reviewers.
    reviewers: Arc<CommandWords>,
}

impl GuardedRepos {
    fn state(&mut self, repository: &Repository) -> Arc<Mutex<RepoState>> {
        Arc::clone(self.repos.entry(repository.common_dir.clone()).or_default())
    }

    /// This repository, if it is watched for every child, and all others that are.
    fn members_beside(&self, repository: &Repository) -> (Option<GuardMember>, Vec<GuardMember>) {
        let members = self.members.iter().cloned();
        let (own, others): (Vec<GuardMember>, Vec<GuardMember>) =
            members.partition(|member| member.repository.common_dir == repository.common_dir);
        (own.into_iter().next(), others)
    }
}

/// A repository of a run, opened from the checkout in which the run works.
#[derive(Debug, Clone)]
struct GuardMember {
    name: String,
    /// As it was opened before the first child.
    opened: Repository,
    repository: Repository,
    /// Whether that checkout belongs to the run alone, so that the user does not work there.
    is_own: bool,
}

impl GuardMember {
    fn place(&self) -> Option<&Repository> {
        self.is_own.then_some(&self.repository)
    }
}

#[derive(Debug, Default)]
struct RepoState {
    running_children: usize,
    /// Whether a child could have changed the git directory since the first of the running ones began. If bubblewrap keeps
    /// it read-only for all of them, nothing in it is compared: a change there was made by the user.
    reach: Option<ChildReach>,
    before: Option<WatchedCopy>,
    /// The run's worktree there, which is watched even if no child runs in it.
    place: Option<WatchedCopy>,
    modules: Modules,
    checkouts: Vec<CheckoutLinks>,
    /// What is in the folders for worktrees beside these.
    beside: Option<BesideWorktrees>,
    /// Paths outside of the repository, which are watched but never restored, as they were before the first child.
    outside: Option<PathStates>,
    /// Links and named pipes in the git directories, as they were before the first child.
    links: Option<Links>,
    /// Marks in the user's indexes, as they were before the first child.
    marks: Option<UsersMarks>,
    /// Messages about everything that was restored since the first of the running children began.
    changes: Vec<String>,
}

/// Watches everything for one child, until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    place: PlaceWatch,
    repo: RepoWatch,
    /// The other repositories of the run, by their names.
    other_repos: Vec<(String, RepoWatch)>,
    agent_files: Option<AgentWatch>,
}

/// Watches one repository, whichever of its worktrees the child runs in.
#[derive(Debug)]
struct RepoWatch {
    state: Arc<Mutex<RepoState>>,
    /// The number of messages that existed when the child began.
    known: usize,
    homes: GitDirWatch,
    objects: ObjectWatch,
    refs: RefWatch,
    /// While it is set, scans of the run's worktree are not reused, because the child may be writing.
    work_place: Mutex<Option<WorkPlace>>,
}

/// Watches one worktree, in addition to what all worktrees share.
#[derive(Debug)]
pub struct PlaceWatch {
    running_children: RunningChildren,
    own: WatchedCopy,
    modules: Modules,
    /// Settings of the reviewers' programs that git ignores.
    settings: Option<IgnoredSettings>,
    /// The paths of submodules in the index.
    gitlinks: BTreeSet<Vec<u8>>,
    repository: Repository,
    /// The commands of reviewers.
    reviewers: Arc<CommandWords>,
    /// Named pipes and other special files that already were in the worktree.
    special: Vec<PathBuf>,
    /// While it is set, scans of the worktree are not reused, because the child may be writing.
    work_place: Mutex<Option<WorkPlace>>,
}

impl ConfigGuard {
    /// Watches this repository for every child from now on.
    pub fn add(&self, name: &str, repository: &Repository) {
        self.add_member(name, repository, false);
    }

    /// The same, including its worktree, in which only children of the run work.
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

    /// Watches these files of agent programs for every child from now on, as they are now. What an agent put into their
    /// place is kept in `repository`.
    pub fn protect(&self, files: &[ProtectedPath], repository: &Repository) {
        let agent_files = AgentFiles::remember(files, &repository.common_dir);
        self.repos().agent_files.get_or_insert_with(|| Arc::new(Mutex::new(agent_files)));
    }

    /// Watches the scripts that these runners run, in every worktree. If they work in the checkout of the task, their
    /// settings that git ignores are watched there, too.
    pub fn watch_reviewers<'r>(&self, runners: impl Iterator<Item = &'r Runner>, reviews_in: ReviewsIn) {
        let mut words = CommandWords::default();
        for runner in runners {
            words.add(runner.command_parts());
            if reviews_in == ReviewsIn::Checkout {
                words.settings.extend(runner.project_settings());
            }
        }
        self.repos().reviewers = Arc::new(words);
    }

    /// The scripts in a worktree that git or a reviewer runs, and that no child must change.
    #[must_use]
    pub fn list_scripts(&self, repository: &Repository) -> BTreeSet<PathBuf> {
        let reviewers = Arc::clone(&self.repos().reviewers);
        let (mut found, of_reviewers) = surface::scripts_in(repository, &reviewers);
        found.extend(of_reviewers);
        found
    }

    /// A repository that is watched for every child, as it was opened before the first one. A child may have replaced
    /// what is at its path since then.
    #[must_use]
    pub fn find_repository(&self, name: &str) -> Option<Repository> {
        let repos = self.repos();
        repos.members.iter().find(|known| known.name == name).map(|known| known.opened.clone())
    }

    /// Begins to watch a child in the worktree of `repository`.
    #[must_use]
    pub fn watch(&self, repository: &Repository) -> ConfigWatch {
        // Held until every repository was read: the first watch accepts the current state, so no other child may begin
        // between that decision and the reading. The state of each repository is locked under this, never the other way.
        let mut repos = self.repos();
        WATCHES_BEGUN.fetch_add(1, Ordering::SeqCst);
        let running_children = match ACTIVE_WATCHES.fetch_add(1, Ordering::SeqCst) {
            0 => RunningChildren::None,
            _ => RunningChildren::Possible,
        };
        let (own, others) = repos.members_beside(repository);
        let own = own.as_ref().and_then(GuardMember::place);
        let reviewers = Arc::clone(&repos.reviewers);
        let repo = RepoWatch::begin(repos.state(repository), (repository, own), &reviewers, running_children);
        let mut other_repos = Vec::new();
        for member in others {
            let state = repos.state(&member.repository);
            let watched = (&member.repository, member.place());
            let watch = RepoWatch::begin(state, watched, &reviewers, running_children);
            other_repos.push((member.name, watch));
        }
        let agent_files = repos.agent_files.clone().map(AgentWatch::begin);
        drop(repos);
        let place = PlaceWatch::begin(repository, reviewers, running_children);
        ConfigWatch { place, repo, other_repos, agent_files }
    }

    /// Runs a child process, and returns a message about what it did without permission. All of it has been undone
    /// before this returns. Everything that runs code of a repository goes through here or through a [`ConfigWatch`]:
    /// agents, reviewers, tests, baselines, gates, set-up commands, resolvers and hooks.
    pub fn guard<T>(&self, repository: &Repository, child: impl FnOnce() -> T) -> (T, Option<String>) {
        self.guard_all(&[repository], child)
    }

    /// The same for a child that runs in the first of several worktrees and must not touch the others.
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

/// Copies what is watched for one worktree: its git directory, the folder of hooks in the worktree, and the `.git` file
/// that leads to the repository, which a child could replace by a repository with its own configuration.
fn own(repository: &Repository, reviewers: &CommandWords, running_children: RunningChildren) -> WatchedCopy {
    let mut items = surface::own(repository, reviewers);
    let top = repository.worktree.clone();
    items.extend(top.iter().map(|top| WatchedItem { path: top.join(".git"), watch_mode: WatchMode::Whole }));
    let inside = [Some(repository.git_dir.clone()), top].into_iter().flatten().collect();
    WatchedCopy::take(items, inside, repository.git_dir.clone(), running_children)
}

impl RepoState {
    fn begin(
        (repository, place): (&Repository, Option<&Repository>),
        Self { outside, links, marks, .. }: Self,
        reviewers: &CommandWords,
        running_children: RunningChildren,
    ) -> Self {
        let common_dir = &repository.common_dir;
        let inside = [Some(common_dir.clone()), repository.worktree.clone()].into_iter().flatten();
        // In the user's checkouts, only these connections are restored while agents work elsewhere.
        let connections = surface::users(repository).into_iter().map(|item| item.path);
        let beside = BesideWorktrees::find(repository);
        let inside = inside.chain(connections).chain(surface::log_folders(repository));
        let inside = inside.chain(beside.known().clone());
        let inside = inside.chain(surface::users_scripts(repository, reviewers)).collect();
        let mut items = surface::shared(repository, reviewers);
        items.extend(beside.known().iter().cloned().map(surface::folder));
        let mut before = WatchedCopy::take(items, inside, common_dir.clone(), running_children);
        // A change that could not be undone must not be accepted as the initial state of the next attempt.
        let outside = before.keep_outside(outside);
        killed_runs::record(common_dir, before.states());
        let modules = Modules::find(common_dir);
        let checkouts = CheckoutLinks::find(repository);
        let links = Some(Links::begin(common_dir, links));
        let marks = Some(UsersMarks::record(repository, marks));
        let place = place.map(|place| own(place, reviewers, running_children));
        let outside = Some(outside);
        let (before, changes) = (Some(before), Vec::new());
        let beside = Some(beside);
        Self {
            running_children: 0,
            reach: Some(ChildReach::begin(surface::real_git_dirs(common_dir))),
            before,
            place,
            modules,
            checkouts,
            beside,
            outside,
            links,
            marks,
            changes,
        }
    }

    /// Whether a child could have changed the git directory.
    fn is_reached(&mut self) -> bool {
        self.reach.as_mut().is_none_or(ChildReach::is_reached)
    }

    fn inspect(&mut self) {
        if !ARE_GUARDS_ON {
            return;
        }
        let is_reached = self.is_reached();
        for before in self.place.iter().chain(&self.before) {
            self.changes.extend(if is_reached { before.restore() } else { before.restore_elsewhere() });
        }
        self.changes.extend(self.checkouts.iter().flat_map(CheckoutLinks::restore));
        self.changes.extend(self.beside.iter().flat_map(BesideWorktrees::move_new));
        if !is_reached {
            return;
        }
        let git_dir = self.before.as_ref().map(WatchedCopy::git_dir);
        self.changes.extend(git_dir.map(put_back_locks).unwrap_or_default());
        self.changes.extend(self.modules.move_new());
        self.marks.iter_mut().for_each(UsersMarks::clear_new);
        // Last, because the files that are watched more closely have been restored by now.
        self.changes.extend(self.links.as_mut().map(Links::remove_new).unwrap_or_default());
    }
}

impl ConfigWatch {
    /// Also watches another worktree that the same child can reach. Call this before the child begins, and end the
    /// returned watch after this one: what both worktrees share is compared only once.
    #[must_use]
    pub fn watch_place(&self, repository: &Repository) -> PlaceWatch {
        self.place.watch_place(repository)
    }

    /// The same as [`ConfigWatch::restore`], after the child and everything that it started have ended. From now on the
    /// index can be trusted again.
    pub fn end(&self) -> Vec<String> {
        self.place.leave();
        self.other_repos.iter().for_each(|(_, watch)| watch.leave());
        self.repo.leave();
        let found = self.restore();
        trust_index_again(&self.place.repository);
        found
    }

    /// Restores what was changed since the watch began, and returns messages about it.
    pub fn restore(&self) -> Vec<String> {
        if !ARE_GUARDS_ON {
            return Vec::new();
        }
        let mut found = self.place.restore_files();
        found.extend(self.repo.restore_files());
        found.extend(self.agent_files.iter().flat_map(AgentWatch::restore));
        let in_repo = |name: &str, found: Vec<String>| {
            let words = found.into_iter().map(|words| format!("in {name}: {words}"));
            words.collect::<Vec<String>>()
        };
        found.extend(self.other_repos.iter().flat_map(|(name, watch)| in_repo(name, watch.restore_files())));
        // Files first, so that the git commands below obey the original configuration.
        found.extend(self.place.remove_special());
        found.extend(move_planted_git(&self.place.repository));
        found.extend(self.place.settings.iter().flat_map(IgnoredSettings::restore));
        found.extend(take_out_gitlinks(&self.place.repository, &self.place.gitlinks));
        found.extend(self.repo.refs.restore());
        found.extend(self.other_repos.iter().flat_map(|(name, watch)| in_repo(name, watch.refs.restore())));
        found.dedup();
        found
    }
}

impl RepoWatch {
    /// A child begins that can reach `repository`. `place` is the run's worktree there.
    fn begin(
        state: Arc<Mutex<RepoState>>,
        (repository, place): (&Repository, Option<&Repository>),
        reviewers: &CommandWords,
        running_children: RunningChildren,
    ) -> Self {
        let mut known = lock(&state);
        if known.running_children == 0 {
            let last = std::mem::take(&mut *known);
            *known = RepoState::begin((repository, place), last, reviewers, running_children);
        } else {
            known.inspect();
        }
        freeze(repository, running_children);
        known.running_children += 1;
        let count = known.changes.len();
        let earlier = match running_children {
            RunningChildren::None => EarlierChanges::Accept,
            RunningChildren::Possible if known.is_reached() => EarlierChanges::Restore,
            RunningChildren::Possible => EarlierChanges::Ignore,
        };
        drop(known);
        let top = place.and_then(|place| place.worktree.as_deref());
        Self {
            state,
            known: count,
            homes: repository.watch_git_dirs(earlier),
            objects: repository.watch_objects(),
            refs: repository.watch_refs(),
            work_place: Mutex::new(top.map(WorkPlace::begin)),
        }
    }

    fn leave(&self) {
        drop(self.work_place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Restores files that git obeys, and returns messages about everything that was restored since the watch began.
    fn restore_files(&self) -> Vec<String> {
        let mut state = lock(&self.state);
        state.inspect();
        let mut found: Vec<String> = state.changes.iter().skip(self.known).cloned().collect();
        // One listing of the object folders serves both.
        let folders = state.links.as_ref().map(|links| links.objects().to_vec()).unwrap_or_default();
        if !state.is_reached() {
            return found;
        }
        drop(state);
        found.extend(self.homes.restore());
        found.extend(self.objects.restore(&folders));
        found
    }
}

impl Drop for RepoWatch {
    fn drop(&mut self) {
        lock(&self.state).running_children -= 1;
    }
}

fn lock(state: &Mutex<RepoState>) -> MutexGuard<'_, RepoState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlaceWatch {
    fn begin(
        repository: &Repository,
        reviewers: Arc<CommandWords>,
        running_children: RunningChildren,
    ) -> Self {
        // Listed first, because the same scan tells whether the index can be trusted.
        let special = repository.list_special();
        trust_index_again(repository);
        let work_place = Mutex::new(repository.worktree.as_deref().map(WorkPlace::begin));
        Self {
            running_children,
            own: own(repository, &reviewers, running_children),
            modules: Modules::find(&repository.git_dir),
            settings: IgnoredSettings::find(repository, &reviewers.settings, running_children),
            gitlinks: surface::known_gitlinks(repository),
            special,
            repository: repository.clone(),
            reviewers,
            work_place,
        }
    }

    /// Also watches another worktree that the same child can reach.
    #[must_use]
    pub fn watch_place(&self, repository: &Repository) -> Self {
        Self::begin(repository, Arc::clone(&self.reviewers), self.running_children)
    }

    /// The child has ended.
    fn leave(&self) {
        drop(self.work_place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Restores what was changed here after the child has ended, and returns messages about it.
    pub fn end(&self) -> Vec<String> {
        self.leave();
        let found = self.restore();
        trust_index_again(&self.repository);
        found
    }

    /// The same while the child is running.
    pub fn restore(&self) -> Vec<String> {
        if !ARE_GUARDS_ON {
            return Vec::new();
        }
        let mut found = self.restore_files();
        found.extend(self.remove_special());
        found.extend(move_planted_git(&self.repository));
        found.extend(self.settings.iter().flat_map(IgnoredSettings::restore));
        found.extend(take_out_gitlinks(&self.repository, &self.gitlinks));
        found
    }

    fn restore_files(&self) -> Vec<String> {
        surface::open_folders(&self.repository);
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
                    "it left a FIFO, a socket, a device or a huge file in place of a file: {}",
                    shown.join(", ")
                ))
            }
            Err(error) => Some(format!(
                "it left a FIFO, a socket, a device or a huge file that could not be removed: {error}"
            )),
        }
    }
}

/// Makes the index trusted again. A failure (another git holds the index, or it is damaged) is ignored: later code then
/// reads all files, or reports the same error.
fn trust_index_again(repository: &Repository) {
    let _ = repository.make_index_known(HiddenMarks::Kept);
}

/// From now on our git commands use only the current settings. If these cannot be read, git itself refuses to work.
fn freeze(repository: &Repository, running_children: RunningChildren) {
    let freeze = match running_children {
        RunningChildren::None => SettingsChange::Accepted,
        RunningChildren::Possible => SettingsChange::Ignored,
    };
    let _ = repository.freeze_settings(freeze);
}

/// Joins messages into one sentence.
pub(in crate::pipeline) fn joined(trespasses: &[String]) -> Option<String> {
    (!trespasses.is_empty()).then(|| trespasses.join("; "))
}

impl Drop for ConfigWatch {
    fn drop(&mut self) {
        ACTIVE_WATCHES.fetch_sub(1, Ordering::SeqCst);
    }
}
