//! Tasks of a plan that the runs of other branches completed in the same history, because those branches were merged or
//! this one was created from them. They do not change the state of a run; people are told about them.

use crate::{
    git::Repository,
    history::{CommitSource, HistoryError, Run, RunScope},
    name::{BranchName, Oid, TaskId},
    plan::Plan,
};

/// Tasks that the run of another branch completed.
#[derive(Debug, Clone)]
pub struct MergedRun {
    /// The branch.
    pub branch: BranchName,
    /// Whether it was created for a session, so that it can only be here because it was merged.
    pub has_session_branch: bool,
    /// The tasks.
    pub tasks: Vec<TaskId>,
}

/// For each of the runs of `others` in the history of `tip`, the unfinished leaves of `plan` that it completed. A task is
/// the same if its id and its name are, because another plan may use the same ids.
pub fn tasks_done_by(
    repository: &Repository,
    tip: Oid,
    others: &[BranchName],
    plan: &Plan,
) -> Result<Vec<MergedRun>, HistoryError> {
    let mut found = Vec::new();
    for branch in others {
        let scope = RunScope { branch: branch.clone(), tip: Some(tip) };
        let run = match Run::scan(repository, scope, CommitSource::Fresh) {
            Ok(run) => run,
            Err(error @ HistoryError::Git(_)) => return Err(error),
            // A run that is not clear has completed nothing for sure.
            Err(_) => continue,
        };
        let tasks = done_in(repository, &run, plan)?;
        if !tasks.is_empty() {
            let has_session_branch = run.has_session_branch();
            found.push(MergedRun { branch: branch.clone(), has_session_branch, tasks });
        }
    }
    Ok(found)
}

fn done_in(repository: &Repository, run: &Run, plan: &Plan) -> Result<Vec<TaskId>, HistoryError> {
    let Some(Ok(frozen)) = Plan::read_frozen(repository, run.frozen_plan())? else {
        return Ok(Vec::new());
    };
    let leaves = plan.leaves().filter(|task| !task.mark.is_settled());
    let same = leaves.filter(|task| frozen.find(&task.id).is_some_and(|then| then.name == task.name));
    Ok(same.filter(|task| run.has_landed(&task.id)).map(|task| task.id.clone()).collect())
}
