//! The thread of a task or a phase: works in its own place, and reports.

use std::{
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::Duration,
};

use super::{
    CleanPool, GardenerError, Lanes, TaskCheckout,
    work_state::{EndedJob, ThreadReport},
};
use crate::{
    event::{EventKind, RunEvent},
    gardener::{
        interrupted_attempts::{TaskFacts, record_unfinished},
        lanes::{LaneStart, lane_events},
        other_lanes::OtherLanes,
        phase,
    },
    git::Repository,
    history::{self, Event, WorkBase},
    mutex::MutexExt,
    name::{Oid, RepoName, SessionId, TaskId},
    pipeline::{
        CallMemory, CheckpointWriter, CommandCounts, IgnoredFiles, KnownRed, NamedCommand, OtherRepo,
        OtherSpending, RejectedWork, RunContext, TaskBackground, TaskContext, TaskEnd, TaskRun, TestsBefore,
    },
    plan::Task,
    process::{OrphanLock, with_slot},
    record::{RunRecorder, Tip},
    session::ResumeContext,
    workspace::{RepoSection, Tool, ToolRoot, Toolbox},
    worktree::{Lease, Saving, Signals, WorktreeNote, run_variables},
};

/// What the threads of all tasks of a run share.
#[derive(Clone)]
pub struct RunResources<'a> {
    /// What all tasks share.
    pub context: RunContext<'a>,
    /// The tools that agents may be given.
    pub toolbox: Toolbox,
    /// Writes the session's records.
    pub checkpoints: CheckpointWriter<'a>,
    /// Context of tasks that an earlier process started.
    pub recalled: Vec<ResumeContext>,
    /// How often unfinished work is saved.
    pub save_every: Duration,
    /// The ignored files of the user's checkout.
    pub ignored: IgnoredFiles,
    /// The pool for tests that need a clean checkout.
    pub clean: Option<Arc<CleanPool>>,
    /// The repositories of the workspace; the first is the one that has the plan.
    pub sections: &'a [RepoSection],
    /// Lanes for several tasks at once; `None` if tasks work in the user's checkout.
    pub lanes: Option<&'a Lanes<'a>>,
    /// Their lanes in the other repositories.
    pub other_lanes: Arc<Vec<OtherLanes>>,
    /// Whether the gate [`TEST_GATE`](super::TEST_GATE) is the run's test command.
    pub gates_are_tests: bool,
}

