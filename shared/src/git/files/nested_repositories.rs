//! Finds ignored files and repositories inside a worktree, which no snapshot contains, and adds all other files to an
//! index.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use crate::git::{
    GitError, PrivateIndex, Repository, UncommittedPath,
    command::{checked, nul_ended},
    worktrees::submodules::list_gitlinks,
};

/// How deep repositories are searched below untracked folders.
const MAX_DEPTH: usize = 3;

impl Repository {
    /// The ignored paths of this worktree. A folder that is ignored as a whole is one path, which ends in a slash.
    pub fn list_ignored(&self) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--ignored", "--exclude-standard"]);
        command.args(["--directory", "--full-name", "--", ":/"]).paths()
    }

    /// The ignored files at or below these paths. A repository is one path, which ends in a slash.
    pub fn list_ignored_at<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--ignored", "--exclude-standard"]);
        let names = names.map(|name| format!(":(top,icase,literal){}", name.trim_end_matches('/')));
        command.args(["--full-name", "--"]).args(names).paths()
    }

    /// A repository in the worktree at `top`, at or below an untracked or ignored path.
    #[must_use]
    pub fn find_inner(top: &Path, changed_paths: &[UncommittedPath], ignored: &[PathBuf]) -> Option<PathBuf> {
        let untracked = changed_paths.iter().filter(|changed_paths| changed_paths.is_untracked);
        let untracked = untracked.map(|changed_paths| Path::new(OsStr::from_bytes(&changed_paths.path)));
        let mut below = untracked.chain(ignored.iter().map(PathBuf::as_path));
        below.find_map(|path| find_repository(&top.join(path))?.strip_prefix(top).map(Path::to_owned).ok())
    }
}

/// git's warning about a folder that it cannot read. The path in it may be cut.
pub(in crate::git) const NOT_OPENED: &str = "could not open directory";
/// git's error message about a file whose path is too long, among others.
const NO_STAT: &str = "unable to stat";
/// git's error message about a repository inside the worktree without a commit.
const NO_COMMIT: &str = "does not have a commit checked out";
/// git's complaint about paths in its arguments that are ignored, even if they are excluded. It adds all others, and exits
/// with 1.
const IGNORED: &str = "paths are ignored by one of your .gitignore files";
/// How many of them are left out one by one; if there are more, all untracked repositories are left out.
const MAX_LEFT_OUT: usize = 20;

/// Whether git could read all folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoundFolders {
    AllOpen,
    SomeClosed,
}

