//! What a repository knows of its remotes without asking them.

use super::{GitError, Repository};
use crate::name::{BranchName, Oid};

impl Repository {
    /// The name of the remote that is called so, or that has this URL.
    pub fn find_remote(&self, remote: &str) -> Result<Option<String>, GitError> {
        let asked = self.git("config").args(["-z", "--get-regexp", r"^remote\..*\.url$"]);
        let printed = asked.answer()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&printed);
        let remotes = || {
            text.split_terminator('\0').filter_map(|entry| {
                let (key, url) = entry.split_once('\n')?;
                Some((key.strip_prefix("remote.")?.strip_suffix(".url")?, url))
            })
        };
        let by_name = remotes().find(|(name, _)| *name == remote);
        Ok(by_name.or_else(|| remotes().find(|(_, url)| *url == remote)).map(|(name, _)| name.to_owned()))
    }

    /// The branch that a remote called its own when it was cloned.
    pub fn find_remote_head(&self, remote: &str) -> Result<Option<BranchName>, GitError> {
        let name = format!("refs/remotes/{remote}/HEAD");
        let printed = self.git("symbolic-ref").args(["-q", &name]).finish()?;
        let text = String::from_utf8_lossy(&printed.stdout);
        let branch = text.trim_end().strip_prefix(&format!("refs/remotes/{remote}/"));
        Ok(branch.filter(|_| printed.status.success()).and_then(|branch| branch.parse().ok()))
    }

    /// The commit where two histories part, if they have one in common here.
    pub fn find_merge_base(&self, a: Oid, b: Oid) -> Result<Option<Oid>, GitError> {
        let printed = self.git("merge-base").args([a.to_string(), b.to_string()]).answer()?;
        Ok(printed.and_then(|bytes| String::from_utf8_lossy(&bytes).trim().parse().ok()))
    }
}