impl<'a> RunResources<'a> {
    fn saving<'w>(&'w self, repository: &'w Repository, task: &'w TaskId) -> Saving<'w> {
        Saving { repository, run: &self.context.identity.run_branch, task, every: self.save_every }
    }

    fn task_context<'w>(
        &'w self,
        repository: &'w Repository,
        orphan_lock: OrphanLock,
        on_event: impl FnMut(RunEvent) + Send + 'w,
    ) -> TaskContext<'w> {
        let (repo, place, session) =
            (self.toolbox.main(), repository.top(), Some(&self.context.identity.session));
        let environment = run_variables(repo, &self.context.identity.run_branch, session, place);
        TaskContext {
            run: &self.context,
            dir: repository.top(),
            orphan_lock,
            tools: self.toolbox.server(
                &[ToolRoot { name: repo, path: place, run: &self.context.identity.run_branch }],
                &environment,
            ),
            environment,
            on_event: Box::new(on_event),
            memory: CallMemory::with_resume_contexts(self.recalled.clone()),
            checkpoints: self.checkpoints.clone(),
            other_repos: Vec::new(),
            test_only_repos: Vec::new(),
            places: Vec::new(),
            commands: Vec::new(),
            ignored: None,
            lane_check: None,
            base_counter: None,
            clean_checkouts: None,
            set_up_denials: Vec::new(),
        }
    }

    /// Tells a task what its checkout needs: a lane has variables and may lack files, the user's checkout has ignored files
    /// that tests must not depend on.
    fn prepare_checkout<'w>(&'w self, context: &mut TaskContext<'w>, lease: Option<&Lease>) {
        let Some(lease) = lease else {
            context.clean_checkouts = self.clean_checkouts();
            context.ignored = Some(self.ignored.clone());
            return;
        };
        context.environment.extend(lease.environment.clone());
        context.lane_check = self.lane_check(lease.path.clone());
        context.base_counter = self.base_counter();
        let denials = lease.notes.iter().filter(|note| matches!(note, WorktreeNote::Denied { .. }));
        context.set_up_denials = denials.map(ToString::to_string).collect();
    }

    /// Whether a task or phase needs exclusive use of this repository: it works there, or its tests use a tool of it.
    pub(super) fn needs(&self, task: &Task, name: &RepoName) -> bool {
        let is_tested_there = |section: &RepoSection| {
            let tests =
                if task.is_leaf() { self.context.options.tests_of(task) } else { phase::commands(task) };
            tests.iter().any(|test| section.find_tool(&test.command).is_some())
        };
        works_in(task, name)
            || self.sections.iter().any(|section| section.name == *name && is_tested_there(section))
    }

    /// Gives a task the other repositories that it works in, and the tools of those that it only tests with.
    fn equip(&self, context: &mut TaskContext<'_>, task: &Task, other_repos: Vec<OtherRepo>) {
        let session = Some(&self.context.identity.session);
        let top = |other_repo: &OtherRepo| other_repo.repository.top().to_owned();
        let own = self.sections.iter().filter(|section| section.is_main);
        context.places = own.map(|section| (section.name.clone(), context.dir.to_owned())).collect();
        for section in self.sections {
            let other_repo = other_repos.iter().find(|other_repo| other_repo.name == section.name);
            let (run, dir) = match other_repo {
                Some(other_repo) => (&other_repo.identity.run_branch, other_repo.repository.top()),
                None if section.is_main => (&self.context.identity.run_branch, context.dir),
                None => continue,
            };
            let environment = run_variables(&section.name, run, session, dir);
            let named = |(tool, what): (&String, &Tool)| NamedCommand {
                name: format!("{}:{tool}", section.name),
                command: what.command.clone(),
                dir: dir.to_owned(),
                environment: environment.clone(),
            };
            context.commands.extend(section.tools.iter().map(named));
        }
        let (other_repos, test_only_repos): (Vec<OtherRepo>, Vec<OtherRepo>) =
            other_repos.into_iter().partition(|other_repo| works_in(task, &other_repo.name));
        context
            .places
            .extend(other_repos.iter().map(|other_repo| (other_repo.name.clone(), top(other_repo))));
        let first = other_repos
            .iter()
            .find(|other_repo| task.repos.first().is_some_and(|name| other_repo.name.as_str() == name));
        if let Some(other_repo) = first {
            let (run, place) = (&other_repo.identity.run_branch, other_repo.repository.top());
            context.environment.extend(run_variables(&other_repo.name, run, session, place));
        }
        if !other_repos.is_empty() {
            let run_in = |name: &RepoName| {
                let other_repo = other_repos.iter().find(|other_repo| other_repo.name == *name);
                other_repo
                    .map_or(&self.context.identity.run_branch, |other_repo| &other_repo.identity.run_branch)
            };
            let named = context.places.iter().filter(|(name, _)| works_in(task, name));
            let roots: Vec<ToolRoot<'_>> =
                named.map(|(name, path)| ToolRoot { name, path, run: run_in(name) }).collect();
            context.tools = self.toolbox.server(&roots, &context.environment);
        }
        if self.has_lanes(task) {
            context.checkpoints.follow_checkouts(other_repos.iter().map(OtherRepo::for_session));
        }
        (context.other_repos, context.test_only_repos) = (other_repos, test_only_repos);
    }
}

/// Whether a task works in the repository of this name.
pub(super) fn works_in(task: &Task, name: &RepoName) -> bool {
    task.repos.iter().any(|repo| name.as_str() == repo)
}

/// Something to do.
pub(super) struct Job<'a> {
    pub(super) task: &'a Task,
    pub(super) kind: JobKind<'a>,
    /// Worktrees in other repositories.
    pub(super) other_repos: Vec<OtherRepo>,
}

