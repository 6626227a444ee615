//! A task as its plan declares it. Nothing here knows how the task is getting on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{name::TaskId, words::words};

words! {
    /// What the plan itself says about a task's progress: the mark in its box.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Mark {
        /// To be done.
        #[default]
        Todo = "todo",
        /// Complete from the start.
        Done = "done",
        /// Skipped; other tasks do not wait for it.
        Skipped = "skipped",
        /// Partly done; still to do.
        Partial = "partial",
        /// Blocked by something outside the plan; still to do.
        Blocked = "blocked",
    }
}

impl Mark {
    /// The mark that a character in a Markdown box stands for.
    #[must_use]
    pub fn from_box(character: char) -> Option<Self> {
        match character {
            ' ' => Some(Self::Todo),
            'x' | 'X' => Some(Self::Done),
            '-' => Some(Self::Skipped),
            '~' | '/' => Some(Self::Partial),
            '!' | '?' => Some(Self::Blocked),
            _ => None,
        }
    }

    /// Whether nobody has to work on the task.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

words! {
    /// What a test command covers.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum TestKind {
        /// One task by itself.
        #[default]
        Unit = "unit",
        /// Tasks together; on a parent it runs when the last leaf is done.
        Integration = "integration",
        /// The whole product; on a parent it runs when the last leaf is done.
        E2e = "e2e",
    }
}

/// A test command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestCommand {
    /// What it covers.
    pub kind: TestKind,
    /// The command line, for a shell.
    pub command: String,
    /// The test framework, such as `pytest`.
    pub framework: Option<String>,
    /// Time limit in seconds.
    pub timeout: Option<u64>,
    /// Keys that we do not know, kept for a rewrite.
    pub extra: Map<String, Value>,
}

/// Where a task is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSource {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The byte of the file that holds the mark between `[` and `]`, where there is such a box.
    pub mark_at: Option<usize>,
}

/// A node of the tree: a task to work on if it is a leaf, else a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its name, one line.
    pub name: String,
    /// The description.
    pub description: String,
    /// Its phase.
    pub parent: Option<TaskId>,
    /// What belongs to it, in order.
    pub children: Vec<TaskId>,
    /// What it waits for, as declared; see [`super::Readiness::waits_for`].
    pub depends_on: Vec<TaskId>,
    /// How it is tested.
    pub test_commands: Vec<TestCommand>,
    /// What the plan says about its progress.
    pub mark: Mark,
    /// Whether the plan says that it may run in parallel with its neighbours.
    pub parallel: bool,
    /// Whether it writes tests that must fail until a later task makes them pass.
    pub red: bool,
    /// What it may do that tasks may not: pathspecs of protected files that it may change, and `fewer-tests`.
    pub allow: Vec<String>,
    /// Labels that the plan gave it, such as `US1`.
    pub tags: Vec<String>,
    /// Who is to work on it, if not the default.
    pub runner: Option<String>,
    /// The model, if not the default.
    pub model: Option<String>,
    /// In which repositories of the workspace; the agent begins in the first. Empty for the one that has the plan.
    pub repos: Vec<String>,
    /// What the `shell` runner runs.
    pub command: Option<String>,
    /// Paths that it names.
    pub files: Vec<String>,
    /// Where it is written down.
    pub source: Option<TaskSource>,
    /// Keys that we do not know, kept for a rewrite.
    pub extra: Map<String, Value>,
}

impl Task {
    /// A task that nothing is known of but its id and name.
    #[must_use]
    pub fn new(id: TaskId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            description: String::new(),
            parent: None,
            children: Vec::new(),
            depends_on: Vec::new(),
            test_commands: Vec::new(),
            mark: Mark::Todo,
            parallel: false,
            red: false,
            allow: Vec::new(),
            tags: Vec::new(),
            runner: None,
            model: None,
            repos: Vec::new(),
            command: None,
            files: Vec::new(),
            source: None,
            extra: Map::new(),
        }
    }

    /// The commands that test a phase as a whole, once all of its leaves are there.
    pub fn own_tests(&self) -> impl Iterator<Item = &TestCommand> {
        self.test_commands.iter().filter(|_| !self.is_leaf())
    }

    /// A leaf is worked on; everything else is a phase.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Whether both name the same file. Files of different repositories are not the same.
    #[must_use]
    pub fn shares_files(&self, other: &Self) -> bool {
        let are_apart = !self.repos.is_empty()
            && !other.repos.is_empty()
            && self.repos.iter().all(|repo| !other.repos.contains(repo));
        let is_same = |a: &String, b: &String| a.trim_start_matches("./") == b.trim_start_matches("./");
        !are_apart && self.files.iter().any(|file| other.files.iter().any(|named| is_same(file, named)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_files_by_path_and_repository() {
        let task = |files: &[&str], repos: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Task { files: owned(files), repos: owned(repos), ..Task::new("T1".parse().unwrap(), "a") }
        };
        for (one, other, is_shared) in [
            (task(&["src/a.rs"], &[]), task(&["./src/a.rs"], &[]), true),
            (task(&["src/"], &[]), task(&["src/a.rs"], &[]), false),
            (task(&["a.rs"], &["web"]), task(&["a.rs"], &["api"]), false),
            (task(&["a.rs"], &["web", "api"]), task(&["a.rs"], &["api"]), true),
            (task(&[], &[]), task(&["a.rs"], &[]), false),
        ] {
            assert_eq!(one.shares_files(&other), is_shared, "{:?} {:?}", one.files, other.files);
            assert_eq!(other.shares_files(&one), is_shared, "{:?} {:?}", other.files, one.files);
        }
    }
}
