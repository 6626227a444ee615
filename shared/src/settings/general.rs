//! The keys of agents and their programs, and time limits.

use std::{collections::BTreeMap, time::Duration};

use super::{
    DefaultValue, ValueKind,
    setting::{INNER_PATH, MODEL_NAME, PATH, POSITIVE_SECONDS, SECONDS, settings},
    value::{Size, Sourced},
};

/// The steps that call an agent.
pub(super) const AGENT_STEPS: [&str; 5] = ["implement", "review", "plan", "resolve", "commit-message"];
/// The steps that only run commands. A sandbox is all that can be set for them.
pub(super) const COMMAND_STEPS: [&str; 4] = ["test", "hook", "gate", "setup"];

const RUNNERS: &str = "a list of runners in quotes, each as RUNNER or RUNNER:MODEL";

settings! {
    /// What a run works on, with which agent and test command.
    GeneralSettings in GENERAL;

    tree: Option<String> {
        key: "tree",
        variable: "ARBORIST_TREE",
        kind: ValueKind::Text,
        expected: PATH,
        default: DefaultValue::InWords("the first of task-tree.json, specs/<branch>/tasks.md, spec/tasks.md, tasks.md, otherwise the only other plan that is found"),
        about: "The plan: a task list in Markdown, or a task-tree.json; relative to the top of the repository.",
    }
    runner: Option<Sourced<String>> {
        key: "runner",
        variable: "ARBORIST_RUNNER",
        kind: ValueKind::Text,
        expected: "the name of a runner, in quotes",
        default: DefaultValue::InWords("claude"),
        about: "The agent program that does the work: a built-in one, or one of runners.*.",
    }
    model: Option<String> {
        key: "model",
        variable: "ARBORIST_MODEL",
        kind: ValueKind::Name,
        expected: MODEL_NAME,
        default: DefaultValue::InWords("the program's own choice"),
        about: "The model that the agent uses. It applies to the runner of the same file or command, not to another runner that an option or a step selects.",
    }
    fallback: Option<Sourced<Vec<String>>> {
        key: "fallback",
        variable: "ARBORIST_FALLBACK",
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: DefaultValue::InWords("none"),
        about: "Other runners to call, in this order, if a runner is not installed, cannot log in or has reached its limit.",
    }
    tools: Option<bool> {
        key: "tools",
        variable: "ARBORIST_TOOLS",
        kind: ValueKind::Switch,
        default: DefaultValue::InWords("true where a task has more than one repository, else false"),
        about: "Whether agents that support MCP get tools to read and write the task's files and to run the commands that you configure; see git-arborist-tools(1).",
    }
    resume: bool {
        key: "resume",
        variable: "ARBORIST_RESUME",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether the next attempt continues the session of the agent program, if the program reported one in this run. Otherwise each attempt starts a new session with the feedback in its prompt.",
    }
    max_retries: u32 {
        key: "max-retries",
        variable: "ARBORIST_MAX_RETRIES",
        kind: ValueKind::Positive,
        expected: "a number, 1 or more",
        default: DefaultValue::Count(5),
        about: "The number of attempts that a task has before it counts as failed.",
    }
    test_command: Option<Sourced<String>> {
        key: "test-command",
        variable: "ARBORIST_TEST_COMMAND",
        kind: ValueKind::Command,
        expected: "a command for a shell, in quotes",
        default: DefaultValue::InWords("none; then the test step passes, with a warning"),
        about: "The test command of tasks without their own test commands.",
    }
    allow_dirty: bool {
        key: "allow-dirty",
        variable: "ARBORIST_ALLOW_DIRTY",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether to start even if the checkout has uncommitted changes. They stay uncommitted, except changes to the plan and the configuration.",
    }
    report_dir: String {
        key: "report-dir",
        variable: "ARBORIST_REPORT_DIR",
        kind: ValueKind::InnerPath,
        expected: INNER_PATH,
        default: DefaultValue::Text("spec/reports"),
        about: "Where the report of a completed task is committed.",
    }
    log_dir: String {
        key: "log-dir",
        variable: "ARBORIST_LOG_DIR",
        kind: ValueKind::InnerPath,
        expected: INNER_PATH,
        default: DefaultValue::Text("spec/logs"),
        about: "Where the output of agents and tests is kept. It is hidden from git status and never committed.",
    }
    log_limit: u64 {
        key: "log-limit",
        variable: "ARBORIST_LOG_LIMIT",
        kind: ValueKind::Positive,
        expected: "a number of megabytes, 1 or more",
        default: DefaultValue::Count(100),
        about: "The maximum size of a log. Output beyond this size is left out, and the log and the run say so.",
    }
    sign: bool {
        key: "sign",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether task commits, landings and records are signed, by git's own configuration (gpg.format, user.signingKey). It can only be set in git's configuration. 'git arborist verify --signed' requires the signatures.",
    }
    jobs: Size {
        key: "jobs",
        variable: "ARBORIST_JOBS",
        kind: ValueKind::Size,
        expected: "1 or more, or auto",
        default: DefaultValue::Count(1),
        about: "How many tasks run at once, each in its own worktree; auto is one per core. With 1, tasks run in the checkout itself.",
    }
}

