//! All keys. The manual is generated from this table.

use super::{
    Setting, ValueKind, budget::BUDGET, cleanup::CLEANUP, engines::ENGINES, landing::LANDING,
    protect::PROTECT, sandbox::SANDBOX, session::SESSION, tracked::PROMPTS, work::WORK, workspace::WORKSPACE,
};

pub(super) const PATH: &str = "a path, in quotes";
pub(super) const SECONDS: &str = "a number of seconds";
const RUNNERS: &str = "a list of runners in quotes, each as RUNNER or RUNNER:MODEL";

/// All keys.
pub const SETTINGS: &[Setting] =
    &join([GENERAL, PROTECT, PROMPTS, SANDBOX, LANDING, &BUDGET, SESSION, WORK, ENGINES, WORKSPACE, CLEANUP]);

const COUNT: usize = GENERAL.len()
    + PROTECT.len()
    + PROMPTS.len()
    + SANDBOX.len()
    + BUDGET.len()
    + LANDING.len()
    + SESSION.len()
    + WORK.len()
    + ENGINES.len()
    + WORKSPACE.len()
    + CLEANUP.len();

const fn join(parts: [&[Setting]; 11]) -> [Setting; COUNT] {
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
        about: "The plan: a task list in Markdown, or a task-tree.json; relative to the top of the repository.",
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
        about: "The model that the agent uses. It applies to the runner of the same file or command, not to another runner that an option or a step selects.",
    },
    Setting {
        key: "fallback",
        variable: Some("ARBORIST_FALLBACK"),
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: "none",
        about: "The runners to use instead, in this order, if a runner is not installed, cannot log in or has reached its limit.",
    },
    Setting {
        key: "tools",
        variable: Some("ARBORIST_TOOLS"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "true where a task has more than one repository, else false",
        about: "Whether agents that support MCP get tools to read and write the task's files and to run the commands that you configure; see git-arborist-tools(1).",
    },
    Setting {
        key: "resume",
        variable: Some("ARBORIST_RESUME"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Whether the next attempt continues the session of the agent program, if the program reported one in this run. Otherwise each attempt starts a new session with the feedback in its prompt.",
    },
    Setting {
        key: "max-retries",
        variable: Some("ARBORIST_MAX_RETRIES"),
        kind: ValueKind::Positive,
        expected: "a number, 1 or more",
        default: "5",
        about: "The number of attempts that a task has before it counts as failed.",
    },
    Setting {
        key: "test-command",
        variable: Some("ARBORIST_TEST_COMMAND"),
        kind: ValueKind::Text,
        expected: "a command for a shell, in quotes",
        default: "none; then the test step passes, with a warning",
        about: "The test command of tasks without their own test commands.",
    },
    Setting {
        key: "allow-dirty",
        variable: Some("ARBORIST_ALLOW_DIRTY"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Whether to start even if the checkout has uncommitted changes. They stay uncommitted, except changes to the plan.",
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
        expected: "a number of megabytes, 1 or more",
        default: "100",
        about: "The maximum size of a log. The rest of the output is left out, which the log and the run report.",
    },
    Setting {
        key: "sign",
        variable: None,
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "false",
        about: "Whether task commits, landings and records are signed, by git's own configuration (gpg.format, user.signingKey). It can only be set in git's configuration. 'git arborist verify --signed' requires the signatures.",
    },
    Setting {
        key: "steps.*.runner",
        variable: None,
        kind: ValueKind::Text,
        expected: "the name of a runner, in quotes",
        default: "the value of 'runner'",
        about: "The runner for one step: implement, review, plan, resolve (conflicts) or commit-message. --runner overrides it, except for resolve and commit-message.",
    },
    Setting {
        key: "steps.*.model",
        variable: None,
        kind: ValueKind::Text,
        expected: "the name of a model, in quotes",
        default: "the value of 'model'",
        about: "The model for one step.",
    },
    Setting {
        key: "steps.*.fallback",
        variable: None,
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: "the value of 'fallback'",
        about: "The runners to use instead in one step: implement or review.",
    },
    Setting {
        key: "steps.review.place",
        variable: None,
        kind: ValueKind::Choice(&["scratch", "checkout"]),
        expected: "\"scratch\" or \"checkout\"",
        default: "scratch",
        about: "Where reviewers work: in a separate worktree of the commit under review (scratch), or in the task's own checkout (checkout), for reviewers that need the dependencies installed there.",
    },
    Setting {
        key: "runners.*.command",
        variable: None,
        kind: ValueKind::Words,
        expected: "a list of words in quotes",
        default: "that of the built-in runner of this name",
        about: "How a runner is called: a program and its arguments, with {prompt}, {prompt-file}, {model}, {dir} and {session} in them. If it takes MCP servers: {tools} for the list as JSON, {tools-file} for a file with that list, {tools-toml} for one server as TOML. If no argument has {prompt} or {prompt-file}, the prompt is passed on standard input.",
    },
    Setting {
        key: "runners.*.resume",
        variable: None,
        kind: ValueKind::Words,
        expected: "a list of words in quotes",
        default: "runners.*.command, with {session} filled in",
        about: "How a runner is called to continue a session, if that needs another command.",
    },
    Setting {
        key: "runners.*.events",
        variable: None,
        kind: ValueKind::Text,
        expected: "claude, codex, gemini, opencode or text",
        default: "text",
        about: "The format of a runner's output. With 'text', if the runner fails, the last line of its output can give a reason that uses up no attempt. 'usage limit reached|SECONDS' (seconds since 1970, may be empty), 'API Error: 429', 'rate_limit_error' and 'overloaded_error': the run waits for the provider. 'API Error: 401' and 'Invalid API key': the run stops, because a person is needed.",
    },
    Setting {
        key: "runners.*.tools",
        variable: None,
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "the value of 'tools'",
        about: "Whether this runner is given tools.",
    },
    Setting {
        key: "runners.*.env.*",
        variable: None,
        kind: ValueKind::Text,
        expected: "a text in quotes",
        default: "nothing",
        about: "An environment variable for a runner.",
    },
    Setting {
        key: "timeouts.runner",
        variable: Some("ARBORIST_TIMEOUT_RUNNER"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "600",
        about: "How long one call to an agent may take.",
    },
    Setting {
        key: "timeouts.silence",
        variable: Some("ARBORIST_TIMEOUT_SILENCE"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "300",
        about: "How long an agent may print nothing before it is stopped.",
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
        about: "Whether to start a run although its tests fail before the first task. If the output of the test command names the failed tests, a task then fails only if a test fails that passed before; otherwise every task fails until the command succeeds.",
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
        about: "Total time to wait for an overloaded provider that gives no retry time.",
    },
    Setting {
        key: "review.diff-limit",
        variable: Some("ARBORIST_REVIEW_DIFF_LIMIT"),
        kind: ValueKind::Count,
        expected: "a number of characters",
        default: "8000",
        about: "Maximum length of the diff in the reviewer's prompt, in characters. A longer diff is cut; the prompt then has the number of changed lines of each file and a command that shows the whole diff.",
    },
    Setting {
        key: "redact.files",
        variable: Some("ARBORIST_REDACT_FILES"),
        kind: ValueKind::Choice(&["warn", "refuse", "off"]),
        expected: "warn, refuse or off",
        default: "warn",
        about: "What happens if an agent writes a secret into a file that is committed: the value of a secret variable of the environment, a token of a well-known provider or a private key. warn: the run names the file and the secret. refuse: the file is restored, and the attempt fails. off: files are not searched.",
    },
    Setting {
        key: "jobs",
        variable: Some("ARBORIST_JOBS"),
        kind: ValueKind::Size,
        expected: "1 or more, or auto",
        default: "1",
        about: "How many tasks run at once, each in its own worktree; auto is one per core. With 1, tasks run in the checkout itself.",
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
        about: "The maximum number of worktrees.",
    },
    Setting {
        key: "worktree.min-free",
        variable: Some("ARBORIST_WORKTREE_MIN_FREE"),
        kind: ValueKind::Count,
        expected: "a number of megabytes",
        default: "500",
        about: "How many megabytes must be free before a worktree is created.",
    },
    Setting {
        key: "worktree.sync-cooldown",
        variable: Some("ARBORIST_WORKTREE_SYNC_COOLDOWN"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "60",
        about: "The minimum time between two merges of the run's branch into the branch of a task.",
    },
    Setting {
        key: "worktree.setup",
        variable: Some("ARBORIST_WORKTREE_SETUP"),
        kind: ValueKind::Words,
        expected: "a list of commands in quotes",
        default: "nothing",
        about: "Commands to run in a new worktree, each in a shell.",
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
        about: "Ignored files that are kept when the next task gets the lane, such as build caches. With an empty list, all are removed.",
    },
    Setting {
        key: "worktree.lfs",
        variable: Some("ARBORIST_WORKTREE_LFS"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "true",
        about: "Whether worktrees get the files of git LFS, or only their pointers.",
    },
    Setting {
        key: "worktree.save-every",
        variable: Some("ARBORIST_WORKTREE_SAVE_EVERY"),
        kind: ValueKind::Count,
        expected: SECONDS,
        default: "30",
        about: "How often unfinished work in a worktree is saved.",
    },
];
