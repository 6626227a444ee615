//! Who is to blame for a red gate: nobody if it was red before, both if two good ones do not go together.

use super::{Drain, RedTarget};
use crate::{
    name::TaskId,
    queue::{
        Asking, Failing, Gate, GateVerdict, LandingStep, Merged, Published, QueueBackend, QueueError, Ticket,
        TicketOutcome, TicketState,
    },
};

impl<G: QueueBackend> Drain<'_, G> {
    /// A ticket is red alone, on top of what has landed. If it is green without what landed of its batch, the two do
    /// not go together, and neither is bad.
    pub(super) fn blame(&mut self, step: &LandingStep, failing: Failing) -> Result<(), QueueError> {
        let ticket = &step.ticket;
        let landed = self.batch.landed.clone();
        let builds_on = ticket.needs.iter().any(|need| landed.contains(need));
        let mut with = Vec::new();
        if let (Some(base), false, false) = (self.batch.base, landed.is_empty(), builds_on)
            && let Merged::Clean(alone) = self.backend.merge(base, ticket)?
            && self.ask(alone.commit, &alone.gates, Asking::Once)? == GateVerdict::Green
        {
            with = landed;
        }
        self.batch.reds.push((ticket.clone(), failing, with));
        self.aside.insert(ticket.task.clone());
        Ok(())
    }

    /// Nobody is blamed for what was red before.
    pub(super) fn conclude(&mut self) -> Result<(), QueueError> {
        let reds = std::mem::take(&mut self.batch.reds);
        for (ticket, failing, with) in reds {
            if !self.was_red_before(&failing)? {
                self.hold_back(&ticket, failing, with)?;
            } else if self.rules.red_target == RedTarget::Hold {
                // What is red in another repository keeps nobody back who has changed nothing there.
                self.is_over |= failing.gate.repo.is_none();
                self.set_aside(&ticket, TicketOutcome::RedBefore { failing });
            } else {
                self.land_all_the_same(&ticket)?;
            }
        }
        Ok(())
    }

    /// That is known only once the same gate was run on the target; it need not be where something of the batch has
    /// just passed it, nor where it tests what the target cannot have.
    fn was_red_before(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        let is_known_green = failing.gate.own || self.batch.passed.contains(&failing.gate);
        let Some(base) = self.batch.base.filter(|_| !is_known_green) else {
            return Ok(false);
        };
        let verdict = self.ask(base, &[failing.gate.earlier()], Asking::Once)?;
        Ok(matches!(verdict, GateVerdict::Red(_)))
    }

    /// Whether that is known without asking. Then it need not be asked twice whose fault it is.
    pub(super) fn is_known_red(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        match self.batch.base {
            Some(base) if !failing.gate.own => self.backend.is_known_red(base, &failing.gate.earlier()),
            _ => Ok(false),
        }
    }

    /// Whether nothing lands until the target is mended.
    pub(super) fn is_held_by(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        let is_held = self.rules.red_target == RedTarget::Hold && failing.gate.repo.is_none();
        Ok(is_held && self.is_known_red(failing)?)
    }

    /// The second that is red alone where nothing was green makes one look at the target first. One bad ticket of a batch
    /// never does.
    pub(super) fn is_suspected(
        &mut self,
        stack: &[LandingStep],
        failing: &Failing,
    ) -> Result<bool, QueueError> {
        let is_second = stack.len() == 1 && !self.batch.reds.is_empty();
        Ok(is_second && self.was_red_before(failing)?)
    }

    fn hold_back(&mut self, ticket: &Ticket, failing: Failing, with: Vec<TaskId>) -> Result<(), QueueError> {
        if ticket.resolved.is_some() {
            return self.forget_resolution(ticket, &failing);
        }
        self.backend.note(ticket, red(&failing, &with))?;
        self.set_aside(ticket, TicketOutcome::Red { failing, with });
        Ok(())
    }

    /// Lands a ticket that nothing keeps back but gates that were red before. Every other gate is asked, about exactly
    /// what lands.
    fn land_all_the_same(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        let base = self.base()?;
        let Some(whole) = self.stack(base, std::slice::from_ref(ticket))?.pop() else {
            return Ok(());
        };
        let (mut step, mut excused) = (whole.clone(), Vec::<Gate>::new());
        while !step.gates.is_empty() && !self.backend.is_cancelled() {
            match self.judge_all_the_same(&step)? {
                GateVerdict::Green => break,
                GateVerdict::Red(failing)
                    if !excused.iter().any(|gate| gate.is_same(&failing.gate))
                        && self.was_red_before(&failing)? =>
                {
                    excused.push(failing.gate);
                }
                GateVerdict::Red(failing) => return self.hold_back(ticket, failing, Vec::new()),
                GateVerdict::Broken(failing) => return self.break_off(&[step], &failing),
            }
            step = self.backend.excuse(base, &whole, &excused)?;
        }
        if self.backend.is_cancelled() {
            return Ok(());
        }
        if self.publish(base, &[step])? == Published::Moved {
            self.set_aside(
                ticket,
                TicketOutcome::Waiting { reason: "its target, which has just moved".into() },
            );
        }
        Ok(())
    }

    /// What was green before is asked once more before it is called red.
    fn judge_all_the_same(&mut self, step: &LandingStep) -> Result<GateVerdict, QueueError> {
        match self.ask(step.commit, &step.gates, Asking::Once)? {
            GateVerdict::Red(failing) if !self.was_red_before(&failing)? => {
                self.confirm(step.commit, &step.gates, &failing)
            }
            verdict => Ok(verdict),
        }
    }

    /// A resolution that is red was none: the conflict is there again, and the next try is told.
    fn forget_resolution(&mut self, ticket: &Ticket, failing: &Failing) -> Result<(), QueueError> {
        let mut ticket = Ticket { resolved: None, ..ticket.clone() };
        let why = format!("the gate '{}' is red: {}\n{}", failing.gate.name, failing.why, failing.tail);
        match ticket.tries.last_mut() {
            Some(last) => *last = why,
            None => ticket.tries.push(why),
        }
        self.backend.note(&ticket, TicketState::Waiting)?;
        self.aside.remove(&ticket.task);
        Ok(())
    }
}

fn red(failing: &Failing, with: &[TaskId]) -> TicketState {
    TicketState::Red {
        gate: failing.gate.name.clone(),
        commit: failing.commit,
        log: failing.log.clone(),
        tail: failing.tail.clone(),
        with: with.to_vec(),
    }
}
