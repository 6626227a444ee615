//! Where the plans are whose sessions work in a repository: only there are their records. A hint, which may be gone at any
//! time; nothing but an answer to a question depends on it.

use std::{fs, path::PathBuf};

use super::top_of_main;
use crate::{
    git::{GitError, Repository},
    name::digest,
    safe_files,
};

/// Where the hints stand, a file for each plan.
const FOLDER: &str = "arborist/cache/plans";

/// Leaves a word in `other` that a session works there whose plan is in `main`. A hint that cannot be written is no error.
pub fn leave_word(other: &Repository, main: &Repository) -> Result<(), GitError> {
    let top = top_of_main(main)?;
    if let Some(top) = top.to_str() {
        let file = other.common_dir.join(FOLDER).join(digest(top.as_bytes()));
        let _ = safe_files::write(&file, top.as_bytes());
    }
    Ok(())
}

/// The repositories that have left a word, as far as they are still there.
#[must_use]
pub fn find_plans(other: &Repository) -> Vec<Repository> {
    let files = fs::read_dir(other.common_dir.join(FOLDER)).into_iter().flatten().flatten();
    let tops = files.filter_map(|file| safe_files::read_text(&file.path()).ok()).map(PathBuf::from);
    tops.filter_map(|top| Repository::open_at(&top).ok()).collect()
}
