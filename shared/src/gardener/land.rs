//! Lands tasks that were finished in lanes on the run's branch, through the merge queue. One drain of the queue runs at
//! a time, in its own thread.

use std::{
    collections::HashSet,
    sync::{Arc, mpsc::SyncSender},
    thread::Scope,
    time::Instant,
};

use crate::{
    coordination::Release,
    event::RunEvent,
    gardener::{
        Gardener, GardenerError, TaskCheckout,
        lanes::LaneStart,
        other_workers::is_unreached,
        outcome::{Unlanded, explain, explain_ticket, others_commits_event, translate},
        task_thread::RunResources,
        work_state::{DrainReport, FinishedTask, Stop, ThreadReport, WorkState},
    },
    history::{Event, EventPosition, State},
    message::Status,
    name::{Oid, TaskId},
    pipeline::{PipelineError, TaskEnd},
    plan::Task,
    progress::{PlanMarks, Progress},
    queue::{
        self, LandingCommand, LandingPolicy, LoggedOutcome, OtherBranches, Queue, QueueError, Store,
        StoredTicket, Target, Ticket, TicketOutcome, accept_or_remove_others_commits, delete_landed,
    },
    record::RecordError,
    settings::OnConflict,
    worktree::Lease,
};

/// How many entries of the queue's log are read.
const MAX_LOG_ENTRIES: usize = 1000;

impl<'a> Gardener<'a> {
    /// The run's newest commit, including a parked landing.
    pub(super) fn newest(&self) -> Result<Oid, GardenerError> {
        Ok(Target::new(self.repository, &self.resources.context.identity.run_branch).require()?.tip())
    }

    /// Accepts commits of others on the run's branch, on which the next task builds, and reports them. Forged ones are
    /// removed. Tasks in lanes leave the branch to the user, so it may have moved at any time.
    pub(super) fn take_in_others_commits(&mut self) -> Result<(), GardenerError> {
        let identity = &self.resources.context.identity;
        let found = accept_or_remove_others_commits(
            self.repository,
            (&identity.run_branch, &identity.run_branch),
            Some(&identity.session),
        )?;
        for found in found {
            (self.on_event)(RunEvent { task: None, kind: others_commits_event(found) });
        }
        Ok(())
    }

    /// The same a last time: no later check would see what the last child process did there.
    pub(super) fn take_in_last_others_commits(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        if self.resources.lanes.is_some()
            && let Err(error) = self.take_in_others_commits()
        {
            state.halt(Stop::Error(error));
        }
    }

    /// Where a task that is worked on in a lane starts.
    pub(super) fn lane_start(&self, task: &Task) -> Result<LaneStart, GardenerError> {
        let history = self.run.find(&task.id);
        let newest = history.filter(|history| history.is_landed).and_then(|history| history.last());
        Ok(LaneStart {
            base: self.newest()?,
            run_start: self.run.start.as_ref().map(|start| start.commit),
            newest: newest.map(|event| event.commit),
            session: self.resources.context.identity.session.clone(),
        })
    }

    /// Finds tasks that an earlier run completed in their lanes. Lanes of tasks that it landed are freed.
    pub(super) fn find_finished(&self, state: &mut WorkState<'_, 'a, '_>) -> Result<(), GardenerError> {
        if self.resources.lanes.is_none() {
            return Ok(());
        }
        self.resources.free_lanes(|task| self.run.has_landed(task))?;
        let landed = self.run.tasks.iter().filter(|history| history.has_landed());
        state.landed_before = Arc::new(landed.map(|history| history.id.clone()).collect());
        let waiting: Vec<(TaskId, Oid)> = self
            .run
            .tasks
            .iter()
            .filter(|history| history.state() == State::Complete && !history.is_landed)
            .filter_map(|history| Some((history.id.clone(), history.last()?.commit)))
            .collect();
        let run = &self.resources.context.identity.run_branch;
        let store = Store::new(self.repository);
        let known = store.load(Some(run))?;
        // Tickets of landed tasks are left over from a crash. Draining the queue closes them.
        state.has_leftover_tickets = !(known.is_empty() && waiting.is_empty());
        if waiting.is_empty() {
            return Ok(());
        }
        let log = store.load_log(run, MAX_LOG_ENTRIES)?;
        for (task, source) in waiting {
            let is_known =
                known.iter().any(|stored| stored.ticket.task == task && stored.ticket.source == source);
            let last = log.iter().find(|entry| entry.task == task && entry.source == source);
            let is_dropped = !is_known && last.is_some_and(|entry| entry.outcome == LoggedOutcome::Dropped);
            let why = is_dropped.then(|| "it was taken out of the queue".to_owned());
            let elsewhere =
                known.iter().find(|stored| stored.ticket.task == task && stored.ticket.into != *run);
            let queued_for = elsewhere.map(|stored| &stored.ticket.into);
            let why = why.or(queued_for.map(|into| format!("it was queued for '{into}', not for '{run}'")));
            let is_queued = is_known || is_dropped;
            state.finished.push(FinishedTask {
                task,
                is_adopted: false,
                workplace: None,
                source,
                is_queued,
                why,
            });
        }
        Ok(())
    }

