//! Works through a plan. The [`Gardener`] owns the state of the run: it starts a thread for each ready task, applies what the
//! threads report, and stops where a person is needed.
//!
//! A task is not started, although its dependencies are complete, for one of these reasons:
//!
//! | the task | decided by |
//! |---|---|
//! | is not selected, or has ended in this call | [`wanted`], `WorkState::excluded` |
//! | names files that a running task names | `choose::next_task` |
//! | needs the checkout of another repository in which a running task works | `Gardener::next_job` |
//! | has been taken by a worker on another machine | `OtherWorkers::is_open` |
//! | has no place: all jobs or lanes are taken | `Gardener::has_place` |
//!
//! Whether its dependencies are complete is decided by [`Progress`]; `refusals` and [`GardenerError`] say why nothing is
//! started at all.

mod advice;
mod baseline_guard;
mod baseline_test;
mod before_task;
pub mod changed_settings;
mod choose;
mod error;
mod interrupted_attempts;
mod land;
mod lanes;
mod leftover_work;
mod other_lanes;
mod other_workers;
mod other_workers_state;
mod outcome;
mod phase;
mod projects;
mod refusals;
mod review_worktrees;
mod saved_branches;
pub mod start;
mod task_thread;
mod test_places;
mod work_state;

pub use advice::continue_in_lane;
pub use baseline_guard::BaselineGuard;
pub use baseline_test::{
    Baseline, OutsideResult, Probe, RedCause, TEST_GATE, UntriedOutside, create_baseline_log, has_passed,
};
pub use choose::{Selection, due, left_over, wanted};
pub(crate) use error::first_or_next;
pub use error::{GardenerError, LandingDelay, TypedOptions};
pub use interrupted_attempts::{Recovered, recover};
pub use lanes::{Lanes, LeftMarks, TaskCheckout};
pub use leftover_work::LeftoverWork;
pub use other_lanes::OtherLanes;
pub use outcome::{Summary, Unlanded};
pub use phase::find_due_phase;
pub use refusals::{LostBranch, find_lost_branches, find_started_in_lane, refuse_reverted, refuse_waiting};
pub use review_worktrees::ReviewWorktrees;
pub use saved_branches::save_own_branch;
pub use start::{PlanFile, UnacceptedChange};
pub use task_thread::RunResources;
pub use test_places::CleanPool;

use std::{
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread::{self, Scope},
};

use crate::{
    agent::limits::{BudgetLevel, Spent},
    coordination::Release,
    event::{EventKind, RunEvent, StepChanges},
    failure::{Exit, Explain},
    git::{OwnCheckout, Packing, Repository, take_notices},
    history::{Event, EventPosition, Run, TaskHistory},
    message::{Status, SubjectParts, first_of},
    name::{Attempt, RepoName, TaskId},
    pipeline::{CommandCounts, KnownRed, OtherRepo, OtherSpending, PipelineError, TaskBackground, TaskEnd},
    plan::{Plan, Task},
    progress::{PlanMarks, Progress},
    queue::LandingPolicy,
    record::TaskEvent,
    session::{find_unrecorded, owned_by, owned_elsewhere},
    worktree::take_uncopied_files,
};
pub(crate) use lanes::events_before_reset;
use task_thread::{CheckoutWork, Job, JobKind, TaskStart, work, works_in};
use work_state::{EndedJob, FinishedTask, Stop, TaskThread, ThreadReport, WorkState, next_report};

/// A run that is open.
pub struct Gardener<'a> {
    /// The repository, opened in the user's checkout.
    pub repository: &'a Repository,
    /// The plan that the run was frozen with.
    pub plan: &'a Plan,
    /// The path of its file, if it has one.
    pub plan_path: Option<&'a str>,
    /// The history of the run when it was opened, and the events since.
    pub run: Run,
    /// What the threads of all tasks share.
    pub resources: RunResources<'a>,
    /// The user's checkout, while no task uses it.
    pub checkout: Option<TaskCheckout>,
    /// Worktrees in other repositories, while no task uses them.
    pub other_repos: Vec<OtherRepo>,
    /// Tests that failed before the run began.
    pub known_red: KnownRed,
    /// Called for each event.
    pub on_event: Box<dyn FnMut(RunEvent) + 'a>,
}