impl PrivateIndex<'_> {
    /// Adds all files that git can add. A repository without a commit makes `git add` fail, and so does a path that
    /// some file system treats as `.git`; these are left out and returned. git names one at a time. No git is run in
    /// these repositories: that would read their settings. Folders that git cannot read are returned, too: it only warns
    /// about them. Files that are `unreadable` keep their index entries.
    pub(in crate::git) fn add_possible(&self, unreadable: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        let mut left_out: Vec<Vec<u8>> = Vec::new();
        loop {
            let all = [unreadable, &left_out].concat();
            let complaint = match self.add_without(&all) {
                Err(GitError::Failed { complaint, .. }) if complaint.contains(NO_COMMIT) => complaint,
                Err(GitError::Failed { command, complaint }) if complaint.contains(NO_STAT) => {
                    let closed = self.repository.list_closed()?;
                    let count = left_out.len();
                    left_out.extend(closed.into_iter().filter(|path| !all.contains(path)));
                    if left_out.len() == count {
                        return Err(GitError::Failed { command, complaint });
                    }
                    continue;
                }
                Err(GitError::Failed { command, complaint }) => match find_refused(&complaint) {
                    Some(path) if left_out.len() < MAX_LEFT_OUT && !left_out.contains(&path) => {
                        left_out.push(path);
                        continue;
                    }
                    _ => return Err(GitError::Failed { command, complaint }),
                },
                added => return self.with_closed(added?, left_out),
            };
            let inner = self.list_inner()?;
            let named = find_unborn(&complaint).map(|name| {
                let is_named = |path: &&Vec<u8>| String::from_utf8_lossy(path) == name;
                // In the place of a tracked file, it is not listed.
                inner.iter().find(is_named).cloned().unwrap_or_else(|| name.as_bytes().to_vec())
            });
            match named.filter(|path| left_out.len() < MAX_LEFT_OUT && !left_out.contains(path)) {
                Some(path) => left_out.push(path),
                None => {
                    left_out.extend(inner);
                    let all = [unreadable, &left_out].concat();
                    let added = self.add_without(&all)?;
                    return self.with_closed(added, left_out);
                }
            }
        }
    }

    /// Adds the folders that git could not read, if it warned about any.
    fn with_closed(&self, found: FoundFolders, mut left_out: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        if found == FoundFolders::SomeClosed {
            let closed = self.repository.list_closed()?;
            let new = closed.into_iter().filter(|path| !left_out.contains(path));
            left_out.extend(new.collect::<Vec<_>>());
        }
        Ok(left_out)
    }

    /// Runs `git add` for everything except `left_out` and submodules. For each submodule in the index, `git add` would
    /// run `git status` there, with the programs that its settings name, and an agent can put any repository in the
    /// place of a submodule.
    fn add_without(&self, left_out: &[Vec<u8>]) -> Result<FoundFolders, GitError> {
        let gitlinks = self.list_gitlinks()?;
        let excluded = left_out.iter().chain(&gitlinks);
        let excluded = excluded.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat());
        let command = self.git("add").args(["-A", "--sparse", "--", ":/"]);
        let ended = command.args(excluded.map(OsString::from_vec)).finish()?;
        let found = match ended.complaint().contains(NOT_OPENED) {
            true => FoundFolders::SomeClosed,
            false => FoundFolders::AllOpen,
        };
        // An index can contain a submodule in an ignored folder, if `git add -f` or an agent put it there.
        let is_about_ignored = ended.status.code() == Some(1) && ended.complaint().contains(IGNORED);
        if !is_about_ignored {
            checked("add", ended)?;
        }
        if !gitlinks.is_empty() {
            self.update_gitlinks()?;
        }
        Ok(found)
    }

    /// Updates which commit each submodule is at. git only reads `HEAD` there, and starts nothing.
    fn update_gitlinks(&self) -> Result<(), GitError> {
        // Added files may have replaced some submodules.
        let names = nul_ended(self.list_gitlinks()?.iter().map(Vec::as_slice));
        let command = self.git("update-index").dir(self.repository.top());
        let command = command.args(["--add", "--remove", "-z", "--stdin"]);
        command.stdout_with(&names).map(drop)
    }

    pub(in crate::git) fn list_gitlinks(&self) -> Result<Vec<Vec<u8>>, GitError> {
        list_gitlinks(&self.file.path, self.repository.format, || self.git("ls-files"))
    }

    /// The untracked repositories. git lists each as one path that ends in a slash.
    fn list_inner(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let printed = command.args(["--", ":/"]).stdout()?;
        let inner = printed.split(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"/"));
        Ok(inner.map(<[u8]>::to_vec).collect())
    }
}

/// The repository without a commit that git complains about.
fn find_unborn(complaint: &str) -> Option<&str> {
    let (before, _) = complaint.split_once(&format!("/' {NO_COMMIT}"))?;
    before.lines().last()?.split_once('\'').map(|(_, path)| path)
}

/// The path that git refuses to add, up to the refused component.
fn find_refused(complaint: &str) -> Option<Vec<u8>> {
    let (_, rest) = complaint.split_once("invalid path '")?;
    let path = rest.lines().next()?.strip_suffix('\'')?;
    // Some file systems ignore case, invisible characters, spaces and dots.
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
        // With a slash at the end of its name, a link would be followed.
        let plain: PathBuf = folder.components().collect();
        if !plain.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let is_there = |name: &str| plain.join(name).symlink_metadata().is_ok();
        if is_there(".git") || ["HEAD", "objects", "refs"].into_iter().all(is_there) {
            return Some(plain);
        }
        if depth < MAX_DEPTH {
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
    fn the_path_component_that_git_refuses_is_found() {
        let found =
            |path: &str| find_refused(&format!("invalid path '{path}'\nerror: unable to add '{path}'"));
        assert_eq!(found("a/.GIT/config").unwrap(), b"a/.GIT");
        assert_eq!(found("git~1/x").unwrap(), b"git~1");
        assert_eq!(found("a/b").unwrap(), b"a/b");
        assert_eq!(find_refused("permission denied"), None);
    }
}
