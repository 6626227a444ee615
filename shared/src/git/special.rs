//! Queues, sockets and devices in a worktree. git opens the files that tell it what to ignore without looking at what they
//! are, and waits at a queue for ever; and it refuses to take in a tracked file that has become one.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::FileTypeExt},
    path::{Path, PathBuf},
};

use super::{GitError, Repository};
use crate::safe_files;

/// What git reads in every folder that it looks into.
const READ: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// So many names are looked at, the folders at the top first. Beyond that the limit of every call of git must do.
const MOST: usize = 20_000;

impl Repository {
    /// Refuses a worktree in which git would wait for ever.
    pub fn refuse_special(&self) -> Result<(), GitError> {
        let Some(top) = &self.worktree else { return Ok(()) };
        match find_special(top).into_iter().find(|path| is_read_by_git(path)) {
            Some(path) => Err(GitError::Special { path: top.join(path) }),
            None => Ok(()),
        }
    }

    /// Queues, sockets and devices in this worktree, from its top.
    #[must_use]
    pub fn list_special(&self) -> Vec<PathBuf> {
        self.worktree.as_deref().map(find_special).unwrap_or_default()
    }

    /// Removes those that stand in git's way and were not `known`, puts tracked files back, and gives their paths.
    pub fn remove_special(&self, known: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let new: Vec<PathBuf> =
            self.list_special().into_iter().filter(|path| !known.contains(path)).collect();
        if new.is_empty() {
            return Ok(new);
        }
        let top = self.top();
        let failed = |path: &Path, source| GitError::File { path: path.display().to_string(), source };
        // These first: git may not be asked anything before they are gone.
        let (mut gone, others): (Vec<PathBuf>, Vec<PathBuf>) =
            new.into_iter().partition(|path| is_read_by_git(path));
        for path in &gone {
            safe_files::remove(&top.join(path)).map_err(|source| failed(path, source))?;
        }
        let listed = self.change("ls-files").args(["-z", "--cached", "--"]).args(gone.iter().chain(&others));
        let printed = listed.env("GIT_LITERAL_PATHSPECS", "1").stdout()?;
        let tracked: Vec<PathBuf> = printed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect();
        for path in others.into_iter().filter(|path| tracked.contains(path)) {
            safe_files::remove(&top.join(&path)).map_err(|source| failed(&path, source))?;
            gone.push(path);
        }
        if !tracked.is_empty() {
            self.change("checkout-index").args(["-q", "-f", "--"]).args(&tracked).finish()?;
        }
        Ok(gone)
    }
}

fn is_read_by_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| READ.iter().any(|read| name == *read))
}

/// Neither links nor git directories are entered.
fn find_special(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut open = VecDeque::from([PathBuf::new()]);
    while let Some(folder) = open.pop_front().filter(|_| seen < MOST) {
        for entry in fs::read_dir(top.join(&folder)).into_iter().flatten().flatten() {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            // Nearly all of them are, and this is asked many times for each task.
            if kind.is_file() || kind.is_symlink() {
                continue;
            }
            let path = folder.join(entry.file_name());
            if kind.is_dir() && entry.file_name() != ".git" {
                open.push_back(path);
            } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
