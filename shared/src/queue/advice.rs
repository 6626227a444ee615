//! What a person reads about a ticket: why it has not landed, and the command that helps.

use super::{Failing, ParkingObstacle, Ticket, TicketOutcome, TicketState, ticket::is_about_incomplete};
use crate::{
    git::MergeConflict,
    name::{BranchName, TaskId},
};

/// The command that helps a task to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandingCommand {
    /// Queues it and lands it.
    Land,
    /// Lands everything that is queued.
    Run,
    /// Lets a person resolve its conflict.
    Resolve,
    /// Shows what happened, and all commands that can help.
    Status,
}

impl LandingCommand {
    /// The command for a task. `scope` is the option that selects its run, with a space before it, or empty.
    #[must_use]
    pub fn text(self, task: &TaskId, scope: &str) -> String {
        match self {
            Self::Land => format!("git arborist merge {task}{scope}"),
            Self::Run => format!("git arborist merge run{scope}"),
            Self::Resolve => format!("git arborist merge resolve {task}{scope}"),
            Self::Status => format!("git arborist merge status {task}{scope}"),
        }
    }

    /// The hint with the command. `scope` is the same as for [`Self::text`].
    #[must_use]
    pub fn advice(self, task: &TaskId, scope: &str) -> String {
        let what = match self {
            Self::Resolve => "resolve its conflict with",
            Self::Status => "see what can be done with",
            Self::Land | Self::Run => "land it with",
        };
        format!("{what}: {}", self.text(task, scope))
    }
}

impl TicketState {
    /// Its name for people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Red { .. } => "gate failed",
            state => state.as_str(),
        }
    }

    /// The command that helps a ticket in this state to land.
    #[must_use]
    pub fn command(&self) -> LandingCommand {
        match self {
            Self::Waiting => LandingCommand::Run,
            Self::Conflict { .. } => LandingCommand::Resolve,
            Self::Parked { .. }
            | Self::Red { .. }
            | Self::Withheld { .. }
            | Self::Lost
            | Self::LostElsewhere { .. }
            | Self::Reverted(_) => LandingCommand::Status,
        }
    }
}

impl TicketOutcome {
    /// The command that helps after this outcome.
    #[must_use]
    pub fn command(&self) -> LandingCommand {
        match self {
            Self::Conflict { .. } => LandingCommand::Resolve,
            _ => LandingCommand::Status,
        }
    }
}

impl Ticket {
    /// Why it has not landed, if it does not only wait for its turn.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match &self.state {
            TicketState::Waiting => self.held.clone(),
            TicketState::Parked { .. } => Some(self.reason_parked(None)),
            TicketState::Conflict { conflicts, .. } => Some(describe_conflicts(conflicts)),
            TicketState::Red { gate, log, with, denied, .. } if with.is_empty() => {
                let denied = denied.as_ref().map(|denied| format!("; {denied}")).unwrap_or_default();
                Some(format!("the gate '{gate}' failed (log: {log}){denied}"))
            }
            TicketState::Red { gate, with, .. } => {
                let with: Vec<String> = with.iter().map(ToString::to_string).collect();
                Some(format!(
                    "it passes the gate '{gate}' by itself, but not together with {}",
                    with.join(", ")
                ))
            }
            TicketState::Withheld { why } => match &self.held {
                Some(held) if self.forced && is_about_incomplete(why) => Some(format!("{held}; {why}")),
                _ => Some(why.clone()),
            },
            TicketState::Lost | TicketState::LostElsewhere { .. } | TicketState::Reverted(_) => {
                self.trouble()
            }
        }
    }
}

/// How the reason ends of a ticket that is held because its target fails a gate.
pub(in crate::queue) const FAILS_ON_TARGET: &str = "' fails on the target too";
/// What follows the name of a gate in the reason of a ticket that is held because the gate could not run.
const COULD_NOT_RUN: &str = "' could not run: ";
/// The same for a gate that was ended because it took too long.
const TOO_SLOW: &str = "' took too long: ";

