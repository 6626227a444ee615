//! Finds the repository, and holds what every other module of `git` needs to know about it.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    GitCommand, GitError, GitVersion,
    command::without_prefix,
    git_dir_id::GitDirId,
    objects::{open_objects::ObjectDatabase, signatures::KnownSigning, trees::TreeCache},
    refs::ref_updater::RefUpdaters,
    remote::remote_ssh::KnownSshCommand,
    worktrees::worktree_cache::WorktreeCache,
};
use crate::{
    name::{BranchName, ObjectFormat, Oid, RepoName, digest},
    process::{Holder, ProgramOutput, RunningProgram, add_checkout, find_other_drivers, find_outer_driver},
    safe_files,
};

/// Where `HEAD` points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The branch, or `None` if it is detached.
    pub branch: Option<BranchName>,
    /// The commit, or `None` if the branch has none yet.
    pub commit: Option<Oid>,
}

/// A repository as git itself found it from a directory.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The directory in which git is run: the one that this process was started in.
    pub dir: PathBuf,
    /// The git directory of this worktree.
    pub git_dir: PathBuf,
    /// The git directory that all worktrees share.
    pub common_dir: PathBuf,
    /// The top of the worktree; `None` in a bare repository or inside the git directory.
    pub worktree: Option<PathBuf>,
    /// The hash function of its object ids.
    pub format: ObjectFormat,
    /// Whether it is a shallow clone.
    pub is_shallow: bool,
    /// The version of the git program.
    pub version: GitVersion,
    /// Where `HEAD` points.
    pub head: Head,
    /// Whether refs are stored in files and not in a reftable. Read once, when the repository is opened: a `reftable`
    /// folder that is created later does not change where git looks.
    pub has_files_backend: bool,
    /// Whether `GIT_INDEX_FILE` of our environment is ignored, so that the index is always this worktree's own.
    pub(super) ignores_index_env: bool,
    /// Identities of the git directories when the repository was opened.
    pub(super) git_dir_ids: Arc<[GitDirId]>,
    /// The object database, shared by all worktrees.
    pub(super) objects: ObjectDatabase,
    /// A cache of trees that were read.
    pub(super) tree_cache: TreeCache,
    /// The running git processes that move refs, shared by all worktrees.
    pub(super) ref_updaters: RefUpdaters,
    /// Whether commits and records are signed.
    pub(super) signing: KnownSigning,
    /// The ssh command for remotes.
    pub(super) ssh_command: KnownSshCommand,
    /// The list of worktrees, as git printed it last.
    pub(super) register: WorktreeCache,
}

/// The first questions to `rev-parse`. Each is answered by one line.
const QUESTIONS: [&str; 8] = [
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--show-object-format",
    "--is-shallow-repository",
    "--is-inside-work-tree",
    "--show-prefix",
    // A git that does not know this option has no reftables. It prints the option itself.
    "--show-ref-format",
];
const ANSWERS: usize = QUESTIONS.len() - 1;

impl Repository {
    /// The repository that git finds from the current directory.
    pub fn discover() -> Result<Self, GitError> {
        Self::discover_from(&Self::current_dir()?)
    }

    /// The directory that this process was started in.
    pub fn current_dir() -> Result<PathBuf, GitError> {
        std::env::current_dir().map_err(GitError::NoCurrentDir)
    }

    /// The repository that git finds from `dir`. If the branch has commits, one call of git answers everything,
    /// including the version: a separate call would cost a millisecond.
    pub fn discover_from(dir: &Path) -> Result<Self, GitError> {
        Self::discover_by(dir, GitCommand::reading)
    }

    /// The repository with the checkout `top`, regardless of the repository that our environment names.
    pub fn open_at(top: &Path) -> Result<Self, GitError> {
        // Without `.git`, git looks for a repository in the folders above. A bare repository among tracked files, whose
        // `core.worktree` is this folder, would bring its own filters and hooks along.
        if safe_files::kind_of(&top.join(".git")).is_none() {
            let complaint = format!("'{}' is not the top of a checkout", top.display());
            return Err(GitError::NoRepository { complaint });
        }
        let found =
            Self::discover_by(top, |name, dir| GitCommand::reading(name, dir).ignoring_environment())?;
        let is_top = found.worktree.as_deref() == Some(top);
        if !is_top {
            let message = format!("'{}' is not the top of a checkout", top.display());
            return Err(GitError::NoRepository { complaint: message });
        }
        Ok(Self { ignores_index_env: true, ..found })
    }

    /// Starts to look for the repository from `dir` in the background.
    pub fn start_search(dir: &Path) -> Result<RepositorySearch, GitError> {
        let (_, running) = first_query(dir, GitCommand::reading).start()?;
        Ok(RepositorySearch { dir: dir.to_owned(), running })
    }

