//! Finds files that git is told not to look at: `assume-unchanged` and `skip-worktree`. Changes in them are work like
//! any other, so a snapshot has to include them.

use std::{collections::HashSet, ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    git::{
        GitCommand, GitError, PrivateIndex, Repository, UncommittedPath,
        command::{checked, nul_ended},
        index::index_format::has_hidden,
    },
    name::ObjectFormat,
    process::BackgroundProgram,
};

/// A running search for hidden files; `None` if there are none.
#[derive(Debug)]
pub(in crate::git) struct HiddenReader(Option<BackgroundProgram>);

impl HiddenReader {
    /// Most indexes hide nothing, which can be seen without git.
    pub(in crate::git) fn of(
        index: Option<&Path>,
        format: ObjectFormat,
        command: impl FnOnce() -> GitCommand,
    ) -> Self {
        if index.and_then(|index| has_hidden(index, format)) == Some(false) {
            return Self(None);
        }
        let command = command().args(["-v", "-z", "--cached", "--full-name", "--", ":/"]);
        Self(Some(command.finish_in_background()))
    }

    /// The hidden files that exist in the worktree at `top`. Others may just be outside of a sparse checkout.
    pub(in crate::git) fn finish(self, top: &Path) -> Result<Vec<Vec<u8>>, GitError> {
        let is_there = |file: &HiddenFile| file.is_in(top);
        Ok(self.list()?.into_iter().filter(is_there).map(|file| file.path).collect())
    }

    /// All hidden files that should exist in the worktree at `top`, also deleted ones. `is_sparse` tells whether files with
    /// `skip-worktree` are outside of a sparse checkout if they do not exist.
    pub(in crate::git) fn finish_with_deleted(
        self,
        top: &Path,
        is_sparse: impl FnOnce() -> Result<bool, GitError>,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let mut files = self.list()?;
        if files.iter().any(|file| file.is_skipped && !file.is_in(top)) && is_sparse()? {
            files.retain(|file| !file.is_skipped || file.is_in(top));
        }
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn list(self) -> Result<Vec<HiddenFile>, GitError> {
        let Some(known) = self.0 else {
            return Ok(Vec::new());
        };
        let printed = checked("ls-files", known.finish()?)?;
        let hidden = printed.split(|byte| *byte == 0).filter_map(|record| match record {
            [tag, b' ', path @ ..] if *tag == b'S' || tag.is_ascii_lowercase() => {
                Some(HiddenFile { path: path.to_vec(), is_skipped: tag.eq_ignore_ascii_case(&b'S') })
            }
            _ => None,
        });
        Ok(hidden.collect())
    }
}

/// A file that is marked `assume-unchanged` or `skip-worktree`.
struct HiddenFile {
    path: Vec<u8>,
    /// Whether it is marked `skip-worktree`.
    is_skipped: bool,
}

impl HiddenFile {
    fn is_in(&self, top: &Path) -> bool {
        top.join(OsStr::from_bytes(&self.path)).symlink_metadata().is_ok()
    }
}

impl Repository {
    pub(in crate::git) fn start_hidden(&self) -> HiddenReader {
        HiddenReader::of(self.index_file().as_deref(), self.format, || self.git("ls-files"))
    }

    /// Like [`Self::start_hidden`], with another index if one is given.
    pub(in crate::git) fn start_hidden_with(&self, view: Option<&PrivateIndex<'_>>) -> HiddenReader {
        view.map_or_else(|| self.start_hidden(), PrivateIndex::start_hidden)
    }

    /// The hidden files that exist in the worktree.
    pub fn hidden(&self) -> Result<HashSet<Vec<u8>>, GitError> {
        Ok(self.start_hidden().finish(self.top())?.into_iter().collect())
    }

    /// Those of these hidden files that differ from the index.
    pub(in crate::git) fn changed_hidden_files(
        &self,
        hidden: &[Vec<u8>],
    ) -> Result<Vec<UncommittedPath>, GitError> {
        if hidden.is_empty() {
            return Ok(Vec::new());
        }
        let index = self.private_index("hidden")?;
        index.reveal(hidden)?;
        let printed = index.git("diff-files").args(["--name-only", "-z", "--no-renames"]).stdout()?;
        let changed: HashSet<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let changed_paths = |path: &Vec<u8>| UncommittedPath {
            path: path.clone(),
            is_untracked: false,
            is_inside_submodule: false,
        };
        Ok(hidden.iter().filter(|path| changed.contains(path.as_slice())).map(changed_paths).collect())
    }
}

impl PrivateIndex<'_> {
    pub(in crate::git) fn start_hidden(&self) -> HiddenReader {
        HiddenReader::of(Some(&self.file.path), self.repository.format, || self.git("ls-files"))
    }

    /// Clears the marks of these paths, so that git looks at them.
    pub(in crate::git) fn reveal(&self, hidden: &[Vec<u8>]) -> Result<(), GitError> {
        clear_marks(hidden, || self.git("update-index"))
    }
}

/// Clears the marks of these paths in the index that the commands write.
pub(in crate::git) fn clear_marks<'a>(
    hidden: impl IntoIterator<Item = &'a Vec<u8>>,
    command: impl Fn() -> GitCommand,
) -> Result<(), GitError> {
    let names = nul_ended(hidden.into_iter().map(Vec::as_slice));
    for mark in ["--no-assume-unchanged", "--no-skip-worktree"] {
        let command = command().args([mark, "-z", "--stdin"]);
        command.stdout_with(&names)?;
    }
    Ok(())
}
