//! Why a ticket does not land although it has no conflict and failed no gate. The reasons are stored with the ticket.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::Failing;
use crate::name::{BranchName, TaskId};

/// Why a gate gave no result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateFault {
    /// Its command was not found.
    Missing,
    /// It was ended because it took too long.
    TooSlow,
    /// Anything else.
    #[default]
    Other,
}

/// Why a ticket waits that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldReason {
    /// A gate fails on the target too.
    FailsOnTarget {
        /// The name of the gate.
        gate: String,
    },
    /// A gate gave no result.
    NoGateResult {
        /// The name of the gate.
        gate: String,
        /// The kind of the reason.
        fault: GateFault,
        /// The reason, in one line.
        why: String,
    },
    /// Its landing was parked, and its target has moved since.
    TargetMoved {
        /// The target.
        into: BranchName,
    },
    /// Others cannot land, and the policy of the landing was all or nothing.
    AllOrNothing {
        /// Why the others cannot.
        why: String,
    },
    /// Any other reason, in words.
    Other(String),
}

impl HoldReason {
    /// The reason for a gate that gave no result.
    pub(super) fn no_result(failing: &Failing) -> Self {
        Self::NoGateResult { gate: failing.gate.name.clone(), fault: failing.fault, why: failing.why.clone() }
    }

    /// What to do before it is tried again. `into` is the target.
    pub(super) fn remedy(&self, into: &BranchName) -> String {
        match self {
            Self::FailsOnTarget { .. } => format!("make the gate pass on {into}"),
            Self::NoGateResult { fault: GateFault::Missing, .. } => {
                "install the program, or correct the command of the gate".into()
            }
            Self::NoGateResult { fault: GateFault::TooSlow, .. } => {
                "make the gate faster, or raise its limit (merge.gates.*.timeout)".into()
            }
            Self::NoGateResult { .. } => "correct the gate".into(),
            Self::TargetMoved { .. } | Self::AllOrNothing { .. } | Self::Other(_) => {
                "remove the cause".into()
            }
        }
    }
}

