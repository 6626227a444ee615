//! Errors of git commands, and what they mean for the user.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::GitVersion;
use crate::{
    failure::{Exit, Explain, Explanation},
    name::Oid,
    process::{LockError, ProcessError, Program, shell_word},
};

/// An error of a git command, or of our access to a repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// git ran and failed.
    #[error("git {command} failed: {complaint}")]
    Failed {
        /// Its subcommand.
        command: String,
        /// Its error message, without the prefix.
        complaint: String,
    },
    /// git was killed.
    #[error("git {command} was ended by signal {signal}")]
    Killed {
        /// Its subcommand.
        command: String,
        /// The signal.
        signal: i32,
    },
    /// There is no repository here, or git refuses to open it.
    #[error("{complaint}")]
    NoRepository {
        /// git's message.
        complaint: String,
    },
    /// git is older than what we rely on.
    #[error("git {0} is too old: git arborist needs {needed} or newer", needed = GitVersion::OLDEST)]
    TooOld(GitVersion),
    /// The output of git could not be parsed.
    #[error("git {command} printed something unexpected: {what}")]
    UnexpectedOutput {
        /// Its subcommand.
        command: String,
        /// The unexpected part.
        what: String,
    },
    /// A file of the repository could not be written.
    #[error("could not write '{path}': {source}")]
    File {
        /// The file.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A ref that must save a commit is there and does not lead to it.
    #[error("could not save {commit} as '{name}': something else has written that ref")]
    SavedElsewhere {
        /// The ref.
        name: String,
        /// The commit.
        commit: Oid,
    },
    /// A private git directory cannot be used.
    #[error("sandbox.git: {why}")]
    PrivateGit {
        /// Why not.
        why: String,
    },
    /// Another process holds the lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The directory that this process runs in is gone.
    #[error("the current directory cannot be read (was it deleted?): {0}")]
    NoCurrentDir(#[source] std::io::Error),
    /// A file that git must write is locked.
    #[error("the lock file '{}' has existed for {} s: another git process is running here, or was killed", path.display(), age.as_secs())]
    LockHeld {
        /// The lock file.
        path: PathBuf,
        /// How old it is.
        age: Duration,
    },
    /// A git process that a killed run started is still running.
    #[error("a git process that a killed run had started is still running in this repository: process {pid}")]
    Orphan {
        /// The process.
        pid: u32,
    },
    /// The git directory is not the one that was opened.
    #[error("the git directory '{}' {why} while this command ran", path.display())]
    Moved {
        /// Where it was.
        path: PathBuf,
        /// What happened to it.
        why: &'static str,
    },
    /// The worktree was replaced by a link.
    #[error("the worktree '{}', or a folder above it, was replaced by a symbolic link", path.display())]
    LinkedWorktree {
        /// The path of the worktree.
        path: PathBuf,
    },
    /// The exclude file is a link and lacks a line.
    #[error("could not add a line to '{}', because it is a symbolic link", path.display())]
    LinkedExclude {
        /// The exclude file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// A file that git would read for minutes, each time.
    #[error("'{}' is larger than 4 GB, or is a sparse file, and is not committed", path.display())]
    Huge {
        /// Its path, from the top of the worktree.
        path: PathBuf,
    },
    /// A file of the user that git refuses to add.
    #[error("git cannot add '{path}': {why}")]
    CannotAdd {
        /// Its path, from the top of the worktree.
        path: String,
        /// Why, in git's words.
        why: String,
    },
    /// Something that is no regular file, on which git would block.
    #[error("'{}' is a FIFO, a socket, a device or far too large, and git would hang on it", path.display())]
    Special {
        /// Its path.
        path: PathBuf,
    },
    /// A name does not resolve to an object.
    #[error("'{0}' names no {1} in this repository")]
    Unknown(String, &'static str),
    /// A branch has the name of a folder that other branches are in.
    #[error("the branch '{branch}' is in the way: branches of tasks are below {folder}/")]
    BranchInTheWay {
        /// The branch.
        branch: String,
        /// The folder.
        folder: String,
    },
    /// git knows no name or no address for commits.
    #[error("git does not know who you are, and a run makes commits")]
    NoAuthor,
    /// The content of an object does not match its id.
    #[error("the {1} '{0}' is corrupt: its content does not match its id")]
    Corrupt(String, &'static str),
}

impl GitError {
    /// The error for output of `git {command}` that could not be parsed.
    pub(super) fn unexpected(command: &str, what: impl Into<String>) -> Self {
        Self::UnexpectedOutput { command: command.to_owned(), what: what.into() }
    }

    /// The error for a file that could not be written.
    pub(super) fn file(path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |source| Self::File { path: path.clone(), source }
    }

    /// Whether a lock of another git was in the way, which says nothing about the values of refs.
    #[must_use]
    pub const fn is_lock(&self) -> bool {
        matches!(self, Self::LockHeld { .. })
    }
}

impl Explain for GitError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Lock(error) => error.explain(),
            Self::NoRepository { complaint } if complaint.contains("dubious ownership") => Exit::Fatal.hint(
                "if you trust the owner of the repository, run: git config --global --add safe.directory <that directory>",
            ),
            Self::NoRepository { .. } => {
                Exit::Fatal.hint("run this inside a repository, or name one with: git -C <path> arborist …")
            }
            Self::SavedElsewhere { name, .. } => Exit::Fatal.hint(format!(
                "see what it is with: git log -1 {name}; then delete it with: git update-ref -d {name}"
            )),
            Self::LockHeld { path, .. } => Exit::Fatal.hint(format!(
                "wait until that process ends; if no git is running in this repository, run: rm '{}'",
                path.display()
            )),
            Self::Orphan { pid } => {
                Exit::Fatal.hint(format!("wait for it to end, or stop it with: kill {pid}"))
            }
            Self::Corrupt(..) => Exit::Fatal
                .hint("see what is damaged with: git fsck; then fetch the object from another clone"),
            Self::Moved { path, .. } => Exit::Fatal.hint(format!(
                "nothing was written to another folder; restore '{}', then run the same command again",
                path.display()
            )),
            Self::LinkedWorktree { path } => Exit::Fatal.hint(format!(
                "nothing was written through the link; find it with: namei -l '{}', remove it, then run the same command again",
                path.display()
            )),
            Self::LinkedExclude { path, line } => Exit::Fatal.hint(format!(
                "add the line to the file that the link leads to: echo '{line}' >> '{}'",
                path.display()
            )),
            Self::Huge { path } => Exit::Fatal.hint(format!(
                "if the file belongs there, let git ignore it: echo '/{}' >> .gitignore",
                path.display()
            )),
            Self::CannotAdd { path, .. } => Exit::Person.hint(format!(
                "correct the file so that 'git add' accepts it, or move it out of the repository\nif git does not track the file, you can also let git ignore it: echo {} >> .git/info/exclude",
                shell_word(&format!("/{path}"))
            )),
            Self::BranchInTheWay { branch, .. } => {
                Exit::Person.hint(format!("rename it: git branch -m {} NEW-NAME", shell_word(branch)))
            }
            Self::NoAuthor => Exit::Fatal.hint(
                "git config --global user.name 'Your Name'\ngit config --global user.email you@example.com",
            ),
            Self::Special { path } => Exit::Fatal.hint(format!("remove it: rm '{}'", path.display())),
            Self::NoCurrentDir(_) => Exit::Fatal.hint("change to a folder that exists: cd <folder>"),
            Self::TooOld(_) => Exit::Fatal.hint("install a newer git, or put one first on PATH"),
            Self::Process(error) if error.is_too_slow() => Exit::Fatal.hint(
                "the disk may be slow, or a program that git starts (a filter, core.fsmonitor) does not end\nrun the same command again; to see what git waits for, run meanwhile: ps -e -o pid,ppid,etime,args",
            ),
            Self::Process(error)
                if error.source.kind() == std::io::ErrorKind::NotFound
                    && !Program::locate("git").is_absolute() =>
            {
                Exit::Fatal.hint("is git installed and on PATH?")
            }
            Self::Killed { signal, .. } => exit_of(*signal).into(),
            _ => Exit::Fatal.into(),
        }
    }
}

/// Ctrl-C reaches git too. Any other signal is a failure.
fn exit_of(signal: i32) -> Exit {
    match u8::try_from(signal) {
        Ok(signal @ (1 | 2 | 15)) => Exit::Child(128 + signal),
        _ => Exit::Fatal,
    }
}
