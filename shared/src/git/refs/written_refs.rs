//! Remembers in local files which recovery notes this clone wrote.
//!
//! After a crash, the next driver acts on refs: a mark of an unfinished attempt makes it commit what is in the
//! worktree, a note of an update makes it undo that update, and a session's record of a turn makes it move a branch.
//! Refs can also come from a remote, with `git fetch origin 'refs/arborist/*:refs/arborist/*'`. So such a ref counts
//! only if there is a file for it in `arborist/written`, which no fetch can bring.
//!
//! The file is written before the ref and removed after it, so a crash in between leaves a file without a ref, which
//! means nothing.

use std::{fs, path::PathBuf};

use crate::{
    git::{RefMove, Repository},
    name::{ObjectKind, Oid},
    safe_files,
};

/// The folder of the files, in the git directory that all worktrees share.
const WRITTEN: &str = "arborist/written";
const NOTES: &str = "refs/arborist/wip/";
const SESSIONS: &str = "refs/arborist/sessions/";
const BRANCHES: &str = "refs/heads/";

impl Repository {
    /// Whether this clone gave the ref this value.
    #[must_use]
    pub fn has_written(&self, name: &str, value: Oid) -> bool {
        let file = safe_files::read(&self.written_file(name));
        file.is_ok_and(|content| content == line(name, value).as_bytes())
    }

    /// The refs with this prefix that this clone began to write. The write may have failed, or be complete.
    #[must_use]
    pub fn list_written(&self, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(self.common_dir.join(WRITTEN)).into_iter().flatten().flatten();
        let lines = entries.filter_map(|entry| safe_files::read_text(&entry.path()).ok());
        let names = lines.filter_map(|line| Some(line.split_once(' ')?.0.to_owned()));
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// Call this before a transaction. A file that cannot be written is not an error: after a crash, the ref is then
    /// not acted on.
    pub(in crate::git) fn note_written(&self, moves: &[RefMove<'_>]) {
        for moved in moves.iter().filter(|moved| is_noted(moved, moves)) {
            if let Some(new) = moved.new {
                let _ = safe_files::write(&self.written_file(moved.name), line(moved.name, new).as_bytes());
            }
        }
    }

    /// Call this after a transaction that succeeded. A mark counts until it is deleted. A record only has to prove that
    /// the branch in the same transaction was to be moved.
    pub(in crate::git) fn forget_written(&self, moves: &[RefMove<'_>]) {
        let is_over = |moved: &&RefMove<'_>| moved.new.is_none() || moved.name.starts_with(SESSIONS);
        for moved in moves.iter().filter(|moved| is_noted(moved, moves)).filter(is_over) {
            let _ = safe_files::remove(&self.written_file(moved.name));
        }
    }

    fn written_file(&self, name: &str) -> PathBuf {
        let digest = Oid::of(ObjectKind::Blob, name.as_bytes(), self.format);
        self.common_dir.join(WRITTEN).join(digest.to_string())
    }
}

fn is_noted(moved: &RefMove<'_>, moves: &[RefMove<'_>]) -> bool {
    let moves_branch = || moves.iter().any(|moved| moved.name.starts_with(BRANCHES));
    moved.name.starts_with(NOTES) || (moved.name.starts_with(SESSIONS) && moves_branch())
}

fn line(name: &str, value: Oid) -> String {
    format!("{name} {value}\n")
}
