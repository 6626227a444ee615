//! The keys of a workspace: several repositories under one plan.

use std::time::Duration;

use super::{
    Setting, Settings, ValueKind,
    table::{PATH, SECONDS},
};

/// The prefix before the name of a repository.
pub(super) const REPOS: &str = "workspace.repos.";
/// The default number of seconds that a remote may be silent.
const SILENCE: u64 = 60;
/// When a repository may be pushed.
const POLICIES: &[&str] = &["never", "on_completion", "on_checkpoint"];

/// The keys of each repository, and how long to wait for remotes.
pub(super) const WORKSPACE: &[Setting] = &[
    Setting {
        key: "workspace.repos.*.path",
        variable: None,
        kind: ValueKind::Text,
        expected: PATH,
        default: "none: it must be given",
        about: "Where a repository of the workspace is, relative to the top of the main checkout; '.' is the one that has the plan.",
    },
    Setting {
        key: "workspace.repos.*.remote",
        variable: None,
        kind: ValueKind::Text,
        expected: "the URL of a repository, or the name of a remote, in quotes",
        default: "none: the repository is not cloned, fetched or pushed",
        about: "Where a repository is cloned from if its path is not there, fetched from when a run begins, and pushed to.",
    },
    Setting {
        key: "workspace.repos.*.branch-prefix",
        variable: None,
        kind: ValueKind::Text,
        expected: "the beginning of a branch name, in quotes",
        default: "arborist/",
        about: "The prefix of the session branches of a repository.",
    },
    Setting {
        key: "workspace.repos.*.push",
        variable: None,
        kind: ValueKind::Choice(POLICIES),
        expected: "never, on_completion or on_checkpoint",
        default: "on_completion with a remote, else never",
        about: "When the branches and records of a run are pushed: never, when the run has succeeded (on_completion), or after each commit, in the background (on_checkpoint).",
    },
    Setting {
        key: "workspace.repos.*.clone-depth",
        variable: None,
        kind: ValueKind::Count,
        expected: "a number of commits, 1 or more",
        default: "everything",
        about: "How many commits of history are cloned, 1 or more. More are fetched only if a merge needs them.",
    },
    Setting {
        key: "workspace.repos.*.default-branch",
        variable: None,
        kind: ValueKind::Text,
        expected: "the name of a branch, in quotes",
        default: "the branch that is checked out in the main repository, else what the remote says",
        about: "The branch at which work in a repository starts.",
    },
    Setting {
        key: "workspace.repos.*.tools.*",
        variable: None,
        kind: ValueKind::Text,
        expected: "a command for a shell, in quotes",
        default: "none",
        about: "A named command. As a test command or a gate, NAME:TOOL runs it in that repository; agents get it as a tool.",
    },
    Setting {
        key: "timeouts.network",
        variable: Some("ARBORIST_TIMEOUT_NETWORK"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "60",
        about: "How long a remote may be silent before the connection is closed. A whole fetch or push may take thirty times as long.",
    },
];

impl Settings {
    /// How long a remote may be silent.
    #[must_use]
    pub fn network_silence(&self) -> Duration {
        Duration::from_secs(self.count("timeouts.network").unwrap_or(SILENCE).max(1))
    }
}
