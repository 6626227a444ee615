//! What changes a repository: objects and refs, by git itself, never by force. No hooks run here: they are asked
//! for by those who want them.

use std::path::Path;

use super::{GitCommand, GitError, RawCommit, Repository, odb::StoredKind};
use crate::name::{ObjectFormat, ObjectKind, Oid};

/// A commit to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewCommit<'a> {
    /// What it holds.
    pub tree: Oid,
    /// What it follows.
    pub parent: Oid,
    /// Its message, written as it is.
    pub message: &'a str,
    /// The agent that made what it holds, by name; `None` for the user.
    pub author: Option<&'a str>,
}

/// A move of a ref that is refused unless the ref is where we believe it to be.
#[derive(Debug, Clone, Copy)]
pub struct RefMove<'a> {
    /// The full name.
    pub name: &'a str,
    /// Where it goes; `None` deletes it.
    pub new: Option<Oid>,
    /// Where it must be; `None` if it must not exist.
    pub old: Option<Oid>,
}

impl Repository {
    /// A call of git that changes something and runs no hooks.
    #[must_use]
    pub fn change(&self, name: &str) -> GitCommand {
        self.change_with(name, &[])
    }

    /// The same with settings for this one call.
    pub(super) fn change_with(&self, name: &str, settings: &[&str]) -> GitCommand {
        self.pin_changing(GitCommand::changing(name, self.top(), settings))
    }

    /// Where paths begin: the top of the worktree, else the git directory.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.worktree.as_deref().unwrap_or(&self.git_dir)
    }

    /// Writes a commit. It is signed if the user's commits are.
    pub fn write_commit(&self, commit: NewCommit<'_>, signing: Signing) -> Result<Oid, GitError> {
        let NewCommit { tree, parent, message, author } = commit;
        self.write_authored(author, (tree, &[parent]), message, signing)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: Oid) -> Result<Oid, GitError> {
        self.find_tree(commit)?.ok_or_else(|| GitError::Unknown(commit.to_string(), "commit"))
    }

    /// The same; `None` if the commit is not here.
    pub(super) fn find_tree(&self, commit: Oid) -> Result<Option<Oid>, GitError> {
        let Some(found) = self.find_object(commit, "commit")? else { return Ok(None) };
        match found.kind {
            StoredKind::Known(ObjectKind::Commit) => Ok(RawCommit::new(commit, found.content).tree()),
            StoredKind::Known(ObjectKind::Tree) => Ok(Some(commit)),
            StoredKind::Known(ObjectKind::Blob) => Ok(None),
            StoredKind::Tag => {
                let command = self.git("rev-parse").args(["--verify", "--end-of-options"]);
                id_of("rev-parse", &command.arg(format!("{commit}^{{tree}}")).stdout()?).map(Some)
            }
        }
    }

    /// Stores a blob.
    pub fn write_blob(&self, content: &[u8]) -> Result<Oid, GitError> {
        self.write_object(ObjectKind::Blob, content)
    }
}

/// As `update-ref --stdin` reads them.
pub(super) fn lines_of_moves(format: ObjectFormat, moves: &[RefMove<'_>]) -> String {
    let nothing = "0".repeat(format.hex_len());
    let shown = |id: Option<Oid>| id.map_or_else(|| nothing.clone(), |id| id.to_string());
    // Anybody can make a ref lead to another one at any moment. The ref itself is moved, never what it leads to.
    let line = |RefMove { name, new, old }: &RefMove<'_>| {
        format!("option no-deref\nupdate {name} {} {}\n", shown(*new), shown(*old))
    };
    moves.iter().map(line).collect()
}

/// Whether a commit is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// `commit.gpgSign` asks for it.
    AsConfigured,
    /// It does not.
    No,
}

pub(super) fn id_of(command: &str, printed: &[u8]) -> Result<Oid, GitError> {
    let text = String::from_utf8_lossy(printed);
    text.trim()
        .parse()
        .map_err(|_| GitError::Strange { command: command.to_owned(), what: text.trim().to_owned() })
}
