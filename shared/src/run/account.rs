//! Computes the final account of a run from its history and its events.

use std::{collections::BTreeSet, path::Path};

use super::run_log::RunLog;
use crate::{
    event::{FailedTask, LeftTask, LeftTaskKind, RepoBranch, RunAccount, RunOpening, UnlandedTask},
    gardener::{Selection, Summary, Unlanded, wanted},
    history::{Run, State},
    message::one_line,
    name::{Attempt, BranchName, Oid, TaskId},
    plan::Plan,
    progress::{NodeProgress, PlanMarks, Progress, RestingState},
};

/// The inputs of an account.
pub(super) struct AccountFacts<'a> {
    pub(super) opening: &'a RunOpening,
    pub(super) log: &'a RunLog,
    pub(super) plan: &'a Plan,
    pub(super) selection: &'a Selection,
    /// The command, as it is typed without options.
    pub(super) typed_command: String,
    /// The options that select tasks, as they are typed.
    pub(super) typed_selection: String,
    pub(super) tip: Oid,
    pub(super) run: &'a Run,
    pub(super) summary: &'a Summary,
    pub(super) stopped: Option<&'a str>,
    /// The duration of the run.
    pub(super) seconds: i64,
    /// The worktree of a run that has a session branch.
    pub(super) session_worktree: Option<&'a Path>,
    /// The run's branches in other repositories, by repository name.
    pub(super) others: Vec<(String, BranchName)>,
    /// The repositories whose last push failed.
    pub(super) unpushed: &'a BTreeSet<String>,
    /// Failed tasks whose work is still on the run's branch.
    pub(super) remaining: Vec<TaskId>,
    /// Whether agents of the run could write to the git directory although there is a sandbox.
    pub(super) is_git_writable: bool,
    /// Whether the sandbox was turned off for agents of the run.
    pub(super) lacks_sandbox: bool,
}

