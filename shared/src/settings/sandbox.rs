//! The keys of the sandbox.

use super::{Setting, ValueKind};

const MODES: &[&str] = &["auto", "landlock", "off"];
const MODE: &str = "auto, landlock or off";
const FOLDERS: &str = "a list of folders in quotes, each absolute or beginning with ~/";

/// The keys of the sandbox, for all children, for one step and for one runner.
pub(super) const SANDBOX: &[Setting] = &[
    Setting {
        key: "sandbox.mode",
        variable: Some("ARBORIST_SANDBOX"),
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "auto",
        about: "How agents, reviewers, tests, gates and set-up commands are kept from changing files outside of their worktree. auto uses Landlock where the system supports it, and leaves codex to its own sandbox; landlock refuses to run without it; off sets no limits.",
    },
    Setting {
        key: "sandbox.write",
        variable: Some("ARBORIST_SANDBOX_WRITE"),
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders that may be changed in the sandbox, in addition to the worktree, the agent's own state, caches of package managers and a private folder for temporary files.",
    },
    Setting {
        key: "steps.*.sandbox.mode",
        variable: None,
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "runners.*.sandbox.mode, then sandbox.mode",
        about: "The sandbox of one step: implement, review, resolve, plan, commit-message, test, gate or setup.",
    },
    Setting {
        key: "steps.*.sandbox.write",
        variable: None,
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders that may be changed in one step, in addition to sandbox.write.",
    },
    Setting {
        key: "runners.*.sandbox.mode",
        variable: None,
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "sandbox.mode",
        about: "The sandbox of one runner.",
    },
    Setting {
        key: "runners.*.sandbox.write",
        variable: None,
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders that one runner may change, in addition to sandbox.write.",
    },
];
