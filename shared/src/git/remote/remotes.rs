//! Finds and lists remotes without network, and deletes branches of remotes that have not moved.

use crate::{
    git::{GitError, Network, Pushed, RemoteError, Repository, command::checked},
    name::{BranchName, Oid},
};

/// How many branches are deleted by one push, because of the limit for arguments.
const MAX_PER_PUSH: usize = 200;

impl Repository {
    /// The name of the remote with this name or URL.
    pub fn find_remote(&self, remote: &str) -> Result<Option<String>, GitError> {
        let listing = self.git("config").args(["-z", "--get-regexp", r"^remote\..*\.url$"]);
        let printed = listing.answer()?.unwrap_or_default();
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

    /// The default branch of a remote when it was cloned.
    pub fn find_remote_head(&self, remote: &str) -> Result<Option<BranchName>, GitError> {
        let name = format!("refs/remotes/{remote}/HEAD");
        let printed = self.git("symbolic-ref").args(["-q", &name]).finish()?;
        let text = String::from_utf8_lossy(&printed.stdout);
        let branch = text.trim_end().strip_prefix(&format!("refs/remotes/{remote}/"));
        Ok(branch.filter(|_| printed.status.success()).and_then(|branch| branch.parse().ok()))
    }

    /// The best common ancestor of two commits, if there is one in this clone.
    pub fn find_merge_base(&self, a: Oid, b: Oid) -> Result<Option<Oid>, GitError> {
        let printed = self.git("merge-base").args([a.to_string(), b.to_string()]).answer()?;
        Ok(printed.and_then(|bytes| String::from_utf8_lossy(&bytes).trim().parse().ok()))
    }

    /// The names of all remotes.
    pub fn list_remotes(&self) -> Result<Vec<String>, GitError> {
        let printed = self.git("remote").stdout()?;
        Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
    }

    /// Deletes branches of a remote, each only if it is still at this commit. Returns the reason for each that was not
    /// deleted.
    pub fn delete_remote_branches(
        &self,
        remote: &str,
        branches: &[(String, Oid)],
        network: &Network,
    ) -> Result<Vec<Option<String>>, GitError> {
        let mut reasons = Vec::new();
        for part in branches.chunks(MAX_PER_PUSH) {
            let lease = |(name, tip): &(String, Oid)| format!("--force-with-lease={name}:{tip}");
            let leases: Vec<String> = part.iter().map(lease).collect();
            let refspecs = part.iter().map(|(name, _)| format!(":{name}")).collect();
            let (rows, otherwise) = match self.push(remote, &leases, refspecs, network) {
                Ok(rows) => (rows, "the reason is not known".to_owned()),
                Err(RemoteError::Unreached { why, .. }) => (Vec::new(), why),
                Err(RemoteError::Git(error)) => return Err(error),
            };
            reasons.extend(part.iter().map(|(name, _)| reason_of(&rows, name, &otherwise)));
        }
        Ok(reasons)
    }

    /// Removes the settings of a deleted branch.
    pub fn forget_branch_settings(&self, name: &str) -> Result<(), GitError> {
        let ended = self.change("config").args(["--local", "--remove-section"]).arg(format!("branch.{name}"));
        let ended = ended.finish()?;
        match ended.status.code() {
            Some(0 | 128) => Ok(()),
            _ => checked("config", ended).map(drop),
        }
    }
}

/// Why a branch was not deleted, if it was not.
fn reason_of(rows: &[Pushed], name: &str, otherwise: &str) -> Option<String> {
    match rows.iter().find(|row| row.name == name) {
        Some(row) => row.refused.clone(),
        None => Some(otherwise.to_owned()),
    }
}
