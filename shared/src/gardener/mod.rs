//! Works through a plan. The [`Gardener`] owns the state of the run: it hands ready tasks to workers, applies what they
//! report, and stops where a person is needed.

mod baseline;
mod before_task;
mod choose;
mod course;
mod error;
mod land;
mod lanes;
mod other_lanes;
mod other_workers;
mod outcome;
mod phase;
mod recover;
mod refusals;
mod review_worktrees;
pub mod start;
mod worker;

pub use baseline::{Baseline, BaselineGuard, OutsideResult, PROGRAM_NOT_FOUND, Probe, has_passed};
pub use choose::{EarlierFailures, KeepGoing, Selection, left_over, wanted};
pub use error::{GardenerError, TypedOptions, continue_apart};
pub use lanes::{Lanes, LeftMarks, Proofs, VisitedLanes, WorkerPlace};
pub use other_lanes::OtherLanes;
pub use outcome::{Summary, Unlanded};
pub use phase::find_due_phase;
pub use recover::{Recovered, Remains, recover, save_own_branch, saved_branch_ref};
pub use refusals::{LostBranch, find_begun_apart, find_lost_branches, refuse_reverted, refuse_waiting};
pub use review_worktrees::{CleanPool, ReviewWorktrees};
pub use start::{Drift, PlanFile};
pub use worker::RunResources;

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
    message::{Status, Wording},
    name::{Attempt, RepoName, TaskId},
    pipeline::{CommandCounts, KnownRed, OtherRepo, OtherSpending, PipelineError, TaskBackground, TaskEnd},
    plan::{Plan, Task},
    progress::{Boxes, Progress},
    record::TaskEvent,
    session::{find_unrecorded, owned_by, owned_elsewhere},
    worktree::take_left_out,
};
use course::{CompletedTask, EndedJob, RunProgress, RunningWorker, Stop, WorkerReport, next_report};
pub(crate) use lanes::events_before_reset;
use worker::{Job, JobKind, JobPlace, TaskStart, work, works_in};

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
    /// What workers need.
    pub tools: RunResources<'a>,
    /// The user's checkout, while no worker uses it.
    pub checkout: Option<WorkerPlace>,
    /// Worktrees in other repositories, while no worker uses them.
    pub other_repos: Vec<OtherRepo>,
    /// Tests that failed before the run began.
    pub red_before: KnownRed,
    /// Called for each event.
    pub on_event: Box<dyn FnMut(RunEvent) + 'a>,
}

/// How many reports may be queued. A worker that sends more blocks, and so does its agent, so that memory stays
/// bounded.
const BACKLOG: usize = 1024;

impl<'a> Gardener<'a> {
    /// Works on tasks until none is left that can be worked on.
    pub fn run(&mut self, selection: &Selection) -> Result<Summary, GardenerError> {
        self.refuse_forks()?;
        let wanted = wanted(self.plan, selection);
        refuse_reverted(&wanted, &Progress::new(Some(self.plan), &self.run, Boxes::Count))?;
        self.refuse_lost(&wanted)?;
        self.refuse_red_without_test(&wanted)?;
        if self.tools.lanes.is_none() {
            self.refuse_own_branches(&wanted)?;
        }
        match selection.failed {
            EarlierFailures::Retry if self.coordinator().is_some() => self.forget_failed(&wanted),
            EarlierFailures::Retry => self.reset_failed(&wanted)?,
            EarlierFailures::Keep => {}
        }
        self.own_refs()?;
        self.distrust_unrecorded()?;
        let tools = self.tools.clone();
        thread::scope(|scope| {
            // `reports` is dropped before the scope joins its workers, also after a panic, so that blocked senders wake
            // up.
            let (sender, reports) = sync_channel(BACKLOG);
            let mut course = RunProgress::new(wanted, selection);
            let (mut packing, mut last) = (Packing::default(), None);
            self.find_finished(&mut course)?;
            self.publish_earlier(&mut course);
            loop {
                if let Err(error) = self.leave_queued(&mut course) {
                    course.halt(Stop::Error(error));
                }
                // Pack only between two tasks, or at the end: never while a child process runs.
                if let Some(task) = last.as_ref().filter(|_| course.is_idle()) {
                    self.pack(&mut packing, task);
                }
                self.catch_up(&mut course);
                self.start_workers(&mut course, scope, (&tools, &sender));
                self.release_unused(&mut course);
                self.start_landing(&mut course, scope, (&tools, &sender));
                if course.is_idle() && !self.awaits_others(&mut course) {
                    self.look_at_target(&mut course);
                    break;
                }
                if course.is_idle() {
                    self.look_soon(&mut course);
                }
                self.tell_notices();
                match next_report(&reports, &mut course) {
                    None => {}
                    Some(WorkerReport::News(event)) => {
                        course.pass_on(&event);
                        (self.on_event)(event);
                    }
                    Some(WorkerReport::Ended(ended)) => {
                        last = Some(ended.task.clone());
                        self.tell_left_out(&ended.task);
                        self.apply_result(&mut course, *ended);
                    }
                    Some(WorkerReport::Drained(drained)) => self.apply_landings(&mut course, *drained),
                }
            }
            self.sweep_kept(last.as_ref());
            self.compare_user_refs();
            self.conclude(course)
        })
    }

