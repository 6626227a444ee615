//! What follows from limits: how long to wait, when enough is spent, and whom to ask instead. All of it pure.

mod backoff;
mod budget;
mod fallback;

pub use backoff::{Backoff, Chosen, Pause};
pub use budget::{Budget, Level, Overrun, Spent};
pub use fallback::{Chain, Choice, ChoiceError, Setback};
