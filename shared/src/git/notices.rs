//! Messages for the user about things that are no errors. They are kept until a run reports them or the command ends.

use std::{path::Path, sync::Mutex};

use crate::mutex::MutexExt;

/// Changes by other processes that are reported to the user, and neither undone nor blamed on a task: it may have been the
/// user.
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What this process repaired in the repository.
static REPAIRS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Adds a message for the summary of the run.
pub fn add_notice(words: String) {
    NOTICES.hold().push(words);
}

/// The messages since the last call.
#[must_use]
pub fn take_notices() -> Vec<String> {
    std::mem::take(&mut NOTICES.hold())
}

/// Records that something was moved aside, to be reported at the end of the command.
pub fn report_moved(from: &Path, to: &Path) {
    add_repair(format!("moved '{}', which git could not overwrite, to '{}'", from.display(), to.display()));
}

/// Reports a stale lock that was removed.
pub(super) fn report_removed(lock: &Path) {
    add_repair(format!("removed a lock that no running git process holds: '{}'", lock.display()));
}

/// Reports the ref under which files of a checkout were saved.
pub(super) fn report_saved_files(name: &str) {
    add_repair(format!("saved files that an interrupted landing had written to the checkout as '{name}'"));
}

fn add_repair(words: String) {
    REPAIRS.hold().push(words);
}

/// What was repaired since the last call.
#[must_use]
pub fn take_repairs() -> Vec<String> {
    std::mem::take(&mut REPAIRS.hold())
}
