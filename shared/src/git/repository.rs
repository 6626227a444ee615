//! Finding the repository, and what has to be known of it before anything is read.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    GitCommand, GitError, GitVersion, author::Authors, command::without_prefix, identity::GitDirId,
    open_objects::ObjectDatabase, ref_updater::RefUpdaters, register::Register, trees::ReadTrees,
};
use crate::{
    name::{BranchName, ObjectFormat, Oid, RepoName, digest},
    process::{Holder, ProcessError, ProgramOutput, RunningProgram, find_other_drivers, find_outer_driver},
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
    /// Where git is run: the directory that we were started in.
    pub dir: PathBuf,
    /// The git directory of this worktree.
    pub git_dir: PathBuf,
    /// The git directory that all worktrees share.
    pub common_dir: PathBuf,
    /// The top of the worktree; `None` in a bare repository or inside the git directory.
    pub worktree: Option<PathBuf>,
    /// How objects are named.
    pub format: ObjectFormat,
    /// True if history was cut off when it was cloned.
    pub is_shallow: bool,
    /// Which git we talk to.
    pub version: GitVersion,
    /// Where `HEAD` points.
    pub head: Head,
    /// Whether refs are kept in files, and not in tables. It is asked once: whoever makes the folder of the tables later does
    /// not change where git looks.
    pub keeps_loose_refs: bool,
    /// True if the index is this worktree's own, whichever one our environment names.
    pub(super) is_pinned: bool,
    /// The git directories as they were when it was opened.
    pub(super) homes: Arc<[GitDirId]>,
    /// The objects, for all worktrees.
    pub(super) objects: ObjectDatabase,
    /// What was read of them.
    pub(super) read_trees: ReadTrees,
    /// The git processes that move refs, for all worktrees.
    pub(super) ref_updaters: RefUpdaters,
    /// As whom commits are written.
    pub(super) authors: Authors,
    /// The worktrees, as git told them last.
    pub(super) register: Register,
}

/// What is asked of `rev-parse` first, one line of answer each.
const QUESTIONS: [&str; 8] = [
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--show-object-format",
    "--is-shallow-repository",
    "--is-inside-work-tree",
    "--show-prefix",
    // A git that does not know it keeps refs in files, and repeats the question.
    "--show-ref-format",
];
const ANSWERS: usize = QUESTIONS.len() - 1;

impl Repository {
    /// The repository that git finds from the current directory.
    pub fn discover() -> Result<Self, GitError> {
        Self::discover_from(&Self::current_dir()?)
    }

    /// The directory that we were started in.
    pub fn current_dir() -> Result<PathBuf, GitError> {
        let here = std::env::current_dir();
        Ok(here.map_err(|source| ProcessError { program: "git".into(), source })?)
    }

    /// The repository that git finds from `dir`. One call tells all that a branch with commits needs, the version too:
    /// a call for that alone costs a millisecond.
    pub fn discover_from(dir: &Path) -> Result<Self, GitError> {
        Self::discover_by(dir, GitCommand::reading)
    }

    /// The repository whose checkout is `top`, whichever one our environment names.
    pub fn open_at(top: &Path) -> Result<Self, GitError> {
        let found = Self::discover_by(top, |name, dir| GitCommand::reading(name, dir).at_home())?;
        let is_top = found.worktree.as_deref() == Some(top);
        if !is_top {
            let complaint = format!("'{}' is not the top of a checkout", top.display());
            return Err(GitError::NoRepository { complaint });
        }
        Ok(Self { is_pinned: true, ..found })
    }

    /// Begins to look for the repository from `dir`, while others do something else.
    pub fn start_search(dir: &Path) -> Result<RepositorySearch, GitError> {
        let (_, running) = question(dir, GitCommand::reading).start()?;
        Ok(RepositorySearch { dir: dir.to_owned(), running })
    }

    fn discover_by(dir: &Path, ask: fn(&str, &Path) -> GitCommand) -> Result<Self, GitError> {
        Self::from_first_answer(dir, ask, &question(dir, ask).finish()?)
    }