    /// Starts a thread that lands what is finished, unless one is running.
    pub(super) fn start_landing<'scope, 'env>(
        &mut self,
        state: &mut WorkState<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        resources: &'env RunResources<'a>,
        sender: &SyncSender<ThreadReport>,
    ) where
        'a: 'scope,
    {
        if state.lander.is_some() || self.resources.context.cancel.is_cancelled() || self.lands_on_request() {
            return;
        }
        let is_new = state.finished.iter().any(|finished| !finished.is_queued);
        if !state.has_leftover_tickets && !is_new && self.remote_work().is_none() {
            return;
        }
        // In this order: the first question changes nothing, the second sets the time of the next landing, and the third takes
        // the claim to land at the remote, which is only taken by a worker that lands now.
        if !self.may_land(state) {
            return;
        }
        if resources.lanes.is_some_and(|lanes| state.delay_landing(lanes.jobs, lanes.max())) {
            return;
        }
        if !self.begin_landing(state) {
            return;
        }
        let new = state.finished.iter().filter(|finished| !finished.is_queued);
        let new: Vec<TaskId> = new.map(|finished| finished.task.clone()).collect();
        let redoes =
            resources.lanes.is_some_and(|lanes| lanes.queue.merge.on_conflict == OnConflict::Reimplement);
        let (mut tickets, mut released) = (Vec::new(), Vec::new());
        for finished in state.finished.iter_mut().filter(|finished| !finished.is_queued) {
            if !self.completes_a_phase_with(&finished.task, &new) {
                finished.is_queued = true;
                tickets.push(self.ticket(finished, &[]));
                // A task that may be done again must not be checked out: otherwise its branch could not be deleted.
                let workplace = finished.workplace.take_if(|_| redoes);
                released.extend(workplace.into_iter().flat_map(TaskCheckout::into_leases));
            }
        }
        state.has_leftover_tickets = false;
        let (sender, landed_before) = (sender.clone(), Arc::clone(&state.landed_before));
        state.lander = Some(scope.spawn(move || {
            let drained = Box::new(DrainReport(drain(resources, tickets, released, &sender, &landed_before)));
            let _ = sender.send(ThreadReport::Drained(drained));
        }));
    }

    /// With a policy that lands only some tasks, waits until no task is running, so that all are considered together.
    /// With "all or nothing", nothing lands if a task failed.
    fn may_land(&self, state: &WorkState<'_, 'a, '_>) -> bool {
        match self.resources.lanes.map(|lanes| lanes.queue.rules.policy) {
            None | Some(LandingPolicy::KeepClean) => true,
            Some(LandingPolicy::Choose(_)) => state.running.is_empty(),
            Some(LandingPolicy::AllOrNothing) => state.running.is_empty() && state.summary.failed.is_empty(),
        }
    }

    /// If something landed while the tests of a phase ran, their result is not recorded, and they run again.
    pub(super) fn apply_phase(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        phase: TaskId,
        result: Result<TaskEnd, GardenerError>,
    ) {
        let is_overtaken =
            matches!(result, Err(GardenerError::Pipeline(PipelineError::Record(RecordError::Moved { .. }))));
        if !is_overtaken {
            self.apply_result(state, phase, result);
        }
    }

    /// Applies the report of a drain.
    pub(super) fn apply_landings(&mut self, state: &mut WorkState<'_, 'a, '_>, drained: DrainReport) {
        state.lander = None;
        state.landed_at = Some(Instant::now());
        self.end_landing(state);
        let report = match drained.0 {
            Ok(report) => report,
            Err(error) if is_elsewhere(&error) => {
                return state.finished.iter_mut().for_each(|finished| finished.is_queued = false);
            }
            Err(error) => return state.halt(Stop::Error(error)),
        };
        if report.is_stopped {
            state.halt(Stop::Error(PipelineError::stopped(&self.resources.context.cancel).into()));
        }
        state.summary.parked = report.parking;
        for (ticket, outcome) in report.outcomes {
            if let Err(error) = self.apply_landing(state, &ticket, outcome) {
                state.halt(Stop::Error(error));
            }
        }
    }

