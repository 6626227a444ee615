//! The files in the git directory of a linked worktree without which git does not work there: `HEAD`, `commondir` and the
//! index.

use std::{ffi::OsStr, io::Read, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    git::{GitError, Repository, move_aside, report_moved},
    name::{BranchName, Oid},
    safe_files::{self, FileKind},
};

/// git writes an id or the name of a branch into this file.
const LONGEST_HEAD: u64 = 1 << 16;
/// The signature and the version of an index.
const INDEX_HEADER: u64 = 8;
/// The size of an index without entries: a header of 12 bytes and a checksum.
const SMALLEST_INDEX: u64 = 32;
/// The content of the file in repositories that keep refs elsewhere.
const ELSEWHERE: &str = "ref: refs/heads/.invalid\n";

/// Whether the git directory of a worktree has a valid `HEAD` file.
#[must_use]
pub fn has_valid_head(git_dir: &Path) -> bool {
    let content = safe_files::read_up_to(&git_dir.join("HEAD"), LONGEST_HEAD).unwrap_or_default();
    match content.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => std::str::from_utf8(&content).is_ok_and(|id| id.trim_end().parse::<Oid>().is_ok()),
    }
}

/// Whether the index of a git directory begins like one. A worktree that was just made has none.
#[must_use]
pub fn has_valid_index(git_dir: &Path) -> bool {
    let file = git_dir.join("index");
    let Some(facts) = safe_files::look_at(&file) else { return true };
    let mut begin = Vec::new();
    let read = safe_files::open(&file).and_then(|file| file.take(INDEX_HEADER).read_to_end(&mut begin));
    read.is_ok()
        && facts.kind == FileKind::File
        && facts.stamp.size >= SMALLEST_INDEX
        && begin.starts_with(b"DIRC\0\0\0")
        && begin.get(7).is_some_and(|version| (2..=4).contains(version))
}

impl Repository {
    /// Whether the git directory of a worktree names this repository as its own.
    #[must_use]
    pub fn is_common_dir_of(&self, git_dir: &Path) -> bool {
        let content = safe_files::read_up_to(&git_dir.join("commondir"), LONGEST_HEAD).unwrap_or_default();
        let named = git_dir.join(OsStr::from_bytes(content.trim_ascii_end()));
        match (named.canonicalize(), self.common_dir.canonicalize()) {
            (Ok(named), Ok(own)) => named == own,
            _ => false,
        }
    }

    /// Writes the file that leads from this worktree's git directory to the repository again, if it is damaged.
    pub fn restore_common_dir(&self) -> Result<(), GitError> {
        if self.is_common_dir_of(&self.git_dir) {
            return Ok(());
        }
        let file = self.git_dir.join("commondir");
        safe_files::write(&file, b"../..\n").map_err(GitError::file(&file))
    }

    /// Makes the index of this worktree again from `HEAD`, if it is damaged. The old one is kept, and named at the end of
    /// the command. Files stay as they are; what was staged is not staged any more.
    pub fn restore_index(&self) -> Result<(), GitError> {
        if has_valid_index(&self.git_dir) {
            return Ok(());
        }
        let file = self.git_dir.join("index");
        let kept = move_aside(&self.git_dir, &file);
        let kept = kept.map_err(GitError::file(&file))?;
        report_moved(&file, &kept);
        self.fill_index()
    }

    /// Puts `HEAD` of this worktree on a branch, and changes nothing else.
    pub fn set_head_branch(&self, branch: &BranchName) -> Result<(), GitError> {
        self.change("symbolic-ref").args(["HEAD", &branch.to_ref()]).stdout().map(drop)
    }

    /// Fills the index of this worktree with the files of `HEAD`, and writes no file.
    pub fn fill_index(&self) -> Result<(), GitError> {
        self.change("read-tree").arg("HEAD").stdout().map(drop)
    }

    /// Writes a `HEAD` file that is not valid again, with what the reflog of this worktree says was checked out last.
    /// `used` are the branches that other worktrees have checked out. If the reflog does not tell, the file stays.
    pub fn restore_head(&self, used: &[BranchName]) -> Result<(), GitError> {
        if has_valid_head(&self.git_dir) {
            return Ok(());
        }
        let content = match self.has_files_backend {
            true => self.find_last_head(used)?,
            false => Some(ELSEWHERE.to_owned()),
        };
        let Some(content) = content else { return Ok(()) };
        let file = self.git_dir.join("HEAD");
        safe_files::write(&file, content.as_bytes()).map_err(GitError::file(&file))
    }

    fn find_last_head(&self, used: &[BranchName]) -> Result<Option<String>, GitError> {
        let reflog = safe_files::read(&self.git_dir.join("logs/HEAD")).unwrap_or_default();
        let reflog = String::from_utf8_lossy(&reflog);
        let branch = reflog.lines().rev().find_map(find_switch).and_then(|name| name.parse().ok());
        if let Some(branch) = branch.filter(|branch| !used.contains(branch))
            && self.find_branch(&branch)?.is_some()
        {
            return Ok(Some(format!("ref: {}\n", branch.to_ref())));
        }
        let last = reflog.lines().last().and_then(|line| line.split(' ').nth(1)?.parse::<Oid>().ok());
        Ok(last.map(|commit| format!("{commit}\n")))
    }
}

/// What a line of a reflog says was checked out: the name of a branch, or a text that is no branch if `HEAD` was detached.
fn find_switch(line: &str) -> Option<&str> {
    let (_, message) = line.split_once('\t')?;
    if let Some(moved) = message.strip_prefix("checkout: moving from ") {
        return moved.split_once(" to ").map(|(_, to)| to);
    }
    if let Some((_, branch)) = message.split_once("returning to refs/heads/") {
        return Some(branch);
    }
    (message == crate::git::refs::transaction::FREED).then_some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_checked_out_branch_is_read_from_a_reflog() {
        let line = |message: &str| format!("0 1 a <a@b> 1 +0000\t{message}");
        assert_eq!(
            find_switch(&line("checkout: moving from 1 to arborist/task/main/T1")),
            Some("arborist/task/main/T1")
        );
        assert_eq!(find_switch(&line("rebase (finish): returning to refs/heads/x/y")), Some("x/y"));
        assert_eq!(find_switch(&line("arborist: free")), Some(""));
        assert_eq!(find_switch(&line("commit: moving")), None);
        assert_eq!(find_switch("0 1 a <a@b> 1 +0000"), None);
    }
}
