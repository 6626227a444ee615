//! Branches of remotes: where they are now, and taking away those that are where we believe them to be.

use super::{
    GitError, Ref, Repository,
    command::{checked, without_prefix},
};
use crate::name::Oid;

/// A server that does not answer must not keep us for long.
const PATIENCE: [&str; 4] =
    ["http.lowSpeedLimit=1000", "http.lowSpeedTime=20", "protocol.ext.allow=never", "push.gpgSign=false"];
/// So many go in one push: there may be more of them than arguments may be.
const AT_ONCE: usize = 200;

impl Repository {
    /// The names of all remotes.
    pub fn list_remotes(&self) -> Result<Vec<String>, GitError> {
        let printed = self.git("remote").stdout()?;
        Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
    }

    /// The branches that a remote has now. `Err` inside is git's reason why it could not be asked.
    pub fn list_remote_branches(&self, remote: &str) -> Result<Result<Vec<Ref>, String>, GitError> {
        let command = self.with_ssh(self.change_with("ls-remote", &PATIENCE))?;
        let ended = command.args(["--quiet", "--heads", "--"]).arg(remote).finish()?;
        if !ended.status.success() {
            return Ok(Err(first_line(&ended.complaint())));
        }
        let text = String::from_utf8_lossy(&ended.stdout);
        let parse = |line: &str| {
            let (target, name) = line.split_once('\t')?;
            Some(Ref { name: name.to_owned(), target: target.parse().ok()? })
        };
        Ok(Ok(text.lines().filter_map(parse).collect()))
    }

    /// Deletes branches of a remote, each only if it is still at this commit. Gives the reason for each that stayed.
    pub fn delete_remote_branches(
        &self,
        remote: &str,
        branches: &[(String, Oid)],
    ) -> Result<Vec<Option<String>>, GitError> {
        let mut fates = Vec::new();
        for part in branches.chunks(AT_ONCE) {
            let leases = part.iter().map(|(name, tip)| format!("--force-with-lease={name}:{tip}"));
            let command = self.with_ssh(self.change_with("push", &PATIENCE))?;
            let command = command.args(["--porcelain", "--no-verify", "--no-follow-tags"]).args(leases);
            let command = command.args(["--", remote]).args(part.iter().map(|(name, _)| format!(":{name}")));
            let ended = command.finish()?;
            let text = String::from_utf8_lossy(&ended.stdout).into_owned();
            let complaint = first_line(&ended.complaint());
            fates.extend(part.iter().map(|(name, _)| fate_of(&text, name, &complaint)));
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

/// Lines `flag TAB from:to TAB words`; `-` is a deletion that was done.
fn fate_of(printed: &str, name: &str, complaint: &str) -> Option<String> {
    let of_name = |line: &&str| line.split('\t').nth(1).is_some_and(|pair| pair == format!(":{name}"));
    match printed.lines().find(of_name) {
        Some(line) if line.starts_with('-') => None,
        Some(line) => Some(line.split('\t').nth(2).unwrap_or("it was refused").to_owned()),
        None => Some(complaint.to_owned()),
    }
}

fn first_line(complaint: &str) -> String {
    without_prefix(complaint).lines().next().unwrap_or_default().to_owned()
}
