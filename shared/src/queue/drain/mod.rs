//! Drains a queue: stacks tickets, tests the stack, halves it if it fails, lands it, and continues. This module
//! decides; the [`QueueBackend`] acts.

mod blame;

use std::collections::{BTreeSet, HashSet};

use super::{
    Failing, Gate, GateVerdict, LandingPolicy, LandingStep, LoggedOutcome, Merged, Published, QueueBackend,
    QueueError, QueueEvent, QueueReport, RememberedResults, Resolution, Ticket, TicketOutcome, TicketState,
    arrange, fails_together, policy::batch_size,
};
use crate::{
    git::MergeConflict,
    name::{Oid, TaskId},
    queue::{HoldReason, QueueView, reasons::describe_all_or_nothing},
    settings::{MergeSettings, RedTarget, Size},
};

/// The rules of a drain.
#[derive(Debug, Clone, Default)]
pub struct DrainRules {
    /// How many tickets are tested together.
    pub batch: Option<Size>,
    /// Whether a ticket may land if its gate fails on the target too.
    pub red_target: RedTarget,
    /// How often an agent may try to resolve a conflict.
    pub resolve_attempts: u32,
    /// Which tickets land together.
    pub policy: LandingPolicy,
    /// Only these tasks, if any are named.
    pub only: Vec<TaskId>,
}

impl DrainRules {
    /// What the settings say: all tasks that pass land.
    #[must_use]
    pub fn new(merge: &MergeSettings) -> Self {
        Self {
            batch: merge.batch,
            red_target: merge.red_target,
            resolve_attempts: merge.resolve_attempts,
            ..Self::default()
        }
    }
}

/// How often a landing is tried if the target moves meanwhile.
const MAX_LANDING_TRIES: usize = 10;

/// A drain in progress.
pub struct Drain<'a, G: QueueBackend> {
    backend: &'a mut G,
    rules: DrainRules,
    report: QueueReport,
    /// Tickets that have an outcome and are not tried again in this drain.
    settled: HashSet<TaskId>,
    landed: HashSet<TaskId>,
    /// The tip of the target to which `landed` belongs.
    landed_tip: Option<Oid>,
    batch: BatchState,
    is_over: bool,
}

/// What is known about the current batch.
#[derive(Default)]
struct BatchState {
    base: Option<Oid>,
    landed: Vec<TaskId>,
    /// The gates that the landed tickets have passed.
    passed: Vec<Gate>,
    /// Which tickets of the last stack conflict with others of it, and in which files.
    clashes: Vec<String>,
    reds: Vec<RedTicket>,
}

/// A ticket that failed a gate.
struct RedTicket {
    ticket: Ticket,
    failing: Failing,
    /// The landed tasks that it does not work together with. Nothing if that is not known.
    with: Vec<TaskId>,
}

/// Whether a stack is a whole batch, or a fraction of one that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Fraction,
}

impl<'a, G: QueueBackend> Drain<'a, G> {
    /// A drain of this backend.
    pub fn new(backend: &'a mut G, rules: DrainRules) -> Self {
        Self {
            backend,
            rules,
            report: QueueReport::default(),
            settled: HashSet::new(),
            landed: HashSet::new(),
            landed_tip: None,
            batch: BatchState::default(),
            is_over: false,
        }
    }

    /// Lands everything that can land.
    pub fn run(mut self) -> Result<QueueReport, QueueError> {
        loop {
            while let Some(batch) = self.next_batch()? {
                self.land_batch(&batch)?;
            }
            if self.is_over || !self.resolve_next()? {
                break;
            }
        }
        self.report.gate_runs = self.backend.take_gate_runs();
        self.report.is_stopped = self.backend.is_cancelled();
        self.report_rest()?;
        Ok(self.report)
    }