    /// Packs objects as `git gc --auto` would. `task` is the last one that ended.
    fn pack(&mut self, packing: &mut Packing, task: &TaskId) {
        let other_repos = self.other_repos.iter().map(|other_repo| &other_repo.repository);
        for repository in [self.repository].into_iter().chain(other_repos) {
            if let Err(error) = packing.run(repository) {
                let words = format!("  objects were not packed: {error}");
                (self.on_event)(RunEvent::of(task, EventKind::note(words)));
            }
        }
    }

    /// Reports files of the checkout that worktrees did not get.
    fn tell_left_out(&mut self, task: &TaskId) {
        for note in take_left_out() {
            let words = format!("  warning: {note}");
            (self.on_event)(RunEvent::of(task, EventKind::note(words)));
        }
    }

    /// Reports refs of the user that were deleted or moved, and other changes for which no task is blamed: it may have
    /// been the user.
    fn tell_notices(&mut self) {
        for words in take_notices() {
            (self.on_event)(RunEvent { task: None, kind: EventKind::RefMoved { words } });
        }
    }

    /// Compares the user's refs a last time.
    fn compare_user_refs(&mut self) {
        self.repository.compare_user_refs();
        self.other_repos.iter().for_each(|other_repo| other_repo.repository.compare_user_refs());
        self.tell_notices();
    }

    /// Checks the files that stay in worktrees of gates, because the next process trusts them. `task` is the last one
    /// that ended, if one did.
    fn sweep_kept(&mut self, task: Option<&TaskId>) {
        let clean = self.tools.clean.as_ref().map(|clean| &clean.pool);
        let pool = self.tools.lanes.map(|lanes| &lanes.pool).or(clean);
        let Some(error) = pool.and_then(|pool| pool.sweep_kept().err()) else { return };
        let words = format!("  warning: files in the worktrees of gates could not be checked: {error}");
        (self.on_event)(RunEvent { task: task.cloned(), kind: EventKind::note(words) });
    }

