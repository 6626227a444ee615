//! Runs the user's pre-commit hook for a commit that is not made by `git commit`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    git::{GitCommand, GitError, PrivateIndex, Repository, command::checked},
    name::{BranchName, Oid},
    process::{Cancel, Confinement, Ending, Limits, Supervised},
    safe_files,
};

/// The time limit. Hooks may run linters and whole test suites.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// How many characters of its output are kept.
const MAX_OUTPUT: usize = 64 * 1024;

/// What the pre-commit hook decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// It accepted the commit, and left this tree.
    Accepted(Oid),
    /// It refused the commit, with this output.
    Refused(String),
}

impl Repository {
    /// Runs the user's pre-commit hook on what is about to be committed. `base` is the `HEAD` that the hook sees. Hooks
    /// often run scripts of the repository, which an agent has just written, so all of its processes are ended with it,
    /// and it may be confined. A confined hook stages files in a private folder.
    pub fn pre_commit(
        &self,
        tree: Oid,
        base: Oid,
        confinement: Option<Confinement>,
        cancel: &Cancel,
    ) -> Result<HookVerdict, GitError> {
        let index = self.private_index("hook")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let hook = self.pin_hook(GitCommand::acting("hook", self.top()));
        let mut hook = hook.args(["run", "--ignore-missing", "pre-commit"]);
        let head =
            if self.require_commit("HEAD")? == base { None } else { Some(TemporaryHead::new(self, base)?) };
        if let Some(head) = &head {
            hook = hook.env("GIT_DIR", &head.git_dir).env("GIT_WORK_TREE", self.top());
        }
        let files = confinement.is_some().then(|| HookFiles::new(self, &index)).transpose()?;
        hook = match &files {
            Some(files) => files.of(hook),
            None => hook.env("GIT_INDEX_FILE", &index.file.path),
        };
        let mut program = hook.env("GIT_EDITOR", ":").checked_program()?.confined_if(confinement);
        for folder in files.iter().map(|files| &files.folder).chain(head.iter().map(|head| &head.git_dir)) {
            program = program.writing_in(folder);
        }
        let limits = Limits { whole: Some(TIME_LIMIT), ..Limits::default() };
        let hook = Supervised::new(program).limits(limits).until(cancel).tail(MAX_OUTPUT);
        let ended = hook.run(|_| {});
        let output = format!("{}{}", ended.stdout.text, ended.stderr.text);
        Ok(HookVerdict::Refused(match ended.ending {
            _ if !ended.survivors.is_empty() => {
                format!("{output}\nit left processes that could not be stopped")
            }
            Ending::Exited(0) => {
                files.map_or(Ok(()), |files| files.take_over(&index, tree))?;
                return index.write_tree().map(HookVerdict::Accepted);
            }
            Ending::Exited(0..128) => output,
            // A program of the hook was ended by a signal, which shells report with such a code.
            Ending::Exited(_) => format!("{output}\nit {}", ended.ending),
            Ending::TimedOut { .. } => format!("{output}\nit took too long"),
            // A hook that was ended by a signal has not refused the commit.
            other => {
                return Err(GitError::Failed { command: "hook".into(), complaint: format!("it {other}") });
            }
        }))
    }
}

/// A folder that a confined hook may write to, with a copy of the private index and a place for new objects. It is
/// removed when dropped.
struct HookFiles<'a> {
    repository: &'a Repository,
    folder: PathBuf,
}

impl<'a> HookFiles<'a> {
    fn new(repository: &'a Repository, index: &PrivateIndex<'_>) -> Result<Self, GitError> {
        let files = Self { repository, folder: repository.git_dir.join("arborist/hook-files") };
        let make = || {
            // A crash may have left one.
            files.remove();
            safe_files::make_folders(&files.objects())?;
            safe_files::copy(&index.file.path, &files.index())
        };
        make().map_err(|source| repository.file_error(source))?;
        Ok(files)
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// Lets a command use the copy of the index, and write objects here.
    fn of(&self, command: GitCommand) -> GitCommand {
        command
            .env("GIT_INDEX_FILE", self.index())
            .env("GIT_OBJECT_DIRECTORY", self.objects())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.repository.common_dir.join("objects"))
    }

