//! Collects what the summary of a run needs while it works.

use std::collections::{HashMap, HashSet};

use crate::{
    event::{EventKind, ForeignCommit, ReasonKind, ResolvedConflict, RunEvent, RunOpening},
    gardener::Summary,
    message::{Status, Step, one_line},
    name::TaskId,
    progress::RunTotals,
};

/// Facts about a run, collected from its events.
#[derive(Debug, Default)]
pub(super) struct RunLog {
    pub(super) opening: Option<RunOpening>,
    /// The time of the opening.
    since: i64,
    commits: usize,
    /// How many implement steps were begun and not interrupted.
    pub(super) implementations: usize,
    /// The attempts of which a step was begun, by task and number, without those that were interrupted.
    attempts: HashSet<(TaskId, u32)>,
    pub(super) spent: RunTotals,
    attempts_of: HashMap<TaskId, u32>,
    /// The tasks whose implement step is running.
    implementing: HashSet<TaskId>,
    reasons: HashMap<TaskId, String>,
    /// The tasks of which no attempt changed a file.
    unchanged: HashSet<TaskId>,
    /// Landings whose conflicts were resolved.
    pub(super) resolved: Vec<ResolvedConflict>,
    /// Commits on the run's branch that it did not make.
    pub(super) foreign: Vec<ForeignCommit>,
    /// Descriptions of changes to refs of the user.
    pub(super) moved_refs: Vec<String>,
    completed: Vec<TaskId>,
    failed: Vec<TaskId>,
}

impl RunLog {
    pub(super) fn begin(&mut self, opening: RunOpening, now: i64) {
        (self.opening, self.since) = (Some(opening), now);
    }

    /// The duration until `now`.
    pub(super) fn seconds(&self, now: i64) -> i64 {
        now.saturating_sub(self.since)
    }

    /// Whether nothing was committed.
    pub(super) fn is_empty(&self) -> bool {
        self.commits == 0
    }

    /// How many attempts were made or continued. One that was interrupted or not recorded does not count.
    pub(super) fn counted_attempts(&self) -> usize {
        let is_recorded = |(task, number): &&(TaskId, u32)| {
            !(self.implementing.contains(task) && *number == self.attempts_of(task))
        };
        self.attempts.iter().filter(is_recorded).count()
    }

    /// The number of the task's last attempt, counted from one.
    pub(super) fn attempts_of(&self, task: &TaskId) -> u32 {
        self.attempts_of.get(task).copied().unwrap_or(0)
    }

    /// Why the task's last failed step failed.
    pub(super) fn reason(&self, task: &TaskId) -> Option<&str> {
        self.reasons.get(task).map(String::as_str)
    }

    /// Whether no attempt at a task changed a file.
    pub(super) fn has_changed_nothing(&self, task: &TaskId) -> bool {
        self.unchanged.contains(task)
    }

    /// A summary of what is known when the run is stopped.
    pub(super) fn so_far(&self) -> Summary {
        Summary { completed: self.completed.clone(), failed: self.failed.clone(), ..Summary::default() }
    }

    pub(super) fn handle_event(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::StepBegins { step, attempt, is_phase, .. } => {
                let task = event.task.iter().cloned();
                if *step == Step::Implement {
                    self.implementations += 1;
                    self.implementing.extend(task.clone());
                }
                if !is_phase && matches!(step, Step::Implement | Step::Test | Step::Review) {
                    self.attempts.extend(task.clone().map(|task| (task, attempt.ordinal())));
                }
                self.attempts_of.extend(task.map(|task| (task, attempt.ordinal())));
            }
            EventKind::TurnCommitted { .. } => self.commits += 1,
            EventKind::ForeignCommits { commits, .. } => self.foreign.extend(commits.iter().cloned()),
            EventKind::RefMoved { words } => self.moved_refs.push(one_line(words)),
            EventKind::Recorded { status, why, spent, changes, .. } => {
                self.commits += 1;
                self.spent = self.spent.plus(spent.totals);
                let Some(task) = &event.task else { return };
                let was_implementing = self.implementing.remove(task);
                // An interrupted attempt does not count. It begins again with the same number.
                if why.as_ref().is_some_and(|why| why.kind == ReasonKind::Interrupted) {
                    self.implementations -= usize::from(was_implementing);
                    self.attempts.remove(&(task.clone(), self.attempts_of(task)));
                }
                if let Some(why) = why {
                    self.reasons.insert(task.clone(), why.line());
                }
                match status {
                    Status::ImplementPass if changes.has_nothing => {
                        self.unchanged.insert(task.clone());
                    }
                    Status::ImplementPass => {
                        self.unchanged.remove(task);
                    }
                    // A task that is done again because it could not land counts once.
                    Status::Complete if !self.completed.contains(task) => self.completed.push(task.clone()),
                    Status::Failed => self.failed.push(task.clone()),
                    _ => {}
                }
            }
            EventKind::Merged { commit, resolved_by: Some(by), .. } => {
                let (by, commit) = (by.clone(), commit.to_string());
                let task = event.task.iter().map(ToString::to_string);
                self.resolved.extend(task.map(|task| ResolvedConflict {
                    task,
                    by: by.clone(),
                    commit: commit.clone(),
                }));
            }
            _ => {}
        }
    }
}
