//! Names that are valid once built, and that do not convert into each other.

mod branch;
mod oid;
mod session;
mod task;

pub use branch::{BranchName, TASK_BRANCHES};
pub use oid::{ObjectFormat, Oid};
pub use session::SessionId;
pub use task::TaskId;

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that could not be built, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a valid {kind}: {why}")]
pub struct NameError {
    /// What was given.
    pub name: String,
    /// What it should have been, such as `task id`.
    pub kind: &'static str,
    /// The rule that it breaks.
    pub why: &'static str,
}

impl NameError {
    fn new(name: &str, kind: &'static str, why: &'static str) -> Self {
        Self { name: name.escape_debug().to_string(), kind, why }
    }
}

/// Which try of a task this is, from 0 as in `Arborist-Retry`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// As people count, from 1.
    #[must_use]
    pub fn ordinal(self) -> u32 {
        self.0.saturating_add(1)
    }

    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why git would not take `name` as one component of a ref, if it would not.
fn ref_component_fault(name: &str) -> Option<&'static str> {
    let forbidden =
        |c: char| c.is_ascii_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    if name.is_empty() {
        Some("it has an empty part")
    } else if name.starts_with('.') {
        Some("a part of it begins with a dot")
    } else if name.to_ascii_lowercase().ends_with(".lock") {
        Some("a part of it ends in '.lock'")
    } else if name.contains("..") {
        Some("it contains '..'")
    } else if name.contains("@{") {
        Some("it contains '@{'")
    } else if name.contains(forbidden) {
        Some("it contains a space, a control character or one of ~^:?*[\\")
    } else {
        None
    }
}
