//! The keys of runs: their budgets, their records, and workers that share their plan.

use std::time::Duration;

use super::{
    DefaultValue, ValueKind,
    setting::{PATH, POSITIVE_SECONDS, choices, settings},
    value::Sourced,
};

const COMMAND: &str = "a command for a shell, in quotes";

choices! {
    /// What happens to transcripts of agents.
    TranscriptMode {
        /// They are recorded and stay in the local repository.
        #[default]
        Kept = "local",
        /// They are pushed together with the session's records.
        Pushed = "push",
        /// They are not recorded.
        Dropped = "off",
    }
}

choices! {
    /// Where the commit message of a turn comes from.
    TurnMessages {
        /// From the agent's own words.
        #[default]
        Agent = "agent",
        /// From the runner of the step `commit-message`.
        Model = "model",
        /// From the names of the files.
        Plain = "plain",
    }
}

settings! {
    /// The most that a run and each of its tasks may use.
    BudgetSettings in BUDGET;

    cost: Option<f64> {
        key: "budget.cost",
        variable: "ARBORIST_MAX_COST",
        kind: ValueKind::Amount,
        expected: "an amount in US dollars above 0, such as 2.50",
        default: DefaultValue::InWords("no limit"),
        about: "Maximum cost of a run in US dollars, as reported by the agents. The run then stops; continue it with a higher limit.",
    }
    tokens: Option<u64> {
        key: "budget.tokens",
        variable: "ARBORIST_MAX_TOKENS",
        kind: ValueKind::Positive,
        expected: "a number of tokens, 1 or more",
        default: DefaultValue::InWords("no limit"),
        about: "Maximum number of tokens that a run may use, input and output together.",
    }
    time: Option<Duration> {
        key: "budget.time",
        variable: "ARBORIST_MAX_TIME",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::InWords("no limit"),
        about: "Maximum total time that the agents of a run may work.",
    }
    task_cost: Option<f64> {
        key: "budget.task-cost",
        variable: "ARBORIST_MAX_TASK_COST",
        kind: ValueKind::Amount,
        expected: "an amount in US dollars above 0, such as 2.50",
        default: DefaultValue::InWords("no limit"),
        about: "Maximum cost of each task in US dollars.",
    }
    task_tokens: Option<u64> {
        key: "budget.task-tokens",
        variable: "ARBORIST_MAX_TASK_TOKENS",
        kind: ValueKind::Positive,
        expected: "a number of tokens, 1 or more",
        default: DefaultValue::InWords("no limit"),
        about: "Maximum number of tokens that each task may use.",
    }
    task_time: Option<Duration> {
        key: "budget.task-time",
        variable: "ARBORIST_MAX_TASK_TIME",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::InWords("no limit"),
        about: "Maximum total time that agents may work on each task.",
    }
}

settings! {
    /// How a run is recorded.
    SessionSettings in SESSION;

    branch: Option<bool> {
        key: "session.branch",
        variable: "ARBORIST_SESSION_BRANCH",
        kind: ValueKind::Switch,
        default: DefaultValue::InWords("true where a workspace is configured, else false"),
        about: "Whether a run works on its own branch, in a worktree beside your checkout, instead of on the branch that is checked out.",
    }
    transcripts: TranscriptMode {
        key: "session.transcripts",
        variable: "ARBORIST_SESSION_TRANSCRIPTS",
        kind: ValueKind::Choice(TranscriptMode::WORDS),
        default: DefaultValue::Text("local"),
        about: "Whether the replies of agents and the output of their tools are recorded with the session, redacted: only in this repository (local), also at its remote (push), or not at all (off).",
    }
    commit_message: Option<TurnMessages> {
        key: "session.commit-message",
        variable: "ARBORIST_SESSION_COMMIT_MESSAGE",
        kind: ValueKind::Choice(TurnMessages::WORDS),
        default: DefaultValue::InWords("agent; model if steps.commit-message.runner is set"),
        about: "Where the commit message of a turn comes from: the agent's own words (agent), the runner of the step commit-message (model), or the names of the files (plain).",
    }
}

