//! Ids of tasks and of sessions, and names of workers: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, and valid as the last part of a ref.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ref_component_fault;

const LONGEST_TASK_ID: usize = 64;

/// The id of a task, such as `T001`. Comparison is exact: `T1` is neither `T10` nor `t1`. Clones share the text,
/// because a plan names each task in many places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// The id in lower case. Two ids that are equal in this form cannot be in one plan, because some file systems would
    /// treat their refs as one.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// Why `name` is no task id, if it is not.
fn fault(name: &str) -> Option<&'static str> {
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some("it must start with an ASCII letter or digit");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Some("only ASCII letters, digits, '.', '_' and '-' are allowed");
    }
    if name.len() > LONGEST_TASK_ID {
        return Some("it is longer than 64 characters");
    }
    if name.ends_with('.') {
        return Some("it ends in a dot");
    }
    ref_component_fault(name)
}

checked_name!(TaskId, "task id", fault);

/// The id of a run's session, as in `Arborist-Session`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Whether `name` is a valid id. The alphabet is that of task ids; only the type differs.
    #[must_use]
    pub fn is_valid(name: &str) -> bool {
        fault(name).is_none()
    }
}

checked_name!(SessionId, "session id", fault);

/// The name of a worker: letters, digits, `.`, `_` and `-`. It is the same for all processes in one clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerName(String);

impl WorkerName {
    /// The name of the worker of a clone, from the name of the host and hexadecimal digits that identify the clone there.
    #[must_use]
    pub fn new(host: &str, clone: &str) -> Self {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let host: String = host.chars().filter(is_plain).take(40).collect();
        let host = host.trim_start_matches('-');
        Self(format!("{}-{clone}", if host.is_empty() { "worker" } else { host }))
    }
}

checked_name!(WorkerName, "name of a worker", fault);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_are_valid_if_git_accepts_them_as_the_last_part_of_a_ref() {
        for good in ["T001", "t1", "1.2", "T-HF01", "a_b", "T054b-1", &"x".repeat(64)] {
            assert!(good.parse::<TaskId>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ".a",
            "-a",
            "a..b",
            "a.lock",
            "a.LOCK",
            "a.",
            "a b",
            "a@b",
            "a/b",
            "ü",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
    }
}
