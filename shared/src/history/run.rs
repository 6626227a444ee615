//! A run: its start, and the history of each task.

use std::collections::HashSet;

use super::{
    CommitCache, Event, ReadAhead, State, TaskHistory, TaskWork, WorkBase,
    branches::Branches,
    event::{CommitMeaning, HistoryEntry},
    graph::Graph,
    merged_by_hand::HandMerges,
    reverts::Reverts,
    tasks::{self, CommitFacts},
    walk::{CommitSource, RunCommits, RunScope, Walker},
};
use crate::{
    failure::{Exit, Explain, Explanation},
    git::{GitError, Ref, Repository},
    message::{Key, PlanRef, Status},
    name::{BranchName, Oid, SessionId, TaskId},
};

/// Why the history of a run could not be determined.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No branch is checked out.
    #[error("HEAD is detached{}, so this command does not know which run you mean", .operation.map(|what| format!(" during a {what}")).unwrap_or_default())]
    Detached {
        /// The branch that is rebased, or else a branch at the same commit.
        branch: Option<BranchName>,
        /// The operation that detached it.
        operation: Option<&'static str>,
    },
    /// The run in this history belongs to another branch name.
    #[error(
        "the run in the history of '{branch}' belongs to the branch '{old}', which does not exist (was it renamed?)"
    )]
    Renamed {
        /// The branch that was asked for.
        branch: BranchName,
        /// The branch that the run names.
        old: BranchName,
    },
    /// History ends before the run's start.
    #[error("this is a shallow clone, and its history ends at {} before the start of the run", edge.short())]
    Shallow {
        /// The last commit that is here.
        edge: Oid,
        /// Whether commits of the run are here, so that it must have begun.
        has_begun: bool,
    },
    /// A newer version of git arborist has written the run.
    #[error(
        "the run on '{branch}' was recorded in format {format}, and this version of git arborist reads format {} only",
        RunStart::FORMAT
    )]
    Newer {
        /// The branch of the run.
        branch: BranchName,
        /// Its format.
        format: u32,
    },
    /// The plan was changed on two sides that were then merged.
    #[error("both sides of a merge changed the plan of the run: commits {} and {}", commits[0].short(), commits[1].short())]
    ForkedPlan {
        /// The changes.
        commits: [Oid; 2],
    },
    /// Two runs were started on two sides that were then merged.
    #[error("both sides of a merge started a run: commits {} and {}", commits[0].short(), commits[1].short())]
    ForkedRun {
        /// Their starts.
        commits: [Oid; 2],
    },
}

impl Explain for HistoryError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Detached { operation: Some(_), .. } => {
                Exit::Fatal.hint("finish or cancel it, as 'git status' says")
            }
            Self::Detached { branch, .. } => {
                let branch = branch.as_ref().map_or("<branch>", BranchName::as_str);
                Exit::Fatal.hint(format!("check out the run's branch: git switch {branch}"))
            }
            Self::Renamed { branch, old } => Exit::Person.hint(format!(
                "see the old run: git arborist state --scope {old}\nto continue it, give the branch its old name: git branch -m {branch} {old}\nor start a run under the new name: git arborist gardener --new-run"
            )),
            Self::Shallow { .. } => Exit::Fatal.hint("fetch the rest: git fetch --unshallow"),
            Self::ForkedRun { .. } => {
                Exit::Person.hint("start a new run after both: git arborist gardener --new-run")
            }
            Self::Newer { format, .. } => Exit::No.hint(format!(
                "install a version of git arborist that reads format {format}; this is {}",
                env!("CARGO_PKG_VERSION")
            )),
            Self::ForkedPlan { .. } => Exit::Person.hint("revert one of these two commits: git revert <commit>"),
        }
    }
}

/// The first commit of a run, and the plan that is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// The commit.
    pub commit: Oid,
    /// Its session.
    pub session: SessionId,
    /// The commit whose plan and configuration are in effect: the start, or the last accepted change of the plan.
    pub accepted: Oid,
    /// The plan in that commit.
    pub plan: Option<PlanRef>,
    /// All commits that changed the plan or the configuration, oldest first.
    pub changes: Vec<Oid>,
    /// The session whose work it continues, if it is a replay.
    pub replays: Option<SessionId>,
    /// Whether a worker that shares the plan with others started it.
    is_by_worker: bool,
    /// Whether nothing limited its agents and tests, because the system had no sandbox.
    pub lacks_sandbox: bool,
}

