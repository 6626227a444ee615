//! What `--json` prints while a run goes on: one of these on each line.

use std::collections::BTreeMap;

use arborist_core::{progress::RunTotals, run::RunAccount};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{statuses, steps};

/// Something that has happened in a run. Lines of several tasks may stand in any order; each names its task. The last
/// line of a run that began is `run-ended`; errors are on standard error and in the exit code.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub enum RunEvent {
    /// The run begins, or goes on.
    RunBegins {
        /// When, in RFC 3339.
        time: String,
        /// The branch of the run.
        branch: String,
        /// The session.
        session: String,
        /// The commit at which it begins.
        head: String,
        /// How many tasks there are.
        total: usize,
        /// How many of them are done already.
        done: usize,
        /// How many of them have failed already.
        failed: usize,
        /// How many attempts each has.
        max_attempts: u32,
        /// What the run has cost before.
        spent: RunTotals,
    },
    /// A step of a task begins.
    StepBegins {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// Its name.
        name: String,
        /// The step.
        #[schemars(schema_with = "steps")]
        step: String,
        /// The attempt, from 0.
        attempt: u32,
        /// Who does it: a runner, or a command.
        by: String,
    },
    /// The agent said or did something.
    Said {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// Its words, without control characters; at most 500 characters.
        #[schemars(length(max = 500))]
        words: String,
    },
    /// The agent has ended a turn.
    TurnEnded {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
    },
    /// What the agent changed in a turn was committed.
    TurnCommitted {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The repository of the workspace, if it is not the one that has the plan.
        repo: Option<String>,
        /// The number of the turn in its session.
        turn: u64,
        /// The commit's full id.
        commit: String,
        /// What it says in its first line, for people.
        words: String,
    },
    /// How far the session has come stands in its records: a snapshot.
    Checkpoint {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The full id of the record.
        record: String,
        /// The newest commit of the work.
        commit: String,
        /// The head of each repository of the workspace. Best effort: they are asked one after the other, and one that
        /// could not be asked is left out.
        snapshot: BTreeMap<String, String>,
    },
    /// A repository of the workspace was not there, and was cloned.
    Cloned {
        /// When, in RFC 3339.
        time: String,
        /// Its name.
        repo: String,
        /// Where from, without secrets.
        remote: String,
    },
    /// A repository's remote was asked what it has.
    Fetched {
        /// When, in RFC 3339.
        time: String,
        /// Its name.
        repo: String,
        /// The remote, without secrets.
        remote: String,
    },
    /// A session has a branch in a repository.
    BranchCreated {
        /// When, in RFC 3339.
        time: String,
        /// The repository.
        repo: String,
        /// The branch.
        branch: String,
        /// The commit that it begins at.
        base: String,
    },
    /// The remote of a repository has what it had not before.
    Pushed {
        /// When, in RFC 3339.
        time: String,
        /// The repository.
        repo: String,
        /// The remote, without secrets.
        remote: String,
        /// The full names of the refs.
        refs: Vec<String>,
    },
    /// A push failed. It is tried again while the run goes on, and costs it nothing.
    PushFailed {
        /// When, in RFC 3339.
        time: String,
        /// The repository.
        repo: String,
        /// Why, in one line.
        why: String,
    },
    /// A commit was made.
    Recorded {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The status in its subject.
        #[schemars(schema_with = "statuses")]
        status: String,
        /// Its full id.
        commit: String,
        /// Why the step failed, in one line; null if it did not.
        why: Option<String>,
        /// What the step cost; null where the agent did not tell.
        spent: Option<RunTotals>,
    },
    /// A task has a worktree of its own, or a session has one in a repository.
    WorktreeCreated {
        /// When, in RFC 3339.
        time: String,
        /// The task; null for that of a session.
        task: Option<String>,
        /// The repository of the session's worktree; null for that of a task.
        repo: Option<String>,
        /// Its top.
        path: String,
        /// The branch that is checked out there.
        branch: String,
        /// Whether it was there before: a lane that was free, or the one that the task had.
        recycled: bool,
    },
    /// The branch of a task has landed on its target.
    Merged {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The branch.
        branch: String,
        /// The branch that it landed on.
        target: String,
        /// The merge commit's full id.
        commit: String,
        /// Whether it merged by itself; false if a conflict had to be resolved, by an agent or by a person.
        auto: bool,
        /// Who resolved the conflict: `person`, or `agent` and its name, whose work nobody has reviewed; null if there was none.
        resolved_by: Option<String>,
    },
    /// The branch of a task cannot be merged into its target. It is tried to resolve that, or a person is asked for.
    Conflict {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The branch.
        branch: String,
        /// The branch that it was to land on.
        target: String,
        /// How many conflicts there are.
        conflicts: usize,
        /// The files that they are about.
        paths: Vec<String>,
    },
    /// A conflict needs a person.
    Escalated {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// The branch.
        branch: String,
        /// The branch that it was to land on.
        target: String,
        /// How many conflicts there are.
        conflicts: usize,
    },
    /// The agent's provider cannot keep up, and the task waits. No attempt is used up.
    Waits {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// For how long.
        seconds: u64,
        /// Who chose that time.
        chosen_by: Chooser,
    },
    /// Anything else that a person should know.
    Note {
        /// When, in RFC 3339.
        time: String,
        /// The task; null for what concerns the whole run.
        task: Option<String>,
        /// How much it matters.
        level: NoteLevel,
        /// A sentence.
        words: String,
    },
    /// A task is complete, or its attempts are used up.
    TaskEnded {
        /// When, in RFC 3339.
        time: String,
        /// The task.
        task: Option<String>,
        /// How.
        state: EndState,
    },
    /// The run has ended.
    RunEnded {
        /// When, in RFC 3339.
        time: String,
        /// What it came to.
        summary: Box<RunAccount>,
    },
}

/// Who chose how long a task waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chooser {
    /// The provider named it.
    Provider,
    /// Nobody did, so we did.
    Us,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoteLevel {
    /// Good to know.
    Note,
    /// Something may be wrong.
    Warning,
    /// What to try.
    Hint,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndState {
    /// It is complete.
    Complete,
    /// Its attempts are used up.
    Failed,
}
