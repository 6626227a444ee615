//! What one sound commit says.

use std::{ops::Deref, sync::Arc};

use crate::{
    git::RawCommit,
    message::{self, Body, Key, Message, MessageReading, Status, Subject, Trailers},
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
};

/// The heading of the reason of a step that failed.
pub const FAILED: &str = "Why it failed:";

/// The heading of the reason of an attempt that was interrupted.
pub const INTERRUPTED: &str = "Why it was interrupted:";

/// One sound commit of a run, with its evidence. Copies share it: ten thousand are handed on at a time.
#[derive(Debug, Clone)]
pub struct Event(Arc<EventData>);

/// What an event holds.
#[derive(Debug)]
pub struct EventData {
    /// The commit.
    pub commit: Oid,
    /// When it was committed: seconds since 1970. Only for showing; order is ancestry.
    pub time: i64,
    /// What it says in its first line.
    pub subject: Subject,
    /// What it says in its trailers.
    pub trailers: Trailers,
    body: String,
}

impl Deref for Event {
    type Target = EventData;

    fn deref(&self) -> &EventData {
        &self.0
    }
}

impl Event {
    /// What `message` says, standing in `commit`.
    #[must_use]
    pub fn new(commit: &RawCommit, message: Message) -> Self {
        let time = commit.committed().map_or(0, |(seconds, _)| seconds);
        Self::written(commit.id, time, message)
    }

    /// What was just written down as `commit`: a message that is read back as exactly what it is.
    #[must_use]
    pub fn written(commit: Oid, time: i64, message: Message) -> Self {
        let Message { subject, trailers, body, .. } = message;
        Self(Arc::new(EventData { commit, time, subject, trailers, body }))
    }

    /// What a commit says, if it is sound.
    #[must_use]
    pub fn of(commit: &RawCommit) -> Option<Self> {
        match message::read(commit.message()) {
            MessageReading::Sound(message) => Some(Self::new(commit, *message)),
            _ => None,
        }
    }

    /// What it quotes, taken apart.
    #[must_use]
    pub fn body(&self) -> Body {
        Body::parse(&self.body)
    }

    /// Why the attempt was interrupted, if it was. Such an attempt does not count: it begins again with the same number.
    #[must_use]
    pub fn interruption(&self) -> Option<&str> {
        self.trailers.get(Key::Interrupted)
    }

    /// Whether it tells of an attempt that was interrupted.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        self.interruption().is_some()
    }

    /// The branch of the run that it belongs to.
    #[must_use]
    pub fn branch(&self) -> &BranchName {
        &self.subject.branch
    }

    /// The task that it is about, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<&TaskId> {
        self.subject.task.as_ref()
    }

    /// What happened.
    #[must_use]
    pub fn status(&self) -> Status {
        self.subject.status
    }

    /// The attempt, where the status has one.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.trailers.attempt()
    }

    /// The session, if it names one.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.trailers.session()
    }

    /// Whether it tells of something that went wrong, an interruption included.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self.status().outcome(), Some((_, "fail" | "rejected")))
    }

    /// `pass`, `fail`, `approved` or `rejected`, where the status has an outcome.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        let (key, _) = self.status().outcome()?;
        self.trailers.get(key)
    }

    /// The value of a counting trailer.
    #[must_use]
    pub fn count(&self, key: Key) -> Option<u64> {
        self.trailers.get(key)?.parse().ok()
    }
}