impl RunStart {
    /// The version of the format in which this version of git arborist records runs.
    pub const FORMAT: u32 = 1;
}

/// The history of the run of a branch.
#[derive(Debug)]
pub struct Run {
    /// The branch and its tip.
    pub scope: RunScope,
    /// The start, if there is one.
    pub start: Option<RunStart>,
    /// The tasks in history, in the order in which they first appear.
    pub tasks: Vec<TaskHistory>,
    /// How many commits of the run claim to be task commits and do not count: they are not sound, or lack what they
    /// need (the review before a `complete`, the `complete` before a `merge`).
    pub ignored: usize,
    /// The completions and landings among them that lack what they need.
    pub unproven: Vec<Event>,
    /// The branches of other runs in this history, newest first. Only determined if this branch has no run.
    pub others: Vec<BranchName>,
}

impl Run {
    /// Reads the run of `scope`.
    pub fn scan(
        repository: &Repository,
        scope: RunScope,
        reading: CommitSource,
    ) -> Result<Self, HistoryError> {
        let refs = repository.start_listing_refs(&[&scope.branch.task_refs()])?;
        Self::scan_beside(repository, scope, reading, || refs.finish())
    }

    /// Reads the run of `scope` for display, with refs that were already listed, including the branches of the run's tasks, and with
    /// commits that may already have been read.
    pub fn scan_listed(
        repository: &Repository,
        scope: RunScope,
        ahead: Option<ReadAhead>,
        refs: Vec<Ref>,
    ) -> Result<Self, HistoryError> {
        Self::scan_by(repository, scope, |walker| walker.walk_cached(ahead), || Ok(refs))
    }

    /// Reads the run of `scope` with refs that are still being listed.
    pub fn scan_beside(
        repository: &Repository,
        scope: RunScope,
        reading: CommitSource,
        refs: impl FnOnce() -> Result<Vec<Ref>, GitError>,
    ) -> Result<Self, HistoryError> {
        Self::scan_by(repository, scope, |walker| walker.walk(reading), refs)
    }

    /// Reads the run of `scope` from git, except for what `memory` contains.
    pub fn scan_again(
        repository: &Repository,
        scope: RunScope,
        refs: Vec<Ref>,
        memory: &CommitCache,
    ) -> Result<Self, HistoryError> {
        Self::scan_by(repository, scope, |walker| memory.walk(walker), || Ok(refs))
    }

