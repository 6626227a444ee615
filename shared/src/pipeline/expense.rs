//! What a step has spent, and how it stands in a commit.

use std::{ops::Add, sync::mpsc::Receiver, time::Duration};

use crate::{
    agent::{Usage, limits::Spent},
    message::{Key, Trailers},
    progress::RunTotals,
};

/// What the rest of a run has spent, and goes on spending while a task is worked on.
#[derive(Debug)]
pub struct Others {
    spent: Spent,
    more: Receiver<Spent>,
}

impl Others {
    /// So much until now; what comes is told.
    #[must_use]
    pub fn new(spent: Spent, more: Receiver<Spent>) -> Self {
        Self { spent, more }
    }

    /// All of it, up to now.
    pub fn spent(&mut self) -> Spent {
        self.spent = self.more.try_iter().fold(self.spent, Add::add);
        self.spent
    }
}

/// What the calls of a step have spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expense {
    /// Tokens and money, as far as agents told.
    pub usage: Option<Usage>,
    /// How long agents were at work. Waiting for a provider is no work.
    pub time: Duration,
}

impl Expense {
    /// Adds what one call came to.
    pub fn add(&mut self, usage: Option<Usage>, time: Duration) {
        self.usage = match (self.usage, usage) {
            (Some(known), Some(more)) => Some(known.plus(more)),
            (known, more) => known.or(more),
        };
        self.time += time;
    }

    /// As it is counted against a budget.
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

    /// As it is written down. Time is rounded up, so that what was used up stays used up.
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
