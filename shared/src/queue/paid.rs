//! The cost of agents' tries to resolve a conflict, in whole numbers, as stored in a ticket.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{agent::Usage, pipeline::Expense};

const MICRO: f64 = 1_000_000.0;

/// The cost of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    /// Tokens read and written; `None` if no agent reported them.
    tokens: Option<(u64, u64)>,
    /// Millionths of a US dollar; `None` if no agent reported a cost.
    micro_dollars: Option<u64>,
    milliseconds: u64,
}

impl Paid {
    /// Adds the cost of another call.
    #[must_use]
    pub fn and(self, more: Expense) -> Self {
        let mut all = Expense::from(self);
        all.add(more.usage, more.time);
        Self::from(all)
    }

    /// The expense to record with a landing; `None` if no agent was called.
    #[must_use]
    pub fn expense(self) -> Option<Expense> {
        (self != Self::default()).then(|| self.into())
    }
}

impl From<Expense> for Paid {
    fn from(expense: Expense) -> Self {
        let cost = expense.usage.and_then(|usage| usage.cost);
        Self {
            tokens: expense.usage.map(|usage| (usage.tokens_in, usage.tokens_out)),
            micro_dollars: cost.map(|cost| (cost * MICRO).round() as u64),
            milliseconds: u64::try_from(expense.time.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<Paid> for Expense {
    fn from(paid: Paid) -> Self {
        let usage = paid.tokens.map(|(tokens_in, tokens_out)| Usage {
            tokens_in,
            tokens_out,
            cost: paid.micro_dollars.map(|cost| cost as f64 / MICRO),
        });
        Self { usage, time: Duration::from_millis(paid.milliseconds) }
    }
}
