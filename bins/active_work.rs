//! What a run is doing right now, according to the run's lock and the marks of attempts. It never decides a task's
//! state; it only says that the task is in progress.

use std::collections::HashSet;

use arborist_core::{
    git::{Ref, Repository},
    history::State,
    message::Step,
    name::{BranchName, TaskId},
    process::{FileLock, Holder},
    progress::NodeProgress,
    record::{StepStatus, UnfinishedAttempt},
};

/// The state of a task while a step of it is in progress.
pub(crate) fn gerund(step: Step) -> Option<&'static str> {
    let state = match step {
        Step::Implement => State::Implementing,
        Step::Test => State::Testing,
        Step::Review => State::Reviewing,
        _ => return None,
    };
    Some(state.as_str())
}

/// The process at work, and its tasks.
pub(crate) struct ActiveWork {
    /// The process of the run that is at work on the branch.
    pub(crate) holder: Option<Holder>,
    /// Tasks with an attempt that has started and has no recorded end.
    begun: HashSet<TaskId>,
    repository: Repository,
    run: BranchName,
}

impl ActiveWork {
    pub(crate) fn find(repository: &Repository, branch: &BranchName, refs: &[Ref]) -> Self {
        let begun = refs.iter().filter_map(|found| UnfinishedAttempt::task_of(&found.name, branch)).collect();
        let holder = FileLock::find_holder(&repository.run_lock(branch));
        Self { holder, begun, repository: repository.clone(), run: branch.clone() }
    }

    /// What the run is doing for this task.
    pub(crate) fn doing(&self, node: &NodeProgress<'_>) -> Option<StepStatus> {
        let pid = self.holder.as_ref().filter(|_| self.has(node))?.pid;
        StepStatus::find(&self.repository, &self.run, node.id, pid)
    }

    /// The state of a task that the run is working on.
    pub(crate) fn step_of(&self, task: &TaskId) -> Option<&'static str> {
        let pid = self.holder.as_ref()?.pid;
        gerund(StepStatus::find(&self.repository, &self.run, task, pid)?.step)
    }

    /// Whether the run is working on this task.
    pub(crate) fn has(&self, node: &NodeProgress<'_>) -> bool {
        self.holder.is_some() && (node.state.is_under_way() || self.begun.contains(node.id))
    }

    /// Whether an attempt of this task was interrupted, so that the next run starts by recording it.
    pub(crate) fn has_cut_off(&self, node: &NodeProgress<'_>) -> bool {
        self.holder.is_none() && self.begun.contains(node.id)
    }
}
