//! The commits of a session in another repository of its workspace, found by their messages, because records of older
//! versions do not name them.

use super::{RepositoryStart, SessionError};
use crate::{
    git::Repository,
    history::Event,
    message::{Key, Status},
    name::{BranchName, Oid, TaskId},
};

/// The commits of a session in another repository, on its branch and on the branches of its tasks, oldest first.
#[derive(Debug)]
pub struct Trail {
    /// Their events.
    pub events: Vec<Event>,
}

/// A commit on the first-parent line of a session's branch in another repository.
#[derive(Debug)]
pub struct TrailStep {
    /// The commit.
    pub commit: Oid,
    /// Its event; `None` if it is a landing of a task, or a commit of others.
    pub event: Option<Event>,
}

impl Trail {
    /// Reads the session's commits; `None` if its branch does not exist.
    pub fn find(repository: &Repository, start: &RepositoryStart) -> Result<Option<Self>, SessionError> {
        match repository.find_branch(&start.branch)? {
            Some(tip) => Self::scan(repository, &start.branch, Some(start.base), tip).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a branch up to a tip, from a base if that is in the repository, and the branches of its tasks. Commits of one
    /// task that were made in a lane follow each other, whatever was made at the same time.
    pub fn scan(
        repository: &Repository,
        branch: &BranchName,
        base: Option<Oid>,
        tip: Oid,
    ) -> Result<Self, SessionError> {
        let lanes = repository.list_refs(&[&branch.task_refs()])?;
        let tips = std::iter::once(tip).chain(lanes.into_iter().map(|lane| lane.target));
        let mut revisions = vec!["--topo-order".into(), "--reverse".into()];
        revisions.extend(tips.map(|tip| tip.to_string()));
        let steps = read(repository, branch, base, revisions)?;
        Ok(Self { events: steps.into_iter().filter_map(|step| step.event).collect() })
    }

    /// Reads only the first-parent line of a branch, oldest first: what was committed on it and what landed on it.
    pub fn scan_line(
        repository: &Repository,
        branch: &BranchName,
        base: Option<Oid>,
        tip: Oid,
    ) -> Result<Vec<TrailStep>, SessionError> {
        read(repository, branch, base, vec!["--first-parent".into(), "--reverse".into(), tip.to_string()])
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

fn read(
    repository: &Repository,
    branch: &BranchName,
    base: Option<Oid>,
    mut revisions: Vec<String>,
) -> Result<Vec<TrailStep>, SessionError> {
    let is_here = |base: &Oid| repository.find_commits(&[*base]).is_ok_and(|found| found == [Some(*base)]);
    revisions.extend(base.filter(is_here).map(|base| format!("^{base}")));
    let mut steps = Vec::new();
    for commit in repository.stream_commits(&revisions)? {
        let commit = repository.exact(commit?)?;
        let event = Event::of(&commit).filter(|event| event.branch() == branch);
        steps.push(TrailStep { commit: commit.id, event });
    }
    Ok(steps)
}

/// The number of the turn that a commit belongs to.
#[must_use]
pub fn turn_of(event: &Event) -> Option<u32> {
    let number = event.trailers.get(Key::Turn).filter(|_| event.status() == Status::Turn)?;
    number.parse().ok()
}
