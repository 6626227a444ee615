//! Restores refs that another process moved, and saves the values they had.

use std::fmt::Write as _;

use crate::{
    git::{GitError, RefMove, Repository, refs::ref_files::RefValue},
    name::{Oid, digest, escaped, saved_ref},
};

/// Saves the forged commits of a target branch, moves it back to the commit before them, and returns `message` with what
/// was done.
pub(in crate::git) fn remove_forged(
    repository: &Repository,
    name: &str,
    now: Oid,
    last: Oid,
    mut message: String,
) -> String {
    if let Some(saved_as) = save(repository, name, now) {
        let _ = write!(message, "; they are kept as {saved_as}");
    }
    if let Err(error) = restore(repository, name, Some(last), Some(RefValue::Id(now))) {
        let _ = write!(message, "; they could not be removed: {error}");
    }
    message
}

/// Saves the value of a ref below `refs/arborist/saved/moved/`, and returns the name of that ref. `None` if the object
/// does not exist.
pub(in crate::git) fn save(repository: &Repository, name: &str, target: Oid) -> Option<String> {
    let mut component = escaped(name.trim_start_matches("refs/"));
    if component.len() > 120 {
        component = digest(component.as_bytes())[..32].to_owned();
    }
    let short = saved_ref("moved", &component, target);
    // Something else may have written a ref of this name.
    let long = format!("{short}-{target}");
    [short, long].into_iter().find(|saved_as| {
        let kept = RefMove { name: saved_as, new: Some(target), old: None };
        match repository.find_ref(saved_as) {
            Ok(Some(found)) => found == target && !repository.is_symbolic_ref(saved_as),
            Ok(None) => repository.move_refs_unrecorded(&[kept], "arborist: saved").is_ok(),
            Err(_) => false,
        }
    })
}

/// Moves a ref from the value that was found to the recorded one.
pub(in crate::git) fn restore(
    repository: &Repository,
    name: &str,
    wanted: Option<Oid>,
    found: Option<RefValue>,
) -> Result<(), GitError> {
    let old = match found {
        Some(RefValue::Id(target)) => Some(target),
        Some(RefValue::Other) => {
            repository.remove_invalid_ref(name)?;
            // packed-refs may still contain an older value of it.
            repository.find_ref(name)?
        }
        None => None,
    };
    if wanted == old {
        return Ok(());
    }
    repository.move_refs_unrecorded(&[RefMove { name, new: wanted, old }], "arborist: restored")
}
