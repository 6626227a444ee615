//! Opens a run. [`OpenRun::open`] chooses its branch and takes the lock; [`OpenRun::begin`] does everything else that
//! must happen before an agent starts. Both are sequences of phases, and each phase is a function.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use anyhow::Context;

use super::{
    CallSource, InheritedOptions, Planned, RunRequest,
    branch_choice::{PendingMove, RunPlace},
    caveats::has_message_hook,
    closing::RunMonitor,
    nested::refuse_in_step,
    recovery::recover_branch,
    repositories::FetchedRepo,
    request::{secrets, typed, typed_again},
};
use crate::{
    coordination::{Alone, Coordinator},
    event::RunOpening,
    failure::Failure,
    gardener::{
        Gardener, GardenerError, Lanes, ReviewWorktrees, RunResources, Selection, WorkerPlace, recover, start,
    },
    git::{Config, GitVersion, Repository, SavedCheckout, SettingsChange},
    history::{CommitCache, CommitSource, HistoryError, Run, RunScope, State},
    message::Body,
    name::{BranchName, Oid, SessionId},
    pipeline::{
        BEFORE_THE_RUN, ChangedPaths, CheckpointWriter, ConfigGuard, IgnoredFiles, KnownRed, OtherRepo,
        PreCommit, RunContext, RunOptions, StepRunner,
    },
    process::{Cancel, FileLock, OrphanLock, is_executable},
    progress::{Boxes, Progress, RunTotals},
    queue::Target,
    record::{RunIdentity, RunRecorder, repair_index},
    session::{ResumeContext, SessionWriter, forget_unrecorded},
    settings::Settings,
    workspace::{SyncOutcome, Workspace, compare_elsewhere},
    worktree::GRACE,
};

/// What a run needs from the program that drives it.
pub struct RunHost {
    /// The repository that the program was started in.
    pub repository: Repository,
    /// Its configuration.
    pub config: Config,
    /// Cancelled when the user wants to stop.
    pub cancel: Cancel,
    /// The current time in seconds since 1970.
    pub clock: fn() -> i64,
}

/// A run that holds the lock of its branch.
pub struct OpenRun {
    /// The options as they were typed.
    pub request: RunRequest,
    /// The repository, opened where the run works.
    pub repository: Repository,
    /// The effective options.
    pub options: RunOptions,
    /// The configuration.
    pub settings: Settings,
    /// Its branch.
    pub branch: BranchName,
    /// Whether no task is left to do, so that no approval is needed.
    pub is_idle: bool,
    /// Options taken from the session's records.
    pub(super) inherited: InheritedOptions,
    pub(super) head: Oid,
    pub(super) session: OnceLock<SessionId>,
    pub(super) session_writer: OnceLock<SessionWriter>,
    pub(super) workspace: Workspace,
    pub(super) lock: FileLock,
    /// What is left to do before the run works outside of the user's checkout.
    pub(super) pending_move: Option<PendingMove>,
    /// The result of fetching the plan's repository, if it was fetched.
    pub(super) main_sync: Option<SyncOutcome>,
    /// The other repositories of the workspace.
    pub(super) others: Vec<FetchedRepo>,
    /// Whether the branch is a session branch.
    pub(super) has_session_branch: bool,
    /// Whether the branch has no commit of this run yet: because it was created for the run, or because a new run was
    /// requested in a shallow clone, where old runs cannot be found.
    pub(super) is_untouched: bool,
    /// Where logs are kept: the user's checkout.
    pub(super) home: PathBuf,
    /// The uncommitted work of the user's checkouts.
    pub(super) saved_checkouts: Mutex<Vec<SavedCheckout>>,
    /// Whether the plan is copied from the user's checkout to the session's worktree.
    pub(super) brings_plan: bool,
    hook: PreCommit,
    /// Whether the user has a commit-msg hook, which is not run.
    pub(super) has_message_hook: bool,
    /// Whether git's configuration names a remote, or the upstream of a branch.
    pub(super) has_remotes: bool,
    /// Watches all repositories of the run around every child process.
    pub(super) config_guard: ConfigGuard,
    /// Commits of the run that were read before.
    memory: CommitCache,
    /// Decides with other workers who works on what.
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) cancel: Cancel,
    pub(super) clock: fn() -> i64,
}

