//! What could go, and everything that is known of it. Plain data: who decides needs no repository.

use std::path::PathBuf;

use super::Active;
use crate::name::{BranchName, Oid};

/// What somebody can ask to be cleaned up alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Worktrees, folders that were worktrees, and trash.
    Worktrees,
    /// Branches of tasks, and the small refs about them.
    Branches,
    /// Branches and records of sessions.
    Sessions,
    /// Logs, and reports that are not committed.
    Logs,
    /// Saved work.
    Saved,
    /// What can be found out again.
    Caches,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Worktrees, Self::Branches, Self::Sessions, Self::Logs, Self::Saved, Self::Caches];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktrees => "worktrees",
            Self::Branches => "branches",
            Self::Sessions => "sessions",
            Self::Logs => "logs",
            Self::Saved => "saved",
            Self::Caches => "caches",
        }
    }
}

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A worktree that git knows of.
    Worktree,
    /// A folder of ours that git does not know any more.
    Folder,
    /// A folder that was thrown away and not deleted yet.
    Trash,
    /// The branch of a task.
    Branch,
    /// The branch of a task at a remote.
    RemoteBranch,
    /// A landing that was parked.
    Landing,
    /// A claim on a task.
    Claim,
    /// The mark of an attempt, or work that was saved while it went on.
    Unfinished,
    /// The branch of a session.
    SessionBranch,
    /// The record of a session, or its transcript.
    Record,
    /// The output of an agent or a test.
    Log,
    /// A report that is not committed.
    Report,
    /// Saved work.
    Saved,
    /// What can be found out again.
    Cache,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Worktree,
        Self::Folder,
        Self::Trash,
        Self::Branch,
        Self::RemoteBranch,
        Self::Landing,
        Self::Claim,
        Self::Unfinished,
        Self::SessionBranch,
        Self::Record,
        Self::Log,
        Self::Report,
        Self::Saved,
        Self::Cache,
    ];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::Folder => "folder",
            Self::Trash => "trash",
            Self::Branch => "branch",
            Self::RemoteBranch => "remote",
            Self::Landing => "landing",
            Self::Claim => "claim",
            Self::Unfinished => "unfinished",
            Self::SessionBranch => "session",
            Self::Record => "record",
            Self::Log => "log",
            Self::Report => "report",
            Self::Saved => "saved",
            Self::Cache => "cache",
        }
    }

    /// What it is asked for with.
    #[must_use]
    pub fn topic(self) -> Topic {
        match self {
            Self::Worktree | Self::Folder | Self::Trash => Topic::Worktrees,
            Self::Branch | Self::RemoteBranch | Self::Landing | Self::Claim | Self::Unfinished => {
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
        /// What it points at.
        tip: Oid,
    },
    /// A branch of a remote.
    Remote {
        /// The remote.
        remote: String,
        /// Its full name there.
        name: String,
        /// Where it was last seen.
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
        /// Whether what lies there is nobody's work: tests ran there.
        is_scratch: bool,
        /// Whether its folder is gone.
        is_missing: bool,
    },
    /// A file, or a folder that is no worktree.
    Path(PathBuf),
}

/// Where the commits of a candidate are besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commits {
    /// It has none.
    None,
    /// A ref that stays leads to all of them.
    Held,
    /// Only what is remembered of remotes leads to all of them: a fetch may take that away.
    Copied,
    /// Their content is in a branch that stays.
    Landed {
        /// Which.
        into: String,
        /// How that was proved.
        how: Proof,
    },
    /// So many are nowhere else.
    Loose(usize),
}

/// How it was proved that the content of commits is in a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Every file that they changed is the same there.
    Tree,
    /// A commit there makes the same change.
    Squash,
    /// Each of them was picked.
    Picks,
}

/// What lies in a candidate that no commit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncommittedContent {
    /// Nothing.
    Nothing,
    /// These paths, which can be saved.
    Unsaved(Vec<String>),
    /// Something that cannot be saved, in words.
    Stuck(String),
}

/// Something that could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What it is.
    pub what: What,
    /// Where it is.
    pub spot: CandidatePlace,
    /// Its name, for people.
    pub name: String,
    /// The task or session that it belongs to, and other words that it is asked for with.
    pub owners: Vec<String>,
    /// The component of the run that it belongs to.
    pub run: Option<String>,
    /// Why it is in use.
    pub active: Vec<Active>,
    /// What could not be found out.
    pub unknown: Vec<String>,
    /// Where its commits are besides.
    pub commits: Commits,
    /// What no commit holds.
    pub content: UncommittedContent,
    /// What git ignores there: it goes with it, and is nowhere else.
    pub ignored: Vec<String>,
    /// The worktree among the candidates that has it checked out.
    pub stands_in: Option<usize>,
    /// When something was last done with it, in seconds since 1970.
    pub time: Option<i64>,
    /// How many bytes it takes, where that is known.
    pub size: Option<u64>,
}

impl Candidate {
    /// One of which nothing more is known: no commits, nothing in it, nobody at work.
    #[must_use]
    pub fn new(what: What, spot: CandidatePlace, name: String) -> Self {
        Self {
            what,
            spot,
            name,
            owners: Vec::new(),
            run: None,
            active: Vec::new(),
            unknown: Vec::new(),
            commits: Commits::None,
            content: UncommittedContent::Nothing,
            ignored: Vec::new(),
            stands_in: None,
            time: None,
            size: None,
        }
    }

    /// The ref's name and where it is, if it is one of this repository.
    #[must_use]
    pub fn as_ref(&self) -> Option<(&str, Oid)> {
        match &self.spot {
            CandidatePlace::Ref { name, tip } => Some((name, *tip)),
            _ => None,
        }
    }

    /// The folder or file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        match &self.spot {
            CandidatePlace::Worktree { path, .. } | CandidatePlace::Path(path) => Some(path),
            _ => None,
        }
    }
}
