//! Translates results of landings into events of a run; and the summary of a run.

use crate::{
    event::{EventKind, ForeignCommit, RunEvent, StepChanges},
    failure::Exit,
    git::MergeConflict,
    message::{Status, one_line},
    name::{Oid, TaskId},
    queue::{self, LandingCommand, LandingPolicy, Parking, ResolvedBy, Ticket, TicketOutcome, TicketState},
};

/// Why a ticket did not land, and whether a person is needed.
pub(super) fn explain(ticket: &Ticket, outcome: &TicketOutcome) -> (String, bool) {
    match outcome {
        TicketOutcome::Conflict { conflicts, .. } => (words_on_conflicts(conflicts), true),
        TicketOutcome::Red { failing, with } if with.is_empty() => {
            (format!("the gate '{}' failed: {}", failing.gate.name, failing.why), false)
        }
        TicketOutcome::Red { failing, with } => (queue::fails_together(&failing.gate.name, with), false),
        TicketOutcome::FailsOnTarget { failing } => {
            let place = failing.gate.repo.as_ref().map(|repo| format!(" in '{repo}'")).unwrap_or_default();
            (format!("the gate '{}' also fails without the task{place}", failing.gate.name), true)
        }
        TicketOutcome::Broken { failing } => (queue::describe_broken(failing), true),
        TicketOutcome::Withdrawn => {
            ("it conflicts with tasks that have landed, and is done again on top of them".into(), false)
        }
        TicketOutcome::NotChosen { policy } => (words_on_policy(*policy), false),
        TicketOutcome::NoChange => ("it changes nothing".into(), false),
        TicketOutcome::Blocked { why } => (why.clone(), true),
        TicketOutcome::Lost => (ticket.trouble().unwrap_or_else(|| "its branch is gone".into()), true),
        TicketOutcome::Reverted(reverted) => (reverted.words(), true),
        TicketOutcome::Waiting { reason } => (ticket.reason_to_wait(reason), false),
        TicketOutcome::Landed { .. } | TicketOutcome::Parked { .. } => (String::new(), false),
    }
}

/// Why a ticket in the queue has not landed; `None` if it only waits for its turn.
pub(super) fn explain_ticket(ticket: &Ticket) -> Option<Unlanded> {
    let command = ticket.state.command();
    let (why, needs_person, command) = match &ticket.state {
        TicketState::Conflict { conflicts, .. } => (words_on_conflicts(conflicts), true, command),
        TicketState::Red { .. } => (ticket.reason()?, false, command),
        TicketState::Waiting => {
            (ticket.held.as_ref()?.to_string(), !ticket.waits_for_all(), LandingCommand::Status)
        }
        _ => (ticket.trouble()?, true, command),
    };
    Some(Unlanded { task: ticket.task.clone(), why, needs_person, command })
}

fn words_on_conflicts(conflicts: &[MergeConflict]) -> String {
    let paths: Vec<String> = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
    format!("it conflicts in {}", paths.join(", "))
}

/// Why a policy did not choose a task that passed.
fn words_on_policy(policy: LandingPolicy) -> String {
    match policy {
        LandingPolicy::Choose(1) => "the policy 'first' lands only the first task that passes".to_owned(),
        LandingPolicy::Choose(most) => {
            format!("the policy '{most}' lands only the first {most} tasks that pass")
        }
        LandingPolicy::KeepClean | LandingPolicy::AllOrNothing => "other tasks landed instead".to_owned(),
    }
}

/// Translates an event of the queue into events of the run.
pub(super) fn translate(event: queue::QueueEvent) -> Vec<RunEvent> {
    match event {
        queue::QueueEvent::Settled { ticket, outcome } => {
            events_of(&ticket, &outcome).into_iter().map(|kind| RunEvent::of(&ticket.task, kind)).collect()
        }
        queue::QueueEvent::Foreign(found) => vec![RunEvent { task: None, kind: others_commits_event(found) }],
        queue::QueueEvent::Progress { task, words } | queue::QueueEvent::Note { task, words } => {
            vec![RunEvent { task, kind: EventKind::note(words) }]
        }
    }
}

/// The event for commits of others.
pub(super) fn others_commits_event(found: queue::ForeignCommits) -> EventKind {
    let commit = |(commit, subject): (Oid, String)| ForeignCommit {
        commit: commit.to_string(),
        subject: one_line(&subject),
    };
    EventKind::ForeignCommits { words: found.words, commits: found.commits.into_iter().map(commit).collect() }
}

fn events_of(ticket: &Ticket, outcome: &TicketOutcome) -> Vec<EventKind> {
    let (branch, target) = (ticket.scope.task_branch(&ticket.task), ticket.into.clone());
    match outcome {
        TicketOutcome::Landed { commit } | TicketOutcome::Parked { commit } => {
            let (status, commit) = (Status::Merge, *commit);
            let is_parked = matches!(outcome, TicketOutcome::Parked { .. });
            let spent = ticket.paid.expense().unwrap_or_default().spent();
            let resolver = ticket.resolver();
            let (auto, resolved_by) = (resolver.is_none(), resolver.map(ResolvedBy::trailer));
            let resolution = resolver.map(ResolvedBy::words).unwrap_or_default();
            vec![
                EventKind::Recorded { status, commit, why: None, spent, changes: StepChanges::default() },
                EventKind::Merged { branch, target, commit, auto, resolved_by, resolution, is_parked },
            ]
        }
        TicketOutcome::Conflict { conflicts, escalated } => {
            let paths = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
            let conflicts = conflicts.len();
            vec![if *escalated {
                EventKind::Escalated { branch, target, conflicts, paths }
            } else {
                EventKind::Conflict { branch, target, conflicts, paths }
            }]
        }
        other => {
            let words = format!("{} did not land: {}", ticket.task, explain(ticket, other).0);
            vec![EventKind::note(words)]
        }
    }
}

/// A complete task that has not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlanded {
    /// The task.
    pub task: TaskId,
    /// Why, in a line.
    pub why: String,
    /// Whether a person is needed.
    pub needs_person: bool,
    /// The command that helps.
    pub command: LandingCommand,
}

/// The result of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tasks completed in this call.
    pub completed: Vec<TaskId>,
    /// Tasks failed in this call.
    pub failed: Vec<TaskId>,
    /// Tasks not done, because something that they depend on is not done.
    pub left: Vec<TaskId>,
    /// Tasks that are complete but have not landed.
    pub unlanded: Vec<Unlanded>,
    /// Why landings are parked, and the command with which the user brings them into the checkout.
    pub parked: Option<Parking>,
    /// The option whose limit is used up, and a value with which the rest can continue.
    pub raise: Option<(&'static str, String)>,
    /// The failed task whose changes make the tests fail for all others.
    pub blocking: Option<TaskId>,
}

impl Summary {
    /// Whether everything that was wanted is done and has landed.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.failed.is_empty() && self.left.is_empty() && self.unlanded.is_empty() && self.parked.is_none()
    }

    /// The exit code of the command.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let needs_person = self.unlanded.iter().any(|unlanded| unlanded.needs_person);
        match (needs_person || self.parked.is_some(), self.is_well()) {
            (true, _) => Exit::Person,
            (false, true) => Exit::Done,
            (false, false) => Exit::No,
        }
    }
}
