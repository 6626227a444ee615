//! Saves unfinished work to a ref while an agent works in a worktree.

use std::time::Duration;

use crate::{
    git::{GitError, NewCommit, PrivateIndex, RefMove, Repository, Signing, Stamp},
    name::{BranchName, Oid, TaskId},
    process::{Cancel, within},
};

/// Reading a worktree takes seconds. If it takes longer, it hangs on something that an agent has put there.
const LIMIT: Duration = Duration::from_secs(120);

/// Saves one worktree repeatedly. It has its own index and remembers what it saw: if nothing changed, nothing is read
/// or written again.
#[derive(Debug)]
pub struct Saver<'a> {
    repository: &'a Repository,
    index: PrivateIndex<'a>,
    name: String,
    task: TaskId,
    saved: Option<Saved>,
    seen: Option<(Stamp, Oid)>,
}

#[derive(Debug, Clone, Copy)]
struct Saved {
    tree: Oid,
    commit: Oid,
}

impl<'a> Saver<'a> {
    /// For a task that is worked on in the worktree of `repository`.
    pub fn new(repository: &'a Repository, run: &BranchName, task: &TaskId) -> Result<Self, GitError> {
        let name = ref_of(run, task);
        let saved = match repository.find_ref(&name)? {
            Some(commit) => Some(Saved { tree: repository.tree_of(commit)?, commit }),
            None => None,
        };
        let index = repository.private_index("saver")?;
        Ok(Self { repository, index, name, task: task.clone(), saved, seen: None })
    }

    /// Saves tracked and untracked files if they have changed; `None` if they have not. It gives up when `cancel` is
    /// cancelled.
    pub fn save(&mut self, cancel: &Cancel) -> Result<Option<Oid>, GitError> {
        // Only this part is interrupted: a git that is moving refs would leave its lock files.
        let tree = within(LIMIT, cancel, || self.index.add_again(&mut self.seen))?;
        if self.saved.is_some_and(|saved| saved.tree == tree) {
            return Ok(None);
        }
        let parent = self.repository.require_commit("HEAD")?;
        if self.repository.tree_of(parent)? == tree {
            return Ok(None);
        }
        let message = format!("unfinished work on {}\n", self.task);
        let commit = self
            .repository
            .write_commit(NewCommit { tree, parent, message: &message, author: None }, Signing::No)?;
        let old = self.saved.map(|saved| saved.commit);
        self.repository
            .move_refs(&[RefMove { name: &self.name, new: Some(commit), old }], "arborist: save")?;
        self.saved = Some(Saved { tree, commit });
        Ok(Some(commit))
    }

    /// Deletes the saved work once it has been recorded.
    pub fn clear(&mut self) -> Result<(), GitError> {
        let Some(saved) = self.saved.take() else {
            return Ok(());
        };
        let moves = [RefMove { name: &self.name, new: None, old: Some(saved.commit) }];
        self.repository.move_refs(&moves, "arborist: written down")
    }
}

/// The ref of a task's unfinished work. Marks of attempts are next to it and end in a number.
pub(super) fn ref_of(run: &BranchName, task: &TaskId) -> String {
    format!("refs/arborist/wip/{}/{task}/tree", run.component())
}