/// How the reason ends of a ticket whose parked landing is no longer on top of its target.
const MOVED: &str = "' has moved since its landing was parked";

/// Why a parked landing cannot be brought to its target any more.
#[must_use]
pub(super) fn describe_moved(into: &BranchName) -> String {
    format!("'{into}{MOVED}")
}

/// How the reason begins of a ticket that is held because of the policy of a landing.
pub(super) const ALL_OR_NOTHING: &str = "all others, because of --policy all-or-nothing, and ";

/// Why a gate that gave no result holds a ticket.
#[must_use]
pub fn describe_broken(failing: &Failing) -> String {
    let is_late = failing.why.starts_with(&format!("'{}' timed out after ", failing.gate.command));
    let reason = if is_late { TOO_SLOW } else { COULD_NOT_RUN };
    format!("the gate '{}{reason}{}", failing.gate.name, failing.why)
}

impl Ticket {
    /// Whether it is held because of `--policy all-or-nothing`. It can land by itself.
    #[must_use]
    pub fn waits_for_all(&self) -> bool {
        self.state == TicketState::Waiting
            && self.held.as_ref().is_some_and(|why| why.contains(ALL_OR_NOTHING))
    }

    /// What to do so that a ticket that is held can land. `run` makes a command of `merge`.
    #[must_use]
    pub fn advice_while_held(&self, run: impl Fn(&str) -> String) -> String {
        let why = self.held.as_deref().unwrap_or_default();
        if why.ends_with(MOVED) {
            return format!("merge and test it again: {}", run("run"));
        }
        if self.waits_for_all() {
            let all = run("run --policy all-or-nothing");
            return format!(
                "to land all of them or none, run: {all}\nor land those that can land: {}",
                run("run")
            );
        }
        format!("{}, then run: {}", self.remedy(), run("run"))
    }

    /// What to do before it is tried again.
    fn remedy(&self) -> String {
        let why = self.held.as_deref().unwrap_or_default();
        if why.ends_with(FAILS_ON_TARGET) {
            format!("make the gate pass on {}", self.into)
        } else if why.contains(COULD_NOT_RUN) && why.contains("command not found") {
            "install the program, or correct the command of the gate".into()
        } else if why.contains(TOO_SLOW) {
            "make the gate faster, or raise its limit (merge.gates.*.timeout)".into()
        } else if why.contains(COULD_NOT_RUN) {
            "correct the gate".into()
        } else {
            "remove the cause".into()
        }
    }

    /// Why it waits, as a clause. `outcome` is what the queue reports that it waits for.
    #[must_use]
    pub fn reason_to_wait(&self, outcome: &str) -> String {
        let is_queued = self.state == TicketState::Waiting;
        self.reason().filter(|_| !is_queued).unwrap_or_else(|| format!("it waits for {outcome}"))
    }

    /// Why its landing is parked.
    #[must_use]
    pub fn reason_parked(&self, obstacle: Option<&ParkingObstacle>) -> String {
        let resolved = self.resolution().map(|by| format!("; {by}")).unwrap_or_default();
        match obstacle {
            Some(obstacle) => format!("in your checkout of {}, {obstacle}{resolved}", self.into),
            None => format!("in your checkout of {}, changed files are in the way{resolved}", self.into),
        }
    }
}

/// What happened in each conflict, and to which files.
#[must_use]
pub fn describe_conflicts(conflicts: &[MergeConflict]) -> String {
    let one = |conflict: &MergeConflict| format!("{} {}", conflict.kind.words(), conflict.paths.join(", "));
    conflicts.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The line for a gate that starts. A gate that failed runs a second time on the same commit before a task is blamed.
#[must_use]
pub fn describe_gating(gate: &str, tested: &str, is_repeated: bool) -> String {
    let again = if is_repeated { " again, to be sure" } else { "" };
    format!("testing {tested} with gate '{gate}'{again}")
}
