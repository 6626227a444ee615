//! All keys. The manual is generated from this table.

use super::{
    Setting, ValueKind, budget::BUDGET, cleanup::CLEANUP, landing::LANDING, sandbox::SANDBOX,
    session::SESSION, tracked::PROMPTS, workspace::WORKSPACE,
};

pub(super) const PATH: &str = "a path, in quotes";
pub(super) const SECONDS: &str = "a number of seconds";
const RUNNERS: &str = "a list of runners in quotes, each with ':' and a model behind it or not";

/// All keys.
pub const SETTINGS: &[Setting] =
    &join([GENERAL, PROMPTS, SANDBOX, LANDING, &BUDGET, SESSION, WORKSPACE, CLEANUP]);

const COUNT: usize = GENERAL.len()
    + PROMPTS.len()
    + SANDBOX.len()
    + BUDGET.len()
    + LANDING.len()
    + SESSION.len()
    + WORKSPACE.len()
    + CLEANUP.len();

const fn join(parts: [&[Setting]; 8]) -> [Setting; COUNT] {
    let mut all = [GENERAL[0]; COUNT];
    let (mut at, mut part, mut place) = (0, 0, 0);
    while at < all.len() {
        if place == parts[part].len() {
            (part, place) = (part + 1, 0);
        }
        all[at] = parts[part][place];
        (at, place) = (at + 1, place + 1);
    }
    all
}

