//! Histories with which a run cannot start: a person has to decide first.

use super::{Gardener, GardenerError};
use crate::{
    git::Repository,
    history::{Run, State},
    name::TaskId,
    plan::Task,
    record::Unfinished,
};

impl Gardener<'_> {
    /// Refuses tasks that were started or completed on their own branch: their work is not in the checkout, and has to
    /// continue in a lane.
    pub(super) fn refuse_own_branches(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        match find_begun_apart(self.repository, &self.run, wanted)? {
            Some(task) => {
                let scope = &self.tools.context.identity.run;
                Err(GardenerError::apart(self.repository, &self.run, scope, &task.id))
            }
            None => Ok(()),
        }
    }

    pub(super) fn refuse_forks(&self) -> Result<(), GardenerError> {
        match self.run.tasks.iter().find(|history| history.forks.len() > 1) {
            Some(history) => Err(GardenerError::Forked {
                task: history.id.clone(),
                commits: [history.forks[0], history.forks[1]],
            }),
            None => Ok(()),
        }
    }
}

/// The first of these tasks that was started on its own branch. Its work has to continue in a lane.
pub fn find_begun_apart<'a>(
    repository: &Repository,
    run: &Run,
    wanted: &[&'a Task],
) -> Result<Option<&'a Task>, GardenerError> {
    let marked = find_marked_apart(repository, run)?;
    let is_apart = |task: &&&Task| {
        let history = run.find(&task.id);
        history.is_some_and(|history| !history.is_landed && history.state() != State::Failed)
            || marked.contains(&task.id)
    };
    Ok(wanted.iter().find(is_apart).copied())
}

/// Tasks that a killed run had started on their own branches before it committed anything.
fn find_marked_apart(repository: &Repository, run: &Run) -> Result<Vec<TaskId>, GardenerError> {
    let (branch, mut found) = (&run.scope.branch, Vec::new());
    for mark in repository.list_refs(&[Unfinished::REFS])? {
        let Some(task) = Unfinished::task_of(&mark.name, branch) else { continue };
        let is_here = mark.name.starts_with(&format!("{}{}/", Unfinished::REFS, branch.component()));
        let is_of_run = match &run.start {
            Some(start) => repository.is_ancestor(start.commit, mark.target)?,
            None => false,
        };
        found.extend(Some(task).filter(|_| !is_here && is_of_run));
    }
    Ok(found)
}