impl OpenRun {
    /// Chooses the branch, takes its lock and repairs what a crash left.
    pub fn open(request: RunRequest, host: RunHost) -> Result<Self, Failure> {
        let RunHost { repository, config, cancel, clock } = host;
        refuse_in_step(&repository)?;
        let mut settings = Settings::load_for_run(&repository, &config)?;
        if let Some(mode) = &request.flags.sandbox {
            settings.set_flag("sandbox.mode", mode, "--sandbox")?;
        }
        if repository.worktree.is_none() {
            return Err(GardenerError::Bare.into());
        }
        let workspace = Workspace::load(&repository, &settings, &cancel)?;
        let mut place = RunPlace::choose(&repository, &request, (&settings, &workspace))?;
        let mut options = RunOptions::new(&request.flags, &settings)?;
        options.sandbox.require_supported()?;
        options.sandbox.require_closed(&workspace.paths(), &[&repository.git_dir, &repository.common_dir])?;
        for (role, runner) in options.runners.list_uses() {
            options.sandbox.require_network_control(Some(role.as_str()), Some(&runner))?;
        }
        options.sandbox =
            options.sandbox.closing(workspace.paths(), &[&repository.git_dir, &repository.common_dir]);
        let lock = take_lock(&repository, &place.branch)?;
        let repository = recover_repository(repository, &lock, &mut place)?;
        let hook = pre_commit(&repository, &config)?;
        let has_message_hook = has_message_hook(&repository.hooks_dir(&config)?.path);
        let RunPlace { branch, head, session, pending_move } = place;
        let home = match (&session, &pending_move) {
            (Some(_), None) => workspace.main().path.clone(),
            _ if request.is_guest => workspace.main().path.clone(),
            _ => repository.top().to_owned(),
        };
        Ok(Self {
            home,
            has_session_branch: session.is_some(),
            is_untouched: pending_move.as_ref().is_some_and(|pending_move| !pending_move.is_written_on)
                || is_first_in_shallow(&repository, &request, (&branch, head))?,
            pending_move,
            saved_checkouts: Mutex::default(),
            brings_plan: false,
            main_sync: None,
            others: Vec::new(),
            workspace,
            repository,
            options,
            settings,
            branch,
            head,
            session: session.map(OnceLock::from).unwrap_or_default(),
            session_writer: OnceLock::new(),
            lock,
            hook,
            has_message_hook,
            has_remotes: ["remote.", "branch."].iter().any(|prefix| config.section(prefix).next().is_some()),
            config_guard: ConfigGuard::default(),
            memory: CommitCache::default(),
            coordinator: Arc::new(Alone),
            cancel,
            clock,
            request,
            is_idle: false,
            inherited: InheritedOptions::default(),
        })
    }

