//! The repository's own exclude file: what `git status` shows in no checkout of it.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{GitError, Repository};
use crate::{
    process::{Cancel, FileLock},
    safe_files,
};

/// Hides everything in a folder, the file that says so as well.
const ALL: &str = "*";

/// How long another process may take to add its line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lines that this process has added, or was about to add: children that run meanwhile have not done it.
static OWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether this process adds this line to exclude files.
#[must_use]
pub fn is_own_exclude(line: &[u8]) -> bool {
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    std::str::from_utf8(line).is_ok_and(|line| own.contains(line))
}

impl Repository {
    /// Adds a line to the exclude file, unless it stands there. Whoever reads meanwhile finds the old file or the new
    /// one, and of two who write neither loses a line.
    ///
    /// A user may have linked the file to one that other repositories share. That one is read, as git does, but nothing is
    /// written through a link: a folder is then hidden by a `.gitignore` in it.
    pub fn exclude(&self, line: &str) -> Result<(), GitError> {
        let file = self.common_dir.join("info/exclude");
        if file.is_symlink() || self.common_dir.join("info").is_symlink() {
            return self.hide_without_exclude(&file, line);
        }
        if read(&file).is_ok_and(|text| holds(&text, line)) {
            return Ok(());
        }
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned());
        let lock = self.common_dir.join("arborist/locks/exclude");
        let _lock = FileLock::take_within(&lock, "git arborist", PATIENCE, &Cancel::new())?;
        add(&file, line).map_err(|source| GitError::File { path: file.display().to_string(), source })?;
        self.freeze_excluded(line)
    }
}

impl Repository {
    fn hide_without_exclude(&self, file: &Path, line: &str) -> Result<(), GitError> {
        if safe_files::read_users(file).is_ok_and(|text| holds(&text, line)) {
            return Ok(());
        }
        let folder = line.strip_prefix('/').and_then(|line| line.strip_suffix('/'));
        let main = self.common_dir.parent().filter(|_| self.common_dir.ends_with(".git"));
        let (Some(folder), Some(top)) = (folder, main.or(self.worktree.as_deref())) else {
            return Err(GitError::LinkedExclude { path: file.to_owned(), line: line.to_owned() });
        };
        let ignore = top.join(folder).join(".gitignore");
        if read(&ignore).is_ok_and(|text| holds(&text, ALL)) {
            return Ok(());
        }
        add(&ignore, ALL).map_err(|source| GitError::File { path: ignore.display().to_string(), source })
    }
}

fn add(file: &Path, line: &str) -> io::Result<()> {
    let mut text = read(file)?;
    if holds(&text, line) {
        return Ok(());
    }
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
    safe_files::write(file, &text)
}

/// The bytes of a file, none if it is not there. They need not be text.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    match safe_files::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn holds(text: &[u8], line: &str) -> bool {
    text.split(|b| *b == b'\n').any(|known| known == line.as_bytes())
}