    /// Takes over what the hook staged. Objects are hashed again when they are unpacked, so a forged one gets another id,
    /// and the tree cannot be written. `shown` is the tree that the hook was shown.
    fn take_over(self, index: &PrivateIndex<'_>, shown: Oid) -> Result<(), GitError> {
        let git = |name: &str| self.of(self.repository.change(name));
        let tree = String::from_utf8_lossy(&git("write-tree").stdout()?).trim().to_owned();
        if tree == shown.to_string() {
            return Ok(());
        }
        let new =
            git("rev-list").args(["--objects", "--no-object-names", &tree, &format!("^{shown}")]).stdout()?;
        let packed = git("pack-objects").args(["--stdout", "-q"]).finish_with(&new)?;
        let packed = checked("pack-objects", packed)?;
        let unpacked = self.repository.change("unpack-objects").arg("-q").finish_with(&packed)?;
        checked("unpack-objects", unpacked)?;
        let copied = safe_files::copy(&self.index(), &index.file.path);
        copied.map_err(|source| self.repository.file_error(source))?;
        Ok(())
    }

    fn remove(&self) {
        let _ = safe_files::remove_all(&self.folder);
    }
}

impl Drop for HookFiles<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Files of the common git directory to which a temporary one links. Refs are copied instead.
const SHARED_FILES: [&str; 7] = ["config", "hooks", "info", "lfs", "modules", "objects", "shallow"];
/// Files of a worktree's own git directory to which a temporary one links.
const OWN_FILES: [&str; 1] = ["config.worktree"];

/// A git directory with another `HEAD` than the checkout. Removed when dropped.
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
        if let Some(branch) = repository.head.branch.as_ref().filter(|_| repository.has_files_backend) {
            let head = Self { repository, git_dir: folder.clone(), folder };
            head.write_with_copied_refs(branch, base)?;
            return Ok(head);
        }
        // There is no branch, or refs are in a reftable, which cannot be written without git: a worktree without files.
        let add = repository.change("worktree").args(["add", "-q", "--force", "--detach", "--no-checkout"]);
        let git_dir = repository.add_git_dir(&folder, add.arg(&folder).arg(base.to_string()))?;
        Ok(Self { repository, git_dir, folder })
    }

    /// Makes a git directory in which the branch that is checked out points to `base`, because hooks may ask for the name of
    /// the branch. Its refs are copies.
    fn write_with_copied_refs(&self, branch: &BranchName, base: Oid) -> Result<(), GitError> {
        let refs = self.repository.list_refs(&["refs/heads/", "refs/tags/", "refs/remotes/"])?;
        let branch = branch.to_ref();
        let others = refs.iter().filter(|known| known.name != branch);
        let packed: String = others.map(|known| format!("{} {}\n", known.target, known.name)).collect();
        let shared = SHARED_FILES.iter().map(|name| (&self.repository.common_dir, *name));
        let links = shared.chain(OWN_FILES.iter().map(|name| (&self.repository.git_dir, *name)));
        let write = || {
            let file = self.git_dir.join(&branch);
            safe_files::make_folders(file.parent().unwrap_or(&self.git_dir))?;
            for (folder, name) in links {
                let target = folder.join(name);
                if safe_files::kind_of(&target).is_some() {
                    safe_files::symlink(&target, &self.git_dir.join(name))?;
                }
            }
            safe_files::write(&file, format!("{base}\n").as_bytes())?;
            safe_files::write(&self.git_dir.join("packed-refs"), packed.as_bytes())?;
            safe_files::write(&self.git_dir.join("HEAD"), format!("ref: {branch}\n").as_bytes())
        };
        write().map_err(|source| self.repository.file_error(source))
    }
}

impl Drop for TemporaryHead<'_> {
    fn drop(&mut self) {
        remove(self.repository, &self.folder);
    }
}

/// If it cannot be removed now, it is removed the next time.
fn remove(repository: &Repository, folder: &Path) {
    if !folder.exists() {
        return;
    }
    if folder.join(".git").exists() {
        let command = repository.change("worktree").args(["remove", "--force", "--force"]).arg(folder);
        let _ = repository.change_git_dirs(|| command.finish());
    }
    let _ = safe_files::remove_all(folder);
}
