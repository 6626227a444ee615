//! Gates: commands that decide whether a commit may land.

use serde::Serialize;

use super::GateFault;
use crate::{
    name::{Oid, RepoName, digest},
    pipeline::KnownRed,
    plan::TestCommand,
    settings::{GATE_SECONDS, Origin},
};

/// The prefix of the refs of results.
pub const GATES: &str = "refs/arborist/gates/";

/// A command that a commit has to pass. It comes from the configuration or the frozen plan, never from a ref.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Gate {
    /// Its name.
    pub name: String,
    /// The command, for a shell.
    pub command: String,
    /// Its time limit in seconds.
    pub timeout: u64,
    /// If set, it runs only if a path that matches this pathspec has changed.
    pub when: Option<String>,
    /// Whether a file of the repository defines it.
    pub foreign: bool,
    /// Whether it tests something that only this task or phase adds. Then its failure on the target says nothing.
    pub own: bool,
    /// Whether it is a test command rather than a configured gate. It accepts what a test step accepts: otherwise a
    /// repository without tests could not land its first task.
    #[serde(default)]
    pub is_test: bool,
    /// Tests that are known to fail.
    #[serde(skip)]
    pub known_red: KnownRed,
    /// The repository in which it runs; `None` for the plan's. In another one it tests what is to land there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepoName>,
}

impl Gate {
    /// The default time limit in seconds.
    pub const USUAL_TIMEOUT: u64 = GATE_SECONDS;

    /// A gate that always runs.
    #[must_use]
    pub fn new(name: &str, command: &str, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            command: command.to_owned(),
            timeout: Self::USUAL_TIMEOUT,
            when: None,
            foreign: origin == Origin::Repository,
            own: false,
            is_test: false,
            known_red: KnownRed::default(),
            repo: None,
        }
    }

    /// A gate that tests something that only a task or phase adds.
    #[must_use]
    pub fn of_test(name: &str, test: &TestCommand, origin: Origin, timeout: u64) -> Self {
        let timeout = test.timeout.unwrap_or(timeout);
        Self { own: true, is_test: true, timeout, ..Self::new(name, &test.command, origin) }
    }

    /// The test command of a run as the gate of every landing. If it fails on the target too, no task is to blame.
    #[must_use]
    pub fn of_test_command(command: &str, origin: Origin, timeout: u64) -> Self {
        Self { is_test: true, timeout, ..Self::new("test", command, origin) }
    }

    /// Whether both are the same command in the same repository.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let identity = |gate: &Self| (gate.name.clone(), gate.command.clone(), gate.repo.clone(), gate.own);
        identity(self) == identity(other)
    }

    /// The key under which results are remembered, together with the tree.
    #[must_use]
    pub fn key(&self) -> String {
        // A gate can read its name from its environment, so the same command may behave differently under another name.
        // And a gate that passes only because some tests may fail does not pass for a landing in which they may not.
        let identity = (&self.repo, &self.name, self.is_test, &self.command, &self.known_red);
        digest(format!("{identity:?}").as_bytes())[..16].to_owned()
    }
}

/// The result of all gates for a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// All passed.
    Green,
    /// One failed.
    Red(Failing),
    /// One could not be run, so no task is to blame.
    Broken(Failing),
}

/// The result of a gate that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// The gate.
    pub gate: Gate,
    /// The commit that was tested.
    pub commit: Oid,
    /// The reason, in one line.
    pub why: String,
    /// The log file.
    pub log: String,
    /// The end of the log.
    pub tail: String,
    /// Why it gave no result, if it gave none.
    #[serde(skip)]
    pub fault: GateFault,
    /// Whether it passed, but ran fewer tests than before.
    #[serde(skip)]
    pub ran_fewer: bool,
    /// What the sandbox refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
}
