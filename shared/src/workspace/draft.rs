//! A clone that nobody sees before it is whole and wanted: made beside its place, and gone if it is not moved there.

use std::path::{Path, PathBuf};

use super::{RepoSection, WorkspaceError};
use crate::{git::Network, safe_files};

/// A clone beside its place.
#[derive(Debug)]
pub struct DraftClone {
    /// Where it was cloned from.
    pub remote: String,
    at: PathBuf,
    place: PathBuf,
}

impl DraftClone {
    /// A clone that is killed leaves nothing at the place of the repository.
    pub(super) fn clone_from(
        remote: &str,
        section: &RepoSection,
        network: &Network,
    ) -> Result<Self, WorkspaceError> {
        // The user may well have put it behind a link.
        let place = &safe_files::resolved(&section.path);
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(WorkspaceError::Missing { name: section.name.clone(), path: place.clone() });
        };
        safe_files::make_folders(parent).map_err(failed(parent))?;
        let at = parent.join(format!(".{}.cloning-{}", name.to_string_lossy(), std::process::id()));
        // From here on whatever is left of it goes.
        let draft = Self { remote: remote.to_owned(), at, place: place.clone() };
        network.clone_to(remote, &draft.at, (section.depth, section.default_branch.as_ref()))?;
        Ok(draft)
    }

    pub(super) fn move_to_place(&self) -> Result<(), WorkspaceError> {
        safe_files::rename(&self.at, &self.place).map_err(failed(&self.place))
    }
}

impl Drop for DraftClone {
    fn drop(&mut self) {
        let _ = safe_files::remove_all(&self.at);
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::File { doing: "make", path, source }
}