    /// Does everything that must happen before an agent starts, and returns the gardener.
    pub(super) fn begin<'a>(
        &'a self,
        (planned, selection): (&'a Planned, &Selection),
        lanes: Option<&'a Lanes<'a>>,
        monitor: &'a mut RunMonitor<'_>,
    ) -> Result<Gardener<'a>, Failure> {
        // From here on, our own git commands use a copy of the settings, so it is known which programs they may run. If
        // the settings cannot be read, git itself will refuse to work.
        let _ = self.repository.freeze_settings(SettingsChange::Ignored);
        let reviewers = self.options.runners.reviewers()?;
        let programs = reviewers.iter().filter_map(StepRunner::program);
        self.config_guard.watch_reviewers(programs, self.options.reviews_in);
        self.list_copied_files()?;
        let run = self.scan()?;
        self.refuse_played(self.session(&run))?;
        if lanes.is_none() {
            self.refuse_parked()?;
        }
        let mut orphan_lock = self.end_orphans(monitor)?;
        self.warn_of_changes_since_kill(monitor.listener());
        let mut recorder = self.record_interrupted(planned, &run, lanes, monitor)?;
        self.prepare_workplace((planned, &run), &recorder, lanes, monitor)?;
        self.watch_others(&recorder.identity().session)?;
        self.config_guard.protect(&self.options.runners.protected(&planned.plan)?, &self.repository);
        let tests =
            self.check_baseline(planned, &run, &recorder, lanes, &mut orphan_lock, monitor.listener())?;
        self.record_plan(planned, &run, &mut recorder, tests, monitor)?;
        self.publish_start(recorder.head())?;
        self.tell_of_missing_sandbox(&run, monitor.listener());
        self.tell_of_skipped_hook(&run, monitor.listener());
        self.tell_of_missing_tests((planned, selection), &run, lanes, monitor.listener());
        let other_repos =
            self.enter_other_repos(&recorder.identity().session, planned, monitor.listener())?;
        self.tell_caveats(planned, monitor.listener())?;
        self.start_work(planned, &recorder, lanes, orphan_lock, other_repos, monitor)
    }

    /// Ends processes that a crashed run left running.
    fn end_orphans(&self, monitor: &mut RunMonitor<'_>) -> Result<OrphanLock, Failure> {
        let path = OrphanLock::beside(self.lock.path());
        let (orphan_lock, ended) = OrphanLock::take_over(&self.lock, &path, GRACE)
            .map_err(|source| GardenerError::Locked { branch: self.branch.clone(), source })?;
        let pids: Vec<String> = ended.0.iter().map(ToString::to_string).collect();
        if !pids.is_empty() {
            let words = format!("ended processes that a crashed run had left: {}", pids.join(", "));
            monitor.listener().warn(&words);
        }
        Ok(orphan_lock)
    }

    /// Records attempts that a crash interrupted.
    fn record_interrupted(
        &self,
        planned: &Planned,
        run: &Run,
        lanes: Option<&Lanes<'_>>,
        monitor: &mut RunMonitor<'_>,
    ) -> Result<RunRecorder<'_>, Failure> {
        let session = self.session(run).clone();
        let mut recorder = RunRecorder::new(&self.repository, self.branch.clone(), session, self.head)?;
        if lanes.is_none() {
            // Recording a crash moves the branch. Wait for a git that holds the index: the user may be committing.
            self.repository.await_index()?;
        }
        repair_index(&self.repository, &self.branch, self.head)?;
        for recovered in recover(&mut recorder, run, &planned.plan, (&self.options, &self.config_guard))? {
            monitor.listener().warn(&recovered.words());
        }
        Ok(recorder)
    }

    /// Records the plan and the configuration if the run has not recorded them yet, and the tests that are known to
    /// fail.
    fn record_plan(
        &self,
        planned: &Planned,
        run: &Run,
        recorder: &mut RunRecorder<'_>,
        tests: Body,
        monitor: &mut RunMonitor<'_>,
    ) -> Result<(), Failure> {
        let listener = monitor.listener();
        if self.is_start(run) {
            let worker = self.coordinator.worker();
            let sandbox = match self.options.sandbox.is_missing() {
                true => start::SandboxSupport::Missing,
                false => start::SandboxSupport::Present,
            };
            for path in start::write_start(recorder, planned.file.as_ref(), (worker, sandbox), tests)? {
                listener.remark(&format!("your changes to {path} were committed when the run started"));
            }
            self.tell_of_unread_lines(planned, listener);
        } else if self.request.accept_changes {
            for words in self.list_added_powers(planned)? {
                listener.remark(&words);
            }
            start::write_change(recorder, planned.freeze(true), ("accepted", tests))?;
        } else if planned.is_first_use {
            // Before anything else: once an agent has run, the file may no longer be the user's.
            let first_used = ("first used", tests);
            for path in start::write_change(recorder, planned.freeze(false), first_used)? {
                listener.remark(&format!("committed with the plan: {path}"));
            }
        } else if tests != Body::default() {
            let known = KnownRed::read(&tests, BEFORE_THE_RUN);
            let words = match known.is_some_and(|known| !known.is_empty()) {
                true => "started again although tests fail",
                false => "tests were counted again",
            };
            start::write_change(recorder, planned.freeze(false), (words, tests))?;
        }
        Ok(())
    }

    /// Opens the session's records and collects what workers need.
    fn start_work<'a>(
        &'a self,
        planned: &'a Planned,
        recorder: &RunRecorder<'_>,
        lanes: Option<&'a Lanes<'a>>,
        orphan_lock: OrphanLock,
        other_repos: Vec<OtherRepo>,
        monitor: &'a mut RunMonitor<'_>,
    ) -> Result<Gardener<'a>, Failure> {
        let (identity, tip) = (recorder.identity().clone(), recorder.tip().clone());
        let newest = match lanes {
            Some(_) => Target::new(&self.repository, &self.branch).require()?.tip(),
            None => tip.head,
        };
        let mut run = self.scan_at(newest)?;
        compare_elsewhere(&self.workspace.sections, &mut run)?;
        let red_before = KnownRed::before_run(&self.repository, &run)?;
        let recalled = self.recall(&identity.session, planned, &run)?;
        let session_writer = self.session_writer(planned, &run, &identity.session, newest)?;
        let words = self.settings.session.transcripts;
        let checkpoints = CheckpointWriter::new(session_writer, planned.pipeline(), words, self.clock)
            .beside(other_repos.iter().map(OtherRepo::for_session).collect());
        let opening =
            RunOpening { has_lanes: lanes.is_some(), ..self.opening(&identity.session, planned, &run)? };
        monitor.begin(opening, (self.clock)());
        monitor.push_with(self.pusher(identity.session.clone())?);
        let mut tools = self.tools(identity, checkpoints, recalled, lanes)?;
        tools.other_lanes = Arc::new(self.other_lanes(lanes, &other_repos)?);
        if lanes.is_some() {
            self.record_start(session_writer, &tools.checkpoints, monitor);
        }
        Ok(Gardener {
            repository: &self.repository,
            plan: &planned.plan,
            plan_path: planned.path(),
            run,
            tools,
            checkout: Some(WorkerPlace {
                repository: self.repository.clone(),
                tip,
                orphan_lock,
                lease: None,
                other_leases: Vec::new(),
            }),
            other_repos,
            red_before,
            on_event: Box::new(move |event| monitor.tell(event)),
        })
    }

    /// An error whose hints repeat the options of this command.
    #[must_use]
    pub fn with_hints(&self, error: GardenerError) -> Failure {
        error.with_options(self.request.typed_options()).into()
    }

    /// Refuses to write on a branch that lacks a parked landing: its history would diverge from what landed.
    fn refuse_parked(&self) -> Result<(), Failure> {
        let target = Target::new(&self.repository, &self.branch);
        if target.require().map_err(GardenerError::from)?.parked.is_none() {
            return Ok(());
        }
        let branch = self.branch.clone();
        let obstacle = target.find_obstacle().map_err(GardenerError::from)?;
        Err(self.with_hints(GardenerError::Parked { branch, obstacle, options: Box::default() }))
    }

    /// The state of the run at its start, for the first event.
    fn opening(&self, session: &SessionId, planned: &Planned, run: &Run) -> Result<RunOpening, Failure> {
        let progress = Progress::new(Some(&planned.plan), run, Boxes::Count);
        let asked = self.request.recorded()?;
        Ok(RunOpening {
            branch: self.branch.clone(),
            session: session.clone(),
            head: self.head,
            total: progress.share().total,
            done: progress.share().done,
            failed: progress.count(State::Failed),
            max_attempts: self.options.max_retries,
            spent: RunTotals::of_run(run),
            has_lanes: false,
            offline: self.request.source == CallSource::Records,
            options: typed(&asked) + &self.request.typed_here(),
            again: typed_again(&asked) + &self.request.typed_selection(),
        })
    }

    /// The paths with uncommitted changes of the user in the checkout in which tasks work.
    fn find_users_paths(&self, is_in_place: bool) -> Result<Arc<ChangedPaths>, Failure> {
        let saved = self.saved_checkouts();
        let saved = saved.iter().find(|saved| is_in_place && saved.is_of(&self.repository));
        let paths = saved.map(SavedCheckout::find_unchanged).transpose()?;
        Ok(Arc::new(ChangedPaths::of(paths.unwrap_or_default())))
    }

    fn tools<'a>(
        &'a self,
        identity: RunIdentity,
        checkpoints: CheckpointWriter<'a>,
        recalled: Vec<ResumeContext>,
        lanes: Option<&'a Lanes<'a>>,
    ) -> Result<RunResources<'a>, Failure> {
        let beside = std::env::current_exe().context("could not find the path of this program")?;
        Ok(RunResources {
            context: RunContext {
                options: &self.options,
                playback: self.playback(&identity.session)?,
                identity,
                home: self.home.clone(),
                secrets: secrets()?,
                cancel: self.cancel.clone(),
                demo: beside.with_file_name("git-arborist-demo"),
                hook: self.hook,
                clock: self.clock,
                config_guard: self.config_guard.clone(),
                users_paths: self.find_users_paths(lanes.is_none())?,
                reviews: Arc::new(ReviewWorktrees::new(&self.repository, self.worktree_options())),
            },
            toolbox: self.toolbox(&beside),
            checkpoints,
            recalled,
            save_every: self.worktree_options().save_every,
            ignored: IgnoredFiles::default(),
            clean: self.clean_pool()?,
            sections: &self.workspace.sections,
            lanes,
            other_lanes: Arc::default(),
        })
    }
}

