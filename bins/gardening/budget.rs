//! Options that say what may be spent. What was spent is counted from the commits of the run.

use std::{collections::BTreeMap, time::Duration};

use arborist_core::{agent::limits::Budget, pipeline::Budgets};
use clap::Args;

/// What may be spent.
#[derive(Debug, Args)]
pub(super) struct BudgetArgs {
    /// What the run may cost, as far as agents tell
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_cost: Option<f64>,
    /// How many tokens the run may use
    #[arg(long, value_name = "NUMBER")]
    max_tokens: Option<u64>,
    /// How long agents may be at work for the run, all together
    #[arg(long, value_name = "SECONDS")]
    max_time: Option<u64>,
    /// What each task may cost
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    max_task_cost: Option<f64>,
    /// How many tokens each task may use
    #[arg(long, value_name = "NUMBER")]
    max_task_tokens: Option<u64>,
    /// How long agents may be at work on each task
    #[arg(long, value_name = "SECONDS")]
    max_task_time: Option<u64>,
}

impl BudgetArgs {
    /// Limits that were given before hold unless they are given anew. Gives those.
    pub(super) fn take_up(&mut self, before: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let number = |text: &str| text.parse().ok();
        let money = |text: &str| dollars(text).ok();
        let taken = [
            fill(&mut self.max_cost, before, "max-cost", money),
            fill(&mut self.max_tokens, before, "max-tokens", number),
            fill(&mut self.max_time, before, "max-time", number),
            fill(&mut self.max_task_cost, before, "max-task-cost", money),
            fill(&mut self.max_task_tokens, before, "max-task-tokens", number),
            fill(&mut self.max_task_time, before, "max-task-time", number),
        ];
        taken.into_iter().flatten().collect()
    }

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

/// Takes up one limit, if it is not given now.
fn fill<T>(
    limit: &mut Option<T>,
    before: &BTreeMap<String, String>,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<(String, String)> {
    if limit.is_some() {
        return None;
    }
    let text = before.get(name)?;
    *limit = read(text);
    limit.is_some().then(|| (name.to_owned(), text.clone()))
}

/// A sum of money as it is typed.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "not a sum of US dollars, such as 2.50".to_owned())
}