    fn apply_landing(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        ticket: &Ticket,
        outcome: TicketOutcome,
    ) -> Result<(), GardenerError> {
        let Some(at) = state.finished.iter().position(|finished| finished.task == ticket.task) else {
            return Ok(());
        };
        let task = ticket.task.clone();
        let has_to_wait = matches!(outcome, TicketOutcome::Waiting { .. });
        let stays_queued = has_to_wait && self.schedule_another_try(state, at);
        let unlanded = match outcome {
            TicketOutcome::Landed { commit } | TicketOutcome::Parked { commit } => {
                let finished = state.finished.swap_remove(at);
                state.summary.completed.push(finished.task);
                let events = self.repository.load_commits(&[commit])?;
                events
                    .iter()
                    .filter_map(Event::of)
                    .for_each(|event| self.run.grow(event, EventPosition::Run));
                if finished.is_adopted {
                    delete_landed(self.repository, &ticket.branch(), commit)?;
                }
                return self.free_lanes(finished.workplace, ticket, commit);
            }
            TicketOutcome::Waiting { reason } if stays_queued => {
                state.finished[at].why = Some(ticket.reason_to_wait(&reason));
                return Ok(());
            }
            TicketOutcome::Waiting { reason } => {
                let why = ticket.reason_to_wait(&reason);
                Unlanded { task, why, needs_person: true, command: LandingCommand::Status }
            }
            TicketOutcome::Withdrawn => {
                let finished = state.finished.swap_remove(at);
                self.run.forget(&finished.task);
                return Ok(());
            }
            other => {
                let (why, needs_person) = explain(ticket, &other);
                Unlanded { task, why, needs_person, command: other.command() }
            }
        };
        let finished = state.finished.swap_remove(at);
        state.excluded.insert(finished.task.clone());
        self.give_back(state, &finished.task, Release::Failed);
        state.summary.unlanded.push(unlanded);
        state.halt_unless_kept_going();
        Ok(())
    }
}

impl Gardener<'_> {
    /// Frees the lanes of a task that has landed with `commit`, for the next task.
    fn free_lanes(
        &self,
        workplace: Option<TaskCheckout>,
        ticket: &Ticket,
        commit: Oid,
    ) -> Result<(), GardenerError> {
        let Some(lanes) = self.resources.lanes else { return Ok(()) };
        let leases: Vec<Lease> = workplace.into_iter().flat_map(TaskCheckout::into_leases).collect();
        if leases.is_empty() {
            return self.resources.free_lanes(|task| *task == ticket.task);
        }
        for lease in leases {
            let other = self.resources.other_lanes.iter().find(|other| other.has(&lease));
            let (repository, landed) = match other {
                Some(other) => (&other.repository, other.head()?),
                None => (self.repository, commit),
            };
            let branch = lease.branch.clone();
            lease.release()?;
            // Nothing has it checked out now.
            if lanes.queue.merge.delete_branches {
                delete_landed(repository, &branch, landed)?;
            }
        }
        Ok(())
    }
}

/// Whether a landing failed because another worker lands, or because the remote could not be reached.
fn is_elsewhere(error: &GardenerError) -> bool {
    matches!(error, GardenerError::Queue(QueueError::LandedElsewhere(_))) || is_unreached(error)
}

/// Queues tickets and lands what can land. The landings of `landed_before` are not reported again.
fn drain(
    resources: &RunResources<'_>,
    tickets: Vec<Ticket>,
    released: Vec<Lease>,
    reports: &SyncSender<ThreadReport>,
    landed_before: &HashSet<TaskId>,
) -> Result<queue::QueueReport, GardenerError> {
    let lanes = resources.lanes.ok_or(GardenerError::NoPlace)?;
    let run = &resources.context.identity.run_branch;
    let queue = Queue::open(lanes.repository, run.clone(), run.clone(), resources.context.clock)?;
    Store::new(lanes.repository).add(tickets)?;
    released.into_iter().try_for_each(Lease::release)?;
    Ok(queue.drain(&lanes.queue, &mut |event| {
        let has_landed = matches!(&event, queue::QueueEvent::Settled { outcome, .. } if matches!(**outcome, TicketOutcome::Landed { .. }));
        let is_old = matches!(&event, queue::QueueEvent::Settled { ticket, .. } if landed_before.contains(&ticket.task));
        if has_landed && is_old {
            return;
        }
        for event in translate(event) {
            let _ = reports.send(ThreadReport::News(event));
        }
        // A batch moves the branch once, so the first ticket of it records the new tip.
        let followed =
            has_landed.then(|| resources.checkpoints.follow(lanes.repository, run, Status::Merge)).flatten();
        if let Some(kind) = followed {
            let _ = reports.send(ThreadReport::News(RunEvent { task: None, kind }));
        }
    })?)
}

