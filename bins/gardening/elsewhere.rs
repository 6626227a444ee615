//! Sessions that were begun elsewhere: a fresh clone has what was pushed of them, and no branch of its own yet.

use arborist_core::{
    failure::{Exit, Failure},
    git::{RawCommit, Repository},
    history::{Reading, Run, Scope},
    name::{BranchName, Oid, PipelineName},
    plan::Plan,
    progress::{Boxes, Progress},
    workspace::Section,
};

/// Refuses to begin a plan again that this user has begun elsewhere, and whose work a remote has.
pub(super) fn refuse_left(
    repository: &Repository,
    (main, pipeline): (&Section, &PipelineName),
    plan: &str,
) -> Result<(), Failure> {
    let prefix = format!("{}{pipeline}/", main.prefix);
    let branch_of = |name: &str| -> Option<BranchName> {
        let (_, branch) = name.strip_prefix("refs/remotes/")?.split_once('/')?;
        branch.starts_with(&prefix).then(|| branch.parse().ok())?
    };
    let seen = repository.list_refs(&["refs/remotes/"])?;
    let seen: Vec<(BranchName, Oid)> =
        seen.iter().filter_map(|found| Some((branch_of(&found.name)?, found.target))).collect();
    if seen.is_empty() {
        return Ok(());
    }
    let user = repository.committer()?;
    let tips: Vec<Oid> = seen.iter().map(|(_, tip)| *tip).collect();
    let commits = repository.load_commits(&tips)?;
    let is_own = |commit: &RawCommit| user.is_some() && commit.committer() == user;
    for ((branch, tip), _) in seen.into_iter().zip(&commits).filter(|(_, commit)| is_own(commit)) {
        let scope = Scope { branch, tip: Some(tip) };
        // What cannot be read keeps nobody from beginning.
        let Ok(run) = Run::scan(repository, scope, Reading::Fresh) else {
            continue;
        };
        let Some(start) = run.start.as_ref().filter(|_| is_left(repository, &run, plan)) else {
            continue;
        };
        let (session, branch) = (&start.session, &run.scope.branch);
        let words =
            format!("you have begun '{plan}' elsewhere: session '{session}', on '{branch}', is not done");
        return Err(Failure::new(Exit::Person, words).hint(format!(
            "go on with it: git arborist session resume {session}\nor begin another: --new-run"
        )));
    }
    Ok(())
}

/// Whether something of this plan is left to do in a run.
fn is_left(repository: &Repository, run: &Run, path: &str) -> bool {
    let frozen = run.start.as_ref().and_then(|start| start.plan.as_ref()).filter(|plan| plan.path == path);
    let bytes = frozen.and_then(|plan| repository.find_blob(plan.blob).ok().flatten());
    let Some(plan) = bytes.and_then(|bytes| Plan::read(path, &bytes).ok()) else {
        return false;
    };
    let progress = Progress::new(Some(&plan), run, Boxes::Count);
    progress.counted().any(|standing| !standing.state.is_settled())
}
