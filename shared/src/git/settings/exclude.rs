//! Adds lines to the repository's exclude file, which applies to all checkouts, and removes them.

use std::{collections::BTreeSet, io, path::Path, sync::Mutex, time::Duration};

use crate::{
    git::{GitError, Repository, files::planted_repositories::is_worktree_link},
    mutex::MutexExt,
    process::{Cancel, FileLock},
    safe_files,
};

/// Hides everything in a folder, including the `.gitignore` itself.
const IGNORE_ALL: &str = "*";

/// How long another process may take to add its line.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Lines that this process has added, or was about to add, so that no child is blamed for them.
static OWN_LINES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether this process adds this line to exclude files, or it hides a worktree of the repository with this exclude
/// file, which another process may have made.
#[must_use]
pub fn is_own_exclude(file: &Path, line: &[u8]) -> bool {
    let own = OWN_LINES.hold();
    std::str::from_utf8(line).is_ok_and(|line| own.contains(line) || hides_worktree(file, line))
}

fn hides_worktree(file: &Path, line: &str) -> bool {
    let folder = line.strip_prefix('/').and_then(|line| line.strip_suffix('/'));
    let common_dir = file.parent().and_then(Path::parent).filter(|dir| dir.ends_with(".git"));
    let (Some(folder), Some(common_dir)) = (folder, common_dir) else { return false };
    let link = common_dir.with_file_name(folder).join(".git");
    // Another line could hide more than this folder.
    escaped_pattern(folder) == folder && is_worktree_link(common_dir, &link)
}

impl Repository {
    /// Adds a line to the exclude file, unless it is there. A concurrent reader finds the old file or the new one, and
    /// two concurrent writers do not lose a line.
    ///
    /// The user may have linked the file to one that several repositories share. That file is read, as git does, but
    /// nothing is written through a link: a folder is then hidden by a `.gitignore` in it.
    pub fn exclude(&self, line: &str) -> Result<(), GitError> {
        self.exclude_below(None, line)
    }

    /// Like [`Self::exclude`], with a comment above the line. [`Repository::stop_excluding`] recognises by it that we added the line.
    pub fn exclude_with_note(&self, line: &str, note: &str) -> Result<(), GitError> {
        self.exclude_below(Some(note), line)
    }

    fn exclude_below(&self, note: Option<&str>, line: &str) -> Result<(), GitError> {
        let file = self.common_dir.join("info/exclude");
        if file.is_symlink() || self.common_dir.join("info").is_symlink() {
            return self.hide_without_exclude(&file, line);
        }
        if read(&file).is_ok_and(|text| holds(&text, line)) {
            return Ok(());
        }
        OWN_LINES.hold().insert(line.to_owned());
        let lock = self.common_dir.join("arborist/locks/exclude");
        let _lock = FileLock::take_within(&lock, "git arborist", LOCK_TIMEOUT, &Cancel::new())?;
        add(&file, note, line).map_err(GitError::file(&file))?;
        self.freeze_excluded(line)
    }
}

impl Repository {
    /// Removes a line that was added with this note from the exclude file. The same line without the note is the user's
    /// own, and stays. A file behind a link is left alone, because nothing was written there.
    pub fn stop_excluding(&self, line: &str, note: &str) -> Result<(), GitError> {
        let file = self.common_dir.join("info/exclude");
        if file.is_symlink() || self.common_dir.join("info").is_symlink() {
            return Ok(());
        }
        if read(&file).is_ok_and(|text| !holds(&text, note)) {
            return Ok(());
        }
        let lock = self.common_dir.join("arborist/locks/exclude");
        let _lock = FileLock::take_within(&lock, "git arborist", LOCK_TIMEOUT, &Cancel::new())?;
        remove(&file, note, line).map_err(GitError::file(&file))
    }
}

impl Repository {
    /// Hides the logs in a folder from `git status`.
    pub fn exclude_logs(&self, folder: &str) -> Result<(), GitError> {
        let folder = folder.trim_matches('/');
        if folder == "spec/logs" {
            return self.exclude("/spec/logs/");
        }
        self.exclude_in(folder, "*.log")
    }

    /// Hides what matches a pattern in a folder. Other files stay visible: it may be a folder of sources.
    pub fn exclude_in(&self, folder: &str, pattern: &str) -> Result<(), GitError> {
        let (file, line) =
            (self.common_dir.join("info/exclude"), format!("{}/{pattern}", escaped_pattern(folder)));
        let line = if line.starts_with('/') { line } else { format!("/{line}") };
        if !file.is_symlink() && !self.common_dir.join("info").is_symlink() {
            return self.exclude(&line);
        }
        if safe_files::read_users(&file).is_ok_and(|text| holds(&text, &line)) {
            return Ok(());
        }
        self.ignore_in(folder, &[pattern, ".gitignore"], &file, &line)
    }

    fn hide_without_exclude(&self, file: &Path, line: &str) -> Result<(), GitError> {
        if safe_files::read_users(file).is_ok_and(|text| holds(&text, line)) {
            return Ok(());
        }
        let folder = line.strip_prefix('/').and_then(|line| line.strip_suffix('/'));
        self.ignore_in(folder.unwrap_or_default(), &[IGNORE_ALL], file, line)
    }

    /// Writes lines to a `.gitignore` in a folder, because `line` cannot be written to the exclude file.
    fn ignore_in(&self, folder: &str, lines: &[&str], file: &Path, line: &str) -> Result<(), GitError> {
        let folder = Some(folder).filter(|folder| !folder.is_empty());
        let main = self.main_top();
        let (Some(folder), Some(top)) = (folder, main.or(self.worktree.as_deref())) else {
            return Err(GitError::LinkedExclude { path: file.to_owned(), line: line.to_owned() });
        };
        let ignore = top.join(folder).join(".gitignore");
        for line in lines {
            if !read(&ignore).is_ok_and(|text| holds(&text, line)) {
                add(&ignore, None, line).map_err(GitError::file(&ignore))?;
            }
        }
        Ok(())
    }
}

/// A pattern that matches exactly this path.
#[must_use]
pub fn escaped_pattern(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | '\\' | ' ') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn add(file: &Path, note: Option<&str>, line: &str) -> io::Result<()> {
    let mut text = read(file)?;
    if holds(&text, line) {
        return Ok(());
    }
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    for line in note.into_iter().chain([line]) {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    safe_files::write(file, &text)
}

fn remove(file: &Path, note: &str, line: &str) -> io::Result<()> {
    let text = read(file)?;
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let is = |at: usize, words: &str| {
        lines.get(at).is_some_and(|found| found.strip_suffix(b"\n").unwrap_or(found) == words.as_bytes())
    };
    let begins = |at: usize| is(at, note) && is(at + 1, line);
    let is_ours = |at: usize| begins(at) || at.checked_sub(1).is_some_and(begins);
    let kept: Vec<&[u8]> = (0..lines.len()).filter(|at| !is_ours(*at)).map(|at| lines[at]).collect();
    if kept.len() == lines.len() {
        return Ok(());
    }
    safe_files::write(file, &kept.concat())
}

/// The bytes of a file, which need not be text; empty if it does not exist.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    match safe_files::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn holds(text: &[u8], line: &str) -> bool {
    text.split(|b| *b == b'\n').any(|known| known == line.as_bytes())
}
