//! Finds out whether a branch may be moved: whether it is checked out somewhere, and whether a parked landing is
//! genuine.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use crate::{
    git::{
        GitCommand, GitError, HiddenMarks, Merge, RawCommit, Ref, Repository, TreeChange, Worktree,
        command::without_prefix,
    },
    message::{self, MessageReading, Status},
    mutex::MutexExt,
    name::{BranchName, Oid},
};

/// Landings whose tree this process has compared with the merge of their parents, and the git directories that hold
/// them. A run asks for the parked landing many times, and each merge is a git process. A commit's id fixes its
/// tree and its parents, so the answer stays true.
static COMPARED_LANDINGS: LazyLock<Mutex<HashSet<(PathBuf, Oid)>>> = LazyLock::new(Mutex::default);

/// How a branch is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchUse {
    /// It is not used, and its ref may be moved.
    Free,
    /// It is checked out in exactly one worktree.
    CheckedOut(PathBuf),
    /// It must not be moved, with git's reason: it is being rebased or bisected, or is checked out twice.
    Busy(String),
}

impl Repository {
    /// The parked landing among `refs` for `branch`, which is at `tip`. It counts only while it is ahead of the branch.
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

    /// Whether `parked` consists of landings on top of `tip`. Every process can write the ref, so each commit between
    /// the two is checked: its message must be that of a landing, its parents the commit before it and a commit of the
    /// task's branch, and its tree the merge of both, except for files that conflict.
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

    /// The commit on top of which a landing was made; `None` if it is no landing.
    fn base_of_landing(&self, commit: &RawCommit) -> Result<Option<Oid>, GitError> {
        let parents: Vec<Oid> = commit.parents().collect();
        let (&[before, source], MessageReading::WellFormed(message)) =
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
        Ok(self.is_genuine_landing(commit.id, [before, source])?.then_some(before))
    }

    /// Whether the tree of a landing is the merge of its parents, except for files that conflict.
    fn is_genuine_landing(&self, landing: Oid, [before, source]: [Oid; 2]) -> Result<bool, GitError> {
        let compared = || COMPARED_LANDINGS.hold();
        let key = (self.common_dir.clone(), landing);
        if compared().contains(&key) {
            return Ok(true);
        }
        let (tree, conflicts) = match self.merge(before, source)? {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let changes = self.changes(tree, self.tree_of(landing)?)?;
        let is_resolved =
            |change: &TreeChange| conflicts.iter().any(|conflict| conflict.is_about(&change.shown()));
        let is_merge = changes.iter().all(is_resolved);
        if is_merge {
            compared().insert(key);
        }
        Ok(is_merge)
    }

    /// How `branch` is used, which is about to be moved to `commit`.
    pub fn usage(&self, branch: &BranchName, commit: Oid) -> Result<BranchUse, GitError> {
        let (places, gone) = self.users_of(branch)?;
        if places.iter().any(|worktree| worktree.is_unknown) {
            let why = "it is checked out in a worktree that was made during the run";
            return Ok(BranchUse::Busy(why.into()));
        }
        let mut places: Vec<PathBuf> = places.into_iter().map(|worktree| worktree.path).collect();
        match (places.pop(), places.is_empty()) {
            (None, _) if gone.iter().any(|worktree| worktree.lock.is_none()) => Ok(BranchUse::Free),
            (None, _) => self.ask_git_for_use(branch, commit),
            (Some(place), true) => Ok(BranchUse::CheckedOut(place)),
            (Some(_), false) => Ok(BranchUse::Busy("it is checked out more than once".into())),
        }
    }

    /// The existing worktrees in which `branch` is checked out.
    pub fn checkouts_of(&self, branch: &BranchName) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.users_of(branch)?.0.into_iter().map(|worktree| worktree.path).collect())
    }

    /// Like [`Self::checkouts_of`], together with worktrees whose folders are gone. git prunes those at some time,
    /// unless they are locked: then they may be on a removable disk.
    fn users_of(&self, branch: &BranchName) -> Result<(Vec<Worktree>, Vec<Worktree>), GitError> {
        let is_here = |worktree: &Worktree| worktree.branch.as_ref() == Some(branch);
        let users = self.list_worktrees()?.into_iter().filter(is_here);
        Ok(users.partition(|user| user.path.is_dir()))
    }

    /// A branch that is being rebased or bisected is not checked out anywhere, and still must not be moved. git refuses
    /// to fetch into such a branch; the dry run changes nothing.
    fn ask_git_for_use(&self, branch: &BranchName, commit: Oid) -> Result<BranchUse, GitError> {
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

    /// Checks out `commit` in one of our worktrees with a detached `HEAD`, and discards everything that is in the way.
    pub fn check_out_commit(&self, commit: Oid) -> Result<(), GitError> {
        // git does not write files that the index calls unchanged, so the index has to be verified first.
        self.make_index_known(HiddenMarks::Cleared)?;
        self.write_in_open_folders(|| {
            let command = self.change("checkout").args(["--quiet", "--force", "--detach"]);
            let command = command.args([&commit.to_string(), "--"]);
            self.write_checkout(Some(commit), |index| index.of(command).stdout().map(drop))
        })?;
        self.note_staged_tree(self.tree_of(commit)?);
        Ok(())
    }
}
