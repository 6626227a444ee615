//! Differences between commits, as text. Nothing that the repository configures is run for them.

use super::{GitCommand, GitError, Repository};
use crate::name::Oid;

impl Repository {
    /// The change from one commit to another, and its paths with how much of each.
    pub fn diff(&self, from: Oid, to: Oid) -> Result<(String, String), GitError> {
        let command =
            self.git("diff-tree").args(["-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"]);
        let printed = command.arg("--patch-with-stat").args([from.to_string(), to.to_string()]).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        // Every line of the stat begins with a space.
        let begin = if text.starts_with("diff --git ") { Some(0) } else { text.find("\ndiff --git ") };
        let (stat, patch) = text.split_at(begin.unwrap_or(text.len()));
        Ok((patch.trim_start_matches('\n').to_owned(), stat.to_owned()))
    }

    /// Whether a path that these pathspecs name differs between two commits or trees. They count from the top.
    pub fn touches(&self, from: Oid, to: Oid, paths: &[&str]) -> Result<bool, GitError> {
        let command = self.pin(GitCommand::reading("diff-tree", self.top()));
        let command = command.args(["-r", "--quiet", "--no-ext-diff"]);
        Ok(command.args([from.to_string(), to.to_string()]).arg("--").args(paths).answer()?.is_none())
    }
}