    fn next_batch(&mut self) -> Result<Option<Vec<Ticket>>, QueueError> {
        if self.is_over || self.backend.is_cancelled() {
            return Ok(None);
        }
        let view = self.backend.repair_and_read()?;
        for (ticket, commit) in &view.done {
            self.report_outcome(ticket, TicketOutcome::Landed { commit: *commit });
        }
        let now = self.backend.now();
        let is_open = |ticket: &Ticket| {
            let is_new = ticket.state == TicketState::Waiting && !self.settled.contains(&ticket.task);
            is_new && self.is_wanted(ticket)
        };
        let order = arrange(&view.tickets, is_open, &view.landed, now);
        let size = if view.is_gated {
            batch_size(self.rules.batch, view.recent.tries, view.recent.reds)
        } else {
            // Without gates nothing can fail, so all land together.
            usize::MAX
        };
        // Named tasks may have landed in an earlier drain. Without names, only those of this drain count.
        let wanted_landed = self.rules.only.iter().filter(|task| view.landed.contains(*task)).count();
        let landed_count = wanted_landed.max(self.count_landed());
        let Some(size) = self.rules.policy.next_stack(landed_count, size) else {
            order.ready.iter().try_for_each(|at| self.leave_out(&view.tickets[*at]))?;
            return Ok(None);
        };
        let batch: Vec<Ticket> = order.ready.iter().take(size).map(|at| view.tickets[*at].clone()).collect();
        if self.rules.policy.is_all_or_nothing()
            && let Some(why) = self.find_not_in_batch(&view, &batch)
        {
            self.refuse_all(&batch, &why)?;
            return Ok(None);
        }
        (self.landed, self.landed_tip) = (view.landed, view.tip);
        Ok((!batch.is_empty()).then_some(batch))
    }

    fn land_batch(&mut self, batch: &[Ticket]) -> Result<(), QueueError> {
        self.batch = BatchState { base: Some(self.backend.tip()?), ..BatchState::default() };
        self.land_or_halve(batch, Part::Whole)?;
        self.settle_reds()
    }

    /// Stacks these tickets on the target and lands them, or halves the stack until bad tickets are alone.
    fn land_or_halve(&mut self, tickets: &[Ticket], part: Part) -> Result<(), QueueError> {
        for _ in 0..MAX_LANDING_TRIES {
            if self.is_over || self.backend.is_cancelled() {
                return Ok(());
            }
            let base = self.refresh_base()?;
            let stack = self.merge_stack(base, tickets)?;
            let Some(top) = stack.last() else {
                return Ok(());
            };
            let is_there = |ticket: &Ticket| stack.iter().any(|step| step.ticket.task == ticket.task);
            if self.rules.policy.is_all_or_nothing()
                && let Some(why) = self.find_missing(tickets, is_there)
            {
                return self.refuse_all(tickets, &why);
            }
            match self.test_stack(top.commit, &stack, part)? {
                GateVerdict::Green if self.backend.is_cancelled() => return Ok(()),
                GateVerdict::Green => match self.publish(base, &stack)? {
                    // The target has moved: merge and test again.
                    Published::TargetChanged => {}
                    Published::Refused(why) if self.rules.policy.is_all_or_nothing() => {
                        return self.refuse_all(tickets, &why);
                    }
                    Published::Refused(_) if stack.len() > 1 => return self.land_halves(stack),
                    Published::Refused(why) => return self.settle_refused_elsewhere(&stack[0].ticket, why),
                    Published::Landed | Published::Parked(_) => return Ok(()),
                },
                GateVerdict::Red(failing) if self.holds_the_queue(&failing)? => {
                    self.is_over = true;
                    for step in &stack {
                        self.store_reason(&step.ticket, blame::fails_on_target_reason(&failing))?;
                        self.settle(&step.ticket, TicketOutcome::FailsOnTarget { failing: failing.clone() });
                    }
                    return Ok(());
                }
                GateVerdict::Red(failing) if self.rules.policy.is_all_or_nothing() => {
                    let why = format!(
                        "the gate '{}' failed for these tasks together ({}; log: {})",
                        failing.gate.name, failing.why, failing.log
                    );
                    return self.refuse_all(tickets, &why);
                }
                GateVerdict::Red(failing) if stack.len() == 1 => return self.note_red(&stack[0], failing),
                GateVerdict::Red(_) => return self.land_halves(stack),
                GateVerdict::Broken(failing) => return self.stop_at_broken_gate(&stack, &failing),
            }
        }
        for ticket in tickets {
            self.settle(ticket, TicketOutcome::Waiting { reason: "its target keeps moving".into() });
        }
        Ok(())
    }

    fn land_halves(&mut self, stack: Vec<LandingStep>) -> Result<(), QueueError> {
        let tickets: Vec<Ticket> = stack.into_iter().map(|step| step.ticket).collect();
        let (first, second) = tickets.split_at(tickets.len() / 2);
        self.land_or_halve(first, Part::Fraction)?;
        self.land_or_halve(second, Part::Fraction)
    }

    /// Settles a ticket that cannot land in another repository.
    pub(super) fn settle_refused_elsewhere(
        &mut self,
        ticket: &Ticket,
        why: String,
    ) -> Result<(), QueueError> {
        self.store_reason(ticket, HoldReason::Other(why.clone()))?;
        self.settle(ticket, TicketOutcome::Blocked { why });
        Ok(())
    }

