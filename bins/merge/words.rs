//! The texts for outcomes of tickets.

use arborist_core::{
    git::MergeConflict,
    message::plain_text,
    name::{Oid, TaskId},
    queue::{
        ForeignCommits, QueueEvent, QueueReport, Ticket, TicketOutcome, TicketState, describe_broken,
        describe_conflicts, describe_gating,
    },
};

use super::open::OpenQueue;
use crate::ui::{Tone, Ui};

const PERSON_NEEDED: &str = "; you must resolve it";

/// One word for it.
pub(super) fn word(outcome: &TicketOutcome) -> &'static str {
    match outcome {
        TicketOutcome::Landed { .. } => "landed",
        TicketOutcome::Parked { .. } => "parked",
        TicketOutcome::NoChange => "no-change",
        TicketOutcome::NotChosen { .. } => "not-chosen",
        TicketOutcome::Conflict { escalated: true, .. } => "escalated",
        TicketOutcome::Conflict { .. } => "conflict",
        TicketOutcome::Withdrawn => "withdrawn",
        TicketOutcome::Red { .. } => "red",
        TicketOutcome::FailsOnTarget { .. } => "red-before",
        TicketOutcome::Broken { .. } => "broken",
        TicketOutcome::Blocked { .. } => "blocked",
        TicketOutcome::Lost => "lost",
        TicketOutcome::Reverted(_) => "reverted",
        TicketOutcome::Waiting { .. } => "waiting",
    }
}

/// The commit that it is about.
pub(super) fn commit(outcome: &TicketOutcome) -> Option<Oid> {
    match outcome {
        TicketOutcome::Landed { commit } | TicketOutcome::Parked { commit } => Some(*commit),
        TicketOutcome::Red { failing, .. }
        | TicketOutcome::FailsOnTarget { failing }
        | TicketOutcome::Broken { failing } => Some(failing.commit),
        _ => None,
    }
}

/// One line for it.
pub(super) fn sentence(ticket: &Ticket, outcome: &TicketOutcome) -> String {
    let task = &ticket.task;
    let resolved = ticket.resolution().map(|by| format!("; {by}")).unwrap_or_default();
    let text = match outcome {
        TicketOutcome::Landed { commit } => format!("{task} landed as {}{resolved}", commit.short()),
        TicketOutcome::Parked { commit } => {
            format!("{task} was merged as {}, but its landing is parked{resolved}", commit.short())
        }
        TicketOutcome::NotChosen { .. } => format!("{task} is not needed: other tasks have landed instead"),
        TicketOutcome::NoChange => {
            format!("{task} has nothing to land: its branch has no changes that {} lacks", ticket.into)
        }
        TicketOutcome::Conflict { escalated: true, .. } if ticket.failed_resolution().is_some() => {
            format!(
                "{task} did not land: on your resolution, {}",
                ticket.failed_resolution().unwrap_or_default()
            )
        }
        TicketOutcome::Conflict { conflicts, escalated } => {
            let person_note = if *escalated { PERSON_NEEDED } else { "" };
            format!("{task} is in conflict: {}{person_note}", describe_conflicts(conflicts))
        }
        TicketOutcome::Withdrawn => {
            format!(
                "{task} conflicts with tasks that landed meanwhile, and will be done again on top of them"
            )
        }
        TicketOutcome::Red { failing, with } if with.is_empty() => {
            format!(
                "{task} did not land, because the gate '{}' failed: {}; log: {}",
                failing.gate.name, failing.why, failing.log
            )
        }
        TicketOutcome::Red { failing, with } => {
            let with: Vec<String> = with.iter().map(ToString::to_string).collect();
            format!(
                "{task} passes alone, but fails together with {}: {}; log: {}",
                with.join(", "),
                failing.why,
                failing.log
            )
        }
        TicketOutcome::FailsOnTarget { failing } => {
            let place = match &failing.gate.repo {
                Some(repo) => format!("failed in '{repo}' before it"),
                None => "fails on the target too".into(),
            };
            format!(
                "{task} is waiting, because the gate '{}' {place}; log: {}",
                failing.gate.name, failing.log
            )
        }
        TicketOutcome::Broken { failing } => {
            format!("{task} is waiting, because {}", describe_broken(failing))
        }
        TicketOutcome::Blocked { why } => format!("{task} is waiting, because {why}"),
        TicketOutcome::Lost => format!("{task} is lost: {}", ticket.trouble().unwrap_or_default()),
        TicketOutcome::Reverted(reverted) => format!("{task} was {}", reverted.words()),
        TicketOutcome::Waiting { reason } => format!("{task} waits for {reason}"),
    };
    plain_text(&text).replace('\n', " ")
}

/// The sentence without what is only said in the end, so that the same outcome is recognized.
pub(super) fn short_sentence(ticket: &Ticket, outcome: &TicketOutcome) -> String {
    sentence(ticket, outcome).replace(PERSON_NEEDED, "")
}

