//! What follows from limits: how long to wait, when enough is spent, and whom to ask instead. All of it pure.

mod backoff;
mod budget;
mod fallback;

pub use backoff::{Backoff, BackoffWait, Chosen};
pub use budget::{Budget, BudgetLevel, Overrun, Spent};
pub use fallback::{Chain, Choice, ChoiceError, RunnerSetback};