impl OpenRun {
    /// Reads the state of the run from history.
    pub(super) fn scan(&self) -> Result<Run, Failure> {
        if self.is_untouched {
            let scope = RunScope { branch: self.branch.clone(), tip: None };
            return Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?);
        }
        self.scan_at(self.head)
    }

    /// Reads the state as other commands show it: without work on task branches that no record mentions. A run that
    /// starts sets such branches aside itself. In a new run, no task has been started.
    pub fn scan_to_show(&self) -> Result<Run, Failure> {
        let mut run = self.scan()?;
        forget_unrecorded(&self.repository, &mut run)?;
        if self.request.new_run {
            run.tasks.clear();
        }
        Ok(run)
    }

    /// The current tip of the branch, and the state of the run there.
    pub(super) fn scan_now(&self) -> Result<(Oid, Run), Failure> {
        let tip = self.repository.find_branch(&self.branch)?.unwrap_or(self.head);
        let mut run = self.scan_at(tip)?;
        forget_unrecorded(&self.repository, &mut run)?;
        Ok((tip, run))
    }

    fn scan_at(&self, tip: Oid) -> Result<Run, Failure> {
        let scope = RunScope { branch: self.branch.clone(), tip: Some(tip) };
        let refs = self.repository.list_refs(&[&self.branch.task_refs()])?;
        match Run::scan_again(&self.repository, scope, refs, &self.memory) {
            // The old run keeps its name, and this one starts under the new name.
            Err(HistoryError::Renamed { .. }) if self.request.new_run => {
                let scope = RunScope { branch: self.branch.clone(), tip: None };
                Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?)
            }
            run => Ok(run?),
        }
    }

    /// Whether nothing of this run has been recorded yet.
    pub(super) fn is_start(&self, run: &Run) -> bool {
        run.start.is_none() || self.request.new_run
    }

    /// The worktree of the session branch, if the run has one.
    pub(super) fn session_worktree(&self) -> Option<&Path> {
        self.has_session_branch.then(|| self.repository.top())
    }

    /// The session of the run that continues, or a new one. Each call returns the same value.
    pub(super) fn session(&self, run: &Run) -> &SessionId {
        self.session.get_or_init(|| match (&run.start, self.request.new_run) {
            (Some(start), false) => start.session.clone(),
            _ => start::new_session(self.head),
        })
    }
}

