//! What became of landings, in the words of a run, and what the whole run came to.

use crate::{
    event::{EventKind, ForeignCommit, RunEvent},
    failure::Exit,
    gardener::{Needs, Unlanded},
    message::{Status, one_line},
    name::{Oid, TaskId},
    queue::{self, ResolvedBy, Ticket, TicketOutcome},
};

/// Why something did not land, and who is needed now.
pub(super) fn explain(outcome: &TicketOutcome) -> (String, Needs) {
    match outcome {
        TicketOutcome::Conflict { conflicts, .. } => {
            let paths: Vec<String> = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
            (format!("it conflicts in {}", paths.join(", ")), Needs::Person)
        }
        TicketOutcome::Red { failing, with } if with.is_empty() => {
            (format!("the gate '{}' is red: {}", failing.gate.name, failing.why), Needs::Nobody)
        }
        TicketOutcome::Red { failing, with } => {
            let with: Vec<String> = with.iter().map(ToString::to_string).collect();
            let gate = &failing.gate.name;
            (format!("the gate '{gate}' is red together with {}", with.join(", ")), Needs::Nobody)
        }
        TicketOutcome::RedBefore { failing } => {
            let place = failing.gate.repo.as_ref().map(|repo| format!(" in '{repo}'")).unwrap_or_default();
            (format!("the gate '{}' was red before{place}", failing.gate.name), Needs::Person)
        }
        TicketOutcome::Broken { failing } => {
            (format!("the gate '{}' could not be asked: {}", failing.gate.name, failing.why), Needs::Person)
        }
        TicketOutcome::Withdrawn => {
            ("it conflicts with what has landed meanwhile, and is done anew".into(), Needs::Nobody)
        }
        TicketOutcome::NotChosen => ("others were chosen".into(), Needs::Nobody),
        TicketOutcome::NoChange => ("it changes nothing".into(), Needs::Nobody),
        TicketOutcome::Waiting { reason } => (reason.clone(), Needs::Nobody),
        TicketOutcome::Landed { .. } | TicketOutcome::Parked { .. } => (String::new(), Needs::Nobody),
    }
}

/// What a queue tells, as a run tells it.
pub(super) fn translate(event: queue::QueueEvent) -> Vec<RunEvent> {
    match event {
        queue::QueueEvent::Gating { gate, commit } => {
            vec![RunEvent {
                task: None,
                kind: EventKind::note(format!("gate '{gate}' on {}", commit.short())),
            }]
        }
        queue::QueueEvent::Settled { ticket, outcome } => {
            settled(&ticket, &outcome).into_iter().map(|kind| RunEvent::of(&ticket.task, kind)).collect()
        }
        queue::QueueEvent::Resolving { task, attempt } => {
            let words = format!("an agent resolves the conflict of {task}, try {attempt}");
            vec![RunEvent::of(&task, EventKind::note(words))]
        }
        queue::QueueEvent::Foreign(found) => vec![RunEvent { task: None, kind: told_of(found) }],
        queue::QueueEvent::Note { words } => vec![RunEvent { task: None, kind: EventKind::note(words) }],
    }
}

/// Commits of others, as a run tells of them.
pub(super) fn told_of(found: queue::ForeignCommits) -> EventKind {
    let commit = |(commit, subject): (Oid, String)| ForeignCommit {
        commit: commit.to_string(),
        subject: one_line(&subject),
    };
    EventKind::ForeignCommits { words: found.words, commits: found.commits.into_iter().map(commit).collect() }
}

fn settled(ticket: &Ticket, outcome: &TicketOutcome) -> Vec<EventKind> {
    let (branch, target) = (ticket.scope.task_branch(&ticket.task), ticket.into.clone());
    match outcome {
        TicketOutcome::Landed { commit } | TicketOutcome::Parked { commit } => {
            let (status, commit) = (Status::Merge, *commit);
            let spent = ticket.paid.expense().unwrap_or_default().spent();
            let resolver = ticket.resolver();
            let (auto, resolved_by) = (resolver.is_none(), resolver.map(ResolvedBy::trailer));
            let resolution = resolver.map(ResolvedBy::words).unwrap_or_default();
            vec![
                EventKind::Recorded { status, commit, why: None, spent, files: None },
                EventKind::Merged { branch, target, commit, auto, resolved_by, resolution },
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
            let words = format!("{} did not land: {}", ticket.task, explain(other).0);
            vec![EventKind::note(words)]
        }
    }
}

/// How a whole run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Completed in this call.
    pub completed: Vec<TaskId>,
    /// Failed in this call.
    pub failed: Vec<TaskId>,
    /// Left undone because something they wait for is.
    pub left: Vec<TaskId>,
    /// Complete, but not on the run's branch.
    pub unlanded: Vec<Unlanded>,
    /// What a person has to type so that landings reach their checkout.
    pub parked: Option<String>,
    /// The option whose limit is used up, and a value that lets what is left go on.
    pub raise: Option<(&'static str, String)>,
}

impl Summary {
    /// Whether everything that was wanted is done and in its place.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.failed.is_empty() && self.left.is_empty() && self.unlanded.is_empty() && self.parked.is_none()
    }

    /// What a command exits with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let needs_person = self.unlanded.iter().any(|unlanded| unlanded.needs == Needs::Person);
        match (needs_person || self.parked.is_some(), self.is_well()) {
            (true, _) => Exit::Person,
            (false, true) => Exit::Done,
            (false, false) => Exit::No,
        }
    }
}
