//! Which plan is shown: the one that the run froze, unless another is named; before a run, what lies there.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Failure},
    git::{Repository, plain_path},
    history::Run,
    message::PlanRef,
    plan::{Plan, usual_places},
    progress::Boxes,
    safe_files,
    settings::Settings,
};

/// Where the plan that is shown comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// There is none: only history is shown.
    Nothing,
    /// A file as it is now.
    File(String),
    /// The plan that the run was frozen with, and whether the file is still the same.
    Frozen(PlanRef, Freshness),
}

/// Whether the file of a frozen plan still says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It does, or there is no such file.
    Same,
    /// It does not.
    Changed,
}

pub(super) struct FoundPlan {
    pub(super) plan: Option<Plan>,
    pub(super) shown: Shown,
    pub(super) boxes: Boxes,
}

/// Finds the plan for `run`. A file that agents can edit ticks no boxes once a run has begun.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    tree: Option<&Path>,
) -> Result<FoundPlan, Failure> {
    let boxes = if run.start.is_some() { Boxes::Ignore } else { Boxes::Count };
    if let Some(file) = tree {
        // A file of the worktree may have been committed by anybody, so it is read as such also where the user names it.
        let full = plain_path(&repository.dir.join(file));
        let bytes = safe_files::read_named(repository.worktree.as_deref(), &full);
        return load(file.display().to_string(), bytes, boxes);
    }
    if let Some(frozen) = run.start.as_ref().and_then(|start| start.plan.as_ref()) {
        return load_frozen(repository, frozen);
    }
    let Some(top) = &repository.worktree else {
        return Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes });
    };
    if let Some(named) = settings.tree() {
        let full = plain_path(&top.join(named));
        let path = full.strip_prefix(top).unwrap_or(Path::new(named));
        return load(named.to_owned(), safe_files::read_beneath(top, path), boxes);
    }
    match usual_places(Some(&run.scope.branch)).into_iter().find(|name| top.join(name).is_file()) {
        Some(name) => {
            let bytes = safe_files::read_beneath(top, &name);
            load(name, bytes, boxes)
        }
        None => Ok(FoundPlan { plan: None, shown: Shown::Nothing, boxes }),
    }
}

fn load(label: String, bytes: std::io::Result<Vec<u8>>, boxes: Boxes) -> Result<FoundPlan, Failure> {
    let bytes = bytes.map_err(|error| {
        Failure::new(Exit::Fatal, format!("could not read the plan '{label}': {error}"))
            .hint("name another file with --tree, ARBORIST_TREE, git config arborist.tree or a config.toml")
    })?;
    let plan = Plan::read(&label, &bytes)?;
    Ok(FoundPlan { plan: Some(plan), shown: Shown::File(label), boxes })
}

/// Compared as it stands in the worktree; where filters change files, git's own line ends would tell the same.
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
            format!("the plan that the run was frozen with, '{frozen}', is not in this repository"),
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
