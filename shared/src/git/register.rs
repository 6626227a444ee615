//! The register of worktrees, as git told it last. Whoever leases places asks for it again and again, and most of the time
//! nothing has changed but what is checked out, which one look into a file tells. What is not understood, git is asked about.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{GitError, Head, Repository, Stamp, Worktree};
use crate::{name::Oid, safe_files};

/// For more worktrees than this, one question to git costs less than many looks.
const FEW: usize = 32;

/// What git told of the worktrees of a repository. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Register(Arc<Mutex<Option<Told>>>);

/// What git told, and when.
#[derive(Debug, Clone)]
struct Told {
    signs: RegisterSigns,
    worktrees: Vec<Worktree>,
}

/// What tells that worktrees were added, removed, moved, locked or unlocked, or that the main one became another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegisterSigns(Vec<(PathBuf, Option<Stamp>)>);

impl RegisterSigns {
    /// Files of the register, as they are now.
    pub(super) fn of(repository: &Repository) -> Self {
        let folder = repository.common_dir.join("worktrees");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut homes: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        homes.sort();
        let files = homes.iter().flat_map(|home| ["gitdir", "locked"].map(|name| home.join(name)));
        let all = [repository.common_dir.join("config"), folder].into_iter().chain(files);
        Self(all.map(|file| (file.clone(), Stamp::of(&file))).collect())
    }
}

impl Repository {
    /// The worktrees as they were told when the register was as it is now, with what is checked out in them now.
    pub(super) fn recall_worktrees(&self, signs: &RegisterSigns) -> Result<Option<Vec<Worktree>>, GitError> {
        let known = self.register.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_same = |told: &Told| told.signs == *signs && told.worktrees.len() <= FEW;
        let Some(Told { mut worktrees, .. }) = known.filter(is_same) else {
            return Ok(None);
        };
        for worktree in worktrees.iter_mut().filter(|worktree| !worktree.is_bare) {
            let Some(head) = worktree.git_dir.as_deref().and_then(|home| self.glance_at_head(home)) else {
                return Ok(None);
            };
            worktree.head = match &head.branch {
                Some(branch) => self.find_branch(branch)?,
                None => head.commit,
            };
            worktree.branch = head.branch;
        }
        Ok(Some(worktrees))
    }

    /// Remembers what git told, unless the register changed meanwhile.
    pub(super) fn remember_worktrees(&self, signs: RegisterSigns, worktrees: &[Worktree]) {
        let is_same = RegisterSigns::of(self) == signs;
        let told = is_same.then(|| Told { signs, worktrees: worktrees.to_vec() });
        *self.register.0.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// What stands in the file `HEAD` of a worktree: a branch, or a commit. `None` if only git can tell.
    pub(super) fn glance_at_head(&self, git_dir: &Path) -> Option<Head> {
        let file = git_dir.join("HEAD");
        // In the oldest repositories it is a link.
        if file.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
        let content = safe_files::read_text(&file).ok()?;
        let content = content.trim_end();
        // Where refs are kept otherwise, a name stands there that no branch can have.
        if let Some(name) = content.strip_prefix("ref: ") {
            let branch = name.trim_start().strip_prefix("refs/heads/")?.parse().ok()?;
            return Some(Head { branch: Some(branch), commit: None });
        }
        let is_whole = content.len() == self.format.hex_len();
        let commit = is_whole.then(|| Oid::from_hex(content.as_bytes())).flatten()?;
        Some(Head { branch: None, commit: Some(commit) })
    }
}
