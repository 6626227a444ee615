//! Messages about changes by other processes that are reported to the user, and neither undone nor blamed on a task: it may
//! have been the user.

use std::sync::{Mutex, PoisonError};

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Adds a message for the summary of the run.
pub fn tell(words: String) {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner).push(words);
}

/// The messages since the last call.
#[must_use]
pub fn take_notices() -> Vec<String> {
    std::mem::take(&mut NOTICES.lock().unwrap_or_else(PoisonError::into_inner))
}
