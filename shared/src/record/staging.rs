//! Between a commit and the user's index. The branch moves first, and until the index knows of it, the user's next commit
//! would take it back. So a mark is written with the move, and taken away when the index is there: after a crash it
//! tells what is still to be done.

use std::collections::HashSet;

use super::{Announcement, Entry, RecordError, Recorder};
use crate::{
    git::{Change, GitError, RefMove, Repository},
    history::Event,
    name::{BranchName, Oid},
};

/// What a commit holds, and what it changes in the checkout.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Its tree.
    pub tree: Oid,
    /// Where the branch is now.
    pub tip: Oid,
    /// What differs from the commit before.
    pub changes: &'a [Change],
}

impl Recorder<'_> {
    /// Writes an entry as [`Recorder::record_over`] does, and brings what it changes into the index. A file that is not in
    /// the checkout yet is written there. A lane has no user whose index could be wrong, so it has no mark.
    pub fn deliver(
        &mut self,
        entry: Entry<'_>,
        delivery: Delivery<'_>,
        others: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        let Delivery { tree, tip, changes } = delivery;
        self.bring(changes, others, |recorder, moves| recorder.record_over(entry, tree, tip, moves))
    }

    /// The same for the start of a run, or a change of its plan.
    pub fn deliver_run(
        &mut self,
        announcement: Announcement<'_>,
        tree: Oid,
        changes: &[Change],
    ) -> Result<Oid, RecordError> {
        self.bring(changes, &[], |recorder, moves| recorder.record_run(announcement, tree, moves))
    }

    /// Writes something down with a mark, brings what it changes into the index, and takes the mark away.
    fn bring<T>(
        &mut self,
        changes: &[Change],
        others: &[RefMove<'_>],
        write: impl FnOnce(&mut Self, &[RefMove<'_>]) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        if changes.is_empty() || self.branch() != self.run() {
            let written = write(self, others)?;
            self.repository().bring(changes)?;
            return Ok(written);
        }
        let before = self.head();
        let mark = mark_of(self.branch(), before);
        let begun = RefMove { name: &mark, new: Some(before), old: None };
        let moves: Vec<RefMove<'_>> = others.iter().copied().chain([begun]).collect();
        let written = write(self, &moves)?;
        self.repository().bring(changes)?;
        end(self.repository(), &mark, before)?;
        Ok(written)
    }
}

/// Brings the index to the newest commit of `branch`, where a crash came between. What the user has staged since stays.
pub fn settle(repository: &Repository, branch: &BranchName, head: Oid) -> Result<(), GitError> {
    for mark in repository.list_refs(&[&folder(branch)])? {
        let commits = repository.load_commits(&[head])?;
        let parent = commits.first().and_then(|commit| commit.parents().next());
        if parent == Some(mark.target) {
            catch_up(repository, mark.target, head)?;
        }
        end(repository, &mark.name, mark.target)?;
    }
    Ok(())
}

/// Paths that the index has as they were before are brought to `head`; of those that it has so, files are written.
fn catch_up(repository: &Repository, before: Oid, head: Oid) -> Result<(), GitError> {
    let all = repository.changes(repository.tree_of(before)?, repository.tree_of(head)?)?;
    let as_in = |commit| -> Result<Vec<Change>, GitError> {
        let others: HashSet<Vec<u8>> = repository.staged_since(commit)?.into_iter().collect();
        Ok(all.iter().filter(|change| !others.contains(&change.path)).cloned().collect())
    };
    repository.stage(&as_in(before)?)?;
    repository.write_missing(&as_in(head)?)
}

fn end(repository: &Repository, mark: &str, before: Oid) -> Result<(), GitError> {
    repository.move_refs_again(&[RefMove { name: mark, new: None, old: Some(before) }])
}

/// No task can be called so: marks of attempts stand beside it.
fn folder(branch: &BranchName) -> String {
    format!("refs/arborist/wip/{}/@staging/", branch.component())
}

fn mark_of(branch: &BranchName, before: Oid) -> String {
    format!("{}{before}", folder(branch))
}
