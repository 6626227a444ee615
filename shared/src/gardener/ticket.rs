//! Tickets: what a run asks of the queue for a task that is finished.

use super::{Gardener, GardenerError, course::RunProgress, land::CompletedTask};
use crate::{
    history::State,
    name::TaskId,
    plan::Task,
    progress::{Boxes, Progress},
    queue::{Landing, Store, Ticket},
};

impl<'a> Gardener<'a> {
    /// Whether what is finished lands only when somebody asks for it.
    pub(super) fn lands_when_asked(&self) -> bool {
        self.tools.lanes.is_some_and(|lanes| lanes.queue.landing == Landing::WhenAsked)
    }

    /// Where nothing lands without being asked for, what is finished is queued and left there. A ticket holds the work,
    /// so lanes are free for others.
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
            if let Some(lease) = finished.site.take().and_then(|site| site.lease) {
                lease.recycle()?;
            }
        }
        Ok(())
    }

    /// The tests of a phase gate the landing of its last leaf. Where others of the phase are queued before it, it lands
    /// behind them.
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
    /// queued once the others have landed or not: only then is it known whether the phase's tests have to gate it.
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
