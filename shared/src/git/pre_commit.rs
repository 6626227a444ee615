//! Runs the user's pre-commit hook for a commit that is not made by `git commit`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{GitCommand, GitError, Repository};
use crate::{
    name::Oid,
    process::{Cancel, Ending, Limits, Supervised},
    safe_files,
};

/// The time limit. Hooks may run linters and whole test suites.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// How many characters of its output are kept.
const MAX_OUTPUT: usize = 64 * 1024;

impl Repository {
    /// Runs the user's pre-commit hook on what is about to be committed. `base` is the `HEAD` that the hook sees. `Ok`
    /// inside is the tree that the hook left, `Err` inside its output if it refused. Hooks often run scripts of the
    /// repository, which an agent has just written, so all of its processes are ended with it.
    pub fn pre_commit(&self, tree: Oid, base: Oid, cancel: &Cancel) -> Result<Result<Oid, String>, GitError> {
        let index = self.private_index("hook")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let hook = self.pin_hook(GitCommand::acting("hook", self.top()));
        let mut hook = hook.args(["run", "--ignore-missing", "pre-commit"]);
        let head =
            if self.require_commit("HEAD")? == base { None } else { Some(TemporaryHead::new(self, base)?) };
        if let Some(head) = &head {
            hook = hook.env("GIT_DIR", &head.git_dir).env("GIT_WORK_TREE", self.top());
        }
        let hook = hook.env("GIT_INDEX_FILE", &index.file.path).env("GIT_EDITOR", ":");
        let limits = Limits { whole: Some(TIME_LIMIT), ..Limits::default() };
        let hook = Supervised::new(hook.checked_program()?).limits(limits).until(cancel).tail(MAX_OUTPUT);
        let ended = hook.run(|_| {});
        let output = format!("{}{}", ended.stdout.text, ended.stderr.text);
        match ended.ending {
            _ if !ended.survivors.is_empty() => {
                Ok(Err(format!("{output}\nit left processes that could not be stopped")))
            }
            Ending::Exited(0) => index.write_tree().map(Ok),
            Ending::Exited(_) => Ok(Err(output)),
            Ending::TimedOut { .. } => Ok(Err(format!("{output}\nit took too long"))),
            // A hook that was ended by a signal has not refused the commit.
            other => Err(GitError::Failed { command: "hook".into(), complaint: format!("it {other}") }),
        }
    }
}

/// A git directory with another `HEAD` than the checkout: that of a temporary worktree without files, removed when
/// dropped.
struct TemporaryHead<'a> {
    repository: &'a Repository,
    folder: PathBuf,
    git_dir: PathBuf,
}

impl<'a> TemporaryHead<'a> {
    fn new(repository: &'a Repository, base: Oid) -> Result<Self, GitError> {
        let folder = repository.git_dir.join("arborist/hook");
        // A crash may have left one.
        remove(repository, &folder);
        let add = repository.change("worktree").args(["add", "-q", "--force", "--detach", "--no-checkout"]);
        let git_dir = repository.add_git_dir(&folder, add.arg(&folder).arg(base.to_string()))?;
        Ok(Self { repository, git_dir, folder })
    }
}

impl Drop for TemporaryHead<'_> {
    fn drop(&mut self) {
        remove(self.repository, &self.folder);
    }
}

/// If it cannot be removed now, it is removed the next time.
fn remove(repository: &Repository, folder: &Path) {
    if folder.exists() {
        let command = repository.change("worktree").args(["remove", "--force", "--force"]).arg(folder);
        let _ = repository.change_git_dirs(|| command.finish());
        let _ = safe_files::remove_all(folder);
    }
}
