//! Deletes logs, reports and caches, if they have not changed since they were surveyed.

use std::{
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use super::CleanupOutcome;
use crate::{cleanup::Candidate, safe_files};

pub(super) fn remove(candidate: &Candidate, path: &Path) -> CleanupOutcome {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return gone(),
        Err(error) => return CleanupOutcome::Failed(error.to_string()),
    };
    let seconds = |time: SystemTime| i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok();
    let written = found.modified().ok().and_then(seconds);
    if !found.is_file() || written != candidate.time || Some(found.len()) != candidate.size {
        return CleanupOutcome::Kept("it has changed meanwhile".into());
    }
    match safe_files::remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => CleanupOutcome::Failed(error.to_string()),
        _ => gone(),
    }
}

fn gone() -> CleanupOutcome {
    CleanupOutcome::Removed { saved: Vec::new() }
}
