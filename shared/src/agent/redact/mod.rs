//! Removes secrets from the output of agents before it reaches a log, a commit or a screen.
//!
//! [`Secrets`] contains what to search for, a [`Redactor`] searches one stream. Whole lines pass at once; only an
//! unfinished line is held back, and of a very long one only as much as a secret may need.
//!
//! Text is searched as it is, and then as it looks after control characters and escape sequences have been removed:
//! otherwise `abc\e[31mdef` would pass, and become the secret where it is displayed or committed.

mod redactor;
mod secrets;
mod shape;

pub use redactor::Redactor;
pub use secrets::{Secrets, SecretsError};

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";
