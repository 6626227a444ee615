//! Opening a run: lock, recovery, plan, consent, in this order, before any agent is started.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use arborist_core::{
    agent::redact::Secrets,
    failure::Failure,
    gardener::{Gardener, GardenerError, Lanes, ReviewWorktrees, Tools, WorkerPlace, recover, start},
    git::{Config, GitVersion, Repository},
    history::{CommitCache, CommitSource, Run, RunScope, State},
    message::Body,
    name::{BranchName, Oid, SessionId},
    pipeline::{CheckpointWriter, ConfigGuard, IgnoredFiles, KnownRed, PreCommit, RunOptions, Words},
    process::{Cancel, FileLock, OrphanLock, interrupt, is_executable},
    progress::{Boxes, Progress, RunTotals},
    queue::{QueueClaim, Target},
    record::{RunIdentity, RunRecorder, settle},
    session::{SessionWriter, finish_turns, forget_unrecorded},
    settings::Settings,
    workspace::{Supply, Workspace},
};

use super::{
    CallSource, GardeningArgs, Planned, Reporter,
    apart::{MoveIn, RunPlace, choose},
    asked::{typed, typed_again},
    caveats::tell_of_taken_up,
    other_repos::{Supplied, neighbour},
    reporter::RunOpening,
};
use crate::{clock, ui, ui::Ui};

/// A run that may go on.
pub(crate) struct OpenRun {
    pub(crate) repository: Repository,
    pub(crate) options: RunOptions,
    pub(crate) settings: Settings,
    pub(crate) branch: BranchName,
    pub(super) head: Oid,
    pub(super) session: OnceLock<SessionId>,
    pub(super) session_writer: OnceLock<SessionWriter>,
    pub(super) workspace: Workspace,
    pub(super) lock: FileLock,
    /// What is left to do before the run works apart from the user's checkout.
    pub(super) move_in: Option<MoveIn>,
    /// What became of asking the remote, if it was asked.
    pub(super) supply: Option<Supply>,
    /// The other repositories of the workspace.
    pub(super) others: Vec<Supplied>,
    /// Whether the run's branch was made for its session.
    pub(super) is_apart: bool,
    /// Whether the run's branch holds nothing of the run yet: it was made for it, or a new run was asked for where a shallow
    /// history could not tell of old ones.
    is_untouched: bool,
    /// Where logs are kept: the user's checkout.
    pub(super) home: PathBuf,
    /// Whether the plan is taken there from the user's checkout.
    pub(super) brings_plan: bool,
    hook: PreCommit,
    /// What was read of the run.
    memory: CommitCache,
    pub(super) cancel: Cancel,
}

/// Finds the repository and takes the lock of its branch.
pub(crate) fn open(args: &GardeningArgs, ui: &mut Ui) -> Result<OpenRun, Failure> {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    let config = config.finish()?;
    ui.configure(&config);
    let settings = Settings::load(&repository, &config)?;
    if repository.worktree.is_none() {
        return Err(GardenerError::Bare.into());
    }
    let cancel = watch_signals();
    let workspace = Workspace::load(&repository, &settings, &cancel)?;
    let RunPlace { branch, head, session, move_in } = choose(&repository, args, (&settings, &workspace))?;
    let options = RunOptions::new(&args.flags(), &settings)?;
    let what = format!("git arborist on {branch}");
    let lock = FileLock::try_take(&repository.run_lock(&branch), &what)
        .map_err(|source| GardenerError::Locked { branch: branch.clone(), source })?;
    let has_crashed = repository.recover_locks()?;
    if has_crashed {
        repository.undo_updates(&branch)?;
        QueueClaim::release_dead(&repository, &branch)?;
    }
    // Another command may have recovered from the crash and forgotten it, so this does not depend on it.
    let is_moved = !finish_turns(&repository, &branch)?.is_empty();
    // A git of the dead driver may have moved the branch after we had looked.
    let (repository, head, move_in) = if has_crashed || is_moved {
        let now = repository.find_branch(&branch)?.unwrap_or(head);
        let mut move_in = move_in;
        if let Some(move_in) = &mut move_in {
            move_in.is_written_on |= now != head;
        }
        (Repository::discover()?, now, move_in)
    } else {
        (repository, head, move_in)
    };
    let hook = pre_commit(&repository, &config)?;
    let home = match (&session, &move_in) {
        (Some(_), None) => workspace.main().path.clone(),
        _ if args.is_guest => workspace.main().path.clone(),
        _ => repository.top().to_owned(),
    };
    Ok(OpenRun {
        home,
        is_apart: session.is_some(),
        is_untouched: move_in.as_ref().is_some_and(|move_in| !move_in.is_written_on)
            || args.new_run && repository.is_shallow,
        move_in,
        brings_plan: false,
        supply: None,
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
        memory: CommitCache::default(),
        cancel,
    })
}

