//! The options of a run: command line flags and configuration, joined into typed values.

use std::time::Duration;

use super::{MessageOrigin, PromptTemplate, Protection, SecretFiles, StepRunner};
use crate::{
    agent::{
        AgentError,
        limits::{Backoff, Budget},
    },
    pipeline::calls::runners::{RunnerFlags, RunnerTable},
    plan::{Task, TestCommand, TestKind},
    process::Limits,
    sandbox::Sandbox,
    settings::{Origin, Settings},
};

/// The options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The runners of each step.
    pub runners: RunnerTable,
    /// The number of attempts for each task.
    pub max_retries: u32,
    /// The command that tests tasks without test commands.
    pub test_command: Option<String>,
    /// Where the test command was configured.
    pub test_command_origin: Origin,
    /// Whether the run may begin although tests already fail.
    pub allow_red: bool,
    /// Whether fewer tests may run after a task than before it.
    pub allow_fewer: bool,
    /// Files that tasks must not change.
    pub protection: Protection,
    /// Whether tests run in a clean checkout even if the work is done in the user's checkout.
    pub tests_clean: bool,
    /// The directory for committed reports.
    pub report_dir: String,
    /// The directory for logs.
    pub log_dir: String,
    /// How long an agent may run in total, and without output.
    pub call_limits: Limits,
    /// How long a test may run.
    pub test_time: Duration,
    /// How long to wait for an overloaded provider.
    pub backoff: Backoff,
    /// The budgets of the run and of each task.
    pub budgets: Budgets,
    /// The number of characters of a diff that a reviewer is shown.
    pub diff_limit: usize,
    /// Where reviewers work.
    pub reviews_in: ReviewsIn,
    /// Whether an attempt continues the agent session of the one before it.
    pub sessions: Sessions,
    /// What happens if an agent writes a secret into a file.
    pub secret_files: SecretFiles,
    /// Where the messages of turns come from.
    pub message_by: MessageOrigin,
    /// How long a model may take to write a commit message.
    pub message_limits: Limits,
    /// Limits where children can change files.
    pub sandbox: Sandbox,
    /// Files that agents are asked to read first.
    pub context: Vec<String>,
    /// Templates of prompts.
    pub prompts: PromptTemplates,
}

/// The templates of prompts; `None` stands for the built-in prompt.
#[derive(Debug, Clone, Default)]
pub struct PromptTemplates {
    /// For agents.
    pub implement: Option<PromptTemplate>,
    /// For reviewers.
    pub review: Option<PromptTemplate>,
}

impl PromptTemplates {
    fn new(settings: &Settings) -> Result<Self, AgentError> {
        let template = |key: &str| {
            let Some(text) = settings.text(key) else { return Ok(None) };
            let place = settings.place(key).unwrap_or(key);
            let parsed = PromptTemplate::parse(place, text);
            parsed.map(Some).map_err(|unknown| AgentError::PromptTemplate {
                message: unknown.to_string(),
                hint: unknown.hint(),
            })
        };
        Ok(Self { implement: template("prompts.implement")?, review: template("prompts.review")? })
    }
}

/// Where reviewers work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewsIn {
    /// In a worktree of the commit under review, which is reset before each review.
    Scratch,
    /// In the task's own checkout, with everything that is installed there.
    Checkout,
}

/// Whether an attempt continues the agent session of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// Every attempt starts a new session.
    Fresh,
    /// An attempt continues the session of the last one, if the agent program supports it.
    Resumed,
}

/// The budgets of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budgets {
    /// The budget of all tasks together.
    pub run: Budget,
    /// The budget of each task.
    pub task: Budget,
}

/// Values of command line flags, which take precedence over the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Flags that choose runners and models.
    pub step_runner: RunnerFlags,
    /// `--max-retries`.
    pub max_retries: Option<u32>,
    /// `--test-command`.
    pub test_command: Option<String>,
    /// `--allow-red`.
    pub allow_red: bool,
    /// `--allow`.
    pub allow: Vec<String>,
    /// `--report-dir`.
    pub report_dir: Option<String>,
    /// `--log-dir`.
    pub log_dir: Option<String>,
    /// `--max-cost` and the other budget flags.
    pub budgets: Budgets,
    /// `--diff-limit`.
    pub diff_limit: Option<usize>,
    /// `--sandbox`.
    pub sandbox: Option<String>,
}

/// The default of `review.diff-limit`.
const DEFAULT_DIFF_LIMIT: usize = 8000;

