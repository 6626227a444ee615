//! Drives an open run: everything that must happen before the first task, the work of the gardener, and the end. Each stage
//! is a function.

use std::sync::Arc;

use anyhow::Context;

use super::{
    CallSource, EndedRun, OpenRun, Planned, RunListener,
    monitor::RunMonitor,
    recorded_options::{options_with_secrets, recorded_words},
    request::secrets,
};
use crate::{
    event::{EventKind, RunEvent, RunOpening},
    failure::Failure,
    gardener::{
        Gardener, GardenerError, Lanes, ReviewWorktrees, RunResources, Selection, TaskCheckout, start,
    },
    git::{SavedCheckout, SettingsChange},
    history::{Run, State},
    message::Body,
    name::SessionId,
    pipeline::{
        BEFORE_THE_RUN, CheckpointWriter, IgnoredFiles, KnownRed, OtherRepo, Protection, RunContext,
        StepRunner, UsersPaths,
    },
    process::OrphanLock,
    progress::{PlanMarks, Progress, RunTotals},
    queue::Target,
    record::{RunIdentity, RunRecorder},
    session::ResumeContext,
    workspace::compare_elsewhere,
};

impl OpenRun {
    /// Starts the run, works until no task can be worked on, and closes it.
    pub fn drive(
        &self,
        planned: &Planned,
        lanes: Option<&Lanes<'_>>,
        selection: &Selection,
        listener: &mut dyn RunListener,
    ) -> Result<EndedRun, Failure> {
        let mut monitor = RunMonitor::new(listener);
        if lanes.is_none() {
            self.warn_of_unused_worktrees(planned, selection, monitor.listener)?;
        }
        let ended =
            self.begin(planned, selection, lanes, &mut monitor).map(|mut gardener| gardener.run(selection));
        self.repository.remember_indexes();
        for words in self.saved_checkouts().iter().filter_map(SavedCheckout::compare) {
            monitor.report(RunEvent::of_run(EventKind::RefMoved { words }));
        }
        self.close(planned, selection, ended?, monitor)
    }

