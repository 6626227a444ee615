//! What was meant by flags and configuration, for everything that a pipeline does.

use std::time::Duration;

use crate::{
    agent::{AgentError, Overrides, RunnerKind},
    plan::{Task, TestCommand, TestKind},
    process::Limits,
    settings::{Origin, Settings},
};

/// Who does a step.
#[derive(Debug, Clone)]
pub struct Crew {
    /// How it is called.
    pub runner: RunnerKind,
    /// Its name.
    pub name: String,
    /// The model that it is asked to use.
    pub model: Option<String>,
}

/// What holds for a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who implements.
    pub implement: Crew,
    /// Who reviews.
    pub review: Crew,
    /// How many attempts a task has.
    pub max_retries: u32,
    /// How a task is tested that has no commands of its own.
    pub test_command: Option<String>,
    /// Who said so.
    pub test_origin: Origin,
    /// Where reports are committed.
    pub report_dir: String,
    /// Where logs are kept.
    pub log_dir: String,
    /// How long an agent may take and be silent.
    pub call_limits: Limits,
    /// How long a test may take.
    pub test_time: Duration,
}

/// What flags say; they win over the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--runner`.
    pub runner: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--max-retries`.
    pub max_retries: Option<u32>,
    /// `--test-command`.
    pub test_command: Option<String>,
    /// `--report-dir`.
    pub report_dir: Option<String>,
    /// `--log-dir`.
    pub log_dir: Option<String>,
}

impl Options {
    /// Joins flags and configuration.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<Self, AgentError> {
        let text = |flag: &Option<String>, key: &str, default: &str| {
            flag.clone()
                .or_else(|| settings.text(key).map(str::to_owned))
                .unwrap_or_else(|| default.to_owned())
        };
        let retries = settings.count("max-retries").and_then(|count| u32::try_from(count).ok());
        let named = flags.test_command.clone();
        Ok(Self {
            implement: Crew::of_step("implement", flags, settings)?,
            review: Crew::of_step("review", flags, settings)?,
            max_retries: flags.max_retries.or(retries).unwrap_or(5).max(1),
            test_origin: if named.is_some() {
                Origin::User
            } else {
                settings.origin("test-command").unwrap_or(Origin::User)
            },
            test_command: named.or_else(|| settings.text("test-command").map(str::to_owned)),
            report_dir: text(&flags.report_dir, "report-dir", "spec/reports"),
            log_dir: text(&flags.log_dir, "log-dir", "spec/logs"),
            call_limits: call_limits(settings),
            test_time: seconds(settings, "timeouts.test", 300),
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

impl Crew {
    /// Who does `step`: a flag's word, else the step's own settings, else those of all steps.
    pub fn of_step(step: &str, flags: &Flags, settings: &Settings) -> Result<Self, AgentError> {
        let of_step = |key: &str| settings.text(&format!("steps.{step}.{key}"));
        let name = flags
            .runner
            .as_deref()
            .or_else(|| of_step("runner"))
            .or_else(|| settings.text("runner"))
            .unwrap_or("claude");
        let model = flags.model.as_deref().or_else(|| of_step("model")).or_else(|| settings.text("model"));
        let key = |field: &str| format!("runners.{name}.{field}");
        let env =
            settings.below(&key("env.")).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let events = match settings.text(&key("events")) {
            Some(format) => Some(format.parse()?),
            None => None,
        };
        let own = Overrides {
            command: settings.words(&key("command")).map(<[String]>::to_vec),
            resume: None,
            events,
            env,
        };
        Ok(Self {
            runner: RunnerKind::resolve(name, &own)?,
            name: name.to_owned(),
            model: model.map(str::to_owned),
        })
    }
}
