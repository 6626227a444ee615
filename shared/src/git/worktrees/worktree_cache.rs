//! Caches the list of worktrees. It is needed again and again, and most of the time only the checked-out commits have
//! changed, which can be read from files. git is asked for everything else.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use crate::{
    git::{GitError, Head, Repository, Stamp, Worktree},
    mutex::MutexExt,
    name::{BranchName, Oid},
    safe_files,
};

/// With more worktrees than this, git is asked. A run with 32 jobs has 66: git takes 8 ms for them, and reading their `HEAD`s
/// takes less than 1 ms.
const MAX_CACHED: usize = 512;

/// The cached list of worktrees of a repository. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct WorktreeCache(Arc<Mutex<Option<CachedWorktrees>>>);

/// The list that git printed, and the state of the files at that time.
#[derive(Debug, Clone)]
struct CachedWorktrees {
    signs: WorktreeStamps,
    worktrees: Vec<Worktree>,
}

/// Stamps of files that change when worktrees are added, removed, moved, locked or unlocked, or when the main one
/// changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct WorktreeStamps(Vec<(PathBuf, Option<Stamp>)>);

impl WorktreeStamps {
    /// The present stamps.
    pub(in crate::git) fn of(repository: &Repository) -> Self {
        let folder = repository.common_dir.join("worktrees");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut git_dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        git_dirs.sort();
        let files = git_dirs.iter().flat_map(|git_dir| ["gitdir", "locked"].map(|name| git_dir.join(name)));
        let all = [repository.common_dir.join("config"), folder].into_iter().chain(files);
        Self(all.map(|file| (file.clone(), Stamp::of(&file))).collect())
    }
}

impl Repository {
    /// The cached worktrees with their present `HEAD`s; `None` if the list may have changed.
    pub(in crate::git) fn recall_worktrees(
        &self,
        signs: &WorktreeStamps,
    ) -> Result<Option<Vec<Worktree>>, GitError> {
        let known = self.register.0.hold().clone();
        let is_same =
            |cached: &CachedWorktrees| cached.signs == *signs && cached.worktrees.len() <= MAX_CACHED;
        let Some(CachedWorktrees { mut worktrees, .. }) = known.filter(is_same) else {
            return Ok(None);
        };
        for worktree in worktrees.iter_mut().filter(|worktree| !worktree.is_bare) {
            let Some(head) = worktree.git_dir.as_deref().and_then(|git_dir| self.read_head_file(git_dir))
            else {
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

    /// Caches what git printed, unless worktrees have changed meanwhile.
    pub(in crate::git) fn remember_worktrees(&self, signs: WorktreeStamps, worktrees: &[Worktree]) {
        let is_same = WorktreeStamps::of(self) == signs;
        let cached = is_same.then(|| CachedWorktrees { signs, worktrees: worktrees.to_vec() });
        *self.register.0.hold() = cached;
    }

    /// The branch or commit in the `HEAD` file of a worktree. `None` if only git can tell.
    pub(in crate::git) fn read_head_file(&self, git_dir: &Path) -> Option<Head> {
        let file = git_dir.join("HEAD");
        // In very old repositories it is a link.
        if file.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
        let content = safe_files::read_text(&file).ok()?;
        let content = content.trim_end();
        // With reftables, the file contains a name that no branch can have.
        if let Some(name) = content.strip_prefix("ref: ") {
            let branch = BranchName::of_ref(name.trim_start())?;
            return Some(Head { branch: Some(branch), commit: None });
        }
        let is_complete = content.len() == self.format.hex_len();
        let commit = is_complete.then(|| Oid::from_hex(content.as_bytes())).flatten()?;
        Some(Head { branch: None, commit: Some(commit) })
    }
}
