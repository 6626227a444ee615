//! `--check`: everything that is wrong or doubtful, a line each, as compilers print it.

use arborist_core::{
    failure::Exit,
    message::visible,
    pipeline::find_permit_mistake,
    plan::{Plan, PlanError, Problem, Task, Why},
    workspace::{NamingMistake, Workspace},
};

use super::{Strictness, sources::PlanSources, text};
use crate::{
    entry::Outcome,
    ui::{Tone, Ui},
};

/// Whatever is doubtful about a plan, in the order of its files; in a workspace also where its tasks would work.
pub(super) fn findings(plan: &Plan, workspace: Option<&Workspace>) -> Vec<Problem> {
    let unread = plan.unread.iter().filter(|unread| !matches!(unread.why, Why::Step | Why::Check));
    let mut findings: Vec<Problem> = plan.warnings.clone();
    findings.extend(unread.map(|unread| unread.problem.clone()));
    findings.extend(plan.mistakes.iter().cloned());
    findings.extend(plan.conflict_warnings());
    findings.extend(workspace.iter().flat_map(|workspace| misplaced(plan, workspace)));
    findings.extend(wrong_permits(plan));
    let rank = |problem: &Problem| plan.spec_files.iter().position(|file| *file == problem.file);
    findings.sort_by_key(|problem| (rank(problem), problem.line, problem.column));
    findings
}

fn place_of(plan: &Plan, task: &Task) -> (String, usize) {
    match &task.source {
        Some(source) => (source.file.clone(), source.line),
        None => (plan.spec_files.first().cloned().unwrap_or_else(|| "the plan".into()), 1),
    }
}

/// Permissions that a run refuses.
fn wrong_permits(plan: &Plan) -> Vec<Problem> {
    let problem = |task: &Task, permit: &String| {
        let what = format!("[allow:{permit}] of '{}': {}", task.id, find_permit_mistake(permit)?);
        let (file, line) = place_of(plan, task);
        Some(Problem { file, line, column: 1, what, fix: String::new() })
    };
    let permits = plan.tasks.iter().flat_map(|task| task.allow.iter().map(move |permit| (task, permit)));
    permits.filter_map(|(task, permit)| problem(task, permit)).collect()
}

fn misplaced(plan: &Plan, workspace: &Workspace) -> Vec<Problem> {
    let problem = |task: &Task| {
        let NamingMistake { what, fix } = workspace.find_naming_mistake(task)?;
        let (file, line) = place_of(plan, task);
        Some(Problem { file, line, column: 1, what, fix: fix.replace('\n', "; or ") })
    };
    plan.tasks.iter().filter_map(problem).collect()
}

pub(super) fn run(ui: &mut Ui, sources: &PlanSources, strictness: Strictness) -> Outcome {
    let plan = match sources.read() {
        Ok(plan) => plan,
        Err(PlanError::Wrong { problems, warnings }) => {
            let doubtful = if strictness == Strictness::Strict { Severity::Error } else { Severity::Warning };
            problems.iter().for_each(|problem| show(ui, problem, Severity::Error));
            warnings.iter().for_each(|problem| show(ui, problem, doubtful));
            return Ok(Exit::No);
        }
        Err(error) => return Err(error.into()),
    };
    let workspace = sources.workspace(&plan)?;
    // What a run refuses is an error here too, and so is a key with a typing error, of which a run only warns.
    let refused: Vec<Problem> = workspace.iter().flat_map(|workspace| misplaced(&plan, workspace)).collect();
    let refused = [refused, wrong_permits(&plan), plan.mistakes.clone()].concat();
    let findings = findings(&plan, workspace.as_ref());
    let is_error = |problem: &Problem| strictness == Strictness::Strict || refused.contains(problem);
    for problem in &findings {
        show(ui, problem, if is_error(problem) { Severity::Error } else { Severity::Warning });
    }
    let lines = [text::summary(&plan), text::permitted(&plan), text::reds(&plan)].concat();
    lines.iter().for_each(|line| ui.text_line("", line));
    Ok(if findings.iter().any(is_error) { Exit::No } else { Exit::Done })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

fn show(ui: &mut Ui, problem: &Problem, severity: Severity) {
    let Problem { file, line, column, what, fix } = problem;
    let word = match severity {
        Severity::Error => ui.paint(Tone::Bad, "error"),
        Severity::Warning => ui.paint(Tone::Busy, "warning"),
    };
    let place = ui.paint(Tone::Strong, &format!("{file}:{line}:{column}"));
    ui.line(&format!("{place}: {word}: {}", visible(what)));
    if !fix.is_empty() {
        ui.line(&ui.paint(Tone::Dim, &format!("    fix: {}", visible(fix))));
    }
}
