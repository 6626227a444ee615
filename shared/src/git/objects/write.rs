//! Writes objects and refs, through git and never by force. No hooks run here; callers that want them run them.

use std::path::Path;

use crate::{
    git::{GitCommand, GitError, RawCommit, Repository, objects::odb::StoredKind},
    name::{ObjectFormat, ObjectKind, Oid},
};

/// A commit to write.
#[derive(Debug, Clone, Copy)]
pub struct NewCommit<'a> {
    /// Its tree.
    pub tree: Oid,
    /// Its parent.
    pub parent: Oid,
    /// Its message, written unchanged.
    pub message: &'a str,
    /// The name of the agent that wrote its changes; `None` for the user.
    pub author: Option<&'a str>,
}

/// A compare-and-swap of a ref.
#[derive(Debug, Clone, Copy)]
pub struct RefMove<'a> {
    /// The full name.
    pub name: &'a str,
    /// The new value; `None` deletes the ref.
    pub new: Option<Oid>,
    /// The expected old value; `None` if it must not exist.
    pub old: Option<Oid>,
}

impl Repository {
    /// A git command that changes something and runs no hooks.
    #[must_use]
    pub fn change(&self, name: &str) -> GitCommand {
        self.change_with(name, &[])
    }

    /// Like [`Self::change`], with settings for this call.
    pub(in crate::git) fn change_with(&self, name: &str, settings: &[&str]) -> GitCommand {
        self.pin_changing(GitCommand::changing(name, self.top(), settings))
    }

    /// The base of relative paths: the top of the worktree, or else the git directory.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.worktree.as_deref().unwrap_or(&self.git_dir)
    }

    /// Writes a commit.
    pub fn write_commit(&self, commit: NewCommit<'_>, signing: Signing) -> Result<Oid, GitError> {
        let NewCommit { tree, parent, message, author } = commit;
        self.write_authored(author, tree, &[parent], message, signing)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: Oid) -> Result<Oid, GitError> {
        self.find_tree(commit)?.ok_or_else(|| GitError::Unknown(commit.to_string(), "commit"))
    }

    /// The tree of a commit; `None` if the commit does not exist.
    pub(in crate::git) fn find_tree(&self, commit: Oid) -> Result<Option<Oid>, GitError> {
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

/// The moves as lines for `update-ref --stdin`.
pub(in crate::git) fn lines_of_moves(format: ObjectFormat, moves: &[RefMove<'_>]) -> String {
    let nothing = "0".repeat(format.hex_len());
    let shown = |id: Option<Oid>| id.map_or_else(|| nothing.clone(), |id| id.to_string());
    // Any process can turn a ref into a symbolic one. The ref itself is moved, never its target.
    let line = |RefMove { name, new, old }: &RefMove<'_>| {
        format!("option no-deref\nupdate {name} {} {}\n", shown(*new), shown(*old))
    };
    moves.iter().map(line).collect()
}

/// Whether a commit is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// As `arborist.sign` or, for commits, `commit.gpgSign` says.
    AsConfigured,
    /// Never.
    No,
}

pub(in crate::git) fn id_of(command: &str, printed: &[u8]) -> Result<Oid, GitError> {
    let text = String::from_utf8_lossy(printed);
    text.trim().parse().map_err(|_| GitError::unexpected(command, text.trim()))
}
