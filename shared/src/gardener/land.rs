//! Lands tasks that were finished in lanes on the run's branch, through the merge queue. One drain of the queue runs at
//! a time, in its own thread.

use std::{sync::mpsc::SyncSender, thread::Scope, time::Instant};

use crate::{
    coordination::Release,
    event::RunEvent,
    gardener::{
        Gardener, GardenerError, WorkerPlace,
        course::{CompletedTask, DrainReport, RunProgress, Stop, WorkerReport},
        lanes::LaneStart,
        other_lanes::OtherLanes,
        other_workers::is_unreached,
        outcome::{Unlanded, explain, foreign_event, translate},
        worker::RunResources,
    },
    git::RefMove,
    history::{Event, EventPosition, State},
    message::Status,
    name::{BranchName, Oid, TaskId},
    pipeline::{PipelineError, TaskEnd},
    plan::Task,
    progress::{Boxes, Progress},
    queue::{
        self, Afterwards, FanIn, Landing, LandingCommand, LoggedOutcome, OnConflict, OtherBranches, Queue,
        QueueError, Store, StoredTicket, Target, Ticket, TicketOutcome, accept_foreign,
    },
    record::RecordError,
    worktree::Lease,
};

/// How many entries of the queue's log are read.
const MAX_LOG_ENTRIES: usize = 1000;

impl<'a> Gardener<'a> {
    /// The run's newest commit, including a parked landing.
    pub(super) fn newest(&self) -> Result<Oid, GardenerError> {
        Ok(Target::new(self.repository, &self.tools.context.identity.run).require()?.tip())
    }

    /// Reports commits of others on the run's branch, on which the next task builds. Tasks in lanes leave the branch to
    /// the user, so it may have moved at any time.
    pub(super) fn tell_of_foreign(&mut self) -> Result<(), GardenerError> {
        let identity = &self.tools.context.identity;
        let found = accept_foreign(self.repository, (&identity.run, &identity.run), Some(&identity.session))?;
        for found in found {
            (self.on_event)(RunEvent { task: None, kind: foreign_event(found) });
        }
        Ok(())
    }

