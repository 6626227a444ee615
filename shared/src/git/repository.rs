//! Finding the repository, and what has to be known of it before anything is read.

use std::path::{Path, PathBuf};

use super::{
    GitCommand, GitError, GitVersion,
    command::{checked, without_prefix},
};
use crate::name::{BranchName, ObjectFormat, Oid};

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
}

/// What is asked of `rev-parse` first, one line of answer each.
const QUESTIONS: [&str; 7] = [
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--show-object-format",
    "--is-shallow-repository",
    "--is-inside-work-tree",
    "--show-prefix",
];
const ANSWERS: usize = QUESTIONS.len() - 1;

impl Repository {
    /// The repository that git finds from the current directory.
    pub fn discover() -> Result<Self, GitError> {
        let here = std::env::current_dir()
            .map_err(|source| crate::process::ProcessError { program: "git".into(), source })?;
        Self::discover_from(&here)
    }

    /// The repository that git finds from `dir`.
    pub fn discover_from(dir: &Path) -> Result<Self, GitError> {
        let (name, version) = GitCommand::reading("version", dir).start()?;
        let asked = GitCommand::reading("rev-parse", dir)
            .args(QUESTIONS)
            .args(["HEAD", "--symbolic-full-name", "HEAD"])
            .finish()?;
        let version = require_version(&checked(&name, version.finish()?)?)?;
        if asked.status.success() {
            let lines = lines_of(asked.stdout)?;
            let head = born_head(&lines[ANSWERS..])?;
            return Self::from_answers(dir, &lines, version, head);
        }
        Self::discover_unborn(dir, version)
    }

    /// The way for a branch without commits, where `rev-parse HEAD` fails, and for no repository at all.
    fn discover_unborn(dir: &Path, version: GitVersion) -> Result<Self, GitError> {
        let asked = GitCommand::reading("rev-parse", dir).args(QUESTIONS).finish()?;
        if !asked.status.success() {
            return Err(GitError::NoRepository { complaint: without_prefix(&asked.complaint()) });
        }
        let lines = lines_of(asked.stdout)?;
        let target = GitCommand::reading("symbolic-ref", dir).args(["-q", "HEAD"]).answer()?;
        let name = target.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let head = Head { branch: name.as_deref().and_then(branch_of_ref), commit: None };
        Self::from_answers(dir, &lines, version, head)
    }

    fn from_answers(dir: &Path, lines: &[String], version: GitVersion, head: Head) -> Result<Self, GitError> {
        let [git_dir, common_dir, format, shallow, inside, prefix] = &lines[..ANSWERS] else {
            return Err(strange("too few lines"));
        };
        Ok(Self {
            dir: dir.to_owned(),
            git_dir: git_dir.into(),
            common_dir: common_dir.into(),
            worktree: (inside == "true").then(|| top_of(dir, prefix)),
            format: match format.as_str() {
                "sha1" => ObjectFormat::Sha1,
                "sha256" => ObjectFormat::Sha256,
                other => return Err(strange(&format!("object format '{other}'"))),
            },
            is_shallow: shallow == "true",
            version,
            head,
        })
    }

    /// A reading call of git in this repository.
    #[must_use]
    pub fn git(&self, name: &str) -> GitCommand {
        GitCommand::reading(name, &self.dir)
    }
}

fn require_version(printed: &[u8]) -> Result<GitVersion, GitError> {
    let version = GitVersion::parse(printed).ok_or_else(|| strange("its version"))?;
    if version < GitVersion::OLDEST {
        return Err(GitError::TooOld(version));
    }
    Ok(version)
}

fn lines_of(stdout: Vec<u8>) -> Result<Vec<String>, GitError> {
    let text = String::from_utf8(stdout).map_err(|_| strange("a path that is not UTF-8"))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match lines.len() {
        ANSWERS => Ok(lines),
        n if n == ANSWERS + 2 => Ok(lines),
        _ => Err(strange("a path with a line break in it")),
    }
}

fn born_head(lines: &[String]) -> Result<Head, GitError> {
    let [commit, full_name] = lines else {
        return Err(strange("no HEAD"));
    };
    Ok(Head {
        branch: branch_of_ref(full_name),
        commit: Some(commit.parse().map_err(|_| strange("an object id"))?),
    })
}

/// `HEAD` itself, as git answers for a detached one, is no branch.
fn branch_of_ref(full_name: &str) -> Option<BranchName> {
    full_name.strip_prefix("refs/heads/")?.parse().ok()
}

fn top_of(dir: &Path, prefix: &str) -> PathBuf {
    let depth = Path::new(prefix).components().count();
    dir.ancestors().nth(depth).unwrap_or(dir).to_owned()
}

fn strange(what: &str) -> GitError {
    GitError::Strange { command: "rev-parse".into(), what: what.to_owned() }
}
