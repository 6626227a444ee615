//! Histories with which a run cannot start: a person has to decide first.

use super::{Gardener, GardenerError};
use crate::{history::State, name::TaskId, plan::Task, record::Unfinished};

impl Gardener<'_> {
    /// Refuses tasks that were started or completed on their own branch: their work is not in the checkout, and has to
    /// continue in a lane.
    pub(super) fn refuse_own_branches(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let begun = self.find_begun_apart()?;
        let is_apart = |task: &&&Task| {
            let history = self.run.find(&task.id);
            history.is_some_and(|history| !history.is_landed && history.state.state != State::Failed)
                || begun.contains(&task.id)
        };
        match wanted.iter().find(is_apart) {
            Some(task) => Err(GardenerError::apart(&self.run, &self.tools.context.identity.run, &task.id)),
            None => Ok(()),
        }
    }

    /// Tasks that a killed run had started on their own branches before it committed anything.
    fn find_begun_apart(&self) -> Result<Vec<TaskId>, GardenerError> {
        let (run, mut found) = (&self.tools.context.identity.run, Vec::new());
        for mark in self.repository.list_refs(&[Unfinished::REFS])? {
            let Some(task) = Unfinished::task_of(&mark.name, run) else { continue };
            let is_here = mark.name.starts_with(&format!("{}{}/", Unfinished::REFS, run.component()));
            let is_of_run = match &self.run.start {
                Some(start) => self.repository.is_ancestor(start.commit, mark.target)?,
                None => false,
            };
            found.extend(Some(task).filter(|_| !is_here && is_of_run));
        }
        Ok(found)
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