/// Whether a run begins in a shallow clone. If nothing here belongs to an earlier run of the branch, there is nothing
/// to continue.
fn is_first_in_shallow(
    repository: &Repository,
    request: &RunRequest,
    (branch, head): (&BranchName, Oid),
) -> Result<bool, Failure> {
    if !repository.is_shallow || request.new_run {
        return Ok(repository.is_shallow);
    }
    let scope = RunScope { branch: branch.clone(), tip: Some(head) };
    let is_unknown = matches!(
        Run::scan(repository, scope, CommitSource::Fresh),
        Err(HistoryError::Shallow { has_begun: false, .. })
    );
    let traces = ["refs/arborist/sessions/", &branch.task_refs()];
    Ok(is_unknown && repository.list_refs(&traces)?.is_empty())
}

fn take_lock(repository: &Repository, branch: &BranchName) -> Result<FileLock, Failure> {
    let what = format!("git arborist on {branch}");
    let lock = FileLock::try_take(&repository.run_lock(branch), &what);
    Ok(lock.map_err(|source| GardenerError::Locked { branch: branch.clone(), source })?)
}

/// Repairs what a killed driver left of the branch, and reads again what it may have changed meanwhile.
fn recover_repository(
    repository: Repository,
    lock: &FileLock,
    place: &mut RunPlace,
) -> Result<Repository, Failure> {
    let has_crashed = recover_branch(&repository, lock, &place.branch)?;
    // A git command of the dead driver may have moved the branch after we read it, also if another command has repaired
    // the crash since.
    let now = repository.find_branch(&place.branch)?.unwrap_or(place.head);
    if !has_crashed && now == place.head {
        return Ok(repository);
    }
    if let Some(pending_move) = &mut place.pending_move {
        pending_move.is_written_on |= now != place.head;
    }
    place.head = now;
    Ok(Repository::discover()?)
}

/// Whether there is a pre-commit hook to run before an agent's work is committed.
pub(super) fn pre_commit(repository: &Repository, config: &Config) -> Result<PreCommit, Failure> {
    let file = repository.hooks_dir(config)?.path.join("pre-commit");
    let has_config_hook =
        repository.version >= GitVersion::CONFIG_HOOKS && config.section("hook.").next().is_some();
    Ok(if is_executable(&file) || has_config_hook { PreCommit::Asked } else { PreCommit::None })
}
