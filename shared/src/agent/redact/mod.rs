//! Secrets are taken out of what agents print before it reaches a log, a commit or a screen.
//!
//! [`Secrets`] knows what to look for, a [`Redactor`] looks for it in one stream. Whole lines pass at once; only a
//! line that has not ended is held back, and of a very long one only as much as a secret may need.

mod secrets;
mod shape;
mod stream;

pub use secrets::{Secrets, SecretsError};
pub use stream::Redactor;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";
