//! Watches one child process: the worktree that it works in, and everything that all worktrees of a run share.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    ARE_GUARDS_ON, GuardMember, GuardedRepos, RepoState,
    added_submodules::Modules,
    home_settings::AgentWatch,
    ignored_settings::IgnoredSettings,
    inner_repos::{move_planted_git, take_out_gitlinks},
    lock, own,
    restore_watched_files::{RunningChildren, WatchedCopy},
    scripts::CommandWords,
    watched_files,
    worktree_reach::WorktreeReach,
};
use crate::{
    git::{
        EarlierChanges, GitDirWatch, HiddenMarks, ObjectWatch, OtherWriters, RefWatch, Repository,
        SettingsChange,
    },
    message::visible,
    mutex::MutexExt,
    pipeline::checkout::violations::Violations,
    process::{OthersReach, RunningWriter},
};

/// Watches the worktree that a child works in, until it is dropped.
#[derive(Debug)]
pub struct CheckoutWatch {
    running_children: RunningChildren,
    own: WatchedCopy,
    modules: Modules,
    /// Settings of the reviewers' programs that git ignores.
    settings: Option<IgnoredSettings>,
    /// The paths of submodules in the index.
    gitlinks: BTreeSet<Vec<u8>>,
    repository: Repository,
    reach: WorktreeReach,
    /// The commands of reviewers.
    reviewers: Arc<CommandWords>,
    /// Named pipes and other special files that already were in the worktree.
    special: Vec<PathBuf>,
    /// While it is set, scans of the worktree are not reused, because the child may be writing.
    work_place: Mutex<Option<RunningWriter>>,
    /// What all worktrees of the run share. `None` if the watch of another worktree of the child compares it.
    run: Option<RunWatch>,
}

/// Watches what all worktrees of a run share.
#[derive(Debug)]
struct RunWatch {
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
    git_dirs: GitDirWatch,
    objects: ObjectWatch,
    refs: RefWatch,
    /// While it is set, scans of the run's worktree are not reused, because the child may be writing.
    work_place: Mutex<Option<RunningWriter>>,
}

impl CheckoutWatch {
    /// A child begins that works in the worktree of `repository`, and can reach all repositories of the run.
    pub(super) fn of_run(mut repos: MutexGuard<'_, GuardedRepos>, repository: &Repository) -> Self {
        WATCHES_BEGUN.fetch_add(1, Ordering::SeqCst);
        let running_children = match ACTIVE_WATCHES.fetch_add(1, Ordering::SeqCst) {
            0 => RunningChildren::None,
            _ => RunningChildren::Possible,
        };
        let reviewers = Arc::clone(&repos.reviewers);
        let run = RunWatch::begin(&mut repos, repository, running_children);
        drop(repos);
        Self { run: Some(run), ..Self::begin(repository, reviewers, running_children) }
    }

    fn begin(
        repository: &Repository,
        reviewers: Arc<CommandWords>,
        running_children: RunningChildren,
    ) -> Self {
        let reach = WorktreeReach::begin(repository);
        // Listed before the index is looked at, because the same scan tells whether it can be trusted.
        let special = repository.list_special();
        trust_index_again(repository);
        let work_place = Mutex::new(repository.worktree.as_deref().map(|top| RunningWriter::begin(&[top])));
        Self {
            running_children,
            own: own(repository, &reviewers, running_children),
            modules: Modules::find(&repository.git_dir),
            settings: IgnoredSettings::find(repository, &reviewers.settings, running_children),
            gitlinks: watched_files::known_gitlinks(repository),
            special,
            repository: repository.clone(),
            reach,
            reviewers,
            work_place,
            run: None,
        }
    }

    /// Also watches another worktree that the same child can reach. Call this before the child begins, and end the
    /// returned watch after this one: what both worktrees share is compared only once.
    #[must_use]
    pub fn watch_place(&self, repository: &Repository) -> Self {
        Self::begin(repository, Arc::clone(&self.reviewers), self.running_children)
    }

    /// Restores what was changed since the watch began, and returns messages about it, after the child and everything that
    /// it started have ended. From now on the index can be trusted again. It may be called again, for example after filters
    /// of the checkout ran.
    pub fn restore_after_child(&self) -> Violations {
        // The child writes no more, so scans of the worktree are reused again, at first by what restores it.
        drop(self.work_place.hold().take());
        self.run.iter().for_each(RunWatch::leave);
        let found = self.restore();
        trust_index_again(&self.repository);
        found
    }

    /// Restores what was changed since the watch began, and returns messages about it, while the child is running.
    pub fn restore(&self) -> Violations {
        let mut found = Violations::default();
        if !ARE_GUARDS_ON {
            return found;
        }
        let is_reached = self.reach.is_reached();
        found.extend(if is_reached { self.restore_files() } else { self.own.restore_elsewhere() });
        found.extend(self.run.iter().flat_map(RunWatch::restore_files));
        // Files first, so that the git commands below obey the original configuration.
        if is_reached {
            found.extend(self.remove_special());
            found.extend(move_planted_git(&self.repository));
            found.extend(self.settings.iter().flat_map(IgnoredSettings::restore));
            found.extend(take_out_gitlinks(&self.repository, &self.gitlinks));
        }
        found.extend(self.run.iter().flat_map(RunWatch::restore_refs));
        found
    }

