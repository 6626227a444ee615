//! What has to be done to install or remove a hook: decided from what is there, before anything is touched.

mod install;
mod uninstall;

use std::{fmt, path::PathBuf};

pub(super) use self::{install::plan_install, uninstall::plan_uninstall};
use super::event::Event;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Set a key of the repository's configuration.
    Set { key: String, value: String },
    /// Remove a key of the repository's configuration.
    Unset { key: String },
    /// Give a file another name in its folder.
    Rename { from: PathBuf, to: PathBuf },
    /// Write a hook file that can be executed; one that is there keeps its permissions.
    Write { path: PathBuf, bytes: Vec<u8> },
    /// Remove a file.
    Remove { path: PathBuf },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { key, .. } => write!(f, "set {key} in the repository's configuration"),
            Self::Unset { key } => write!(f, "unset {key} in the repository's configuration"),
            Self::Rename { from, to } => write!(f, "rename '{}' to '{}'", from.display(), to.display()),
            Self::Write { path, .. } => write!(f, "write '{}'", path.display()),
            Self::Remove { path } => write!(f, "remove '{}'", path.display()),
        }
    }
}

/// The changes for one hook, and what the user should know besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub event: Event,
    pub steps: Vec<Step>,
    pub notes: Vec<String>,
    /// What is not touched although it was asked for, and why.
    pub left: Vec<String>,
}

impl Plan {
    fn new(event: Event, steps: Vec<Step>) -> Self {
        Self { event, steps, notes: Vec::new(), left: Vec::new() }
    }
}
