//! Guards what agents can write but must not change: configuration and hooks, which all worktrees of a repository
//! share, and the files that connect a worktree with its repository.

mod added_submodules;
mod around;
mod home_settings;
mod ignored_settings;
mod inner_repos;
mod killed_runs;
mod links;
mod operations;
mod restore_watched_files;
mod scripts;
mod watch;
mod watched_files;
mod worktree_folders;
mod worktree_reach;

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use added_submodules::{CheckoutLinks, Modules};
use home_settings::AgentFiles;
pub use inner_repos::move_planted_git;
pub use killed_runs::find_changed_since_kill;
use links::Links;
use restore_watched_files::{PathStates, RunningChildren, WatchedCopy};
use scripts::CommandWords;
pub(in crate::pipeline) use watch::CheckoutWatch;
pub use watch::ConcurrentChildren;
use watched_files::{WatchMode, WatchedItem};
use worktree_folders::BesideWorktrees;
pub(in crate::pipeline) use worktree_reach::WorktreeReach;

use crate::{
    agent::{ProtectedPath, Runner},
    git::{Repository, UsersMarks},
    mutex::MutexExt,
    pipeline::checkout::violations::Violations,
    process::{ChildReach, retake_lost_locks},
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
    /// Messages about everything that was restored since the first of the running children began. A message can be there
    /// twice: each watch counts from where it began.
    violations: Vec<String>,
}

impl ConfigGuard {
    /// Watches this repository for every child from now on.
    pub fn add(&self, name: &str, repository: &Repository) {
        self.add_member(name, repository, false);
    }

    /// Watches this repository for every child from now on, and its worktree, in which only children of the run work.
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
        let (mut found, of_reviewers) = watched_files::scripts_in(repository, &reviewers);
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
    pub fn watch(&self, repository: &Repository) -> CheckoutWatch {
        // Held until every repository was read: the first watch accepts the current state, so no other child may begin
        // between that decision and the reading. The state of each repository is locked under this, never the other way.
        CheckoutWatch::of_run(self.repos(), repository)
    }

    /// Runs a child process, and returns a message about what it did without permission. All of it has been undone
    /// before this returns. Everything that runs code of a repository goes through here or through a [`CheckoutWatch`]:
    /// agents, reviewers, tests, baselines, gates, set-up commands, resolvers and hooks.
    pub fn guard<T>(&self, repository: &Repository, child: impl FnOnce() -> T) -> (T, Option<String>) {
        self.guard_all(&[repository], child)
    }

    /// Like [`Self::guard`], for a child that runs in the first of several worktrees and must not touch the others.
    pub fn guard_all<T>(&self, places: &[&Repository], child: impl FnOnce() -> T) -> (T, Option<String>) {
        let watches: Vec<CheckoutWatch> = places.iter().map(|place| self.watch(place)).collect();
        let ended = child();
        let violations: Violations = watches.iter().flat_map(CheckoutWatch::restore_after_child).collect();
        (ended, violations.in_one_line())
    }

    fn repos(&self) -> MutexGuard<'_, GuardedRepos> {
        self.0.hold()
    }
}

fn lock(state: &Mutex<RepoState>) -> MutexGuard<'_, RepoState> {
    state.hold()
}

/// Copies what is watched for one worktree: its git directory, the folder of hooks in the worktree, and the `.git` file
/// that leads to the repository, which a child could replace by a repository with its own configuration.
fn own(repository: &Repository, reviewers: &CommandWords, running_children: RunningChildren) -> WatchedCopy {
    let mut items = watched_files::own(repository, reviewers);
    let top = repository.worktree.clone();
    items.extend(top.iter().map(|top| WatchedItem { path: top.join(".git"), watch_mode: WatchMode::Whole }));
    let inside = [Some(repository.git_dir.clone()), top].into_iter().flatten().collect();
    WatchedCopy::take(items, inside, repository.git_dir.clone(), running_children)
}

impl RepoState {
    fn begin(
        repository: &Repository,
        place: Option<&Repository>,
        Self { outside, links, marks, .. }: Self,
        reviewers: &CommandWords,
        running_children: RunningChildren,
    ) -> Self {
        let common_dir = &repository.common_dir;
        let inside = [Some(common_dir.clone()), repository.worktree.clone()].into_iter().flatten();
        // In the user's checkouts, only these connections are restored while agents work elsewhere.
        let connections = watched_files::users(repository).into_iter().map(|item| item.path);
        let beside = BesideWorktrees::find(repository);
        let inside = inside.chain(connections).chain(watched_files::log_folders(repository));
        let inside = inside.chain(beside.known().clone());
        let inside = inside.chain(watched_files::users_scripts(repository, reviewers)).collect();
        let mut items = watched_files::shared(repository, reviewers);
        items.extend(beside.known().iter().cloned().map(watched_files::folder));
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
        let before = Some(before);
        let beside = Some(beside);
        Self {
            running_children: 0,
            reach: Some(ChildReach::begin(watched_files::real_git_dirs(common_dir))),
            before,
            place,
            modules,
            checkouts,
            beside,
            outside,
            links,
            marks,
            violations: Vec::new(),
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
            self.violations.extend(if is_reached { before.restore() } else { before.restore_elsewhere() });
        }
        self.violations.extend(self.checkouts.iter().flat_map(CheckoutLinks::restore));
        self.violations.extend(self.beside.iter().flat_map(BesideWorktrees::move_new));
        if !is_reached {
            return;
        }
        let git_dir = self.before.as_ref().map(WatchedCopy::git_dir);
        self.violations.extend(git_dir.map(retake_lost_locks).unwrap_or_default());
        self.violations.extend(self.modules.move_new());
        self.marks.iter_mut().for_each(UsersMarks::clear_new);
        // Last, because the files that are watched more closely have been restored by now.
        self.violations.extend(self.links.as_mut().map(Links::remove_new).unwrap_or_default());
    }
}