impl<'a> Gardener<'a> {
    /// Whether finished tasks land only when the user asks (`merge.auto` is off).
    pub(super) fn lands_on_request(&self) -> bool {
        self.resources.lanes.is_some_and(|lanes| !lanes.queue.merge.auto)
    }

    /// The queued tickets that do not only wait for their turn.
    pub(super) fn find_stuck(&self) -> Result<Vec<Ticket>, GardenerError> {
        let identity = &self.resources.context.identity;
        let elsewhere = OtherBranches::open(self.resources.sections, self.plan, &identity.session);
        let mut stuck = Vec::new();
        for StoredTicket { mut ticket, .. } in Store::new(self.repository).load(Some(&identity.run_branch))? {
            ticket.update_state(self.repository, &self.run, Some(&elsewhere))?;
            stuck.extend(explain_ticket(&ticket).is_some().then_some(ticket));
        }
        Ok(stuck)
    }

    /// If tasks land only when the user asks, queues what is finished. The ticket keeps the work alive, so lanes are
    /// freed.
    pub(super) fn queue_for_request(&self, state: &mut WorkState<'_, 'a, '_>) -> Result<(), GardenerError> {
        if !self.lands_on_request() {
            return Ok(());
        }
        state.has_leftover_tickets = false;
        while let Some(at) = state.finished.iter().position(|finished| !finished.is_queued) {
            let waiting = state.finished.iter().filter(|finished| finished.is_waiting());
            let queued: Vec<TaskId> = waiting.map(|finished| finished.task.clone()).collect();
            let ticket = self.ticket(&state.finished[at], &queued);
            Store::new(self.repository).add(vec![ticket])?;
            let finished = &mut state.finished[at];
            finished.is_queued = true;
            let leases = finished.workplace.take().into_iter().flat_map(TaskCheckout::into_leases);
            leases.into_iter().try_for_each(Lease::release)?;
        }
        Ok(())
    }

    /// The ticket of a task. The tests of a phase gate the landing of its last task; if other tasks of the phase are
    /// queued, the ticket waits for them.
    pub(super) fn ticket(&self, finished: &FinishedTask, queued: &[TaskId]) -> Ticket {
        let now = (self.resources.context.clock)();
        let mut ticket = Ticket::new(
            self.resources.context.identity.run_branch.clone(),
            finished.task.clone(),
            finished.source,
            now,
        );
        ticket.session = Some(self.resources.context.identity.session.clone());
        if let Some(task) = self.plan.find(&finished.task) {
            ticket.name.clone_from(&task.name);
        }
        for phase in self.phases_completed(&finished.task, queued) {
            if phase.own_tests().next().is_some() {
                let leaves = self.plan.leaves_of(&phase.id).map(|leaf| &leaf.id);
                ticket.needs.extend(leaves.filter(|leaf| queued.contains(leaf)).cloned());
                ticket.phases.push(phase.id.clone());
            }
        }
        ticket
    }

    /// The phases that are complete once this task and these others have landed.
    fn phases_completed(&self, task: &TaskId, others: &[TaskId]) -> Vec<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), &self.run, PlanMarks::Count);
        let is_done = |leaf: &Task| {
            let node = progress.find(&leaf.id);
            leaf.id == *task
                || others.contains(&leaf.id)
                || node.is_some_and(|node| node.state == State::Skipped || node.is_landed())
        };
        let parent = |phase: &&'a Task| phase.parent.as_ref().and_then(|parent| plan.find(parent));
        let phases = std::iter::successors(plan.find(task), parent).skip(1);
        phases.filter(|phase| plan.leaves_of(&phase.id).all(is_done)).collect()
    }

    /// Whether this is the last, in the order of the plan, of several tasks that would complete a phase together. It is
    /// queued after the others have landed or not: only then is it known whether the phase's tests must gate it.
    pub(super) fn completes_a_phase_with(&self, task: &TaskId, others: &[TaskId]) -> bool {
        self.phases_completed(task, others)
            .into_iter()
            .filter(|phase| phase.own_tests().next().is_some())
            .any(|phase| {
                let together = self.plan.leaves_of(&phase.id).filter(|leaf| others.contains(&leaf.id));
                let together: Vec<&TaskId> = together.map(|leaf| &leaf.id).collect();
                together.len() > 1 && together.last() == Some(&task)
            })
    }
}
