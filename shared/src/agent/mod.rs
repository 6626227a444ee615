//! Agent programs: how one is called, how its event stream is read, what its end means, and what it may spend.

mod error;
mod format;
mod preset;
pub mod redact;
mod runner;
mod template;

pub use error::AgentError;
pub use format::EventFormat;
pub use preset::{Preset, RunnerKind};
pub use runner::{Invocation, Overrides, Request, Runner};
pub use template::{Placeholder, Template};