/// How many reports may be queued. A thread that sends more blocks, and so does its agent, so that memory stays
/// bounded.
const BACKLOG: usize = 1024;

impl<'a> Gardener<'a> {
    /// Works on tasks until none is left that can be worked on.
    pub fn run(&mut self, selection: &Selection) -> Result<Summary, GardenerError> {
        self.refuse_forks()?;
        let wanted = wanted(self.plan, selection);
        refuse_reverted(&wanted, &Progress::new(Some(self.plan), &self.run, PlanMarks::Count))?;
        self.refuse_lost(&wanted)?;
        self.refuse_red_without_test(&wanted)?;
        if self.resources.lanes.is_none() {
            self.refuse_own_branches(&wanted)?;
        }
        match selection.retry_failed {
            true if self.remote_work().is_some() => self.forget_failed(&wanted),
            true => self.reset_failed(&wanted)?,
            false => {}
        }
        self.own_refs()?;
        self.distrust_unrecorded()?;
        let resources = self.resources.clone();
        thread::scope(|scope| {
            // `reports` is dropped before the scope joins its threads, also after a panic, so that blocked senders wake
            // up.
            let (sender, reports) = sync_channel(BACKLOG);
            let mut state = WorkState::new(wanted, selection);
            let (mut packing, mut last) = (Packing::default(), None);
            self.find_finished(&mut state)?;
            self.publish_earlier(&mut state);
            loop {
                if let Err(error) = self.queue_for_request(&mut state) {
                    state.halt(Stop::Error(error));
                }
                // Pack only between two tasks, or at the end: never while a child process runs.
                if let Some(task) = last.as_ref().filter(|_| !state.has_threads()) {
                    self.pack(&mut packing, task);
                }
                self.catch_up_with_others(&mut state);
                self.start_tasks(&mut state, scope, &resources, &sender);
                self.release_early_claim(&mut state);
                self.start_landing(&mut state, scope, &resources, &sender);
                if !state.has_threads() {
                    if !self.awaits_others(&mut state) {
                        self.take_in_last_others_commits(&mut state);
                        break;
                    }
                    self.look_at_others_soon(&mut state);
                }
                self.report_notices();
                match next_report(&reports, &mut state) {
                    None => {}
                    Some(ThreadReport::News(event)) => {
                        state.share_spending(&event);
                        (self.on_event)(event);
                    }
                    Some(ThreadReport::Ended(ended)) => {
                        last = Some(ended.task.clone());
                        self.report_uncopied_files(&ended.task);
                        self.apply_ended_job(&mut state, *ended);
                    }
                    Some(ThreadReport::Drained(drained)) => self.apply_landings(&mut state, *drained),
                }
            }
            self.sweep_kept(last.as_ref());
            self.compare_user_refs();
            self.summarize(state)
        })
    }

    /// Packs objects as `git gc --auto` would. `task` is the last one that ended.
    fn pack(&mut self, packing: &mut Packing, task: &TaskId) {
        let other_repos = self.other_repos.iter().map(|other_repo| &other_repo.repository);
        for repository in [self.repository].into_iter().chain(other_repos) {
            if let Err(error) = packing.run(repository) {
                let words = format!("objects were not packed: {error}");
                (self.on_event)(RunEvent::of(task, EventKind::step_note(words)));
            }
        }
    }

    /// Reports files of the checkout that worktrees did not get.
    fn report_uncopied_files(&mut self, task: &TaskId) {
        for note in take_uncopied_files() {
            (self.on_event)(RunEvent::of(task, EventKind::warning(note.to_string())));
        }
    }