impl RunOptions {
    /// Joins flags and configuration.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<Self, AgentError> {
        let text = |flag: &Option<String>, key: &str, default: &str| {
            flag.clone()
                .or_else(|| settings.text(key).map(str::to_owned))
                .unwrap_or_else(|| default.to_owned())
        };
        let retries = settings.count("max-retries").and_then(|count| u32::try_from(count).ok());
        let longest = settings.count("review.diff-limit").and_then(|count| usize::try_from(count).ok());
        let named = flags.test_command.clone();
        let runners = RunnerTable::new(&flags.step_runner, settings);
        runners.check()?;
        let message_by = runners.message_by()?;
        let reviewers = runners.reviewers()?;
        let protection = Protection::new(settings, &flags.allow)
            .with_reviewers(reviewers.iter().filter_map(StepRunner::program));
        Ok(Self {
            runners,
            max_retries: flags.max_retries.or(retries).unwrap_or(5).max(1),
            test_command_origin: if named.is_some() {
                Origin::User
            } else {
                settings.origin("test-command").unwrap_or(Origin::User)
            },
            test_command: named.or_else(|| settings.text("test-command").map(str::to_owned)),
            allow_red: flags.allow_red || settings.switch("test.allow-red") == Some(true),
            allow_fewer: settings.switch("test.allow-fewer") == Some(true),
            protection,
            tests_clean: settings.switch("test.clean") == Some(true),
            report_dir: text(&flags.report_dir, "report-dir", "spec/reports"),
            log_dir: text(&flags.log_dir, "log-dir", "spec/logs"),
            call_limits: call_limits(settings),
            test_time: seconds(settings, "timeouts.test", 300),
            backoff: backoff(settings),
            budgets: Budgets {
                run: budget(flags.budgets.run, settings, ""),
                task: budget(flags.budgets.task, settings, "task-"),
            },
            diff_limit: flags.diff_limit.or(longest).unwrap_or(DEFAULT_DIFF_LIMIT),
            reviews_in: match settings.text("steps.review.place") {
                Some("checkout") => ReviewsIn::Checkout,
                _ => ReviewsIn::Scratch,
            },
            secret_files: SecretFiles::of(settings),
            message_by,
            message_limits: Limits {
                whole: Some(seconds(settings, "timeouts.commit-message", 30)),
                ..Limits::default()
            },
            sandbox: Sandbox::new(settings),
            context: settings.words("context").map(<[String]>::to_vec).unwrap_or_default(),
            prompts: PromptTemplates::new(settings)?,
            sessions: match settings.switch("resume") {
                Some(true) => Sessions::Resumed,
                _ => Sessions::Fresh,
            },
        })
    }

    /// The limits of a test command.
    #[must_use]
    pub fn test_limits(&self) -> Limits {
        Limits { whole: Some(self.test_time), silence: None, ..self.call_limits }
    }

    /// The commands that test a task, and whether any were configured. Without one, the command is `true`.
    #[must_use]
    pub fn tests_of(&self, task: &Task) -> (Vec<TestCommand>, bool) {
        if !task.test_commands.is_empty() {
            return (task.test_commands.clone(), true);
        }
        let usual = self.usual_test();
        let has_command = usual.is_some();
        let nothing = || TestCommand { command: "true".into(), ..TestCommand::default() };
        (vec![usual.unwrap_or_else(nothing)], has_command)
    }

    /// The run's test command.
    pub(super) fn usual_test(&self) -> Option<TestCommand> {
        let command = self.test_command.clone()?;
        Some(TestCommand { kind: TestKind::Unit, command, ..TestCommand::default() })
    }
}

/// How long one call of an agent may run in total, and without output.
#[must_use]
pub fn call_limits(settings: &Settings) -> Limits {
    Limits {
        whole: Some(seconds(settings, "timeouts.runner", 600)),
        silence: Some(seconds(settings, "timeouts.silence", 300)),
        log_size: log_size(settings),
        ..Limits::default()
    }
}

/// The largest size of a log, in bytes.
#[must_use]
pub fn log_size(settings: &Settings) -> u64 {
    let megabytes = settings.count("log-limit");
    megabytes.map_or(Limits::default().log_size, |count| count.saturating_mul(1000 * 1000))
}

fn seconds(settings: &Settings, key: &str, default: u64) -> Duration {
    Duration::from_secs(settings.count(key).unwrap_or(default))
}

/// How long to wait for a provider that is overloaded.
#[must_use]
pub fn backoff(settings: &Settings) -> Backoff {
    let patience = seconds(settings, "timeouts.limit", Backoff::default().patience.as_secs());
    Backoff { patience, ..Backoff::default() }
}

fn budget(flags: Budget, settings: &Settings, whose: &str) -> Budget {
    let key = |what: &str| format!("budget.{whose}{what}");
    Budget {
        cost: flags.cost.or_else(|| settings.amount(&key("cost"))),
        tokens: flags.tokens.or_else(|| settings.count(&key("tokens"))),
        time: flags.time.or_else(|| settings.count(&key("time")).map(Duration::from_secs)),
    }
}
