//! Messages about repositories and submodules that a child planted in a checkout, and that were taken away.

use std::collections::BTreeSet;

use crate::{
    git::{PlantedRepository, Repository},
    message::visible,
};

/// Takes repositories apart that a child made in a folder of the checkout, and returns a message about them.
#[must_use]
pub fn move_planted_git(repository: &Repository) -> Option<String> {
    match repository.move_planted_git() {
        Ok(moved) if moved.is_empty() => None,
        Ok(moved) => {
            let shown = moved.iter().map(|PlantedRepository { path, kept, link_to }| {
                let kept = kept.as_ref().map(|kept| format!(", which is kept in {}", kept.display()));
                let link = link_to.as_ref().map(|link_to| {
                    format!(", a link to '{}', which is removed", visible(&link_to.to_string_lossy()))
                });
                visible(&path.to_string_lossy()) + &kept.or(link).unwrap_or_default()
            });
            let shown: Vec<String> = shown.collect();
            Some(format!("it made a repository in a folder of the checkout: {}", shown.join("; ")))
        }
        Err(error) => Some(format!("it may have made a repository in a folder of the checkout: {error}")),
    }
}

/// Takes submodules out of the index that a child added to it, and returns a message about them.
pub(super) fn take_out_gitlinks(repository: &Repository, known: &BTreeSet<Vec<u8>>) -> Option<String> {
    match repository.take_out_gitlinks(known) {
        Ok(paths) if paths.is_empty() => None,
        Ok(paths) => {
            let shown: Vec<String> =
                paths.iter().map(|path| visible(&String::from_utf8_lossy(path))).collect();
            Some(format!("it added a submodule to the index, which is taken out again: {}", shown.join(", ")))
        }
        Err(error) => Some(format!("it may have added a submodule to the index: {error}")),
    }
}
