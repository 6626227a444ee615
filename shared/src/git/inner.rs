//! What lies in a worktree that git ignores, and repositories in it that are no submodules: no snapshot holds either.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Dirt, GitError, Repository};

/// So deep below what git does not know repositories are looked for.
const DEPTH: usize = 3;

impl Repository {
    /// What git ignores in this worktree; a folder that is ignored as a whole is one, and ends in a slash.
    pub fn list_ignored(&self) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--ignored", "--exclude-standard"]);
        let printed = command.args(["--directory", "--full-name", "--", ":/"]).stdout()?;
        let paths = printed.split(|b| *b == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// A repository in the worktree at `top`, below what git does not know or ignores there.
    #[must_use]
    pub fn find_inner(top: &Path, dirt: &[Dirt], ignored: &[PathBuf]) -> Option<PathBuf> {
        let untracked = dirt.iter().filter(|dirt| dirt.is_untracked);
        let untracked = untracked.map(|dirt| Path::new(OsStr::from_bytes(&dirt.path)));
        let mut below = untracked.chain(ignored.iter().map(PathBuf::as_path));
        below.find_map(|path| find_repository(&top.join(path))?.strip_prefix(top).map(Path::to_owned).ok())
    }
}

/// A repository at or below a folder. Links are not followed.
#[must_use]
pub fn find_repository(folder: &Path) -> Option<PathBuf> {
    let mut open = vec![(folder.to_owned(), 1)];
    while let Some((folder, depth)) = open.pop() {
        // Through a name that ends in a slash a link would be followed.
        let plain: PathBuf = folder.components().collect();
        if !plain.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let is_there = |name: &str| plain.join(name).symlink_metadata().is_ok();
        if is_there(".git") || ["HEAD", "objects", "refs"].into_iter().all(is_there) {
            return Some(plain);
        }
        if depth < DEPTH {
            let entries = fs::read_dir(&plain).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(folders.map(|entry| (entry.path(), depth + 1)));
        }
    }
    None
}
