//! One commit of a walk, reduced to what state needs.

use super::event::Event;
use crate::{
    git::RawCommit,
    message::{self, MessageReading, Status},
    name::{BranchName, Oid},
};

/// The meaning of a commit for the tasks of a run.
#[derive(Debug, Clone)]
pub(super) enum CommitMeaning {
    /// Nothing.
    Nothing,
    /// A sound commit that names the run's branch.
    Event(Event),
    /// A sound start of a run of another branch.
    OtherRun(BranchName),
    /// The same for a session branch, which was created for this run alone. Here it was merged.
    OtherSession(BranchName),
    /// A commit that claims to be ours and is not sound.
    Unsound,
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
        MessageReading::Sound(message)
            if message.subject.status == Status::Merge && commit.parents().count() < 2 =>
        {
            CommitMeaning::Unsound
        }
        MessageReading::Sound(message) if message.subject.branch == *branch => {
            CommitMeaning::Event(Event::new(commit, *message))
        }
        MessageReading::Sound(message) if message.subject.status == Status::RunStart => {
            let session = message.trailers.session();
            let branch = message.subject.branch;
            let is_own = session.is_some_and(|session| branch.as_str().ends_with(&format!("/{session}")));
            if is_own { CommitMeaning::OtherSession(branch) } else { CommitMeaning::OtherRun(branch) }
        }
        MessageReading::Sound(_) => CommitMeaning::Nothing,
        MessageReading::Unsound(_) => CommitMeaning::Unsound,
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
    fn all_forms_of_gits_revert_line_are_read() {
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
