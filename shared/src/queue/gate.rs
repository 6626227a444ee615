//! Gates: commands that decide whether a commit may land.

use serde::Serialize;

use crate::{
    name::{Oid, RepoName, digest},
    pipeline::KnownRed,
    plan::TestCommand,
    settings::Origin,
};

/// A command that a commit has to pass. It comes from the configuration or the frozen plan, and is never read from a ref.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Gate {
    /// What it is called.
    pub name: String,
    /// For a shell.
    pub command: String,
    /// How many seconds it may take.
    pub timeout: u64,
    /// Asked only if a path that this pathspec names is changed.
    pub when: Option<String>,
    /// Whether a file of the repository says so.
    pub foreign: bool,
    /// Whether it tests what only this task or this phase brings. That it is red on the target too says nothing then.
    pub own: bool,
    /// Whether it is a test command that nobody named as a gate. What it accepts in a test step, it accepts here: a
    /// repository without tests yet could not land its first task otherwise.
    #[serde(default)]
    pub is_test: bool,
    /// Tests that may fail.
    #[serde(skip)]
    pub known_red: KnownRed,
    /// The repository that it is asked in, at the head of the session there, if that is not the one that has the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepoName>,
    /// What it is asked about there.
    #[serde(skip)]
    pub point: GatePoint,
}

/// What a gate is asked about in another repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GatePoint {
    /// The head of the session's branch.
    #[default]
    Head,
    /// The same, for a task that began at this commit: what was red there was red before.
    HeadSince(Oid),
    /// This commit.
    At(Oid),
}

impl Gate {
    /// How long a gate may take that nobody set a time for.
    pub const USUAL_TIMEOUT: u64 = 900;

    /// A gate that is always asked.
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
            point: GatePoint::Head,
        }
    }

    /// One that tests what only a task or a phase brings.
    #[must_use]
    pub fn of_test(name: &str, test: &TestCommand, (origin, timeout): (Origin, u64)) -> Self {
        let timeout = test.timeout.unwrap_or(timeout);
        Self { own: true, is_test: true, timeout, ..Self::new(name, &test.command, origin) }
    }

    /// The test command of a run, as the gate of every landing. If it is red on the target too, no task is to blame.
    #[must_use]
    pub fn of_test_command(command: &str, (origin, timeout): (Origin, u64)) -> Self {
        Self { is_test: true, timeout, ..Self::new("test", command, origin) }
    }

    /// The same as it is asked about what was there before the task: of the target, or of another repository.
    #[must_use]
    pub fn earlier(&self) -> Self {
        let point = match self.point {
            GatePoint::HeadSince(commit) => GatePoint::At(commit),
            point => point,
        };
        Self { point, ..self.clone() }
    }

    /// Whether both are the same command for the same repository, whatever they are asked about there.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let asked = |gate: &Self| (gate.name.clone(), gate.command.clone(), gate.repo.clone(), gate.own);
        asked(self) == asked(other)
    }

    /// What results are remembered by, besides the tree.
    #[must_use]
    pub fn key(&self) -> String {
        // A gate knows its name from its environment, so the same command may answer differently under another one. What is
        // green only because some tests may fail is not green for a landing in which they may not.
        let asked = (&self.repo, &self.name, self.is_test, &self.command, &self.known_red);
        digest(format!("{asked:?}").as_bytes())[..16].to_owned()
    }
}

/// What the gates say to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// All let it through.
    Green,
    /// One does not.
    Red(Failing),
    /// One could not be asked, so that nobody is to blame.
    Broken(Failing),
}

/// What a gate said that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// The gate.
    pub gate: Gate,
    /// The commit that was tested.
    pub commit: Oid,
    /// In one line.
    pub why: String,
    /// Where all of its output is.
    pub log: String,
    /// The end of it.
    pub tail: String,
}