    /// Checks the run's branch a last time: no later check would see what the last child process did there.
    pub(super) fn look_at_target(&mut self, course: &mut RunProgress<'_, 'a, '_>) {
        if self.tools.lanes.is_some()
            && let Err(error) = self.tell_of_foreign()
        {
            course.halt(Stop::Error(error));
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
            session: self.tools.context.identity.session.clone(),
        })
    }

    /// Finds tasks that an earlier run completed in their lanes. Lanes of tasks that it landed are freed.
    pub(super) fn find_finished(&self, course: &mut RunProgress<'_, 'a, '_>) -> Result<(), GardenerError> {
        let Some(lanes) = self.tools.lanes else {
            return Ok(());
        };
        lanes.pool.free(|task| self.run.has_landed(task))?;
        for other in self.tools.other_lanes.iter() {
            other.free(|task| self.run.has_landed(task))?;
        }
        let waiting: Vec<(TaskId, Oid)> = self
            .run
            .tasks
            .iter()
            .filter(|history| history.state() == State::Complete && !history.is_landed)
            .filter_map(|history| Some((history.id.clone(), history.last()?.commit)))
            .collect();
        let run = &self.tools.context.identity.run;
        let store = Store::new(self.repository);
        let known = store.load(Some(run))?;
        // Tickets of landed tasks are left over from a crash. Draining the queue closes them.
        course.is_drained = known.is_empty() && waiting.is_empty();
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
            course.finished.push(CompletedTask {
                task,
                is_adopted: false,
                site: None,
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
        course: &mut RunProgress<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        (tools, sender): (&'env RunResources<'a>, &SyncSender<WorkerReport>),
    ) where
        'a: 'scope,
    {
        if course.lander.is_some() || self.tools.context.cancel.is_cancelled() || self.lands_when_asked() {
            return;
        }
        let is_new = course.finished.iter().any(|finished| !finished.is_queued);
        if course.is_drained && !is_new && self.coordinator().is_none() {
            return;
        }
        if !self.may_land(course)
            || tools.lanes.is_some_and(|lanes| course.can_wait((lanes.jobs, lanes.most())))
            || !self.begin_landing(course)
        {
            return;
        }
        let new = course.finished.iter().filter(|finished| !finished.is_queued);
        let new: Vec<TaskId> = new.map(|finished| finished.task.clone()).collect();
        let redoes = tools.lanes.is_some_and(|lanes| lanes.queue.on_conflict == OnConflict::Reimplement);
        let (mut tickets, mut released) = (Vec::new(), Vec::new());
        for finished in course.finished.iter_mut().filter(|finished| !finished.is_queued) {
            if !self.completes_a_phase_with(&finished.task, &new) {
                finished.is_queued = true;
                tickets.push(self.ticket(finished, &[]));
                // A task that may be done again must not be checked out: otherwise its branch could not be deleted.
                let site = finished.site.take_if(|_| redoes);
                released.extend(site.into_iter().flat_map(WorkerPlace::into_leases));
            }
        }
        course.is_drained = true;
        let sender = sender.clone();
        course.lander = Some(scope.spawn(move || {
            let drained = Box::new(DrainReport(drain(tools, (tickets, released), &sender)));
            let _ = sender.send(WorkerReport::Drained(drained));
        }));
    }

    /// With a policy that lands only some tasks, waits until no task is running, so that all are considered together.
    /// With "all or nothing", nothing lands if a task failed.
    fn may_land(&self, course: &RunProgress<'_, 'a, '_>) -> bool {
        match self.tools.lanes.map(|lanes| lanes.queue.fan_in) {
            None | Some(FanIn::KeepClean) => true,
            Some(FanIn::Choose(_)) => course.running.is_empty(),
            Some(FanIn::AllOrNothing) => course.running.is_empty() && course.summary.failed.is_empty(),
        }
    }

    /// If something landed while the tests of a phase ran, their result is not recorded, and they run again.
    pub(super) fn apply_phase(
        &mut self,
        course: &mut RunProgress<'_, 'a, '_>,
        phase: TaskId,
        result: Result<TaskEnd, GardenerError>,
    ) {
        let is_overtaken =
            matches!(result, Err(GardenerError::Pipeline(PipelineError::Record(RecordError::Moved { .. }))));
        if !is_overtaken {
            self.judge(course, phase, result);
        }
    }

    /// Applies the report of a drain.
    pub(super) fn apply_landings(&mut self, course: &mut RunProgress<'_, 'a, '_>, drained: DrainReport) {
        course.lander = None;
        course.landed = Some(Instant::now());
        self.end_landing(course);
        let report = match drained.0 {
            Ok(report) => report,
            Err(error) if is_elsewhere(&error) => {
                return course.finished.iter_mut().for_each(|finished| finished.is_queued = false);
            }
            Err(error) => return course.halt(Stop::Error(error)),
        };
        if report.is_stopped {
            course.halt(Stop::Error(PipelineError::stopped(&self.tools.context.cancel).into()));
        }
        course.summary.parked = report.parking;
        for (ticket, outcome) in report.outcomes {
            if let Err(error) = self.apply_landing(course, &ticket, outcome) {
                course.halt(Stop::Error(error));
            }
        }
    }

    fn apply_landing(
        &mut self,
        course: &mut RunProgress<'_, 'a, '_>,
        ticket: &Ticket,
        outcome: TicketOutcome,
    ) -> Result<(), GardenerError> {
        let Some(at) = course.finished.iter().position(|finished| finished.task == ticket.task) else {
            return Ok(());
        };
        let (why, needs_person, command) = match outcome {
            TicketOutcome::Landed { commit } | TicketOutcome::Parked { commit } => {
                let finished = course.finished.swap_remove(at);
                course.summary.completed.push(finished.task);
                let events = self.repository.load_commits(&[commit])?;
                events
                    .iter()
                    .filter_map(Event::of)
                    .for_each(|event| self.run.grow(event, EventPosition::Run));
                if finished.is_adopted {
                    self.delete_landed((&ticket.branch(), ticket.source), commit)?;
                }
                return self.free_lanes(finished.site, ticket, commit);
            }
            TicketOutcome::Waiting { reason } if !self.tries_again(course, at) => {
                (ticket.reason_to_wait(&reason), true, LandingCommand::Status)
            }
            TicketOutcome::Waiting { reason } => {
                course.finished[at].why = Some(ticket.reason_to_wait(&reason));
                return Ok(());
            }
            TicketOutcome::Withdrawn => {
                let finished = course.finished.swap_remove(at);
                self.run.forget(&finished.task);
                return Ok(());
            }
            other => {
                let (why, needs_person) = explain(ticket, &other);
                (why, needs_person, other.command())
            }
        };
        let finished = course.finished.swap_remove(at);
        course.ended.insert(finished.task.clone());
        self.give_back(course, &finished.task, Release::Failed);
        course.summary.unlanded.push(Unlanded { task: finished.task, why, needs_person, command });
        course.halt_unless_kept_going();
        Ok(())
    }
}

impl Gardener<'_> {
    /// Frees the lanes of a task that has landed.
    fn free_lanes(
        &self,
        site: Option<WorkerPlace>,
        ticket: &Ticket,
        commit: Oid,
    ) -> Result<(), GardenerError> {
        let Some(lanes) = self.tools.lanes else { return Ok(()) };
        let Some(WorkerPlace { lease: Some(lease), other_leases, .. }) = site else {
            let is_it = |task: &TaskId| *task == ticket.task;
            self.tools.other_lanes.iter().try_for_each(|other| other.free(is_it))?;
            return Ok(lanes.pool.free(is_it)?);
        };
        for lease in other_leases {
            let is_its = |other: &&OtherLanes| other.has(&lease);
            if let Some(other) = self.tools.other_lanes.iter().find(is_its) {
                other.recycle(lease, lanes.queue.afterwards)?;
            }
        }
        self.recycle(lease, ticket.source, commit)
    }

    /// Frees the lane for the next task. Deletes the branch if it is not to be kept: nothing has it checked out now,
    /// and its commits are proved to be in the target.
    fn recycle(&self, lease: Lease, source: Oid, landed: Oid) -> Result<(), GardenerError> {
        let branch = lease.branch.clone();
        lease.recycle()?;
        let is_kept = self.tools.lanes.is_none_or(|lanes| lanes.queue.afterwards == Afterwards::Keep);
        if is_kept { Ok(()) } else { self.delete_landed((&branch, source), landed) }
    }

    /// Deletes the branch of a task whose commits are in the target.
    fn delete_landed(&self, (branch, source): (&BranchName, Oid), landed: Oid) -> Result<(), GardenerError> {
        if !self.repository.is_ancestor(source, landed)? {
            return Ok(());
        }
        let name = branch.to_ref();
        let moved = RefMove { name: &name, new: None, old: Some(source) };
        // If the branch has moved since, the compare-and-swap fails and the branch stays.
        let _ = self.repository.move_refs(&[moved], "arborist: landed");
        Ok(())
    }
}

