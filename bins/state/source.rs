//! Which plan is shown: the frozen one, unless another is named; before a run, the one in the checkout.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::Repository,
    history::Run,
    message::PlanRef,
    plan::{Plan, PlanError, configured_plan_path, find_plans, read_named_plan, typed_plan_path},
    progress::PlanMarks,
    safe_files,
    settings::Settings,
};

/// Where the plan comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// There is none: only history is shown.
    Nothing,
    /// There are several, and none is named: only history is shown.
    Several(Vec<String>),
    /// The current file.
    File(String),
    /// The frozen plan, and whether the file is still the same.
    Frozen(PlanRef, Freshness),
}

/// Whether the file of a frozen plan is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It is, or there is no file.
    Same,
    /// It differs.
    Changed,
}

pub(super) struct FoundPlan {
    pub(super) plan: Option<Plan>,
    pub(super) shown: Shown,
    pub(super) boxes: PlanMarks,
}

/// Finds the plan for `run`. Once a run has started, ticks in a file that agents can edit do not count.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    tree: Option<&Path>,
) -> Result<FoundPlan, Failure> {
    let boxes = if run.start.is_some() { PlanMarks::Ignore } else { PlanMarks::Count };
    if let Some(file) = tree {
        return load_typed(repository, run, file, boxes);
    }
    if let Some(frozen) = run.frozen_plan() {
        return load_frozen(repository, frozen);
    }
    let Some(top) = &repository.worktree else {
        return Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes });
    };
    if let Some(named) = configured_plan_path(repository, settings) {
        let location = settings.location_of("tree");
        return load(top, named, boxes).map_err(|failure| match location {
            Some(location) => failure.hint(format!("correct {location}, or name the plan with --tree")),
            None => failure,
        });
    }
    let mut plans = find_plans(top, Some(&run.scope.branch));
    if plans.len() > 1 {
        return Ok(FoundPlan { plan: None, shown: Shown::Several(plans), boxes });
    }
    match plans.pop() {
        Some(name) => load(top, name, boxes),
        None => Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes }),
    }
}

/// Refuses a plan that is not the one of the run: its tasks may have the ids of other tasks, and would be shown with
/// their states. A plan that was moved is the same one.
fn refuse_other_plan(
    repository: &Repository,
    run: &Run,
    path: &Path,
    bytes: &[u8],
    plan: &Plan,
) -> Result<(), Failure> {
    let (Some(frozen), Some(top)) = (run.frozen_plan(), &repository.worktree) else {
        return Ok(());
    };
    let then = repository.find_blob(frozen.blob)?;
    if path == Path::new(&frozen.path) || then.as_deref() == Some(bytes) {
        return Ok(());
    }
    let is_here = safe_files::read_beneath(top, &frozen.path).is_ok();
    let then = then.and_then(|then| Plan::read(&frozen.path, &then).ok());
    let is_other_task =
        |id, name: &str| then.as_ref().and_then(|then| then.find(id)).is_some_and(|then| then.name != *name);
    if !is_here && !plan.leaves().any(|task| is_other_task(&task.id, &task.name)) {
        return Ok(());
    }
    let path = path.display().to_string();
    let error = GardenerError::OtherPlan { frozen: frozen.path.clone(), path };
    let branch = &run.scope.branch;
    let scope = if repository.head.branch.as_ref() == Some(branch) {
        String::new()
    } else {
        format!(" --scope {branch}")
    };
    Err(Failure::new(Exit::Person, error.to_string())
        .hint(format!("leave --tree out to see the run: git arborist state{scope}")))
}

fn load(top: &Path, path: String, boxes: PlanMarks) -> Result<FoundPlan, Failure> {
    let plan = Plan::read(&path, &read_named_plan(top, &path)?)?;
    Ok(FoundPlan { plan: Some(plan), shown: Shown::File(path), boxes })
}

/// Loads the plan that `--tree` names.
fn load_typed(
    repository: &Repository,
    run: &Run,
    typed: &Path,
    boxes: PlanMarks,
) -> Result<FoundPlan, Failure> {
    let path = typed_plan_path(repository, typed);
    let label = path.display().to_string();
    let bytes = match &repository.worktree {
        Some(top) => read_named_plan(top, &label)?,
        None => {
            let full = repository.dir.join(&path);
            safe_files::read_users(&full).map_err(|error| PlanError::unreadable(&label, &full, &error))?
        }
    };
    let plan = Plan::read(&label, &bytes)?;
    refuse_other_plan(repository, run, &path, &bytes, &plan)?;
    Ok(FoundPlan { plan: Some(plan), shown: Shown::File(label), boxes })
}

/// Compares the file as it is in the worktree.
fn freshness(repository: &Repository, frozen: &PlanRef, bytes: &[u8]) -> Freshness {
    let file = repository.worktree.as_ref().and_then(|top| safe_files::read_beneath(top, &frozen.path).ok());
    let is_same =
        |now: &[u8]| now == bytes || String::from_utf8_lossy(now).replace("\r\n", "\n").as_bytes() == bytes;
    match file {
        Some(now) if !is_same(&now) => Freshness::Changed,
        _ => Freshness::Same,
    }
}

fn load_frozen(repository: &Repository, frozen: &PlanRef) -> Result<FoundPlan, Failure> {
    let bytes = repository.find_blob(frozen.blob)?.ok_or_else(|| {
        Failure::new(
            Exit::Fatal,
            format!("the frozen plan of the run, '{frozen}', is not in this repository"),
        )
        .hint("fetch it, or name a file with --tree")
    })?;
    let plan = Plan::read(&frozen.path, &bytes)?;
    Ok(FoundPlan {
        plan: Some(plan),
        shown: Shown::Frozen(frozen.clone(), freshness(repository, frozen, &bytes)),
        boxes: PlanMarks::Count,
    })
}