const GENERAL: &[Setting] = &[
    Setting {
        key: "tree",
        variable: Some("ARBORIST_TREE"),
        kind: ValueKind::Text,
        expected: PATH,
        default: "the first of task-tree.json, specs/<branch>/tasks.md, spec/tasks.md, tasks.md",
        about: "The plan: a tree file or a Markdown task list, relative to the top of the repository.",
    },
    Setting {
        key: "runner",
        variable: Some("ARBORIST_RUNNER"),
        kind: ValueKind::Text,
        expected: "the name of a runner, in quotes",
        default: "claude",
        about: "The agent program that does the work: a built-in one, or one of runners.*.",
    },
    Setting {
        key: "model",
        variable: Some("ARBORIST_MODEL"),
        kind: ValueKind::Text,
        expected: "the name of a model, in quotes",
        default: "the program's own choice",
        about: "The model that the agent is asked to use. It is meant for the runner that holds where it is named, and not for another that a flag or a step puts in its place.",
    },
    Setting {
        key: "fallback",
        variable: Some("ARBORIST_FALLBACK"),
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: "nobody",
        about: "Who is asked instead, in this order, when a runner is not installed, is refused by its provider or has used up its limit.",
    },
    Setting {
        key: "tools",
        variable: Some("ARBORIST_TOOLS"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "true where a task has more than one repository, else false",
        about: "Whether agents that speak MCP are given the tools of 'git arborist tools'.",
    },
    Setting {
        key: "resume",
        variable: Some("ARBORIST_RESUME"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Whether the next attempt goes on with the session that the agent program had in the last one, where it has told of one and the same process drives both. Otherwise each attempt is a new session that is told what went wrong.",
    },
    Setting {
        key: "max-retries",
        variable: Some("ARBORIST_MAX_RETRIES"),
        kind: ValueKind::Positive,
        expected: "a number of attempts, from 1",
        default: "5",
        about: "How many attempts a task has before it is failed.",
    },
    Setting {
        key: "test-command",
        variable: Some("ARBORIST_TEST_COMMAND"),
        kind: ValueKind::Text,
        expected: "a command for a shell, in quotes",
        default: "none: every test passes, and a run says so",
        about: "How a task is tested that has no test commands of its own.",
    },
    Setting {
        key: "allow-dirty",
        variable: Some("ARBORIST_ALLOW_DIRTY"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Begin although something in the checkout is not committed. It stays as it is.",
    },
    Setting {
        key: "report-dir",
        variable: Some("ARBORIST_REPORT_DIR"),
        kind: ValueKind::Text,
        expected: PATH,
        default: "spec/reports",
        about: "Where the report of a completed task is committed.",
    },
    Setting {
        key: "log-dir",
        variable: Some("ARBORIST_LOG_DIR"),
        kind: ValueKind::Text,
        expected: PATH,
        default: "spec/logs",
        about: "Where the output of agents and tests is kept. It is hidden from git status and never committed.",
    },
    Setting {
        key: "log-limit",
        variable: Some("ARBORIST_LOG_LIMIT"),
        kind: ValueKind::Positive,
        expected: "a number of megabytes, from 1",
        default: "100",
        about: "The largest size of a log. The rest of the output is left out, and the log and the run say so.",
    },
    Setting {
        key: "steps.*.runner",
        variable: None,
        kind: ValueKind::Text,
        expected: "the name of a runner, in quotes",
        default: "runner",
        about: "The runner for one step: implement, review, plan, resolve or commit-message.",
    },
    Setting {
        key: "steps.*.model",
        variable: None,
        kind: ValueKind::Text,
        expected: "the name of a model, in quotes",
        default: "model",
        about: "The model for one step.",
    },
    Setting {
        key: "steps.*.fallback",
        variable: None,
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: "fallback",
        about: "Who is asked instead in one step: implement or review.",
    },
    Setting {
        key: "steps.review.place",
        variable: None,
        kind: ValueKind::Choice(&["scratch", "checkout"]),
        expected: "\"scratch\" or \"checkout\"",
        default: "scratch",
        about: "Where reviewers work: in a worktree of the commit under review that is reset before each review, or in the checkout of the task, for reviewers that need what is installed there.",
    },
    Setting {
        key: "runners.*.command",
        variable: None,
        kind: ValueKind::Words,
        expected: "a list of words in quotes",
        default: "that of the built-in runner of this name",
        about: "How a runner is called: a program and its arguments, with {prompt}, {prompt-file}, {model}, {dir} and {session} in them, and {tools}, {tools-file} or {tools-toml} where it takes a list of MCP servers as JSON, the file that holds one, or one server for TOML. Without a prompt among them it goes to standard input.",
    },
    Setting {
        key: "runners.*.resume",
        variable: None,
        kind: ValueKind::Words,
        expected: "a list of words in quotes",
        default: "runners.*.command, with {session} filled in",
        about: "How a runner is called that goes on with a session, where that is another call.",
    },
    Setting {
        key: "runners.*.events",
        variable: None,
        kind: ValueKind::Text,
        expected: "claude, codex, gemini, opencode or text",
        default: "text",
        about: "What a runner prints. Of text the last line counts where the runner exits with another code than 0: 'usage limit reached|' and a moment in seconds since 1970 (or nothing), 'API Error: 429', 'rate_limit_error' or 'overloaded_error' in it say that its provider is to be waited for, 'API Error: 401' or 'Invalid API key' that a person is needed; no attempt is used up by these.",
    },
    Setting {
        key: "runners.*.tools",
        variable: None,
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "tools",
        about: "Whether one runner is given tools.",
    },
    Setting {
        key: "runners.*.env.*",
        variable: None,
        kind: ValueKind::Text,
        expected: "a text in quotes",
        default: "nothing",
        about: "A variable for a runner's environment.",
    },
    Setting {
        key: "timeouts.runner",
        variable: Some("ARBORIST_TIMEOUT_RUNNER"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "600",
        about: "How long one call of an agent may take.",
    },
    Setting {
        key: "timeouts.silence",
        variable: Some("ARBORIST_TIMEOUT_SILENCE"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "300",
        about: "How long an agent may print nothing.",
    },
    Setting {
        key: "timeouts.test",
        variable: Some("ARBORIST_TIMEOUT_TEST"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "300",
        about: "How long one test command may take.",
    },
    Setting {
        key: "test.allow-red",
        variable: Some("ARBORIST_TEST_ALLOW_RED"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Begin a run although its tests fail before the first task. Where the output of the test command counts tests, only newly red ones fail a task; otherwise the exit code decides.",
    },
    Setting {
        key: "test.clean",
        variable: Some("ARBORIST_TEST_CLEAN"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Run the tests of a task that works in your checkout in a clean worktree of its commit, set up by worktree.setup and worktree.copy.",
    },
    Setting {
        key: "timeouts.limit",
        variable: Some("ARBORIST_TIMEOUT_LIMIT"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "1800",
        about: "How long a provider is waited for in all that cannot keep up and names no time. A time that it names is waited for.",
    },
    Setting {
        key: "review.diff-limit",
        variable: Some("ARBORIST_REVIEW_DIFF_LIMIT"),
        kind: ValueKind::Count,
        expected: "a number of characters",
        default: "8000",
        about: "How much of a change the reviewer is shown. Of a longer one it sees the beginning, and how much of each file there is.",
    },
    Setting {
        key: "redact.files",
        variable: Some("ARBORIST_REDACT_FILES"),
        kind: ValueKind::Choice(&["warn", "refuse", "off"]),
        expected: "warn, refuse or off",
        default: "warn",
        about: "What happens if an agent writes the value of a secret variable of the environment into a file that is committed: the run warns with the names of the file and the variable; or the file is put back and the attempt fails; or files are not searched.",
    },
    Setting {
        key: "jobs",
        variable: Some("ARBORIST_JOBS"),
        kind: ValueKind::Size,
        expected: "a number of tasks, from 1, or auto",
        default: "1",
        about: "How many tasks a gardener works on at once, each in a worktree of its own; auto is one for each core. One is worked on in the checkout itself.",
    },
    Setting {
        key: "timeouts.setup",
        variable: Some("ARBORIST_TIMEOUT_SETUP"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "600",
        about: "How long one command of worktree.setup may take.",
    },
    Setting {
        key: "worktree.base",
        variable: Some("ARBORIST_WORKTREE_BASE"),
        kind: ValueKind::Text,
        expected: PATH,
        default: "../{repository}.arborist, or .arborist/worktrees where that cannot be written",
        about: "Where worktrees are made, relative to the top of the main checkout; {repository} is the name of its folder.",
    },
    Setting {
        key: "worktree.max",
        variable: Some("ARBORIST_WORKTREE_MAX"),
        kind: ValueKind::Count,
        expected: "a number of worktrees",
        default: "16, or as many as the jobs of a run need",
        about: "How many worktrees there may be.",
    },
    Setting {
        key: "worktree.min-free",
        variable: Some("ARBORIST_WORKTREE_MIN_FREE"),
        kind: ValueKind::Count,
        expected: "a number of megabytes",
        default: "500",
        about: "How much space must be free before a worktree is made, in megabytes.",
    },
    Setting {
        key: "worktree.setup",
        variable: Some("ARBORIST_WORKTREE_SETUP"),
        kind: ValueKind::Words,
        expected: "a list of commands in quotes",
        default: "nothing",
        about: "Commands that are run in a new worktree, each in a shell.",
    },
    Setting {
        key: "worktree.copy",
        variable: Some("ARBORIST_WORKTREE_COPY"),
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: "nothing; the lines of .worktreeinclude are added",
        about: "Ignored files of the main checkout that a new worktree gets too, such as .env or node_modules, as patterns of .gitignore.",
    },
    Setting {
        key: "worktree.exclude",
        variable: Some("ARBORIST_WORKTREE_EXCLUDE"),
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: "nothing, so that agents see their instruction files",
        about: "Tracked files that are left out of worktrees, as patterns of a sparse checkout.",
    },
    Setting {
        key: "worktree.keep",
        variable: Some("ARBORIST_WORKTREE_KEEP"),
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: "* (everything)",
        about: "Ignored files that stay when a lane is given to the next task, such as the caches of builds. An empty list cleans them all.",
    },
    Setting {
        key: "worktree.lfs",
        variable: Some("ARBORIST_WORKTREE_LFS"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "true",
        about: "Whether worktrees get the files that git LFS keeps elsewhere, or only their pointers.",
    },
    Setting {
        key: "worktree.save-every",
        variable: Some("ARBORIST_WORKTREE_SAVE_EVERY"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "30",
        about: "How often unfinished work is saved while somebody works in a worktree.",
    },
];