    /// Reports refs of the user that were deleted or moved, and other changes for which no task is blamed: it may have
    /// been the user.
    fn report_notices(&mut self) {
        for words in take_notices() {
            (self.on_event)(RunEvent { task: None, kind: EventKind::RefMoved { words } });
        }
    }

    /// Compares the user's refs a last time.
    fn compare_user_refs(&mut self) {
        self.repository.compare_user_refs();
        self.other_repos.iter().for_each(|other_repo| other_repo.repository.compare_user_refs());
        self.report_notices();
    }

    /// Checks the files that stay in worktrees of gates, because the next process trusts them. `task` is the last one
    /// that ended, if one did.
    fn sweep_kept(&mut self, task: Option<&TaskId>) {
        let clean = self.resources.clean.as_ref().map(|clean| &clean.pool);
        let pool = self.resources.lanes.map(|lanes| &lanes.pool).or(clean);
        let Some(error) = pool.and_then(|pool| pool.sweep_kept().err()) else { return };
        let words = format!("files in the worktrees of gates could not be checked: {error}");
        (self.on_event)(RunEvent { task: task.cloned(), kind: EventKind::warning(words) });
    }

    /// Takes ownership of the run's refs: from here on, changes by other processes are detected and undone.
    fn own_refs(&self) -> Result<(), GardenerError> {
        let identity = &self.resources.context.identity;
        self.repository.own_refs(&owned_by(&identity.run_branch, Some(&identity.session)))?;
        let own = if self.resources.lanes.is_some() { OwnCheckout::LeftAlone } else { OwnCheckout::Used };
        self.repository.record_user_refs(own);
        for other_repo in &self.other_repos {
            other_repo.repository.own_refs(&owned_elsewhere(&other_repo.tip.branch, &identity.session))?;
            other_repo.repository.record_user_refs(OwnCheckout::Used);
        }
        Ok(())
    }

    /// Approved work on a task branch that no record mentions was not written by this run, so the task is done again.
    fn distrust_unrecorded(&mut self) -> Result<(), GardenerError> {
        for task in find_unrecorded(self.repository, &self.run)? {
            let words = format!(
                "the branch of '{task}' has commits that no record of the run names, so the task is done again"
            );
            (self.on_event)(RunEvent::of(&task, EventKind::note(words)));
            self.run.forget(&task);
            if let Some(lanes) = self.resources.lanes {
                lanes.queue.memory.distrusted.add(task);
            }
        }
        Ok(())
    }

    /// Starts tasks while there is a free place and a ready task.
    fn start_tasks<'scope, 'env>(
        &mut self,
        state: &mut WorkState<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        resources: &'env RunResources<'a>,
        sender: &SyncSender<ThreadReport>,
    ) where
        'a: 'scope,
    {
        while state.stop.is_none() && self.has_place(state) {
            let Some(task) = self.next_job(state) else {
                return;
            };
            if !self.claim(state, task) {
                continue;
            }
            let (spending_sender, spending_receiver) = channel();
            let job = match self.prepare(state, task, spending_receiver) {
                Ok(job) => job,
                Err(error) => {
                    state.halt(Stop::Error(error));
                    return;
                }
            };
            let sender = sender.clone();
            let handle = scope.spawn(move || work(resources, job, &sender));
            state.running.push(TaskThread { task, handle, spent: Spent::default(), spending_sender });
        }
    }

    fn has_place(&self, state: &WorkState<'_, 'a, '_>) -> bool {
        match self.resources.lanes {
            Some(lanes) => state.running.len() < lanes.jobs && state.lanes_in_use() < lanes.max(),
            None => self.checkout.is_some(),
        }
    }