    /// Does everything that must happen before an agent starts, and returns the gardener.
    fn begin<'a>(
        &'a self,
        planned: &'a Planned,
        selection: &Selection,
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
        let run = self.scan_with_unrecorded()?;
        self.refuse_played(self.session(&run))?;
        self.refuse_lost_test_command(planned, selection, &run)?;
        if lanes.is_none() {
            self.refuse_parked()?;
        }
        let mut orphan_lock = self.end_orphans(monitor)?;
        self.warn_of_changes_since_kill(monitor.listener);
        let mut recorder = self.record_interrupted(planned, &run, lanes, monitor)?;
        self.prepare_workplace(planned, &run, &recorder, lanes, monitor)?;
        self.watch_others(&recorder.identity().session)?;
        self.config_guard.protect(&self.options.runners.protected(&planned.plan)?, &self.repository);
        let tests =
            self.check_baseline(planned, &run, &recorder, lanes, &mut orphan_lock, monitor.listener)?;
        self.record_plan(planned, &run, &mut recorder, tests, monitor)?;
        self.publish_start(recorder.head())?;
        self.warn_of_missing_sandbox(&run, monitor.listener);
        self.warn_of_skipped_hook(&run, monitor.listener);
        self.warn_of_missing_tests(planned, selection, &run, lanes, monitor.listener);
        let other_repos = self.enter_other_repos(&recorder.identity().session, planned, monitor.listener)?;
        self.warn_of_caveats(planned, monitor.listener)?;
        self.build_gardener(planned, &recorder, lanes, orphan_lock, other_repos, monitor)
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
        let listener = &mut *monitor.listener;
        if self.is_new_run(run) {
            let worker = self.remote_work.as_ref().map(|remote_work| remote_work.worker());
            let is_sandbox_missing = self.options.sandbox.is_missing();
            let body = tests.followed_by(Protection::new(&self.settings, &[]).quoted());
            for path in start::write_start(recorder, planned.file.as_ref(), worker, is_sandbox_missing, body)?
            {
                listener.remark(&format!("your changes to {path} were committed when the run started"));
            }
            self.warn_of_unread_lines(planned, listener);
        } else if self.request.accept_changes {
            for words in self.list_added_powers(planned)?.into_iter().chain(self.list_accepted(run)?) {
                listener.remark(&words);
            }
            let body = tests.followed_by(Protection::new(&self.settings, &[]).quoted_again());
            start::write_change(recorder, planned.accepted_plan(), "accepted", body)?;
        } else if planned.is_first_use {
            // Before anything else: once an agent has run, the file may no longer be the user's.
            for path in start::write_change(recorder, planned.plan_in_force(), "first used", tests)? {
                listener.remark(&format!("committed with the plan: {path}"));
            }
        } else if tests != Body::default() {
            let known = KnownRed::read(&tests, BEFORE_THE_RUN);
            let words = match known.is_some_and(|known| !known.is_empty()) {
                true => "started again although tests fail",
                false => "tests were counted again",
            };
            start::write_change(recorder, planned.plan_in_force(), words, tests)?;
        }
        Ok(())
    }

    /// Opens the session's records and collects what the threads of tasks need.
    fn build_gardener<'a>(
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
        let mut run = self.scan_with_unrecorded_at(newest)?;
        compare_elsewhere(&self.workspace.sections, &mut run)?;
        let known_red = KnownRed::before_run(&self.repository, &run)?;
        let recalled = self.recall(&identity.session, planned, &run)?;
        let session_writer = self.session_writer(planned, &run, &identity.session, newest)?;
        let words = self.settings.session.transcripts;
        let checkpoints = CheckpointWriter::new(session_writer, planned.pipeline(), words, self.clock)
            .beside(other_repos.iter().map(OtherRepo::for_session).collect());
        let opening =
            RunOpening { has_lanes: lanes.is_some(), ..self.run_opening(&identity.session, planned, &run)? };
        monitor.begin(opening, (self.clock)());
        monitor.pushes.pusher = self.pusher(identity.session.clone())?;
        let mut resources = self.resources(identity, checkpoints, recalled, lanes)?;
        resources.other_lanes = Arc::new(self.other_lanes(lanes, &other_repos)?);
        if lanes.is_some() {
            self.record_start(session_writer, &resources.checkpoints, monitor);
        }
        Ok(Gardener {
            repository: &self.repository,
            plan: &planned.plan,
            plan_path: planned.path(),
            run,
            resources,
            checkout: Some(TaskCheckout {
                repository: self.repository.clone(),
                tip,
                orphan_lock,
                lease: None,
                other_leases: Vec::new(),
            }),
            other_repos,
            known_red,
            on_event: Box::new(move |event| monitor.report(event)),
        })
    }

    /// An error whose hints repeat the options of this command.
    #[must_use]
    pub fn with_hints(&self, error: GardenerError) -> Failure {
        error.into_failure(&self.request.typed_options())
    }

    /// Refuses to write on a branch that lacks a parked landing: its history would diverge from what landed.
    fn refuse_parked(&self) -> Result<(), Failure> {
        let target = Target::new(&self.repository, &self.branch);
        if target.require().map_err(GardenerError::from)?.parked.is_none() {
            return Ok(());
        }
        let branch = self.branch.clone();
        let obstacle = target.find_obstacle().map_err(GardenerError::from)?;
        Err(self.with_hints(GardenerError::Parked { branch, obstacle }))
    }

    /// The state of the run at its start, for the first event.
    fn run_opening(&self, session: &SessionId, planned: &Planned, run: &Run) -> Result<RunOpening, Failure> {
        let progress = Progress::new(Some(&planned.plan), run, PlanMarks::Count);
        let recorded_options = self.request.recorded()?;
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
            options: recorded_words(&recorded_options) + &self.request.options_not_recorded(),
            again: options_with_secrets(&recorded_options) + &self.request.typed_selection(),
        })
    }

    /// The paths with uncommitted changes of the user in the checkout in which tasks work.
    fn find_users_paths(&self, is_in_place: bool) -> Result<Arc<UsersPaths>, Failure> {
        let saved = self.saved_checkouts();
        let saved = saved.iter().find(|saved| is_in_place && saved.is_of(&self.repository));
        let paths = saved.map(SavedCheckout::find_unchanged).transpose()?;
        Ok(Arc::new(UsersPaths::of(paths.unwrap_or_default())))
    }

    fn resources<'a>(
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
            save_every: self.worktree_options().save_every(),
            ignored: IgnoredFiles::default(),
            clean: self.clean_pool()?,
            sections: &self.workspace.sections,
            lanes,
            other_lanes: Arc::default(),
            gates_are_tests: self.options.test_command.as_deref().is_some_and(|test| self.is_test_gate(test)),
        })
    }
}
