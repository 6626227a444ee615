//! A ticket: one task's branch that wants to land, with everything that is known of its tries.

use serde::{Deserialize, Deserializer, Serialize};

use super::Paid;
use crate::{
    git::MergeConflict,
    name::{BranchName, Oid, SessionId, TaskId},
};

/// A place in the queue. It is written into git as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The branch of the run that it belongs to.
    pub scope: BranchName,
    /// The branch that it lands on.
    pub into: BranchName,
    /// What lands.
    pub source: Oid,
    /// The run's session.
    pub session: Option<SessionId>,
    /// How urgent it is.
    #[serde(default, deserialize_with = "lenient")]
    pub priority: Priority,
    /// When it was queued: seconds since 1970.
    pub added: i64,
    /// When the task was completed.
    pub finished: i64,
    /// The tasks that must have landed before.
    #[serde(default)]
    pub needs: Vec<TaskId>,
    /// The phases whose own tests gate this landing, by their ids. A ticket names them and never a command: anybody who
    /// can write a ref could have written it. The commands are those of the frozen plan.
    #[serde(default)]
    pub phases: Vec<TaskId>,
    /// Whether it is taken although its task is not complete.
    #[serde(default)]
    pub forced: bool,
    /// How it stands.
    pub standing: TicketState,
    /// What each try of an agent to resolve its conflict came to, oldest first.
    #[serde(default)]
    pub tries: Vec<String>,
    /// What came of the last, or of a person's work: a commit that joins the source and a target.
    #[serde(default)]
    pub resolved: Option<Oid>,
    /// Whose work that is.
    #[serde(default)]
    pub resolved_by: Option<ResolvedBy>,
    /// What all tries of agents have spent.
    #[serde(default)]
    pub paid: Paid,
}

impl Ticket {
    /// A ticket for the run's own branch that needs nothing, queued at `now` and completed then.
    #[must_use]
    pub fn new(scope: BranchName, task: TaskId, source: Oid, now: i64) -> Self {
        Self {
            name: task.to_string(),
            task,
            into: scope.clone(),
            scope,
            source,
            session: None,
            priority: Priority::USUAL,
            added: now,
            finished: now,
            needs: Vec::new(),
            phases: Vec::new(),
            forced: false,
            standing: TicketState::Waiting,
            tries: Vec::new(),
            resolved: None,
            resolved_by: None,
            paid: Paid::default(),
        }
    }

    /// Who resolved its conflict, if it had one and that is over.
    #[must_use]
    pub fn resolver(&self) -> Option<&ResolvedBy> {
        self.resolved.and(self.resolved_by.as_ref())
    }

    /// Whose work it is once `by` has resolved a conflict on top of that. What an agent did stays unreviewed, whoever
    /// comes after it.
    #[must_use]
    pub fn resolved_too(&self, by: ResolvedBy) -> ResolvedBy {
        match (self.resolver(), by) {
            (Some(ResolvedBy::Agent(names)), ResolvedBy::Agent(name))
                if names.split(", ").all(|known| known != name) =>
            {
                ResolvedBy::Agent(format!("{names}, {name}"))
            }
            (Some(agents @ ResolvedBy::Agent(_)), _) => agents.clone(),
            (_, by) => by,
        }
    }

    /// Who resolved it, in words.
    #[must_use]
    pub fn resolution(&self) -> Option<String> {
        self.resolver().map(|by| format!("its conflict was resolved by {}", by.words()))
    }
}

/// Who resolved a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolvedBy {
    /// An agent of this name, or several one after the other. A reviewer has approved what it did.
    Agent(String),
    /// Somebody who asked for it.
    Person,
}

impl ResolvedBy {
    /// As it stands in the trailer of a landing.
    #[must_use]
    pub fn trailer(&self) -> String {
        match self {
            Self::Agent(name) => format!("agent {name}"),
            Self::Person => "person".into(),
        }
    }

    /// In words for people.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Agent(name) => format!("the agent {name}"),
            Self::Person => "a person".into(),
        }
    }
}

/// How a ticket stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum TicketState {
    /// It will be tried.
    Waiting,
    /// It has landed, but the checkout of its target is not there yet.
    Parked {
        /// Its merge commit.
        commit: Oid,
    },
    /// It cannot be merged.
    Conflict {
        /// The target that it was tried on.
        onto: Oid,
        /// What stands in the way.
        conflicts: Vec<MergeConflict>,
        /// Whether a person was asked for.
        escalated: bool,
    },
    /// A gate does not let it through.
    Red {
        /// The gate.
        gate: String,
        /// The commit that was tested.
        commit: Oid,
        /// Where all of its output is.
        log: String,
        /// The end of it.
        tail: String,
        /// The tasks that it does not go together with, although it is good without them.
        with: Vec<TaskId>,
    },
    /// It may not land as things are.
    Withheld {
        /// Why, in words.
        why: String,
    },
}

impl TicketState {
    /// The word for it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Parked { .. } => "parked",
            Self::Conflict { escalated: true, .. } => "escalated",
            Self::Conflict { .. } => "conflict",
            Self::Red { .. } => "red",
            Self::Withheld { .. } => "withheld",
        }
    }
}

/// How urgent a ticket is: 0 is the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Priority(pub u8);

impl Priority {
    /// What nobody asked for more of.
    pub const USUAL: Self = Self(2);
    /// The least.
    pub const LOWEST: Self = Self(9);

    /// What is left of it after a wait: each [`STEP`](Self::STEP) makes a ticket one more urgent, so that the oldest is
    /// served within a bound, whatever comes after it.
    #[must_use]
    pub fn after(self, seconds: i64) -> Self {
        let steps = u8::try_from((seconds / Self::STEP).max(0)).unwrap_or(u8::MAX);
        Self(self.0.saturating_sub(steps))
    }

    /// Seconds.
    pub const STEP: i64 = 600;
}

impl Default for Priority {
    fn default() -> Self {
        Self::LOWEST
    }
}

/// What is no priority is the lowest, never the highest.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Priority, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok()).map(Priority);
    Ok(number.map_or(Priority::LOWEST, |priority| priority.min(Priority::LOWEST)))
}