    fn from_first_answer(
        dir: &Path,
        ask: fn(&str, &Path) -> GitCommand,
        asked: &ProgramOutput,
    ) -> Result<Self, GitError> {
        let version = match GitVersion::find_in_trace(&asked.stderr) {
            Some(version) => version,
            None => GitVersion::ask(dir)?,
        };
        if version < GitVersion::OLDEST {
            return Err(GitError::TooOld(version));
        }
        let lines = lines_of(&asked.stdout);
        if asked.status.success() && lines.len() == ANSWERS + 2 {
            let head = born_head(&lines[ANSWERS..])?;
            return Self::from_answers(dir, &lines, version, head);
        }
        Self::discover_otherwise(dir, version, ask)
    }

    /// The way for a branch without commits, where `rev-parse HEAD` fails, for a `HEAD` that is ambiguous, and for no
    /// repository at all.
    fn discover_otherwise(
        dir: &Path,
        version: GitVersion,
        ask: fn(&str, &Path) -> GitCommand,
    ) -> Result<Self, GitError> {
        let asked = ask("rev-parse", dir).args(QUESTIONS).finish()?;
        if !asked.status.success() {
            return Err(no_repository(without_prefix(&asked.complaint())));
        }
        let target = ask("symbolic-ref", dir).args(["-q", "HEAD"]).answer()?;
        let name = target.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let commit = ask("rev-parse", dir).args(["-q", "--verify", "HEAD^{commit}"]).finish()?;
        let head = Head {
            branch: name.as_deref().and_then(branch_of_ref),
            commit: String::from_utf8_lossy(&commit.stdout).trim().parse().ok(),
        };
        Self::from_answers(dir, &lines_of(&asked.stdout), version, head)
    }

