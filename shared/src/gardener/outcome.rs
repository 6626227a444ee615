//! What the queue says of landings, in the words of a run.

use super::Needs;
use crate::{
    message::Status,
    pipeline::{Happening, Meeting, News},
    queue::{self, Outcome, Ticket},
};

/// Why something did not land, and who is needed now.
pub(super) fn explain(outcome: &Outcome) -> (String, Needs) {
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
            let place = failing.gate.repo.as_ref().map(|repo| format!(" in '{repo}'")).unwrap_or_default();
            (format!("the gate '{}' was red before{place}", failing.gate.name), Needs::Person)
        }
        Outcome::Broken { failing } => {
            (format!("the gate '{}' could not be asked: {}", failing.gate.name, failing.why), Needs::Person)
        }
        Outcome::Withdrawn => {
            ("it conflicts with what has landed meanwhile, and is done anew".into(), Needs::Nobody)
        }
        Outcome::NotChosen => ("others were chosen".into(), Needs::Nobody),
        Outcome::NoChange => ("it changes nothing".into(), Needs::Nobody),
        Outcome::Waiting { reason } => (reason.clone(), Needs::Nobody),
        Outcome::Landed { .. } | Outcome::Parked { .. } => (String::new(), Needs::Nobody),
    }
}

/// What a queue tells, as a run tells it.
pub(super) fn translate(news: queue::News) -> Vec<News> {
    let note = |words| Happening::Note { words };
    match news {
        queue::News::Gating { gate, commit } => {
            vec![News { task: None, happening: note(format!("gate '{gate}' on {}", commit.short())) }]
        }
        queue::News::Settled { ticket, outcome } => settled(&ticket, &outcome)
            .into_iter()
            .map(|happening| News::of(&ticket.task, happening))
            .collect(),
        queue::News::Resolving { task, attempt } => {
            let words = format!("an agent resolves the conflict of {task}, try {attempt}");
            vec![News::of(&task, note(words))]
        }
        queue::News::Note { words } => vec![News { task: None, happening: note(words) }],
    }
}

fn settled(ticket: &Ticket, outcome: &Outcome) -> Vec<Happening> {
    let landing = Meeting { branch: ticket.scope.task_branch(&ticket.task), target: ticket.into.clone() };
    match outcome {
        Outcome::Landed { commit } | Outcome::Parked { commit } => {
            let (status, commit) = (Status::Merge, *commit);
            let expense = ticket.paid.expense().unwrap_or_default();
            let resolved = ticket.resolver().map(|by| (by.trailer(), by.words()));
            vec![
                Happening::Recorded { status, commit, why: None, expense, files: None },
                Happening::Merged { landing, commit, resolved },
            ]
        }
        Outcome::Conflict { conflicts, escalated } => {
            let paths = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
            let (count, is_escalated) = (conflicts.len(), *escalated);
            vec![Happening::Conflicted { landing, paths, count, is_escalated }]
        }
        other => {
            let words = format!("{} did not land: {}", ticket.task, explain(other).0);
            vec![Happening::Note { words }]
        }
    }
}
