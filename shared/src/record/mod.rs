//! Records a run: one commit for each event, on the run's branch, by compare-and-swap.
//!
//! Which method of [`RunRecorder`] records what:
//!
//! | method | for | index and checkout |
//! |---|---|---|
//! | `record` | a step that changed no files, such as a test or a review | stay as they are |
//! | `record_over` | the same, if another process may have committed meanwhile | stay as they are |
//! | `record_staged` | a step that changed files: an agent's, or one with a report | the index is updated, missing files are written |
//! | `prepare`, `plan_step`, `finish_step` | an agent's step whose caller moves the refs, together with those of the call's record | the same |
//! | `prepare`, `plan_step`, `commit_step` | the same step, if the call could not be recorded | the same |
//! | `prepare`, `deliver_turn` | a turn of an agent that is still working | the index is updated unless the agent's git holds it |
//! | `record_run_staged` | the start of a run, or a change of its plan | the index is updated, missing files are written |

mod staging;
mod step_log;
mod step_status;
mod unfinished;

pub use staging::{
    IndexUpdate, StagedCommit, StepMoves, TurnMark, repair_index, repair_lane_index, turn_mark_name,
};
pub use step_log::{
    CallHeading, LogLink, StepHeading, StepLog, call_opening, command_heading, create_baseline_log,
    create_step_log, log_time,
};
pub use step_status::StepStatus;
pub use unfinished::{AttemptMark, UnfinishedAttempt};

use jiff::Timestamp;

use crate::{
    failure::{Exit, Explain, Explanation},
    git::{GitError, NewCommit, RefMove, Repository, Signing},
    history::Event,
    message::{Body, Fault, Key, Message, Status, Subject, SubjectParts, Trailers},
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
};

/// Why something could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// git failed, or the branch was not where we left it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The message would not be well-formed.
    #[error("the step '{status}' cannot be recorded, because its commit message would not be valid: {}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
    Malformed {
        /// The status.
        status: Status,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// Another process moved the branch.
    #[error("another process moved '{branch}' during the run")]
    Moved {
        /// The branch.
        branch: BranchName,
    },
}

impl Explain for RecordError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => Explanation { exit: Exit::Fatal, hint: error.hint() },
            Self::Moved { .. } => Exit::Person.hint(
                "no commit is lost; to continue from where the branch is now, run the same command again",
            ),
            Self::Malformed { .. } => Exit::Fatal.into(),
        }
    }
}

/// An event of a task that is to be recorded.
#[derive(Debug, Clone)]
pub struct TaskEvent<'a> {
    /// The task.
    pub task: TaskId,
    /// What happened.
    pub status: Status,
    /// The text of the subject.
    pub text: String,
    /// The attempt.
    pub attempt: Attempt,
    /// A remark after the text of the subject, such as ` (no test command)`.
    pub remark: &'a str,
    /// The quoted text.
    pub body: Body,
    /// Trailers in addition to those that follow from the status, the attempt and the session.
    pub trailers: Trailers,
    /// The agent that is the author of the commit, if it is.
    pub author: Option<String>,
}

impl<'a> TaskEvent<'a> {
    /// An event without a body.
    #[must_use]
    pub fn new(task: TaskId, status: Status, wording: SubjectParts<'_>) -> Self {
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

/// An event of a whole run that is to be recorded.
#[derive(Debug)]
pub struct RunWideEvent<'a> {
    /// What happened.
    pub status: Status,
    /// The text of the subject, if the status leaves it open.
    pub words: &'a str,
    /// The quoted text.
    pub body: Body,
    /// Trailers in addition to the session.
    pub trailers: Trailers,
}

/// The run that commits are made for, and how they are made.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The run's branch, which every message names.
    pub run_branch: BranchName,
    /// The run's session.
    pub session: SessionId,
    signing: Signing,
}

impl RunIdentity {
    /// For a run, with the user's settings for commits.
    pub fn new(
        repository: &Repository,
        run_branch: BranchName,
        session: SessionId,
    ) -> Result<Self, GitError> {
        Ok(Self { run_branch, session, signing: repository.signing()? })
    }
}

/// The tip of a branch.
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
    /// The tip `head` of `branch`.
    pub fn new(repository: &Repository, branch: BranchName, head: Oid) -> Result<Self, GitError> {
        Ok(Self { branch, head, tree: repository.tree_of(head)? })
    }
}

/// A written commit that no ref leads to yet.
#[derive(Debug)]
pub struct PreparedCommit {
    /// The commit.
    pub commit: Oid,
    tree: Oid,
    message: Message,
}