    /// A phase whose tests are due, or else a ready task.
    fn next_job(&self, state: &WorkState<'_, 'a, '_>) -> Option<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), &self.run, PlanMarks::Count);
        let running: Vec<&Task> = state.running.iter().map(|running| running.task).collect();
        let is_free = |phase: &&Task| running.iter().all(|running| running.id != phase.id);
        let is_parked = state.summary.parked.is_some();
        let others = || self.resources.sections.iter().filter(|section| !section.is_main);
        // Without lanes, only one at a time works or tests in the session's worktree of another repository.
        let needs_checkout = |task: &Task, name: &RepoName| {
            self.resources.needs(task, name) && !self.resources.has_lanes(task)
        };
        let is_away = |name: &RepoName| running.iter().any(|task| needs_checkout(task, name));
        let has_places = |task: &&Task| {
            others().all(|section| !needs_checkout(task, &section.name) || !is_away(&section.name))
        };
        let is_open = |task: &&Task| has_places(task) && state.other_workers.is_open(&task.id);
        let wanted: Vec<&'a Task> = state.wanted.iter().copied().filter(is_open).collect();
        // Workers that share a plan test phases only as gates of landings.
        let due = find_due_phase(plan, &progress).filter(|_| self.remote_work().is_none());
        due.filter(|phase| is_free(phase) && has_places(phase) && !is_parked).or_else(|| {
            let next = |wanted: &[&'a Task], pick| {
                choose::next_task(wanted, &progress, &running, &state.excluded, pick)
            };
            let early = wanted.iter().find(|task| state.other_workers.is_claimed_early(&task.id));
            let early = early.and_then(|task| next(&[task], choose::Pick::FIRST));
            early.or_else(|| next(&wanted, state.other_workers.pick()))
        })
    }

