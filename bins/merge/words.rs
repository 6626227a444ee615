//! The texts for outcomes of tickets.

use std::collections::{BTreeMap, HashSet};

use arborist_core::{
    git::MergeConflict,
    message::{plain_line, plain_text},
    name::{Oid, TaskId},
    queue::{
        ForeignCommits, QueueEvent, QueueReport, Ticket, TicketOutcome, TicketState, describe_broken,
        describe_conflicts,
    },
};

use super::open::OpenQueue;
use crate::ui::{Tone, Ui};

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
    let is_for_person = matches!(outcome, TicketOutcome::Conflict { escalated: true, .. })
        && ticket.failed_resolution().is_none();
    let note = if is_for_person { "; you must resolve it" } else { "" };
    format!("{}{note}", what_happened(ticket, outcome))
}

/// The line without the note for the person who has to resolve it.
fn what_happened(ticket: &Ticket, outcome: &TicketOutcome) -> String {
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
        TicketOutcome::Conflict { conflicts, .. } => {
            format!("{task} is in conflict: {}", describe_conflicts(conflicts))
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
    plain_line(&text)
}

/// Prints the events of drains to standard error. An outcome is not repeated: a landing that is tried again may end in
/// the same way.
pub(super) struct OutcomeReporter<'a> {
    site: &'a OpenQueue,
    is_quiet: bool,
    told: HashSet<String>,
    settled: HashSet<TaskId>,
}

impl<'a> OutcomeReporter<'a> {
    /// `is_quiet` says that nothing is printed.
    pub(super) fn new(site: &'a OpenQueue, is_quiet: bool) -> Self {
        Self { site, is_quiet, told: HashSet::new(), settled: HashSet::new() }
    }

    pub(super) fn report(&mut self, event: &QueueEvent, ui: &mut Ui) {
        let is_new = match event {
            QueueEvent::Settled { ticket, outcome } => {
                self.settled.insert(ticket.task.clone());
                self.told.insert(what_happened(ticket, outcome))
            }
            _ => true,
        };
        if !self.is_quiet {
            print_event(ui, self.site, event, is_new);
        }
    }

    /// Whether a drain has reported an outcome of this task.
    pub(super) fn has_settled(&self, task: &TaskId) -> bool {
        self.settled.contains(task)
    }
}

/// Prints a line to standard error. An outcome that is not new is not repeated.
fn print_event(ui: &mut Ui, site: &OpenQueue, event: &QueueEvent, is_new: bool) {
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
        QueueEvent::Progress { words, .. }
        | QueueEvent::Note { words, .. }
        | QueueEvent::Foreign(ForeignCommits { words, .. }) => plain_text(words),
    };
    ui.err(&format!("{line}\n"));
}

/// The conflicts, and the commands with which to continue by hand.
fn what_to_do(task: &TaskId, conflicts: &[MergeConflict], site: &OpenQueue) -> String {
    let full_text = conflicts.iter().map(|conflict| format!("  {}", plain_line(&conflict.message)));
    let commands = [
        format!("  inspect it:    {}", site.command(&format!("status {task}"))),
        format!("  resolve it:    {}", site.command(&format!("resolve {task}"))),
        format!("  or drop it:    {}", site.command(&format!("drop {task}"))),
    ];
    full_text.chain(commands).collect::<Vec<_>>().join("\n")
}

/// The group of the summary that an outcome belongs to: its place in the summary, and its label.
fn group_of(ticket: &Ticket, outcome: &TicketOutcome) -> (u8, &'static str) {
    match outcome {
        TicketOutcome::Landed { .. } => (0, "landed"),
        TicketOutcome::Parked { .. } => (1, "parked"),
        TicketOutcome::NoChange => (2, "unchanged"),
        TicketOutcome::NotChosen { .. } => (3, "not chosen"),
        TicketOutcome::Conflict { escalated: true, .. } if ticket.failed_resolution().is_some() => {
            (4, "failed a gate")
        }
        TicketOutcome::Red { .. } => (4, "failed a gate"),
        TicketOutcome::FailsOnTarget { .. } => (5, "waiting for a gate that fails on the target too"),
        TicketOutcome::Broken { .. } => (6, "waiting for a gate that could not run"),
        TicketOutcome::Blocked { .. } => (7, "blocked"),
        TicketOutcome::Conflict { escalated: false, .. } => (8, "conflict"),
        TicketOutcome::Conflict { .. } => (9, "in conflict"),
        TicketOutcome::Withdrawn => (10, "withdrawn"),
        TicketOutcome::Lost => (11, "lost"),
        TicketOutcome::Reverted(_) => (12, "reverted"),
        // It was not tried in this drain.
        TicketOutcome::Waiting { .. } if matches!(ticket.state, TicketState::Red { .. }) => {
            (13, "failed a gate earlier")
        }
        TicketOutcome::Waiting { .. } => (14, "waiting"),
    }
}

/// The result of a drain, in one line.
pub(super) fn summary(report: &QueueReport) -> String {
    let mut groups: BTreeMap<(u8, &str), Vec<&str>> = BTreeMap::new();
    for (ticket, outcome) in &report.outcomes {
        groups.entry(group_of(ticket, outcome)).or_default().push(ticket.task.as_str());
    }
    if groups.is_empty() {
        return "nothing to land".into();
    }
    let parts: Vec<String> = groups
        .iter()
        .map(|((_, label), tasks)| format!("{} {label} ({})", tasks.len(), tasks.join(", ")))
        .collect();
    let runs = match report.gate_runs {
        0 => String::new(),
        1 => "; 1 gate run".into(),
        runs => format!("; {runs} gate runs"),
    };
    format!("{}{runs}", parts.join(", "))
}
