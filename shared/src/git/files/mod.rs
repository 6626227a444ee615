//! The files of a worktree: snapshots of them, what changed in them, and what in a worktree is not a plain file of this
//! repository. This file lists them: tracked files, and new files that are not ignored.

pub(super) mod child_input_files;
pub(super) mod folder_links;
pub(super) mod folder_watch;
pub(super) mod nested_repositories;
pub(super) mod plain_files;
pub(super) mod planted_repositories;
pub(super) mod saved_checkout;
pub(super) mod scan;
pub(super) mod snapshot;
pub(super) mod special_files;
pub(super) mod tracked;
pub(super) mod tracked_links;
pub(super) mod unchanged;

use std::io::BufRead;

use crate::{
    git::{GitError, Repository, command::without_prefix},
    process::RunningProgram,
};

/// File names as git lists them, relative to the directory of the repository. git is ended when this is dropped.
#[derive(Debug)]
pub struct FileNames {
    running: Option<RunningProgram>,
}

impl Repository {
    /// The files below its directory whose paths match one of `globs`, or all if there are none.
    pub fn list_files(&self, globs: &[String]) -> Result<FileNames, GitError> {
        let specs = globs.iter().map(|glob| format!(":(glob){glob}"));
        let listing = self
            .git("ls-files")
            .env("GIT_LITERAL_PATHSPECS", "0")
            .args(["-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"])
            .args(specs);
        let (_, running) = listing.start()?;
        Ok(FileNames { running: Some(running) })
    }
}

impl Iterator for FileNames {
    type Item = Result<String, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        let output = self.running.as_mut()?.output()?;
        let mut name = Vec::new();
        if let Err(error) = output.read_until(0, &mut name) {
            return Some(Err(GitError::unexpected("ls-files", error.to_string())));
        }
        if name.pop().is_some() {
            return Some(Ok(String::from_utf8_lossy(&name).into_owned()));
        }
        match self.running.take()?.finish() {
            Ok(finished) if finished.status.success() => None,
            Ok(finished) => Some(Err(GitError::Failed {
                command: "ls-files".into(),
                complaint: without_prefix(&finished.complaint()),
            })),
            Err(error) => Some(Err(error.into())),
        }
    }
}
