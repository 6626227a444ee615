//! Whether tracked files are what a commit has. Tests and gates judge a commit by what lies in a worktree, and whoever else
//! is at work can write there too.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use super::{Change, GitError, Repository, index_entries::FileFacts, write::id_of};
use crate::name::Oid;

impl Repository {
    /// The tracked files that are not what `tree` has. Where the index is known to hold it, one look at each file tells,
    /// and git is not asked.
    pub fn find_tracked_changes(&self, tree: Oid) -> Result<Vec<Change>, GitError> {
        let is_same =
            |(path, facts): (&[u8], FileFacts)| facts.are_of(&self.top().join(OsStr::from_bytes(path)));
        if self.find_entries_of(tree).is_some_and(|entries| entries.facts().all(is_same)) {
            return Ok(Vec::new());
        }
        self.refuse_special()?;
        // Nothing is known of any file in an index that was read from a tree, so each one is read.
        let index = self.private_index("tracked")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        // git would look into submodules, with the settings of whatever repository is there.
        let submodules = index.list_gitlinks()?.into_iter();
        let mut submodules =
            submodules.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat()).peekable();
        let mut command = index.git("add").args(["-u", "--sparse"]);
        // A pathspec that matches nothing is an error, also where nothing is tracked.
        if submodules.peek().is_some() {
            command = command.args(["--", ":/"]).args(submodules.map(OsString::from_vec));
        }
        command.stdout()?;
        let now = id_of("write-tree", &index.git("write-tree").arg("--missing-ok").stdout()?)?;
        let is_sparse = self.git_dir.join("info/sparse-checkout").symlink_metadata().is_ok();
        let is_left_out = |change: &Change| is_sparse && change.after.is_none();
        let changes = self.changes(tree, now)?.into_iter();
        Ok(changes.filter(|change| !change.concerns_gitlink() && !is_left_out(change)).collect())
    }
}
