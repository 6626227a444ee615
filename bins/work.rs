//! What a run has in hand at this moment. It is asked of the run's lock and of the marks of attempts, and never decides a
//! task's state: only that nobody else should take it up.

use std::collections::HashSet;

use arborist_core::{
    git::{Ref, Repository},
    history::State,
    name::{BranchName, TaskId},
    process::{FileLock, Holder},
    progress::{NodeProgress, Progress},
    record::{StepStatus, Unfinished},
};

/// The state that a task is in while a step of it is under way.
pub(crate) fn gerund(step: &str) -> Option<&'static str> {
    let states = [("implement", State::Implementing), ("test", State::Testing), ("review", State::Reviewing)];
    states.iter().find(|(name, _)| *name == step).map(|(_, state)| state.as_str())
}

/// Who is at work, and on what.
pub(crate) struct ActiveWork {
    /// The run that holds the branch, if one goes on.
    pub(crate) holder: Option<Holder>,
    /// Tasks with an attempt that has begun and is not written down.
    begun: HashSet<TaskId>,
    repository: Repository,
    run: BranchName,
}

impl ActiveWork {
    pub(crate) fn find(repository: &Repository, branch: &BranchName, refs: &[Ref]) -> Self {
        let begun = refs.iter().filter_map(|found| Unfinished::task_of(&found.name, branch)).collect();
        let holder = FileLock::find_holder(&repository.run_lock(branch));
        Self { holder, begun, repository: repository.clone(), run: branch.clone() }
    }

    /// What the run that goes on does for this task.
    pub(crate) fn doing(&self, standing: &NodeProgress<'_>) -> Option<StepStatus> {
        let pid = self.holder.as_ref().filter(|_| self.has(standing))?.pid;
        StepStatus::find(&self.repository, &self.run, standing.id, pid)
    }

    /// The state that the run that goes on has a task in at this moment, if it is at work on it.
    pub(crate) fn step_of(&self, task: &TaskId) -> Option<&'static str> {
        let pid = self.holder.as_ref()?.pid;
        gerund(&StepStatus::find(&self.repository, &self.run, task, pid)?.step)
    }

    /// Whether a run that goes on has this task in hand.
    pub(crate) fn has(&self, standing: &NodeProgress<'_>) -> bool {
        self.holder.is_some() && (standing.state.is_under_way() || self.begun.contains(standing.id))
    }

    /// Whether an attempt of this task was cut off, so that the next run begins by writing it down.
    pub(crate) fn has_cut_off(&self, standing: &NodeProgress<'_>) -> bool {
        self.holder.is_none() && self.begun.contains(standing.id)
    }

    /// What a run has in hand is not ready for anybody else.
    pub(crate) fn hold(&self, progress: &mut Progress<'_>) {
        for standing in &mut progress.standings {
            if self.has(standing) {
                standing.is_ready = false;
            }
        }
    }
}
