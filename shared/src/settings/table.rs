//! Every key there is. The manual is made from this table.

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// True or false.
    Switch,
    /// A list of texts.
    Words,
}

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// As in the files; `git config` puts `arborist.` before it. `*` stands for one name.
    pub key: &'static str,
    /// The variable of the environment; none for keys with a `*`.
    pub variable: Option<&'static str>,
    /// What a value must be.
    pub kind: Kind,
    /// The same in words.
    pub expected: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

impl Setting {
    /// Whether `key` is this one.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        let (mut own, mut given) = (self.key.split('.'), key.split('.'));
        loop {
            match (own.next(), given.next()) {
                (None, None) => return true,
                (Some("*"), Some(name)) if !name.is_empty() => {}
                (Some(a), Some(b)) if a == b => {}
                _ => return false,
            }
        }
    }
}

const PATH: &str = "a path, in quotes";
const SECONDS: &str = "a number of seconds";

/// All keys.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "tree",
        variable: Some("ARBORIST_TREE"),
        kind: Kind::Text,
        expected: PATH,
        default: "the first of task-tree.json, specs/<branch>/tasks.md, spec/tasks.md, tasks.md",
        about: "The plan: a tree file or a Markdown task list, relative to the top of the repository.",
    },
    Setting {
        key: "runner",
        variable: Some("ARBORIST_RUNNER"),
        kind: Kind::Text,
        expected: "the name of a runner, in quotes",
        default: "claude",
        about: "The agent program that does the work: a built-in one, or one of runners.*.",
    },
    Setting {
        key: "model",
        variable: Some("ARBORIST_MODEL"),
        kind: Kind::Text,
        expected: "the name of a model, in quotes",
        default: "the program's own choice",
        about: "The model that the agent is asked to use.",
    },
    Setting {
        key: "max-retries",
        variable: Some("ARBORIST_MAX_RETRIES"),
        kind: Kind::Count,
        expected: "a number of attempts, from 1",
        default: "5",
        about: "How many attempts a task has before it is failed.",
    },
    Setting {
        key: "test-command",
        variable: Some("ARBORIST_TEST_COMMAND"),
        kind: Kind::Text,
        expected: "a command for a shell, in quotes",
        default: "none: every test passes, and a run says so",
        about: "How a task is tested that has no test commands of its own.",
    },
    Setting {
        key: "allow-dirty",
        variable: Some("ARBORIST_ALLOW_DIRTY"),
        kind: Kind::Switch,
        expected: "true or false",
        default: "false",
        about: "Begin although something in the checkout is not committed. It stays as it is.",
    },
    Setting {
        key: "report-dir",
        variable: Some("ARBORIST_REPORT_DIR"),
        kind: Kind::Text,
        expected: PATH,
        default: "spec/reports",
        about: "Where the report of a completed task is committed.",
    },
    Setting {
        key: "log-dir",
        variable: Some("ARBORIST_LOG_DIR"),
        kind: Kind::Text,
        expected: PATH,
        default: "spec/logs",
        about: "Where the output of agents and tests is kept. It is hidden from git status and never committed.",
    },
    Setting {
        key: "steps.*.runner",
        variable: None,
        kind: Kind::Text,
        expected: "the name of a runner, in quotes",
        default: "runner",
        about: "The runner for one step: implement, review or plan.",
    },
    Setting {
        key: "steps.*.model",
        variable: None,
        kind: Kind::Text,
        expected: "the name of a model, in quotes",
        default: "model",
        about: "The model for one step.",
    },
    Setting {
        key: "runners.*.command",
        variable: None,
        kind: Kind::Words,
        expected: "a list of words in quotes",
        default: "that of the built-in runner of this name",
        about: "How a runner is called: a program and its arguments, with {prompt}, {prompt-file}, {model}, {dir} and {session} in them. Without a prompt among them it goes to standard input.",
    },
    Setting {
        key: "runners.*.events",
        variable: None,
        kind: Kind::Text,
        expected: "claude, codex, gemini, opencode or text",
        default: "text",
        about: "What a runner prints.",
    },
    Setting {
        key: "runners.*.env.*",
        variable: None,
        kind: Kind::Text,
        expected: "a text in quotes",
        default: "nothing",
        about: "A variable for a runner's environment.",
    },
    Setting {
        key: "timeouts.runner",
        variable: Some("ARBORIST_TIMEOUT_RUNNER"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "600",
        about: "How long one call of an agent may take.",
    },
    Setting {
        key: "timeouts.silence",
        variable: Some("ARBORIST_TIMEOUT_SILENCE"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "300",
        about: "How long an agent may print nothing.",
    },
    Setting {
        key: "timeouts.test",
        variable: Some("ARBORIST_TIMEOUT_TEST"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "300",
        about: "How long one test command may take.",
    },
    Setting {
        key: "timeouts.setup",
        variable: Some("ARBORIST_TIMEOUT_SETUP"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "600",
        about: "How long one command of worktree.setup may take.",
    },
    Setting {
        key: "worktree.base",
        variable: Some("ARBORIST_WORKTREE_BASE"),
        kind: Kind::Text,
        expected: PATH,
        default: "../{repository}.arborist, or .arborist/worktrees where that cannot be written",
        about: "Where worktrees are made, relative to the top of the main checkout; {repository} is the name of its folder.",
    },
    Setting {
        key: "worktree.max",
        variable: Some("ARBORIST_WORKTREE_MAX"),
        kind: Kind::Count,
        expected: "a number of worktrees",
        default: "16",
        about: "How many worktrees there may be.",
    },
    Setting {
        key: "worktree.min-free",
        variable: Some("ARBORIST_WORKTREE_MIN_FREE"),
        kind: Kind::Count,
        expected: "a number of megabytes",
        default: "500",
        about: "How much space must be free before a worktree is made, in megabytes.",
    },
    Setting {
        key: "worktree.setup",
        variable: Some("ARBORIST_WORKTREE_SETUP"),
        kind: Kind::Words,
        expected: "a list of commands in quotes",
        default: "nothing",
        about: "Commands that are run in a new worktree, each in a shell.",
    },
    Setting {
        key: "worktree.copy",
        variable: Some("ARBORIST_WORKTREE_COPY"),
        kind: Kind::Words,
        expected: "a list of patterns in quotes",
        default: "nothing; the lines of .worktreeinclude are added",
        about: "Ignored files of the main checkout that a new worktree gets too, such as .env or node_modules, as patterns of .gitignore.",
    },
    Setting {
        key: "worktree.exclude",
        variable: Some("ARBORIST_WORKTREE_EXCLUDE"),
        kind: Kind::Words,
        expected: "a list of patterns in quotes",
        default: "nothing, so that agents see their instruction files",
        about: "Tracked files that are left out of worktrees, as patterns of a sparse checkout.",
    },
    Setting {
        key: "worktree.keep",
        variable: Some("ARBORIST_WORKTREE_KEEP"),
        kind: Kind::Words,
        expected: "a list of patterns in quotes",
        default: "* (everything)",
        about: "Ignored files that stay when a lane is given to the next task, such as the caches of builds. An empty list cleans them all.",
    },
    Setting {
        key: "worktree.lfs",
        variable: Some("ARBORIST_WORKTREE_LFS"),
        kind: Kind::Switch,
        expected: "true or false",
        default: "true",
        about: "Whether worktrees get the files that git LFS keeps elsewhere, or only their pointers.",
    },
    Setting {
        key: "merge.delete-branches",
        variable: Some("ARBORIST_MERGE_DELETE_BRANCHES"),
        kind: Kind::Switch,
        expected: "true or false",
        default: "false",
        about: "Delete a task's branch once it is proved that all of it has landed.",
    },
    Setting {
        key: "merge.wait-limit",
        variable: Some("ARBORIST_MERGE_WAIT_LIMIT"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "3600",
        about: "How long something may be queued before 'git arborist merge status' exits with 1.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_name() {
        let key = |key: &str| SETTINGS.iter().find(|setting| setting.is(key)).map(|setting| setting.key);
        assert_eq!(key("steps.review.runner"), Some("steps.*.runner"));
        assert_eq!(key("runners.robot.env.MODE"), Some("runners.*.env.*"));
        assert_eq!(key("steps.runner"), None);
        assert_eq!(key("tree"), Some("tree"));
        assert_eq!(key("tree.x"), None);
    }
}
