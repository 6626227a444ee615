//! The options of a run: command line flags and configuration, joined into typed values.

use std::time::Duration;

use super::{MessageOrigin, PromptTemplate, Protection, StepRunner};
use crate::{
    agent::{
        AgentError,
        limits::{Backoff, Budget},
    },
    pipeline::calls::runners::{RunnerFlags, RunnerTable},
    plan::{Task, TestCommand, TestKind},
    process::Limits,
    sandbox::Sandbox,
    settings::{BudgetSettings, Origin, PromptSettings, ReviewsIn, SecretFiles, Settings, Sourced},
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
        let template = |setting: &Option<Sourced<String>>| {
            let Some(text) = setting else { return Ok(None) };
            let parsed = PromptTemplate::parse(&text.place, &text.value);
            parsed.map(Some).map_err(|unknown| AgentError::PromptTemplate {
                message: unknown.to_string(),
                hint: unknown.hint(),
            })
        };
        let PromptSettings { implement, review, .. } = &settings.prompts;
        Ok(Self { implement: template(implement)?, review: template(review)? })
    }
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

impl RunOptions {
    /// Joins flags and configuration.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<Self, AgentError> {
        let Settings { general, tests, timeouts, .. } = settings;
        let named = flags.test_command.clone();
        let configured = general.test_command.as_ref().filter(|_| named.is_none());
        let text = |flag: &Option<String>, setting: &String| flag.clone().unwrap_or_else(|| setting.clone());
        let runners = RunnerTable::new(&flags.step_runner, settings);
        runners.check()?;
        let message_by = runners.message_by()?;
        let reviewers = runners.reviewers()?;
        let protection = Protection::new(settings, &flags.allow)
            .with_reviewers(reviewers.iter().filter_map(StepRunner::program));
        Ok(Self {
            runners,
            max_retries: flags.max_retries.unwrap_or(general.max_retries).max(1),
            test_command_origin: configured.map_or(Origin::User, |command| command.origin),
            test_command: configured
                .map(|command| command.value.clone())
                .or(named)
                .filter(|it| !is_blank(it)),
            allow_red: flags.allow_red || tests.allow_red,
            allow_fewer: tests.allow_fewer,
            protection,
            tests_clean: tests.clean,
            report_dir: text(&flags.report_dir, &general.report_dir),
            log_dir: text(&flags.log_dir, &general.log_dir),
            call_limits: call_limits(settings),
            test_time: timeouts.test,
            backoff: backoff(settings),
            budgets: budgets(flags.budgets, &settings.budget),
            diff_limit: flags.diff_limit.unwrap_or(settings.review.diff_limit),
            reviews_in: settings.review.place,
            secret_files: settings.review.redact_files,
            message_by,
            message_limits: Limits { whole: Some(timeouts.commit_message), ..Limits::default() },
            sandbox: Sandbox::new(settings),
            context: settings.prompts.context.clone(),
            prompts: PromptTemplates::new(settings)?,
            sessions: if general.resume { Sessions::Resumed } else { Sessions::Fresh },
        })
    }

    /// The limits of a test command.
    #[must_use]
    pub fn test_limits(&self) -> Limits {
        Limits { whole: Some(self.test_time), silence: None, ..self.call_limits }
    }

    /// The commands that test a task: its own, or the run's. Empty if none is configured.
    #[must_use]
    pub fn tests_of(&self, task: &Task) -> Vec<TestCommand> {
        let own = task.test_commands.iter().filter(|test| !is_blank(&test.command));
        let own: Vec<TestCommand> = own.cloned().collect();
        if own.is_empty() { self.usual_test().into_iter().collect() } else { own }
    }

    /// The run's test command.
    pub(super) fn usual_test(&self) -> Option<TestCommand> {
        let command = self.test_command.clone()?;
        Some(TestCommand { kind: TestKind::Unit, command, ..TestCommand::default() })
    }
}

/// Whether a command is empty. A shell would report success for it, although nothing was tested.
#[must_use]
pub fn is_blank(command: &str) -> bool {
    command.trim().is_empty()
}

/// How long one call of an agent may run in total, and without output.
#[must_use]
pub fn call_limits(settings: &Settings) -> Limits {
    Limits {
        whole: Some(settings.timeouts.runner),
        silence: Some(settings.timeouts.silence),
        log_size: log_size(settings),
        ..Limits::default()
    }
}

/// The largest size of a log, in bytes.
#[must_use]
pub fn log_size(settings: &Settings) -> u64 {
    settings.general.log_limit.saturating_mul(1000 * 1000)
}

/// How long to wait for a provider that is overloaded.
#[must_use]
pub fn backoff(settings: &Settings) -> Backoff {
    Backoff { patience: settings.timeouts.limit, ..Backoff::default() }
}

/// A limit of the command line overrides that of the configuration.
fn budgets(flags: Budgets, settings: &BudgetSettings) -> Budgets {
    let Budgets { run, task } = flags;
    Budgets {
        run: Budget {
            cost: run.cost.or(settings.cost),
            tokens: run.tokens.or(settings.tokens),
            time: run.time.or(settings.time),
        },
        task: Budget {
            cost: task.cost.or(settings.task_cost),
            tokens: task.tokens.or(settings.task_tokens),
            time: task.time.or(settings.task_time),
        },
    }
}
