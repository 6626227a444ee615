//! What a call of `garden` or `gardener` came to, as the last line of `--json` tells it.

use arborist_core::{agent::Usage, progress::RunTotals};
use schemars::JsonSchema;
use serde::Serialize;

/// What was spent, as far as agents told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpentDocument {
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}

/// What a call of `garden` or `gardener` came to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SummaryDocument {
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
    /// How many of them are done, now and before.
    pub done: usize,
    /// The tasks that were completed.
    pub completed: Vec<String>,
    /// Those of them whose agent changed no file.
    pub unchanged: Vec<String>,
    /// The tasks that failed.
    pub failed: Vec<FailedDocument>,
    /// The tasks that are left undone.
    pub left: Vec<LeftDocument>,
    /// The tasks that are complete on their own branches and did not land.
    pub unlanded: Vec<UnlandedDocument>,
    /// The tasks that landed after somebody had resolved a conflict.
    pub resolved: Vec<ResolvedDocument>,
    /// What brings a checkout up to landings that would have touched it; null if there are none.
    pub parked: Option<String>,
    /// How many attempts were begun.
    pub attempts: usize,
    /// What was spent.
    pub spent: SpentDocument,
    /// Whether no model was called: what another session recorded was played again.
    pub offline: bool,
    /// How long it took.
    pub seconds: i64,
    /// The error that stopped the run; null if it came to its end.
    pub stopped: Option<String>,
    /// What to type next; null if nothing is left to do.
    pub next: Option<String>,
    /// Where the run's own branch is checked out; null if the run worked on the branch of the user's checkout.
    pub worktree: Option<String>,
    /// What brings the work of a run on its own branch to the branch that is checked out; null if it is there, or not done.
    pub merge: Option<String>,
    /// The branches of the run in other repositories, once it is done.
    pub others: Vec<OtherBranchDocument>,
    /// The repositories whose last push failed.
    pub unpushed: Vec<String>,
}

/// The branch of a run in another repository of its workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OtherBranchDocument {
    /// The repository.
    pub repo: String,
    /// The branch.
    pub branch: String,
}

/// A task that is complete on its own branch and did not land.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnlandedDocument {
    /// The task.
    pub task: String,
    /// Why.
    pub why: String,
}

/// A task that landed after somebody had resolved a conflict.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResolvedDocument {
    /// The task.
    pub task: String,
    /// Who resolved it: `person`, or `agent` and its name, whose work nobody has reviewed.
    pub by: String,
    /// The merge commit's full id.
    pub commit: String,
}

/// A task that failed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailedDocument {
    /// The task.
    pub task: String,
    /// Its name.
    pub name: String,
    /// How many attempts it had.
    pub attempts: u32,
    /// Why the last one failed, in one line, if that was told.
    pub why: Option<String>,
}

/// A task that is left undone.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeftDocument {
    /// The task.
    pub task: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// What it waits for: tasks and phases.
    pub waits_for: Vec<String>,
}

impl SpentDocument {
    pub(super) fn add(&mut self, usage: Usage) {
        let sum = |total: Option<u64>, more| Some(total.unwrap_or(0).saturating_add(more));
        self.tokens_in = sum(self.tokens_in, usage.tokens_in);
        self.tokens_out = sum(self.tokens_out, usage.tokens_out);
        if let Some(cost) = usage.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }
}

impl From<Usage> for SpentDocument {
    fn from(usage: Usage) -> Self {
        Self { tokens_in: Some(usage.tokens_in), tokens_out: Some(usage.tokens_out), cost: usage.cost }
    }
}

impl From<RunTotals> for SpentDocument {
    fn from(totals: RunTotals) -> Self {
        let RunTotals { tokens_in, tokens_out, cost, .. } = totals;
        Self { tokens_in, tokens_out, cost }
    }
}
