//! Warns if there are too many worktrees, or too little disk space.

use std::{fs, path::Path};

use super::{Pool, REASON};
use crate::safe_files;

impl Pool {
    /// The warnings. This runs no git command.
    #[must_use]
    pub fn find_warnings(&self) -> Vec<String> {
        let mut words = Vec::new();
        let base = self.places.base.display();
        let count = self.count();
        let warn_from = self.options.warn_worktrees();
        if warn_from > 0 && count >= warn_from {
            words.push(format!("there are {count} worktrees in '{base}'"));
        }
        let folder = self.places.base.ancestors().find(|folder| folder.is_dir());
        if let Some(free) = folder.and_then(free_at).filter(|free| *free < self.options.warn_free) {
            words.push(format!("only {} MB are free at '{base}'", free / 1_000_000));
        }
        words
    }

    /// The number of worktrees that are locked with our reason.
    #[must_use]
    pub fn count(&self) -> usize {
        let homes =
            fs::read_dir(self.repository.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let is_ours = |home: &fs::DirEntry| {
            safe_files::read(&home.path().join("locked"))
                .is_ok_and(|reason| reason.trim_ascii() == REASON.as_bytes())
        };
        homes.filter(is_ours).count()
    }
}

fn free_at(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}
