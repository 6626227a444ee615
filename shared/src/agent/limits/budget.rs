//! Budgets of tasks and runs. What was spent is counted from history, so a restart does not reset it.

use std::{fmt, ops::Add, time::Duration};

use crate::{
    history::{Event, Run},
    message::Key,
    name::TaskId,
    progress::RunTotals,
};

/// The largest amounts that may be spent; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// US dollars.
    pub cost: Option<f64>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Time that agents run.
    pub time: Option<Duration>,
}

/// What was spent, according to the trailers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Tokens and money.
    pub totals: RunTotals,
    /// Time that agents were running.
    pub time: Duration,
}

impl Spent {
    /// What a run has spent, without the current attempts of `task`. Work that was reverted still counts.
    #[must_use]
    pub fn without(run: &Run, task: &TaskId) -> Self {
        let of_others = run.tasks.iter().flat_map(|history| {
            let own = if history.id == *task { history.current().len() } else { 0 };
            let counted = &history.events[..history.events.len() - own];
            counted.iter().chain(&history.cancelled)
        });
        of_others.collect()
    }
}

impl<'a> FromIterator<&'a Event> for Spent {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        let events: Vec<&Event> = events.into_iter().collect();
        let seconds: f64 =
            events.iter().filter_map(|event| event.trailers.get(Key::Runtime)?.parse::<f64>().ok()).sum();
        Self {
            time: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            totals: events.into_iter().collect(),
        }
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { totals: self.totals.plus(other.totals), time: self.time.saturating_add(other.time) }
    }
}

/// The owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetLevel {
    /// One task.
    Task,
    /// The whole run.
    Run,
}

impl fmt::Display for BudgetLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task => "task",
            Self::Run => "run",
        })
    }
}

/// Formats an amount with cents, and more digits if it is small.
fn dollars(amount: f64) -> String {
    if amount >= 0.1 {
        return format!("{amount:.2}");
    }
    let long = format!("{amount:.6}");
    let end = long.trim_end_matches('0').len().max("0.00".len());
    long[..end].to_owned()
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Overrun {
    /// Too much money.
    #[error("the {level} has cost ${}, and its limit is ${}", dollars(*spent), dollars(*limit))]
    Cost {
        /// The owner of the budget.
        level: BudgetLevel,
        /// What was spent, in US dollars.
        spent: f64,
        /// The limit, in US dollars.
        limit: f64,
    },
    /// Too many tokens.
    #[error("the {level} has used {spent} tokens, and its limit is {limit}")]
    Tokens {
        /// The owner of the budget.
        level: BudgetLevel,
        /// Tokens that were read and written.
        spent: u64,
        /// The limit.
        limit: u64,
    },
    /// Too much time.
    #[error("the {level} has used up its time limit of {} s ({})", .limit.as_secs(), self.option())]
    Time {
        /// The owner of the budget.
        level: BudgetLevel,
        /// The time that agents ran.
        spent: Duration,
        /// The limit.
        limit: Duration,
    },
}

impl Overrun {
    /// The owner of the budget.
    #[must_use]
    pub fn level(&self) -> BudgetLevel {
        match self {
            Self::Cost { level, .. } | Self::Tokens { level, .. } | Self::Time { level, .. } => *level,
        }
    }

    /// A limit that allows the same amount to be spent again.
    #[must_use]
    pub fn raised(&self) -> String {
        match self {
            // Whole cents, and more than was spent.
            Self::Cost { spent, limit, .. } => {
                format!("{:.2}", ((spent + limit.max(0.01)) * 100.0 - 1e-6).ceil() / 100.0)
            }
            Self::Tokens { spent, limit, .. } => spent.saturating_add((*limit).max(1)).to_string(),
            Self::Time { spent, limit, .. } => {
                spent.as_secs().saturating_add(limit.as_secs()).saturating_add(1).to_string()
            }
        }
    }

    /// The option that sets it.
    #[must_use]
    pub fn option(&self) -> &'static str {
        match (self, self.level()) {
            (Self::Cost { .. }, BudgetLevel::Run) => "--max-cost",
            (Self::Tokens { .. }, BudgetLevel::Run) => "--max-tokens",
            (Self::Time { .. }, BudgetLevel::Run) => "--max-time",
            (Self::Cost { .. }, BudgetLevel::Task) => "--max-task-cost",
            (Self::Tokens { .. }, BudgetLevel::Task) => "--max-task-tokens",
            (Self::Time { .. }, BudgetLevel::Task) => "--max-task-time",
        }
    }
}

impl Budget {
    /// `Err` if the budget is used up, which it also is if exactly nothing is left.
    pub fn check(&self, level: BudgetLevel, spent: &Spent) -> Result<(), Overrun> {
        let cost = spent.totals.cost.unwrap_or(0.0);
        let tokens = spent.totals.tokens_in.unwrap_or(0).saturating_add(spent.totals.tokens_out.unwrap_or(0));
        if let Some(limit) = self.cost.filter(|limit| cost >= *limit) {
            return Err(Overrun::Cost { level, spent: cost, limit });
        }
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Err(Overrun::Tokens { level, spent: tokens, limit });
        }
        match self.time.filter(|limit| spent.time >= *limit) {
            Some(limit) => Err(Overrun::Time { level, spent: spent.time, limit }),
            None => Ok(()),
        }
    }

    /// How much time is left, if time is limited. A call is ended after that.
    #[must_use]
    pub fn time_left(&self, spent: &Spent) -> Option<Duration> {
        self.time.map(|limit| limit.saturating_sub(spent.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_exhausted_budget_is_reported() {
        let budget = Budget { cost: Some(1.0), tokens: Some(100), time: Some(Duration::from_secs(60)) };
        let spent = |cost, tokens_in, tokens_out, seconds| Spent {
            totals: RunTotals { tokens_in, tokens_out, cost },
            time: Duration::from_secs(seconds),
        };
        let table = [
            (spent(None, None, None, 0), None),
            (spent(Some(0.99), Some(60), Some(39), 59), None),
            (spent(Some(1.0), None, None, 0), Some("the task has cost $1.00, and its limit is $1.00")),
            (spent(None, Some(60), Some(40), 0), Some("the task has used 100 tokens, and its limit is 100")),
            (
                spent(None, Some(u64::MAX), Some(1), 0),
                Some("the task has used 18446744073709551615 tokens, and its limit is 100"),
            ),
            (
                spent(None, None, None, 61),
                Some("the task has used up its time limit of 60 s (--max-task-time)"),
            ),
        ];
        for (spent, expected) in table {
            let found = budget.check(BudgetLevel::Task, &spent).err().map(|overrun| overrun.to_string());
            assert_eq!(found.as_deref(), expected, "{spent:?}");
            assert_eq!(Budget::default().check(BudgetLevel::Run, &spent), Ok(()));
        }
        let raised = |spent: &Spent| budget.check(BudgetLevel::Run, spent).unwrap_err().raised();
        assert_eq!(raised(&spent(Some(1.5), None, None, 0)), "2.50");
        assert_eq!(raised(&spent(None, Some(60), Some(40), 0)), "200");
        assert_eq!(raised(&spent(None, None, None, 61)), "122");
        assert_eq!(budget.time_left(&spent(None, None, None, 45)), Some(Duration::from_secs(15)));
        assert_eq!(budget.time_left(&spent(None, None, None, 99)), Some(Duration::ZERO));
    }
}
