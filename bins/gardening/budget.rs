//! Options for budgets. What was spent is counted from the commits of the run.

use std::time::Duration;

use arborist_core::{agent::limits::Budget, pipeline::Budgets, run::dollars};
use clap::Args;

use crate::numbers::positive;

/// Limits on cost, tokens and time.
#[derive(Debug, Args)]
pub(super) struct BudgetArgs {
    /// The most that the run may cost, as reported by the agents
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_cost: Option<f64>,
    /// The most tokens that the run may use
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u64>)]
    max_tokens: Option<u64>,
    /// The total time that agents may work in this run
    #[arg(long, value_name = "SECONDS", value_parser = positive::<u64>)]
    max_time: Option<u64>,
    /// The most that each task may cost
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_task_cost: Option<f64>,
    /// The most tokens that each task may use
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u64>)]
    max_task_tokens: Option<u64>,
    /// The total time that agents may work on each task
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