/// Whether a landing failed because another worker lands, or because the remote could not be reached.
fn is_elsewhere(error: &GardenerError) -> bool {
    matches!(error, GardenerError::Queue(QueueError::LandedElsewhere(_))) || is_unreached(error)
}

/// Queues tickets and lands what can land.
fn drain(
    tools: &RunResources<'_>,
    (tickets, released): (Vec<Ticket>, Vec<Lease>),
    reports: &SyncSender<WorkerReport>,
) -> Result<queue::QueueReport, GardenerError> {
    let lanes = tools.lanes.ok_or(GardenerError::NoPlace)?;
    let run = &tools.context.identity.run;
    let queue = Queue::open(lanes.repository, run.clone(), run.clone(), tools.context.clock)?;
    Store::new(lanes.repository).add(tickets)?;
    released.into_iter().try_for_each(Lease::recycle)?;
    Ok(queue.drain(&lanes.queue, &mut |event| {
        let has_landed = matches!(&event, queue::QueueEvent::Settled { outcome, .. } if matches!(**outcome, TicketOutcome::Landed { .. }));
        for event in translate(event) {
            let _ = reports.send(WorkerReport::News(event));
        }
        // A batch moves the branch once, so the first ticket of it records the new tip.
        let followed =
            has_landed.then(|| tools.checkpoints.follow(lanes.repository, run, Status::Merge)).flatten();
        if let Some(kind) = followed {
            let _ = reports.send(WorkerReport::News(RunEvent { task: None, kind }));
        }
    })?)
}