    fn restore_files(&self) -> Vec<String> {
        watched_files::open_folders(&self.repository);
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

impl RunWatch {
    /// A child begins that can reach `repository`.
    fn begin(repos: &mut GuardedRepos, repository: &Repository, running_children: RunningChildren) -> Self {
        let (own, others) = repos.members_beside(repository);
        let own = own.as_ref().and_then(GuardMember::place);
        let reviewers = Arc::clone(&repos.reviewers);
        let repo = RepoWatch::begin(repos.state(repository), repository, own, &reviewers, running_children);
        let mut other_repos = Vec::new();
        for member in others {
            let state = repos.state(&member.repository);
            let watch =
                RepoWatch::begin(state, &member.repository, member.place(), &reviewers, running_children);
            other_repos.push((member.name, watch));
        }
        let agent_files = repos.agent_files.clone().map(AgentWatch::begin);
        Self { repo, other_repos, agent_files }
    }

    fn leave(&self) {
        self.other_repos.iter().for_each(|(_, watch)| watch.leave());
        self.repo.leave();
    }

    fn restore_files(&self) -> Vec<String> {
        let mut found = self.repo.restore_files();
        found.extend(self.agent_files.iter().flat_map(AgentWatch::restore));
        found.extend(self.in_other_repos(RepoWatch::restore_files));
        found
    }

    fn restore_refs(&self) -> Vec<String> {
        let mut found = self.repo.refs.restore();
        found.extend(self.in_other_repos(|watch| watch.refs.restore()));
        found
    }

    fn in_other_repos(&self, restore: impl Fn(&RepoWatch) -> Vec<String>) -> Vec<String> {
        let all = self.other_repos.iter().flat_map(|(name, watch)| {
            restore(watch).into_iter().map(move |words| format!("in {name}: {words}"))
        });
        all.collect()
    }
}

impl Drop for RunWatch {
    fn drop(&mut self) {
        ACTIVE_WATCHES.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RepoWatch {
    /// A child begins that can reach `repository`. `place` is the run's worktree there.
    fn begin(
        state: Arc<Mutex<RepoState>>,
        repository: &Repository,
        place: Option<&Repository>,
        reviewers: &CommandWords,
        running_children: RunningChildren,
    ) -> Self {
        let mut known = lock(&state);
        if known.running_children == 0 {
            let last = std::mem::take(&mut *known);
            *known = RepoState::begin(repository, place, last, reviewers, running_children);
        } else {
            known.inspect();
        }
        freeze(repository, running_children);
        known.running_children += 1;
        let count = known.violations.len();
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
            git_dirs: repository.watch_git_dirs(earlier),
            objects: repository.watch_objects(),
            refs: repository.watch_refs(),
            work_place: Mutex::new(top.map(|top| RunningWriter::begin(&[top]))),
        }
    }

    fn leave(&self) {
        drop(self.work_place.hold().take());
    }

    /// Restores files that git obeys, and returns messages about everything that was restored since the watch began.
    fn restore_files(&self) -> Vec<String> {
        let mut state = lock(&self.state);
        state.inspect();
        let mut found: Vec<String> = state.violations.iter().skip(self.known).cloned().collect();
        // One listing of the object folders serves both.
        let folders = state.links.as_ref().map(|links| links.objects().to_vec()).unwrap_or_default();
        if !state.is_reached() {
            return found;
        }
        drop(state);
        found.extend(self.git_dirs.restore());
        found.extend(self.objects.restore(&folders));
        found
    }
}

impl Drop for RepoWatch {
    fn drop(&mut self) {
        lock(&self.state).running_children -= 1;
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

/// The number of agents, reviewers and tests that are watched now, in all repositories of this process.
static ACTIVE_WATCHES: AtomicUsize = AtomicUsize::new(0);
/// The number of watches that have ever begun.
static WATCHES_BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Finds out whether a child process was the only one in its repository.
#[derive(Debug, Clone, Copy)]
pub struct ConcurrentChildren<'r> {
    repository: &'r Repository,
    running_children: usize,
    begun: usize,
    /// Whether another process is running a plan here.
    has_others: bool,
}

impl<'r> ConcurrentChildren<'r> {
    /// The number of watches of a child that works in one worktree.
    pub const ONE_WATCH: usize = 1;

    /// Call this before the child is watched.
    #[must_use]
    pub fn count(repository: &'r Repository) -> Self {
        let (running_children, begun) =
            (ACTIVE_WATCHES.load(Ordering::SeqCst), WATCHES_BEGUN.load(Ordering::SeqCst));
        Self { repository, running_children, begun, has_others: repository.has_other_runs() }
    }

    /// Whether other processes were running when they were counted.
    #[must_use]
    pub fn at_start(self) -> OtherWriters {
        if self.running_children == 0 && !self.has_others {
            OtherWriters::Alone
        } else {
            OtherWriters::Others
        }
    }

    /// Whether other processes were running at any time since they were counted. `own_watches` is the number of watches that
    /// began for the child itself.
    #[must_use]
    pub fn since_start(self, own_watches: usize) -> OtherWriters {
        let others = WATCHES_BEGUN.load(Ordering::SeqCst).saturating_sub(self.begun) > own_watches;
        if others || self.repository.has_other_runs() { OtherWriters::Others } else { self.at_start() }
    }

    /// Like [`Self::since_start`], but children of this process that could not write files in the worktree do not count.
    #[must_use]
    pub fn since_start_with_reach(self, own_watches: usize, reach: OthersReach) -> OtherWriters {
        let is_possible = self.has_others || self.repository.has_other_runs() || reach.is_reached();
        if is_possible { self.since_start(own_watches) } else { OtherWriters::Alone }
    }
}
