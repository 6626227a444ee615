//! Finds commits that claim to be ours and are malformed.

use arborist_core::{
    git::{GitError, RawCommit},
    message::{MessageReading, read},
};

use super::{Objection, Push, RefUpdate, receiver::distinct, slice::Slice};

/// The commits that the receiver gets.
#[derive(Default)]
pub(super) struct Arriving {
    /// The objections to some of them, oldest first.
    pub objections: Vec<Objection>,
    /// Their graph; empty unless a ref of ours grows, for which ancestry must be proved.
    pub slice: Slice,
}

/// Examines every commit that arrives.
pub(super) fn scan(push: &Push<'_>) -> Result<Arriving, GitError> {
    let mut arriving = Arriving::default();
    let tips = distinct(push.updates.iter().filter_map(|update| update.new));
    let is_to_grow = |update: &RefUpdate| update.is_ours() && update.old.is_some() && update.new.is_some();
    let has_to_grow = push.updates.iter().any(is_to_grow);
    push.each_between(&tips, &push.known(), |commit| {
        if has_to_grow {
            arriving.slice.add(commit);
        }
        arriving.objections.extend(objection(commit));
    })?;
    arriving.objections.reverse();
    Ok(arriving)
}

fn objection(commit: &RawCommit) -> Option<Objection> {
    let MessageReading::Unsound(faults) = read(commit.message()) else {
        return None;
    };
    let fault = faults.first()?;
    let text = String::from_utf8_lossy(commit.message());
    let line = text.lines().nth(fault.line.saturating_sub(1)).unwrap_or_default().to_owned();
    Some(Objection::Unsound { commit: commit.id, faults, text: line })
}
