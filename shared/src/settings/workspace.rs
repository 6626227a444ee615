//! The keys of a workspace: several repositories under one plan.

use std::collections::BTreeMap;

use super::{
    DefaultValue, ValueKind,
    setting::{PATH, choices, settings},
    value::Sourced,
};

/// The prefix before the name of a repository.
pub(super) const PREFIX: &str = "workspace.repos.";

choices! {
    /// When a repository is pushed.
    PushPolicy {
        /// Runs do not push it.
        #[default]
        Never = "never",
        /// Pushed when the run has succeeded.
        OnCompletion = "on_completion",
        /// After each commit. The checkpoints of session records are something else.
        OnCheckpoint = "on_checkpoint",
    }
}

settings! {
    /// `workspace.repos.NAME`: one repository of a workspace.
    RepoSettings in REPOS;

    path: Option<Sourced<String>> {
        key: "workspace.repos.*.path",
        kind: ValueKind::Text,
        expected: PATH,
        default: DefaultValue::InWords("none: it must be given"),
        about: "Where a repository of the workspace is, relative to the top of the main checkout; '.' is the one that has the plan.",
    }
    remote: Option<Sourced<String>> {
        key: "workspace.repos.*.remote",
        kind: ValueKind::Text,
        expected: "the URL of a repository, or the name of a remote, in quotes",
        default: DefaultValue::InWords("none: the repository is not cloned, fetched or pushed"),
        about: "Where a repository is cloned from if its path is not there, fetched from when a run begins, and pushed to.",
    }
    branch_prefix: Option<Sourced<String>> {
        key: "workspace.repos.*.branch-prefix",
        kind: ValueKind::Text,
        expected: "the beginning of a branch name, in quotes",
        default: DefaultValue::InWords("arborist/"),
        about: "The prefix of the session branches of a repository.",
    }
    push: Option<Sourced<PushPolicy>> {
        key: "workspace.repos.*.push",
        kind: ValueKind::Choice(PushPolicy::WORDS),
        default: DefaultValue::InWords("on_completion with a remote, else never"),
        about: "When the branches and records of a run are pushed: never, when the run has succeeded (on_completion), or after each commit, in the background (on_checkpoint).",
    }
    clone_depth: Option<Sourced<u64>> {
        key: "workspace.repos.*.clone-depth",
        kind: ValueKind::Count,
        expected: "a number of commits, 1 or more",
        default: DefaultValue::InWords("everything"),
        about: "How many commits of history are cloned, 1 or more. More are fetched only if a merge needs them.",
    }
    default_branch: Option<Sourced<String>> {
        key: "workspace.repos.*.default-branch",
        kind: ValueKind::Text,
        expected: "the name of a branch, in quotes",
        default: DefaultValue::InWords("the branch that is checked out in the main repository, else what the remote says"),
        about: "The branch at which work in a repository starts.",
    }
    tools: BTreeMap<String, Sourced<String>> {
        key: "workspace.repos.*.tools.*",
        kind: ValueKind::Command,
        expected: "a command for a shell, in quotes",
        default: DefaultValue::InWords("none"),
        about: "A named command. As a test command or a gate, NAME:TOOL runs it in that repository; agents get it as a tool.",
    }
}