pub(super) fn pre_commit(repository: &Repository, config: &Config) -> Result<PreCommit, Failure> {
    let file = repository.hooks_dir(config)?.path.join("pre-commit");
    let has_config_hook =
        repository.version >= GitVersion::CONFIG_HOOKS && config.section("hook.").next().is_some();
    Ok(if is_executable(&file) || has_config_hook { PreCommit::Asked } else { PreCommit::None })
}

/// The wish to stop: the first signal asks for it, the second ends this process.
pub(crate) fn watch_signals() -> Cancel {
    interrupt::watch(|signal| {
        ui::leave();
        std::process::exit(128 + signal)
    })
    .unwrap_or_default()
}

/// What must not be written down.
pub(super) fn secrets() -> Result<Secrets, Failure> {
    Ok(Secrets::of_environment(std::env::vars_os())?)
}

impl OpenRun {
    /// What history says now.
    pub(crate) fn scan(&self) -> Result<Run, Failure> {
        if self.is_untouched {
            let scope = RunScope { branch: self.branch.clone(), tip: None };
            return Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?);
        }
        self.scan_at(self.head)
    }

    /// The same as every command shows it: without work on task branches that no record knows. A run that begins sets such
    /// branches aside itself.
    pub(crate) fn scan_to_show(&self) -> Result<Run, Failure> {
        let mut run = self.scan()?;
        forget_unrecorded(&self.repository, &mut run)?;
        Ok(run)
    }

    /// Where the branch is now, and what history says there.
    pub(crate) fn scan_now(&self) -> Result<(Oid, Run), Failure> {
        let tip = self.repository.find_branch(&self.branch)?.unwrap_or(self.head);
        let mut run = self.scan_at(tip)?;
        forget_unrecorded(&self.repository, &mut run)?;
        Ok((tip, run))
    }

    fn scan_at(&self, tip: Oid) -> Result<Run, Failure> {
        let scope = RunScope { branch: self.branch.clone(), tip: Some(tip) };
        let refs = self.repository.list_refs(&[&self.branch.task_refs()])?;
        Ok(Run::scan_again(&self.repository, scope, refs, &self.memory)?)
    }

    /// Where the run's own branch is checked out, if it has one.
    pub(super) fn session_worktree(&self) -> Option<&Path> {
        self.is_apart.then(|| self.repository.top())
    }

    /// The session of the run that goes on, else a new one: the same whenever it is asked for.
    pub(crate) fn session(&self, args: &GardeningArgs, run: &Run) -> &SessionId {
        self.session.get_or_init(|| match (&run.start, args.new_run) {
            (Some(start), false) => start.session.clone(),
            _ => start::new_session(self.head),
        })
    }

    /// Everything that must be so before an agent is started; then hands over a gardener.
    pub(crate) fn begin<'a>(
        &'a self,
        args: &GardeningArgs,
        planned: &'a Planned,
        reporter: &'a mut Reporter<'_>,
        lanes: Option<&'a Lanes<'a>>,
    ) -> Result<Gardener<'a>, Failure> {
        self.settle_files()?;
        let run = self.scan()?;
        self.refuse_played(args, self.session(args, &run))?;
        if lanes.is_none() {
            self.refuse_parked()?;
        }
        let (mut orphan_lock, ended) = self.attend()?;
        if !ended.is_empty() {
            reporter.warn(&format!("ended what a crashed run had left running: {ended}"));
        }
        let session = self.session(args, &run).clone();
        let mut recorder = RunRecorder::new(&self.repository, self.branch.clone(), session, self.head)?;
        if lanes.is_none() {
            // The user may be about to commit: what we write down of a crash would move the branch under them.
            self.repository.await_index()?;
        }
        settle(&self.repository, &self.branch, self.head)?;
        for recovered in recover(&mut recorder, &run, &planned.plan, self.options.max_retries)? {
            reporter.warn(&recovered.words());
        }
        self.bring_plan(planned)?;
        self.hide_logs()?;
        match lanes {
            None => self.refuse_dirt(args, &recorder, planned)?,
            Some(lanes) => self.clear(lanes, reporter)?,
        }
        self.own_marks_of_others()?;
        let place = (&recorder, lanes, &mut orphan_lock);
        let tests = self.check_baseline(args, (planned, &run), place, reporter)?;
        let is_start = run.start.is_none() || args.new_run;
        if is_start {
            for path in start::write_start(&mut recorder, planned.file.as_ref(), tests)? {
                reporter.remark(&format!("committed with the start of the run: {path}"));
            }
            self.tell_of_unread_lines(planned, reporter);
        } else if args.accept_changes {
            start::write_change(&mut recorder, planned.freeze(true), ("accepted", tests))?;
        } else if planned.is_first_use {
            // Before anything else: from the first agent on, the file is no longer only the user's.
            let first_used = ("first used", tests);
            for path in start::write_change(&mut recorder, planned.freeze(false), first_used)? {
                reporter.remark(&format!("committed with the plan: {path}"));
            }
        } else if tests != Body::default() {
            let words = ("begun again with red tests", tests);
            start::write_change(&mut recorder, planned.freeze(false), words)?;
        }
        let queue = lanes.filter(|_| !args.is_idle).map(|lanes| &lanes.queue);
        self.tell_of_missing_tests(planned, (is_start, queue), reporter);
        let other_repos = self.other_repos(&recorder.identity().session, planned, reporter)?;
        tell_of_taken_up(args, reporter);
        self.tell_of_crowding(reporter);
        self.tell_of_missing_tools(planned, reporter)?;
        self.tell_of_unmeasured(planned, reporter)?;
        let tip = recorder.tip().clone();
        let newest = match lanes {
            Some(_) => Target::new(&self.repository, &self.branch).require()?.tip(),
            None => tip.head,
        };
        let run = self.scan_at(newest)?;
        let red_before = KnownRed::before_run(&self.repository, &run)?;
        let session = recorder.identity().session.clone();
        let recalled = self.recall(&session, (planned, &run))?;
        let session_writer = self.session_writer(args, (planned, &run), &session, newest)?;
        let words = Words::of(&self.settings);
        let checkpoints = CheckpointWriter::new(session_writer, planned.pipeline(), words, clock::now);
        let checkpoints = checkpoints.beside(other_repos.iter().map(neighbour).collect());
        let offline = args.source == CallSource::Records;
        let asked = args.asked()?;
        let (options, again) = (typed(&asked), typed_again(&asked));
        let (options, again) = (options + &args.typed_here(), again + &args.typed_choice());
        reporter.begin(RunOpening { offline, options, again, ..self.begun(&recorder, planned, &run) });
        reporter.set_pusher(self.pusher(recorder.identity().session.clone())?);
        let mut tools = self.tools(recorder.identity().clone(), checkpoints)?;
        tools.lanes = lanes;
        tools.recalled = recalled;
        tools.playback = self.playback(args, &session)?;
        if let Some(lanes) = lanes {
            tools.config_guard = lanes.queue.config_guard.clone();
            self.record_start(session_writer, &tools.checkpoints, reporter);
        }
        Ok(Gardener {
            repository: &self.repository,
            plan: &planned.plan,
            run,
            tools,
            checkout: Some(WorkerPlace {
                repository: self.repository.clone(),
                tip,
                orphan_lock,
                lease: None,
            }),
            other_repos,
            red_before,
            on_event: reporter.listener(),
        })
    }

    /// What is written on a branch that has not what landed would lead away from it.
    fn refuse_parked(&self) -> Result<(), Failure> {
        let position = Target::new(&self.repository, &self.branch).require().map_err(GardenerError::from)?;
        match position.parked {
            Some(_) => Err(GardenerError::Parked(self.branch.clone()).into()),
            None => Ok(()),
        }
    }

    fn attend(&self) -> Result<(OrphanLock, String), Failure> {
        let path = OrphanLock::beside(self.lock.path());
        let taken = OrphanLock::take_over(&self.lock, &path, Duration::from_secs(5));
        let (orphan_lock, ended) =
            taken.map_err(|source| GardenerError::Locked { branch: self.branch.clone(), source })?;
        let pids: Vec<String> = ended.0.iter().map(ToString::to_string).collect();
        Ok((orphan_lock, pids.join(", ")))
    }

    /// How the run stands now.
    fn begun(&self, recorder: &RunRecorder<'_>, planned: &Planned, run: &Run) -> RunOpening {
        let progress = Progress::new(Some(&planned.plan), run, Boxes::Count);
        RunOpening {
            branch: self.branch.clone(),
            session: recorder.identity().session.clone(),
            head: self.head,
            share: progress.share(),
            failed: progress.count(State::Failed),
            max_attempts: self.options.max_retries,
            spent: RunTotals::of_run(run),
            offline: false,
            options: String::new(),
            again: String::new(),
        }
    }

    fn tools<'a>(
        &'a self,
        identity: RunIdentity,
        checkpoints: CheckpointWriter<'a>,
    ) -> Result<Tools<'a>, Failure> {
        let beside = std::env::current_exe().context("could not find the program itself")?;
        Ok(Tools {
            options: &self.options,
            identity,
            home: self.home.clone(),
            secrets: secrets()?,
            cancel: self.cancel.clone(),
            demo: beside.with_file_name("git-arborist-demo"),
            toolbox: self.toolbox(&beside),
            hook: self.hook,
            clock: clock::now,
            config_guard: ConfigGuard::default(),
            reviews: Arc::new(ReviewWorktrees::new(&self.repository, self.worktree_options())),
            checkpoints,
            recalled: Vec::new(),
            playback: None,
            save_every: self.worktree_options().save_every,
            ignored: IgnoredFiles::default(),
            clean: self.clean_pool()?,
            sections: &self.workspace.sections,
            lanes: None,
        })
    }
}
