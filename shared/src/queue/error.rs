//! Errors of the queue.

use std::path::PathBuf;

use super::{LandingCommand, ParkingObstacle, QueueClaim};
use crate::{
    coordination::CoordinationError,
    failure::{Exit, Explain, Explanation},
    git::GitError,
    history::HistoryError,
    message::Fault,
    name::{BranchName, Oid, RepoName, TaskId},
    pipeline::PipelineError,
    process::LockError,
    session::SessionError,
    worktree::WorktreeError,
};

/// Why a queue cannot be read or drained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum QueueError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("{}", source.sentence(&format!("another process is already landing on '{into}'")))]
    Locked { into: BranchName, source: LockError },
    #[error("another process is already landing on '{}': {}", .0.into, .0.holder)]
    Claimed(Box<QueueClaim>),
    #[error("could not start landing on '{0}': other processes keep taking its merge queue")]
    Changing(BranchName),
    #[error("lost the merge queue of '{0}': this process did not renew its claim in time")]
    Overtaken(BranchName),
    #[error("'{into}' lost commits during the run: it was at {} and is at {}", from.short(), to.short())]
    Rewound { into: BranchName, from: Oid, to: Oid },
    #[error("commit {} on '{into}' looks like a step of this run, but this run did not make it{done}", commit.short())]
    Forged { into: BranchName, commit: Oid, done: String },
    #[error("'{into}' has diverged from {}: it is at {} here and at {} there", .remote.as_ref().map_or_else(|| "the remote".to_owned(), |remote| format!("'{remote}'")), here.short(), there.short())]
    Diverged { into: BranchName, here: Oid, there: Oid, remote: Option<String> },
    #[error("another worker lands on '{0}' now")]
    LandedElsewhere(BranchName),
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    #[error("there is no branch '{0}' to land on")]
    NoTarget(BranchName),
    #[error("the queue entry '{name}' could not be read: {why}")]
    Unreadable { name: String, why: String },
    #[error("the landing of '{task}' cannot be recorded, because its commit message would not be valid: {}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
    Malformed { task: TaskId, faults: Vec<Fault> },
    #[error("'{into}' was moved to {}, but {what}", commit.short())]
    Unproved { into: BranchName, commit: Oid, what: String },
    #[error("{0}")]
    Resolver(String),
    #[error("'{task}' has no conflict: {state}")]
    NoConflict { task: TaskId, state: String, command: LandingCommand },
    #[error("the resolution of '{}' cannot land now: in your checkout of {}, {}; it cannot be parked, because it changes files that had no conflict: {}", .0.task, .0.into, .0.why, .0.others)]
    CannotBeParked(Box<UnparkableResolution>),
    #[error(
        "'{into}' has changed since you opened the conflict of '{task}', and your resolution conflicts with that"
    )]
    NewConflict { task: TaskId, into: BranchName, others: String },
    #[error("'{task}' is not in the queue")]
    NotQueued { task: TaskId },
    #[error("the session has no branch in the repository '{0}' here")]
    NoOther(RepoName),
    #[error("commit {} landed, but '{branch}' in '{repo}' could not be moved to that commit: {why}", commit.short())]
    Unfinished { repo: RepoName, branch: BranchName, commit: Oid, why: String },
    #[error("the conflict of '{task}' is in the repository '{repo}'")]
    ConflictElsewhere {
        task: TaskId,
        repo: RepoName,
        branch: BranchName,
        session: BranchName,
        place: Option<PathBuf>,
    },
    #[error("another process has changed the queue entry of '{task}' at the same time")]
    Changed { task: TaskId },
    #[error("could not write '{path}': {source}")]
    File { path: String, source: std::io::Error },
}

impl QueueError {
    /// Adds the name of the remote, if the error is about one.
    #[must_use]
    pub fn at_remote(mut self, name: &str) -> Self {
        if let Self::Diverged { remote, .. } = &mut self {
            *remote = Some(name.to_owned());
        }
        self
    }
}

impl Explain for QueueError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::History(error) => error.explain(),
            Self::Worktree(error) => error.explain(),
            Self::Pipeline(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Coordination(error) => error.explain(),
            Self::Locked { source, .. } => source.explain(),
            Self::LandedElsewhere(_) => Exit::Locked.hint("run the same command again"),
            Self::Claimed(_) | Self::Changing(_) | Self::Overtaken(_) => Exit::Locked.hint(
                "wait until that process ends; if it was killed, its claim expires after ten minutes",
            ),
            Self::NoTarget(_) => Exit::No.hint("see the branches with: git branch"),
            Self::NotQueued { .. } => Exit::No.hint("see the queue with: git arborist merge list"),
            Self::NoConflict { task, command, .. } => Exit::No.hint(command.advice(task, "")),
            Self::Resolver(_) => Exit::No.into(),
            Self::Diverged { into, remote: Some(remote), .. } => Exit::Person.hint(format!(
                "rebase or merge, then push: git pull --rebase {remote} {into} && git push {remote} {into}"
            )),
            Self::Diverged { .. } => {
                Exit::Person.hint("rebase or merge, then push: git pull --rebase && git push")
            }
            Self::Rewound { into, from, .. } => Exit::Person.hint(format!(
                "no commit is lost; restore the branch with: git update-ref refs/heads/{into} {from}, or continue from where it is now"
            )),
            Self::Forged { commit, .. } => {
                Exit::Person.hint(format!("read it with: git show {commit}; then run the same command again"))
            }
            Self::CannotBeParked(resolution) => Exit::Person.hint(resolution.advice("the same command")),
            Self::NewConflict { others, .. } => Exit::Person.hint(format!(
                "keep a copy of these files and undo their changes (delete new files): {others}\nthen run the same command without --yes"
            )),
            Self::Unproved { .. } => Exit::Person.hint("nothing was deleted; see: git log --graph"),
            Self::NoOther(_) => Exit::Person.hint("clone it first: git arborist workspace sync"),
            Self::Unfinished { .. } => Exit::Person.hint(
                "remove what is in the way there; then run the same command again, which finishes the landing",
            ),
            Self::ConflictElsewhere { branch, session, place, .. } => {
                let merge = match place {
                    Some(place) => format!("git -C '{}' merge {session}", place.display()),
                    None => format!("check out '{branch}' there, and run: git merge {session}"),
                };
                Exit::Person.hint(format!("{merge}\nthen land it with: git arborist merge run"))
            }
            Self::Unreadable { name, .. } => {
                Exit::Fatal.hint(format!("to remove it, run: git update-ref -d {name}"))
            }
            Self::Changed { .. } => Exit::Fatal.hint("run the same command again"),
            Self::Malformed { .. } | Self::File { .. } => Exit::Fatal.into(),
        }
    }
}

/// A resolution of a person that changes files without a conflict, while its landing could only be parked.
#[derive(Debug)]
pub struct UnparkableResolution {
    /// The task.
    pub task: TaskId,
    /// The target.
    pub into: BranchName,
    /// The files without a conflict.
    pub others: String,
    /// Why the target cannot move now.
    pub why: String,
    /// What is in the way, if it was found.
    pub obstacle: Option<ParkingObstacle>,
}

impl UnparkableResolution {
    /// What to do before it is landed with the command `run`. Its worktree is still there.
    #[must_use]
    pub fn advice(&self, run: &str) -> String {
        let advice = self.obstacle.as_ref().and_then(|obstacle| obstacle.advice_to_finish(run));
        let advice = advice.unwrap_or_else(|| format!("commit or stash your changes, then run: {run}"));
        format!("nothing was taken, and the worktree of the conflict is as it was\n{advice}")
    }
}
