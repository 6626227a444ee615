//! Finds and fetches the upstream of a branch, and counts how many commits branches are ahead and behind.

use crate::{
    git::{GitCommand, GitError, GitVersion, Ref, Repository, command::without_prefix},
    name::{BranchName, Oid},
};

/// The upstream of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The remote's name.
    pub remote: String,
    /// The ref of the branch at the remote.
    remote_ref: String,
    /// The remote-tracking ref in this repository.
    tracking_ref: String,
}

impl Upstream {
    /// The name for display: `origin/main`.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.tracking_ref.strip_prefix("refs/remotes/").unwrap_or(&self.tracking_ref)
    }
}

/// Gives up on servers that do not answer.
const HTTP_TIMEOUT: [&str; 2] = ["http.lowSpeedLimit=1000", "http.lowSpeedTime=20"];
/// ssh must not ask on the terminal.
const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=10";

impl Repository {
    /// The upstream of `branch`, if it has one.
    pub fn find_upstream(&self, branch: &BranchName) -> Result<Option<Upstream>, GitError> {
        let format = "--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(upstream)";
        let text = self.git("for-each-ref").arg(format).arg(branch.to_ref()).text()?;
        let fields: Vec<&str> = text.lines().next().unwrap_or_default().split('\0').collect();
        Ok(match fields[..] {
            [remote, remote_ref, tracking_ref]
                if !remote.is_empty() && remote != "." && !tracking_ref.is_empty() =>
            {
                Some(Upstream {
                    remote: remote.into(),
                    remote_ref: remote_ref.into(),
                    tracking_ref: tracking_ref.into(),
                })
            }
            _ => None,
        })
    }

    /// The remotes that have `branch`, as far as this clone knows: that of its upstream, and `usual` if the branch was
    /// fetched from there or pushed to it.
    pub fn find_remotes_of(&self, branch: &BranchName, usual: &str) -> Result<Vec<String>, GitError> {
        let mut remotes: Vec<String> =
            self.find_upstream(branch)?.map(|found| found.remote).into_iter().collect();
        let is_listed = remotes.iter().any(|remote| remote == usual);
        if !is_listed && self.find_ref(&format!("refs/remotes/{usual}/{branch}"))?.is_some() {
            remotes.push(usual.to_owned());
        }
        Ok(remotes)
    }

    /// Fetches the upstream and returns its tip. `Err` inside is git's reason why that failed.
    pub fn fetch_upstream(&self, upstream: &Upstream) -> Result<Result<Oid, String>, GitError> {
        let command = self.with_ssh(self.change_with("fetch", &HTTP_TIMEOUT))?;
        let command =
            command.args(["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let ended = command.args(["--", &upstream.remote, &upstream.remote_ref]).finish()?;
        if !ended.status.success() {
            let complaint = without_prefix(&ended.complaint());
            return Ok(Err(complaint.lines().next().unwrap_or_default().to_owned()));
        }
        self.require_commit(&upstream.tracking_ref).map(Ok)
    }

    /// The command with an ssh that asks nothing, unless the user has set another one.
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

/// How many commits each side has that the other lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Commits that only the branch has.
    pub ahead: u64,
    /// Commits that it lacks.
    pub behind: u64,
}

impl Repository {
    /// The refs below `prefix`, and the distance of each from `other`.
    pub fn distances(&self, prefix: &str, other: Oid) -> Result<Vec<(Ref, Distance)>, GitError> {
        if self.version < GitVersion::AHEAD_BEHIND {
            let refs = self.list_refs(&[prefix])?.into_iter();
            let with_distance = |found: Ref| self.distance(found.target, other).map(|far| (found, far));
            return refs.map(with_distance).collect();
        }
        let format = format!("--format=%(ahead-behind:{other}) %(objectname) %(refname)");
        let text = self.git("for-each-ref").arg(format).arg(prefix).text()?;
        text.lines()
            .map(|line| parse_line(line).ok_or_else(|| GitError::unexpected("for-each-ref", line.trim())))
            .collect()
    }

    /// The distance of `tip` from `other`.
    pub fn distance(&self, tip: Oid, other: Oid) -> Result<Distance, GitError> {
        let command = self.git("rev-list").args(["--left-right", "--count"]);
        let text = command.arg(format!("{tip}...{other}")).text()?;
        parse(text.split_ascii_whitespace()).ok_or_else(|| GitError::unexpected("rev-list", text.trim()))
    }
}

fn parse_line(line: &str) -> Option<(Ref, Distance)> {
    let mut words = line.splitn(4, ' ');
    let distance = parse(words.by_ref().take(2))?;
    let target = words.next()?.parse().ok()?;
    Some((Ref { name: words.next()?.to_owned(), target }, distance))
}

fn parse<'a>(mut numbers: impl Iterator<Item = &'a str>) -> Option<Distance> {
    let mut next = || numbers.next()?.parse().ok();
    Some(Distance { ahead: next()?, behind: next()? })
}
