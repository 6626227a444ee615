//! Changes to the spec itself: ticks for what is done, and ids for boxes that have none.

use std::collections::HashSet;

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::Repository,
    history::{CommitSource, Run, RunScope, State},
    name::TaskId,
    plan::{Edit, Plan, apply_edits, plan_ids, tick_style},
    process::shell_word,
    progress::tasks_done_by,
};

use super::{
    output::replace,
    sources::{Document, PlanSources},
};
use crate::{entry::Outcome, ui::Ui};

/// Ticks the boxes of tasks that are complete in the history of the branch that is checked out, also by runs of branches
/// that were merged into it.
pub(super) fn tick(ui: &mut Ui, sources: &PlanSources) -> Outcome {
    let plan = sources.read()?;
    let (done, others) = complete_tasks(sources, &plan)?;
    let is_done = |task: &arborist_core::plan::Task| done.contains(&task.id);
    let mut count = 0;
    for document in &sources.documents {
        let style = tick_style(&String::from_utf8_lossy(&document.bytes));
        let edits: Vec<Edit> =
            plan.plan_ticks(style, is_done).into_iter().filter(|edit| edit.file == document.label).collect();
        apply(document, &edits)?;
        count += edits.len();
        edits.iter().for_each(|edit| ui.line(&format!("ticked {} ({}:{})", edit.task, edit.file, edit.line)));
    }
    report_boxless(ui, &plan, &done);
    for task in &others {
        ui.warn(&format!(
            "'{task}' is complete in the run, but is another task there, so its box is not ticked"
        ));
    }
    if count == 0 {
        ui.line(match plan.leaves().any(is_done) {
            true => "the boxes of all complete tasks are already ticked",
            false => "no task is complete, so no box was ticked",
        });
    }
    Ok(Exit::Done)
}

/// The complete tasks, and the ids of complete tasks of the run that are other tasks in this plan.
fn complete_tasks(sources: &PlanSources, plan: &Plan) -> Result<(HashSet<TaskId>, Vec<TaskId>), Failure> {
    let repository = sources.repository.as_ref().ok_or_else(|| {
        Failure::new(Exit::Fatal, "the state of tasks is in the history of a repository, and this is not one")
            .hint("run this inside a repository")
    })?;
    let scope = RunScope::resolve(repository, None)?;
    let run = Run::scan(repository, scope, CommitSource::Cached)?;
    let mut done = HashSet::new();
    if let Some(tip) = run.scope.tip {
        let elsewhere = tasks_done_by(repository, tip, &run.others, plan)?;
        done.extend(elsewhere.into_iter().flat_map(|merged| merged.tasks));
    }
    let frozen = frozen_plan(repository, &run)?;
    let complete = run.tasks.iter().filter(|task| task.state() == State::Complete).map(|task| &task.id);
    let (same, others): (Vec<&TaskId>, Vec<&TaskId>) =
        complete.partition(|id| is_same_task(sources, plan, frozen.as_ref(), id));
    done.extend(same.into_iter().cloned());
    let others: Vec<TaskId> = others.into_iter().filter(|id| !done.contains(*id)).cloned().collect();
    if let (true, false, Some((path, _))) = (done.is_empty(), others.is_empty(), frozen) {
        return Err(refuse_other_plan(sources, &path));
    }
    Ok((done, others))
}

/// The refusal of ticks for tasks that only have the ids of complete tasks.
fn refuse_other_plan(sources: &PlanSources, frozen: &str) -> Failure {
    let error = GardenerError::OtherPlan { frozen: frozen.to_owned(), path: sources.labels() };
    let file = match sources.top() {
        Some(top) if sources.repository.as_ref().is_some_and(|found| *found.dir != *top) => top.join(frozen),
        _ => frozen.into(),
    };
    let file = shell_word(&file.to_string_lossy());
    Failure::new(Exit::Person, error.to_string())
        .hint(format!("tick what the run has completed with: git arborist plan --tick {file}"))
}

/// The plan of the run, and its path from the top of the repository.
fn frozen_plan(repository: &Repository, run: &Run) -> Result<Option<(String, Plan)>, Failure> {
    let frozen = run.frozen_plan();
    let plan = Plan::read_frozen(repository, frozen)?.and_then(Result::ok);
    Ok(frozen.map(|frozen| frozen.path.clone()).zip(plan))
}

/// Whether a task of the run is the one that the plan has under this id. In another file than the run's, it has to
/// have the same title: two plans may use the same ids.
fn is_same_task(sources: &PlanSources, plan: &Plan, frozen: Option<&(String, Plan)>, id: &TaskId) -> bool {
    let (Some((path, frozen)), Some(task)) = (frozen, plan.find(id)) else { return true };
    let is_same_file = match (&task.source, sources.documents.as_slice()) {
        (Some(source), _) => sources.label_from_top(&source.file) == *path,
        (None, [only]) => sources.label_from_top(&only.label) == *path,
        (None, _) => false,
    };
    is_same_file || frozen.find(id).is_some_and(|then| then.name == task.name)
}

/// Tasks that are headings, rows or nodes of JSON have no box that could be ticked.
fn report_boxless(ui: &mut Ui, plan: &Plan, done: &HashSet<TaskId>) {
    let has_no_box = |task: &&arborist_core::plan::Task| {
        task.source.as_ref().is_none_or(|source| source.mark_at.is_none())
    };
    let untold = plan.leaves().filter(|task| done.contains(&task.id) && !task.mark.is_settled());
    for task in untold.filter(has_no_box) {
        ui.warn(&format!("'{}' is complete and has no box to tick", task.id));
    }
}

/// Gives ids to boxes that have none.
pub(super) fn assign_ids(ui: &mut Ui, sources: &PlanSources) -> Outcome {
    let documents: Vec<(&str, &[u8])> = sources
        .documents
        .iter()
        .map(|document| (document.label.as_str(), document.bytes.as_slice()))
        .collect();
    let edits = plan_ids(&documents)?;
    for document in &sources.documents {
        let own: Vec<Edit> = edits.iter().filter(|edit| edit.file == document.label).cloned().collect();
        apply(document, &own)?;
    }
    edits.iter().for_each(|edit| ui.line(&format!("{}:{}: {}", edit.file, edit.line, edit.task)));
    if edits.is_empty() {
        ui.line("there is no box without an id");
    }
    Ok(Exit::Done)
}

fn apply(document: &Document, edits: &[Edit]) -> Result<(), Failure> {
    if edits.is_empty() {
        return Ok(());
    }
    let changed = apply_edits(&document.bytes, edits);
    replace(&document.path, &changed)
        .with_context(|| format!("could not write '{}'", document.path.display()))?;
    Ok(())
}
