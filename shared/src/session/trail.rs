//! The commits of a session in another repository of its workspace, found by their messages, because records of older
//! versions do not name them.

use super::{RepositoryStart, SessionError};
use crate::{
    git::Repository,
    history::Event,
    message::{Key, Status},
    name::{BranchName, Oid, TaskId},
};

/// The commits of a session on its branch in another repository, oldest first.
#[derive(Debug)]
pub struct Trail {
    /// Their events.
    pub events: Vec<Event>,
}

impl Trail {
    /// Reads the session's branch; `None` if it does not exist.
    pub fn find(repository: &Repository, start: &RepositoryStart) -> Result<Option<Self>, SessionError> {
        match repository.find_branch(&start.branch)? {
            Some(tip) => Self::scan(repository, &start.branch, (Some(start.base), tip)).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a branch up to a tip, from a base if that is in the repository.
    pub fn scan(
        repository: &Repository,
        branch: &BranchName,
        (base, tip): (Option<Oid>, Oid),
    ) -> Result<Self, SessionError> {
        let is_here =
            |base: &Oid| repository.find_commits(&[*base]).is_ok_and(|found| found == [Some(*base)]);
        let mut revisions = vec!["--first-parent".into(), "--reverse".into(), tip.to_string()];
        revisions.extend(base.filter(is_here).map(|base| format!("^{base}")));
        let mut events = Vec::new();
        for commit in repository.stream_commits(&revisions)? {
            let commit = repository.exact(commit?)?;
            events.extend(Event::of(&commit).filter(|event| event.branch() == branch));
        }
        Ok(Self { events })
    }

    /// The commit of a turn.
    #[must_use]
    pub fn turn(&self, number: u32) -> Option<Oid> {
        self.events.iter().find(|event| turn_of(event) == Some(number)).map(|event| event.commit)
    }

    /// The first commit of the consecutive commits of a task that end with this one; `None` if this is not one of them.
    #[must_use]
    pub fn first_of(&self, task: &TaskId, commit: Oid) -> Option<Oid> {
        let end = self.events.iter().position(|event| event.commit == commit)?;
        let row = self.events[..=end].iter().rev().take_while(|event| event.task() == Some(task));
        row.last().map(|event| event.commit)
    }
}

/// The number of the turn that a commit belongs to.
#[must_use]
pub fn turn_of(event: &Event) -> Option<u32> {
    let number = event.trailers.get(Key::Turn).filter(|_| event.status() == Status::Turn)?;
    number.parse().ok()
}