    fn scan_by(
        repository: &Repository,
        scope: RunScope,
        walk: impl FnOnce(&Walker<'_>) -> Result<RunCommits, HistoryError>,
        refs: impl FnOnce() -> Result<Vec<Ref>, GitError>,
    ) -> Result<Self, HistoryError> {
        let Some(tip) = scope.tip else {
            return Ok(Self {
                scope,
                start: None,
                tasks: Vec::new(),
                ignored: 0,
                unproven: Vec::new(),
                others: Vec::new(),
            });
        };
        let walker = Walker { repository, branch: &scope.branch, tip };
        let walk = walk(&walker)?;
        if walk.start.is_none() {
            refuse_renamed(repository, &scope, &walk.graph)?;
        }
        let reverts = Reverts::find(&walk.graph, |_| true);
        let start = run_start(&walk, &reverts)?;
        let branches = Branches::read(&walker, refs()?, &walk.graph)?;
        let unsound =
            walk.graph.entries.iter().filter(|entry| matches!(entry.note, CommitMeaning::Malformed)).count();
        let others = if start.is_none() { other_runs(&walk.graph.entries) } else { Vec::new() };
        let session = start.as_ref().map(|start| &start.session);
        let sources = CommitFacts::of(repository);
        let ignored = unsound + branches.ignored();
        let hand_merges = HandMerges::find(&walk.graph, tip, !branches.is_empty());
        let (mut tasks, unproven) = if branches.is_empty() {
            let groups = tasks::group(&walk.graph, session, |_| true);
            let judged = tasks::judge_all(&walk.graph, sources, groups, &reverts);
            let unproven = tasks::unproven(&walk.graph, judged.iter());
            (tasks::histories(walk.graph, judged), unproven)
        } else {
            branches.fold(walk, session, sources)
        };
        hand_merges.mark(repository, &mut tasks)?;
        let ignored = ignored + unproven.len();
        Ok(Self { scope, start, tasks, ignored, unproven, others })
    }

    /// The branches of all runs in the history of `scope`, newest first, except its own. In a shallow clone, only those
    /// that are there.
    pub fn scan_others(repository: &Repository, scope: &RunScope) -> Result<Vec<BranchName>, HistoryError> {
        let Some(tip) = scope.tip else {
            return Ok(Vec::new());
        };
        let walker = Walker { repository, branch: &scope.branch, tip };
        Ok(other_runs(&walker.read_all(&[tip.to_string()])?.entries))
    }

    /// The state that the work of a task at `tip` is compared with; `None` if it has no commits yet.
    pub fn find_base(
        &self,
        repository: &Repository,
        task: &TaskId,
        tip: Oid,
    ) -> Result<Option<WorkBase>, GitError> {
        match self.start_of_work(task) {
            Some((start, session)) => {
                WorkBase::find(repository, TaskWork { task, session: &session, start, tip }).map(Some)
            }
            None => Ok(None),
        }
    }

    /// From where history must be read to find the base of a task; `None` if it has no commits. Most tasks begin and
    /// end in one process, and their base then costs no call of git.
    #[must_use]
    pub fn start_of_work(&self, task: &TaskId) -> Option<(Oid, SessionId)> {
        let start = self.start.as_ref()?;
        // In a replay, all commits of a task may belong to the other session.
        let may_have_begun = self.find(task).is_some() || start.replays.is_some();
        may_have_begun.then(|| (start.commit, start.session.clone()))
    }

    /// The tasks that are complete on its branch.
    #[must_use]
    pub fn landed_tasks(&self) -> HashSet<TaskId> {
        self.tasks.iter().filter(|history| history.has_landed()).map(|history| history.id.clone()).collect()
    }

    /// The plan that it was frozen with, if it has started with one.
    #[must_use]
    pub fn frozen_plan(&self) -> Option<&PlanRef> {
        self.start.as_ref()?.plan.as_ref()
    }

    /// Whether its branch was created for its session, and has the name of it.
    #[must_use]
    pub fn has_session_branch(&self) -> bool {
        let is_of = |start: &RunStart| self.scope.branch.as_str().ends_with(&format!("/{}", start.session));
        self.start.as_ref().is_some_and(is_of)
    }

    /// Whether workers on several machines share its plan: one of them started it, or has landed a task.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        let is_by_worker = |event: &Event| event.trailers.get(Key::Worker).is_some();
        self.start.as_ref().is_some_and(|start| start.is_by_worker)
            || self.tasks.iter().any(|task| task.events.last().is_some_and(is_by_worker))
    }

    /// Whether a session did work of a task that counts in this run. In a replay, that may be the session it started
    /// from.
    #[must_use]
    pub fn has_work_of(&self, session: &SessionId, task: &TaskId) -> bool {
        let is_of = |event: &Event| event.session().as_ref() == Some(session);
        self.start.as_ref().is_some_and(|start| start.session == *session)
            || self.find(task).is_some_and(|history| history.events.iter().any(is_of))
    }

    /// The history of a task.
    #[must_use]
    pub fn find(&self, task: &TaskId) -> Option<&TaskHistory> {
        self.tasks.iter().find(|history| history.id == *task)
    }

    /// The state of a task, which is pending if it has no history.
    #[must_use]
    pub fn state_of(&self, task: &TaskId) -> State {
        self.find(task).map_or(State::Pending, TaskHistory::state)
    }

    /// Whether a task is complete and on the run's branch.
    #[must_use]
    pub fn has_landed(&self, task: &TaskId) -> bool {
        self.find(task).is_some_and(TaskHistory::has_landed)
    }
}

/// A branch can only have been renamed if its old name is gone. If that still exists, here or on a remote, this branch
/// was created from it.
fn refuse_renamed(repository: &Repository, scope: &RunScope, graph: &Graph) -> Result<(), HistoryError> {
    let Some(old) = renamed_run(repository, scope, graph)? else {
        return Ok(());
    };
    let is_remote = |found: &Ref| {
        found
            .name
            .strip_prefix("refs/remotes/")
            .is_some_and(|name| name.split_once('/').is_some_and(|(_, branch)| branch == old.as_str()))
    };
    if repository.find_branch(old)?.is_some()
        || repository.list_refs(&["refs/remotes/"])?.iter().any(is_remote)
    {
        return Ok(());
    }
    Err(HistoryError::Renamed { branch: scope.branch.clone(), old: old.clone() })
}