    /// The tip of the target. If it is not the one that the landed tasks were read at, the queue is asked for them again.
    fn refresh_base(&mut self) -> Result<Oid, QueueError> {
        let tip = self.backend.tip()?;
        if self.landed_tip == Some(tip) {
            return Ok(tip);
        }
        let view = self.backend.repair_and_read()?;
        (self.landed, self.landed_tip) = (view.landed, view.tip);
        Ok(view.tip.unwrap_or(tip))
    }

    /// Merges these tickets one on top of the other. A ticket that conflicts with another of the stack is left for the
    /// next round; only a conflict with the target itself counts as a conflict.
    fn merge_stack(&mut self, base: Oid, tickets: &[Ticket]) -> Result<Vec<LandingStep>, QueueError> {
        let mut stack: Vec<LandingStep> = Vec::new();
        self.batch.clashes.clear();
        for ticket in tickets {
            let is_there = |need: &TaskId| {
                self.landed.contains(need) || stack.iter().any(|step| step.ticket.task == *need)
            };
            if !ticket.needs.iter().all(is_there) {
                continue;
            }
            let onto = stack.last().map_or(base, |step| step.commit);
            match self.backend.merge(onto, ticket)? {
                Merged::Clean(step) => stack.push(*step),
                Merged::NoChange => {
                    self.backend.close(ticket, LoggedOutcome::NoChange)?;
                    self.settle(ticket, TicketOutcome::NoChange);
                }
                Merged::Conflict(conflicts) if !stack.is_empty() => {
                    self.batch.clashes.push(describe_clash(ticket, &stack, &conflicts));
                }
                Merged::Conflict(conflicts) => self.mark_conflict(ticket, base, conflicts)?,
                Merged::Refused(why) => self.settle_refused_elsewhere(ticket, why)?,
            }
        }
        Ok(stack)
    }

    fn mark_conflict(
        &mut self,
        ticket: &Ticket,
        onto: Oid,
        conflicts: Vec<MergeConflict>,
    ) -> Result<(), QueueError> {
        let state = TicketState::Conflict { onto, conflicts: conflicts.clone(), escalated: false };
        self.backend.set_state(&Ticket { held: None, ..ticket.clone() }, state)?;
        self.settle(ticket, TicketOutcome::Conflict { conflicts, escalated: false });
        Ok(())
    }

    /// Runs the gates on a stack. A gate that fails runs again for a whole batch and for a single ticket, but not for a
    /// fraction that will be halved anyway.
    fn test_stack(
        &mut self,
        commit: Oid,
        stack: &[LandingStep],
        part: Part,
    ) -> Result<GateVerdict, QueueError> {
        let mut gates: Vec<Gate> = Vec::new();
        for gate in stack.iter().flat_map(|step| &step.gates) {
            if !gates.contains(gate) {
                gates.push(gate.clone());
            }
        }
        let verdict = self.backend.run_gates(commit, &gates, RememberedResults::Any)?;
        let GateVerdict::Red(failing) = &verdict else {
            return Ok(verdict);
        };
        let will_be_halved = part == Part::Fraction && stack.len() > 1;
        if will_be_halved
            || self.is_known_to_fail_on_target(failing)?
            || self.target_fails_after_second_red(stack, failing)?
        {
            return Ok(verdict);
        }
        self.confirm(commit, &gates, failing)
    }

    /// Runs failed gates again. If they pass now, they are reported as flaky.
    fn confirm(&mut self, commit: Oid, gates: &[Gate], failing: &Failing) -> Result<GateVerdict, QueueError> {
        let again = self.backend.run_gates(commit, gates, RememberedResults::Passed)?;
        if again == GateVerdict::Green {
            self.report.flaky.push(failing.gate.name.clone());
            let words = format!(
                "the gate '{}' is flaky: it failed, then passed, on the same commit",
                failing.gate.name
            );
            self.backend.report(QueueEvent::note(words));
        }
        Ok(again)
    }

    fn publish(&mut self, base: Oid, stack: &[LandingStep]) -> Result<Published, QueueError> {
        let stack = self.backend.record_tests(stack)?;
        let published = self.backend.publish(base, &stack)?;
        if matches!(published, Published::TargetChanged | Published::Refused(_)) {
            return Ok(published);
        }
        self.landed_tip = stack.last().map(|step| step.commit);
        for LandingStep { ticket, commit, gates } in stack {
            self.batch.passed.extend(gates);
            self.landed.insert(ticket.task.clone());
            self.batch.landed.push(ticket.task.clone());
            self.settle(
                &ticket,
                match &published {
                    Published::Parked(_) => TicketOutcome::Parked { commit },
                    _ => TicketOutcome::Landed { commit },
                },
            );
        }
        self.report.parking = match &published {
            Published::Parked(parking) => Some(parking.clone()),
            _ => None,
        };
        Ok(published)
    }

