//! Landing: what was finished in a lane goes onto the run's branch through the merge queue, one landing at a time.

use std::{sync::mpsc::SyncSender, thread::Scope};

use super::{
    Gardener, GardenerError, Site,
    course::{Course, Stop},
    lanes::Ground as Begin,
    phase,
    worker::{Report, Tools},
};
use crate::{
    git::RefMove,
    history::{Event, Ground, State},
    message::Status,
    name::{Oid, TaskId},
    pipeline::{End, Happening, News, PipelineError},
    plan::Task,
    progress::{Boxes, Progress},
    queue::{self, Gate, Outcome, Queue, Store, Target, Ticket},
    record::RecordError,
    settings::Origin,
    worktree::Lease,
};

/// A task that is complete in its lane, and not on the run's branch.
pub(super) struct Finished {
    pub(super) task: TaskId,
    /// Its lane, if it was worked on in this call.
    pub(super) site: Option<Site>,
    source: Oid,
    is_queued: bool,
}

/// Why a complete task is not on the run's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlanded {
    /// The task.
    pub task: TaskId,
    /// Why, in a line.
    pub why: String,
    /// Who is needed now.
    pub needs: Needs,
}

/// Who is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A person.
    Person,
    /// Nobody in particular: it will be tried again.
    Nobody,
}

/// What a lander reports.
pub(super) struct Landed(Result<queue::Report, GardenerError>);

impl Finished {
    pub(super) fn new(task: TaskId, site: Site) -> Self {
        Self { task, source: site.tip.head, site: Some(site), is_queued: false }
    }
}

impl<'a> Gardener<'a> {
    /// Where a task begins that is worked on in a lane.
    pub(super) fn ground(&self, task: &Task) -> Result<Begin, GardenerError> {
        let history = self.run.find(&task.id);
        let newest = history.filter(|history| history.is_landed).and_then(|history| history.last());
        Ok(Begin {
            base: Target::new(self.repository, &self.tools.hand.run).require()?.tip(),
            newest: newest.map(|event| event.commit),
            session: self.tools.hand.session.clone(),
        })
    }

    /// Tasks that an earlier run completed in their lanes.
    pub(super) fn find_finished(&self, course: &mut Course<'_, 'a, '_>) -> Result<(), GardenerError> {
        if self.tools.lanes.is_none() {
            return Ok(());
        }
        let waiting: Vec<(TaskId, Oid)> = self
            .run
            .tasks
            .iter()
            .filter(|history| history.state.state == State::Complete && !history.is_landed)
            .filter_map(|history| Some((history.id.clone(), history.last()?.commit)))
            .collect();
        let known = if waiting.is_empty() {
            Vec::new()
        } else {
            Store::new(self.repository).load(Some(&self.tools.hand.run))?
        };
        for (task, source) in waiting {
            let is_queued =
                known.iter().any(|stored| stored.ticket.task == task && stored.ticket.source == source);
            course.finished.push(Finished { task, site: None, source, is_queued });
        }
        course.is_drained = course.finished.is_empty();
        Ok(())
    }

    /// Sends somebody off to land what is finished, unless somebody is at it.
    pub(super) fn land<'scope, 'env>(
        &mut self,
        course: &mut Course<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        (tools, sender): (&'env Tools<'a>, &SyncSender<Report>),
    ) where
        'a: 'scope,
    {
        let is_new = course.finished.iter().any(|finished| !finished.is_queued);
        if course.lander.is_some() || self.tools.cancel.is_cancelled() || (course.is_drained && !is_new) {
            return;
        }
        let is_finished: Vec<TaskId> = course.finished.iter().map(|finished| finished.task.clone()).collect();
        let mut tickets = Vec::new();
        for finished in course.finished.iter_mut().filter(|finished| !finished.is_queued) {
            finished.is_queued = true;
            tickets.push(self.ticket(finished, &is_finished));
        }
        course.is_drained = true;
        let sender = sender.clone();
        course.lander = Some(scope.spawn(move || {
            let landed = Box::new(Landed(drain(tools, tickets, &sender)));
            let _ = sender.send(Report::Landed(landed));
        }));
    }

    /// The tests of a phase gate the landing of its last leaf.
    fn ticket(&self, finished: &Finished, is_finished: &[TaskId]) -> Ticket {
        let now = (self.tools.clock)();
        let mut ticket =
            Ticket::new(self.tools.hand.run.clone(), finished.task.clone(), finished.source, now);
        ticket.session = Some(self.tools.hand.session.clone());
        if let Some(task) = self.plan.find(&finished.task) {
            ticket.name.clone_from(&task.name);
        }
        ticket.gates = self.last_phases(&finished.task, is_finished).into_iter().flat_map(gates).collect();
        ticket
    }

