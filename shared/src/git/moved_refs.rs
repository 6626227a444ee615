//! Refs that something else moved: where they led is kept, and they are put back.

use std::fmt::Write as _;

use super::{GitError, RefMove, Repository};
use crate::name::{Oid, digest};

/// Where a ref was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// At an object.
    At(Oid),
    /// It leads to another ref, or is no ref at all.
    Odd,
}

/// Moves a target back to the last commit before what was forged, which is kept. Says so behind `words`.
pub(super) fn take_off(
    repository: &Repository,
    name: &str,
    (now, last): (Oid, Oid),
    mut words: String,
) -> String {
    if let Some(under) = save(repository, name, now) {
        let _ = write!(words, "; they are kept as {under}");
    }
    if let Err(error) = restore(repository, name, Some(last), Some(Found::At(now))) {
        let _ = write!(words, "; they could not be taken off: {error}");
    }
    words
}

/// Keeps where a ref led, and names the ref that keeps it. What is no object cannot be kept.
pub(super) fn save(repository: &Repository, name: &str, target: Oid) -> Option<String> {
    let mut place = name.trim_start_matches("refs/").replace('%', "%25").replace('/', "%2F");
    if place.len() > 120 {
        place = digest(place.as_bytes())[..32].to_owned();
    }
    let under = format!("refs/arborist/saved/moved/{place}-{}", target.short());
    if repository.find_ref(&under).ok()?.is_some() {
        return Some(under);
    }
    let kept = RefMove { name: &under, new: Some(target), old: None };
    repository.move_refs_freely(&[kept], "arborist: saved").ok().map(|()| under)
}

/// Moves a ref from where it was found to where it belongs.
pub(super) fn restore(
    repository: &Repository,
    name: &str,
    wanted: Option<Oid>,
    found: Option<Found>,
) -> Result<(), GitError> {
    let old = match found {
        Some(Found::At(target)) => Some(target),
        Some(Found::Odd) => {
            repository.remove_odd_ref(name)?;
            // An older value of it may be packed.
            repository.find_ref(name)?
        }
        None => None,
    };
    if wanted == old {
        return Ok(());
    }
    repository.move_refs_freely(&[RefMove { name, new: wanted, old }], "arborist: put back")
}
