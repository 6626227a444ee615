//! Writing a run down: one commit for each thing that happened, on the run's branch, by compare-and-swap.

mod unfinished;

pub use unfinished::{Mark, Unfinished};

use crate::{
    failure::{Exit, Explain},
    git::{GitError, NewCommit, RefMove, Repository, Signing},
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
pub struct Entry<'a> {
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
}

impl<'a> Entry<'a> {
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
        }
    }
}

/// The one who writes a run down. It knows where the branch is, and notices when it is not.
#[derive(Debug)]
pub struct Recorder<'a> {
    repository: &'a Repository,
    run: BranchName,
    branch: BranchName,
    session: SessionId,
    signing: Signing,
    head: Oid,
    tree: Oid,
}

impl<'a> Recorder<'a> {
    /// For the run of `branch`, which stands at `head`.
    pub fn new(
        repository: &'a Repository,
        branch: BranchName,
        session: SessionId,
        head: Oid,
    ) -> Result<Self, GitError> {
        Self::beside(repository, (branch.clone(), branch), session, head)
    }

    /// For a run that is written down on another branch than its own: the first of `branches` is what messages name,
    /// the second is where they stand.
    pub fn beside(
        repository: &'a Repository,
        (run, branch): (BranchName, BranchName),
        session: SessionId,
        head: Oid,
    ) -> Result<Self, GitError> {
        let signs = repository.git("config").args(["--type=bool", "--get", "commit.gpgSign"]).answer()?;
        let signing = if signs.as_deref() == Some(b"true\n") { Signing::AsConfigured } else { Signing::No };
        let tree = repository.tree_of(head)?;
        Ok(Self { repository, run, branch, session, signing, head, tree })
    }

    /// The repository that is written to.
    #[must_use]
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// The newest commit of the branch that is written on.
    #[must_use]
    pub fn head(&self) -> Oid {
        self.head
    }

    /// The tree of that commit.
    #[must_use]
    pub fn tree(&self) -> Oid {
        self.tree
    }

    /// The run's branch, which every message names.
    #[must_use]
    pub fn run(&self) -> &BranchName {
        &self.run
    }

    /// The run's session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The branch that is written on: the run's, or a task's own.
    #[must_use]
    pub fn branch(&self) -> &BranchName {
        &self.branch
    }

    /// Writes an entry whose commit holds `tree`.
    pub fn record(&mut self, entry: Entry<'_>, tree: Oid) -> Result<Oid, RecordError> {
        self.record_over(entry, tree, self.head, &[])
    }

    /// Writes an entry over `tip`, where the branch is now, and moves other refs with it. The commit follows our own
    /// head: what somebody put on top of it meanwhile is folded into `tree`.
    pub fn record_over(
        &mut self,
        entry: Entry<'_>,
        tree: Oid,
        tip: Oid,
        others: &[RefMove<'_>],
    ) -> Result<Oid, RecordError> {
        let message = self.message(entry)?.render();
        let commit = NewCommit { tree, parent: self.head, message: &message };
        let commit = self.repository.write_commit(commit, self.signing)?;
        self.advance(commit, tip, others)?;
        self.tree = tree;
        Ok(commit)
    }

    /// Writes the start of a run, or a change of its plan.
    pub fn record_run(
        &mut self,
        status: Status,
        words: &str,
        trailers: Trailers,
        tree: Oid,
    ) -> Result<Oid, RecordError> {
        let wording = Wording { name: words, attempt: Attempt(0), max: 0 };
        let subject = Subject { branch: self.run.clone(), task: None, status, text: wording.text(status) };
        let message = self.compose(subject, Body::default(), trailers)?.render();
        let commit = NewCommit { tree, parent: self.head, message: &message };
        let commit = self.repository.write_commit(commit, self.signing)?;
        self.advance(commit, self.head, &[])?;
        self.tree = tree;
        Ok(commit)
    }

    fn advance(&mut self, commit: Oid, tip: Oid, others: &[RefMove<'_>]) -> Result<(), RecordError> {
        let name = self.branch.to_ref();
        let mut moves = vec![RefMove { name: &name, new: Some(commit), old: Some(tip) }];
        moves.extend_from_slice(others);
        if let Err(error) = self.repository.move_refs(&moves, "arborist") {
            let is_elsewhere = self.repository.find_branch(&self.branch)? != Some(tip);
            return Err(if is_elsewhere {
                RecordError::Moved { branch: self.branch.clone() }
            } else {
                error.into()
            });
        }
        self.head = commit;
        Ok(())
    }

    fn message(&self, entry: Entry<'_>) -> Result<Message, RecordError> {
        let Entry { task, status, text, attempt, remark, body, mut trailers } = entry;
        let subject =
            Subject { branch: self.run.clone(), task: Some(task), status, text: format!("{text}{remark}") };
        if status.required().contains(&Key::Retry) {
            self.set(status, &mut trailers, Key::Retry, &attempt.to_string())?;
        }
        self.compose(subject, body, trailers)
    }

    fn compose(&self, subject: Subject, body: Body, mut trailers: Trailers) -> Result<Message, RecordError> {
        let status = subject.status;
        self.set(status, &mut trailers, Key::Session, self.session.as_str())?;
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