impl AccountFacts<'_> {
    pub(super) fn account(&self) -> RunAccount {
        let Self { opening, log, summary, .. } = self;
        let progress = Progress::new(Some(self.plan), self.run, PlanMarks::Count);
        let share = progress.share();
        let nodes = |ids: &[TaskId]| ids.iter().filter_map(|id| progress.find(id)).collect::<Vec<_>>();
        let (failed, mut left) = (nodes(&summary.failed), nodes(&summary.left));
        let is_done = summary.is_well() && self.stopped.is_none();
        // A run that was stopped may not have landed what its agents completed.
        let is_landed = |task: &&TaskId| {
            self.stopped.is_none() || progress.find(task).is_some_and(NodeProgress::is_landed)
        };
        let (completed, pending): (Vec<&TaskId>, Vec<&TaskId>) =
            summary.completed.iter().partition(is_landed);
        // A task that did not land may count as not started, if its target was rewound.
        let is_unlanded = |id: &TaskId| {
            pending.contains(&id) || summary.unlanded.iter().any(|unlanded| unlanded.task == *id)
        };
        left.retain(|node| !is_unlanded(node.id));
        RunAccount {
            branch: opening.branch.to_string(),
            session: opening.session.to_string(),
            from: opening.head.to_string(),
            to: self.tip.to_string(),
            total: share.total,
            done: share.done,
            not_selected: self.count_not_selected(&progress),
            completed: completed.iter().map(ToString::to_string).collect(),
            unchanged: completed
                .iter()
                .filter(|task| log.has_changed_nothing(task))
                .map(ToString::to_string)
                .collect(),
            failed: failed.iter().map(|node| self.failure(node)).collect(),
            left: left.iter().map(|node| self.left_task(node)).collect(),
            unlanded: summary.unlanded.iter().map(unlanded).chain(pending.into_iter().map(stopped)).collect(),
            resolved: log.resolved.clone(),
            parked: summary.parked.as_ref().map(|parking| parking.way.command()),
            parked_because: summary.parked.as_ref().map(|parking| one_line(&parking.why)),
            attempts: log.counted_attempts(),
            spent: log.spent,
            offline: opening.offline,
            seconds: self.seconds,
            stopped: self.stopped.map(one_line),
            next: self.next(&progress),
            get_back: summary.parked.as_ref().and_then(|parking| parking.way.get_back()),
            worktree: self.session_worktree.map(|session_worktree| session_worktree.display().to_string()),
            merge: self.session_worktree.filter(|_| is_done).map(|_| format!("git merge {}", opening.branch)),
            others: if is_done { self.others.iter().map(other).collect() } else { Vec::new() },
            unpushed: self.unpushed.iter().cloned().collect(),
            foreign_commits: log.foreign.clone(),
            moved_refs: log.moved_refs.clone(),
            git_was_writable: self.is_git_writable && log.implementations > 0 && !opening.offline,
            lacked_sandbox: self.lacks_sandbox && log.implementations > 0 && !opening.offline,
        }
    }

    fn count_not_selected(&self, progress: &Progress<'_>) -> usize {
        let wanted = wanted(self.plan, self.selection);
        let is_left = |node: &&NodeProgress<'_>| {
            progress.is_left(node.id) && wanted.iter().all(|task| task.id != *node.id)
        };
        progress.counted().filter(is_left).count()
    }

    fn failure(&self, node: &NodeProgress<'_>) -> FailedTask {
        FailedTask {
            task: node.id.to_string(),
            name: one_line(node.name),
            // If a killed run used up the attempts, only history knows about them.
            attempts: self.log.attempts_of(node.id).max(node.attempt().map_or(0, Attempt::ordinal)),
            why: self.log.reason(node.id).map(str::to_owned),
            drop: self
                .remaining
                .contains(node.id)
                .then(|| format!("git arborist reset --drop {}{}", node.id, self.scope())),
        }
    }

    fn left_task(&self, node: &NodeProgress<'_>) -> LeftTask {
        let is_ready = node.resting_state() == RestingState::Ready && !node.is_undone();
        let was_begun = is_ready && self.log.attempts_of(node.id) > 0;
        let attempts = node.attempt().map_or(1, Attempt::ordinal);
        LeftTask {
            task: node.id.to_string(),
            name: one_line(node.name),
            state: node.state.as_str().to_owned(),
            words: if was_begun { "ready, its attempt did not count".to_owned() } else { node.words() },
            waits_for: node.waits_for.iter().map(ToString::to_string).collect(),
            kind: match node.state {
                State::Failed => LeftTaskKind::FailedEarlier { attempts },
                _ if is_ready && !was_begun => LeftTaskKind::Ready,
                _ => LeftTaskKind::Other,
            },
        }
    }

    /// The option for commands about a run whose branch is not the one that is checked out.
    fn scope(&self) -> String {
        self.session_worktree.map(|_| format!(" --scope {}", self.opening.branch)).unwrap_or_default()
    }

    /// The command that the user should run next.
    fn next(&self, progress: &Progress<'_>) -> Option<String> {
        if let Some(parking) = &self.summary.parked {
            return Some(parking.way.command());
        }
        if self.summary.is_well() && self.stopped.is_none() {
            return (!self.unpushed.is_empty()).then(|| "git arborist workspace push".to_owned());
        }
        if let Some(unlanded) = self.summary.unlanded.first() {
            return Some(unlanded.command.text(&unlanded.task, &self.scope()));
        }
        if self.opening.offline {
            return None;
        }
        let needs_retry = |node: &NodeProgress<'_>| node.state == State::Failed || node.needs_retry();
        let has_failed = progress.counted().any(needs_retry);
        let selects_too_little = self.selects_too_little(progress);
        let (mut options, mut again) = (self.opening.options.clone(), self.opening.again.clone());
        if selects_too_little {
            options = options.replace(&self.typed_selection, "");
            again = again.replace(&self.typed_selection, "");
        }
        let (options, again) = (self.raised(&options), self.raised(&again));
        let again = match progress.counted().any(NodeProgress::needs_retry) {
            true => format!(" --retry-failed{again}"),
            false => again,
        };
        let next = match (self.session_worktree, has_failed) {
            (Some(_), _) if again.is_empty() => {
                format!("git arborist session resume {}", self.opening.session)
            }
            (Some(_), _) => format!("git arborist session resume {} --{again}", self.opening.session),
            (None, false) => format!("{}{options}", self.typed_command),
            (None, true) => format!("{} --retry-failed{options}", self.typed_command),
        };
        Some(match &self.summary.blocking {
            Some(task) => format!("git arborist reset --drop {task}{} && {next}", self.scope()),
            None => next,
        })
    }

    /// Whether a selected task waits for one that is not selected, so that the same selection can never complete it.
    fn selects_too_little(&self, progress: &Progress<'_>) -> bool {
        let wanted = wanted(self.plan, self.selection);
        let is_outside = |need: &TaskId| {
            self.plan
                .leaves_of(need)
                .any(|leaf| progress.is_left(&leaf.id) && wanted.iter().all(|task| task.id != leaf.id))
        };
        let left = self.summary.left.iter().filter_map(|id| progress.find(id));
        !self.typed_selection.is_empty() && left.flat_map(|node| &node.waits_for).any(is_outside)
    }

    /// Raises a limit that stopped the run in the proposed command: the same limit would stop it again at once.
    fn raised(&self, options: &str) -> String {
        let Some((name, value)) = &self.summary.raise else { return options.to_owned() };
        let kept = match options.split_once(&format!(" {name} ")) {
            Some((before, after)) => format!("{before}{}", after.find(' ').map_or("", |end| &after[end..])),
            None => options.to_owned(),
        };
        format!("{kept} {name} {value}")
    }
}

fn other((repo, branch): &(String, BranchName)) -> RepoBranch {
    RepoBranch { repo: repo.clone(), branch: branch.to_string() }
}

fn unlanded(unlanded: &Unlanded) -> UnlandedTask {
    UnlandedTask { task: unlanded.task.to_string(), why: one_line(&unlanded.why) }
}

/// A task that was complete but had not landed when the run was stopped.
fn stopped(task: &TaskId) -> UnlandedTask {
    UnlandedTask { task: task.to_string(), why: "the run was stopped before it landed".to_owned() }
}