impl From<String> for HoldReason {
    fn from(words: String) -> Self {
        Self::Other(words)
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailsOnTarget { gate } => write!(f, "the gate '{gate}' fails on the target too"),
            Self::NoGateResult { gate, fault: GateFault::TooSlow, why } => {
                write!(f, "the gate '{gate}' took too long: {why}")
            }
            Self::NoGateResult { gate, why, .. } => write!(f, "the gate '{gate}' could not run: {why}"),
            Self::TargetMoved { into } => write!(f, "'{into}' has moved since its landing was parked"),
            Self::AllOrNothing { why } => write!(f, "it waits for {}", describe_all_or_nothing(why)),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// What a ticket waits for because of the policy of a landing.
pub(super) fn describe_all_or_nothing(why: &str) -> String {
    format!("all others, because of --policy all-or-nothing, and {why}")
}

/// Why a ticket must not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithheldReason {
    /// Its branch was rewritten. It does not land even by force.
    Rewritten,
    /// The target was reset to before the run that completed it.
    RunIsGone {
        /// The target.
        into: BranchName,
    },
    /// The run that completed it was never in the target here.
    ForeignRun {
        /// The target.
        into: BranchName,
    },
    /// An earlier run of the target completed it.
    EarlierRun {
        /// The target.
        into: BranchName,
    },
    /// Its task is not complete.
    Incomplete {
        /// The name of the task's state.
        state: String,
        /// The task, if it was queued by force.
        forced: Option<TaskId>,
    },
    /// Its branch has commits that this run did not make.
    Unrecorded,
    /// It names a phase without tests.
    UnknownTests {
        /// The phase.
        phase: TaskId,
    },
    /// It completes a phase whose tests have not been approved.
    UnapprovedTests {
        /// The phase.
        phase: TaskId,
    },
    /// It was queued for another branch than that of its run.
    OtherTarget {
        /// The branch.
        into: BranchName,
    },
    /// Any other reason, in words.
    Other(String),
}

impl WithheldReason {
    /// Whether branch, task and run tell it, as in [`super::Ticket::find_withheld`]. Then it is looked for whenever a ticket is
    /// shown; any other reason stays until the ticket is tried.
    pub(super) fn is_seen_without_landing(&self) -> bool {
        match self {
            Self::Rewritten
            | Self::RunIsGone { .. }
            | Self::ForeignRun { .. }
            | Self::EarlierRun { .. }
            | Self::Incomplete { .. } => true,
            Self::Unrecorded
            | Self::UnknownTests { .. }
            | Self::UnapprovedTests { .. }
            | Self::OtherTarget { .. }
            | Self::Other(_) => false,
        }
    }
}

impl From<String> for WithheldReason {
    fn from(words: String) -> Self {
        Self::Other(words)
    }
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rewritten => f.write_str("its branch was rewritten"),
            Self::RunIsGone { into } => write!(f, "the run that completed it is no longer in '{into}'"),
            Self::ForeignRun { into } => {
                write!(f, "the commit that its run started from is not in '{into}'")
            }
            Self::EarlierRun { into } => write!(f, "it was completed in an earlier run of '{into}'"),
            Self::Incomplete { state, forced: None } => write!(f, "it is {state}, not complete"),
            Self::Incomplete { state, forced: Some(task) } => write!(
                f,
                "it is {state}, not complete; to land it anyway, run: git arborist merge {task} --force"
            ),
            Self::Unrecorded => {
                f.write_str("its branch has commits that the records of the session do not name")
            }
            Self::UnknownTests { phase } => {
                write!(f, "it names the tests of '{phase}', and the frozen plan has no such tests")
            }
            Self::UnapprovedTests { phase } => {
                write!(f, "it completes '{phase}', and the tests of that phase have not been approved")
            }
            Self::OtherTarget { into } => {
                write!(f, "it was queued for '{into}', which is not the branch of its run")
            }
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// Reads a stored reason. An older version, or another program, may have written anything: what is not known becomes
/// words, for which no special advice is given.
pub(super) fn read_reason<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + From<String>,
{
    Ok(known_or_words(Value::deserialize(deserializer)?))
}

/// Like [`read_reason`], if there is one.
pub(super) fn read_optional_reason<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + From<String>,
{
    Ok(Option::<Value>::deserialize(deserializer)?.map(known_or_words))
}

fn known_or_words<T: DeserializeOwned + From<String>>(value: Value) -> T {
    T::deserialize(&value).unwrap_or_else(|_| match value {
        Value::String(words) => words.into(),
        other => other.to_string().into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::queue::{Ticket, TicketState};

    fn ticket() -> Ticket {
        let source = "1111111111111111111111111111111111111111".parse().unwrap();
        Ticket::new("main".parse().unwrap(), "T1".parse().unwrap(), source, 1)
    }

    fn read_held(held: &Value) -> Option<HoldReason> {
        let mut record = serde_json::to_value(ticket()).unwrap();
        record["held"] = held.clone();
        serde_json::from_value::<Ticket>(record).unwrap().held
    }

    fn read_withheld(why: &Value) -> TicketState {
        serde_json::from_value(json!({ "is": "withheld", "why": why })).unwrap()
    }

    #[test]
    fn reasons_are_read_as_they_were_stored() {
        let into: BranchName = "main".parse().unwrap();
        let slow = HoldReason::NoGateResult {
            gate: "check".into(),
            fault: GateFault::TooSlow,
            why: "'sleep 9' timed out after 1 s".into(),
        };
        for held in [slow, HoldReason::TargetMoved { into: into.clone() }, HoldReason::Other("why".into())] {
            assert_eq!(read_held(&serde_json::to_value(&held).unwrap()), Some(held));
        }
        for why in [WithheldReason::Rewritten, WithheldReason::EarlierRun { into }] {
            let state = TicketState::Withheld { why };
            let stored = serde_json::to_value(&state).unwrap();
            assert_eq!(serde_json::from_value::<TicketState>(stored).unwrap(), state);
        }
    }

    #[test]
    fn a_reason_that_an_older_or_newer_version_stored_becomes_words() {
        let words = "the gate 'check' fails on the target too";
        assert_eq!(read_held(&json!(words)), Some(HoldReason::Other(words.into())));
        assert_eq!(read_held(&Value::Null), None);
        let newer = json!({ "newer-reason": { "gate": "check" } });
        assert_eq!(read_held(&newer), Some(HoldReason::Other(newer.to_string())));
        let why = WithheldReason::Other("it is pending, not complete".into());
        assert_eq!(read_withheld(&json!("it is pending, not complete")), TicketState::Withheld { why });
        let invalid = json!({ "run-is-gone": { "into": "not..valid" } });
        let why = WithheldReason::Other(invalid.to_string());
        assert_eq!(read_withheld(&invalid), TicketState::Withheld { why });
    }
}
