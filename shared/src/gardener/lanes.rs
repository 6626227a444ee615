//! Lanes: worktrees in which several tasks are worked on at once, each on its own branch.

use std::{path::Path, time::Duration};

use super::{GardenerError, Site};
use crate::{
    git::{NewCommit, RefMove, Repository, Signing},
    history::Event,
    name::{Oid, SessionId, TaskId},
    process::{Attendance, FileLock},
    queue,
    record::Tip,
    worktree::{Lease, Pool},
};

/// What a crashed agent gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// The lanes of a run.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// The repository, as it is seen from the user's checkout.
    pub repository: &'a Repository,
    /// Where they come from.
    pub pool: Pool,
    /// How many may be at work at once.
    pub jobs: usize,
    /// Proves that nobody else drives this run.
    pub lock: &'a FileLock,
    /// How what was finished in them lands.
    pub queue: queue::Options,
}

/// Where a task begins, and what its branch must hold to be continued.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// The newest commit of the run.
    pub(super) base: Oid,
    /// The task's newest commit on the run's own branch, if that has the last word on it.
    pub(super) newest: Option<Oid>,
    /// The run's session.
    pub(super) session: SessionId,
}

impl Lanes<'_> {
    /// A place for a task. What a branch from elsewhere held is saved, and the task begins anew.
    pub(super) fn take(&self, task: &TaskId, ground: &Ground) -> Result<Site, GardenerError> {
        let lease = self.pool.lease(task, ground.base)?;
        let (attendance, _) = Attendance::take_over(self.lock, &self.attendance(&lease.path), GRACE)
            .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
        let mut head = tip_of(&lease)?;
        if is_stale(&lease, head, ground)? {
            put_aside(&lease, head, ground.base)?;
            head = ground.base;
        }
        let tip = Tip::new(&lease.repository, lease.branch.clone(), head)?;
        Ok(Site { repository: lease.repository.clone(), tip, settled: None, attendance, lease: Some(lease) })
    }

    /// How many lanes there may be: twice as many as agents, so that these need not wait for landings. A single agent
    /// has one, and finds it as it left it.
    pub(super) fn most(&self) -> usize {
        let wanted = if self.jobs == 1 { 1 } else { 2 * self.jobs };
        wanted.min(self.pool.max()).max(1)
    }

    /// Ends what a crashed run left running in lanes. Gives the processes.
    pub fn clear(&self) -> Result<Vec<u32>, GardenerError> {
        let folder = self.lock.path().parent().unwrap_or(Path::new("."));
        let prefix = format!("{}~lane-", file_name(self.lock.path()));
        let mut ended = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) && name.ends_with(Attendance::SUFFIX) {
                let (_, pids) = Attendance::take_over(self.lock, &entry.path(), GRACE)
                    .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
                ended.extend(pids.0);
            }
        }
        Ok(ended)
    }

    fn attendance(&self, lane: &Path) -> std::path::PathBuf {
        let name = format!("{}~{}{}", file_name(self.lock.path()), file_name(lane), Attendance::SUFFIX);
        self.lock.path().with_file_name(name)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn tip_of(lease: &Lease) -> Result<Oid, GardenerError> {
    lease.repository.head.commit.ok_or_else(|| GardenerError::Unborn(lease.branch.clone()))
}

/// A branch that does not follow what the run knows of its task speaks for another time: of an earlier run, or from
/// before the task was reset or its landing reverted.
fn is_stale(lease: &Lease, head: Oid, ground: &Ground) -> Result<bool, GardenerError> {
    if head == ground.base {
        return Ok(false);
    }
    if let Some(newest) = ground.newest {
        return Ok(!lease.repository.is_ancestor(newest, head)?);
    }
    for commit in lease.repository.stream_commits(&[head.to_string(), format!("^{}", ground.base)])? {
        let session = Event::of(&commit?).and_then(|event| event.session());
        if session.is_some_and(|session| session != ground.session) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Saves a branch and what lies in its worktree, and lets both begin anew.
fn put_aside(lease: &Lease, head: Oid, base: Oid) -> Result<(), GardenerError> {
    let repository = &lease.repository;
    let tree = repository.snapshot()?;
    let saved = if tree == repository.tree_of(head)? {
        head
    } else {
        let message = format!("worktree of {} when its task began anew\n", lease.task);
        repository
            .write_commit(NewCommit { tree, parent: head, message: &message, author: None }, Signing::No)?
    };
    let folder = lease.branch.component();
    let name = format!("refs/arborist/saved/{folder}/{}", saved.short());
    if repository.list_refs(&[&name])?.is_empty() {
        let kept = RefMove { name: &name, new: Some(saved), old: None };
        repository.move_refs(&[kept], "arborist: begun anew")?;
    }
    repository.change("reset").args(["-q", "--hard", &base.to_string()]).stdout()?;
    repository.change("clean").args(["-q", "-f", "-d"]).stdout()?;
    Ok(())
}
