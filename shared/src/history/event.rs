//! One commit as an event of a run, and what it means for state.

use std::{ops::Deref, sync::Arc};

use crate::{
    git::RawCommit,
    message::{self, Body, Key, Message, MessageReading, Status, Subject, Trailers, plain_text},
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
};

/// The end of the subject of a test step that had no command to run.
pub const NO_TEST_COMMAND: &str = " (no test command)";

/// The heading of the reason of a step that failed.
pub const FAILED: &str = "Why it failed:";
/// The heading over what the sandbox refused in a step that passed.
pub const DENIED: &str = "Denied by the sandbox:";

/// The heading over the failed tests of a test step, with their messages.
pub const FAILED_TESTS: &str = "Failed tests:";

/// The heading over parts of the output of a test step that failed.
pub const EXCERPTS: &str = "Excerpts of the output:";

/// The heading over what the pre-commit hook said when it refused the changes of an attempt.
pub const REFUSED_BY_HOOK: &str = "The pre-commit hook refused it:";

/// The heading of the reason of an attempt that was interrupted.
pub const INTERRUPTED: &str = "Why it was interrupted:";

/// A sound commit of a run. Clones share its data, because ten thousand events are passed on at a time.
#[derive(Debug, Clone)]
pub struct Event(Arc<EventData>);

/// The data of an event.
#[derive(Debug)]
pub struct EventData {
    /// The commit.
    pub commit: Oid,
    /// When it was committed, in seconds since 1970. Only for display; order is decided by ancestry.
    pub time: i64,
    /// Its subject.
    pub subject: Subject,
    /// Its trailers.
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
    /// The event of `commit`, whose message was read as `message`.
    #[must_use]
    pub fn new(commit: &RawCommit, message: Message) -> Self {
        let time = commit.committed().map_or(0, |(seconds, _)| seconds);
        Self::written(commit.id, time, message)
    }

    /// The event of a commit that was just written.
    #[must_use]
    pub fn written(commit: Oid, time: i64, message: Message) -> Self {
        let Message { subject, trailers, body, .. } = message;
        Self(Arc::new(EventData { commit, time, subject, trailers, body }))
    }

    /// The event of a commit, if its message is sound.
    #[must_use]
    pub fn of(commit: &RawCommit) -> Option<Self> {
        match message::read(commit.message()) {
            MessageReading::WellFormed(message) => Some(Self::new(commit, *message)),
            _ => None,
        }
    }

    /// The parsed body.
    #[must_use]
    pub fn body(&self) -> Body {
        Body::parse(&self.body)
    }

    /// Whether its body contains these words. It is cheaper than parsing the body.
    #[must_use]
    pub fn mentions(&self, words: &str) -> bool {
        self.body.contains(words)
    }

    /// Why the attempt was interrupted, if it was. Such an attempt does not count: it begins again with the same
    /// number.
    #[must_use]
    pub fn interruption(&self) -> Option<&str> {
        self.trailers.get(Key::Interrupted)
    }

    /// Whether it records an interrupted attempt.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        self.interruption().is_some()
    }

    /// The branch of the run that it belongs to.
    #[must_use]
    pub fn branch(&self) -> &BranchName {
        &self.subject.branch
    }

    /// The task, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<&TaskId> {
        self.subject.task.as_ref()
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.subject.status
    }

    /// The attempt, if the status has one.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.trailers.attempt()
    }

    /// The session, if it names one.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.trailers.session()
    }

    /// The text of its subject for people. The subject of a failed task says 'retries' for attempts; this format is fixed.
    #[must_use]
    pub fn subject_for_people(&self) -> String {
        let text = plain_text(&self.subject.text);
        match text.strip_suffix(" retries").filter(|_| self.status() == Status::Failed) {
            Some(counted) if counted.ends_with(" 1") => format!("{counted} attempt"),
            Some(counted) => format!("{counted} attempts"),
            None => text,
        }
    }

    /// Whether its subject names its task in quotes, after words that repeat its status. Others have free texts.
    #[must_use]
    pub fn has_name(&self) -> bool {
        !matches!(self.status(), Status::Turn | Status::Plan | Status::RunStart)
    }

    /// Whether it records a failure or an interruption.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self.status().outcome(), Some((_, "fail" | "rejected")))
    }

    /// Whether this is the result of a test command.
    #[must_use]
    pub fn has_run_tests(&self) -> bool {
        matches!(self.status(), Status::TestPass | Status::TestFail)
            && !self.subject.text.ends_with(NO_TEST_COMMAND)
    }

    /// Whether it records a review without a verdict. That counts as a rejection, but the reviewer did not reject.
    #[must_use]
    pub fn lacks_verdict(&self) -> bool {
        let has_reason = || self.body().sections.first().is_some_and(|section| section.heading == FAILED);
        self.status() == Status::ReviewRejected && has_reason()
    }

    /// `pass`, `fail`, `approved` or `rejected`, if the status has an outcome.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        let (key, _) = self.status().outcome()?;
        self.trailers.get(key)
    }

    /// The value of a trailer that is a count.
    #[must_use]
    pub fn count(&self, key: Key) -> Option<u64> {
        self.trailers.get(key)?.parse().ok()
    }
}

