//! `--explain`: why a task waits for what, with the file and line of each reason.

use std::path::PathBuf;

use arborist_core::{
    failure::{Exit, Failure},
    message::visible,
    name::TaskId,
    plan::{Basis, Plan, WaitReason},
    process::shell_word,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Format, text};
use crate::{
    document,
    entry::Outcome,
    scope::hint_nearest,
    ui::{Tone, Ui},
};

/// Why a task waits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExplainDocument {
    /// The task.
    task: String,
    /// What it waits for, itself or with a phase around it.
    reasons: Vec<ReasonDocument>,
    /// Where the plan says that its tests must fail first, if it does and the task has no `[red]` yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_red: Option<PlaceDocument>,
}

/// A line of the plan.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PlaceDocument {
    /// The file.
    file: String,
    /// The line, from 1.
    line: usize,
}

/// Why a node waits for another.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ReasonDocument {
    /// The node that waits: the task, or a phase around it.
    node: String,
    /// The node that is waited for.
    on: String,
    /// Whether the plan states it; otherwise a rule of order implies it.
    stated: bool,
    /// The words of the plan, or the rule.
    why: String,
    /// The file.
    file: String,
    /// The line, from 1.
    line: usize,
}

/// Prints why a task waits for what.
pub(super) fn run(ui: &mut Ui, plan: &Plan, specs: &[PathBuf], id: &str, format: Format) -> Outcome {
    let task = id.parse::<TaskId>().ok().and_then(|id| plan.find(&id));
    let task = task.ok_or_else(|| unknown(plan, id, specs))?;
    let waiting = plan.explain(&task.id);
    let all =
        waiting.iter().flat_map(|waiting| waiting.reasons.iter().map(|reason| (&waiting.node.id, reason)));
    let reasons: Vec<ReasonDocument> =
        all.map(|(node, reason)| reason_document(plan, node, reason)).collect();
    let proposal = plan.red_proposals.iter().find(|proposal| proposal.task == task.id);
    let proposed_red =
        proposal.map(|proposal| PlaceDocument { file: proposal.file.clone(), line: proposal.line });
    if format == Format::Json {
        return document::print(ui, &ExplainDocument { task: task.id.to_string(), reasons, proposed_red });
    }
    ui.line(&ui.paint(Tone::Strong, &format!("{} {}", task.id, visible(&task.name))));
    if reasons.is_empty() {
        ui.line("  waits for nothing");
    }
    for ReasonDocument { node, on, stated, why, file, line } in reasons {
        let who = if node == task.id.as_str() { String::new() } else { format!("{node} ") };
        let why = visible(&if stated { format!("\"{why}\"") } else { why });
        ui.line(&format!("  {who}waits for {on}  {}", ui.paint(Tone::Dim, &format!("{file}:{line}: {why}"))));
    }
    if let Some(PlaceDocument { file, line }) = proposed_red {
        ui.line(&format!(
            "  suggested mark [red], because {file}:{line} says that its tests must fail first"
        ));
        ui.line(&format!("    {}", text::red_meaning(&task.id)));
    }
    Ok(Exit::Done)
}

fn reason_document(plan: &Plan, node: &TaskId, reason: &WaitReason) -> ReasonDocument {
    ReasonDocument {
        node: node.to_string(),
        on: reason.on.to_string(),
        stated: reason.basis == Basis::Stated,
        why: reason.text.clone().unwrap_or_else(|| reason.basis.as_str().to_owned()),
        file: plan.spec_files.get(reason.file).cloned().unwrap_or_default(),
        line: reason.line,
    }
}

/// The error for a task that is not there. `specs` are the files of the plan, as they were typed.
fn unknown(plan: &Plan, id: &str, specs: &[PathBuf]) -> Failure {
    let specs: String =
        specs.iter().map(|spec| format!(" {}", shell_word(&spec.to_string_lossy()))).collect();
    let failure = Failure::new(Exit::No, format!("there is no task '{id}' in the plan"));
    let known = plan.tasks.iter().map(|task| task.id.as_str());
    failure.hint(hint_nearest(id, known, format!("see all tasks with: git arborist plan{specs}")))
}
