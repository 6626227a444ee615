//! Things that cleanup could delete, with all facts about them. Plain data, so that deciding needs no repository.

use std::{fmt, path::PathBuf};

use crate::{
    history::RevertedMerge,
    name::{BranchName, Oid, SessionId},
    session::SessionState,
    words::words,
};

/// Why something is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InUse {
    /// Its session is not over.
    Session(SessionId, SessionState),
    /// A run is at work.
    Run(String),
    /// A run was killed, and a process that it started is alive.
    LeftRunning(String),
    /// A process holds its lock.
    Lock(String),
    /// A process has claimed its target.
    Claim,
    /// A process is in it.
    Process(u32),
    /// Our working directory is in it.
    Here,
    /// It is queued.
    Queued,
    /// Somebody else locked it.
    Locked(String),
    /// Its directory was moved to this path.
    Moved(String),
    /// It is checked out at this path.
    CheckedOut(String),
    /// A merge, rebase or the like is in progress there.
    OperationInProgress(&'static str),
    /// Its remote lacks some of its commits.
    Unpushed(String),
    /// A landing waits for a checkout.
    Parked,
    /// The branch of its session still exists.
    Branched,
    /// The branch of its session is being deleted, which must happen first.
    Leaving,
    /// Its run may continue it.
    UnfinishedAttempt(String),
    /// Only this branch tells that its task has failed.
    Failed,
    /// It is about a task that is not merged.
    Unmerged,
    /// It is not ours, for this reason.
    Foreign(String),
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(_, SessionState::Paused) => {
                f.write_str("its session is paused, so it can be continued")
            }
            Self::Session(_, state) => write!(f, "its session is {}", state.as_str()),
            Self::Run(run) => write!(f, "a run of '{run}' is active"),
            Self::LeftRunning(run) => write!(f, "processes of a run of '{run}' are still alive"),
            Self::Lock(holder) => write!(f, "in use: {holder}"),
            Self::Claim => f.write_str("a process is landing tasks of its run"),
            Self::Process(pid) => write!(f, "process {pid} is in it"),
            Self::Here => f.write_str("it is your current folder"),
            Self::Queued => f.write_str("it is queued and has not landed yet"),
            Self::Locked(reason) if reason.is_empty() => f.write_str("it is locked with 'git worktree lock'"),
            Self::Locked(reason) => write!(f, "it is locked with 'git worktree lock': {reason}"),
            Self::Moved(path) => write!(f, "its folder was moved to {path}"),
            Self::CheckedOut(place) => write!(f, "checked out at {place}"),
            Self::OperationInProgress(what) if what.contains(' ') => write!(f, "there is {what}"),
            Self::OperationInProgress(what) => write!(f, "in the middle of a {what}"),
            Self::Unpushed(upstream) => write!(f, "not all of it is pushed to {upstream}"),
            Self::Parked => f.write_str("it is waiting for a checkout of its branch"),
            Self::Branched => f.write_str("the branch of its session still exists"),
            Self::Leaving => f.write_str("the branch of its session must be removed first"),
            Self::UnfinishedAttempt(run) => write!(f, "the run of '{run}' may continue it"),
            Self::Failed => f.write_str("its task has failed, which is recorded only there"),
            Self::Unmerged => f.write_str("its task is not merged"),
            Self::Foreign(why) => f.write_str(why),
        }
    }
}

words! {
    /// A topic that can be cleaned up by itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Topic {
        /// Worktrees, directories that were worktrees, and trash.
        Worktrees = "worktrees",
        /// Branches of tasks, and the small refs about them.
        Branches = "branches",
        /// Branches and records of sessions.
        Sessions = "sessions",
        /// Logs, and reports that are not committed.
        Logs = "logs",
        /// Saved work.
        Saved = "saved",
        /// Data that can be computed again.
        Caches = "caches",
    }
}

words! {
    /// The kind of a candidate.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CandidateKind {
        /// A worktree that git knows.
        Worktree = "worktree",
        /// A directory of ours that git no longer knows.
        Folder = "folder",
        /// A directory that was renamed for deletion and not deleted yet.
        Trash = "trash",
        /// The branch of a task.
        Branch = "branch",
        /// The branch of a task at a remote.
        RemoteBranch = "remote",
        /// A landing that was parked.
        Landing = "landing",
        /// A claim on the queue of a target.
        Claim = "claim",
        /// The mark of an attempt, or work that was saved during it.
        UnfinishedAttempt = "unfinished",
        /// The branch of a session.
        SessionBranch = "session",
        /// The record of a session, or its transcript.
        Record = "record",
        /// The output of an agent or a test.
        Log = "log",
        /// A report that is not committed.
        Report = "report",
        /// Saved work.
        Saved = "saved",
        /// Data that can be computed again.
        Cache = "cache",
    }
}

