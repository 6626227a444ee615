//! The keys of the sandbox.

use super::{Setting, ValueKind};

const MODES: &[&str] = &["auto", "landlock", "bwrap", "off"];
const MODE: &str = "auto, landlock, bwrap or off";
const NETWORKS: &[&str] = &["all", "none"];
const NETWORK: &str = "all or none";
const GITS: &[&str] = &["closed", "private"];
const GIT: &str = "closed or private";
const MEGABYTES: &str = "a number of megabytes, 1 or more";
const PROCESSES: &str = "a number of processes, 1 or more";
const FOLDERS: &str = "a list of folders in quotes, each absolute or beginning with ~/";
const PATHS: &str = "a list of folders and files in quotes, each absolute or beginning with ~/";

/// The keys of the sandbox, for all children, for one step and for one runner.
pub(super) const SANDBOX: &[Setting] = &[
    Setting {
        key: "sandbox.mode",
        variable: Some("ARBORIST_SANDBOX"),
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "auto",
        about: "How agents, reviewers, tests, gates, set-up commands and your pre-commit hook are kept from changing files outside of their worktree. auto uses bubblewrap (bwrap) if it works, or else Landlock (on macOS sandbox-exec), and leaves codex to its own sandbox where that does not work inside; landlock and bwrap refuse to run without it; off sets no limits. Only bwrap closes .git in your own checkout.",
    },
    Setting {
        key: "sandbox.deny-read",
        variable: Some("ARBORIST_SANDBOX_DENY_READ"),
        kind: ValueKind::Folders,
        expected: PATHS,
        default: "~/.ssh, ~/.gnupg, ~/.aws, ~/.netrc, worktrees of other tasks, and git directories of repositories that a task does not work in; set-up commands may read ~/.ssh and ~/.netrc",
        about: "Folders and files that cannot be read in the sandbox. With bwrap they look empty. With Landlock their files cannot be read, but their names stay visible, and files in folders that may be changed stay readable.",
    },
    Setting {
        key: "sandbox.git",
        variable: Some("ARBORIST_SANDBOX_GIT"),
        kind: ValueKind::Choice(GITS),
        expected: GIT,
        default: "closed",
        about: "The git directory that an agent sees while it implements a task. closed: the repository's own, which it can only read, so that git add and git commit fail. private: a copy that is thrown away, for agents that insist on committing; their commits are kept under refs/arborist/saved/ and folded into the commit of the task. private needs bwrap, and nothing is started without it.",
    },
    Setting {
        key: "sandbox.max-file-size",
        variable: Some("ARBORIST_SANDBOX_MAX_FILE_SIZE"),
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: "no limit",
        about: "How large a file may become that an agent, reviewer, test, gate, set-up command or your pre-commit hook writes, also if sandbox.mode is off. A program that exceeds it is ended by the signal SIGXFSZ, or its write fails.",
    },
    Setting {
        key: "sandbox.max-processes",
        variable: Some("ARBORIST_SANDBOX_MAX_PROCESSES"),
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: "no limit",
        about: "How many processes and threads each of these programs may have at once, itself included, also if sandbox.mode is off. Outside of bwrap the system counts all of your processes, so those that you start meanwhile count, too. It does not limit root.",
    },
    Setting {
        key: "sandbox.network",
        variable: Some("ARBORIST_SANDBOX_NETWORK"),
        kind: ValueKind::Choice(NETWORKS),
        expected: NETWORK,
        default: "all",
        about: "Whether programs in the sandbox can use the network. The value none needs bwrap: without it, nothing is started.",
    },
    Setting {
        key: "sandbox.write",
        variable: Some("ARBORIST_SANDBOX_WRITE"),
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders and files that may be changed in the sandbox, in addition to the worktree, the files in which the agent keeps its sessions and its login, caches of package managers and a private folder for temporary files.",
    },
    Setting {
        key: "steps.*.sandbox.mode",
        variable: None,
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "the value of runners.*.sandbox.mode, or else of sandbox.mode",
        about: "The sandbox of one step: implement, review, resolve, plan, commit-message, test, gate, setup or hook (your pre-commit hook).",
    },
    Setting {
        key: "steps.*.sandbox.deny-read",
        variable: None,
        kind: ValueKind::Folders,
        expected: PATHS,
        default: "the value of runners.*.sandbox.deny-read, or else of sandbox.deny-read",
        about: "Folders and files that look empty in the sandbox of one step.",
    },
    Setting {
        key: "steps.*.sandbox.max-file-size",
        variable: None,
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: "the value of runners.*.sandbox.max-file-size, or else of sandbox.max-file-size",
        about: "How large a file of one step may become.",
    },
    Setting {
        key: "steps.*.sandbox.max-processes",
        variable: None,
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: "the value of runners.*.sandbox.max-processes, or else of sandbox.max-processes",
        about: "How many processes and threads one step may have at once.",
    },
    Setting {
        key: "steps.*.sandbox.network",
        variable: None,
        kind: ValueKind::Choice(NETWORKS),
        expected: NETWORK,
        default: "the value of runners.*.sandbox.network, or else of sandbox.network",
        about: "Whether one step can use the network.",
    },
    Setting {
        key: "steps.*.sandbox.write",
        variable: None,
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders and files that may be changed in one step, in addition to sandbox.write.",
    },
    Setting {
        key: "runners.*.sandbox.mode",
        variable: None,
        kind: ValueKind::Choice(MODES),
        expected: MODE,
        default: "the value of 'sandbox.mode'",
        about: "The sandbox of one runner.",
    },
    Setting {
        key: "runners.*.sandbox.deny-read",
        variable: None,
        kind: ValueKind::Folders,
        expected: PATHS,
        default: "the value of 'sandbox.deny-read'",
        about: "Folders and files that look empty in the sandbox of one runner.",
    },
    Setting {
        key: "runners.*.sandbox.git",
        variable: None,
        kind: ValueKind::Choice(GITS),
        expected: GIT,
        default: "sandbox.git",
        about: "What one runner finds as the git directory when it implements a task.",
    },
    Setting {
        key: "runners.*.sandbox.max-file-size",
        variable: None,
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: "the value of 'sandbox.max-file-size'",
        about: "How large a file of one runner may become.",
    },
    Setting {
        key: "runners.*.sandbox.max-processes",
        variable: None,
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: "the value of 'sandbox.max-processes'",
        about: "How many processes and threads one runner may have at once.",
    },
    Setting {
        key: "runners.*.sandbox.network",
        variable: None,
        kind: ValueKind::Choice(NETWORKS),
        expected: NETWORK,
        default: "the value of 'sandbox.network'",
        about: "Whether one runner can use the network.",
    },
    Setting {
        key: "runners.*.sandbox.write",
        variable: None,
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: "none",
        about: "Folders and files that one runner may change, in addition to sandbox.write.",
    },
];
