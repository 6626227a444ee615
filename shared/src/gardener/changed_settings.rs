//! What a changed file of settings changes, compared with the one that a run has accepted.

use crate::{
    gardener::GardenerError,
    git::{GitError, Repository, changed_lines},
    history::RunStart,
    message::counted,
    settings::{TRACKED_FILES, read_tracked},
};

/// How many changed lines of a file an error shows.
const MOST_LINES: usize = 20;

/// What an accepted change of the configuration changes, one text for each file.
pub fn list_changed_settings(
    repository: &Repository,
    start: &RunStart,
) -> Result<Vec<String>, GardenerError> {
    let mut found = Vec::new();
    for path in TRACKED_FILES {
        if let Some(difference) = settings_difference(repository, start, path)? {
            let colon = if difference.is_empty() { "" } else { ":" };
            found.push(format!("accepted the changed '{path}'{colon}{difference}"));
        }
    }
    Ok(found)
}

/// How a file of settings differs from the one in force; `None` if it has the same settings.
pub(super) fn settings_difference(
    repository: &Repository,
    start: &RunStart,
    path: &str,
) -> Result<Option<String>, GardenerError> {
    let then = match repository.find_path(start.accepted, path)? {
        Some(blob) => repository.find_blob(blob)?,
        None => None,
    };
    let now = read_tracked(repository, path)?.map(|(_, bytes)| bytes);
    if now == then || has_same_settings(path, then.as_deref(), now.as_deref()) {
        return Ok(None);
    }
    Ok(Some(file_difference(then.as_deref(), now.as_deref())?))
}

/// Whether a file of settings has the same settings as before: comments and a file without settings change nothing.
pub(super) fn has_same_settings(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let settings = |bytes: Option<&[u8]>| -> Option<toml::Table> {
        std::str::from_utf8(bytes.unwrap_or_default()).ok()?.parse().ok()
    };
    path.ends_with(".toml") && settings(before).is_some_and(|before| settings(after) == Some(before))
}

/// The lines that were removed from a file and added to it, at most [`MOST_LINES`] of them.
fn file_difference(before: Option<&[u8]>, after: Option<&[u8]>) -> Result<String, GitError> {
    let mut lines = changed_lines(before.unwrap_or_default(), after.unwrap_or_default())?;
    let hidden = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if hidden > 0 {
        lines.push(format!("[{} not shown]", counted(hidden, "more changed line")));
    }
    Ok(lines.iter().map(|line| format!("\n  {line}")).collect())
}
