//! What `worktree list --json` and `worktree show --json` print.

use arborist_core::{history::State, process::Holder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::{open::OpenWorktrees, rows::WorktreeRow};
use crate::document::rfc3339;

/// The worktrees of a repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListDocument {
    /// The branch of the run.
    scope: String,
    /// The worktrees, and branches without one if requested.
    worktrees: Vec<RowDocument>,
}

/// One worktree.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RowDocument {
    /// The task that has it; null if it is free.
    task: Option<String>,
    /// The branch of the run that the task belongs to.
    run: Option<String>,
    /// `lane` for one of a run's lanes, `task` if you added it, `session` for that of a whole run, `foreign` if git arborist
    /// did not make it, `branch` for a branch without a worktree.
    #[schemars(schema_with = "kinds")]
    kind: &'static str,
    /// The branch that is checked out; null if it is free.
    branch: Option<String>,
    /// Where it is; null for a branch without a worktree.
    path: Option<String>,
    /// The state of the task, or `free`, or `session` where a whole run works, `missing` if its folder is gone, or `broken` if git
    /// finds no repository in it, or `lost` if its branch was deleted.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// The commit that is checked out.
    head: Option<String>,
    /// How many commits it is ahead of the run's branch.
    ahead: Option<u64>,
    /// How many commits it is behind the run's branch.
    behind: Option<u64>,
    /// When it was last changed, in RFC 3339.
    active: Option<String>,
    /// The process that is working there; null if there is none.
    holder: Option<HolderDocument>,
    /// How many uncommitted paths it has, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty: Option<usize>,
    /// Its size in bytes, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct HolderDocument {
    /// The process; 0 if it is not known.
    pid: u32,
    /// Its machine.
    host: String,
    /// Since when.
    since: String,
    /// What for.
    what: String,
}

impl ListDocument {
    pub(super) fn new(opened: &OpenWorktrees, rows: &[WorktreeRow]) -> Self {
        let scope = opened.scope.branch.to_string();
        Self { scope, worktrees: rows.iter().map(RowDocument::new).collect() }
    }
}

impl RowDocument {
    pub(super) fn new(row: &WorktreeRow) -> Self {
        let status = row.status.as_ref();
        Self {
            task: row.task.as_ref().map(ToString::to_string),
            run: row.run.as_ref().map(ToString::to_string),
            kind: row.kind(),
            branch: row.branch.as_ref().map(ToString::to_string),
            path: status.map(|status| status.path.display().to_string()),
            state: row.state,
            head: row.head.map(|head| head.to_string()),
            ahead: row.distance.map(|distance| distance.ahead),
            behind: row.distance.map(|distance| distance.behind),
            active: status.and_then(|status| status.active).map(rfc3339),
            holder: row.holder().map(holder),
            dirty: row.long.map(|long| long.dirty),
            size: row.long.map(|long| long.size),
        }
    }
}

fn holder(holder: &Holder) -> HolderDocument {
    let Holder { pid, host, since, what, .. } = holder.clone();
    HolderDocument { pid, host, since, what }
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["lane", "task", "session", "foreign", "branch"] })
}

fn states(_: &mut SchemaGenerator) -> Schema {
    let states = State::ALL.iter().map(|state| state.as_str());
    json_schema!({ "type": "string", "enum": states.chain(["free", "session", "missing", "broken", "lost"]).collect::<Vec<_>>() })
}
