//! Faults of a message that claims to be ours.

use std::fmt;

/// One fault: the line, what is wrong, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line of the message, from 1. For something missing, the line after which it belongs.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}

impl Fault {
    /// How many faults of one message are reported. A message may have as many as it has lines, and nobody fixes more
    /// at a time.
    pub const MOST: usize = 50;

    pub(super) fn new(line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { line, what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}
