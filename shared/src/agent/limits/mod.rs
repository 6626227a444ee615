//! Consequences of limits: how long to wait, when a budget is spent, and which runner to use instead. Pure.

mod backoff;
mod budget;
mod chain;

pub use backoff::{Backoff, BackoffWait, Chosen};
pub use budget::{Budget, BudgetLevel, Overrun, Spent};
pub use chain::{Chain, Choice, ChoiceError, RunnerSetback};
