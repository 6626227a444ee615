//! Writing a run down: one commit for each thing that happened, on the run's branch, by compare-and-swap.

mod repeat;
mod staging;
mod step_status;
mod unfinished;

pub use staging::{IndexUpdate, PreparedStep, StagedCommit, TurnMark, settle, settle_lane, staging_mark};
pub use step_status::StepStatus;
pub use unfinished::{AttemptMark, Unfinished};

use jiff::Timestamp;

use crate::{
    failure::{Exit, Explain},
    git::{GitError, NewCommit, RefMove, Repository, Signing},
    history::Event,
    message::{Body, Fault, Key, Message, Status, Subject, Trailers, Wording},
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
};

/// What kept something from being written down.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// git failed, or the branch was not where we left it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The message would not be sound.
    #[error("the message for '{status}' would not be sound: {}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
    Unsound {
        /// What was to be written.
        status: Status,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// Somebody else moved the branch.
    #[error("'{branch}' was moved by somebody else while the run was going on")]
    Moved {
        /// The branch that was written on.
        branch: BranchName,
    },
}

impl Explain for RecordError {
    fn exit(&self) -> Exit {
        match self {
            Self::Moved { .. } => Exit::Person,
            _ => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Moved { .. } => {
                Some("nothing is lost; run the same command again to go on from where it is now".into())
            }
            Self::Unsound { .. } => None,
        }
    }
}

/// What is to be written down about a task.
#[derive(Debug)]
pub struct TaskEvent<'a> {
    /// The task.
    pub task: TaskId,
    /// What happened.
    pub status: Status,
    /// The words of the subject.
    pub text: String,
    /// The attempt.
    pub attempt: Attempt,
    /// What stands behind the words of the subject, such as ` (no test command)`.
    pub remark: &'a str,
    /// What is quoted.
    pub body: Body,
    /// Trailers beside those that follow from the status, the attempt and the session.
    pub trailers: Trailers,
    /// The agent that made what the commit holds, if it is its author.
    pub author: Option<String>,
}

impl<'a> TaskEvent<'a> {
    /// An entry without a body.
    #[must_use]
    pub fn new(task: TaskId, status: Status, wording: Wording<'_>) -> Self {
        Self {
            task,
            status,
            text: wording.text(status),
            attempt: wording.attempt,
            remark: "",
            body: Body::default(),
            trailers: Trailers::default(),
            author: None,
        }
    }
}

/// What is to be written down about a whole run.
#[derive(Debug)]
pub struct Announcement<'a> {
    /// What happened.
    pub status: Status,
    /// The words of the subject, where the status leaves some open.
    pub words: &'a str,
    /// What is quoted.
    pub body: Body,
    /// Trailers beside the session.
    pub trailers: Trailers,
}

/// For which run is written, and how.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The run's branch, which every message names.
    pub run: BranchName,
    /// The run's session.
    pub session: SessionId,
    signing: Signing,
}

impl RunIdentity {
    /// For a run, as the user's configuration wants its commits.
    pub fn new(repository: &Repository, run: BranchName, session: SessionId) -> Result<Self, GitError> {
        Ok(Self { run, session, signing: repository.signing()? })
    }
}

/// Where a branch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tip {
    /// The branch.
    pub branch: BranchName,
    /// Its newest commit.
    pub head: Oid,
    /// The tree of that commit.
    pub tree: Oid,
}

impl Tip {
    /// Of `branch` at `head`.
    pub fn new(repository: &Repository, branch: BranchName, head: Oid) -> Result<Self, GitError> {
        Ok(Self { branch, head, tree: repository.tree_of(head)? })
    }
}

/// A commit that is written, and to which no ref leads yet.
#[derive(Debug)]
pub struct Prepared {
    /// The commit.
    pub commit: Oid,
    tree: Oid,
    message: Message,
}

/// The one who writes a run down. It knows where the branch is, and notices when it is not.
#[derive(Debug)]
pub struct RunRecorder<'a> {
    repository: &'a Repository,
    identity: RunIdentity,
    tip: Tip,
    /// What worktree and index are known to hold, while nobody else is at work there.
    settled: Option<Oid>,
}

impl<'a> RunRecorder<'a> {
    /// For the run of `branch`, which stands at `head`.
    pub fn new(
        repository: &'a Repository,
        branch: BranchName,
        session: SessionId,
        head: Oid,
    ) -> Result<Self, GitError> {
        let identity = RunIdentity::new(repository, branch.clone(), session)?;
        Ok(Self::at(repository, identity, Tip::new(repository, branch, head)?))
    }

    /// For a run that is written down at `tip`, on its own branch or on a task's.
    #[must_use]
    pub fn at(repository: &'a Repository, identity: RunIdentity, tip: Tip) -> Self {
        Self { repository, identity, tip, settled: None }
    }

    /// For which run it writes, and how.
    #[must_use]
    pub fn identity(&self) -> &RunIdentity {
        &self.identity
    }

    /// Where the branch is that is written on.
    #[must_use]
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// The repository that is written to.
    #[must_use]
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// The newest commit of the branch that is written on.
    #[must_use]
    pub fn head(&self) -> Oid {
        self.tip.head
    }

    /// The tree of that commit.
    #[must_use]
    pub fn tree(&self) -> Oid {
        self.tip.tree
    }

    /// The run's branch, which every message names.
    #[must_use]
    pub fn run(&self) -> &BranchName {
        &self.identity.run
    }

