//! The keys of the sandbox: for all children, for one step and for one runner.

use super::{
    DefaultValue, Setting, ValueKind,
    setting::{choices, setting, settings},
    value::{Assignments, NamedSettings, Sourced},
};

const MEGABYTES: &str = "a number of megabytes, 1 or more";
const PROCESSES: &str = "a number of processes, 1 or more";
const FOLDERS: &str = "a list of folders in quotes, each absolute or beginning with ~/";
const PATHS: &str = "a list of folders and files in quotes, each absolute or beginning with ~/";

choices! {
    /// How children are limited.
    SandboxMode {
        /// By the strongest means that the system has, or not at all if it has none.
        #[default]
        Auto = "auto",
        /// By Landlock. Nothing is started if the system does not support it.
        Landlock = "landlock",
        /// By bubblewrap. Nothing is started if it does not work.
        Bwrap = "bwrap",
        /// Not at all.
        Off = "off",
    }
}

choices! {
    /// The git directory that an agent sees while it implements a task.
    SandboxGit {
        /// The repository's own, which it can only read.
        #[default]
        Closed = "closed",
        /// A copy that is thrown away.
        Private = "private",
    }
}

choices! {
    /// What children can reach.
    SandboxNetwork {
        /// The whole network.
        #[default]
        All = "all",
        /// Nothing.
        None = "none",
    }
}

settings! {
    /// `sandbox`, `steps.NAME.sandbox` or `runners.NAME.sandbox`: what child processes may do.
    SandboxSettings in SANDBOX;

    mode: Option<Sourced<SandboxMode>> {
        key: "sandbox.mode",
        variable: "ARBORIST_SANDBOX",
        kind: ValueKind::Choice(SandboxMode::WORDS),
        default: DefaultValue::InWords("auto"),
        about: "How agents, reviewers, tests, gates, set-up commands and your pre-commit hook are kept from changing files outside of their worktree. auto: bubblewrap (bwrap) if it works, otherwise Landlock; on macOS, sandbox-exec. If codex's own sandbox does not work inside that sandbox, codex runs only in its own. landlock or bwrap: this sandbox; nothing is started if it does not work. off: no limits. Only bwrap makes .git in your own checkout read-only.",
    }
    deny_read: Option<Sourced<Vec<String>>> {
        key: "sandbox.deny-read",
        variable: "ARBORIST_SANDBOX_DENY_READ",
        kind: ValueKind::Folders,
        expected: PATHS,
        default: DefaultValue::InWords("~/.ssh, ~/.gnupg, ~/.aws, ~/.netrc, worktrees of other tasks, and git directories of repositories that a task does not work in; set-up commands may read ~/.ssh and ~/.netrc"),
        about: "Folders and files that cannot be read in the sandbox. With bwrap they look empty. With Landlock their files cannot be read, but their names stay visible, and files in folders that may be changed stay readable.",
    }
    git: Option<Sourced<SandboxGit>> {
        key: "sandbox.git",
        variable: "ARBORIST_SANDBOX_GIT",
        kind: ValueKind::Choice(SandboxGit::WORDS),
        default: DefaultValue::InWords("closed"),
        about: "The git directory that an agent sees while it implements a task. closed: the repository's own, which it can only read, so that git add and git commit fail. private: a copy that is thrown away, for agents that insist on committing; their commits are saved under refs/arborist/saved/, and their changes become part of the task's commit. private needs bwrap; nothing is started without it.",
    }
    max_file_size: Option<u64> {
        key: "sandbox.max-file-size",
        variable: "ARBORIST_SANDBOX_MAX_FILE_SIZE",
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: DefaultValue::InWords("no limit"),
        about: "How large a file may become that an agent, reviewer, test, gate, set-up command or your pre-commit hook writes, also if sandbox.mode is off. A program that exceeds it is ended by the signal SIGXFSZ, or its write fails.",
    }
    max_processes: Option<u64> {
        key: "sandbox.max-processes",
        variable: "ARBORIST_SANDBOX_MAX_PROCESSES",
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: DefaultValue::InWords("no limit"),
        about: "How many processes and threads an agent, reviewer, test, gate, set-up command or your pre-commit hook may have at once, itself included, also if sandbox.mode is off. Outside of bwrap the system counts all of your processes, so those that you start meanwhile count, too. It does not limit root.",
    }
    network: Option<Sourced<SandboxNetwork>> {
        key: "sandbox.network",
        variable: "ARBORIST_SANDBOX_NETWORK",
        kind: ValueKind::Choice(SandboxNetwork::WORDS),
        default: DefaultValue::InWords("all"),
        about: "Whether programs in the sandbox can use the network. The value none needs bwrap: without it, nothing is started.",
    }
    write: Option<Sourced<Vec<String>>> {
        key: "sandbox.write",
        variable: "ARBORIST_SANDBOX_WRITE",
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: DefaultValue::InWords("none"),
        about: "Folders and files that may be changed in the sandbox, in addition to the worktree, the files in which the agent keeps its sessions and its login, caches of package managers and a private folder for temporary files.",
    }
}

