//! Which plan is shown: the frozen one, unless another is named; before a run, the one in the checkout.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Failure},
    git::{Repository, plain_path},
    history::Run,
    message::PlanRef,
    plan::{Plan, PlanError, find_usual_plan},
    progress::Boxes,
    safe_files,
    settings::Settings,
};

/// Where the plan comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// There is none: only history is shown.
    Nothing,
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
    pub(super) boxes: Boxes,
}

/// Finds the plan for `run`. Once a run has started, ticks in a file that agents can edit do not count.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    tree: Option<&Path>,
) -> Result<FoundPlan, Failure> {
    let boxes = if run.start.is_some() { Boxes::Ignore } else { Boxes::Count };
    if let Some(file) = tree {
        // A file of the worktree may be foreign, even if the user names it, so links are not followed.
        let full = plain_path(&repository.dir.join(file));
        let bytes = safe_files::read_named(repository.worktree.as_deref(), &full);
        return load((file.display().to_string(), Path::new("")), bytes, boxes);
    }
    if let Some(frozen) = run.start.as_ref().and_then(|start| start.plan.as_ref()) {
        return load_frozen(repository, frozen);
    }
    let Some(top) = &repository.worktree else {
        return Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes });
    };
    if let Some(named) = &settings.general.tree {
        let full = plain_path(&top.join(named));
        let path = full.strip_prefix(top).unwrap_or(Path::new(named));
        return load((named.to_owned(), top), safe_files::read_beneath(top, path), boxes);
    }
    match find_usual_plan(top, Some(&run.scope.branch)) {
        Some(name) => {
            let bytes = safe_files::read_beneath(top, &name);
            load((name, top), bytes, boxes)
        }
        None => Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes }),
    }
}

fn load(
    (label, top): (String, &Path),
    bytes: std::io::Result<Vec<u8>>,
    boxes: Boxes,
) -> Result<FoundPlan, Failure> {
    let bytes = bytes.map_err(|error| {
        Failure::from(PlanError::unreadable(&label, &top.join(&label), &error))
            .hint("name another file with --tree, ARBORIST_TREE, git config arborist.tree or a config.toml")
    })?;
    let plan = Plan::read(&label, &bytes)?;
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
        boxes: Boxes::Count,
    })
}