    /// Ends the drain, because a gate could not run.
    fn stop_at_broken_gate(&mut self, stack: &[LandingStep], failing: &Failing) -> Result<(), QueueError> {
        self.is_over = true;
        for step in stack {
            self.store_reason(&step.ticket, HoldReason::no_result(failing))?;
            self.settle(&step.ticket, TicketOutcome::Broken { failing: failing.clone() });
        }
        Ok(())
    }

    /// Gives a ticket its outcome, so that it is not tried again in this drain.
    fn settle(&mut self, ticket: &Ticket, outcome: TicketOutcome) {
        self.settled.insert(ticket.task.clone());
        self.report_outcome(ticket, outcome);
    }

    fn report_outcome(&mut self, ticket: &Ticket, outcome: TicketOutcome) {
        self.backend.report(QueueEvent::Settled {
            ticket: Box::new(ticket.clone()),
            outcome: Box::new(outcome.clone()),
        });
        self.report.put(ticket, outcome);
    }
}

impl<G: QueueBackend> Drain<'_, G> {
    /// Whether the ticket is among the wanted ones.
    fn is_wanted(&self, ticket: &Ticket) -> bool {
        self.rules.only.is_empty() || self.rules.only.contains(&ticket.task)
    }

    /// How many tickets have landed in this drain.
    fn count_landed(&self) -> usize {
        let is_landed = |outcome: &TicketOutcome| {
            matches!(outcome, TicketOutcome::Landed { .. } | TicketOutcome::Parked { .. })
        };
        self.report.outcomes.iter().filter(|(_, outcome)| is_landed(outcome)).count()
    }

    /// Closes a ticket because enough others have landed.
    fn leave_out(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        self.backend.close(ticket, LoggedOutcome::NotChosen)?;
        self.settle(ticket, TicketOutcome::NotChosen { policy: self.rules.policy });
        Ok(())
    }

    /// Which wanted tickets are settled or wait for others, so that they are not in the batch.
    fn find_not_in_batch(&self, view: &QueueView, batch: &[Ticket]) -> Option<String> {
        let is_there = |ticket: &Ticket| batch.iter().any(|other| other.task == ticket.task);
        let is_parked = |ticket: &Ticket| matches!(ticket.state, TicketState::Parked { .. });
        let wanted = view.tickets.iter().filter(|ticket| self.is_wanted(ticket));
        let blocked = wanted.filter(|ticket| !is_there(ticket) && !is_parked(ticket));
        let words = |ticket: &Ticket| format!("{} ({})", ticket.task, ticket.state.word());
        cannot_be_merged(&blocked.map(words).collect::<Vec<_>>())
    }

    /// Which of these tickets would have to land and are missing, and why if that is known.
    fn find_missing(&self, tickets: &[Ticket], is_there: impl Fn(&Ticket) -> bool) -> Option<String> {
        let is_unchanged = |ticket: &Ticket| self.report.find(&ticket.task) == Some(&TicketOutcome::NoChange);
        let missing = tickets.iter().filter(|ticket| !is_there(ticket) && !is_unchanged(ticket));
        let missing: Vec<String> = missing.map(|ticket| ticket.task.to_string()).collect();
        let missing = cannot_be_merged(&missing)?;
        Some(if self.batch.clashes.is_empty() { missing } else { self.batch.clashes.join(", and ") })
    }

    /// Ends the drain and lands nothing of these. Tickets that have an outcome keep it; the others are reported as not tried.
    fn refuse_all(&mut self, tickets: &[Ticket], why: &str) -> Result<(), QueueError> {
        self.is_over = true;
        for ticket in tickets {
            if self.report.find(&ticket.task).is_none() {
                self.store_reason(ticket, HoldReason::AllOrNothing { why: why.to_owned() })?;
                let reason = describe_all_or_nothing(why);
                self.settle(ticket, TicketOutcome::Waiting { reason });
            }
        }
        Ok(())
    }
}

