//! Finds out which ticket a failed gate is due to: none if the gate fails on the target as well, and two if each passes
//! without the other.

use super::{Drain, RedTarget, RedTicket};
use crate::{
    name::{Oid, TaskId},
    queue::{
        Failing, Gate, GateVerdict, HoldReason, LandingStep, Merged, Published, QueueBackend, QueueError,
        QueueEvent, RememberedResults, Ticket, TicketOutcome, TicketState,
    },
};

impl<G: QueueBackend> Drain<'_, G> {
    /// Remembers a ticket that fails alone on the current target. If it passes without the tasks of this batch that have
    /// already landed, the two are reported as an interaction.
    pub(super) fn note_red(&mut self, step: &LandingStep, failing: Failing) -> Result<(), QueueError> {
        let ticket = &step.ticket;
        let landed = self.batch.landed.clone();
        let builds_on = ticket.needs.iter().any(|need| landed.contains(need));
        let mut with = Vec::new();
        if !landed.is_empty()
            && !builds_on
            && let Some(base) = self.batch.base
            && let Merged::Clean(alone) = self.backend.merge(base, ticket)?
            && self.backend.run_gates(alone.commit, &alone.gates, RememberedResults::Any)?
                == GateVerdict::Green
        {
            with = landed;
        }
        self.batch.reds.push(RedTicket { ticket: ticket.clone(), failing, with });
        self.settled.insert(ticket.task.clone());
        Ok(())
    }

    /// Settles the failed tickets of the batch. A ticket is not blamed for a gate that fails on the target as well.
    pub(super) fn settle_reds(&mut self) -> Result<(), QueueError> {
        let reds = std::mem::take(&mut self.batch.reds);
        for RedTicket { ticket, failing, mut with } in reds {
            if !self.fails_on_target(&failing)? {
                if with.is_empty() {
                    with = self.find_breaking_landing(&ticket)?;
                }
                self.mark_red(&ticket, failing, with)?;
            } else if self.rules.red_target == RedTarget::Hold {
                // Nothing may land on a target that fails, so the whole drain ends. A failure in another repository does
                // not hold up tickets that changed nothing there.
                self.is_over |= failing.gate.repo.is_none();
                self.store_reason(&ticket, fails_on_target_reason(&failing))?;
                self.settle(&ticket, TicketOutcome::FailsOnTarget { failing });
            } else {
                self.land_despite_red_target(&ticket)?;
            }
        }
        Ok(())
    }

    /// Finds the landing that broke this ticket: the ticket passes on the target before that landing, and fails after it.
    /// Empty if it fails even without the landings since it was begun. Bisects them, so that few gates run.
    fn find_breaking_landing(&mut self, ticket: &Ticket) -> Result<Vec<TaskId>, QueueError> {
        let landings = self.backend.landings_since(ticket)?;
        let Some(first) = landings.first() else { return Ok(Vec::new()) };
        if self.is_good_on(first.before, ticket)? != Some(true) {
            return Ok(Vec::new());
        }
        // The ticket passes on `landings[good].before`, and fails once `landings[bad - 1]` has landed.
        let (mut good, mut bad) = (0, landings.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.is_good_on(landings[middle].before, ticket)? {
                Some(true) => good = middle,
                Some(false) => bad = middle,
                None => break,
            }
        }
        Ok(landings[good..bad].iter().map(|landing| landing.task.clone()).collect())
    }

    /// Whether a ticket passes its gates on this commit; `None` if that cannot be tested.
    fn is_good_on(&mut self, onto: Oid, ticket: &Ticket) -> Result<Option<bool>, QueueError> {
        let Merged::Clean(alone) = self.backend.merge(onto, ticket)? else { return Ok(None) };
        if self.backend.is_cancelled() {
            return Ok(None);
        }
        Ok(match self.backend.run_gates(alone.commit, &alone.gates, RememberedResults::Any)? {
            GateVerdict::Green => Some(true),
            GateVerdict::Red(_) => Some(false),
            GateVerdict::Broken(_) => None,
        })
    }

    /// Stores in the ticket why it could not be tested, so that people see it after this process has ended.
    pub(super) fn store_reason(&mut self, ticket: &Ticket, why: HoldReason) -> Result<(), QueueError> {
        let ticket = Ticket { held: Some(why), ..ticket.clone() };
        self.backend.set_state(&ticket, TicketState::Waiting)
    }

    /// Whether the gate fails on the target too. It need not run there if something of the batch has just passed it, or
    /// if it tests something that the target cannot have.
    fn fails_on_target(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        let is_known_green = failing.gate.own || self.batch.passed.contains(&failing.gate);
        let Some(base) = self.batch.base.filter(|_| !is_known_green) else {
            return Ok(false);
        };
        let verdict =
            self.backend.run_gates(base, std::slice::from_ref(&failing.gate), RememberedResults::Any)?;
        Ok(matches!(verdict, GateVerdict::Red(_)))
    }

    /// Whether the gate is known, without running it, to fail on the target. Then no second run is needed to find the
    /// culprit.
    pub(super) fn is_known_to_fail_on_target(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        match self.batch.base {
            Some(base) if !failing.gate.own => self.backend.is_known_to_fail_on_target(base, &failing.gate),
            _ => Ok(false),
        }
    }

    /// Whether nothing may land until the target is fixed.
    pub(super) fn holds_the_queue(&mut self, failing: &Failing) -> Result<bool, QueueError> {
        let is_held = self.rules.red_target == RedTarget::Hold && failing.gate.repo.is_none();
        Ok(is_held && self.is_known_to_fail_on_target(failing)?)
    }

    /// Runs the gate on the target when a second ticket fails alone and none has passed, and returns whether it fails
    /// there. A single bad ticket never causes this run.
    pub(super) fn target_fails_after_second_red(
        &mut self,
        stack: &[LandingStep],
        failing: &Failing,
    ) -> Result<bool, QueueError> {
        let is_second = stack.len() == 1 && !self.batch.reds.is_empty();
        Ok(is_second && self.fails_on_target(failing)?)
    }

    fn mark_red(&mut self, ticket: &Ticket, failing: Failing, with: Vec<TaskId>) -> Result<(), QueueError> {
        if ticket.resolved.is_some() {
            return self.forget_resolution(ticket, &failing);
        }
        self.backend.set_state(&Ticket { held: None, ..ticket.clone() }, red_state(&failing, &with))?;
        self.settle(ticket, TicketOutcome::Red { failing, with });
        Ok(())
    }

    /// Lands a ticket whose only failing gates fail on the target, too. All other gates run, on exactly the commit that lands.
    fn land_despite_red_target(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        let base = self.refresh_base()?;
        let Some(unexcused) = self.merge_stack(base, std::slice::from_ref(ticket))?.pop() else {
            return Ok(());
        };
        let (mut step, mut excused) = (unexcused.clone(), Vec::<Gate>::new());
        while !step.gates.is_empty() && !self.backend.is_cancelled() {
            match self.test_despite_red_target(&step)? {
                GateVerdict::Green => break,
                GateVerdict::Red(failing)
                    if !excused.iter().any(|gate| gate.is_same(&failing.gate))
                        && self.fails_on_target(&failing)? =>
                {
                    excused.push(failing.gate);
                }
                GateVerdict::Red(failing) => return self.mark_red(ticket, failing, Vec::new()),
                GateVerdict::Broken(failing) => return self.stop_at_broken_gate(&[step], &failing),
            }
            step = self.backend.excuse(base, &unexcused, &excused)?;
        }
        if self.backend.is_cancelled() {
            return Ok(());
        }
        match self.publish(base, &[step])? {
            Published::TargetChanged => {
                self.settle(ticket, TicketOutcome::Waiting { reason: "its target has just moved".into() });
                Ok(())
            }
            Published::Refused(why) => self.settle_refused_elsewhere(ticket, why),
            Published::Landed | Published::Parked(_) => Ok(()),
        }
    }

    /// Runs the gates. One that passed on the target runs a second time before it counts as failed.
    fn test_despite_red_target(&mut self, step: &LandingStep) -> Result<GateVerdict, QueueError> {
        match self.backend.run_gates(step.commit, &step.gates, RememberedResults::Any)? {
            GateVerdict::Red(failing) if !self.fails_on_target(&failing)? => {
                self.confirm(step.commit, &step.gates, &failing)
            }
            verdict => Ok(verdict),
        }
    }

    /// Discards a resolution that fails a gate. The conflict is back, and the next try is told why.
    fn forget_resolution(&mut self, ticket: &Ticket, failing: &Failing) -> Result<(), QueueError> {
        let why = format!("the gate '{}' failed: {}", failing.gate.name, failing.why);
        let words = match ticket.has_persons_work {
            true => self.keep_and_describe_resolution(ticket, failing)?,
            false => format!("the resolution of {} is not used: {why}", ticket.task),
        };
        self.backend.report(QueueEvent::note(words));
        let mut ticket = Ticket { resolved: None, ..ticket.clone() };
        let why = format!("{why}\n{}", failing.tail);
        match ticket.tries.last_mut() {
            Some(last) => *last = why,
            None => ticket.tries.push(why),
        }
        self.backend.set_state(&ticket, TicketState::Waiting)?;
        self.settled.remove(&ticket.task);
        Ok(())
    }

    /// Keeps a person's resolution, and says why it did not land and where it is.
    fn keep_and_describe_resolution(
        &mut self,
        ticket: &Ticket,
        failing: &Failing,
    ) -> Result<String, QueueError> {
        let place = self.backend.keep_resolution(ticket)?.map(|place| format!("; {place}"));
        Ok(format!(
            "the gate '{}' failed on your resolution of {}: {}; log: {}{}",
            failing.gate.name,
            ticket.task,
            failing.why,
            failing.log,
            place.unwrap_or_default()
        ))
    }
}

/// Why a ticket waits whose gate fails on the target too.
pub(super) fn fails_on_target_reason(failing: &Failing) -> HoldReason {
    HoldReason::FailsOnTarget { gate: failing.gate.name.clone() }
}

fn red_state(failing: &Failing, with: &[TaskId]) -> TicketState {
    TicketState::Red {
        gate: failing.gate.name.clone(),
        commit: failing.commit,
        log: failing.log.clone(),
        tail: failing.tail.clone(),
        with: with.to_vec(),
        ran_fewer: failing.ran_fewer,
        denied: failing.denied.clone(),
    }
}