    /// Collects everything that a thread needs for a task or a phase.
    fn prepare(
        &mut self,
        state: &WorkState<'_, 'a, '_>,
        task: &'a Task,
        spending_receiver: Receiver<Spent>,
    ) -> Result<Job<'a>, GardenerError> {
        if self.resources.lanes.is_some() {
            self.take_in_others_commits()?;
        }
        let has_lanes = self.resources.has_lanes(task);
        let resources = &self.resources;
        let is_needed = |other_repo: &OtherRepo| !has_lanes && resources.needs(task, &other_repo.name);
        for other_repo in self.other_repos.iter_mut().filter(|other_repo| is_needed(other_repo)) {
            if works_in(task, &other_repo.name) {
                other_repo.find_base(&task.id)?;
            }
        }
        let kind = match (self.resources.lanes, task.is_leaf()) {
            (Some(lanes), true) => {
                let start = self.prepare_task(state, task, spending_receiver)?;
                JobKind::Lane { start, lanes, lane: self.lane_start(task)? }
            }
            (Some(lanes), false) => {
                JobKind::Scratch { before: self.tests_before_phase(task)?, lanes, commit: self.newest()? }
            }
            (None, is_task) => {
                let work = match is_task {
                    true => CheckoutWork::Task(self.prepare_task(state, task, spending_receiver)?),
                    false => CheckoutWork::Phase(self.tests_before_phase(task)?),
                };
                // Taken after everything that can fail: an error would lose it.
                let checkout = Box::new(self.checkout.take().ok_or(GardenerError::NoPlace)?);
                JobKind::Checkout { work, checkout }
            }
        };
        let other_repos = self.other_repos.extract_if(.., |other_repo| is_needed(other_repo)).collect();
        Ok(Job { task, kind, other_repos })
    }

    /// Prepares a task. One that has not started needs an agent, so the budget is checked first; one that has may only
    /// need to be recorded.
    fn prepare_task(
        &self,
        state: &WorkState<'_, 'a, '_>,
        task: &Task,
        spending_receiver: Receiver<Spent>,
    ) -> Result<Box<TaskStart>, GardenerError> {
        let history = self.run.find(&task.id);
        let (earlier, events) = history.map(TaskHistory::split).unwrap_or_default();
        let (mut earlier, events) = (earlier.to_vec(), events.to_vec());
        if self.resources.lanes.is_some() {
            earlier.splice(..0, events_before_reset(self.repository, &self.run, &task.id)?);
        }
        let spent = Spent::without(&self.run, &task.id) + state.spent();
        if events.is_empty() {
            self.resources
                .context
                .options
                .budgets
                .run
                .check(BudgetLevel::Run, &spent)
                .map_err(PipelineError::from)?;
        }
        let search_base_from = self.run.start_of_work(&task.id);
        // Without lanes, interrupted attempts were recorded when the run was opened.
        let is_interrupted = match self.resources.lanes {
            Some(lanes) => lanes.may_be_interrupted(&task.id)?,
            None => false,
        };
        Ok(Box::new(TaskStart {
            earlier,
            events,
            search_base_from,
            background: TaskBackground::new(self.plan, self.plan_path, &self.run, task),
            known_red: self.known_red(task),
            counts_before: CommandCounts::before(self.repository, &self.run, Some(&task.id))?,
            leftovers: if history.is_none() { self.find_leftovers(task) } else { None },
            rejected: self.find_rejected(task)?,
            spent_by_others: OtherSpending::new(spent, spending_receiver),
            is_interrupted,
            is_retried: state.selection.retry_failed,
        }))
    }

    /// Applies the end of a job: its events, its places and its result.
    fn apply_ended_job(&mut self, state: &mut WorkState<'_, 'a, '_>, ended: EndedJob) {
        let EndedJob { task, workplace, other_repos, events, result } = ended;
        self.other_repos.extend(other_repos);
        state.running.retain(|running| running.task.id != task);
        let has_lanes = self.resources.lanes.is_some();
        let is_task = !self.is_phase(&task);
        let position = if has_lanes && is_task { EventPosition::Task } else { EventPosition::Run };
        events.into_iter().for_each(|event| self.run.grow(event, position));
        match (result, workplace) {
            // Without lanes, tasks and phases both work in the checkout. All arms below are for runs with lanes.
            (result, workplace) if !has_lanes => {
                self.checkout = workplace;
                self.apply_result(state, task, result);
            }
            (Ok(TaskEnd::Complete), Some(workplace)) if is_task => {
                self.keep_until_landed(state, FinishedTask::new(task, workplace));
            }
            (result, _) if !is_task => self.apply_phase(state, task, result),
            // Dropping the lease leaves the lane as it is, to be inspected or continued.
            (result, _) => {
                let has_failed = matches!(result, Ok(TaskEnd::Failed));
                self.give_back(state, &task, if has_failed { Release::Failed } else { Release::Free });
                self.apply_result(state, task, result);
            }
        }
    }

    /// Whether this is a phase of the plan. A task that is not in the plan was given on the command line.
    fn is_phase(&self, task: &TaskId) -> bool {
        self.plan.find(task).is_some_and(|task| !task.is_leaf())
    }

    /// Applies the result of a task or a phase to the summary, and decides whether more is started.
    fn apply_result(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        task: TaskId,
        result: Result<TaskEnd, GardenerError>,
    ) {
        let is_phase = self.is_phase(&task);
        match result {
            Ok(TaskEnd::Complete) if is_phase => {}
            Ok(TaskEnd::Failed) if is_phase => state.halt(Stop::Error(GardenerError::PhaseFailed(task))),
            Ok(TaskEnd::Complete) => state.summary.completed.push(task),
            Ok(TaskEnd::Failed) => {
                state.summary.failed.push(task.clone());
                state.excluded.insert(task);
                state.halt_unless_kept_going();
            }
            Err(error) if error.concerns_only_the_task() && state.selection.keep_going => {
                let mut words = match &error {
                    GardenerError::RedLeftovers { .. } => error.to_string(),
                    _ => format!("{task} was stopped: {error}"),
                };
                for hint in error.hint().iter().flat_map(|hint| hint.lines()) {
                    words.push_str(&format!("\n  hint: {hint}"));
                }
                (self.on_event)(RunEvent::of(&task, EventKind::note(words)));
                state.summary.blocking = error.find_blocking().or(state.summary.blocking.take());
                state.summary.raise = error.raise().or(state.summary.raise.take());
                state.excluded.insert(task);
            }
            // The attempt is recorded, so its place is clean and other tasks can use it. The same task could hit the
            // same error again, so it waits for the next run.
            Err(error) if self.is_recorded_interruption(&task, &error) && state.selection.keep_going => {
                (self.on_event)(RunEvent::of(
                    &task,
                    EventKind::note(format!("{task} is set aside: {error}")),
                ));
                state.excluded.insert(task);
            }
            Err(error) => state.halt(Stop::Error(error)),
        }
    }

    /// Whether an error of ours interrupted a task, and the interruption is recorded.
    fn is_recorded_interruption(&self, task: &TaskId, error: &GardenerError) -> bool {
        let is_own =
            matches!(error, GardenerError::Pipeline(PipelineError::Git(_) | PipelineError::File { .. }));
        let last = self.run.find(task).and_then(TaskHistory::last);
        is_own && !self.resources.context.cancel.is_cancelled() && last.is_some_and(Event::is_interruption)
    }

    fn summarize(&self, state: WorkState<'_, 'a, '_>) -> Result<Summary, GardenerError> {
        if let Some(Stop::Error(error)) = state.stop {
            // Git reports an error when Ctrl-C ends it too. That is the interruption that the user asked for.
            let is_interrupt =
                self.resources.context.cancel.is_cancelled() && matches!(error.exit(), Exit::Child(_));
            return Err(if is_interrupt {
                PipelineError::stopped(&self.resources.context.cancel).into()
            } else {
                error
            });
        }
        let mut summary = state.summary;
        let is_wanted = |finished: &FinishedTask| state.wanted.iter().any(|task| task.id == finished.task);
        let is_on_request = self.lands_on_request();
        let waiting: Vec<FinishedTask> = state.finished.into_iter().filter(is_wanted).collect();
        let stuck = if waiting.is_empty() { Vec::new() } else { self.find_stuck()? };
        let policy = self.resources.lanes.map(|lanes| lanes.queue.rules.policy);
        let withheld = (policy == Some(LandingPolicy::AllOrNothing) && !summary.failed.is_empty())
            .then(|| format!("{} failed, and the policy is all-or-nothing", first_of(&summary.failed, 3)));
        let unlanded =
            |finished: FinishedTask| finished.into_unlanded(is_on_request, &stuck, withheld.as_deref());
        summary.unlanded.extend(waiting.into_iter().map(unlanded));
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        summary.left = choose::left(&state.wanted, &progress, &summary.failed);
        if self.resources.context.cancel.is_cancelled() && !summary.is_well() {
            return Err(PipelineError::stopped(&self.resources.context.cancel).into());
        }
        Ok(summary)
    }

    /// Resets tasks that have failed before.
    fn reset_failed(&mut self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let workplace = self.checkout.as_mut().ok_or(GardenerError::NoPlace)?;
        let failed =
            choose::failed_before(wanted, &Progress::new(Some(self.plan), &self.run, PlanMarks::Count));
        let mut recorder = workplace.recorder(&self.resources.context.identity);
        let mut events = Vec::new();
        for task in failed {
            let wording = SubjectParts { name: &task.name, attempt: Attempt(0), max: 0 };
            let entry = TaskEvent::new(task.id.clone(), Status::Reset, wording);
            let event = recorder.record(entry, recorder.tree())?;
            let commit = event.commit;
            events.push(event);
            let (status, changes) = (Status::Reset, StepChanges::default());
            let kind = EventKind::Recorded { status, commit, why: None, spent: Spent::default(), changes };
            (self.on_event)(RunEvent::of(&task.id, kind));
        }
        let tip = recorder.tip().clone();
        workplace.tip = tip;
        events.into_iter().for_each(|event| self.run.grow(event, EventPosition::Run));
        Ok(())
    }
}
