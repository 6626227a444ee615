//! The user's pre-commit hook, asked about a commit that is not made by `git commit`.

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

/// Hooks run linters and whole test suites. One that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(3600);
/// How many characters of what it says are kept.
const TAIL: usize = 64 * 1024;

impl Repository {
    /// Runs the user's pre-commit hook on what is about to be committed. `base` is what the hook finds as `HEAD`. `Ok` is
    /// the tree as the hook left it, `Err` what it said when it refused. It often runs scripts of the repository, which an
    /// agent has just written, so none of its processes outlives it.
    pub fn pre_commit(&self, tree: Oid, base: Oid, cancel: &Cancel) -> Result<Result<Oid, String>, GitError> {
        let index = self.private_index("hook")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let hook = self.pin_hook(GitCommand::acting("hook", self.top()));
        let mut hook = hook.args(["run", "--ignore-missing", "pre-commit"]);
        let head =
            if self.require_commit("HEAD")? == base { None } else { Some(Elsewhere::new(self, base)?) };
        if let Some(head) = &head {
            hook = hook.env("GIT_DIR", &head.git_dir).env("GIT_WORK_TREE", self.top());
        }
        let hook = hook.env("GIT_INDEX_FILE", &index.file.path).env("GIT_EDITOR", ":");
        let limits = Limits { whole: Some(LONGEST), ..Limits::default() };
        let hook = Supervised::new(hook.checked_program()?).limits(limits).until(cancel).tail(TAIL);
        let ended = hook.run(|_| {});
        let said = format!("{}{}", ended.stdout.text, ended.stderr.text);
        match ended.ending {
            _ if !ended.survivors.is_empty() => {
                Ok(Err(format!("{said}\nit left processes behind that could not be ended")))
            }
            Ending::Exited(0) => index.write_tree().map(Ok),
            Ending::Exited(_) => Ok(Err(said)),
            Ending::TimedOut { .. } => Ok(Err(format!("{said}\nit took too long"))),
            // One that a signal ended has refused nothing.
            other => Err(GitError::Failed { command: "hook".into(), complaint: format!("it {other}") }),
        }
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
