//! Differences between commits, as text. Nothing that the repository configures is run for them.

use super::{GitError, Repository};
use crate::name::Oid;

impl Repository {
    /// The change from one commit to another.
    pub fn diff(&self, from: Oid, to: Oid) -> Result<String, GitError> {
        self.diff_as("-p", from, to)
    }

    /// The paths of that change, with how much of each.
    pub fn diff_stat(&self, from: Oid, to: Oid) -> Result<String, GitError> {
        self.diff_as("--stat", from, to)
    }

    fn diff_as(&self, form: &str, from: Oid, to: Oid) -> Result<String, GitError> {
        let command =
            self.git("diff-tree").args(["-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color", form]);
        let printed = command.args([from.to_string(), to.to_string()]).stdout()?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}