    /// Takes ownership of the run's refs: from here on, changes by other processes are detected and undone.
    fn own_refs(&self) -> Result<(), GardenerError> {
        let identity = &self.tools.context.identity;
        self.repository.own_refs(&owned_by(&identity.run, Some(&identity.session)))?;
        let own = if self.tools.lanes.is_some() { OwnCheckout::LeftAlone } else { OwnCheckout::Used };
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
            if let Some(lanes) = self.tools.lanes {
                lanes.queue.memory.distrusted.add(task);
            }
        }
        Ok(())
    }

    /// Starts workers while there is a free place and a ready task.
    fn start_workers<'scope, 'env>(
        &mut self,
        course: &mut RunProgress<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        (tools, sender): (&'env RunResources<'a>, &SyncSender<WorkerReport>),
    ) where
        'a: 'scope,
    {
        while course.stop.is_none() && self.has_place(course) {
            let Some(task) = self.next_job(course) else {
                return;
            };
            if !self.claim(course, task) {
                continue;
            }
            let (spent_by_others, more) = channel();
            let spent = course.spent();
            let is_retried = course.selection.failed == EarlierFailures::Retry;
            let job = match self.prepare(task, (spent, more), is_retried) {
                Ok(job) => job,
                Err(error) => {
                    course.halt(Stop::Error(error));
                    return;
                }
            };
            let sender = sender.clone();
            let handle = scope.spawn(move || work(tools, job, &sender));
            course.running.push(RunningWorker { task, handle, spent: Spent::default(), spent_by_others });
        }
    }

    fn has_place(&self, course: &RunProgress<'_, 'a, '_>) -> bool {
        match self.tools.lanes {
            Some(lanes) => course.running.len() < lanes.jobs && course.lanes() < lanes.most(),
            None => self.checkout.is_some(),
        }
    }

    /// A phase whose tests are due, or else a ready task.
    fn next_job(&self, course: &RunProgress<'_, 'a, '_>) -> Option<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), &self.run, Boxes::Count);
        let running: Vec<&Task> = course.running.iter().map(|running| running.task).collect();
        let is_free = |phase: &&Task| running.iter().all(|running| running.id != phase.id);
        let is_parked = course.summary.parked.is_some();
        let others = || self.tools.sections.iter().filter(|section| !section.is_main);
        // Without lanes, only one at a time works or tests in the session's worktree of another repository.
        let needs_checkout =
            |task: &Task, name: &RepoName| self.tools.needs(task, name) && !self.tools.has_lanes(task);
        let is_away = |name: &RepoName| running.iter().any(|task| needs_checkout(task, name));
        let has_places = |task: &&Task| {
            others().all(|section| !needs_checkout(task, &section.name) || !is_away(&section.name))
        };
        let is_open = |task: &&Task| has_places(task) && course.other_workers.is_open(&task.id);
        let wanted: Vec<&'a Task> = course.wanted.iter().copied().filter(is_open).collect();
        // Workers that share a plan test phases only as gates of landings.
        let due = find_due_phase(plan, &progress).filter(|_| self.coordinator().is_none());
        due.filter(|phase| is_free(phase) && has_places(phase) && !is_parked).or_else(|| {
            let next = |wanted: &[&'a Task], pick| {
                choose::next_task(wanted, &progress, &running, &course.ended, pick)
            };
            let early = wanted.iter().find(|task| course.other_workers.is_claimed_early(&task.id));
            let early = early.and_then(|task| next(&[task], choose::Pick::FIRST));
            early.or_else(|| next(&wanted, course.other_workers.pick()))
        })
    }

    /// Collects everything that a worker needs for a task or a phase.
    fn prepare(
        &mut self,
        task: &'a Task,
        spent_by_others: (Spent, Receiver<Spent>),
        is_retried: bool,
    ) -> Result<Job<'a>, GardenerError> {
        if self.tools.lanes.is_some() {
            self.tell_of_foreign()?;
        }
        let work = match task.is_leaf() {
            true => self.start_task(task, spent_by_others, is_retried)?,
            false => JobKind::Phase(self.tests_before_phase(task)?),
        };
        let place = match self.tools.lanes {
            Some(_) if !task.is_leaf() => JobPlace::Scratch(self.newest()?),
            Some(_) => JobPlace::Lane(self.lane_start(task)?),
            None => JobPlace::Checkout(Box::new(self.checkout.take().ok_or(GardenerError::NoPlace)?)),
        };
        let has_lanes = self.tools.has_lanes(task);
        let is_needed = |other_repo: &mut OtherRepo| !has_lanes && self.tools.needs(task, &other_repo.name);
        let mut other_repos: Vec<OtherRepo> = self.other_repos.extract_if(.., is_needed).collect();
        for other_repo in other_repos.iter_mut().filter(|other_repo| works_in(task, &other_repo.name)) {
            other_repo.find_base(&task.id)?;
        }
        Ok(Job { task, work, place, other_repos })
    }

    /// Prepares a task. One that has not started needs an agent, so the budget is checked first; one that has may only
    /// need to be recorded.
    fn start_task(
        &self,
        task: &Task,
        (at_work, more): (Spent, Receiver<Spent>),
        is_retried: bool,
    ) -> Result<JobKind, GardenerError> {
        let history = self.run.find(&task.id);
        let (earlier, events) = history.map(TaskHistory::split).unwrap_or_default();
        let (mut earlier, events) = (earlier.to_vec(), events.to_vec());
        if self.tools.lanes.is_some() {
            earlier.splice(..0, events_before_reset(self.repository, &self.run, &task.id)?);
        }
        let spent = Spent::beside(&self.run, &task.id) + at_work;
        if events.is_empty() {
            self.tools
                .context
                .options
                .budgets
                .run
                .check(BudgetLevel::Run, &spent)
                .map_err(PipelineError::from)?;
        }
        let search_base_from = self.run.start_of_work(&task.id);
        // Without lanes, interrupted attempts were recorded when the run was opened.
        let is_interrupted = match self.tools.lanes {
            Some(lanes) => lanes.may_be_interrupted(&task.id)?,
            None => false,
        };
        Ok(JobKind::Task(Box::new(TaskStart {
            earlier,
            events,
            search_base_from,
            background: TaskBackground::new((self.plan, self.plan_path), &self.run, task),
            known_red: self.known_red(task),
            counts_before: CommandCounts::before(self.repository, &self.run, Some(&task.id))?,
            leftovers: if history.is_none() { self.find_leftovers(task) } else { None },
            rejected: self.find_rejected(task)?,
            spent_by_others: OtherSpending::new(spent, more),
            is_interrupted,
            is_retried,
        })))
    }

    /// Applies the result of a worker.
    fn apply_result(&mut self, course: &mut RunProgress<'_, 'a, '_>, ended: EndedJob) {
        let EndedJob { task, site, other_repos, events, result } = ended;
        self.other_repos.extend(other_repos);
        course.running.retain(|running| running.task.id != task);
        let is_in_lane = self.tools.lanes.is_some();
        let is_task = self.plan.find(&task).is_none_or(Task::is_leaf);
        let position = if is_in_lane && is_task { EventPosition::Task } else { EventPosition::Run };
        events.into_iter().for_each(|event| self.run.grow(event, position));
        match (result, site) {
            (result, site) if !is_in_lane => {
                self.checkout = site;
                self.judge(course, task, result);
            }
            (Ok(TaskEnd::Complete), Some(site)) if is_task => {
                self.publish(course, CompletedTask::new(task, site));
            }
            (result, _) if !is_task => self.apply_phase(course, task, result),
            // Dropping the lease leaves the lane as it is, to be inspected or continued.
            (result, _) => {
                let has_failed = matches!(result, Ok(TaskEnd::Failed));
                self.give_back(course, &task, if has_failed { Release::Failed } else { Release::Free });
                self.judge(course, task, result);
            }
        }
    }

    fn judge(
        &mut self,
        course: &mut RunProgress<'_, 'a, '_>,
        task: TaskId,
        result: Result<TaskEnd, GardenerError>,
    ) {
        let is_phase = self.plan.find(&task).is_some_and(|task| !task.is_leaf());
        match result {
            Ok(TaskEnd::Complete) if is_phase => {}
            Ok(TaskEnd::Failed) if is_phase => course.halt(Stop::Error(GardenerError::PhaseFailed(task))),
            Ok(TaskEnd::Complete) => course.summary.completed.push(task),
            Ok(TaskEnd::Failed) => {
                course.summary.failed.push(task.clone());
                course.ended.insert(task);
                course.halt_unless_kept_going();
            }
            Err(error)
                if error.concerns_only_the_task() && course.selection.keeps_going == KeepGoing::Yes =>
            {
                let mut words = match &error {
                    GardenerError::RedLeftovers { .. } => error.to_string(),
                    _ => format!("{task} was stopped: {error}"),
                };
                for hint in error.hint().iter().flat_map(|hint| hint.lines()) {
                    words.push_str(&format!("\n  hint: {hint}"));
                }
                (self.on_event)(RunEvent::of(&task, EventKind::note(words)));
                course.summary.blocking = error.find_blocking().or(course.summary.blocking.take());
                course.summary.raise = error.raise().or(course.summary.raise.take());
                course.ended.insert(task);
            }
            // The attempt is recorded, so its place is clean and other tasks can use it. The same task could hit the
            // same error again, so it waits for the next run.
            Err(error)
                if self.is_set_aside(&task, &error) && course.selection.keeps_going == KeepGoing::Yes =>
            {
                (self.on_event)(RunEvent::of(
                    &task,
                    EventKind::note(format!("{task} is set aside: {error}")),
                ));
                course.ended.insert(task);
            }
            Err(error) => course.halt(Stop::Error(error)),
        }
    }

    /// Whether an error of ours interrupted a task, and the interruption is recorded.
    fn is_set_aside(&self, task: &TaskId, error: &GardenerError) -> bool {
        let is_own =
            matches!(error, GardenerError::Pipeline(PipelineError::Git(_) | PipelineError::File { .. }));
        let last = self.run.find(task).and_then(TaskHistory::last);
        is_own && !self.tools.context.cancel.is_cancelled() && last.is_some_and(Event::is_interruption)
    }

    fn conclude(&self, course: RunProgress<'_, 'a, '_>) -> Result<Summary, GardenerError> {
        if let Some(Stop::Error(error)) = course.stop {
            // Git reports an error when Ctrl-C ends it too. That is the interruption that the user asked for.
            let is_interrupt =
                self.tools.context.cancel.is_cancelled() && matches!(error.exit(), Exit::Child(_));
            return Err(if is_interrupt {
                PipelineError::stopped(&self.tools.context.cancel).into()
            } else {
                error
            });
        }
        let mut summary = course.summary;
        let is_wanted = |finished: &CompletedTask| course.wanted.iter().any(|task| task.id == finished.task);
        let landing = self.tools.lanes.map(|lanes| lanes.queue.landing).unwrap_or_default();
        let waiting: Vec<CompletedTask> = course.finished.into_iter().filter(is_wanted).collect();
        let stuck = if waiting.is_empty() { Vec::new() } else { self.find_stuck()? };
        summary.unlanded.extend(waiting.into_iter().map(|finished| finished.left_queued(landing, &stuck)));
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        summary.left = choose::left(&course.wanted, &progress, &summary.failed);
        if self.tools.context.cancel.is_cancelled() && !summary.is_well() {
            return Err(PipelineError::stopped(&self.tools.context.cancel).into());
        }
        Ok(summary)
    }

    /// Resets tasks that have failed before.
    fn reset_failed(&mut self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let site = self.checkout.as_mut().ok_or(GardenerError::NoPlace)?;
        let failed = choose::failed_before(wanted, &Progress::new(Some(self.plan), &self.run, Boxes::Count));
        let mut recorder = site.recorder(&self.tools.context.identity);
        let mut events = Vec::new();
        for task in failed {
            let wording = Wording { name: &task.name, attempt: Attempt(0), max: 0 };
            let entry = TaskEvent::new(task.id.clone(), Status::Reset, wording);
            let event = recorder.record(entry, recorder.tree())?;
            let commit = event.commit;
            events.push(event);
            let (status, changes) = (Status::Reset, StepChanges::default());
            let kind = EventKind::Recorded { status, commit, why: None, spent: Spent::default(), changes };
            (self.on_event)(RunEvent::of(&task.id, kind));
        }
        let tip = recorder.tip().clone();
        site.tip = tip;
        events.into_iter().for_each(|event| self.run.grow(event, EventPosition::Run));
        Ok(())
    }
}
