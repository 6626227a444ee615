//! Notes for the user about what was done with a worktree.

use std::fmt;

/// A note for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeNote {
    /// The files of a worktree were saved.
    Saved {
        /// The lane, or the task that had it.
        name: String,
        /// The ref that has them.
        under: String,
    },
    /// The commits of a worktree without a branch were saved.
    SavedCommits {
        /// The worktree.
        name: String,
        /// The ref that has them.
        under: String,
    },
    /// Some submodules are not checked out.
    WithoutSubmodules {
        /// Which, and why.
        which: String,
    },
    /// Files were not copied because they have changed since the list was made.
    Changed {
        /// Which.
        paths: String,
    },
    /// Files were not copied because git would commit them.
    NotCopied {
        /// Which.
        paths: String,
    },
    /// The sandbox refused something to a set-up command that succeeded.
    Denied {
        /// The command.
        command: String,
        /// What, and how to allow it.
        words: String,
    },
}

impl fmt::Display for WorktreeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { name, under } => write!(f, "files in '{name}' were saved as {under}"),
            Self::SavedCommits { name, under } => {
                write!(f, "commits of '{name}' that are on no branch were saved as {under}")
            }
            Self::WithoutSubmodules { which } => write!(f, "without these submodules: {which}"),
            Self::Changed { paths } => {
                write!(f, "not copied from the checkout, because it was changed after the run began: {paths}")
            }
            Self::NotCopied { paths } => {
                write!(f, "not copied, because git does not ignore it there: {paths}")
            }
            Self::Denied { command, words } => write!(f, "set-up command '{command}': {words}"),
        }
    }
}