    fn from_answers(dir: &Path, lines: &[&[u8]], version: GitVersion, head: Head) -> Result<Self, GitError> {
        let Some([git_dir, common_dir, format, shallow, inside, prefix, refs]) = lines.get(..ANSWERS) else {
            return Err(strange("a path with a line break in it"));
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let (git_dir, common_dir) = (path(git_dir), path(common_dir));
        let mut homes: Vec<GitDirId> =
            [&common_dir, &git_dir].into_iter().filter_map(|dir| GitDirId::of(dir)).collect();
        homes.dedup();
        Ok(Self {
            dir: dir.to_owned(),
            git_dir,
            common_dir,
            homes: homes.into(),
            worktree: (*inside == b"true").then(|| top_of(dir, &path(prefix))),
            format: match *format {
                b"sha1" => ObjectFormat::Sha1,
                b"sha256" => ObjectFormat::Sha256,
                other => return Err(strange(&format!("object format '{}'", String::from_utf8_lossy(other)))),
            },
            is_shallow: *shallow == b"true",
            version,
            head,
            keeps_loose_refs: *refs != b"reftable",
            is_pinned: false,
            objects: ObjectDatabase::default(),
            read_trees: ReadTrees::default(),
            ref_updaters: RefUpdaters::default(),
            authors: Authors::default(),
            register: Register::default(),
        })
    }

    /// The lock that a run of `branch` holds while it goes.
    #[must_use]
    pub fn run_lock(&self, branch: &BranchName) -> PathBuf {
        self.common_dir.join("arborist/locks").join(format!("run-{}", branch.component()))
    }

    /// Whether another process is in the middle of a run in this repository.
    #[must_use]
    pub fn has_other_runs(&self) -> bool {
        let others = find_other_drivers(&self.common_dir.join("arborist/locks"));
        others.iter().any(|lock| lock.starts_with("run-"))
    }

    /// The driver of a run in this repository that started this process in one of its steps, directly or not.
    #[must_use]
    pub fn find_outer_driver(&self) -> Option<Holder> {
        find_outer_driver(&self.common_dir.join("arborist/locks"))
    }

    /// The lock that whoever works in the worktree at `top` holds.
    #[must_use]
    pub fn worktree_lock(&self, top: &Path) -> PathBuf {
        let name = top.file_name().unwrap_or_default().to_string_lossy();
        let unique = &digest(top.as_os_str().as_encoded_bytes())[..12];
        self.common_dir.join("arborist/locks").join(format!("worktree-{name}-{unique}"))
    }

    /// A reading call of git in this repository.
    #[must_use]
    pub fn git(&self, name: &str) -> GitCommand {
        self.pin(GitCommand::reading(name, &self.dir))
    }

    /// What it is called where nobody has named it: as the folder of its main checkout, also in a linked worktree.
    #[must_use]
    pub fn name(&self) -> RepoName {
        let is_inside = self.common_dir.file_name().is_some_and(|name| name == ".git");
        let folder = self.common_dir.parent().filter(|_| is_inside).unwrap_or(&self.common_dir);
        RepoName::of_folder(folder)
    }

    /// The file of the index, unless our environment names another one to git.
    pub(super) fn index_file(&self) -> Option<PathBuf> {
        let is_usual = self.is_pinned || std::env::var_os("GIT_INDEX_FILE").is_none();
        is_usual.then(|| self.git_dir.join("index"))
    }

    /// A call of git in this repository with the user's own settings.
    #[must_use]
    pub fn act(&self, name: &str) -> GitCommand {
        self.pin(GitCommand::acting(name, &self.dir))
    }

    /// Tells git where this repository is. It never looks for it by itself: agents can remove or replace what it would
    /// find, and then it would find a repository around this one.
    pub(super) fn pin(&self, command: GitCommand) -> GitCommand {
        let command = command
            .of_homes(&self.homes)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", &self.common_dir);
        let command = match &self.worktree {
            Some(top) => command.of_top(top).env("GIT_WORK_TREE", top),
            // Otherwise git takes the directory that it is run in for the worktree.
            None => command.env("GIT_IMPLICIT_WORK_TREE", "0"),
        };
        let command = self.with_frozen(command);
        if self.is_pinned { command.env_remove("GIT_INDEX_FILE") } else { command }
    }

    /// The same for what all worktrees share.
    pub(super) fn pin_shared(&self, command: GitCommand) -> GitCommand {
        let command = command
            .of_homes(&self.homes)
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_DIR", &self.common_dir)
            .env("GIT_COMMON_DIR", &self.common_dir);
        self.with_frozen(command)
    }

    /// The same for the user's hooks in the checkout that we were started in. git does not name the repository to hooks
    /// there, and many a hook makes repositories of its own, so only what lies around it is closed to them.
    pub(super) fn pin_hook(&self, command: GitCommand) -> GitCommand {
        match &self.worktree {
            Some(top) if !self.is_pinned => command.of_homes(&self.homes).of_top(top).not_above(top),
            _ => self.pin(command),
        }
    }
}

/// A search for a repository that has begun.
#[derive(Debug)]
pub struct RepositorySearch {
    dir: PathBuf,
    running: RunningProgram,
}

impl RepositorySearch {
    /// Waits for it.
    pub fn finish(self) -> Result<Repository, GitError> {
        Repository::from_first_answer(&self.dir, GitCommand::reading, &self.running.finish()?)
    }
}

/// All that is asked first.
fn question(dir: &Path, ask: fn(&str, &Path) -> GitCommand) -> GitCommand {
    let (name, value) = GitVersion::TRACE;
    ask("rev-parse", dir).env(name, value).args(QUESTIONS).args(["HEAD", "--symbolic-full-name", "HEAD"])
}

/// Lines as bytes: a path need not be UTF-8.
fn lines_of(stdout: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = stdout.split(|b| *b == b'\n').collect();
    lines.pop();
    lines
}

/// Not every refusal means that there is no repository here.
fn no_repository(complaint: String) -> GitError {
    if complaint.contains("not a git repository") || complaint.contains("dubious ownership") {
        return GitError::NoRepository { complaint };
    }
    GitError::Failed { command: "rev-parse".into(), complaint }
}

fn born_head(lines: &[&[u8]]) -> Result<Head, GitError> {
    let [commit, full_name] = lines else {
        return Err(strange("no HEAD"));
    };
    Ok(Head {
        branch: branch_of_ref(&String::from_utf8_lossy(full_name)),
        commit: Some(Oid::from_hex(commit).ok_or_else(|| strange("an object id"))?),
    })
}

/// `HEAD` itself, as git answers for a detached one, is no branch.
fn branch_of_ref(full_name: &str) -> Option<BranchName> {
    full_name.strip_prefix("refs/heads/")?.parse().ok()
}

fn top_of(dir: &Path, prefix: &Path) -> PathBuf {
    let depth = prefix.components().count();
    dir.ancestors().nth(depth).unwrap_or(dir).to_owned()
}

fn strange(what: &str) -> GitError {
    GitError::Strange { command: "rev-parse".into(), what: what.to_owned() }
}