/// The start, with the last change of the plan that was not reverted. It is an error if there are two last changes.
fn run_start(walk: &RunCommits, reverts: &Reverts) -> Result<Option<RunStart>, HistoryError> {
    let graph = &walk.graph;
    let Some(start) = walk.start.and_then(|start| graph.entry(start).run_start()) else {
        return Ok(None);
    };
    let Some(session) = start.session() else {
        return Ok(None);
    };
    let format = start.trailers.format();
    if format > RunStart::FORMAT {
        return Err(HistoryError::Newer { branch: start.subject.branch.clone(), format });
    }
    let is_change = |node: &u32| {
        let event = graph.entry(*node).event();
        event
            .is_some_and(|event| event.status() == Status::Plan && event.session().as_ref() == Some(&session))
    };
    let changes: Vec<u32> = graph.oldest_first().filter(is_change).collect();
    let counted = reverts.judge(graph, &changes).counted;
    let is_followed =
        |node: &u32| counted.iter().any(|other| other != node && graph.is_ancestor(*node, *other));
    let last: Vec<u32> = counted.iter().copied().filter(|node| !is_followed(node)).collect();
    let accepted = match last.as_slice() {
        [] => start,
        [only] => graph.entry(*only).event().unwrap_or(start),
        [a, b, ..] => {
            return Err(HistoryError::ForkedPlan { commits: [graph.entry(*a).id, graph.entry(*b).id] });
        }
    };
    Ok(Some(RunStart {
        commit: start.commit,
        session,
        accepted: accepted.commit,
        plan: accepted.trailers.plan(),
        changes: counted.iter().map(|node| graph.entry(*node).id).collect(),
        replays: start.trailers.get(Key::Replays).and_then(|session| session.parse().ok()),
        is_by_worker: start.trailers.get(Key::Worker).is_some(),
        lacks_sandbox: start.trailers.get(Key::Sandbox) == Some("none"),
    }))
}

/// The branches of runs with another name among these commits.
fn other_runs(entries: &[HistoryEntry]) -> Vec<BranchName> {
    let mut branches = Vec::new();
    for entry in entries {
        if let CommitMeaning::OtherRun(branch) | CommitMeaning::OtherSession(branch) = &entry.note
            && !branches.contains(branch)
        {
            branches.push(branch.clone());
        }
    }
    branches
}

/// The branch of a run in this history that could be this branch under another name. The branch of a merged session is
/// not: its start came here with everything else. It is if this branch itself was at that start.
fn renamed_run<'a>(
    repository: &Repository,
    scope: &RunScope,
    graph: &'a Graph,
) -> Result<Option<&'a BranchName>, GitError> {
    for entry in &graph.entries {
        match &entry.note {
            CommitMeaning::OtherRun(branch) => return Ok(Some(branch)),
            CommitMeaning::OtherSession(branch)
                if repository.is_in_reflog(&scope.branch.to_ref(), entry.id)? =>
            {
                return Ok(Some(branch));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Where an event was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPosition {
    /// On the run's branch.
    Run,
    /// On the task's own branch only.
    Task,
}

impl Run {
    /// Adds an event that was just recorded. It follows all known events of its task.
    pub fn grow(&mut self, event: Event, position: EventPosition) {
        let Some(task) = event.task().cloned() else {
            return;
        };
        let at = self.tasks.iter().position(|history| history.id == task).unwrap_or_else(|| {
            self.tasks.push(TaskHistory::new(task, Vec::new(), Vec::new(), Vec::new()));
            self.tasks.len() - 1
        });
        let newest = self.tasks.iter().map(|history| history.place).max().unwrap_or(0);
        let history = self.tasks.swap_remove(at);
        let TaskHistory { id, mut events, cancelled, earlier, mut place, .. } = history;
        // If the run was read again while the task was under way, the event is known.
        if events.iter().all(|known| known.commit != event.commit) {
            events.push(event);
            place = newest + 1;
        }
        let mut grown = TaskHistory::new(id, events, cancelled, Vec::new()).with_earlier(earlier);
        (grown.is_landed, grown.place) = (position == EventPosition::Run, place);
        self.tasks.push(grown);
        let last = self.tasks.len() - 1;
        self.tasks.swap(at, last);
    }

    /// Forgets what a task did on its own branch, because the branch is gone and the task starts again.
    pub fn forget(&mut self, task: &TaskId) {
        self.tasks.retain(|history| history.id != *task);
    }
}