/// What is to be done, and where.
pub(super) enum JobKind<'a> {
    /// Work in the user's checkout.
    Checkout { work: CheckoutWork, checkout: Box<TaskCheckout> },
    /// Work on a task in a lane, which has yet to be taken.
    Lane { start: Box<TaskStart>, lanes: &'a Lanes<'a>, lane: LaneStart },
    /// Run the tests of a phase in a scratch worktree at this commit.
    Scratch { before: TestsBefore, lanes: &'a Lanes<'a>, commit: Oid },
}

/// What is to be done in a checkout.
pub(super) enum CheckoutWork {
    /// Work on a task to its end.
    Task(Box<TaskStart>),
    /// Run the tests of a phase.
    Phase(TestsBefore),
}

/// The state of a task when a thread starts on it.
pub(super) struct TaskStart {
    /// Events before its last reset.
    pub(super) earlier: Vec<Event>,
    /// Events since then, from which attempts are counted.
    pub(super) events: Vec<Event>,
    /// Where to look for its base: the start of the run, and the session. `None` if nothing was committed for it
    /// before.
    pub(super) search_base_from: Option<(Oid, SessionId)>,
    /// What prompts say about the task beside its own text.
    pub(super) background: TaskBackground,
    /// Tests that are known to fail.
    pub(super) known_red: KnownRed,
    /// How many tests ran before it.
    pub(super) counts_before: CommandCounts,
    /// An unfinished task whose changes are in the checkout and have yet to be tested.
    pub(super) leftovers: Option<TaskId>,
    /// The work of failed tasks in the checkout.
    pub(super) rejected: Vec<RejectedWork>,
    /// What the rest of the run has spent, and keeps spending.
    pub(super) spent_by_others: OtherSpending,
    /// Whether there may be an attempt that was not recorded to its end.
    pub(super) is_interrupted: bool,
    /// Whether the user asked to retry it although it was interrupted too often.
    pub(super) is_retried: bool,
}

/// Does a job. Everything is recorded before it is reported.
pub(super) fn work(resources: &RunResources<'_>, job: Job<'_>, reports: &SyncSender<ThreadReport>) {
    let Job { task, kind, other_repos } = job;
    let runner = JobRunner { resources, task, reports, other_repos, events: Vec::new() };
    // During its steps, the task itself watches its branch. After them, the branch is compared like all others.
    let _branch = resources.lanes.map(|lanes| {
        let branch = resources.context.identity.run_branch.task_branch(&task.id);
        lanes.repository.exempt_ref(&branch.to_ref())
    });
    match kind {
        JobKind::Checkout { work, checkout } => runner.work_in_checkout(*checkout, work),
        // The tests of phases need no slot: they may hold the other repositories' checkouts, for which others then wait.
        JobKind::Lane { start, lanes, lane } => with_slot(|| runner.work_in_lane(lanes, &lane, start)),
        JobKind::Scratch { before, lanes, commit } => runner.test_in_scratch(lanes, commit, before),
    }
}

/// Does one job.
struct JobRunner<'t, 'a> {
    resources: &'t RunResources<'a>,
    /// The task or phase.
    task: &'t Task,
    reports: &'t SyncSender<ThreadReport>,
    /// Its worktrees in other repositories.
    other_repos: Vec<OtherRepo>,
    /// What was recorded.
    events: Vec<Event>,
}

impl JobRunner<'_, '_> {
    fn work_in_checkout(mut self, checkout: TaskCheckout, work: CheckoutWork) {
        let (checkout, result) = self.run_in(checkout, work);
        let result = result.map_err(|error| checkout.explain(error));
        self.end_in_checkout(Some(checkout), result);
    }

    fn work_in_lane(mut self, lanes: &Lanes<'_>, lane: &LaneStart, start: Box<TaskStart>) {
        match self.take_lanes(lanes, lane) {
            Ok(checkout) => self.work_in_checkout(checkout, CheckoutWork::Task(start)),
            Err(error) => self.end_in_checkout(None, Err(error)),
        }
    }

    fn test_in_scratch(mut self, lanes: &Lanes<'_>, commit: Oid, before: TestsBefore) {
        let result = self.run_in_scratch(lanes, commit, before);
        self.end(None, result);
    }