/// Prints a line to standard error for each event. An outcome that is not new is not repeated.
pub(super) fn report(ui: &mut Ui, site: &OpenQueue, event: &QueueEvent, is_new: bool) {
    let line = match event {
        QueueEvent::Settled { ticket, outcome } => {
            let task = &ticket.task;
            // It is escalated at once, and reported then.
            if matches!(**outcome, TicketOutcome::Conflict { escalated: false, .. })
                && ticket.failed_resolution().is_some()
            {
                return;
            }
            let tone = match &**outcome {
                TicketOutcome::Landed { .. } | TicketOutcome::NoChange | TicketOutcome::NotChosen { .. } => {
                    Tone::Good
                }
                TicketOutcome::Parked { .. } | TicketOutcome::Waiting { .. } => Tone::Busy,
                _ => Tone::Bad,
            };
            let is_escalated = matches!(**outcome, TicketOutcome::Conflict { escalated: true, .. });
            let line = match (is_new, is_escalated) {
                (false, false) => return,
                (false, true) if ticket.failed_resolution().is_some() => sentence(ticket, outcome),
                (false, true) => format!("{task} has a conflict that you must resolve"),
                (true, _) => sentence(ticket, outcome),
            };
            let line = ui.paint(tone, &line);
            match &**outcome {
                TicketOutcome::Conflict { escalated: true, .. } if ticket.failed_resolution().is_some() => {
                    format!("{line}\n  correct it, then run: {}", site.command(&format!("resolve {task}")))
                }
                TicketOutcome::Conflict { escalated: true, conflicts } => {
                    format!("{line}\n{}", what_to_do(task, conflicts, site))
                }
                _ => line,
            }
        }
        QueueEvent::Gating { gate, tested, is_repeated } => {
            plain_text(&describe_gating(gate, tested, *is_repeated))
        }
        QueueEvent::Resolving { task, attempt } => {
            format!("an agent is resolving the conflict of {task} (attempt {attempt})")
        }
        QueueEvent::Note { words } | QueueEvent::Foreign(ForeignCommits { words, .. }) => plain_text(words),
    };
    ui.err(&format!("{line}\n"));
}

/// The conflicts, and the commands with which to continue by hand.
fn what_to_do(task: &TaskId, conflicts: &[MergeConflict], site: &OpenQueue) -> String {
    let full_text =
        conflicts.iter().map(|conflict| format!("  {}", plain_text(&conflict.message).replace('\n', " ")));
    let commands = [
        format!("  inspect it:    {}", site.command(&format!("status {task}"))),
        format!("  resolve it:    {}", site.command(&format!("resolve {task}"))),
        format!("  or drop it:    {}", site.command(&format!("drop {task}"))),
    ];
    full_text.chain(commands).collect::<Vec<_>>().join("\n")
}

/// A task that failed a gate in an earlier drain, and was not tried in this one.
const RED_EARLIER: &str = "red-earlier";

fn kind(ticket: &Ticket, outcome: &TicketOutcome) -> &'static str {
    match (outcome, &ticket.state) {
        (TicketOutcome::Waiting { .. }, TicketState::Red { .. }) => RED_EARLIER,
        (TicketOutcome::Conflict { escalated: true, .. }, _) if ticket.failed_resolution().is_some() => "red",
        _ => word(outcome),
    }
}

/// The result of a drain, in one line.
pub(super) fn summary(report: &QueueReport) -> String {
    let words = [
        "landed", "parked", "no-change", "not-chosen", "red", "red-before", "broken", "blocked", "conflict",
        "escalated", "withdrawn", "lost", "reverted", RED_EARLIER, "waiting",
    ];
    let mut parts = Vec::new();
    for wanted in words {
        let tasks: Vec<String> = report
            .outcomes
            .iter()
            .filter(|(ticket, outcome)| kind(ticket, outcome) == wanted)
            .map(|(ticket, _)| ticket.task.to_string())
            .collect();
        if !tasks.is_empty() {
            let wanted = match wanted {
                "escalated" => "in conflict".to_owned(),
                "red" => "failed a gate".to_owned(),
                RED_EARLIER => "failed a gate earlier".to_owned(),
                "red-before" => "waiting for a gate that fails on the target too".to_owned(),
                "no-change" => "unchanged".to_owned(),
                "broken" => "waiting for a gate that could not run".to_owned(),
                other => other.replace('-', " "),
            };
            parts.push(format!("{} {wanted} ({})", tasks.len(), tasks.join(", ")));
        }
    }
    if parts.is_empty() {
        return "nothing to land".into();
    }
    let runs = match report.gate_runs {
        0 => String::new(),
        1 => "; 1 gate run".into(),
        runs => format!("; {runs} gate runs"),
    };
    format!("{}{runs}", parts.join(", "))
}
