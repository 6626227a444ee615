//! The costs of a run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    history::{Event, Run},
    message::Key,
};

/// What was spent, if agents reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunTotals {
    /// Input tokens; null if no agent reported them.
    pub tokens_in: Option<u64>,
    /// Output tokens; null if no agent reported them.
    pub tokens_out: Option<u64>,
    /// Cost in US dollars; null if no agent reported it.
    pub cost: Option<f64>,
}

impl RunTotals {
    /// Everything that the run has spent, including work that was reverted.
    #[must_use]
    pub fn of_run(run: &Run) -> Self {
        run.tasks.iter().flat_map(|task| task.events.iter().chain(&task.cancelled)).collect()
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let count = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        Self {
            tokens_in: count(self.tokens_in, other.tokens_in),
            tokens_out: count(self.tokens_out, other.tokens_out),
            cost,
        }
    }

    fn after(mut self, event: &Event) -> Self {
        let sum = |total: Option<u64>, key| match (total, event.count(key)) {
            (None, None) => None,
            (total, count) => Some(total.unwrap_or(0).saturating_add(count.unwrap_or(0))),
        };
        self.tokens_in = sum(self.tokens_in, Key::TokensIn);
        self.tokens_out = sum(self.tokens_out, Key::TokensOut);
        if let Some(cost) = event.trailers.get(Key::Cost).and_then(|cost| cost.parse::<f64>().ok()) {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        self
    }
}

impl<'a> FromIterator<&'a Event> for RunTotals {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        events.into_iter().fold(Self::default(), Self::after)
    }
}
