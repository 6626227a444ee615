//! What was meant by flags and configuration, for everything that a pipeline does.

use std::time::Duration;

use super::MessageBy;
use crate::{
    agent::{
        AgentError,
        limits::{Backoff, Budget},
    },
    pipeline::calls::runners::{RunnerFlags, RunnerTable},
    plan::{Task, TestCommand, TestKind},
    process::Limits,
    settings::{Origin, Settings},
};

/// What holds for a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Who does which step.
    pub runners: RunnerTable,
    /// How many attempts a task has.
    pub max_retries: u32,
    /// How a task is tested that has no commands of its own.
    pub test_command: Option<String>,
    /// Who said so.
    pub test_origin: Origin,
    /// Whether tests may be red before.
    pub allow_red: bool,
    /// Whether tests run in a clean checkout also where the work is done in place.
    pub tests_clean: bool,
    /// Where reports are committed.
    pub report_dir: String,
    /// Where logs are kept.
    pub log_dir: String,
    /// How long an agent may take and be silent.
    pub call_limits: Limits,
    /// How long a test may take.
    pub test_time: Duration,
    /// How long a provider is waited for.
    pub backoff: Backoff,
    /// What the run may spend, and what each task may.
    pub budgets: Budgets,
    /// How many characters of a change the reviewer sees.
    pub diff_limit: usize,
    /// Where reviewers work.
    pub reviews_in: ReviewsIn,
    /// How an attempt begins after another.
    pub sessions: Sessions,
    /// Where the messages of turns come from.
    pub message_by: MessageBy,
    /// How long one who is asked for a message may take.
    pub message_limits: Limits,
}

/// Where reviewers work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewsIn {
    /// In a worktree of the commit under review, which is reset before each review.
    Scratch,
    /// In the task's own checkout, with everything that is installed there.
    Checkout,
}

/// How an attempt begins after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// In a session of its own.
    Fresh,
    /// In the session of the agent program that the last one had.
    Resumed,
}

/// What may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budgets {
    /// By all tasks of a run together.
    pub run: Budget,
    /// By each task.
    pub task: Budget,
}

/// What flags say; they win over the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Who does which step.
    pub step_runner: RunnerFlags,
    /// `--max-retries`.
    pub max_retries: Option<u32>,
    /// `--test-command`.
    pub test_command: Option<String>,
    /// `--allow-red`.
    pub allow_red: bool,
    /// `--report-dir`.
    pub report_dir: Option<String>,
    /// `--log-dir`.
    pub log_dir: Option<String>,
    /// `--max-cost` and the like.
    pub budgets: Budgets,
    /// `--diff-limit`.
    pub diff_limit: Option<usize>,
}

/// How many characters of a change the reviewer sees, unless somebody says otherwise.
const LONGEST_DIFF: usize = 8000;

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
        Ok(Self {
            runners,
            max_retries: flags.max_retries.or(retries).unwrap_or(5).max(1),
            test_origin: if named.is_some() {
                Origin::User
            } else {
                settings.origin("test-command").unwrap_or(Origin::User)
            },
            test_command: named.or_else(|| settings.text("test-command").map(str::to_owned)),
            allow_red: flags.allow_red || settings.switch("test.allow-red") == Some(true),
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
            diff_limit: flags.diff_limit.or(longest).unwrap_or(LONGEST_DIFF),
            reviews_in: match settings.text("steps.review.place") {
                Some("checkout") => ReviewsIn::Checkout,
                _ => ReviewsIn::Scratch,
            },
            message_by,
            message_limits: Limits {
                whole: Some(seconds(settings, "timeouts.commit-message", 30)),
                ..Limits::default()
            },
            sessions: match settings.switch("resume") {
                Some(true) => Sessions::Resumed,
                _ => Sessions::Fresh,
            },
        })
    }

    /// The commands that test a task, and whether there are any. Without one the default is `true`.
    #[must_use]
    pub fn tests_of(&self, task: &Task) -> (Vec<TestCommand>, bool) {
        if !task.test_commands.is_empty() {
            return (task.test_commands.clone(), true);
        }
        let command = self.test_command.clone();
        let has_command = command.is_some();
        let command = command.unwrap_or_else(|| "true".into());
        (vec![TestCommand { kind: TestKind::Unit, command, ..TestCommand::default() }], has_command)
    }
}

/// How long one call of an agent may take and be silent.
#[must_use]
pub fn call_limits(settings: &Settings) -> Limits {
    Limits {
        whole: Some(seconds(settings, "timeouts.runner", 600)),
        silence: Some(seconds(settings, "timeouts.silence", 300)),
        ..Limits::default()
    }
}

fn seconds(settings: &Settings, key: &str, default: u64) -> Duration {
    Duration::from_secs(settings.count(key).unwrap_or(default))
}

/// How long a provider is waited for that cannot keep up.
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