impl<'a> Gardener<'a> {
    /// Whether finished tasks land only when the user asks (`merge.auto` is off).
    pub(super) fn lands_when_asked(&self) -> bool {
        self.tools.lanes.is_some_and(|lanes| lanes.queue.landing == Landing::WhenAsked)
    }

    /// The queued tickets that only a person can help: a branch is gone, or their changes were merged and taken back.
    pub(super) fn find_stuck(&self) -> Result<Vec<Ticket>, GardenerError> {
        let identity = &self.tools.context.identity;
        let elsewhere = OtherBranches::open(self.tools.sections, self.plan, &identity.session);
        let mut stuck = Vec::new();
        for StoredTicket { mut ticket, .. } in Store::new(self.repository).load(Some(&identity.run))? {
            ticket.update_state(self.repository, (&self.run, Some(&elsewhere)))?;
            stuck.extend(ticket.trouble().is_some().then_some(ticket));
        }
        Ok(stuck)
    }

    /// If tasks land only when the user asks, queues what is finished. The ticket keeps the work alive, so lanes are
    /// freed.
    pub(super) fn leave_queued(&self, course: &mut RunProgress<'_, 'a, '_>) -> Result<(), GardenerError> {
        if !self.lands_when_asked() {
            return Ok(());
        }
        course.is_drained = true;
        while let Some(at) = course.finished.iter().position(|finished| !finished.is_queued) {
            let waiting = course.finished.iter().filter(|finished| finished.is_waiting());
            let queued: Vec<TaskId> = waiting.map(|finished| finished.task.clone()).collect();
            let ticket = self.ticket(&course.finished[at], &queued);
            Store::new(self.repository).add(vec![ticket])?;
            let finished = &mut course.finished[at];
            finished.is_queued = true;
            let leases = finished.site.take().into_iter().flat_map(WorkerPlace::into_leases);
            leases.into_iter().try_for_each(Lease::recycle)?;
        }
        Ok(())
    }

    /// The ticket of a task. The tests of a phase gate the landing of its last task; if other tasks of the phase are
    /// queued, the ticket waits for them.
    pub(super) fn ticket(&self, finished: &CompletedTask, queued: &[TaskId]) -> Ticket {
        let now = (self.tools.context.clock)();
        let mut ticket =
            Ticket::new(self.tools.context.identity.run.clone(), finished.task.clone(), finished.source, now);
        ticket.session = Some(self.tools.context.identity.session.clone());
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
        let progress = Progress::new(Some(plan), &self.run, Boxes::Count);
        let is_done = |leaf: &Task| {
            let standing = progress.find(&leaf.id);
            leaf.id == *task
                || others.contains(&leaf.id)
                || standing.is_some_and(|standing| standing.state == State::Skipped || standing.is_landed())
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