impl<G: QueueBackend> Drain<'_, G> {
    /// Tries to resolve the next conflict. Returns whether to go on: a ticket may land, or the conflict may be tried again.
    fn resolve_next(&mut self) -> Result<bool, QueueError> {
        for ticket in self.backend.repair_and_read()?.tickets {
            if !matches!(ticket.state, TicketState::Conflict { escalated: false, .. }) {
                continue;
            }
            if self.backend.is_cancelled() {
                return Ok(false);
            }
            // A person whose resolution failed a gate was asked to correct it.
            let is_of_person = ticket.has_persons_work && !ticket.tries.is_empty();
            if is_of_person || ticket.tries.len() >= self.rules.resolve_attempts as usize {
                self.escalate(&ticket)?;
                continue;
            }
            match self.backend.resolve(&ticket)? {
                Resolution::Left(ticket) => self.escalate(&ticket)?,
                Resolution::Resolved => {
                    self.settled.remove(&ticket.task);
                    return Ok(true);
                }
                Resolution::Failed => return Ok(true),
                Resolution::Withdrawn => self.settle(&ticket, TicketOutcome::Withdrawn),
            }
        }
        Ok(false)
    }

    /// Marks a conflict as one that a person has to resolve.
    fn escalate(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        let TicketState::Conflict { onto, conflicts, .. } = ticket.state.clone() else {
            return Ok(());
        };
        let state = TicketState::Conflict { onto, conflicts: conflicts.clone(), escalated: true };
        self.backend.set_state(ticket, state)?;
        self.settle(ticket, TicketOutcome::Conflict { conflicts, escalated: true });
        Ok(())
    }

    /// Reports the tickets that were not tried, and what they wait for.
    fn report_rest(&mut self) -> Result<(), QueueError> {
        let view = self.backend.repair_and_read()?;
        let now = self.backend.now();
        let is_waiting = |ticket: &Ticket| ticket.state == TicketState::Waiting;
        let order = arrange(&view.tickets, is_waiting, &view.landed, now);
        for (at, ticket) in view.tickets.iter().enumerate() {
            if self.report.find(&ticket.task).is_none() {
                let needs = order.waiting.iter().find(|(waiting, _)| *waiting == at);
                let needs = needs.map(|(_, needs)| needs.as_slice()).unwrap_or_default();
                self.report.put(ticket, outcome_of(ticket, &waits_for(needs, &view.tickets)));
            }
        }
        Ok(())
    }
}

/// The reason of a refusal because of these tickets, if there are any.
fn cannot_be_merged(tickets: &[String]) -> Option<String> {
    (!tickets.is_empty()).then(|| format!("some of these tasks cannot be merged: {}", tickets.join(", ")))
}

/// Which tasks a ticket conflicts with, and in which files.
fn describe_clash(ticket: &Ticket, stack: &[LandingStep], conflicts: &[MergeConflict]) -> String {
    let before: Vec<&str> = stack.iter().map(|step| step.ticket.task.as_str()).collect();
    let paths: BTreeSet<&str> =
        conflicts.iter().flat_map(|conflict| &conflict.paths).map(String::as_str).collect();
    let paths = paths.into_iter().collect::<Vec<_>>().join(", ");
    format!("{} conflicts with {} in {paths}", ticket.task, before.join(" or "))
}

/// Describes needs, with the state of those that are in the queue.
#[must_use]
pub fn waits_for(needs: &[TaskId], tickets: &[Ticket]) -> String {
    let one = |need: &TaskId| match tickets.iter().find(|ticket| ticket.task == *need) {
        Some(ticket) => format!("{need} ({})", ticket.state.as_str()),
        None => format!("{need} (not queued)"),
    };
    needs.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn outcome_of(ticket: &Ticket, needs: &str) -> TicketOutcome {
    match &ticket.state {
        TicketState::Parked { commit } => TicketOutcome::Parked { commit: *commit },
        TicketState::Conflict { conflicts, escalated, .. } => {
            TicketOutcome::Conflict { conflicts: conflicts.clone(), escalated: *escalated }
        }
        TicketState::Waiting if needs.is_empty() => TicketOutcome::Waiting { reason: "its turn".into() },
        TicketState::Waiting => TicketOutcome::Waiting { reason: needs.to_owned() },
        TicketState::Red { gate, with, .. } if with.is_empty() => {
            TicketOutcome::Waiting { reason: format!("a fix: the gate '{gate}' failed") }
        }
        TicketState::Red { gate, with, .. } => {
            TicketOutcome::Waiting { reason: format!("a fix: {}", fails_together(gate, with)) }
        }
        TicketState::Lost | TicketState::LostElsewhere { .. } => TicketOutcome::Lost,
        TicketState::Reverted(reverted) => TicketOutcome::Reverted(reverted.clone()),
        TicketState::Withheld { why } => TicketOutcome::Waiting { reason: why.to_string() },
    }
}
