//! Follows the files of a merged change along the commits after it, and finds those that are again as they were before
//! it. Renames are followed, so that a file that was only moved is not taken for one that was deleted.

use std::collections::{HashMap, HashSet};

use crate::{
    git::{GitError, Repository, TreeChange},
    name::{Oid, TaskId},
};

/// Mode and content of a file.
type Content = (u32, Oid);

/// A commit on the first-parent line of the run's branch.
#[derive(Debug, Clone)]
pub(super) struct LineCommit {
    pub(super) id: Oid,
    pub(super) first_parent: Option<Oid>,
    /// The tasks whose commits came to the branch with it.
    pub(super) tasks: HashSet<TaskId>,
    /// Whether it is not a task commit.
    pub(super) is_users_commit: bool,
}

/// A file of the merged change.
struct FollowedFile {
    path: Vec<u8>,
    before: Option<Content>,
    /// Where it is after renames, and its content there.
    now: (Vec<u8>, Option<Content>),
    /// The position of the commit that put it back, if it is as before.
    by: Option<usize>,
}

/// What became of a merged change.
pub(super) struct Followed {
    /// How many files it changed.
    pub(super) count: usize,
    /// The files that are again as before, unless another task did that.
    pub(super) taken_back: Vec<Vec<u8>>,
    /// The newest commit that put one of them back.
    pub(super) by: Option<Oid>,
}

/// A line of commits, the newest first.
pub(super) struct Line<'a> {
    pub(super) repository: &'a Repository,
    pub(super) commits: &'a [LineCommit],
}

impl Line<'_> {
    /// The paths that differ between two commits.
    pub(super) fn changes(&self, from: Oid, to: Oid) -> Result<Vec<TreeChange>, GitError> {
        self.repository.changes(self.repository.tree_of(from)?, self.repository.tree_of(to)?)
    }

    /// Follows `own`, the changes of `task` that the commit at `at` brought on top of `before`.
    pub(super) fn follow(
        &self,
        at: usize,
        before: Oid,
        own: &[TreeChange],
        task: &TaskId,
    ) -> Result<Followed, GitError> {
        let nothing = Followed { count: own.len(), taken_back: Vec::new(), by: None };
        if !self.may_be_back(before, own)? {
            return Ok(nothing);
        }
        let merged = by_path(self.changes(before, self.commits[at].id)?);
        let begin = |change: &TreeChange| {
            let content = merged.get(&change.path).map_or(change.before, |merged| merged.after);
            let by = (content == change.before).then_some(at);
            let now = (change.path.clone(), content);
            FollowedFile { path: change.path.clone(), before: change.before, now, by }
        };
        let mut files: Vec<FollowedFile> = own.iter().map(begin).collect();
        for later in (0..at).rev() {
            self.pass(later, &mut files)?;
        }
        let is_of_other = |by: usize| self.commits[by].tasks.iter().any(|other| other != task);
        let is_taken_back = |file: &&FollowedFile| file.by.is_some_and(|by| by == at || !is_of_other(by));
        let taken: Vec<&FollowedFile> = files.iter().filter(is_taken_back).collect();
        let by = taken.iter().filter_map(|file| file.by).min();
        Ok(Followed {
            by: by.map(|by| self.commits[by].id),
            taken_back: taken.into_iter().map(|file| file.path.clone()).collect(),
            ..nothing
        })
    }

    /// Whether a file is not at its path in the newest commit, or is there as before. Most changes stay, so that nothing
    /// has to be followed.
    fn may_be_back(&self, before: Oid, own: &[TreeChange]) -> Result<bool, GitError> {
        let Some(newest) = self.commits.first() else { return Ok(false) };
        let now = by_path(self.changes(before, newest.id)?);
        Ok(own.iter().any(|change| now.get(&change.path).is_none_or(|now| now.after.is_none())))
    }

    /// Updates the files to the commit at `at`.
    fn pass(&self, at: usize, files: &mut [FollowedFile]) -> Result<(), GitError> {
        let LineCommit { id, first_parent: Some(parent), .. } = &self.commits[at] else { return Ok(()) };
        let changes = self.changes(*parent, *id)?;
        let is_touched = |file: &FollowedFile| changes.iter().any(|change| change.path == file.now.0);
        if !files.iter().any(is_touched) {
            return Ok(());
        }
        // The revert of a rename looks like a rename too.
        let own: HashSet<Vec<u8>> = files.iter().map(|file| file.path.clone()).collect();
        let renames = self.repository.find_renames(&changes)?;
        let changes = by_path(changes);
        for file in files.iter_mut() {
            let Some(change) = changes.get(&file.now.0) else { continue };
            let renamed = renames.get(&file.now.0).filter(|new| !own.contains(*new));
            file.now = match renamed.and_then(|new| changes.get(new)) {
                Some(new) => (new.path.clone(), new.after),
                None => (change.path.clone(), change.after),
            };
            let is_back = file.now.1 == file.before;
            file.by = is_back.then(|| file.by.unwrap_or(at));
        }
        Ok(())
    }
}

pub(super) fn by_path(changes: Vec<TreeChange>) -> HashMap<Vec<u8>, TreeChange> {
    changes.into_iter().map(|change| (change.path.clone(), change)).collect()
}
