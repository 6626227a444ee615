//! What the calls of a step cost in tokens, money and time, and the trailers that record it.

use std::{ops::Add, sync::mpsc::Receiver, time::Duration};

use crate::{
    agent::{Usage, limits::Spent},
    message::{Key, Trailers},
    progress::RunTotals,
};

/// Spending of the other tasks of a run, which may continue while a task runs.
#[derive(Debug)]
pub struct OtherSpending {
    spent: Spent,
    more: Receiver<Spent>,
}

impl OtherSpending {
    /// Starts at `spent`; further amounts arrive through `more`.
    #[must_use]
    pub fn new(spent: Spent, more: Receiver<Spent>) -> Self {
        Self { spent, more }
    }

    /// Returns everything that was spent until now.
    pub fn spent(&mut self) -> Spent {
        self.spent = self.more.try_iter().fold(self.spent, Add::add);
        self.spent
    }
}

/// What the calls of a step have cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expense {
    /// Tokens and money, if agents reported them.
    pub usage: Option<Usage>,
    /// How long agents were running, without waiting for providers.
    pub time: Duration,
}

impl Expense {
    /// Adds the cost of one call.
    pub fn add(&mut self, usage: Option<Usage>, time: Duration) {
        self.usage = match (self.usage, usage) {
            (Some(known), Some(more)) => Some(known.plus(more)),
            (known, more) => known.or(more),
        };
        self.time += time;
    }

    /// The amounts that count against a budget.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let usage = self.usage;
        let totals = RunTotals {
            tokens_in: usage.map(|usage| usage.tokens_in),
            tokens_out: usage.map(|usage| usage.tokens_out),
            cost: usage.and_then(|usage| usage.cost),
        };
        Spent { totals, time: self.time }
    }

    /// The trailers that record it. Time is rounded up, so that a budget that was used up stays used up.
    #[must_use]
    pub fn trailers(&self) -> Trailers {
        let mut trailers = Trailers::default();
        let mut set = |key, value: String| {
            let _ = trailers.set(key, value);
        };
        if let Some(usage) = self.usage {
            set(Key::TokensIn, usage.tokens_in.to_string());
            set(Key::TokensOut, usage.tokens_out.to_string());
            if let Some(cost) = usage.cost {
                set(Key::Cost, format!("{cost:.6}"));
            }
        }
        set(Key::Runtime, format!("{:.1}", (self.time.as_secs_f64() * 10.0).ceil() / 10.0));
        trailers
    }
}
