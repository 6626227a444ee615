//! What a verification found, which is also the `--json` document; and why it could not be made.

use schemars::JsonSchema;
use serde::Serialize;

use super::VerifyRange;
use crate::{
    failure::{Exit, Explain, Explanation},
    git::GitError,
    history::HistoryError,
    message::plain_line,
    name::{BranchName, Oid, SessionId, TaskId},
    queue::QueueError,
    session::SessionError,
    settings::SettingsError,
    words::words,
};

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Verification {
    /// The range that was verified.
    pub range: String,
    /// Its newest commit.
    pub head: Oid,
    /// Whether signatures were required.
    pub signed: bool,
    /// The completed tasks in the range.
    pub tasks: Vec<VerifiedTask>,
    /// What is wrong.
    pub problems: Vec<VerifyProblem>,
    /// Checks that could not be made here, because records or commits are missing.
    pub not_checked: Vec<Unchecked>,
    /// Commits between those of a run that belong to none of its tasks. That is no problem: users may commit on the
    /// branch of a run.
    pub outside: Vec<OutsideCommit>,
}

/// A completed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifiedTask {
    /// Its id.
    pub task: TaskId,
    /// The branch of its run.
    pub branch: BranchName,
    /// The session of its run.
    pub session: Option<SessionId>,
    /// The commit that completed or landed it.
    pub commit: Oid,
}

words! {
    /// A kind of check.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum VerifyCheck {
        /// Messages of task commits are valid.
        Message = "message",
        /// Task commits belong to a run that started in this history.
        Run = "run",
        /// The steps of a task are complete and in order.
        Steps = "steps",
        /// What was tested and reviewed is what was completed.
        Review = "review",
        /// Protected files were changed only with permission.
        Protected = "protected",
        /// A landing is the merge of the target and the completed task.
        Landing = "landing",
        /// The gates of a landing passed on the tree that landed.
        Gates = "gates",
        /// Records of sessions and of the queue agree with history.
        Records = "records",
        /// Commits are signed by a known signer.
        Signature = "signature",
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifyProblem {
    /// The check that found it.
    pub check: VerifyCheck,
    /// The task; null if none is concerned.
    pub task: Option<TaskId>,
    /// The commit; null if none is concerned.
    pub commit: Option<Oid>,
    /// What is wrong, in words.
    pub problem: String,
}

/// A check that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Unchecked {
    /// The check.
    pub check: VerifyCheck,
    /// The task; null if several or none are concerned.
    pub task: Option<TaskId>,
    /// Why it could not be made.
    pub reason: String,
    /// The refs that have to be fetched for it, as a pattern; null if that does not help.
    pub refs: Option<String>,
    /// The branch whose merge queue has to run for it; null if that does not help.
    #[serde(skip)]
    pub unrecorded: Option<BranchName>,
}

/// A commit that was made outside of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutsideCommit {
    /// The commit.
    pub commit: Oid,
    /// The branch of the run between whose commits it is.
    pub branch: BranchName,
    /// The first line of its message.
    pub subject: String,
    /// If it is a merge, the paths that differ from git's own merge of its parents.
    pub changed: Vec<String>,
    /// The protected paths among these.
    pub protected: Vec<String>,
}

impl Verification {
    pub(super) fn new(range: &VerifyRange, signed: bool) -> Self {
        Self {
            range: range.shown.clone(),
            head: range.to,
            signed,
            tasks: Vec::new(),
            problems: Vec::new(),
            not_checked: Vec::new(),
            outside: Vec::new(),
        }
    }

    pub(super) fn problem(
        &mut self,
        check: VerifyCheck,
        task: Option<&TaskId>,
        commit: Option<Oid>,
        words: impl AsRef<str>,
    ) {
        let problem = plain_line(words.as_ref());
        self.problems.push(VerifyProblem { check, task: task.cloned(), commit, problem });
    }

    pub(super) fn unchecked(&mut self, check: VerifyCheck, task: Option<&TaskId>, why: impl AsRef<str>) {
        let reason = plain_line(why.as_ref());
        self.not_checked.push(Unchecked { check, task: task.cloned(), reason, refs: None, unrecorded: None });
    }

    /// Reports a check whose records are written when the merge queue of this branch next runs.
    pub(super) fn unrecorded(&mut self, check: VerifyCheck, branch: &BranchName, why: impl AsRef<str>) {
        self.unchecked(check, None, why);
        let last = self.not_checked.last_mut();
        last.into_iter().for_each(|unchecked| unchecked.unrecorded = Some(branch.clone()));
    }

    /// Reports a check whose records are not in this clone. They are in refs that begin with `refs`.
    pub(super) fn missing(&mut self, check: VerifyCheck, refs: &str, why: impl AsRef<str>) {
        self.unchecked(check, None, why);
        let last = self.not_checked.last_mut();
        last.into_iter().for_each(|unchecked| unchecked.refs = Some(format!("{refs}*")));
    }
}

/// Why a range could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The history of a run could not be determined.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The records of a session could not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The queue could not be read.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// This machine's settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A part of the history is missing, and nobody knows what is in it.
    #[error("this is a shallow clone, and the history to verify ends at {}", edge.short())]
    Shallow {
        /// The last commit that is here.
        edge: Oid,
    },
}

impl Explain for VerifyError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::History(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Queue(error) => error.explain(),
            Self::Settings(error) => error.explain(),
            Self::Shallow { .. } => Exit::Fatal.hint("fetch the rest: git fetch --unshallow"),
        }
    }
}
