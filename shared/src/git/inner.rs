//! What lies in a worktree that git ignores, and repositories in it that are no submodules: no snapshot holds either.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{Dirt, GitCommand, GitError, PrivateIndex, Repository};

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

/// What git says of a repository inside the repository in which nothing was committed yet.
const UNBORN: &str = "does not have a commit checked out";

impl PrivateIndex<'_> {
    /// Takes in all that git can. A repository without a commit would make it take in nothing; such are left out, and given.
    pub(super) fn add_what_can_be(&self) -> Result<Vec<Vec<u8>>, GitError> {
        match self.add_without(&[]) {
            Err(GitError::Failed { complaint, .. }) if complaint.contains(UNBORN) => {
                let unborn = self.list_unborn()?;
                self.add_without(&unborn)?;
                Ok(unborn)
            }
            added => added.map(|()| Vec::new()),
        }
    }

    fn add_without(&self, left_out: &[Vec<u8>]) -> Result<(), GitError> {
        let excluded = left_out.iter().map(|path| [b":(top,exclude,literal)", path.as_slice()].concat());
        let excluded = excluded.map(OsString::from_vec);
        let command = self.git("add").args(["-A", "--sparse", "--", ":/"]).args(excluded);
        command.stdout().map(drop)
    }

    /// git lists a repository that it does not know as one path, which ends in a slash.
    fn list_unborn(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let printed = command.args(["--", ":/"]).stdout()?;
        let inner = printed.split(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"/"));
        let is_unborn = |path: &&[u8]| {
            let folder = self.repository.top().join(OsStr::from_bytes(path));
            let head = GitCommand::reading("rev-parse", &folder).at_home().not_above(&folder);
            !head.args(["-q", "--verify", "HEAD"]).finish().is_ok_and(|ended| ended.status.success())
        };
        Ok(inner.filter(is_unborn).map(<[u8]>::to_vec).collect())
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
