//! The settings of one repository of a workspace (`workspace.repos.NAME`).

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::{WorkspaceError, canonical};
use crate::{
    git::{CloneDepth, shown_url},
    name::{BranchName, RepoName, digest},
    settings::{Origin, Settings},
};

/// The default prefix of session branches.
const PREFIX: &str = "arborist/";

/// When a repository is pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushPolicy {
    /// Runs do not push it.
    Never,
    /// Pushed when the run has succeeded.
    OnCompletion,
    /// After each commit.
    OnCheckpoint,
}

impl PushPolicy {
    /// The value of the setting `push`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnCompletion => "on_completion",
            Self::OnCheckpoint => "on_checkpoint",
        }
    }
}

/// A named command of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The command, for a shell.
    pub command: String,
    /// Whether the user or a file of the repository defines it.
    pub origin: Origin,
}

/// One repository of a workspace.
#[derive(Debug, Clone)]
pub struct RepoSection {
    /// Its name, as used in `workspace.repos.NAME`.
    pub name: RepoName,
    /// Its path; a relative path in the settings starts at the top of the plan's repository.
    pub path: PathBuf,
    /// Whether it is the repository that has the plan.
    pub is_main: bool,
    /// Whether it has settings, which is not so for a repository that needs none.
    pub is_configured: bool,
    /// A URL, or the name of a remote.
    pub remote: Option<String>,
    /// The prefix of its session branches.
    pub prefix: String,
    /// When it is pushed.
    pub push: PushPolicy,
    /// How much of it is cloned.
    pub depth: CloneDepth,
    /// The branch that work starts from, if it is configured.
    pub default_branch: Option<BranchName>,
    /// Its named commands.
    pub tools: BTreeMap<String, Tool>,
    /// [`Origin::Repository`] if any of the settings that need approval comes from a file of the repository.
    origin: Origin,
}

impl RepoSection {
    /// The section of the plan's repository if nothing is configured. Runs do not push it.
    pub(super) fn unconfigured(top: &Path, name: RepoName) -> Self {
        Self {
            name,
            path: top.to_owned(),
            is_main: true,
            is_configured: false,
            remote: None,
            prefix: PREFIX.into(),
            push: PushPolicy::Never,
            depth: CloneDepth::Whole,
            default_branch: None,
            tools: BTreeMap::new(),
            origin: Origin::User,
        }
    }

    pub(super) fn read(name: RepoName, top: &Path, settings: &Settings) -> Result<Self, WorkspaceError> {
        let keys = Keys { prefix: format!("workspace.repos.{name}."), settings };
        let written = keys.text("path").ok_or_else(|| keys.wrong("path", "is missing"))?;
        if written.is_empty() || written.contains(|c: char| c.is_control()) {
            return Err(keys.wrong("path", "must be a path"));
        }
        let path = canonical(&join(top, Path::new(written)));
        let remote = keys.text("remote").map(|remote| keys.check_remote(remote, top)).transpose()?;
        let prefix = keys.text("branch-prefix").unwrap_or(PREFIX).to_owned();
        // With 'rel', the user's branch 'release' would be taken for a session branch.
        if !prefix.ends_with('/') || format!("{prefix}a/b").parse::<BranchName>().is_err() {
            return Err(
                keys.wrong("branch-prefix", "must be the beginning of a branch name that ends in '/'")
            );
        }
        let default_branch = keys.text("default-branch").map(str::parse).transpose();
        let default_branch =
            default_branch.map_err(|_| keys.wrong("default-branch", "must be the name of a branch"))?;
        let depth = match settings.count(&keys.full("clone-depth")) {
            None => CloneDepth::Whole,
            Some(0) => return Err(keys.wrong("clone-depth", "must be a number of commits, from 1")),
            Some(count) => CloneDepth::Last(count),
        };
        let push = match (keys.text("push"), &remote) {
            (Some("never"), _) | (None, None) => PushPolicy::Never,
            (Some("on_checkpoint"), _) => PushPolicy::OnCheckpoint,
            (Some(_), _) | (None, Some(_)) => PushPolicy::OnCompletion,
        };
        // A repository that is pushed and names no remote uses `origin`.
        let remote = remote.or_else(|| (push != PushPolicy::Never).then(|| "origin".to_owned()));
        let origin = keys.origin(&["path", "remote", "push", "branch-prefix", "default-branch"]);
        let is_main = path == top;
        Ok(Self {
            tools: keys.tools(),
            name,
            path,
            is_main,
            is_configured: true,
            remote,
            prefix,
            push,
            depth,
            default_branch,
            origin,
        })
    }