    fn discover_by(dir: &Path, command: fn(&str, &Path) -> GitCommand) -> Result<Self, GitError> {
        Self::from_first_answer(dir, command, &first_query(dir, command).finish()?)
    }

    fn from_first_answer(
        dir: &Path,
        command: fn(&str, &Path) -> GitCommand,
        output: &ProgramOutput,
    ) -> Result<Self, GitError> {
        let version = match GitVersion::find_in_trace(&output.stderr) {
            Some(version) => version,
            None => GitVersion::ask(dir)?,
        };
        if version < GitVersion::OLDEST {
            return Err(GitError::TooOld(version));
        }
        let lines = lines_of(&output.stdout);
        if output.status.success() && lines.len() == ANSWERS + 2 {
            let head = born_head(&lines[ANSWERS..])?;
            return Self::from_answers(dir, &lines, version, head);
        }
        Self::discover_step_by_step(dir, version, command)
    }

    /// The slow way, with several calls of git: for a branch without commits (`rev-parse HEAD` fails there), for an
    /// ambiguous `HEAD`, and for a directory without a repository.
    fn discover_step_by_step(
        dir: &Path,
        version: GitVersion,
        command: fn(&str, &Path) -> GitCommand,
    ) -> Result<Self, GitError> {
        let output = command("rev-parse", dir).args(QUESTIONS).finish()?;
        if !output.status.success() {
            return Err(no_repository(without_prefix(&output.complaint())));
        }
        let target = command("symbolic-ref", dir).args(["-q", "HEAD"]).answer()?;
        let name = target.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let commit = command("rev-parse", dir).args(["-q", "--verify", "HEAD^{commit}"]).finish()?;
        let head = Head {
            branch: name.as_deref().and_then(BranchName::of_ref),
            commit: String::from_utf8_lossy(&commit.stdout).trim().parse().ok(),
        };
        Self::from_answers(dir, &lines_of(&output.stdout), version, head)
    }

    fn from_answers(dir: &Path, lines: &[&[u8]], version: GitVersion, head: Head) -> Result<Self, GitError> {
        let Some([git_dir, common_dir, format, shallow, inside, prefix, refs]) = lines.get(..ANSWERS) else {
            return Err(unexpected("a path with a line break in it"));
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let (git_dir, common_dir) = (path(git_dir), path(common_dir));
        let mut git_dir_ids: Vec<GitDirId> =
            [&common_dir, &git_dir].into_iter().filter_map(|dir| GitDirId::of(dir)).collect();
        git_dir_ids.dedup();
        let worktree = (*inside == b"true").then(|| top_of(dir, &path(prefix)));
        let main = common_dir.parent().filter(|_| common_dir.ends_with(".git"));
        worktree.as_deref().into_iter().chain(main).for_each(add_checkout);
        Ok(Self {
            dir: dir.to_owned(),
            git_dir,
            common_dir,
            git_dir_ids: git_dir_ids.into(),
            worktree,
            format: match *format {
                b"sha1" => ObjectFormat::Sha1,
                b"sha256" => ObjectFormat::Sha256,
                other => {
                    return Err(unexpected(&format!("object format '{}'", String::from_utf8_lossy(other))));
                }
            },
            is_shallow: *shallow == b"true",
            version,
            head,
            has_files_backend: *refs != b"reftable",
            ignores_index_env: false,
            objects: ObjectDatabase::default(),
            tree_cache: TreeCache::default(),
            ref_updaters: RefUpdaters::default(),
            signing: KnownSigning::default(),
            ssh_command: KnownSshCommand::default(),
            register: WorktreeCache::default(),
        })
    }

    /// The folder of all locks.
    #[must_use]
    pub fn lock_folder(&self) -> PathBuf {
        self.common_dir.join("arborist/locks")
    }

    /// The lock file that a run of `branch` holds.
    #[must_use]
    pub fn run_lock(&self, branch: &BranchName) -> PathBuf {
        self.lock_folder().join(format!("run-{}", branch.component()))
    }

    /// The lock file of a process that lands on `branch` and updates its checkout.
    #[must_use]
    pub fn landing_lock(&self, branch: &BranchName) -> PathBuf {
        self.lock_folder().join(format!("landing-{}", branch.component()))
    }

    /// Whether another process is driving a run in this repository.
    #[must_use]
    pub fn has_other_runs(&self) -> bool {
        !find_other_drivers(&self.lock_folder(), "run-").is_empty()
    }

    /// The driver of a run in this repository that is an ancestor of this process.
    #[must_use]
    pub fn find_outer_driver(&self) -> Option<Holder> {
        find_outer_driver(&self.common_dir)
    }

    /// The lock file that a process holds while it works in the worktree at `top`.
    #[must_use]
    pub fn worktree_lock(&self, top: &Path) -> PathBuf {
        let name = top.file_name().unwrap_or_default().to_string_lossy();
        let unique = &digest(top.as_os_str().as_encoded_bytes())[..12];
        self.lock_folder().join(format!("worktree-{name}-{unique}"))
    }

    /// A git command that only reads, in this repository and in the fixed environment.
    #[must_use]
    pub fn git(&self, name: &str) -> GitCommand {
        self.pin(GitCommand::reading(name, &self.dir))
    }

    /// The default name: that of the folder of the main checkout, also when called in a linked worktree.
    #[must_use]
    pub fn name(&self) -> RepoName {
        RepoName::of_folder(self.main_top().unwrap_or(&self.common_dir))
    }

    /// The top of the main checkout, if it has the git directory.
    #[must_use]
    pub fn main_top(&self) -> Option<&Path> {
        self.common_dir.parent().filter(|_| self.common_dir.ends_with(".git"))
    }

    /// The index file; `None` if our environment names another one.
    pub(super) fn index_file(&self) -> Option<PathBuf> {
        let is_usual = self.ignores_index_env || std::env::var_os("GIT_INDEX_FILE").is_none();
        is_usual.then(|| self.git_dir.join("index"))
    }

    /// A git command in this repository that uses the user's settings.
    #[must_use]
    pub fn act(&self, name: &str) -> GitCommand {
        self.pin(GitCommand::acting(name, &self.dir))
    }

    /// Tells git where this repository is. git must never search for it: an agent can remove or replace the git
    /// directory, and then git would find a repository in a parent directory.
    pub(super) fn pin(&self, command: GitCommand) -> GitCommand {
        let command = command
            .requiring_git_dirs(&self.git_dir_ids)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir);
        let command = match &self.worktree {
            Some(top) => command.requiring_top(top).env("GIT_WORK_TREE", top),
            // Without it, git takes its current directory for the worktree.
            None => command.env("GIT_IMPLICIT_WORK_TREE", "0"),
        };
        let command = self.with_frozen(command);
        if self.ignores_index_env { command.env_remove("GIT_INDEX_FILE") } else { command }
    }

