//! The queue as JSON.

use arborist_core::{
    git::{MergeConflict, Version},
    queue::{LogEntry, QueueClaim, QueueReport, ResolvedBy, Ticket, TicketOutcome, TicketState},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    open::OpenQueue,
    show::{Listed, load},
    words,
};
use crate::{
    clock,
    document::{print, rfc3339},
    entry::Outcome,
    ui::Ui,
};

/// The merge queue.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueueDocument {
    /// The branch of the run.
    pub scope: String,
    /// The entries in the order in which they will be tried; those set aside come last.
    pub tickets: Vec<TicketDocument>,
    /// The processes that are landing now, one for each target.
    pub drains: Vec<DrainDocument>,
}

/// A process that lands queued tasks on a target.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DrainDocument {
    /// The branch that is landed on.
    pub into: String,
    /// The machine.
    pub host: String,
    /// The process on it.
    pub process: u32,
    /// Since when, in RFC 3339.
    pub since: String,
    /// When its claim expires unless it is renewed, in RFC 3339.
    pub until: String,
}

/// One queued task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TicketDocument {
    /// The task.
    pub task: String,
    /// Its name.
    pub name: String,
    /// The branch that it lands on.
    pub into: String,
    /// The commit that lands.
    pub source: String,
    /// 0 is the most urgent.
    pub priority: u8,
    /// When it was queued, in RFC 3339.
    pub added: String,
    /// How many seconds it has waited.
    pub waited: i64,
    /// `waiting`, `parked`, `conflict`, `escalated`, `red` (a gate failed), `withheld`, `lost` or `reverted`.
    pub state: String,
    /// Why it waits, in words; null if it only waits for its turn.
    pub reason: Option<String>,
    /// The tasks that must have landed before.
    pub needs: Vec<String>,
    /// The merge commit that is parked, or the commit on which a gate failed.
    pub commit: Option<String>,
    /// The gate that failed, and the end of its output.
    pub gate: Option<GateDocument>,
    /// The conflicts.
    pub conflicts: Vec<ConflictDocument>,
    /// The result of each try to resolve them.
    pub tries: Vec<String>,
    /// Who resolved it: `person`, or `agent` and its name; null if it is not resolved.
    pub resolved_by: Option<String>,
}

/// A gate that failed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GateDocument {
    /// Its name.
    pub name: String,
    /// Where all of its output is.
    pub log: String,
    /// The end of it.
    pub tail: String,
    /// The tasks together with which it fails, although it passes without them.
    pub with: Vec<String>,
}

/// One conflict.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConflictDocument {
    /// `content`, `add/add`, `modify/delete`, `rename/rename`, `rename/delete`, `file/directory`, `mode`, `binary`, `submodule`, `merge driver` or `unknown`.
    pub kind: String,
    /// The files.
    pub paths: Vec<String>,
    /// git's own sentence.
    pub message: String,
    /// The version of the merge base.
    pub base: Option<Version>,
    /// On the target.
    pub ours: Option<Version>,
    /// On the task's branch.
    pub theirs: Option<Version>,
}

/// The result of a landing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunDocument {
    /// The branch of the run.
    pub scope: String,
    /// The result for each queued task, in order.
    pub outcomes: Vec<OutcomeDocument>,
    /// How many gates were run.
    pub gate_runs: usize,
    /// Gates that failed and then passed on the same commit.
    pub flaky: Vec<String>,
    /// The command that updates the checkout; null if nothing is parked.
    pub bring_up: Option<String>,
}

/// The result for one task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutcomeDocument {
    /// The task.
    pub task: String,
    /// `landed`, `parked`, `no-change`, `not-chosen`, `conflict`, `escalated`, `withdrawn`, `red`, `red-before`, `broken`, `blocked`, `lost`, `reverted` or `waiting`.
    pub outcome: String,
    /// Its merge commit, or the commit on which a gate failed.
    pub commit: Option<String>,
    /// In one line.
    pub words: String,
}

/// The log of the queue.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MergeLogDocument {
    /// Newest first.
    pub entries: Vec<LogEntryDocument>,
}