    /// The phases of which this is the last leaf: all others have landed, or are about to.
    fn last_phases(&self, task: &TaskId, is_finished: &[TaskId]) -> Vec<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), &self.run, Boxes::Count);
        let is_done = |leaf: &Task| {
            let standing = progress.find(&leaf.id);
            leaf.id == *task
                || is_finished.contains(&leaf.id)
                || standing.is_some_and(|standing| standing.state == State::Skipped || standing.is_landed())
        };
        let parent = |phase: &&'a Task| phase.parent.as_ref().and_then(|parent| plan.find(parent));
        let phases = std::iter::successors(plan.find(task), parent).skip(1);
        phases.filter(|phase| plan.leaves_of(&phase.id).all(is_done)).collect()
    }

    /// The lane of a phase is free again. Where something landed while its tests ran, they will be run once more.
    pub(super) fn settle_phase(
        &mut self,
        course: &mut Course<'_, 'a, '_>,
        phase: TaskId,
        result: Result<End, GardenerError>,
        site: Site,
    ) {
        if let Some(lease) = site.lease
            && let Err(error) = give_back(lease)
        {
            course.halt(Stop::Error(error));
        }
        let is_overtaken =
            matches!(result, Err(GardenerError::Pipeline(PipelineError::Record(RecordError::Moved { .. }))));
        if !is_overtaken {
            self.judge(course, phase, result);
        }
    }

    /// Takes in what a lander did.
    pub(super) fn settle_landings(&mut self, course: &mut Course<'_, 'a, '_>, landed: Landed) {
        course.lander = None;
        let report = match landed.0 {
            Ok(report) => report,
            Err(error) => return course.halt(Stop::Error(error)),
        };
        course.summary.parked = report.parking.map(|parking| parking.command);
        for (ticket, outcome) in report.outcomes {
            if let Err(error) = self.settle_landing(course, &ticket, outcome) {
                course.halt(Stop::Error(error));
            }
        }
    }

    fn settle_landing(
        &mut self,
        course: &mut Course<'_, 'a, '_>,
        ticket: &Ticket,
        outcome: Outcome,
    ) -> Result<(), GardenerError> {
        let Some(at) = course.finished.iter().position(|finished| finished.task == ticket.task) else {
            return Ok(());
        };
        let (why, needs) = match outcome {
            Outcome::Landed { commit } | Outcome::Parked { commit } => {
                let finished = course.finished.swap_remove(at);
                course.summary.completed.push(finished.task);
                let events = self.repository.load_commits(&[commit])?;
                events.iter().filter_map(Event::of).for_each(|event| self.run.grow(event, Ground::Run));
                return finished
                    .site
                    .and_then(|site| site.lease)
                    .map_or(Ok(()), |lease| Ok(lease.recycle()?));
            }
            Outcome::Waiting { .. } => return Ok(()),
            other => explain(&other),
        };
        let finished = course.finished.swap_remove(at);
        course.ended.insert(finished.task.clone());
        course.summary.unlanded.push(Unlanded { task: finished.task, why, needs });
        course.halt_unless_kept_going();
        Ok(())
    }
}

/// A branch that was only made to have a place goes with it.
fn give_back(lease: Lease) -> Result<(), GardenerError> {
    let (repository, name) = (lease.repository.clone(), lease.branch.to_ref());
    let tip = repository.find_branch(&lease.branch)?;
    lease.recycle()?;
    Ok(repository.move_refs(&[RefMove { name: &name, new: None, old: tip }], "arborist: tested")?)
}

/// Why something did not land, and who is needed now.
fn explain(outcome: &Outcome) -> (String, Needs) {
    match outcome {
        Outcome::Conflict { conflicts, .. } => {
            let paths: Vec<String> = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
            (format!("it conflicts in {}", paths.join(", ")), Needs::Person)
        }
        Outcome::Red { failing, with } if with.is_empty() => {
            (format!("the gate '{}' is red: {}", failing.gate.name, failing.why), Needs::Nobody)
        }
        Outcome::Red { failing, with } => {
            let with: Vec<String> = with.iter().map(ToString::to_string).collect();
            let gate = &failing.gate.name;
            (format!("the gate '{gate}' is red together with {}", with.join(", ")), Needs::Nobody)
        }
        Outcome::RedBefore { failing } => {
            (format!("the gate '{}' was red before", failing.gate.name), Needs::Person)
        }
        Outcome::Broken { failing } => {
            (format!("the gate '{}' could not be asked: {}", failing.gate.name, failing.why), Needs::Person)
        }
        Outcome::NoChange => ("it changes nothing".into(), Needs::Nobody),
        Outcome::Waiting { reason } => (reason.clone(), Needs::Nobody),
        Outcome::Landed { .. } | Outcome::Parked { .. } => (String::new(), Needs::Nobody),
    }
}

/// The gates that a phase's own tests are.
fn gates(phase: &Task) -> Vec<Gate> {
    let gate = |test: crate::plan::TestCommand| {
        let mut gate =
            Gate::new(&format!("{} of {}", test.kind.as_str(), phase.id), &test.command, Origin::User);
        if let Some(timeout) = test.timeout {
            gate.timeout = timeout;
        }
        gate
    };
    phase::commands(phase).into_iter().map(gate).collect()
}

/// Queues tickets and lands what can be landed.
fn drain(
    tools: &Tools<'_>,
    tickets: Vec<Ticket>,
    reports: &SyncSender<Report>,
) -> Result<queue::Report, GardenerError> {
    let lanes = tools.lanes.ok_or(GardenerError::NoPlace)?;
    let run = &tools.hand.run;
    let queue = Queue::open(lanes.repository, run.clone(), run.clone())?;
    tickets.into_iter().try_for_each(|ticket| queue.add(ticket))?;
    Ok(queue.drain(&lanes.queue, &mut |news| {
        let _ = reports.send(Report::News(translate(news)));
    })?)
}

/// What a queue tells, as a run tells it.
fn translate(news: queue::News) -> News {
    let note = |words| Happening::Note { words };
    match news {
        queue::News::Gating { gate, commit } => {
            News { task: None, happening: note(format!("gate '{gate}' on {}", commit.short())) }
        }
        queue::News::Settled { task, outcome: Outcome::Landed { commit } | Outcome::Parked { commit } } => {
            News::of(&task, Happening::Recorded { status: Status::Merge, commit, why: None, usage: None })
        }
        queue::News::Settled { task, outcome } => {
            let words = format!("{task} did not land: {}", explain(&outcome).0);
            News::of(&task, note(words))
        }
        queue::News::Resolving { task, attempt } => {
            let words = format!("an agent resolves the conflict of {task}, try {attempt}");
            News::of(&task, note(words))
        }
        queue::News::Note { words } => News { task: None, happening: note(words) },
    }
}
