//! Submodules of a worktree.

use std::path::{Path, PathBuf};

use super::{GitCommand, GitError, Repository, command::without_prefix};
use crate::name::{BranchName, Oid};

/// A submodule that a commit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    /// Its name, which is also that of its folder among the repository's modules.
    pub name: String,
    /// Where it stands in the worktree.
    pub path: String,
}

impl Repository {
    /// The submodules that a commit names.
    pub fn list_submodules(&self, commit: Oid) -> Result<Vec<Submodule>, GitError> {
        let Some(blob) = self.find_path(commit, ".gitmodules")? else {
            return Ok(Vec::new());
        };
        let command = self.git("config").args(["--blob", &blob.to_string(), "-z"]);
        let printed = command.args(["--get-regexp", r"^submodule\..*\.path$"]).answer()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&printed);
        let parse = |entry: &str| {
            let (key, path) = entry.split_once('\n')?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            let is_inside = !name.split('/').any(|part| part == "..") && !name.starts_with('/');
            is_inside.then(|| Submodule { name: name.to_owned(), path: path.to_owned() })
        };
        Ok(text.split_terminator('\0').filter_map(parse).collect())
    }

    /// Where the main worktree keeps a submodule's repository, if it does.
    #[must_use]
    pub fn find_module(&self, submodule: &Submodule) -> Option<PathBuf> {
        let module = self.common_dir.join("modules").join(&submodule.name);
        module.join("HEAD").is_file().then_some(module)
    }

    /// Checks out what the commit wants of a submodule, with the objects that `module` has. `Err` inside is git's reason
    /// why it could not be had.
    pub fn update_submodule(
        &self,
        submodule: &Submodule,
        module: &Path,
    ) -> Result<Result<(), String>, GitError> {
        let command =
            self.change("submodule").args(["--quiet", "update", "--init", "--force", "--reference"]);
        let ended = command.arg(module).args(["--", &submodule.path]).finish()?;
        if ended.status.success() {
            return Ok(Ok(()));
        }
        let complaint = without_prefix(&ended.complaint());
        Ok(Err(complaint.lines().next().unwrap_or_default().to_owned()))
    }

    /// Puts a submodule of this worktree on a branch at its own commit, so that no commit there is on none.
    pub fn branch_submodule(&self, submodule: &Submodule, branch: &BranchName) -> Result<(), GitError> {
        let dir = self.top().join(&submodule.path);
        let command = GitCommand::changing("checkout", &dir, &[]).at_home().not_above(&dir);
        command.args(["--quiet", "-B", branch.as_str(), "--no-track"]).stdout().map(drop)
    }

    /// Copies the branches of tasks that a submodule has to where the main worktree keeps its repository.
    pub fn keep_submodule(&self, submodule: &Submodule, module: &Path) -> Result<(), GitError> {
        let dir = self.top().join(&submodule.path);
        let command = GitCommand::changing("push", &dir, &[]).at_home().not_above(&dir);
        let command = command.args(["--quiet", "--no-verify"]);
        command.arg(module).arg("refs/heads/arborist/*:refs/heads/arborist/*").stdout().map(drop)
    }
}
