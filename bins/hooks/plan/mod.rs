//! The changes that install or remove a hook. They are planned from what exists before anything is touched.

mod install;
mod uninstall;

use std::{fmt, path::PathBuf};

pub(super) use self::{
    install::{plan_install, refuse_outside},
    uninstall::plan_uninstall,
};
use super::event::HookEvent;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookChange {
    /// Set a key of the repository's configuration.
    Set { key: String, value: String },
    /// Remove a key of the repository's configuration.
    Unset { key: String },
    /// Keep a hook under another name, which must be free. The next change takes its own name.
    SetAside { from: PathBuf, to: PathBuf },
    /// Give a hook that was set aside its own name again, replacing ours.
    Restore { from: PathBuf, to: PathBuf },
    /// Write a hook file of ours.
    Place { path: PathBuf, bytes: Vec<u8> },
    /// Change a hook file of others, which keeps its permissions.
    Edit { path: PathBuf, bytes: Vec<u8> },
    /// Remove a file.
    Remove { path: PathBuf },
}

impl HookChange {
    /// A description of the change.
    pub(super) fn done(&self) -> String {
        let words = self.to_string();
        let (verb, rest) = words.split_once(' ').unwrap_or((&words, ""));
        let past = match verb {
            "rename" => "renamed",
            "remove" => "removed",
            "write" => "wrote",
            other => other,
        };
        format!("{past} {rest}")
    }
}

impl fmt::Display for HookChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { key, .. } => write!(f, "set {key} in the repository's configuration"),
            Self::Unset { key } => write!(f, "unset {key} in the repository's configuration"),
            Self::SetAside { from, to } | Self::Restore { from, to } => {
                write!(f, "rename '{}' to '{}'", from.display(), to.display())
            }
            Self::Place { path, .. } | Self::Edit { path, .. } => write!(f, "write '{}'", path.display()),
            Self::Remove { path } => write!(f, "remove '{}'", path.display()),
        }
    }
}

/// The changes for one hook, and notes for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookPlan {
    pub event: HookEvent,
    pub steps: Vec<HookChange>,
    pub notes: Vec<String>,
    /// What is not touched although it was asked for, and why.
    pub left: Vec<String>,
}

impl HookPlan {
    fn new(event: HookEvent, steps: Vec<HookChange>) -> Self {
        Self { event, steps, notes: Vec::new(), left: Vec::new() }
    }
}
