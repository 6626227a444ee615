//! The facts about each worktree: its path, the state of its task, and the distance of its branch.

use std::{collections::HashMap, path::Path, thread};

use arborist_core::{
    cleanup::size_of,
    failure::Failure,
    gardener::{GardenerError, find_lost_branches},
    git::{Distance, Repository},
    history::{CommitSource, Run, RunScope},
    message::visible,
    name::{BranchName, Oid, TASK_BRANCHES, TaskId},
    process::Holder,
    record::UnfinishedAttempt,
    session::forget_unrecorded,
    worktree::{Pool, WorktreeKind, WorktreeStatusRow},
};

use super::open::OpenWorktrees;
use crate::active_work::ActiveWork;

/// One line of a list.
#[derive(Debug)]
pub(super) struct WorktreeRow {
    pub(super) task: Option<TaskId>,
    pub(super) run: Option<BranchName>,
    pub(super) branch: Option<BranchName>,
    /// `None` for a branch without a worktree.
    pub(super) status: Option<WorktreeStatusRow>,
    pub(super) head: Option<Oid>,
    /// The task's state according to history, or `free`, `session`, `missing`, `broken`; `lost` if its
    /// branch was deleted.
    pub(super) state: &'static str,
    /// Whether its task has begun and no run is working on it.
    pub(super) is_paused: bool,
    pub(super) distance: Option<Distance>,
    pub(super) long: Option<Long>,
}

/// Facts that require reading every file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long {
    /// The number of uncommitted paths.
    pub(super) dirty: usize,
    /// The size in bytes.
    pub(super) size: u64,
}

/// Which rows are wanted besides worktrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtraRows {
    Worktrees,
    Branches,
}

/// All rows, in git's order.
pub(super) fn collect(opened: &OpenWorktrees, wanted: ExtraRows) -> Result<Vec<WorktreeRow>, Failure> {
    let OpenWorktrees { repository, pool, .. } = opened;
    let (standings, known) = thread::scope(|scope| {
        let reading = scope.spawn(|| read_first(opened));
        (pool.survey(), reading.join().unwrap_or_default())
    });
    let standings = standings?;
    let mut branches: Vec<(BranchName, Oid)> = Vec::new();
    if wanted == ExtraRows::Branches {
        let refs = repository.list_refs(&[&format!("refs/heads/{TASK_BRANCHES}")])?.into_iter();
        let named = refs
            .filter_map(|found| Some((found.name.strip_prefix("refs/heads/")?.parse().ok()?, found.target)));
        branches = named
            .filter(|(branch, _)| !standings.iter().any(|s| s.branch.as_ref() == Some(branch)))
            .collect();
    }
    let mut rows: Vec<WorktreeRow> = standings.into_iter().map(WorktreeRow::of_worktree).collect();
    rows.extend(branches.into_iter().map(|(branch, tip)| WorktreeRow::of_branch(branch, tip)));
    let mut runs = Runs { repository, known };
    for row in &mut rows {
        runs.add_history(row)?;
    }
    Ok(rows)
}

impl WorktreeRow {
    fn of_worktree(status: WorktreeStatusRow) -> Self {
        let state = match &status {
            status if status.is_missing => "missing",
            status if status.is_broken => "broken",
            status if status.is_free() => "free",
            status if status.kind == WorktreeKind::Session => "session",
            _ => "pending",
        };
        let (task, branch, head) = (status.task.clone(), status.branch.clone(), status.head);
        Self {
            task,
            run: None,
            branch,
            head,
            state,
            is_paused: false,
            distance: None,
            long: None,
            status: Some(status),
        }
    }

    fn of_branch(branch: BranchName, tip: Oid) -> Self {
        let task = branch.as_str().rsplit('/').next().and_then(|name| name.parse().ok());
        let state = "pending";
        Self {
            task,
            run: None,
            branch: Some(branch),
            head: Some(tip),
            state,
            is_paused: false,
            distance: None,
            long: None,
            status: None,
        }
    }

    /// The task, or a substitute.
    pub(super) fn title(&self) -> String {
        match (&self.task, &self.status) {
            (Some(task), _) => task.to_string(),
            (None, Some(status)) => status.name(),
            (None, None) => String::new(),
        }
    }