    fn end_in_checkout(mut self, checkout: Option<TaskCheckout>, result: Result<TaskEnd, GardenerError>) {
        // Lanes in other repositories belong to the task's own lane. Worktrees of the session go back to the run.
        if self.resources.has_lanes(self.task) {
            self.other_repos.clear();
        }
        self.end(checkout, result);
    }

    /// Reports the end. Sending fails only when the run is ending.
    fn end(self, workplace: Option<TaskCheckout>, result: Result<TaskEnd, GardenerError>) {
        let Self { task, reports, other_repos, events, .. } = self;
        let ended = EndedJob { task: task.id.clone(), workplace, other_repos, events, result };
        let _ = reports.send(ThreadReport::Ended(Box::new(ended)));
    }

    /// Takes a lane for the task in each repository that it needs, and reports it.
    fn take_lanes(&mut self, lanes: &Lanes<'_>, start: &LaneStart) -> Result<TaskCheckout, GardenerError> {
        let (mut checkout, starts_over) = lanes.take(&self.task.id, start)?;
        for event in checkout
            .lease
            .iter()
            .flat_map(|lease| lane_events(&self.task.id, None, lease, std::iter::empty()))
        {
            let _ = self.reports.send(ThreadReport::News(event));
        }
        let (other_repos, other_leases) =
            self.resources.take_other_lanes(self.task, starts_over, self.reports)?;
        checkout.other_leases = other_leases;
        self.other_repos.extend(other_repos);
        Ok(checkout)
    }

    /// Works in a checkout. While it does, unfinished work is saved from time to time.
    fn run_in(
        &mut self,
        checkout: TaskCheckout,
        work: CheckoutWork,
    ) -> (TaskCheckout, Result<TaskEnd, GardenerError>) {
        let TaskCheckout { repository, tip, orphan_lock, lease, other_leases } = checkout;
        let Self { resources, task, reports, other_repos, events } = self;
        let (signs, received) = Signals::new();
        let on_event = reports.clone();
        let (tip, orphan_lock, result) = thread::scope(|scope| {
            let saving = resources.saving(&repository, &task.id);
            scope.spawn(move || saving.run(&received));
            let mut context = resources.task_context(&repository, orphan_lock, move |event| {
                // Sending fails only when the run is ending.
                signs.give(&event.kind);
                let _ = on_event.send(ThreadReport::News(event));
            });
            resources.prepare_checkout(&mut context, lease.as_ref());
            resources.equip(&mut context, task, std::mem::take(other_repos));
            let mut recorder = RunRecorder::at(&repository, resources.context.identity.clone(), tip);
            let result = match work {
                CheckoutWork::Task(start) => {
                    run_task(resources, &mut context, &mut recorder, task, *start, events)
                }
                CheckoutWork::Phase(before) => phase::test(&mut context, &mut recorder, task, before, events)
                    .map_err(GardenerError::from),
            };
            *other_repos = take_other_repos(&mut context);
            (recorder.tip().clone(), context.into_orphan_lock(), result)
        });
        (TaskCheckout { repository, tip, orphan_lock, lease, other_leases }, result)
    }

    /// Runs the tests of a phase in a scratch worktree at the run's newest commit. The result is recorded on the run's
    /// branch.
    fn run_in_scratch(
        &mut self,
        lanes: &Lanes<'_>,
        commit: Oid,
        before: TestsBefore,
    ) -> Result<TaskEnd, GardenerError> {
        let Self { resources, task: phase, reports, other_repos, events } = self;
        // The session's worktrees in other repositories must not move while they are tested in. Taken before all other
        // mutexes.
        let _checkouts = lanes.queue.memory.other_checkouts.hold();
        for used in other_repos.iter_mut() {
            resources.find_other_lanes(&used.name).map_or(Ok(()), |other| other.refresh(used))?;
        }
        let scratch = lanes.pool.scratch("phase", commit)?;
        lanes.pool.refresh(&scratch, commit, &lanes.queue.merge.keep)?;
        let (place, orphan_lock, _lock) = scratch.into_parts();
        let on_event = reports.clone();
        let mut context = resources.task_context(&place, orphan_lock, move |event| {
            let _ = on_event.send(ThreadReport::News(event));
        });
        resources.equip(&mut context, phase, std::mem::take(other_repos));
        let tip = Tip::new(lanes.repository, resources.context.identity.run_branch.clone(), commit)?;
        let mut recorder = RunRecorder::at(lanes.repository, resources.context.identity.clone(), tip);
        context.base_counter = resources.base_counter();
        let result = phase::test(&mut context, &mut recorder, phase, before, events);
        lanes.pool.remember_kept(&place, &lanes.queue.merge.keep);
        *other_repos = take_other_repos(&mut context);
        Ok(result?)
    }
}