settings! {
    /// `steps.NAME`: the agent of one step.
    StepSettings in STEPS;

    runner: Option<Sourced<String>> {
        key: "steps.*.runner",
        kind: ValueKind::Text,
        expected: "the name of a runner, in quotes",
        default: DefaultValue::InWords("the value of 'runner'"),
        about: "The runner for one step: implement, review, plan, resolve (conflicts) or commit-message. --runner overrides it, except for resolve and commit-message.",
    }
    model: Option<String> {
        key: "steps.*.model",
        kind: ValueKind::Name,
        expected: MODEL_NAME,
        default: DefaultValue::InWords("the value of 'model'"),
        about: "The model for one step.",
    }
    fallback: Option<Sourced<Vec<String>>> {
        key: "steps.*.fallback",
        kind: ValueKind::Words,
        expected: RUNNERS,
        default: DefaultValue::InWords("the value of 'fallback'"),
        about: "Other runners to call in one step: implement or review.",
    }
}

settings! {
    /// `runners.NAME`: how an agent program is called.
    RunnerSettings in RUNNER;

    command: Option<Sourced<Vec<String>>> {
        key: "runners.*.command",
        kind: ValueKind::Words,
        expected: "a list of words, such as [\"robot\", \"{prompt}\"]",
        default: DefaultValue::InWords("that of the built-in runner of this name"),
        about: "How a runner is called: a program and its arguments, with {prompt}, {prompt-file}, {model}, {dir} and {session} in them. If it takes MCP servers: {tools} for the list as JSON, {tools-file} for a file with that list, {tools-toml} for one server as TOML. If no argument has {prompt} or {prompt-file}, the prompt is passed on standard input.",
    }
    resume: Option<Sourced<Vec<String>>> {
        key: "runners.*.resume",
        kind: ValueKind::Words,
        expected: "a list of words, such as [\"robot\", \"{prompt}\"]",
        default: DefaultValue::InWords("runners.*.command, with {session} filled in"),
        about: "How a runner is called to continue a session, if that needs another command.",
    }
    events: Option<String> {
        key: "runners.*.events",
        kind: ValueKind::Text,
        expected: "claude, codex, gemini, opencode or text",
        default: DefaultValue::InWords("text"),
        about: "The format of a runner's output. If a runner with the format 'text' fails, the last line of its output can give one of these reasons, and no attempt is used up. After 'usage limit reached|SECONDS' (seconds since 1970, may be empty), 'API Error: 429', 'rate_limit_error' or 'overloaded_error', the run waits for the provider. After 'API Error: 401' or 'Invalid API key', the run stops, because a person must log in.",
    }
    tools: Option<bool> {
        key: "runners.*.tools",
        kind: ValueKind::Switch,
        default: DefaultValue::InWords("the value of 'tools'"),
        about: "Whether this runner is given tools.",
    }
    env: BTreeMap<String, Sourced<String>> {
        key: "runners.*.env.*",
        kind: ValueKind::Text,
        expected: "a text in quotes",
        default: DefaultValue::InWords("nothing"),
        about: "An environment variable for a runner.",
    }
}

settings! {
    /// How long something may take.
    TimeoutSettings in TIMEOUTS;

    runner: Duration {
        key: "timeouts.runner",
        variable: "ARBORIST_TIMEOUT_RUNNER",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(600),
        about: "How long one call to an agent may take.",
    }
    silence: Duration {
        key: "timeouts.silence",
        variable: "ARBORIST_TIMEOUT_SILENCE",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(300),
        about: "How long an agent may print nothing before it is stopped.",
    }
    test: Duration {
        key: "timeouts.test",
        variable: "ARBORIST_TIMEOUT_TEST",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(300),
        about: "How long one test command may take.",
    }
    limit: Duration {
        key: "timeouts.limit",
        variable: "ARBORIST_TIMEOUT_LIMIT",
        kind: ValueKind::Count,
        expected: SECONDS,
        default: DefaultValue::Count(1800),
        about: "Total time to wait for an overloaded provider that gives no retry time.",
    }
    setup: Duration {
        key: "timeouts.setup",
        variable: "ARBORIST_TIMEOUT_SETUP",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(600),
        about: "How long one command of worktree.setup may take.",
    }
    commit_message: Duration {
        key: "timeouts.commit-message",
        variable: "ARBORIST_TIMEOUTS_COMMIT_MESSAGE",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(30),
        about: "How long the runner of the step commit-message may take; after that the agent's own words are used.",
    }
    network: Duration {
        key: "timeouts.network",
        variable: "ARBORIST_TIMEOUT_NETWORK",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(60),
        about: "How long a remote may be silent before the connection is closed. A whole fetch or push may take thirty times as long.",
    }
}