    /// The state for people, in the words of `git arborist state`.
    pub(super) fn word(&self) -> &'static str {
        if self.is_paused { "paused" } else { self.state }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.status.as_ref().map(|status| status.kind) {
            Some(WorktreeKind::Lane) => "lane",
            Some(WorktreeKind::Named) => "task",
            Some(WorktreeKind::Session) => "session",
            Some(WorktreeKind::Foreign) => "foreign",
            None => "branch",
        }
    }

    pub(super) fn holder(&self) -> Option<&Holder> {
        self.status.as_ref()?.holder.as_ref()
    }

    /// The error for work whose branch was deleted: where its commits still are.
    pub(super) fn find_lost(&self, opened: &OpenWorktrees) -> Result<Option<Failure>, Failure> {
        let (Some(run), "lost") = (&self.run, self.state) else { return Ok(None) };
        let lost = find_lost_branches(&opened.repository, run)?.into_iter();
        let mut lost = lost.filter(|lost| Some(&lost.branch) == self.branch.as_ref());
        Ok(lost.next().map(|lost| GardenerError::Lost(lost).into()))
    }

    /// Reads every file. A missing worktree has none.
    pub(super) fn lengthen(&mut self, pool: &Pool) -> Result<(), Failure> {
        let is_readable = |status: &&WorktreeStatusRow| !status.is_missing && !status.is_broken;
        let Some(status) = self.status.as_ref().filter(is_readable) else {
            return Ok(());
        };
        let dirty = pool.view(status)?.changed_paths()?.len();
        self.long = Some(Long { dirty, size: size_of(&status.path) });
        Ok(())
    }
}

/// The states of runs, each read once.
struct Runs<'a> {
    repository: &'a Repository,
    known: HashMap<BranchName, Known>,
}

struct Known {
    run: Run,
    work: ActiveWork,
    distances: HashMap<String, Distance>,
}

impl Known {
    /// Reads a run and the distances of its branches, with one git command for all. Branches that are not ahead are
    /// left out.
    fn read(repository: &Repository, run: &BranchName, tip: Oid) -> Result<Self, Failure> {
        let mut distances = HashMap::new();
        let scope = RunScope { branch: run.clone(), tip: Some(tip) };
        let mut read = thread::scope(|threads| {
            let in_background = threads.spawn(|| repository.distances(&run.task_refs(), tip));
            Run::scan_beside(repository, scope, CommitSource::Cached, || {
                let found = in_background.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                distances.extend(found.iter().map(|(branch, far)| (branch.name.clone(), *far)));
                let ahead = found.into_iter().filter(|(_, far)| far.ahead > 0);
                Ok(ahead.map(|(branch, _)| branch).collect())
            })
        })?;
        forget_unrecorded(repository, &mut read)?;
        let marks = repository.list_refs(&[UnfinishedAttempt::REFS])?;
        Ok(Self { run: read, work: ActiveWork::find(repository, run, &marks), distances })
    }
}

/// Most worktrees belong to the checked out run, so it is read while they are listed. If that fails, it is read again
/// when needed.
fn read_first(opened: &OpenWorktrees) -> HashMap<BranchName, Known> {
    let OpenWorktrees { repository, scope: RunScope { branch, .. }, pool, .. } = opened;
    let tip = repository.head.commit.filter(|_| repository.head.branch.as_ref() == Some(branch));
    let known = tip.filter(|_| pool.count() > 0).and_then(|tip| Known::read(repository, branch, tip).ok());
    known.map(|known| (branch.clone(), known)).into_iter().collect()
}

impl Runs<'_> {
    fn add_history(&mut self, row: &mut WorktreeRow) -> Result<(), Failure> {
        let Some(branch) = row.branch.clone() else {
            return Ok(());
        };
        row.run = branch.run_of_task_branch();
        let Some(run) = row.run.clone() else {
            return Ok(());
        };
        if !self.known.contains_key(&run) {
            let Some(tip) = self.repository.find_branch(&run)? else {
                return Ok(());
            };
            self.known.insert(run.clone(), Known::read(self.repository, &run, tip)?);
        }
        let Some(known) = self.known.get(&run) else {
            return Ok(());
        };
        row.distance = known.distances.get(&branch.to_ref()).copied();
        let history = row.task.as_ref().and_then(|task| known.run.find(task));
        if ["missing", "broken"].contains(&row.state) {
            return Ok(());
        }
        if row.head.is_none() {
            row.state = "lost";
            return Ok(());
        }
        if let Some(history) = history {
            row.state = history.state().as_str();
            row.is_paused = history.state().is_under_way();
        }
        if let Some(task) = &row.task
            && let Some(step) = known.work.step_of(task)
        {
            row.state = step;
            row.is_paused = false;
        }
        Ok(())
    }
}

/// A path without control characters.
pub(super) fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}