/// The meaning of a commit for the tasks of a run.
#[derive(Debug, Clone)]
pub(super) enum CommitMeaning {
    /// Nothing.
    Nothing,
    /// A sound commit that names the run's branch.
    Event(Event),
    /// A sound start of a run of another branch.
    OtherRun(BranchName),
    /// A sound start of a run on a session branch, which was created for that run alone and was merged here.
    OtherSession(BranchName),
    /// A commit that claims to be ours and is not sound.
    Malformed,
    /// A commit that reverts others, by their ids, which may be abbreviated.
    Reverts(Vec<String>),
}

/// A commit with its parents and its meaning.
#[derive(Debug, Clone)]
pub(super) struct HistoryEntry {
    pub(super) id: Oid,
    pub(super) first_parent: Option<Oid>,
    pub(super) more_parents: Vec<Oid>,
    pub(super) note: CommitMeaning,
}

impl HistoryEntry {
    /// Reads a commit for the run of `branch`.
    pub(super) fn new(commit: &RawCommit, branch: &BranchName) -> Self {
        let mut parents = commit.parents();
        Self {
            id: commit.id,
            first_parent: parents.next(),
            more_parents: parents.collect(),
            note: note(commit, branch),
        }
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = Oid> {
        self.first_parent.iter().chain(&self.more_parents).copied()
    }

    pub(super) fn event(&self) -> Option<&Event> {
        match &self.note {
            CommitMeaning::Event(event) => Some(event),
            _ => None,
        }
    }

    /// Takes the event out.
    pub(super) fn take_event(&mut self) -> Option<Event> {
        match std::mem::replace(&mut self.note, CommitMeaning::Nothing) {
            CommitMeaning::Event(event) => Some(event),
            other => {
                self.note = other;
                None
            }
        }
    }

    /// Whether it is the start of a run of the branch that was read for.
    pub(super) fn run_start(&self) -> Option<&Event> {
        self.event().filter(|event| event.status() == Status::RunStart)
    }
}

fn note(commit: &RawCommit, branch: &BranchName) -> CommitMeaning {
    let text = commit.message();
    match message::read(text) {
        // A landing is a merge commit; one that claims to be a landing and is no merge was not written by us.
        MessageReading::WellFormed(message)
            if message.subject.status == Status::Merge && commit.parents().count() < 2 =>
        {
            CommitMeaning::Malformed
        }
        MessageReading::WellFormed(message) if message.subject.branch == *branch => {
            CommitMeaning::Event(Event::new(commit, *message))
        }
        MessageReading::WellFormed(message) if message.subject.status == Status::RunStart => {
            let session = message.trailers.session();
            let branch = message.subject.branch;
            let is_own = session.is_some_and(|session| branch.as_str().ends_with(&format!("/{session}")));
            if is_own { CommitMeaning::OtherSession(branch) } else { CommitMeaning::OtherRun(branch) }
        }
        MessageReading::WellFormed(_) => CommitMeaning::Nothing,
        MessageReading::Malformed(_) => CommitMeaning::Malformed,
        MessageReading::Foreign => match reverted(text) {
            targets if targets.is_empty() => CommitMeaning::Nothing,
            targets => CommitMeaning::Reverts(targets),
        },
    }
}

/// Whether a commit says that it reverts others.
pub(super) fn takes_back(commit: &RawCommit) -> bool {
    !reverted(commit.message()).is_empty()
}

/// The commits named by lines `This reverts commit <id>`, as `git revert` writes them in all its forms.
fn reverted(text: &[u8]) -> Vec<String> {
    const WORDS: &[u8] = b"\nThis reverts commit ";
    let hex = |at: usize| -> String {
        let digits = text[at + WORDS.len()..].iter().take_while(|b| b.is_ascii_hexdigit());
        digits.map(|b| char::from(*b)).collect()
    };
    memchr::memmem::find_iter(text, WORDS).map(hex).filter(|id| id.len() >= 4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_the_revert_line_of_git_are_parsed() {
        let id = "0123456789012345678901234567890123456789";
        for line in [
            format!("This reverts commit {id}."),
            format!("This reverts commit {id}, reversing\nchanges made to {id}."),
            format!("This reverts commit {id} (a subject, 2025-01-01)."),
        ] {
            assert_eq!(reverted(format!("Revert \"x\"\n\n{line}\n").as_bytes()), [id], "{line}");
        }
        assert!(reverted(b"x\n\n> This reverts commit 0123456789.\n").is_empty());
        assert!(reverted(b"x\n\nThis reverts commit abd.\n").is_empty());
    }
}
