//! Brings the finished tasks of other workers here, and names those that cannot land.

use super::{Gardener, GardenerError, RunProgress};
use crate::{
    gardener::{land::CompletedTask, recover::save_branch},
    git::RefMove,
    history::{State, TaskHistory},
    name::{Oid, TaskId},
};

impl<'a> Gardener<'a> {
    /// Brings finished tasks of other workers here.
    pub(super) fn adopt(&mut self, course: &mut RunProgress<'_, 'a, '_>) -> Result<(), GardenerError> {
        let (Some((coordinator, _)), Some(lanes)) = (self.shared(), self.tools.lanes) else { return Ok(()) };
        let mut waiting = self.waiting_elsewhere(course);
        if waiting.is_empty() {
            return Ok(());
        }
        coordinator.fetch(&waiting)?;
        let sources: Vec<Oid> = waiting.iter().map(|(_, source)| *source).collect();
        let commits = self.repository.find_commits(&sources)?;
        for ((task, source), commit) in waiting.clone().into_iter().zip(commits) {
            if commit != Some(source) {
                self.distrust(course, (&task, source));
                continue;
            }
            let branch = self.tools.context.identity.run.task_branch(&task);
            let old = self.repository.find_branch(&branch)?;
            // A lane of this clone that has the branch checked out keeps its work.
            if old != Some(source) && !self.repository.checkouts_of(&branch)?.is_empty() {
                waiting.retain(|(kept, _)| *kept != task);
                continue;
            }
            if let Some(old) = old.filter(|old| *old != source) {
                save_branch(self.repository, &branch, old)?;
            }
            if old != Some(source) {
                let moved = RefMove { name: &branch.to_ref(), new: Some(source), old };
                self.repository.move_refs(&[moved], "arborist: finished by another worker")?;
            }
            lanes.queue.distrusted.take(&task);
        }
        self.read_again()?;
        for (task, source) in waiting {
            let history = self.run.find(&task);
            let is_complete = history.is_some_and(|history| history.state() == State::Complete);
            let is_there = history.and_then(TaskHistory::last).is_some_and(|event| event.commit == source);
            if is_complete && is_there {
                course.finished.push(CompletedTask::elsewhere(task, source));
            } else {
                self.distrust(course, (&task, source));
            }
        }
        Ok(())
    }

    /// Names a finished task whose branch is missing or does not complete the task, and does not wait for it to land.
    fn distrust(&mut self, course: &mut RunProgress<'_, 'a, '_>, (task, source): (&TaskId, Oid)) {
        let (Some((coordinator, _)), Some(lanes)) = (self.shared(), self.tools.lanes) else { return };
        coordinator.distrust(task, source);
        course.shared.outlook.finished.remove(task);
        course.shared.outlook.taken.insert(task.clone());
        self.run.forget(task);
        // Without a branch here, nothing is reset that would make the task trusted again.
        let branch = self.tools.context.identity.run.task_branch(task);
        if !matches!(self.repository.find_branch(&branch), Ok(None)) {
            lanes.queue.distrusted.add(task.clone());
        }
        let words = format!(
            "warning: at the remote: the claim on {task} says that it is finished, but {} is missing there or does not complete it; it can be taken over when the claim expires",
            source.short()
        );
        self.note_once(course, words);
    }
}
