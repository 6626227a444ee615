//! Errors of workspaces.

use std::{io, path::PathBuf};

use super::RepoSection;
use crate::{
    failure::{Exit, Explain, Explanation},
    git::{GitError, RemoteError},
    history::HistoryError,
    name::{NameError, RepoName},
    process::shell_word,
    session::SessionError,
};

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("the session has no branch in '{name}': {source}")]
    NoSessionBranch { name: RepoName, source: NameError },
    #[error("{place}: '{key}' {what}")]
    Wrong { place: String, key: String, what: String },
    #[error("'{}' and '{}' are the same repository, '{}'", names[0], names[1], path.display())]
    SamePath { names: [RepoName; 2], path: PathBuf },
    #[error("'{name}' is at '{}', which is a worktree of '{of}' and not another repository", path.display())]
    OwnWorktree { name: RepoName, of: RepoName, path: PathBuf },
    #[error("the repository '{name}' does not exist at '{}', and cannot be cloned, because workspace.repos.{name}.remote is not set", path.display())]
    Missing { name: RepoName, path: PathBuf },
    #[error("the repository '{name}' has not been cloned to '{}' yet", path.display())]
    NotCloned { name: RepoName, path: PathBuf },
    #[error("'{name}' cannot be used, because '{}' is a broken symbolic link (workspace.repos.{name}.path)", path.display())]
    Dangling { name: RepoName, path: PathBuf },
    #[error("'{}' is not a repository, so '{name}' cannot be used (workspace.repos.{name}.path)", path.display())]
    NoRepository { name: RepoName, path: PathBuf },
    #[error("'{}' is a bare repository, and '{name}' needs a checkout to be worked in (workspace.repos.{name}.path)", path.display())]
    Bare { name: RepoName, path: PathBuf },
    #[error("'{}' has no remote '{remote}' (workspace.repos.{name}.remote)", path.display())]
    NoRemote { name: RepoName, remote: String, path: PathBuf },
    #[error("the repository '{name}' at '{}' has no commits yet", path.display())]
    Empty { name: RepoName, path: PathBuf },
    #[error("{}", no_push_remote(.name, *.is_configured))]
    NowhereToPush {
        name: RepoName,
        /// Whether it has settings below `workspace.repos`.
        is_configured: bool,
        /// A remote that git knows there.
        remote: Option<String>,
        /// The arguments with which git pushes the branch that is checked out there.
        push: Option<String>,
    },
    #[error("the workspace has no repository '{name}'")]
    Unknown { name: String, hint: String },
    #[error("could not {doing} '{}': {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
}

impl WorkspaceError {
    /// The error for a missing repository: whether it could be cloned or not.
    #[must_use]
    pub fn absent(section: &RepoSection) -> Self {
        let (name, path) = (section.name.clone(), section.path.clone());
        if section.remote.is_some() { Self::NotCloned { name, path } } else { Self::Missing { name, path } }
    }
}

fn no_push_remote(name: &RepoName, is_configured: bool) -> String {
    match is_configured {
        true => format!("'{name}' has no remote to push to (workspace.repos.{name}.remote)"),
        false => {
            format!("no workspace is configured for '{name}', so 'workspace push' has no remote to push to")
        }
    }
}

impl Explain for WorkspaceError {
    /// If the configuration names something that cannot be used, the exit code is 1.
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Remote(error) => error.explain(),
            Self::History(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Missing { name, .. } => Exit::No
                .hint(format!("clone it to that folder, or set workspace.repos.{name}.remote to its URL")),
            Self::OwnWorktree { name, .. } => Exit::No.hint(format!(
                "name the path of another repository as workspace.repos.{name}.path, or remove the section"
            )),
            Self::NotCloned { .. } => Exit::No.hint("clone it with: git arborist workspace sync"),
            Self::Dangling { name, .. } | Self::NoRepository { name, .. } => {
                Exit::No.hint(format!("move it away, or set workspace.repos.{name}.path to another path"))
            }
            Self::Bare { name, path } => Exit::No.hint(format!(
                "choose a path that does not exist yet, and set workspace.repos.{name}.remote = \"{}\"",
                path.display()
            )),
            Self::NowhereToPush { name, is_configured, remote, push } => {
                let key = format!("git config arborist.workspace.repos.{name}");
                let path = if *is_configured { String::new() } else { format!("{key}.path . && ") };
                let named = remote.as_ref().map_or_else(|| "<url>".into(), |remote| shell_word(remote));
                let name_it = format!("name its remote: {path}{key}.remote {named}");
                let what = format!("push the branches and records of sessions from '{name}'");
                Exit::No.hint(match push {
                    Some(push) => {
                        format!("to push only your branch, run: git {push}\nto {what}, {name_it}")
                    }
                    None => format!("to {what}, {name_it}"),
                })
            }
            Self::Unknown { hint, .. } => Exit::No.hint(hint),
            Self::NoRemote { .. } | Self::Wrong { .. } | Self::SamePath { .. } => Exit::No.into(),
            Self::Empty { path, .. } => Exit::Fatal.hint(format!(
                "make a first commit: git -C {} commit --allow-empty -m 'first commit'",
                shell_word(&path.to_string_lossy())
            )),
            Self::NoSessionBranch { .. } | Self::File { .. } => Exit::Fatal.into(),
        }
    }
}