/// Records a run. It knows the tip of the branch, and notices if another process moved it.
#[derive(Debug)]
pub struct RunRecorder<'a> {
    repository: &'a Repository,
    identity: RunIdentity,
    tip: Tip,
    /// The tree that worktree and index are known to have, as long as no child works there.
    worktree_tree: Option<Oid>,
}

impl<'a> RunRecorder<'a> {
    /// For the run of `branch`, whose tip is `head`.
    pub fn new(
        repository: &'a Repository,
        branch: BranchName,
        session: SessionId,
        head: Oid,
    ) -> Result<Self, GitError> {
        let identity = RunIdentity::new(repository, branch.clone(), session)?;
        Ok(Self::at(repository, identity, Tip::new(repository, branch, head)?))
    }

    /// For a run whose commits go on top of `tip`, on its own branch or on a task's.
    #[must_use]
    pub fn at(repository: &'a Repository, identity: RunIdentity, tip: Tip) -> Self {
        Self { repository, identity, tip, worktree_tree: None }
    }

    /// Another recorder of the same branch. Only one of the two may record until this one continues after the other.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::at(self.repository, self.identity.clone(), self.tip.clone())
    }

    /// Continues after what another recorder of the same branch has recorded.
    pub fn continue_after(&mut self, other: &RunRecorder<'_>) {
        (self.tip, self.worktree_tree) = (other.tip.clone(), other.worktree_tree);
    }

    /// The run that it records, and how.
    #[must_use]
    pub fn identity(&self) -> &RunIdentity {
        &self.identity
    }

    /// The tip of the branch.
    #[must_use]
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// The newest commit of the branch.
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
    pub fn run_branch(&self) -> &BranchName {
        &self.identity.run_branch
    }

    /// The branch that commits are made on: the run's, or a task's own.
    #[must_use]
    pub fn branch(&self) -> &BranchName {
        &self.tip.branch
    }

    /// Whether commits are made on the run's own branch, and not on the branch of a task in its lane.
    ///
    /// In the plan's repository, the run's branch is checked out where the user works. So there, the index and locks of
    /// git may be the user's: the recorder waits for them, marks each commit until the index contains it, and what is
    /// restored is saved first. The branch is also what a session and its checkpoints follow. In a lane only the run
    /// works: locks are removed, commits need no marks, and the branch is put back if something else moved it. A
    /// session's worktree in another repository is treated like the user's checkout.
    #[must_use]
    pub fn is_on_run_branch(&self) -> bool {
        self.tip.branch == self.identity.run_branch
    }

    /// Whether worktree and index are known to be equal to the newest commit.
    #[must_use]
    pub fn worktree_is_at_tip(&self) -> bool {
        self.worktree_tree == Some(self.tip.tree)
    }

    /// Forgets that worktree and index are equal to the newest commit. Call this before a child starts.
    pub fn forget_worktree(&mut self) {
        self.worktree_tree = None;
    }

    /// Records an event in a commit with `tree`.
    pub fn record(&mut self, event: TaskEvent<'_>, tree: Oid) -> Result<Event, RecordError> {
        self.record_over(event, tree, self.tip.head, &[])
    }

    /// Records an event although another process may have committed on top of our head. The parent of the new commit is
    /// our head, and `tree` must contain the other process's changes. The branch must be at `expected_tip`. `other_moves`
    /// are made in the same transaction.
    pub fn record_over(
        &mut self,
        event: TaskEvent<'_>,
        tree: Oid,
        expected_tip: Oid,
        other_moves: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        self.await_user()?;
        let prepared = self.prepare(event, tree)?;
        self.move_branch(prepared.commit, expected_tip, other_moves)?;
        Ok(self.accept(prepared))
    }

    /// Writes the commit of an event without moving a ref.
    pub fn prepare(&self, event: TaskEvent<'_>, tree: Oid) -> Result<PreparedCommit, RecordError> {
        let author = event.author.clone();
        let message = self.message(event)?;
        let (text, parent) = (message.render(), self.tip.head);
        let commit = NewCommit { tree, parent, message: &text, author: author.as_deref() };
        let commit = self.repository.write_commit(commit, self.identity.signing)?;
        Ok(PreparedCommit { commit, tree, message })
    }

    /// Accepts that the branch was moved to a prepared commit.
    pub fn accept(&mut self, prepared: PreparedCommit) -> Event {
        let PreparedCommit { commit, tree, message } = prepared;
        (self.tip.head, self.tip.tree) = (commit, tree);
        Event::written(commit, Timestamp::now().as_second(), message)
    }

    /// Records the start of a run, or a change of its plan, and moves other refs with it.
    fn record_run(
        &mut self,
        event: RunWideEvent<'_>,
        tree: Oid,
        other_moves: &[RefMove<'_>],
    ) -> Result<Oid, RecordError> {
        self.await_user()?;
        let RunWideEvent { status, words, body, trailers } = event;
        let wording = SubjectParts { name: words, attempt: Attempt(0), max: 0 };
        let subject = Subject {
            branch: self.identity.run_branch.clone(),
            task: None,
            status,
            text: wording.text(status),
        };
        let message = self.compose(subject, body, trailers)?.render();
        let commit = NewCommit { tree, parent: self.tip.head, message: &message, author: None };
        let commit = self.repository.write_commit(commit, self.identity.signing)?;
        self.move_branch(commit, self.tip.head, other_moves)?;
        self.tip.tree = tree;
        Ok(commit)
    }

    /// Waits while the user commits in this checkout, because their commit would fail if the branch moved. If it takes
    /// too long, nothing is recorded; the next run does it.
    fn await_user(&self) -> Result<(), GitError> {
        if self.is_on_run_branch() { self.repository.await_index() } else { Ok(()) }
    }

    /// Moves the branch, and other refs with it. The branch comes last: a kill between two renames of the transaction
    /// must not leave it moved without the mark that says what index and checkout still lack, or without the refs that
    /// save an agent's commits. Git deletes refs after all others have moved.
    fn move_branch(
        &mut self,
        commit: Oid,
        expected_tip: Oid,
        other_moves: &[RefMove<'_>],
    ) -> Result<(), RecordError> {
        let name = self.tip.branch.to_ref();
        let mut moves = other_moves.to_vec();
        moves.push(RefMove { name: &name, new: Some(commit), old: Some(expected_tip) });
        if let Err(error) = self.repository.move_refs_with_default_reason(&moves) {
            // Between two steps nothing guards a task's branch. It belongs to the run, so another value of it is saved
            // and replaced.
            let is_own = !self.is_on_run_branch() && expected_tip == self.tip.head;
            if is_own && self.repository.restore_ref(&name)? {
                self.repository.move_refs_with_default_reason(&moves)?;
            } else if self.repository.find_branch(&self.tip.branch)? == Some(expected_tip) {
                return Err(error.into());
            } else {
                return Err(RecordError::Moved { branch: self.tip.branch.clone() });
            }
        }
        self.tip.head = commit;
        Ok(())
    }

    fn message(&self, event: TaskEvent<'_>) -> Result<Message, RecordError> {
        let TaskEvent { task, status, text, attempt, remark, body, mut trailers, author: _ } = event;
        let subject = Subject {
            branch: self.identity.run_branch.clone(),
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
        Message::compose(subject, body, &trailers).map_err(|faults| RecordError::Malformed { status, faults })
    }

    fn set(&self, status: Status, trailers: &mut Trailers, key: Key, value: &str) -> Result<(), RecordError> {
        trailers.set(key, value).map_err(|expected| {
            let fault = Fault::new(1, format!("{}: {value}", key.as_str()), expected);
            RecordError::Malformed { status, faults: vec![fault] }
        })
    }
}

/// Trailers that follow from the status, the attempt and the session, and costs, which count only once.
const NOT_REPEATED: [Key; 10] = [
    Key::Step,
    Key::Result,
    Key::Test,
    Key::Review,
    Key::Retry,
    Key::Session,
    Key::TokensIn,
    Key::TokensOut,
    Key::Cost,
    Key::Runtime,
];

impl TaskEvent<'static> {
    /// An event that repeats this one, without its cost. `None` unless it is the end of a step.
    #[must_use]
    pub fn repeating(event: &Event) -> Option<Self> {
        let task = event.task()?.clone();
        if matches!(event.status(), Status::Turn | Status::Merge | Status::Reset) {
            return None;
        }
        let mut trailers = Trailers::default();
        for (key, value) in event.trailers.iter().filter(|(key, _)| !NOT_REPEATED.contains(key)) {
            let _ = trailers.set(key, value);
        }
        Some(Self {
            task,
            status: event.status(),
            text: event.subject.text.clone(),
            attempt: event.attempt().unwrap_or(Attempt(0)),
            remark: "",
            body: event.body(),
            trailers,
            author: None,
        })
    }
}
