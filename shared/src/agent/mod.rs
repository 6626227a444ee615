//! Agent programs: how one is called, how its event stream is read, what its end means, and what it may spend.
//!
//! Nothing here starts a process or reads a clock. A [`Runner`] creates an [`Invocation`], an [`EventReader`] turns the
//! program's output into [`AgentEvent`]s, a [`Tally`] of these becomes a [`CallOutcome`], and [`limits`] decides what
//! follows from it. The text of an agent is data, never a command.

mod call_outcome;
mod cause;
mod error;
mod event;
pub mod limits;
mod preset;
mod protected;
pub mod redact;
mod runner;
mod stream;
mod template;
mod tools;

pub use call_outcome::{CallOutcome, ProcessEnd, Tally, begins_with_rejection};
pub use cause::{FailureKind, LimitKind, RetryWait, names_lost_session};
pub use error::{AgentError, NamedIn, NoStart};
pub use event::{AgentEvent, EventFormat, Usage, UsageScope};
pub use preset::{Preset, RunnerKind, SHELL, provider_of};
pub use protected::{ProtectedFiles, ProtectedKind, ProtectedPath};
pub use runner::{Invocation, Overrides, Request, Runner};
pub use stream::EventReader;
pub use template::{Placeholder, Template};
pub use tools::{ToolServer, ToolsForm};
