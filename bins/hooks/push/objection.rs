//! The reasons to refuse a push, in words, and the commits that claim to be ours and are malformed.

use std::fmt::Write;

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, RawCommit},
    message::{Fault, MessageReading, counted, read},
    name::Oid,
    process::shell_word,
};

use super::{
    Push, RefUpdate,
    effect::Slice,
    receiver::{Receiver, distinct},
};
use crate::hooks::fault::shown;

const MAX_SHOWN: usize = 5;

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
    Malformed { commit: Oid, faults: Vec<Fault>, text: String },
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
            Self::Malformed { commit, faults, text } => {
                let commit = commit.short();
                let first = faults.first().filter(|fault| !fault.is_missing);
                let mut words =
                    format!("commit {commit} looks like a task commit, but its message is not valid");
                if let Some(first) = first {
                    let _ = write!(words, "\n  line {}: {}", first.line, shown(text));
                }
                for fault in faults.iter().take(MAX_SHOWN) {
                    let is_first = first.is_some_and(|first| first.line == fault.line && !fault.is_missing);
                    let _ = match is_first {
                        true => write!(words, "\n    {}", fault.what),
                        false => write!(words, "\n  {fault}"),
                    };
                }
                words
            }
        }
    }

    fn hint(&self, receiver: &Receiver) -> String {
        match self {
            Self::Unknown { .. } => "fetch first: git fetch".into(),
            Self::Rewound { .. } => "merge what the ref holds, then push again".into(),
            Self::Deleted { .. } | Self::Dropped { .. } => {
                let newest = match self {
                    Self::Dropped { newest, .. } => newest.short(),
                    _ => String::new(),
                };
                keep_words(&newest, receiver)
            }
            Self::Malformed { commit, faults, .. } => {
                let commit = commit.short();
                // The hook of a server cannot be skipped.
                let skip = match receiver {
                    Receiver::Remote(_) => ", or skip this check with --no-verify",
                    Receiver::Here => "",
                };
                let mut words = format!("reword it before you push (git rebase -i {commit}^){skip}");
                for fault in faults.iter().take(MAX_SHOWN) {
                    let _ = match fault.is_missing {
                        true => write!(words, "\nin {commit}, {}", fault.fix),
                        false => write!(words, "\nin {commit}, line {}: {}", fault.line, fault.fix),
                    };
                }
                if faults.len() > MAX_SHOWN {
                    let _ = write!(words, "\nsee all faults with: git arborist trailers check {commit}");
                }
                words
            }
        }
    }
}

/// How to keep commits that a push would lose.
fn keep_words(newest: &str, receiver: &Receiver) -> String {
    // The server does not know its own name at the other end.
    let remote = match receiver {
        Receiver::Remote(remote) => shell_word(remote),
        Receiver::Here => "origin".into(),
    };
    match newest {
        "" => "merge the commits into a branch that is kept, and push that first".into(),
        newest => {
            format!("keep them on another branch first: git push {remote} {newest}:refs/heads/kept-{newest}")
        }
    }
}

/// The error for these objections, if there are any.
pub(super) fn refusal(objections: &[Objection], receiver: &Receiver) -> Option<Failure> {
    let (first, rest) = objections.split_first()?;
    let mut failure = Failure::new(Exit::No, first.message()).hint(first.hint(receiver));
    for objection in rest.iter().take(MAX_SHOWN - 1) {
        let _ = write!(failure.message, "\nerror: {}", objection.message());
        let hint = objection.hint(receiver);
        if !failure.hints.contains(&hint) {
            failure = failure.hint(hint);
        }
    }
    if objections.len() > MAX_SHOWN {
        let _ = write!(failure.message, "\nerror: and {} more", objections.len() - MAX_SHOWN);
    }
    Some(failure)
}

/// The commits that the receiver gets.
#[derive(Default)]
pub(super) struct Arriving {
    /// The objections to some of them, oldest first.
    pub objections: Vec<Objection>,
    /// Their graph; empty unless a ref of ours grows, for which ancestry must be proved.
    pub slice: Slice,
}

/// Examines every commit that arrives.
pub(super) fn scan(push: &Push<'_>) -> Result<Arriving, GitError> {
    let mut arriving = Arriving::default();
    let tips = distinct(push.updates.iter().filter_map(|update| update.new));
    let is_to_grow = |update: &RefUpdate| update.is_ours() && update.old.is_some() && update.new.is_some();
    let has_to_grow = push.updates.iter().any(is_to_grow);
    push.each_between(&tips, &push.known(), |commit| {
        if has_to_grow {
            arriving.slice.add(commit);
        }
        arriving.objections.extend(objection(commit));
    })?;
    arriving.objections.reverse();
    Ok(arriving)
}

fn objection(commit: &RawCommit) -> Option<Objection> {
    let MessageReading::Malformed(faults) = read(commit.message()) else {
        return None;
    };
    let fault = faults.first()?;
    let text = String::from_utf8_lossy(commit.message());
    let line = text.lines().nth(fault.line.saturating_sub(1)).unwrap_or_default().to_owned();
    Some(Objection::Malformed { commit: commit.id, faults, text: line })
}