settings! {
    /// How workers share a plan.
    WorkSettings in WORK;

    ttl: Duration {
        key: "work.ttl",
        variable: "ARBORIST_WORK_TTL",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(600),
        about: "How long a claim of a worker is valid if it is not renewed. After that, another worker takes the task over. A short time finds dead workers sooner and costs more pushes.",
    }
    coordination: Option<String> {
        key: "work.coordination",
        variable: "ARBORIST_WORK_COORDINATION",
        kind: ValueKind::Text,
        expected: "a remote or a URL",
        default: DefaultValue::InWords("the remote with the code"),
        about: "Another remote for the claims and the branches of finished tasks, by its name or URL. Then only landings are pushed to the remote with the code, which may limit how often you push.",
    }
}

settings! {
    /// `engines.NAME`: how workers are started on other machines.
    EngineSettings in ENGINES;

    submit: Option<Sourced<String>> {
        key: "engines.*.submit",
        kind: ValueKind::Text,
        expected: COMMAND,
        default: DefaultValue::InWords("that of the built-in engine of this name: slurm, ssh or kubernetes"),
        about: "How 'git arborist work --on NAME' starts workers. The command gets the script of a worker on its standard input, starts that script {workers} times, prints the name of each job on a separate line, and ends. {name} is a name for the jobs, {branch} the branch. A command that contains {place} is run once for each place of --on NAME:PLACE,PLACE. It must run the shell command {command} at that place, connected to its own standard input and output. Values are quoted. {{name}} stands for {name} itself.",
    }
    alive: Option<Sourced<String>> {
        key: "engines.*.alive",
        kind: ValueKind::Text,
        expected: COMMAND,
        default: DefaultValue::InWords("that of the built-in engine of this name, or none"),
        about: "A command that prints 'gone' if the job {job} (at {place}) has ended. Any other output changes nothing. It is run by waiting workers of the same submission; if a job is gone, its task is taken over at once. The name of a job is in the variable ARBORIST_JOB of the worker's script, or else its process id.",
    }
    cancel: Option<Sourced<String>> {
        key: "engines.*.cancel",
        kind: ValueKind::Text,
        expected: COMMAND,
        default: DefaultValue::InWords("that of the built-in engine of this name, or none"),
        about: "How 'git arborist work cancel --on NAME JOB' ends the job {job} (at {place}).",
    }
    jobs: Option<Sourced<String>> {
        key: "engines.*.jobs",
        kind: ValueKind::Text,
        expected: COMMAND,
        default: DefaultValue::InWords("that of the built-in engine of this name, or none"),
        about: "A command that prints the jobs that the job {job} (at {place}) consists of, one on each line, such as the tasks of an array. Each of them has its own log. If it prints nothing, the log is that of the job itself.",
    }
    logs: Option<Sourced<String>> {
        key: "engines.*.logs",
        kind: ValueKind::Text,
        expected: COMMAND,
        default: DefaultValue::InWords("that of the built-in engine of this name; with {place} in submit, that command; or none"),
        about: "The command with which 'git arborist work logs --on NAME JOB' prints the log of the job {job} (at {place}). {command} is a shell command that prints the log on the machine of the worker, and {dir} the folder of workers there.",
    }
    dir: Option<Sourced<String>> {
        key: "engines.*.dir",
        kind: ValueKind::Text,
        expected: PATH,
        default: DefaultValue::InWords("~/.cache/git-arborist/workers"),
        about: "The folder on the machines of workers in which they make their clones.",
    }
    manifest: Option<Sourced<String>> {
        key: "engines.*.manifest",
        kind: ValueKind::Text,
        expected: PATH,
        default: DefaultValue::InWords("for kubernetes: .arborist/engines/kubernetes.yaml"),
        about: "A file, relative to the top of the repository, that is passed to submit instead of the script, with {name}, {workers}, {branch} and {script} filled in as YAML. The one of kubernetes is written on first use.",
    }
}
