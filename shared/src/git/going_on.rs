//! What somebody is in the middle of in a worktree: a branch that is being rebased or bisected is checked out nowhere,
//! and must be left alone all the same.

use std::path::Path;

use super::{GitError, Repository};
use crate::{
    name::{BranchName, Oid},
    safe_files,
};

/// Something that is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoingOn {
    /// What it is, in a word.
    pub what: &'static str,
    /// The branches that it is about, as far as they are not checked out.
    pub branches: Vec<BranchName>,
}

/// Something that was ended for whoever left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOperation {
    /// What it was, in a word.
    pub what: &'static str,
    /// The commit that it was about.
    pub with: Option<Oid>,
    /// The commit that holds what it had put aside.
    pub stashed: Option<Oid>,
}

/// Files of a worktree's git directory, and what they tell of.
const SIGNS: [(&str, &str); 7] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_START", "bisect"),
];
/// What is merged or picked, and what was put aside meanwhile.
const WITH: [&str; 3] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];
const STASHED: [&str; 3] = ["MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"];
/// No operation, but a worktree that has refs of its own is in use.
const OWN_REFS: (&str, &str) = ("refs/worktree", "work that refs of its own lead to");

/// Where the names of branches stand.
const NAMES: [&str; 4] =
    ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"];

impl GoingOn {
    /// What goes on in the worktree of this git directory, if anything does.
    #[must_use]
    pub fn find(git_dir: &Path) -> Option<Self> {
        Self::find_sign(git_dir, SIGNS.iter().chain([&OWN_REFS]))
    }

    /// The same for operations alone: a merge, a rebase and the like, which a commit would disturb.
    #[must_use]
    pub fn find_operation(git_dir: &Path) -> Option<Self> {
        Self::find_sign(git_dir, SIGNS.iter())
    }

    fn find_sign<'a>(
        git_dir: &Path,
        mut signs: impl Iterator<Item = &'a (&'static str, &'static str)>,
    ) -> Option<Self> {
        let (_, what) = signs.find(|(file, _)| git_dir.join(file).symlink_metadata().is_ok())?;
        let texts = NAMES.iter().filter_map(|name| safe_files::read_text(&git_dir.join(name)).ok());
        let branches =
            texts.flat_map(|text| text.lines().filter_map(branch_of).collect::<Vec<_>>()).collect();
        Some(Self { what, branches })
    }
}

impl Repository {
    /// Ends what somebody left unfinished in a worktree, as far as git can, and leaves `HEAD`, index and files as they are.
    /// What it had stashed would come back as the user's newest stash: nobody holds on to that any more.
    pub fn quit_operations(&self) -> Result<Vec<EndedOperation>, GitError> {
        let mut ended = Vec::new();
        // One may hide another, but each sign stands for one.
        for _ in SIGNS {
            let Some(GoingOn { what, .. }) = GoingOn::find_operation(&self.git_dir) else {
                break;
            };
            let is_mailbox = self.git_dir.join("rebase-apply/applying").symlink_metadata().is_ok();
            ended.push(EndedOperation { what, with: self.read_id(&WITH), stashed: self.read_id(&STASHED) });
            STASHED.iter().for_each(|name| drop(safe_files::remove(&self.git_dir.join(name))));
            let command = match what {
                // This checks out what is checked out already.
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

    /// The object that the first of these files of the git directory names.
    fn read_id(&self, names: &[&str]) -> Option<Oid> {
        let texts = names.iter().filter_map(|name| safe_files::read_text(&self.git_dir.join(name)).ok());
        texts.filter_map(|text| text.lines().next()?.trim().parse().ok()).next()
    }
}

/// A full name, or what `git bisect` writes: a short one.
fn branch_of(line: &str) -> Option<BranchName> {
    let line = line.trim();
    line.strip_prefix("refs/heads/").unwrap_or(line).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebase_names_its_branch_and_those_that_follow_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(GoingOn::find(folder.path()), None);
        std::fs::create_dir(folder.path().join("rebase-merge")).unwrap();
        std::fs::write(folder.path().join("rebase-merge/head-name"), "refs/heads/a/b\n").unwrap();
        std::fs::write(folder.path().join("rebase-merge/update-refs"), "refs/heads/c\n1234\n5678\n").unwrap();
        let found = GoingOn::find(folder.path()).unwrap();
        assert_eq!(found.what, "rebase");
        for name in ["a/b", "c"] {
            assert!(found.branches.contains(&name.parse().unwrap()), "{found:?}");
        }
    }
}