/// One line of the log.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LogEntryDocument {
    /// When, in RFC 3339.
    pub time: String,
    /// The task.
    pub task: String,
    /// `landed`, `no-change`, `not-chosen`, `red` (a gate failed), `conflict`, `escalated`, `withdrawn` or `dropped`.
    pub outcome: String,
    /// The commit that was to land.
    pub source: String,
    /// Its merge commit, or the commit that was tested.
    pub commit: Option<String>,
    /// Further remarks.
    pub words: String,
}

/// Prints all that is queued for a run.
pub(super) fn print_queue(site: &OpenQueue, ui: &mut Ui) -> Outcome {
    let listed = load(site)?;
    print(ui, &QueueDocument::new(site, &listed, &site.claims()?))
}

impl QueueDocument {
    pub(super) fn new(site: &OpenQueue, listed: &[Listed], claims: &[QueueClaim]) -> Self {
        Self {
            scope: site.scope.branch.to_string(),
            tickets: listed.iter().map(TicketDocument::new).collect(),
            drains: claims.iter().map(DrainDocument::new).collect(),
        }
    }
}

impl DrainDocument {
    fn new(claim: &QueueClaim) -> Self {
        Self {
            into: claim.into.to_string(),
            host: claim.holder.host.clone(),
            process: claim.holder.pid,
            since: rfc3339(claim.since),
            until: rfc3339(claim.until),
        }
    }
}

impl TicketDocument {
    fn new(listed: &Listed) -> Self {
        let ticket = &listed.ticket;
        let (commit, gate, conflicts) = details(&ticket.state);
        Self {
            task: ticket.task.to_string(),
            name: ticket.name.clone(),
            into: ticket.into.to_string(),
            source: ticket.source.to_string(),
            priority: ticket.priority.0,
            added: rfc3339(ticket.added),
            waited: clock::now() - ticket.added,
            state: ticket.state.as_str().to_owned(),
            reason: listed.reason.clone(),
            needs: ticket.needs.iter().map(ToString::to_string).collect(),
            commit,
            gate,
            conflicts,
            tries: ticket.tries.clone(),
            resolved_by: ticket.resolver().map(ResolvedBy::trailer),
        }
    }
}

fn details(state: &TicketState) -> (Option<String>, Option<GateDocument>, Vec<ConflictDocument>) {
    match state {
        TicketState::Parked { commit } => (Some(commit.to_string()), None, Vec::new()),
        TicketState::Conflict { conflicts, .. } => {
            (None, None, conflicts.iter().map(ConflictDocument::new).collect())
        }
        TicketState::Red { gate, commit, log, tail, with, .. } => {
            let with = with.iter().map(ToString::to_string).collect();
            let gate = GateDocument { name: gate.clone(), log: log.clone(), tail: tail.clone(), with };
            (Some(commit.to_string()), Some(gate), Vec::new())
        }
        TicketState::Waiting
        | TicketState::Withheld { .. }
        | TicketState::Lost
        | TicketState::LostElsewhere { .. }
        | TicketState::Reverted(_) => (None, None, Vec::new()),
    }
}

impl ConflictDocument {
    fn new(conflict: &MergeConflict) -> Self {
        Self {
            kind: conflict.kind.as_str().to_owned(),
            paths: conflict.paths.clone(),
            message: conflict.message.clone(),
            base: conflict.base.clone(),
            ours: conflict.ours.clone(),
            theirs: conflict.theirs.clone(),
        }
    }
}

impl RunDocument {
    pub(super) fn new(site: &OpenQueue, report: &QueueReport) -> Self {
        let outcome = |(ticket, became): &(Ticket, TicketOutcome)| OutcomeDocument {
            task: ticket.task.to_string(),
            outcome: words::word(became).to_owned(),
            commit: words::commit(became).map(|commit| commit.to_string()),
            words: words::sentence(ticket, became),
        };
        Self {
            scope: site.scope.branch.to_string(),
            outcomes: report.outcomes.iter().map(outcome).collect(),
            gate_runs: report.gate_runs,
            flaky: report.flaky.clone(),
            bring_up: report.parking.as_ref().map(|parking| parking.way.command()),
        }
    }
}

impl From<&LogEntry> for LogEntryDocument {
    fn from(entry: &LogEntry) -> Self {
        Self {
            time: rfc3339(entry.time),
            task: entry.task.to_string(),
            outcome: entry.outcome.as_str().to_owned(),
            source: entry.source.to_string(),
            commit: entry.commit.map(|commit| commit.to_string()),
            words: entry.words.clone(),
        }
    }
}
