//! What a user should know of what was done with a worktree, in words.

use std::fmt;

/// Something that a user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeNote {
    /// What lay in a worktree was kept.
    Saved {
        /// The lane, or the task that had it.
        name: String,
        /// The ref that holds it.
        under: String,
    },
    /// The commits of a worktree on no branch were kept.
    SavedCommits {
        /// The worktree.
        name: String,
        /// The ref that holds them.
        under: String,
    },
    /// Some submodules are not checked out.
    WithoutSubmodules {
        /// Which, and why.
        which: String,
    },
    /// Files were asked for that have changed since it was settled what worktrees get, so they were not copied.
    Changed {
        /// Which.
        paths: String,
    },
    /// Files were asked for that git would commit, so they were not copied.
    NotCopied {
        /// Which.
        paths: String,
    },
}

impl fmt::Display for WorktreeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { name, under } => write!(f, "what lay in '{name}' is saved as {under}"),
            Self::SavedCommits { name, under } => {
                write!(f, "commits of '{name}' that are on no branch are saved as {under}")
            }
            Self::WithoutSubmodules { which } => write!(f, "without these submodules: {which}"),
            Self::Changed { paths } => {
                write!(f, "not copied from the checkout, because it was changed after the run began: {paths}")
            }
            Self::NotCopied { paths } => {
                write!(f, "not copied, because git does not ignore it there: {paths}")
            }
        }
    }
}
