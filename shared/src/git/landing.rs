//! Moving a branch that somebody may have checked out: who uses it.

use std::path::PathBuf;

use super::{
    GitCommand, GitError, HiddenMarks, Merge, RawCommit, Ref, Repository, TreeChange, Worktree,
    command::without_prefix,
};
use crate::{
    message::{self, MessageReading, Status},
    name::{BranchName, Oid},
};

/// Who uses a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchUse {
    /// Nobody: its ref may be moved.
    Free,
    /// It is checked out here, and nowhere else.
    CheckedOut(PathBuf),
    /// It must not be moved, in git's words: it is rebased or bisected, or checked out twice.
    Busy(String),
}

impl Repository {
    /// What is parked among `refs` for `branch`, which is at `tip`. It counts only while it follows the branch.
    pub fn find_landing(&self, refs: &[Ref], branch: &BranchName, tip: Oid) -> Result<Option<Oid>, GitError> {
        let name = branch.landing_ref();
        match refs.iter().find(|found| found.name == name).map(|found| found.target) {
            Some(parked)
                if parked != tip && self.is_ancestor(tip, parked)? && self.is_landing(tip, parked)? =>
            {
                Ok(Some(parked))
            }
            _ => Ok(None),
        }
    }

    /// Whether `parked` is what landings make of `tip`. Anybody can write the ref, so every commit between the two is looked
    /// at: it must say that it lands a task, join the one before with a commit of that task's branch, and hold what git
    /// makes of the two, but for files that conflict.
    fn is_landing(&self, tip: Oid, parked: Oid) -> Result<bool, GitError> {
        let revisions = ["--first-parent".into(), parked.to_string(), format!("^{tip}")];
        let commits: Vec<RawCommit> = self.stream_commits(&revisions)?.collect::<Result<_, _>>()?;
        let mut after = parked;
        for commit in commits {
            if commit.id != after {
                return Ok(false);
            }
            match self.base_of_landing(&self.exact(commit)?)? {
                Some(before) => after = before,
                None => return Ok(false),
            }
        }
        Ok(after == tip)
    }

    /// The commit that a landing was put on top of; `None` if it is no landing.
    fn base_of_landing(&self, commit: &RawCommit) -> Result<Option<Oid>, GitError> {
        let parents: Vec<Oid> = commit.parents().collect();
        let (&[before, source], MessageReading::Sound(message)) =
            (&parents[..], message::read(commit.message()))
        else {
            return Ok(None);
        };
        let (Some(task), Status::Merge) = (&message.subject.task, message.subject.status) else {
            return Ok(None);
        };
        let branch = message.subject.branch.task_branch(task);
        let has_source = match self.find_branch(&branch)? {
            Some(tip) => self.is_ancestor(source, tip)?,
            None => false,
        };
        if !has_source || message.trailers.source() != Some(source) {
            return Ok(None);
        }
        let (tree, conflicts) = match self.merge(before, source)? {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let changes = self.changes(tree, self.tree_of(commit.id)?)?;
        let is_resolved =
            |change: &TreeChange| conflicts.iter().any(|conflict| conflict.is_about(&change.shown()));
        Ok(changes.iter().all(is_resolved).then_some(before))
    }

    /// Who uses `branch`, which is about to go to `commit`.
    pub fn usage(&self, branch: &BranchName, commit: Oid) -> Result<BranchUse, GitError> {
        let (places, gone) = self.users_of(branch)?;
        if places.iter().any(|worktree| worktree.is_strange) {
            let why = "it is checked out in a worktree that was made while a child process was at work";
            return Ok(BranchUse::Busy(why.into()));
        }
        let mut places: Vec<PathBuf> = places.into_iter().map(|worktree| worktree.path).collect();
        match (places.pop(), places.is_empty()) {
            (None, _) if gone.iter().any(|worktree| worktree.lock.is_none()) => Ok(BranchUse::Free),
            (None, _) => self.probe(branch, commit),
            (Some(place), true) => Ok(BranchUse::CheckedOut(place)),
            (Some(_), false) => Ok(BranchUse::Busy("it is checked out more than once".into())),
        }
    }

    /// The worktrees that have `branch` checked out, and whose folders are there.
    pub fn checkouts_of(&self, branch: &BranchName) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.users_of(branch)?.0.into_iter().map(|worktree| worktree.path).collect())
    }

    /// The same, and the worktrees whose folders are gone. git itself forgets those some day, unless they are locked:
    /// then they are on a disk that may come back.
    fn users_of(&self, branch: &BranchName) -> Result<(Vec<Worktree>, Vec<Worktree>), GitError> {
        let is_here = |worktree: &Worktree| worktree.branch.as_ref() == Some(branch);
        let users = self.list_worktrees()?.into_iter().filter(is_here);
        Ok(users.partition(|user| user.path.is_dir()))
    }

    /// A branch that is being rebased or bisected is checked out nowhere, and must not be moved either. To fetch into
    /// it is refused then; the dry run writes nothing.
    fn probe(&self, branch: &BranchName, commit: Oid) -> Result<BranchUse, GitError> {
        let command = self
            .pin_shared(GitCommand::changing("fetch", &self.common_dir, &["fetch.prune=false"]))
            .args(["-q", "--dry-run", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"])
            .arg(&self.common_dir)
            .arg(format!("{commit}:{}", branch.to_ref()));
        let ended = command.finish()?;
        if ended.status.success() {
            return Ok(BranchUse::Free);
        }
        Ok(BranchUse::Busy(without_prefix(&ended.complaint())))
    }

    /// Puts a worktree of ours to `commit`, on no branch, and throws away what stands in the way.
    pub fn check_out_commit(&self, commit: Oid) -> Result<(), GitError> {
        // git leaves a file alone that it believes to be unchanged.
        self.settle_index(HiddenMarks::Cleared)?;
        let command = self.change("checkout").args(["--quiet", "--force", "--detach"]);
        let command = command.args([&commit.to_string(), "--"]);
        self.write_checkout(Some(commit), |index| index.of(command).stdout().map(drop))?;
        self.note_staged_tree(self.tree_of(commit)?);
        Ok(())
    }
}