    /// The branch that is written on: the run's, or a task's own.
    #[must_use]
    pub fn branch(&self) -> &BranchName {
        &self.tip.branch
    }

    /// Whether worktree and index are known to hold what the newest commit holds, and nothing else.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled == Some(self.tip.tree)
    }

    /// Somebody else goes to work in the worktree.
    pub fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Writes an entry whose commit holds `tree`.
    pub fn record(&mut self, entry: TaskEvent<'_>, tree: Oid) -> Result<Event, RecordError> {
        self.record_over(entry, tree, self.tip.head, &[])
    }

    /// Writes an entry over `tip`, where the branch is now, and moves other refs with it. The commit follows our own
    /// head: what somebody put on top of it meanwhile is folded into `tree`.
    pub fn record_over(
        &mut self,
        entry: TaskEvent<'_>,
        tree: Oid,
        tip: Oid,
        others: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        self.await_user()?;
        let prepared = self.prepare(entry, tree)?;
        self.advance(prepared.commit, tip, others)?;
        Ok(self.accept(prepared))
    }

    /// Writes the commit of an entry, and moves no ref.
    pub fn prepare(&self, entry: TaskEvent<'_>, tree: Oid) -> Result<Prepared, RecordError> {
        let author = entry.author.clone();
        let message = self.message(entry)?;
        let (text, parent) = (message.render(), self.tip.head);
        let commit = NewCommit { tree, parent, message: &text, author: author.as_deref() };
        let commit = self.repository.write_commit(commit, self.identity.signing)?;
        Ok(Prepared { commit, tree, message })
    }

    /// Takes note that the branch has been moved to what was prepared.
    pub fn accept(&mut self, prepared: Prepared) -> Event {
        let Prepared { commit, tree, message } = prepared;
        (self.tip.head, self.tip.tree) = (commit, tree);
        Event::written(commit, Timestamp::now().as_second(), message)
    }

    /// Writes the start of a run, or a change of its plan, and moves other refs with it.
    fn record_run(
        &mut self,
        announcement: Announcement<'_>,
        tree: Oid,
        others: &[RefMove<'_>],
    ) -> Result<Oid, RecordError> {
        self.await_user()?;
        let Announcement { status, words, body, trailers } = announcement;
        let wording = Wording { name: words, attempt: Attempt(0), max: 0 };
        let subject =
            Subject { branch: self.identity.run.clone(), task: None, status, text: wording.text(status) };
        let message = self.compose(subject, body, trailers)?.render();
        let commit = NewCommit { tree, parent: self.tip.head, message: &message, author: None };
        let commit = self.repository.write_commit(commit, self.identity.signing)?;
        self.advance(commit, self.tip.head, others)?;
        self.tip.tree = tree;
        Ok(commit)
    }

    /// A commit that the user has begun in their checkout fails if the branch moves under it. If it takes too long, nothing
    /// is written down: the next run does that.
    fn await_user(&self) -> Result<(), GitError> {
        if self.tip.branch == self.identity.run { self.repository.await_index() } else { Ok(()) }
    }

    /// Moves the branch, and other refs with it. The branch comes last: a kill between two renames of the transaction must not
    /// leave it moved without the mark that says what the index and the checkout still lack, or without the refs that
    /// save an agent's commits. Refs that are deleted are git's to delete after all others have moved.
    fn advance(&mut self, commit: Oid, tip: Oid, others: &[RefMove<'_>]) -> Result<(), RecordError> {
        let name = self.tip.branch.to_ref();
        let mut moves = others.to_vec();
        moves.push(RefMove { name: &name, new: Some(commit), old: Some(tip) });
        if let Err(error) = self.repository.move_refs_again(&moves) {
            // Between two steps nobody looks after a task's branch. It is the run's own: what moved it is put aside.
            let is_own = self.tip.branch != self.identity.run && tip == self.tip.head;
            if is_own && self.repository.restore_ref(&name)? {
                self.repository.move_refs_again(&moves)?;
                self.tip.head = commit;
                return Ok(());
            }
            let is_elsewhere = self.repository.find_branch(&self.tip.branch)? != Some(tip);
            return Err(if is_elsewhere {
                RecordError::Moved { branch: self.tip.branch.clone() }
            } else {
                error.into()
            });
        }
        self.tip.head = commit;
        Ok(())
    }

    fn message(&self, entry: TaskEvent<'_>) -> Result<Message, RecordError> {
        let TaskEvent { task, status, text, attempt, remark, body, mut trailers, author: _ } = entry;
        let subject = Subject {
            branch: self.identity.run.clone(),
            task: Some(task),
            status,
            text: format!("{text}{remark}"),
        };
        if status.required().contains(&Key::Retry) {
            self.set(status, &mut trailers, Key::Retry, &attempt.to_string())?;
        }
        self.compose(subject, body, trailers)
    }

    fn compose(&self, subject: Subject, body: Body, mut trailers: Trailers) -> Result<Message, RecordError> {
        let status = subject.status;
        self.set(status, &mut trailers, Key::Session, self.identity.session.as_str())?;
        Message::compose(subject, body, &trailers).map_err(|faults| RecordError::Unsound { status, faults })
    }

    fn set(&self, status: Status, trailers: &mut Trailers, key: Key, value: &str) -> Result<(), RecordError> {
        trailers.set(key, value).map_err(|expected| {
            let fault =
                Fault { line: 1, what: format!("{}: {value}", key.as_str()), fix: expected.to_owned() };
            RecordError::Unsound { status, faults: vec![fault] }
        })
    }
}
