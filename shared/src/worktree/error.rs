//! Errors of worktrees.

use std::{io, path::PathBuf};

use crate::{
    failure::{Exit, Explain, Explanation},
    git::GitError,
    name::{BranchName, Oid, TaskId},
    process::{LockError, shell_word},
};

/// Why a worktree could not be created, used or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}", source.sentence(&format!("the worktree of '{task}' is in use")))]
    Busy { task: TaskId, source: LockError },
    #[error("process {pid} is running in '{}'", path.display())]
    Occupant { path: PathBuf, pid: u32 },
    #[error("this command was started in '{}'", .0.display())]
    Inside(PathBuf),
    #[error("the worktree of '{0}' is broken: git finds no repository in '{path}'", path = .1.display())]
    Broken(String, PathBuf),
    #[error("{}", .0.sentence("the worktrees of this repository are locked by another process"))]
    Registry(LockError),
    #[error("worktrees need a checkout, but this repository is bare")]
    Bare,
    #[error("'{0}' has no commits yet, so there is nothing to start from")]
    Unborn(BranchName),
    #[error("'{branch}' is checked out at '{}', which is not a worktree of git arborist", path.display())]
    Elsewhere { branch: BranchName, path: PathBuf },
    #[error("'{}' exists and is not a worktree of git arborist", .0.display())]
    Occupied(PathBuf),
    #[error("cannot create another worktree: {count} of at most {max} exist already (worktree.max)")]
    Limit { count: usize, max: usize },
    #[error("not enough space at '{}': {free} MB are free, and {needed} MB must stay free", path.display())]
    Space { path: PathBuf, free: u64, needed: u64 },
    #[error("worktrees cannot be created at '{}', inside '{}'", base.display(), inside.display())]
    Nested { base: PathBuf, inside: PathBuf },
    #[error("'{0}' has no worktree")]
    Absent(String),
    #[error("'{0}' has no worktree, so there is nothing to remove")]
    NothingToRemove(String),
    #[error("there is no branch '{0}'")]
    NoBranch(BranchName),
    #[error("'{0}' has no lane: only worktrees that a run has made are lanes")]
    NoLane(String),
    #[error("the worktree of '{0}' was removed: there is no '{path}'", path = .1.display())]
    Missing(String, PathBuf),
    #[error("'{branch}' already has commits, but does not contain {}", base.short())]
    OtherBase { branch: BranchName, base: Oid },
    #[error("the worktree of '{name}' has uncommitted files: {what}")]
    Dirty { name: String, what: String },
    #[error("'{}' contains a repository with work that would be lost: {what}", path.display())]
    Embedded { path: PathBuf, what: String },
    #[error("no run has saved unfinished work of '{0}'")]
    NothingSaved(TaskId),
    #[error("the unfinished work of '{task}' was saved when its branch was at {}, but the branch is at {} now", at.short(), tip.short())]
    SavedElsewhere { task: TaskId, at: Oid, tip: Oid, name: String },
    #[error("the set-up command '{command}' {ending}{said}")]
    SetUp { command: String, ending: String, said: String },
    #[error("could not {doing} '{}': {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
}

impl WorktreeError {
    pub(super) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}

impl Explain for WorktreeError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Busy { source, .. } => source.explain(),
            Self::Registry(source) => {
                Explanation { exit: source.exit(), hint: source.advice("run the same command again") }
            }
            Self::Occupant { pid, .. } => Exit::Locked.hint(format!("stop it first: kill {pid}")),
            Self::Limit { .. } => Exit::No.hint(
                "see what can be removed with: git arborist cleanup --dry-run\nor raise worktree.max",
            ),
            Self::Absent(name) => {
                Exit::No.hint(format!("make one with: git arborist worktree add {name}"))
            }
            Self::NothingToRemove(_) => {
                Exit::No.hint("see all worktrees with: git arborist worktree list")
            }
            Self::NoLane(_) => Exit::No.hint("see the lanes with: git arborist worktree list"),
            Self::NoBranch(_) => {
                Exit::No.hint("see the branches of tasks with: git arborist worktree list --branches")
            }
            Self::NothingSaved(_) => Exit::No.hint(
                "see all saved work with: git arborist cleanup saved\nthen restore it with: git arborist cleanup restore NAME",
            ),
            Self::Missing(name, _) => Exit::No.hint(format!(
                "forget it with: git arborist worktree prune\nor create it again with: git arborist worktree add {name}"
            )),
            Self::Broken(..) => Exit::No.hint("repair it with: git arborist worktree repair"),
            Self::Inside(_) => Exit::No.hint("leave the worktree, then run the same command again"),
            Self::Dirty { .. } => Exit::No
                .hint("commit them, or use --force to save them under a ref and remove the worktree"),
            Self::SetUp { .. } => {
                Exit::No.hint("correct worktree.setup, then run the same command again")
            }
            Self::Elsewhere { path, .. } => Exit::Person.hint(format!(
                "remove that worktree with: git worktree remove {}",
                shell_word(&path.to_string_lossy())
            )),
            Self::Occupied(_) => {
                Exit::Person.hint("move it away, or choose another folder with worktree.base")
            }
            Self::OtherBase { .. } => Exit::Person
                .hint("continue it without --base, then update it with: git arborist worktree sync"),
            Self::Nested { .. } => Exit::Person.hint("choose another folder with worktree.base"),
            Self::SavedElsewhere { at, name, .. } => {
                Exit::Person.hint(format!("see it with: git diff {} {name}", at.short()))
            }
            Self::Embedded { .. } => Exit::Person.hint("commit its work, or move it out of the worktree"),
            Self::Bare => Exit::Fatal.hint("clone it, and run this in the clone"),
            Self::Unborn(_) => {
                Exit::Fatal.hint("make a first commit: git commit --allow-empty -m 'first commit'")
            }
            Self::Space { .. } => Exit::Fatal
                .hint("free some with: git arborist cleanup --reclaim\nor lower worktree.min-free"),
            Self::File { .. } => Exit::Fatal.into(),
        }
    }
}
