//! What a run came to: the last line of `--json`. The summary for people says the same.

use schemars::JsonSchema;
use serde::Serialize;

use crate::progress::RunTotals;

/// The summary of a call of `garden` or `gardener`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunAccount {
    /// The branch of the run.
    pub branch: String,
    /// The session.
    pub session: String,
    /// The commit before the first that was made.
    pub from: String,
    /// The last commit that was made; the same as `from` if none was.
    pub to: String,
    /// How many tasks there are in the plan.
    pub total: usize,
    /// How many of them are done and have landed, now and before.
    pub done: usize,
    /// How many tasks are not done and were not selected with `--only` or `--until`.
    pub not_selected: usize,
    /// The tasks that were completed.
    pub completed: Vec<String>,
    /// Completed tasks whose agent changed no file.
    pub unchanged: Vec<String>,
    /// The tasks that failed.
    pub failed: Vec<FailedTask>,
    /// The tasks that were not run.
    pub left: Vec<LeftTask>,
    /// The tasks that are complete on their own branches and did not land.
    pub unlanded: Vec<UnlandedTask>,
    /// The tasks that landed after a conflict was resolved.
    pub resolved: Vec<ResolvedConflict>,
    /// The command that updates a checkout with parked landings; null if there are none.
    pub parked: Option<String>,
    /// Why they are parked; null if there are none.
    pub parked_because: Option<String>,
    /// How many attempts were made or continued. One that was interrupted does not count.
    pub attempts: usize,
    /// What was spent.
    pub spent: RunTotals,
    /// Whether this was an offline replay, which calls no model.
    pub offline: bool,
    /// How long it took.
    pub seconds: i64,
    /// The error that stopped the run; null if there was none.
    pub stopped: Option<String>,
    /// The command to run next; null if nothing is left to do.
    pub next: Option<String>,
    /// The command to run after `next`, if that stashes changes of the user.
    #[serde(skip)]
    pub get_back: Option<String>,
    /// Where the run's own branch is checked out; null if the run worked on the branch of the user's checkout.
    pub worktree: Option<String>,
    /// The command that merges the run's own branch into the branch that is checked out; null if there is nothing to merge.
    pub merge: Option<String>,
    /// The branches of the run in other repositories, once it is done.
    pub others: Vec<RepoBranch>,
    /// The repositories whose last push failed.
    pub unpushed: Vec<String>,
    /// Commits on the run's branch that the run did not make.
    pub foreign_commits: Vec<ForeignCommit>,
    /// What became of things of the user's meanwhile, each in a sentence that says what keeps it: branches, tags, stashes,
    /// detached heads, reflogs and uncommitted changes that were lost; new commits on branches, new stashes, remote-tracking
    /// refs that changed, names that hide a branch; what was staged, switched or marked in the user's checkouts; files in the
    /// folder for worktrees.
    pub moved_refs: Vec<String>,
    /// Present and true if agents worked in the user's checkout, and the sandbox there could not keep them from writing to
    /// the git directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub git_was_writable: bool,
    /// Present and true if agents, or tests, gates or reviews of what they wrote, ran without a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacked_sandbox: bool,
}

/// A commit that a run did not make.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ForeignCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
}

/// The branch of a run in another repository of its workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RepoBranch {
    /// The repository.
    pub repo: String,
    /// The branch.
    pub branch: String,
}

/// A task that is complete on its own branch and did not land.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnlandedTask {
    /// The task.
    pub task: String,
    /// Why.
    pub why: String,
}

/// A task that failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailedTask {
    /// The task.
    pub task: String,
    /// Its name.
    pub name: String,
    /// How many attempts it had.
    pub attempts: u32,
    /// Why the last one failed, in one line, if known.
    pub why: Option<String>,
    /// What takes its rejected work off the run's branch; null if none of it is there.
    pub drop: Option<String>,
}

/// A task that was not run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeftTask {
    /// The task.
    pub task: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// The state in words, as `git arborist state` shows it.
    pub words: String,
    /// What it waits for: tasks and phases.
    pub waits_for: Vec<String>,
    /// What the summary for people distinguishes.
    #[serde(skip)]
    pub kind: LeftTaskKind,
}

/// The kinds of tasks that were not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftTaskKind {
    /// It had failed in an earlier call, after this number of attempts.
    FailedEarlier {
        /// The attempts.
        attempts: u32,
    },
    /// It could have been started.
    Ready,
    /// Another one.
    #[default]
    Other,
}

/// A task that landed after a conflict was resolved.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResolvedConflict {
    /// The task.
    pub task: String,
    /// Who resolved it: `person`, or `agent` and its name.
    pub by: String,
    /// The merge commit's full id.
    pub commit: String,
}