    /// The repository as git sees it in the common git directory, for what all worktrees share.
    pub(super) fn without_worktree(&self) -> Self {
        Self { git_dir: self.common_dir.clone(), worktree: None, ..self.clone() }
    }

    /// Like [`Self::pin`], for what all worktrees share.
    pub(super) fn pin_shared(&self, command: GitCommand) -> GitCommand {
        let command = command
            .requiring_git_dirs(&self.git_dir_ids)
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_DIR", &self.common_dir)
            .env("GIT_COMMON_DIR", &self.common_dir);
        self.with_frozen(command)
    }

    /// Like [`Self::pin`], for the user's hooks in the checkout that we were started in. There git sets no `GIT_DIR`
    /// for hooks, and many hooks create repositories, so only repositories in parent directories are hidden from them.
    pub(super) fn pin_hook(&self, command: GitCommand) -> GitCommand {
        match &self.worktree {
            Some(top) if !self.ignores_index_env => {
                command.requiring_git_dirs(&self.git_dir_ids).requiring_top(top).without_search_above(top)
            }
            _ => self.pin(command),
        }
    }
}

/// A running search for a repository.
#[derive(Debug)]
pub struct RepositorySearch {
    dir: PathBuf,
    running: RunningProgram,
}

impl RepositorySearch {
    /// Waits for the answer.
    pub fn finish(self) -> Result<Repository, GitError> {
        Repository::from_first_answer(&self.dir, GitCommand::reading, &self.running.finish()?)
    }
}

/// The first query, which usually answers everything.
fn first_query(dir: &Path, command: fn(&str, &Path) -> GitCommand) -> GitCommand {
    let (name, value) = GitVersion::TRACE;
    command("rev-parse", dir).env(name, value).args(QUESTIONS).args(["HEAD", "--symbolic-full-name", "HEAD"])
}

/// Lines as bytes: paths are not always UTF-8.
fn lines_of(stdout: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = stdout.split(|b| *b == b'\n').collect();
    lines.pop();
    lines
}

/// Not every failure means that there is no repository here.
fn no_repository(message: String) -> GitError {
    if message.contains("not a git repository") || message.contains("dubious ownership") {
        return GitError::NoRepository { complaint: message };
    }
    GitError::Failed { command: "rev-parse".into(), complaint: message }
}

fn born_head(lines: &[&[u8]]) -> Result<Head, GitError> {
    let [commit, full_name] = lines else {
        return Err(unexpected("no HEAD"));
    };
    Ok(Head {
        branch: BranchName::of_ref(&String::from_utf8_lossy(full_name)),
        commit: Some(Oid::from_hex(commit).ok_or_else(|| unexpected("an object id"))?),
    })
}

fn top_of(dir: &Path, prefix: &Path) -> PathBuf {
    let depth = prefix.components().count();
    dir.ancestors().nth(depth).unwrap_or(dir).to_owned()
}

fn unexpected(what: &str) -> GitError {
    GitError::unexpected("rev-parse", what)
}