/// The keys of the sandbox of one step, in the order of the manual.
pub(super) const STEP_SANDBOX: &[Setting] = &[
    setting! {
        key: "steps.*.sandbox.mode",
        kind: ValueKind::Choice(SandboxMode::WORDS),
        default: DefaultValue::InWords("the value of runners.*.sandbox.mode, or else of sandbox.mode"),
        about: "The sandbox of one step: implement, review, resolve, plan, commit-message, test, gate, setup or hook (your pre-commit hook).",
    },
    setting! {
        key: "steps.*.sandbox.deny-read",
        kind: ValueKind::Folders,
        expected: PATHS,
        default: DefaultValue::InWords(
            "the value of runners.*.sandbox.deny-read, or else of sandbox.deny-read",
        ),
        about: "Folders and files that look empty in the sandbox of one step.",
    },
    setting! {
        key: "steps.*.sandbox.max-file-size",
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: DefaultValue::InWords(
            "the value of runners.*.sandbox.max-file-size, or else of sandbox.max-file-size",
        ),
        about: "How large a file of one step may become.",
    },
    setting! {
        key: "steps.*.sandbox.max-processes",
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: DefaultValue::InWords(
            "the value of runners.*.sandbox.max-processes, or else of sandbox.max-processes",
        ),
        about: "How many processes and threads one step may have at once.",
    },
    setting! {
        key: "steps.*.sandbox.network",
        kind: ValueKind::Choice(SandboxNetwork::WORDS),
        default: DefaultValue::InWords("the value of runners.*.sandbox.network, or else of sandbox.network"),
        about: "Whether one step can use the network.",
    },
    setting! {
        key: "steps.*.sandbox.write",
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: DefaultValue::InWords("none"),
        about: "Folders and files that may be changed in one step, in addition to sandbox.write.",
    },
];

/// The keys of the sandbox of one runner, in the order of the manual.
pub(super) const RUNNER_SANDBOX: &[Setting] = &[
    setting! {
        key: "runners.*.sandbox.mode",
        kind: ValueKind::Choice(SandboxMode::WORDS),
        default: DefaultValue::InWords("the value of 'sandbox.mode'"),
        about: "The sandbox of one runner.",
    },
    setting! {
        key: "runners.*.sandbox.deny-read",
        kind: ValueKind::Folders,
        expected: PATHS,
        default: DefaultValue::InWords("the value of 'sandbox.deny-read'"),
        about: "Folders and files that look empty in the sandbox of one runner.",
    },
    setting! {
        key: "runners.*.sandbox.git",
        kind: ValueKind::Choice(SandboxGit::WORDS),
        default: DefaultValue::InWords("sandbox.git"),
        about: "The git directory that one runner sees while it implements a task.",
    },
    setting! {
        key: "runners.*.sandbox.max-file-size",
        kind: ValueKind::Positive,
        expected: MEGABYTES,
        default: DefaultValue::InWords("the value of 'sandbox.max-file-size'"),
        about: "How large a file of one runner may become.",
    },
    setting! {
        key: "runners.*.sandbox.max-processes",
        kind: ValueKind::Positive,
        expected: PROCESSES,
        default: DefaultValue::InWords("the value of 'sandbox.max-processes'"),
        about: "How many processes and threads one runner may have at once.",
    },
    setting! {
        key: "runners.*.sandbox.network",
        kind: ValueKind::Choice(SandboxNetwork::WORDS),
        default: DefaultValue::InWords("the value of 'sandbox.network'"),
        about: "Whether one runner can use the network.",
    },
    setting! {
        key: "runners.*.sandbox.write",
        kind: ValueKind::Folders,
        expected: FOLDERS,
        default: DefaultValue::InWords("none"),
        about: "Folders and files that one runner may change, in addition to sandbox.write.",
    },
];

/// The settings of the sandbox for all children, and for those of one step or runner.
#[derive(Debug, Clone)]
pub struct SandboxLayers {
    /// `sandbox`: for all children.
    pub common: SandboxSettings,
    /// `steps.NAME.sandbox`.
    pub steps: NamedSettings<SandboxSettings>,
    /// `runners.NAME.sandbox`.
    pub runners: NamedSettings<SandboxSettings>,
}

impl SandboxLayers {
    pub(super) fn read(assigned: &Assignments) -> Self {
        let named = |layer: &str| {
            let read = |name: &str| SandboxSettings::read(assigned, &format!("{layer}{name}."), "");
            NamedSettings::read(assigned, layer, "sandbox.", read)
        };
        Self {
            common: SandboxSettings::read(assigned, "", ""),
            steps: named("steps."),
            runners: named("runners."),
        }
    }

    /// The settings that apply to a step and a runner, the most specific first.
    pub fn of(&self, step: Option<&str>, runner: Option<&str>) -> impl Iterator<Item = &SandboxSettings> {
        let step = step.and_then(|step| self.steps.find(step));
        let runner = runner.and_then(|runner| self.runners.find(runner));
        step.into_iter().chain(runner).chain([&self.common])
    }

    /// All settings, with the step or the runner that they are for.
    pub fn all(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>, &SandboxSettings)> {
        let steps = self.steps.iter().map(|group| (Some(group.name.as_str()), None, &group.settings));
        let runners = self.runners.iter().map(|group| (None, Some(group.name.as_str()), &group.settings));
        [(None, None, &self.common)].into_iter().chain(steps).chain(runners)
    }
}
