//! The selected run: errors if it does not exist, so that a mistyped name does not look like an empty run, and the option
//! that selects it.

use arborist_core::{
    failure::{Exit, Failure},
    git::Repository,
    history::{CommitSource, Run, RunScope},
    message::nearest,
    name::BranchName,
};

/// The error if there is neither the branch nor a run of it.
pub(crate) fn unknown(repository: &Repository, run: &Run) -> Failure {
    let branch = &run.scope.branch;
    let failure = Failure::new(Exit::No, format!("there is no branch '{branch}', and no run with that name"));
    let branches = repository.list_refs(&["refs/heads/"]).unwrap_or_default();
    let names = branches.iter().filter_map(|found| found.name.strip_prefix("refs/heads/"));
    if let Some(meant) = nearest(branch.as_str(), names) {
        return failure.hint(format!("did you mean '{meant}'?"));
    }
    match run.others.first() {
        Some(other) => failure.hint(format!("this history has a run of '{other}': --scope {other}")),
        None => failure.hint("see the branches with: git branch"),
    }
}

/// The option that selects the run of `branch` in a hint, with a space before it; empty if it is selected without one.
pub(crate) fn option(repository: &Repository, branch: &BranchName) -> String {
    let is_usual = RunScope::resolve(repository, None).is_ok_and(|found| found.branch == *branch);
    if is_usual { String::new() } else { format!(" --scope {branch}") }
}

/// Refuses a missing branch, unless history has a run of it: then it was renamed.
pub(crate) fn require(repository: &Repository, scope: &RunScope) -> Result<(), Failure> {
    if repository.find_branch(&scope.branch)?.is_some()
        || repository.head.branch.as_ref() == Some(&scope.branch)
    {
        return Ok(());
    }
    let run = Run::scan(repository, scope.clone(), CommitSource::Cached)?;
    if run.start.is_none() && run.tasks.is_empty() { Err(unknown(repository, &run)) } else { Ok(()) }
}
