//! What a person reads about a ticket: why it has not landed, and the command that helps.

use super::{Failing, HoldReason, ParkingObstacle, Ticket, TicketOutcome, TicketState, WithheldReason};
use crate::{git::MergeConflict, name::TaskId};

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
            TicketState::Waiting => self.held.as_ref().map(ToString::to_string),
            TicketState::Parked { .. } => Some(self.reason_parked(None)),
            TicketState::Conflict { conflicts, .. } => Some(describe_conflicts(conflicts)),
            TicketState::Red { gate, log, with, denied, .. } if with.is_empty() => {
                let denied = denied.as_ref().map(|denied| format!("; {denied}")).unwrap_or_default();
                Some(format!("the gate '{gate}' failed (log: {log}){denied}"))
            }
            TicketState::Red { gate, with, .. } => Some(fails_together(gate, with)),
            TicketState::Withheld { why } => match (why, &self.held) {
                (WithheldReason::Incomplete { .. }, Some(held)) if self.forced => {
                    Some(format!("{held}; {why}"))
                }
                _ => Some(why.to_string()),
            },
            TicketState::Lost | TicketState::LostElsewhere { .. } | TicketState::Reverted(_) => {
                self.trouble()
            }
        }
    }
}

/// That a gate fails only if a task is merged together with others.
pub(crate) fn fails_together(gate: &str, with: &[TaskId]) -> String {
    let with: Vec<&str> = with.iter().map(TaskId::as_str).collect();
    format!("it passes the gate '{gate}' by itself, but not together with {}", with.join(", "))
}

/// Why a gate that gave no result holds a ticket.
#[must_use]
pub fn describe_broken(failing: &Failing) -> String {
    HoldReason::no_result(failing).to_string()
}

impl Ticket {
    /// Whether it is held because of `--policy all-or-nothing`. It can land by itself.
    #[must_use]
    pub fn waits_for_all(&self) -> bool {
        self.state == TicketState::Waiting && matches!(self.held, Some(HoldReason::AllOrNothing { .. }))
    }

    /// What to do so that a ticket that is held can land; `None` if it is not held. `run` makes a command of `merge`.
    #[must_use]
    pub fn advice_while_held(&self, run: impl Fn(&str) -> String) -> Option<String> {
        Some(match self.held.as_ref()? {
            HoldReason::TargetMoved { .. } => format!("merge and test it again: {}", run("run")),
            HoldReason::AllOrNothing { .. } => format!(
                "to land all of them or none, run: {}\nor land those that can land: {}",
                run("run --policy all-or-nothing"),
                run("run")
            ),
            held => format!("{}, then run: {}", held.remedy(&self.into), run("run")),
        })
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
