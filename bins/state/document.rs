//! What `state --json` prints.

use std::collections::BTreeMap;

use arborist_core::{
    event::steps,
    history::{Event, State},
    message::Step,
    plan::Task,
    progress::{NodeProgress, RunTotals},
    record::StepStatus,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::{StateView, source::Shown};
use crate::document::{EventDocument, rfc3339, trailers, trailers_by_key};

/// The state of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StateDocument {
    /// The branch of the run.
    scope: String,
    /// The commit whose history was read; null if there is none yet.
    head: Option<String>,
    /// The session of the run; null before the first run.
    session: Option<String>,
    /// The commit that the run began with; null before the first run.
    run_start: Option<String>,
    /// The plan; null if there is none.
    plan: Option<PlanDocument>,
    /// How many tasks are in each state. Phases are not counted.
    #[schemars(schema_with = "counts")]
    summary: BTreeMap<&'static str, usize>,
    /// How many commits of the run look like task commits but are not valid; they do not count.
    ignored: usize,
    /// The process that is running it; null if there is none.
    running: Option<RunningDocument>,
    /// What the run has spent, as reported by the agents.
    totals: RunTotals,
    /// How many commits of the run are missing at the remote of each repository, as far as known; only
    /// repositories with such commits.
    unpushed: BTreeMap<String, u64>,
    /// The landed commit that is waiting for a checkout; null if there is none.
    parked: Option<String>,
    /// The requested tasks and phases, in the order of the plan.
    tasks: Vec<TaskDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PlanDocument {
    /// Where it was read from.
    path: String,
    /// The blob that the run froze; null for a file as it is now.
    blob: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RunningDocument {
    /// Its process.
    pid: u32,
    /// Its machine.
    host: String,
    /// Since when, in RFC 3339.
    since: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct DoingDocument {
    /// The step.
    #[schemars(schema_with = "steps")]
    step: Step,
    /// The attempt, from 0.
    attempt: u32,
    /// Who does it: a runner, or a command.
    by: String,
    /// Since when, in RFC 3339.
    since: String,
    /// Where its output goes.
    log: String,
}

impl From<StepStatus> for DoingDocument {
    fn from(StepStatus { step, attempt, by, since, log, .. }: StepStatus) -> Self {
        Self { step, attempt: attempt.0, by, since: rfc3339(since), log }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TaskDocument {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// `pending`, `implementing`, `testing`, `reviewing`, `complete`, `failed`, `skipped`, `forked` or `reverted`.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// The current or last attempt, from 0; null if there was none.
    attempt: Option<u32>,
    /// The commit that decided; null if the plan alone did.
    commit: Option<String>,
    /// When that commit was made, in RFC 3339.
    time: Option<String>,
    /// Whether it can start now.
    ready: bool,
    /// Whether an active run is working on it.
    running: bool,
    /// The step that is running now; null if there is none.
    doing: Option<DoingDocument>,
    /// Whether it is complete on the run's branch.
    landed: bool,
    /// Whether its landing could not be verified: what it landed is not in this repository (a shallow clone).
    unverified: bool,
    /// The last commit of its work, if that was complete on the run's branch and is no longer there, or if its own branch
    /// was deleted before it landed; else null.
    lost: Option<String>,
    /// Whether it is in the plan; true if there is no plan.
    planned: bool,
    /// Its dependencies in the plan.
    depends_on: Vec<String>,
    /// The dependencies that are not complete yet.
    waits_for: Vec<String>,
    /// Its phase.
    parent: Option<String>,
    /// Its tasks and phases; empty for a task.
    children: Vec<String>,
    /// Why its last attempt was interrupted; null if it was not. Such an attempt does not count.
    interrupted: Option<String>,
    /// How often it was interrupted in a row; a run stops at three.
    interruptions: usize,
    /// The commits of which none is the last, if it is forked.
    forks: Vec<String>,
    /// The trailers of the commit that decided.
    #[schemars(schema_with = "trailers_by_key")]
    trailers: BTreeMap<String, String>,
    /// Its commits, oldest first, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<EventDocument>>,
}

impl StateDocument {
    pub(super) fn new(view: &StateView<'_>) -> Self {
        let run = view.run;
        Self {
            scope: run.scope.branch.to_string(),
            head: run.scope.tip.map(|tip| tip.to_string()),
            session: run.start.as_ref().map(|start| start.session.to_string()),
            run_start: run.start.as_ref().map(|start| start.commit.to_string()),
            plan: plan(&view.plan),
            summary: State::ALL.iter().map(|state| (state.as_str(), view.count(*state))).collect(),
            ignored: run.ignored,
            running: view.work.holder.as_ref().map(|holder| RunningDocument {
                pid: holder.pid,
                host: holder.host.clone(),
                since: holder.since.clone(),
            }),
            totals: view.totals,
            unpushed: view.unpushed.iter().cloned().collect(),
            parked: view.parked.map(|parked| parked.to_string()),
            tasks: view.selected().map(|node| TaskDocument::new(node, view)).collect(),
        }
    }
}

/// The states that a task may be in.
fn states(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

/// A number for each state.
fn counts(generator: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    json_schema!({
        "type": "object",
        "propertyNames": states(generator),
        "required": words,
        "additionalProperties": { "type": "integer", "minimum": 0 },
    })
}

fn plan(shown: &Shown) -> Option<PlanDocument> {
    match shown {
        Shown::Nothing | Shown::Several(_) => None,
        Shown::File(path) => Some(PlanDocument { path: path.clone(), blob: None }),
        Shown::Frozen(frozen, _) => {
            Some(PlanDocument { path: frozen.path.clone(), blob: Some(frozen.blob.to_string()) })
        }
    }
}

impl TaskDocument {
    fn new(node: &NodeProgress<'_>, view: &StateView<'_>) -> Self {
        fn texts<T: ToString>(items: &[T]) -> Vec<String> {
            items.iter().map(ToString::to_string).collect()
        }
        let task = node.planned;
        let last = node.history.and_then(|history| history.last());
        let events = |events: &[Event]| events.iter().map(EventDocument::from).collect();
        Self {
            id: node.id.to_string(),
            name: node.name.to_owned(),
            state: node.state.as_str(),
            attempt: node.attempt().map(|attempt| attempt.0),
            commit: last.map(|event| event.commit.to_string()),
            time: last.map(|event| rfc3339(event.time)),
            ready: node.is_ready(),
            running: view.work.has(node),
            doing: view.work.doing(node).map(DoingDocument::from),
            landed: node.is_landed() && !view.is_parked(node),
            unverified: node.history.is_some_and(|history| history.is_unverified),
            lost: view.find_lost(node).map(|commit| commit.to_string()),
            planned: !node.is_stray,
            depends_on: task.map(|task| texts(&task.depends_on)).unwrap_or_default(),
            waits_for: texts(&node.waits_for),
            parent: task.and_then(|task| task.parent.as_ref()).map(ToString::to_string),
            children: task.map(|task: &Task| texts(&task.children)).unwrap_or_default(),
            interrupted: last.and_then(Event::interruption).map(str::to_owned),
            interruptions: node.history.map_or(0, |history| history.interruptions().count),
            forks: node.history.map(|history| texts(&history.forks)).unwrap_or_default(),
            trailers: last.map(|event| trailers(&event.trailers)).unwrap_or_default(),
            history: view
                .args
                .history
                .then(|| node.history.map(|history| events(&history.events)).unwrap_or_default()),
        }
    }
}
