//! The branch of a remote that a branch follows.

use super::{GitCommand, GitError, Repository, command::without_prefix};
use crate::name::{BranchName, Oid};

/// What a branch follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The remote's name.
    pub remote: String,
    /// The branch's ref there.
    there: String,
    /// The ref that tells here where it was last seen.
    here: String,
}

impl Upstream {
    /// As people write it: `origin/main`.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.here.strip_prefix("refs/remotes/").unwrap_or(&self.here)
    }
}

/// A server that does not answer must not keep us for long.
const PATIENCE: [&str; 2] = ["http.lowSpeedLimit=1000", "http.lowSpeedTime=20"];
/// ssh would ask on the terminal.
const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=10";

impl Repository {
    /// The branch of a remote that `branch` follows, if it does.
    pub fn find_upstream(&self, branch: &BranchName) -> Result<Option<Upstream>, GitError> {
        let format = "--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(upstream)";
        let printed = self.git("for-each-ref").arg(format).arg(branch.to_ref()).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        let fields: Vec<&str> = text.lines().next().unwrap_or_default().split('\0').collect();
        Ok(match fields[..] {
            [remote, there, here] if !remote.is_empty() && remote != "." && !here.is_empty() => {
                Some(Upstream { remote: remote.into(), there: there.into(), here: here.into() })
            }
            _ => None,
        })
    }

    /// Asks the remote where the branch is now. `Err` inside is git's reason why it could not be asked.
    pub fn fetch_upstream(&self, upstream: &Upstream) -> Result<Result<Oid, String>, GitError> {
        let command = self.with_ssh(self.change_with("fetch", &PATIENCE))?;
        let command =
            command.args(["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let ended = command.args(["--", &upstream.remote, &upstream.there]).finish()?;
        if !ended.status.success() {
            let complaint = without_prefix(&ended.complaint());
            return Ok(Err(complaint.lines().next().unwrap_or_default().to_owned()));
        }
        self.require_commit(&upstream.here).map(Ok)
    }

    /// The same with an ssh that asks nothing, unless the user has chosen one.
    fn with_ssh(&self, command: GitCommand) -> Result<GitCommand, GitError> {
        Ok(if self.has_no_ssh_command()? { command.env("GIT_SSH_COMMAND", SSH) } else { command })
    }

    fn has_no_ssh_command(&self) -> Result<bool, GitError> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if is_set("GIT_SSH_COMMAND") || is_set("GIT_SSH") {
            return Ok(false);
        }
        Ok(self.git("config").args(["--get", "core.sshCommand"]).answer()?.is_none())
    }
}
