//! What lies in a worktree that git ignores, and repositories in it that are no submodules: no snapshot holds either.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{
    GitError, PrivateIndex, Repository, UncommittedPath, command::checked, submodules::list_gitlinks,
};

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
    pub fn find_inner(top: &Path, changed_paths: &[UncommittedPath], ignored: &[PathBuf]) -> Option<PathBuf> {
        let untracked = changed_paths.iter().filter(|changed_paths| changed_paths.is_untracked);
        let untracked = untracked.map(|changed_paths| Path::new(OsStr::from_bytes(&changed_paths.path)));
        let mut below = untracked.chain(ignored.iter().map(PathBuf::as_path));
        below.find_map(|path| find_repository(&top.join(path))?.strip_prefix(top).map(Path::to_owned).ok())
    }
}

/// What git says of a repository inside the repository in which nothing was committed yet.
const UNBORN: &str = "does not have a commit checked out";
/// So many of them are left out one by one; where there are more, all repositories that git does not know are.
const MOST_UNBORN: usize = 20;

impl PrivateIndex<'_> {
    /// Takes in all that git can. A repository without a commit would make it take in nothing, and so would a path that some
    /// file system takes for `.git`; such are left out, and given. git names one at a time. They are not asked themselves:
    /// that would read their settings. Files that are `unreadable` are left as the index has them.
    pub(super) fn add_what_can_be(&self, unreadable: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        let mut left_out: Vec<Vec<u8>> = Vec::new();
        loop {
            let all = [unreadable, &left_out].concat();
            let complaint = match self.add_without(&all) {
                Err(GitError::Failed { complaint, .. }) if complaint.contains(UNBORN) => complaint,
                Err(GitError::Failed { command, complaint }) => match find_refused(&complaint) {
                    Some(path) if left_out.len() < MOST_UNBORN && !left_out.contains(&path) => {
                        left_out.push(path);
                        continue;
                    }
                    _ => return Err(GitError::Failed { command, complaint }),
                },
                added => return added.map(|()| left_out),
            };
            let is_named = |path: &Vec<u8>| {
                complaint.contains(&format!("'{}/' {UNBORN}", String::from_utf8_lossy(path)))
            };
            let inner = self.list_inner()?;
            let named = inner.iter().find(|path| !left_out.contains(path) && is_named(path));
            match named.filter(|_| left_out.len() < MOST_UNBORN) {
                Some(path) => left_out.push(path.clone()),
                None => {
                    left_out.extend(inner);
                    let all = [unreadable, &left_out].concat();
                    return self.add_without(&all).map(|()| left_out);
                }
            }
        }
    }

    /// `git add` runs `git status` in every submodule that the index has, and with it whatever the settings there name. An
    /// agent can put any repository in the place of a submodule, so those paths are left out of it.
    fn add_without(&self, left_out: &[Vec<u8>]) -> Result<(), GitError> {
        let gitlinks = self.list_gitlinks()?;
        let excluded = left_out.iter().chain(&gitlinks);
        let excluded = excluded.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat());
        let command = self.git("add").args(["-A", "--sparse", "--", ":/"]);
        command.args(excluded.map(OsString::from_vec)).stdout()?;
        if gitlinks.is_empty() { Ok(()) } else { self.update_gitlinks() }
    }

    /// Takes in which commit each submodule is at. This reads `HEAD` there, and starts nothing.
    fn update_gitlinks(&self) -> Result<(), GitError> {
        // What was added may have taken the place of some.
        let names: Vec<u8> =
            self.list_gitlinks()?.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let command = self.git("update-index").dir(self.repository.top());
        let command = command.args(["--add", "--remove", "-z", "--stdin"]);
        checked("update-index", command.finish_with(&names)?).map(drop)
    }

    pub(super) fn list_gitlinks(&self) -> Result<Vec<Vec<u8>>, GitError> {
        list_gitlinks(&self.file.path, self.repository.format, || self.git("ls-files"))
    }

    /// git lists a repository that it does not know as one path, which ends in a slash.
    fn list_inner(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let printed = command.args(["--", ":/"]).stdout()?;
        let inner = printed.split(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"/"));
        Ok(inner.map(<[u8]>::to_vec).collect())
    }
}

/// The path that git refuses to take in, up to the part that it refuses.
fn find_refused(complaint: &str) -> Option<Vec<u8>> {
    let (_, rest) = complaint.split_once("invalid path '")?;
    let path = rest.lines().next()?.strip_suffix('\'')?;
    // File systems ignore case, and some of them characters that cannot be seen, spaces and dots.
    let is_git = |part: &str| {
        let plain: String = part.chars().filter(char::is_ascii_graphic).collect();
        let plain = plain.to_ascii_lowercase();
        plain.starts_with(".git") || plain.starts_with("git~")
    };
    let parts: Vec<&str> = path.split('/').collect();
    let end = parts.iter().position(|part| is_git(part)).map_or(parts.len(), |at| at + 1);
    Some(parts[..end].join("/").into_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_path_that_git_refuses_is_found() {
        let found =
            |path: &str| find_refused(&format!("invalid path '{path}'\nerror: unable to add '{path}'"));
        assert_eq!(found("a/.GIT/config").unwrap(), b"a/.GIT");
        assert_eq!(found("git~1/x").unwrap(), b"git~1");
        assert_eq!(found("a/b").unwrap(), b"a/b");
        assert_eq!(find_refused("permission denied"), None);
    }
}
