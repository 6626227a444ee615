//! The state of a session right after one of its turns.

use super::{SessionError, SessionReader, StoredRecord, Turn};
use crate::{
    git::Repository,
    history::{CommitSource, Event, HistoryError, Run, RunScope},
    message::Status,
    name::{Oid, TaskId},
};

/// The state of a session right after one of its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPoint {
    /// The newest commit of the turn's task, or the commit that the session started from.
    pub head: Oid,
    /// The newest commit of the session's own branch at that time. The branch of a task in a lane need not contain it.
    pub tip: Oid,
    /// The commit that ended the turn's attempt, if it failed and is `head`. A replay from here tries the attempt
    /// again.
    pub failed: Option<Oid>,
}

impl SessionReader<'_> {
    /// The state right after a turn; 0 is the start of the session.
    pub fn point(&self, newest: &StoredRecord, turn: u32) -> Result<SessionPoint, SessionError> {
        if turn == 0 {
            let head = self.start_of(newest)?.record.context.head;
            return Ok(SessionPoint { head, tip: head, failed: None });
        }
        let stored = self.turn(newest, turn)?;
        let (head, failed) = self.settled(newest, &stored)?;
        Ok(SessionPoint { head, tip: stored.record.context.tip, failed })
    }

    /// The commit of the session right after a turn. If it was the last turn of a step, that is the commit that ended
    /// the step, and if it was the last turn of a review that completed the task, the commit that completed it: then
    /// nothing has to be done again, unless the task failed with that step. Also returns the failed end of an attempt,
    /// if that is the commit.
    fn settled(
        &self,
        newest: &StoredRecord,
        stored: &StoredRecord,
    ) -> Result<(Oid, Option<Oid>), SessionError> {
        let head = stored.record.context.head;
        let Some(turn) = stored.record.turn() else {
            return Ok((head, None));
        };
        let run = run_of(self.repository, newest)?;
        let events = run.find(&turn.node).map_or(&[][..], |task| &task.events);
        let Some(at) = self.find_end(events, turn, head)? else {
            return Ok((head, None));
        };
        let (end, after) = (&events[at], events.get(at + 1).map(Event::status));
        let is_settled = match end.status() {
            Status::ImplementPass | Status::ReviewApproved => true,
            Status::ReviewRejected => after != Some(Status::Failed),
            _ => false,
        };
        if !is_settled {
            let is_failed = matches!(end.status(), Status::ImplementFail | Status::ReviewRejected);
            let is_it = is_failed && !end.is_interruption() && end.commit == head;
            return Ok((head, is_it.then_some(head)));
        }
        if !self.is_last(newest, turn, end.commit)? {
            return Ok((head, None));
        }
        let is_done = end.status() == Status::ReviewApproved && after == Some(Status::Complete);
        let at = if is_done { at + 1 } else { at };
        Ok((events[at].commit, None))
    }

    /// The event that ended the call to which a turn belongs.
    fn find_end(&self, events: &[Event], turn: &Turn, head: Oid) -> Result<Option<usize>, SessionError> {
        for (at, event) in events.iter().enumerate() {
            let is_end = event.status() != Status::Turn
                && event.status().step().as_str() == turn.step
                && event.attempt() == Some(turn.attempt);
            if is_end && (event.commit == head || self.repository.is_ancestor(head, event.commit)?) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether the call that ended with `end` had no turn after this one. If the task has a next turn, `end` must be an
    /// ancestor of it.
    fn is_last(&self, newest: &StoredRecord, turn: &Turn, end: Oid) -> Result<bool, SessionError> {
        match self.find_next(newest, turn.number, &turn.node)? {
            Some(next) => Ok(self.repository.is_ancestor(end, next.record.context.head)?),
            None => Ok(true),
        }
    }

    /// Finds the task's next turn after this number. Skips records by their subjects; only one is parsed.
    fn find_next(
        &self,
        newest: &StoredRecord,
        number: u32,
        node: &TaskId,
    ) -> Result<Option<StoredRecord>, SessionError> {
        let mut walk = self.walk(newest)?;
        let mut next = None;
        while let Some(commit) = walk.stream.next().transpose()? {
            match walk.turn_in_subject(&commit) {
                Some((found, _)) if found == number => break,
                Some((_, found)) if found == *node => next = Some(commit),
                _ => {}
            }
        }
        next.map(|commit| walk.read(commit)).transpose()
    }
}

/// The history of a session's run, up to its newest record.
pub(super) fn run_of(repository: &Repository, newest: &StoredRecord) -> Result<Run, SessionError> {
    let context = &newest.record.context;
    let scope = RunScope { branch: context.branch.clone(), tip: Some(context.tip) };
    Run::scan(repository, scope, CommitSource::Fresh).map_err(|error| match error {
        HistoryError::Git(error) => error.into(),
        other => SessionError::History(other.to_string()),
    })
}
