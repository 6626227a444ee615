//! Branches of remotes: taking away those that are where we believe them to be.

use super::{GitError, Network, Pushed, RemoteError, Repository, command::checked};
use crate::name::Oid;

/// So many go in one push: there may be more of them than arguments may be.
const AT_ONCE: usize = 200;

impl Repository {
    /// The names of all remotes.
    pub fn list_remotes(&self) -> Result<Vec<String>, GitError> {
        let printed = self.git("remote").stdout()?;
        Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
    }

    /// Deletes branches of a remote, each only if it is still at this commit. Gives the reason for each that stayed.
    pub fn delete_remote_branches(
        &self,
        remote: &str,
        branches: &[(String, Oid)],
        network: &Network,
    ) -> Result<Vec<Option<String>>, GitError> {
        let mut fates = Vec::new();
        for part in branches.chunks(AT_ONCE) {
            let lease = |(name, tip): &(String, Oid)| format!("--force-with-lease={name}:{tip}");
            let leases: Vec<String> = part.iter().map(lease).collect();
            let refspecs = part.iter().map(|(name, _)| format!(":{name}")).collect();
            let (rows, otherwise) = match self.push((remote, &leases, refspecs), network) {
                Ok(rows) => (rows, "it was not told".to_owned()),
                Err(RemoteError::Unreached { why, .. }) => (Vec::new(), why),
                Err(RemoteError::Git(error)) => return Err(error),
            };
            fates.extend(part.iter().map(|(name, _)| fate_of(&rows, name, &otherwise)));
        }
        Ok(fates)
    }

    /// Forgets what is configured for branches that are gone.
    pub fn forget_branch_settings(&self, name: &str) -> Result<(), GitError> {
        let ended = self.change("config").args(["--local", "--remove-section"]).arg(format!("branch.{name}"));
        let ended = ended.finish()?;
        match ended.status.code() {
            Some(0 | 128) => Ok(()),
            _ => checked("config", ended).map(drop),
        }
    }
}

/// Why a branch stayed, if it did.
fn fate_of(rows: &[Pushed], name: &str, otherwise: &str) -> Option<String> {
    match rows.iter().find(|row| row.name == name) {
        Some(row) => row.refused.clone(),
        None => Some(otherwise.to_owned()),
    }
}
