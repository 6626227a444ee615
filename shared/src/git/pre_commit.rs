//! The user's pre-commit hook, asked about a commit that is not made by `git commit`.

use std::path::{Path, PathBuf};

use super::{GitCommand, GitError, Repository, command::checked};
use crate::{name::Oid, safe_files};

impl Repository {
    /// Runs the user's pre-commit hook on what is about to be committed. `base` is what the hook finds as `HEAD`. `Ok` is
    /// the tree as the hook left it, `Err` what it said when it refused.
    pub fn pre_commit(&self, tree: Oid, base: Oid) -> Result<Result<Oid, String>, GitError> {
        let index = self.private_index("hook")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let hook = self.pin_hook(GitCommand::acting("hook", self.top()));
        let mut hook = hook.args(["run", "--ignore-missing", "pre-commit"]);
        let head =
            if self.require_commit("HEAD")? == base { None } else { Some(Elsewhere::new(self, base)?) };
        if let Some(head) = &head {
            hook = hook.env("GIT_DIR", &head.git_dir).env("GIT_WORK_TREE", self.top());
        }
        let ended = hook.env("GIT_INDEX_FILE", &index.file.path).env("GIT_EDITOR", ":").finish()?;
        // One that a signal ended has refused nothing.
        if ended.status.success() || ended.status.code().is_none() {
            checked("hook", ended)?;
            return index.write_tree().map(Ok);
        }
        let said =
            format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        Ok(Err(said))
    }
}

/// A git directory whose `HEAD` is another commit than that of the checkout: of a worktree without files, removed when
/// dropped.
struct Elsewhere<'a> {
    repository: &'a Repository,
    folder: PathBuf,
    git_dir: PathBuf,
}

impl<'a> Elsewhere<'a> {
    fn new(repository: &'a Repository, base: Oid) -> Result<Self, GitError> {
        let folder = repository.git_dir.join("arborist/hook");
        // A crash may have left one.
        remove(repository, &folder);
        let add = repository.change("worktree").args(["add", "-q", "--force", "--detach", "--no-checkout"]);
        let git_dir = repository.make_home(&folder, add.arg(&folder).arg(base.to_string()))?;
        Ok(Self { repository, git_dir, folder })
    }
}

impl Drop for Elsewhere<'_> {
    fn drop(&mut self) {
        remove(self.repository, &self.folder);
    }
}

/// What cannot be removed now is removed the next time.
fn remove(repository: &Repository, folder: &Path) {
    if folder.exists() {
        let command = repository.change("worktree").args(["remove", "--force", "--force"]).arg(folder);
        let _ = repository.change_homes(|| command.finish());
        let _ = safe_files::remove_all(folder);
    }
}
