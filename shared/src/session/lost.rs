//! Tasks whose work is no longer on the branch of their run: the branch was reset, or rewritten without their commits.
//! Records keep these commits, so they can be named.

use super::{Driver, SessionError, SessionReader};
use crate::{
    git::{GitError, Repository},
    history::{CommitSource, Run, RunScope, State, TaskHistory},
    name::{Oid, TaskId},
};

/// The tasks that were complete on the branch when the last record was written and are not now, each with its last
/// commit at that time.
pub fn find_lost_tasks(repository: &Repository, run: &Run) -> Result<Vec<(TaskId, Oid)>, GitError> {
    let RunScope { branch, tip: Some(tip) } = &run.scope else { return Ok(Vec::new()) };
    let Some(recorded) = find_recorded_tip(repository, run)? else { return Ok(Vec::new()) };
    let is_event = |history: &TaskHistory| history.events.iter().any(|event| event.commit == recorded);
    // The reflog proves that the branch was there. A record that was fetched may be ahead of the branch.
    let is_lost = recorded != *tip
        && !run.tasks.iter().any(is_event)
        && !repository.is_ancestor(recorded, *tip).unwrap_or(true)
        && repository.is_in_reflog(&branch.to_ref(), recorded)?;
    if !is_lost {
        return Ok(Vec::new());
    }
    let scope = RunScope { branch: branch.clone(), tip: Some(recorded) };
    let Ok(before) = Run::scan(repository, scope, CommitSource::Fresh) else { return Ok(Vec::new()) };
    let is_done = |history: &TaskHistory| history.state.state == State::Complete && history.is_landed;
    let lost = before.tasks.iter().filter(|history| is_done(history));
    let lost =
        lost.filter(|history| run.find(&history.id).is_none_or(|now| now.state.state == State::Pending));
    Ok(lost.filter_map(|history| Some((history.id.clone(), history.last()?.commit))).collect())
}

/// The tip of the branch when the last record of the run's session was written. If the branch has no run, the last
/// session that worked on it counts.
fn find_recorded_tip(repository: &Repository, run: &Run) -> Result<Option<Oid>, GitError> {
    let reader = SessionReader::new(repository);
    let found = match &run.start {
        Some(start) => reader.newest(&start.session),
        None => reader.list().map(|list| {
            list.sessions.into_iter().find(|stored| {
                let context = &stored.record.context;
                context.branch == run.scope.branch && context.driver == Driver::Run
            })
        }),
    };
    match found {
        Ok(stored) => Ok(stored.map(|stored| stored.record.context.tip)),
        Err(SessionError::Git(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