    /// Returns a line for the user to approve if a file of the repository asks for access to another path or a remote.
    #[must_use]
    pub fn required_approval(&self) -> Option<String> {
        if self.origin == Origin::User || (self.is_main && self.remote.is_none()) {
            return None;
        }
        let remote = match &self.remote {
            Some(remote) => format!(", remote {}, push {}", distinct_url(remote), self.push.as_str()),
            None => String::new(),
        };
        let mut line = format!("workspace.repos.{}: repository {}{remote}", self.name, self.path.display());
        if self.prefix != PREFIX {
            line += &format!(", branch-prefix {}", self.prefix);
        }
        if let Some(branch) = &self.default_branch {
            line += &format!(", default-branch {branch}");
        }
        Some(line)
    }
}

/// Hides the credentials in a URL, and adds a hash of the whole URL so that an approval holds for this URL only.
fn distinct_url(url: &str) -> String {
    let shown = shown_url(url);
    if shown == url { shown } else { format!("{shown} (sha256 {})", digest(url.as_bytes())) }
}

/// Reads the settings of one repository.
struct Keys<'a> {
    prefix: String,
    settings: &'a Settings,
}

impl Keys<'_> {
    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.settings.text(&self.full(key))
    }

    fn wrong(&self, key: &str, what: &str) -> WorkspaceError {
        let any = || self.settings.keys_below(&self.prefix).next().map(|key| self.full(key));
        let place = self.settings.place(&self.full(key)).map(str::to_owned);
        let place = place.or_else(|| self.settings.place(&any()?).map(str::to_owned)).unwrap_or_default();
        WorkspaceError::Wrong { place, key: self.full(key), what: what.to_owned() }
    }

    /// A single value from a file that others can commit to makes the whole section untrusted.
    fn origin(&self, keys: &[&str]) -> Origin {
        let is_foreign = |key: &&str| self.settings.origin(&self.full(key)) == Some(Origin::Repository);
        if keys.iter().any(is_foreign) { Origin::Repository } else { Origin::User }
    }

    fn tools(&self) -> BTreeMap<String, Tool> {
        let prefix = self.full("tools.");
        let origin =
            |name: &str| self.settings.origin(&format!("{prefix}{name}")).unwrap_or(Origin::Repository);
        let tools = self.settings.below(&prefix).map(|(name, command)| {
            (name.to_owned(), Tool { command: command.to_owned(), origin: origin(name) })
        });
        tools.collect()
    }

    /// Validates a remote and resolves a relative path. A remote helper such as `ext::` runs a program, so only the
    /// user may name one.
    fn check_remote(&self, remote: &str, top: &Path) -> Result<String, WorkspaceError> {
        let wrong = |what: &str| Err(self.wrong("remote", what));
        if remote.is_empty() || remote.starts_with('-') || remote.contains(|c: char| c.is_control()) {
            return wrong("must be the URL of a repository, or the name of a remote");
        }
        let host = remote.split_once("://").map_or(remote, |(_, rest)| rest);
        if host.starts_with('-') || host.contains("@-") {
            return wrong("must not have a host that begins with '-'");
        }
        let helper = remote.split_once("::").map(|(helper, _)| helper);
        let is_helper = helper.is_some_and(|helper| !helper.contains(['/', '[']));
        let is_foreign = self.settings.origin(&self.full("remote")) == Some(Origin::Repository);
        if is_helper && is_foreign {
            return wrong("names a program to run; only your own configuration may set such a remote");
        }
        if remote.starts_with("./") || remote.starts_with("../") {
            return Ok(join(top, Path::new(remote)).display().to_string());
        }
        Ok(remote.to_owned())
    }
}

/// Joins `path` to `top` and resolves `.` and `..` without looking at the disk.
fn join(top: &Path, path: &Path) -> PathBuf {
    let mut joined = top.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                joined.pop();
            }
            other => joined.push(other),
        }
    }
    joined
}