/// Takes the worktrees in other repositories back from a task that has ended.
fn take_other_repos(context: &mut TaskContext<'_>) -> Vec<OtherRepo> {
    let mut other_repos = std::mem::take(&mut context.other_repos);
    other_repos.append(&mut context.test_only_repos);
    other_repos
}

/// Runs a task. An attempt that an earlier run left unfinished here is recorded first.
fn run_task(
    resources: &RunResources<'_>,
    context: &mut TaskContext<'_>,
    recorder: &mut RunRecorder<'_>,
    task: &Task,
    start: TaskStart,
    written: &mut Vec<Event>,
) -> Result<TaskEnd, GardenerError> {
    let TaskStart {
        earlier,
        mut events,
        search_base_from,
        background,
        known_red,
        counts_before,
        leftovers,
        rejected,
        spent_by_others,
        is_interrupted,
        is_retried,
    } = start;
    let known_red = match leftovers {
        Some(other) => resources.test_leftovers(context, recorder, &task.id, other, known_red)?,
        None => known_red,
    };
    let tip = recorder.head();
    let base = match &search_base_from {
        Some((start, session)) => WorkBase::find(
            recorder.repository(),
            history::TaskWork { task: &task.id, session, start: *start, tip },
        )?,
        None => WorkBase::fresh(tip, recorder.tree()),
    };
    let allows_fewer = context.run.options.protection.allows_fewer_tests(&task.allow);
    let tests_before = TestsBefore { counts: counts_before, base: Some(base.commit), allows_fewer };
    let known = events.len();
    if is_interrupted {
        record_left(context, recorder, task, &mut events, None)?;
    }
    context.checkpoints.begin(recorder.tree());
    let mut run = TaskRun {
        context,
        recorder,
        task,
        earlier,
        events,
        base,
        background,
        rejected,
        known_red,
        tests_before,
        others: spent_by_others,
        is_retried,
    };
    let result = run.run();
    let TaskRun { context, recorder, mut events, .. } = run;
    // An error of ours leaves the attempt marked as unfinished. Its reason is known only now, so record it at once. If
    // that fails too, the mark stays and the next run records it.
    if let Err(error) = &result
        && error.is_interruption()
    {
        let _ = record_left(context, recorder, task, &mut events, Some(&error.reason()));
    }
    let result = result.map_err(|error| error.after(&task.id, &events));
    written.extend(events.drain(known..));
    Ok(result?)
}

/// Records attempts of the task that were started and not ended.
fn record_left(
    context: &mut TaskContext<'_>,
    recorder: &mut RunRecorder<'_>,
    task: &Task,
    events: &mut Vec<Event>,
    why: Option<&str>,
) -> Result<(), GardenerError> {
    let (own, name) = (|_: &TaskId| events.as_slice(), |_: &TaskId| Some(task.name.as_str()));
    let RunContext { options, config_guard, .. } = &context.run;
    let allow = |_: &TaskId| task.allow.as_slice();
    let known = TaskFacts { events: &own, name: &name, allow: &allow, options, config_guard, why };
    for recovered in record_unfinished(recorder, &known)? {
        context.emit(&task.id, EventKind::note(recovered.words()));
        // Work that no record mentions would not land if the next attempt has nothing left to change.
        if recovered.has_files()
            && let Some(checkpoint) = context.checkpoints.step(recorder, &recovered.event)
        {
            context.emit(&task.id, checkpoint);
        }
        events.push(recovered.event);
    }
    Ok(())
}
