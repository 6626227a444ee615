//! Options that choose the runner of a step, and options for budgets. The runners take precedence over the plan, and the plan over
//! the configuration. What was spent is counted from the commits of the run.

use std::time::Duration;

use arborist_core::{
    agent::limits::{Budget, Choice},
    pipeline::{Budgets, NamedRunner, RunnerFlags},
    run::dollars,
};
use clap::{Args, builder::NonEmptyStringValueParser};

use crate::numbers::positive;

/// Who does a step.
#[derive(Debug, Args)]
pub(super) struct RunnerArgs {
    /// The agent program: claude, codex, gemini, opencode, aider or another built-in agent; shell (runs the command
    /// that the plan gives for the task); demo (for trying out); or a runner of your own. Overrides the plan, which
    /// overrides the configuration
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// The model that the agent uses
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// The agent program that implements [default: --runner]
    #[arg(long, value_name = "NAME")]
    implement_runner: Option<String>,
    /// The model that implements
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    implement_model: Option<String>,
    /// The agent program that reviews [default: --runner]
    #[arg(long, value_name = "NAME")]
    review_runner: Option<String>,
    /// The model that reviews
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    review_model: Option<String>,
    /// The agent program to call if the first one is not installed, cannot log in or has reached its limit. Can be
    /// repeated: the programs are tried in order
    #[arg(long, value_name = "NAME[:MODEL]")]
    fallback: Vec<Choice>,
    /// Give agents tools (through MCP, if they support it) that read and write the task's files and run commands that
    /// you name; see git-arborist-tools(1). On by default for a task that works in several repositories
    #[arg(long)]
    tools: bool,
}

impl RunnerArgs {
    pub(super) fn flags(&self) -> RunnerFlags {
        let named = |runner: &Option<String>, model: &Option<String>| NamedRunner {
            runner: runner.clone(),
            model: model.clone(),
        };
        RunnerFlags {
            all: named(&self.runner, &self.model),
            implement: named(&self.implement_runner, &self.implement_model),
            review: named(&self.review_runner, &self.review_model),
            fallback: self.fallback.clone(),
            tools: self.tools.then_some(true),
        }
    }
}

/// Limits on cost, tokens and time.
#[derive(Debug, Args)]
pub(super) struct BudgetArgs {
    /// Maximum cost of the run in US dollars, as reported by the agents
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Maximum number of tokens that the run may use
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u64>)]
    max_tokens: Option<u64>,
    /// Maximum total time that agents may work in the run
    #[arg(long, value_name = "SECONDS", value_parser = positive::<u64>)]
    max_time: Option<u64>,
    /// Maximum cost of each task in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_task_cost: Option<f64>,
    /// Maximum number of tokens that each task may use
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u64>)]
    max_task_tokens: Option<u64>,
    /// Maximum total time that agents may work on each task
    #[arg(long, value_name = "SECONDS", value_parser = positive::<u64>)]
    max_task_time: Option<u64>,
}

impl BudgetArgs {
    pub(super) fn budgets(&self) -> Budgets {
        let time = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        Budgets {
            run: Budget { cost: self.max_cost, tokens: self.max_tokens, time: time(self.max_time) },
            task: Budget {
                cost: self.max_task_cost,
                tokens: self.max_task_tokens,
                time: time(self.max_task_time),
            },
        }
    }
}
