//! Finds operations in progress in a worktree, such as a rebase. A branch that is being rebased or bisected is not
//! checked out anywhere, but must be left alone too.

use std::path::Path;

use crate::{
    git::{GitError, Repository},
    name::{BranchName, Oid},
    safe_files,
};

/// An operation in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationInProgress {
    /// Its name.
    pub what: &'static str,
    /// The branches that it is about and that are not checked out.
    pub branches: Vec<BranchName>,
}

/// An unfinished operation that was ended by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOperation {
    /// Its name.
    pub what: &'static str,
    /// The commit that it was about.
    pub with: Option<Oid>,
    /// The commit with the changes that it had stashed.
    pub stashed: Option<Oid>,
}

/// Files of a worktree's git directory, and the operations that they belong to.
const SIGNS: [(&str, &str); 7] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_START", "bisect"),
];
/// The files with the commit that is merged or picked, and those with the stash of the operation.
const COMMIT_FILES: [&str; 3] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];
const STASH_FILES: [&str; 3] = ["MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"];
/// Not an operation, but a worktree with refs of its own is in use.
const OWN_REFS: (&str, &str) = ("refs/worktree", "work in refs of that worktree");

/// Files that contain the names of branches.
const BRANCH_FILES: [&str; 4] =
    ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"];

impl OperationInProgress {
    /// Whatever is in progress in the worktree of this git directory.
    #[must_use]
    pub fn find(git_dir: &Path) -> Option<Self> {
        Self::find_sign(git_dir, SIGNS.iter().chain([&OWN_REFS]))
    }

    /// Like [`Self::find`], for operations only: merges, rebases and so on, which a commit would disturb.
    #[must_use]
    pub fn find_operation(git_dir: &Path) -> Option<Self> {
        Self::find_sign(git_dir, SIGNS.iter())
    }

    fn find_sign<'a>(
        git_dir: &Path,
        mut signs: impl Iterator<Item = &'a (&'static str, &'static str)>,
    ) -> Option<Self> {
        let (_, what) = signs.find(|(file, _)| git_dir.join(file).symlink_metadata().is_ok())?;
        let texts = BRANCH_FILES.iter().filter_map(|name| safe_files::read_text(&git_dir.join(name)).ok());
        let branches =
            texts.flat_map(|text| text.lines().filter_map(branch_of).collect::<Vec<_>>()).collect();
        Some(Self { what, branches })
    }
}

impl Repository {
    /// Ends unfinished operations in a worktree, if git can. `HEAD`, index and files stay as they are. Their stashes
    /// are removed first: git would turn them into the user's newest stash.
    pub fn quit_operations(&self) -> Result<Vec<EndedOperation>, GitError> {
        let mut ended = Vec::new();
        // One operation may hide another, but there are no more than signs.
        for _ in SIGNS {
            let Some(OperationInProgress { what, .. }) = OperationInProgress::find_operation(&self.git_dir)
            else {
                break;
            };
            let is_mailbox = self.git_dir.join("rebase-apply/applying").symlink_metadata().is_ok();
            ended.push(EndedOperation {
                what,
                with: self.read_id(&COMMIT_FILES),
                stashed: self.read_id(&STASH_FILES),
            });
            STASH_FILES.iter().for_each(|name| drop(safe_files::remove(&self.git_dir.join(name))));
            let command = match what {
                // This checks out the commit that is checked out already.
                "bisect" => self.change("bisect").args(["reset", "HEAD"]),
                "rebase" if is_mailbox => self.change("am").arg("--quit"),
                _ => self.change(what).arg("--quit"),
            };
            if !command.finish()?.status.success() {
                break;
            }
        }
        Ok(ended)
    }

    /// The object id in the first of these files of the git directory.
    fn read_id(&self, names: &[&str]) -> Option<Oid> {
        let texts = names.iter().filter_map(|name| safe_files::read_text(&self.git_dir.join(name)).ok());
        texts.filter_map(|text| text.lines().next()?.trim().parse().ok()).next()
    }
}

/// The branch in a line: a full ref name, or a short name, as `git bisect` writes it.
fn branch_of(line: &str) -> Option<BranchName> {
    let line = line.trim();
    line.strip_prefix("refs/heads/").unwrap_or(line).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebase_is_found_with_its_branch_and_its_update_refs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(OperationInProgress::find(folder.path()), None);
        std::fs::create_dir(folder.path().join("rebase-merge")).unwrap();
        std::fs::write(folder.path().join("rebase-merge/head-name"), "refs/heads/a/b\n").unwrap();
        std::fs::write(folder.path().join("rebase-merge/update-refs"), "refs/heads/c\n1234\n5678\n").unwrap();
        let found = OperationInProgress::find(folder.path()).unwrap();
        assert_eq!(found.what, "rebase");
        for name in ["a/b", "c"] {
            assert!(found.branches.contains(&name.parse().unwrap()), "{found:?}");
        }
    }
}
