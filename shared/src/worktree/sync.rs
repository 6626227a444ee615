//! Merges the run's branch into a task's branch. Uncommitted work in the task's worktree is not touched; if anything is
//! in the way, nothing is changed.

use std::{collections::HashSet, ffi::OsStr, os::unix::ffi::OsStrExt, time::Duration};

use super::{Pool, WorktreeError, fill::SPARSE};
use crate::{
    git::{Merge, MergeConflict, RefMove, Repository, TreeChange, checkout_locks},
    name::{BranchName, Oid, TaskId},
};

/// How many commits of a task are searched for its last sync.
const MAX_COMMITS: usize = 100;

/// How often a task may be synced.
#[derive(Debug, Clone, Copy)]
pub struct SyncCooldown {
    /// The shortest time between two merges.
    pub span: Duration,
    /// The current time in seconds since 1970.
    pub now: i64,
}

/// The result of a sync.
#[derive(Debug)]
pub enum Synced {
    /// The task's branch was up to date.
    Current,
    /// It was merged, into this commit.
    Merged(Oid),
    /// The merge conflicts; nothing was changed.
    Conflicted(Vec<MergeConflict>),
    /// These uncommitted paths would be changed; nothing was done.
    InTheWay(Vec<String>),
    /// The last merge was at this time, in seconds since 1970; nothing was done.
    TooSoon(i64),
}

impl Pool {
    /// Merges `from` into the branch of a task.
    pub fn sync(
        &self,
        task: &TaskId,
        from: Oid,
        cooldown: Option<SyncCooldown>,
    ) -> Result<Synced, WorktreeError> {
        let branch = self.run.task_branch(task);
        let no_branch = || WorktreeError::NoBranch(branch.clone());
        let lease = match self.lease_existing(task) {
            Ok(lease) => Some(lease),
            Err(WorktreeError::Absent(_) | WorktreeError::Missing(..)) => None,
            Err(error) => return Err(error),
        };
        let tip = self.repository.find_branch(&branch)?.ok_or_else(no_branch)?;
        if self.repository.is_ancestor(from, tip)? {
            return Ok(Synced::Current);
        }
        if let Some(SyncCooldown { span, now }) = cooldown
            && let Some(last) = self.find_last_sync(&branch, tip)
            && u64::try_from(now - last).is_ok_and(|passed| passed < span.as_secs())
        {
            return Ok(Synced::TooSoon(last));
        }
        let commit = match self.join(&branch, tip, from)? {
            Ok(commit) => commit,
            Err(conflicts) => return Ok(Synced::Conflicted(conflicts)),
        };
        if let Some(lease) = &lease {
            let in_the_way = self.update_lane(&lease.repository, tip, commit)?;
            if !in_the_way.is_empty() {
                return Ok(Synced::InTheWay(in_the_way));
            }
        }
        let name = branch.to_ref();
        let moves = [RefMove { name: &name, new: Some(commit), old: Some(tip) }];
        self.repository.move_refs(&moves, "arborist: sync")?;
        Ok(Synced::Merged(commit))
    }

    /// When the run's branch was last merged into a task's branch, in seconds since 1970.
    fn find_last_sync(&self, branch: &BranchName, tip: Oid) -> Option<i64> {
        let message = self.sync_message(branch);
        let mut next = Some(tip);
        for _ in 0..MAX_COMMITS {
            let Some(commit) = next else { break };
            // The history of a shallow clone ends with parents that are not there.
            let Ok(mut found) = self.repository.load_commits(&[commit]) else { break };
            let Some(commit) = found.pop() else { break };
            if commit.message() == message.as_bytes() {
                return commit.committed().map(|(time, _)| time);
            }
            next = commit.parents().next();
        }
        None
    }

    fn sync_message(&self, branch: &BranchName) -> String {
        format!("Merge branch '{}' into {branch}\n", self.run)
    }

    /// The commit that joins both, or the conflicts. A branch without commits of its own is fast-forwarded.
    fn join(
        &self,
        branch: &BranchName,
        tip: Oid,
        from: Oid,
    ) -> Result<Result<Oid, Vec<MergeConflict>>, WorktreeError> {
        if self.repository.is_ancestor(tip, from)? {
            return Ok(Ok(from));
        }
        let tree = match self.repository.merge(tip, from)? {
            Merge::Clean(tree) => tree,
            Merge::Conflicted(_, conflicts) => return Ok(Err(conflicts)),
        };
        let message = self.sync_message(branch);
        let signing = self.repository.signing()?;
        Ok(Ok(self.repository.write_commit_with_parents(tree, &[tip, from], &message, signing)?))
    }

    /// Fast-forwards a branch without commits of its own to `base`. If uncommitted files are in the way, everything
    /// stays as it is.
    pub(super) fn follow(
        &self,
        lane: &Repository,
        branch: &BranchName,
        base: Oid,
    ) -> Result<(), WorktreeError> {
        let Some(tip) = self.repository.find_branch(branch)? else { return Ok(()) };
        if tip == base || !self.repository.is_ancestor(tip, base)? {
            return Ok(());
        }
        let _head_exemption = lane.exempt_git_dir();
        if !self.update_lane(lane, tip, base)?.is_empty() {
            return Ok(());
        }
        let moves = [RefMove { name: &branch.to_ref(), new: Some(base), old: Some(tip) }];
        Ok(self.repository.move_refs(&moves, "arborist: begin")?)
    }

    /// Updates a worktree from one commit to another, and returns the paths that are in the way. Files come first and
    /// the branch last: after a kill in between, the next call finds the files in their final state and continues.
    fn update_lane(&self, lane: &Repository, tip: Oid, commit: Oid) -> Result<Vec<String>, WorktreeError> {
        checkout_locks::clear(&lane.git_dir.join("index.lock"));
        let (old, new) = (lane.tree_of(tip)?, lane.tree_of(commit)?);
        let changes = lane.changes(old, new)?;
        let current = lane.snapshot()?;
        let undone: HashSet<Vec<u8>> = paths(lane.changes(current, new)?);
        let mut own = paths(lane.changes(old, current)?);
        own.extend(lane.staged_since(old)?);
        // An ignored file at the path of a new file could be work too.
        own.extend(lane.added(old, new)?.into_iter().filter(|path| exists_at(lane, path)));
        let own = changes.into_iter().filter(|change| own.contains(&change.path));
        let (done, in_the_way): (Vec<TreeChange>, Vec<TreeChange>) =
            own.partition(|change| !undone.contains(&change.path));
        if !in_the_way.is_empty() {
            return Ok(in_the_way.iter().map(TreeChange::shown).collect());
        }
        lane.enter(&done)?;
        let settings: &[&str] = if self.leave_out(lane)? { &SPARSE } else { &[] };
        match lane.update_to_tree(old, new, settings)? {
            Ok(()) => Ok(Vec::new()),
            Err(why) => Ok(why.lines().map(str::to_owned).collect()),
        }
    }
}

fn paths(changes: Vec<TreeChange>) -> HashSet<Vec<u8>> {
    changes.into_iter().map(|change| change.path).collect()
}

fn exists_at(lane: &Repository, path: &[u8]) -> bool {
    lane.dir.join(OsStr::from_bytes(path)).symlink_metadata().is_ok()
}
