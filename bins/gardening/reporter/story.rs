//! What is remembered of a run while it goes on, for its end.

use std::collections::{HashMap, HashSet};

use arborist_core::{
    gardener::Summary,
    message::Status,
    name::{BranchName, Oid, SessionId, TaskId},
    pipeline::{PipelineEvent, PipelineEventKind},
    progress::{RunTotals, Share},
};

use super::words;
use crate::{
    clock,
    gardening::account::{ResolvedDocument, SpentDocument},
};

/// How a run stands when it begins or goes on.
#[derive(Debug, Clone)]
pub(crate) struct RunOpening {
    pub(crate) branch: BranchName,
    pub(crate) session: SessionId,
    /// The commit before the first that is made.
    pub(crate) head: Oid,
    pub(crate) share: Share,
    pub(crate) failed: usize,
    pub(crate) max_attempts: u32,
    pub(crate) spent: RunTotals,
    /// Whether nobody is called.
    pub(crate) offline: bool,
    /// The options that it was asked for with, to be typed again: each with a space before it.
    pub(crate) options: String,
    /// Those of them that are not recorded, and which tasks were wanted, in the same way.
    pub(crate) again: String,
}

#[derive(Debug, Default)]
pub(super) struct Story {
    begun: Option<RunOpening>,
    since: i64,
    commits: usize,
    pub(super) attempts: usize,
    pub(super) spent: SpentDocument,
    attempts_of: HashMap<TaskId, u32>,
    reasons: HashMap<TaskId, String>,
    /// The tasks whose last attempt changed no file.
    unchanged: HashSet<TaskId>,
    /// What landed after a conflict had been resolved, and what people are told of that.
    pub(super) resolved: Vec<ResolvedDocument>,
    completed: Vec<TaskId>,
    failed: Vec<TaskId>,
}

impl Story {
    pub(super) fn begin(&mut self, begun: RunOpening) {
        self.begun = Some(begun);
        self.since = clock::now();
    }

    pub(super) fn begun(&self) -> Option<&RunOpening> {
        self.begun.as_ref()
    }

    /// How much of the plan is done by now.
    pub(super) fn share(&self) -> Share {
        let Share { done, total } = self.begun.as_ref().map_or_else(Share::default, |begun| begun.share);
        Share { done: (done + self.completed.len()).min(total), total }
    }

    /// Whether anything was written down.
    pub(super) fn is_empty(&self) -> bool {
        self.commits == 0
    }

    pub(super) fn seconds(&self) -> i64 {
        clock::now().saturating_sub(self.since)
    }

    /// The attempt that a task ended in, as people count.
    pub(super) fn attempts_of(&self, task: &TaskId) -> u32 {
        self.attempts_of.get(task).copied().unwrap_or(0)
    }

    /// Why the last step of a task that failed did.
    pub(super) fn reason(&self, task: &TaskId) -> Option<&str> {
        self.reasons.get(task).map(String::as_str)
    }

    /// Whether the last attempt at a task changed no file.
    pub(super) fn has_changed_nothing(&self, task: &TaskId) -> bool {
        self.unchanged.contains(task)
    }

    /// What is known where the run was stopped.
    pub(super) fn so_far(&self) -> Summary {
        Summary { completed: self.completed.clone(), failed: self.failed.clone(), ..Summary::default() }
    }

    pub(super) fn hear(&mut self, event: &PipelineEvent) {
        match &event.kind {
            PipelineEventKind::Begins { step, attempt, .. } => {
                self.attempts += usize::from(*step == "implement");
                let task = event.task.iter().cloned();
                self.attempts_of.extend(task.map(|task| (task, attempt.ordinal())));
            }
            PipelineEventKind::Committed { .. } => self.commits += 1,
            PipelineEventKind::Recorded { status, why, expense, .. } => {
                self.commits += 1;
                expense.usage.iter().for_each(|usage| self.spent.add(*usage));
                let Some(task) = &event.task else { return };
                if let Some(why) = why {
                    self.reasons.insert(task.clone(), words::one_line(why));
                }
                match status {
                    Status::ImplementPass if why.is_some() => {
                        self.unchanged.insert(task.clone());
                    }
                    Status::ImplementPass => {
                        self.unchanged.remove(task);
                    }
                    // One that is done again, because it could not land, counts once.
                    Status::Complete if !self.completed.contains(task) => self.completed.push(task.clone()),
                    Status::Failed => self.failed.push(task.clone()),
                    _ => {}
                }
            }
            PipelineEventKind::Merged { commit, resolved: Some((by, _)), .. } => {
                let (by, commit) = (by.clone(), commit.to_string());
                let task = event.task.iter().map(ToString::to_string);
                self.resolved.extend(task.map(|task| ResolvedDocument {
                    task,
                    by: by.clone(),
                    commit: commit.clone(),
                }));
            }
            _ => {}
        }
    }
}
