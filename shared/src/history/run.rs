//! A run: what its start says, and what its commits say of each task.

use std::collections::HashMap;

use super::{
    Event, TaskHistory,
    entry::{Entry, Note},
    graph::Graph,
    reverts::{self, Reverts},
    walk::{Reading, Scope, Walk, other_run, walk},
};
use crate::{
    failure::{Exit, Explain},
    git::{GitError, Repository},
    message::{Key, PlanRef, Status},
    name::{BranchName, Oid, SessionId, TaskId},
};

/// Why the history of a run could not be told.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No branch is checked out.
    #[error("HEAD is detached, so it is not clear which run is meant")]
    Detached,
    /// The run in this history belongs to another name.
    #[error(
        "the run in the history of '{branch}' belongs to '{old}', a branch that is no more: was it renamed?"
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
    },
    /// Two runs were started side by side and then merged.
    #[error("two runs were started side by side, by {} and {}", commits[0].short(), commits[1].short())]
    ForkedRun {
        /// Their starts.
        commits: [Oid; 2],
    },
}

impl Explain for HistoryError {
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::Detached | Self::Shallow { .. } => Exit::Fatal,
            Self::Renamed { .. } | Self::ForkedRun { .. } => Exit::Person,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Detached => Some("name the run's branch: --scope <branch>".into()),
            Self::Renamed { old, .. } => Some(format!(
                "see the old run with --scope {old}\nbegin one under the new name with --new-run"
            )),
            Self::Shallow { .. } => Some("fetch more of it: git fetch --unshallow (or --deepen=<n>)".into()),
            Self::ForkedRun { .. } => Some("begin a run that follows both with --new-run".into()),
        }
    }
}

/// The commit that a run began with, and the plan that holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// The commit.
    pub commit: Oid,
    /// Its session.
    pub session: SessionId,
    /// The plan as it was frozen then, or accepted since.
    pub plan: Option<PlanRef>,
}

/// What history says about the run of a branch.
#[derive(Debug)]
pub struct Run {
    /// The branch and its tip.
    pub scope: Scope,
    /// The start, if there is one.
    pub start: Option<RunStart>,
    /// The tasks that history knows, in the order in which they first appear.
    pub tasks: Vec<TaskHistory>,
    /// How many commits of the run claim to be task commits and are not sound, so that they do not count.
    pub ignored: usize,
    /// The branch of another run that this history holds; only looked for where this branch has none of its own.
    pub other: Option<BranchName>,
}

impl Run {
    /// Reads the run of `scope`.
    pub fn scan(repository: &Repository, scope: Scope, reading: Reading) -> Result<Self, HistoryError> {
        let refs = repository.start_listing_refs(&[&scope.branch.task_refs()])?;
        let walk = walk(repository, &scope, reading)?;
        if walk.start.is_none() {
            refuse_renamed(repository, &scope, &walk.graph)?;
        }
        let start = run_start(&walk);
        let ignored = walk.graph.entries.iter().filter(|entry| matches!(entry.note, Note::Unsound)).count();
        let other = other_run(&walk.graph).cloned().filter(|_| start.is_none());
        let mut run = Self { scope, start, tasks: Vec::new(), ignored, other };
        run.tasks = run.fold(walk.graph);
        run.add_task_branches(repository, refs)?;
        Ok(run)
    }

    /// What history knows of a task.
    #[must_use]
    pub fn find(&self, task: &TaskId) -> Option<&TaskHistory> {
        self.tasks.iter().find(|history| history.id == *task)
    }

    /// A commit of another session says nothing about this run.
    pub(super) fn is_of_session(&self, event: &Event) -> bool {
        match (&self.start, event.trailers.get(Key::Session)) {
            (Some(start), Some(session)) => start.session.as_str() == session,
            _ => true,
        }
    }

    fn fold(&self, graph: Graph) -> Vec<TaskHistory> {
        let reverts = reverts::reverts(&graph);
        let mut groups = Groups::new(graph.entries.len());
        for node in graph.oldest_first() {
            if let Some(event) = graph.entry(node).event().filter(|event| self.is_of_session(event))
                && let Some(task) = event.task()
            {
                groups.add(task, node, &reverts);
            }
        }
        let newest = graph.newest(groups.tasks.len(), |node| groups.group_of[node as usize]);
        let mut entries = graph.entries;
        groups
            .tasks
            .into_iter()
            .zip(newest)
            .map(|(group, newest)| group.into_history(&newest, &mut entries))
            .collect()
    }
}

/// The events of a run by their tasks.
struct Groups {
    tasks: Vec<Group>,
    by_task: HashMap<TaskId, usize>,
    /// For each node the task that it counts for.
    group_of: Vec<Option<usize>>,
}

struct Group {
    task: TaskId,
    counted: Vec<u32>,
    cancelled: Vec<u32>,
    earlier: usize,
}

impl Group {
    fn into_history(self, newest: &[u32], entries: &mut [Entry]) -> TaskHistory {
        let id_of = |node: &u32| entries[*node as usize].id;
        let forks = if newest.len() > 1 { newest.iter().map(id_of).collect() } else { Vec::new() };
        let mut take = |nodes: Vec<u32>| {
            nodes.into_iter().filter_map(|node| entries[node as usize].take_event()).collect()
        };
        let (events, cancelled) = (take(self.counted), take(self.cancelled));
        TaskHistory::new(self.task, events, cancelled, forks).with_earlier(self.earlier)
    }
}

impl Groups {
    fn new(nodes: usize) -> Self {
        Self { tasks: Vec::new(), by_task: HashMap::new(), group_of: vec![None; nodes] }
    }

    fn add(&mut self, task: &TaskId, node: u32, reverts: &Reverts) {
        let at = match self.by_task.get(task) {
            Some(at) => *at,
            None => {
                self.by_task.insert(task.clone(), self.tasks.len());
                self.tasks.push(Group {
                    task: task.clone(),
                    counted: Vec::new(),
                    cancelled: Vec::new(),
                    earlier: 0,
                });
                self.tasks.len() - 1
            }
        };
        let group = &mut self.tasks[at];
        if reverts.cancelled.contains(node) {
            group.cancelled.push(node);
            return;
        }
        group.counted.push(node);
        if reverts.earlier.contains(node) {
            group.earlier = group.counted.len();
        }
        self.group_of[node as usize] = Some(at);
    }
}

/// Only a branch that is no more can have been renamed; one that lives on was branched off from.
fn refuse_renamed(repository: &Repository, scope: &Scope, graph: &Graph) -> Result<(), HistoryError> {
    let Some(old) = other_run(graph) else {
        return Ok(());
    };
    if repository.find_branch(old)?.is_some() {
        return Ok(());
    }
    Err(HistoryError::Renamed { branch: scope.branch.clone(), old: old.clone() })
}

fn run_start(walk: &Walk) -> Option<RunStart> {
    let graph = &walk.graph;
    let start = graph.entry(walk.start?).run_start()?;
    let session = start.session()?;
    let is_plan =
        |event: &&Event| event.status() == Status::Plan && event.session().as_ref() == Some(&session);
    let changed = graph.oldest_first().filter_map(|node| graph.entry(node).event()).filter(is_plan).last();
    let plan = changed.unwrap_or(start).trailers.plan();
    Some(RunStart { commit: start.commit, session, plan })
}