impl CandidateKind {
    /// The topic of this kind.
    #[must_use]
    pub fn topic(self) -> Topic {
        match self {
            Self::Worktree | Self::Folder | Self::Trash => Topic::Worktrees,
            Self::Branch | Self::RemoteBranch | Self::Landing | Self::Claim | Self::UnfinishedAttempt => {
                Topic::Branches
            }
            Self::SessionBranch | Self::Record => Topic::Sessions,
            Self::Log | Self::Report => Topic::Logs,
            Self::Saved => Topic::Saved,
            Self::Cache => Topic::Caches,
        }
    }
}

/// Where a candidate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidatePlace {
    /// A ref.
    Ref {
        /// Its full name.
        name: String,
        /// The object that it points to.
        tip: Oid,
    },
    /// A branch of a remote.
    Remote {
        /// The remote.
        remote: String,
        /// Its full name there.
        name: String,
        /// The commit at which it was last seen.
        tip: Oid,
    },
    /// A worktree.
    Worktree {
        /// Its top.
        path: PathBuf,
        /// The branch that is checked out.
        branch: Option<BranchName>,
        /// The commit that is checked out.
        head: Option<Oid>,
        /// Whether it is a scratch worktree, whose files are of no value.
        is_scratch: bool,
        /// Whether its directory is gone.
        is_missing: bool,
    },
    /// A file, or a directory that is not a worktree.
    Path(PathBuf),
}

/// Where else the commits of a candidate are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commits {
    /// It has none. The commits of a checked-out branch count for the branch.
    None,
    /// All of them are reachable from a ref that stays.
    Held,
    /// All of them are reachable only from remote-tracking refs, which a fetch may delete.
    Copied,
    /// Their content is in a branch that stays.
    Landed {
        /// The branch.
        into: String,
        /// How that was proved.
        how: Proof,
    },
    /// This many are nowhere else.
    Loose(usize),
    /// They were merged, and a later commit took their changes back.
    Reverted(RevertedMerge),
}

/// How the content of commits was found in a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Every file that they changed is the same there.
    Tree,
    /// A single commit there makes the same change.
    Squash,
    /// Each of them was cherry-picked.
    Picks,
}

/// Uncommitted files of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncommittedContent {
    /// Nothing.
    Nothing,
    /// These paths, which can be saved.
    Unsaved(Vec<String>),
    /// Something that cannot be saved, with the reason.
    Stuck(String),
}

/// Something that cleanup could delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its kind.
    pub what: CandidateKind,
    /// Where it is.
    pub place: CandidatePlace,
    /// Its name, for people.
    pub name: String,
    /// The task or session that it belongs to, and other names under which it can be selected.
    pub owners: Vec<String>,
    /// The component of the run that it belongs to.
    pub run: Option<String>,
    /// Reasons why it is in use.
    pub in_use: Vec<InUse>,
    /// Facts that could not be determined.
    pub unknown: Vec<String>,
    /// Where else its commits are.
    pub commits: Commits,
    /// Its uncommitted files.
    pub content: UncommittedContent,
    /// The ignored files in it. They are deleted with it, and are nowhere else.
    pub ignored: Vec<String>,
    /// The index of the candidate worktree that has it checked out.
    pub worktree_index: Option<usize>,
    /// When it was last used, in seconds since 1970.
    pub time: Option<i64>,
    /// Its size in bytes, if known.
    pub size: Option<u64>,
    /// Why an earlier deletion of it failed, if it is in the trash.
    pub deletion_failed: Option<String>,
    /// The repository that records its session, if it is another one.
    pub home: Option<String>,
}

impl Candidate {
    /// A candidate without commits and files that is not in use.
    #[must_use]
    pub fn new(what: CandidateKind, place: CandidatePlace, name: String) -> Self {
        Self {
            what,
            place,
            name,
            owners: Vec::new(),
            run: None,
            in_use: Vec::new(),
            unknown: Vec::new(),
            commits: Commits::None,
            content: UncommittedContent::Nothing,
            ignored: Vec::new(),
            worktree_index: None,
            time: None,
            size: None,
            deletion_failed: None,
            home: None,
        }
    }

    /// The name and the target, if it is a ref of this repository.
    #[must_use]
    pub fn as_ref(&self) -> Option<(&str, Oid)> {
        match &self.place {
            CandidatePlace::Ref { name, tip } => Some((name, *tip)),
            _ => None,
        }
    }

    /// The path, if it is a file or directory.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        match &self.place {
            CandidatePlace::Worktree { path, .. } | CandidatePlace::Path(path) => Some(path),
            _ => None,
        }
    }
}
