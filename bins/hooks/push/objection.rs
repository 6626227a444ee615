//! The reasons to refuse a push, in words.

use std::fmt::Write;

use arborist_core::{
    failure::{Exit, Failure},
    message::{Fault, counted},
    name::Oid,
};

use crate::hooks::fault::shown;

const MOST: usize = 5;

/// One reason to refuse a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Objection {
    /// A ref of ours has commits that are not in this repository.
    Unknown { name: String },
    /// A ref of ours would be rewound.
    Rewound { name: String },
    /// A ref of ours would be deleted, and commits with it.
    Deleted { name: String, commits: usize },
    /// Commits that hold the state of tasks, or the record of a session, would be lost.
    Dropped { name: String, newest: Oid, count: usize, what: &'static str },
    /// A commit claims to be ours and is malformed. The text is the line of the first fault.
    Unsound { commit: Oid, faults: Vec<Fault>, text: String },
}

impl Objection {
    fn message(&self) -> String {
        match self {
            Self::Unknown { name } => {
                format!(
                    "'{name}' belongs to git arborist, and this clone lacks its commits, so it cannot be checked what would be lost"
                )
            }
            Self::Rewound { name } => {
                format!("'{name}' belongs to git arborist, and this push is not a fast-forward")
            }
            Self::Deleted { name, commits } => {
                format!("'{name}' belongs to git arborist, and {} would be lost", counted(*commits, "commit"))
            }
            Self::Dropped { name, newest, count, what } => {
                let commits = counted(*count, "commit");
                format!("'{name}' would lose {commits} with {what}; the newest is {}", newest.short())
            }
            Self::Unsound { commit, faults, text } => {
                let commit = commit.short();
                let line = faults.first().map_or(1, |fault| fault.line);
                let mut words = format!(
                    "commit {commit} looks like a task commit, but its message is not valid\n  line {line}: {}",
                    shown(text)
                );
                for fault in faults.iter().take(MOST) {
                    let _ = match fault.line == line {
                        true => write!(words, "\n    {}", fault.what),
                        false => write!(words, "\n  {fault}"),
                    };
                }
                words
            }
        }
    }

    /// `may_skip`: whether the user can skip the check; the hook of a server cannot be skipped.
    fn hint(&self, may_skip: bool) -> String {
        match self {
            Self::Unknown { .. } => "fetch first: git fetch".into(),
            Self::Rewound { .. } => "merge what the ref holds, then push again".into(),
            Self::Deleted { .. } | Self::Dropped { .. } => {
                let newest = match self {
                    Self::Dropped { newest, .. } => newest.short(),
                    _ => String::new(),
                };
                keep_words(&newest)
            }
            Self::Unsound { commit, faults, .. } => {
                let commit = commit.short();
                let skip = if may_skip { ", or skip this check with --no-verify" } else { "" };
                let mut words = format!("reword it before you push (git rebase -i {commit}^){skip}");
                for fault in faults.iter().take(MOST) {
                    let _ = write!(words, "\nin {commit}, line {}: {}", fault.line, fault.fix);
                }
                if faults.len() > MOST {
                    let _ = write!(words, "\nsee all faults with: git arborist trailers check {commit}");
                }
                words
            }
        }
    }
}

/// How to keep commits that a push would lose.
fn keep_words(newest: &str) -> String {
    match newest {
        "" => "merge the commits into a branch that is kept, and push that first".into(),
        newest => {
            format!("keep them on another branch first: git push origin {newest}:refs/heads/kept-{newest}")
        }
    }
}

/// The error for these objections, if there are any.
pub(super) fn refusal(objections: &[Objection], may_skip: bool) -> Option<Failure> {
    let (first, rest) = objections.split_first()?;
    let mut failure = Failure::new(Exit::No, first.message()).hint(first.hint(may_skip));
    for objection in rest.iter().take(MOST - 1) {
        let _ = write!(failure.message, "\nerror: {}", objection.message());
        let hint = objection.hint(may_skip);
        if !failure.hints.contains(&hint) {
            failure = failure.hint(hint);
        }
    }
    if objections.len() > MOST {
        let _ = write!(failure.message, "\nerror: and {} more", objections.len() - MOST);
    }
    Some(failure)
}
