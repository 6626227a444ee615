//! One repository of a workspace, as it is configured.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::{WorkspaceError, plain};
use crate::{
    git::{CloneDepth, shown_url},
    name::{BranchName, RepoName, digest},
    settings::{Origin, Settings},
};

/// What session branches begin with unless something else is configured.
const PREFIX: &str = "arborist/";

/// When a repository is pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushPolicy {
    /// Not by a run.
    Never,
    /// When the run has succeeded.
    OnCompletion,
    /// After each commit.
    OnCheckpoint,
}

impl PushPolicy {
    /// As it is configured.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnCompletion => "on_completion",
            Self::OnCheckpoint => "on_checkpoint",
        }
    }
}

/// A named command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// For a shell.
    pub command: String,
    /// Who says so.
    pub origin: Origin,
}

/// One repository of a workspace.
#[derive(Debug, Clone)]
pub struct RepoSection {
    /// Its name.
    pub name: RepoName,
    /// Where it is, from the root.
    pub path: PathBuf,
    /// Whether it is the one that has the plan.
    pub is_main: bool,
    /// A URL, or the name of a remote.
    pub remote: Option<String>,
    /// What its session branches begin with.
    pub prefix: String,
    /// When it is pushed.
    pub push: PushPolicy,
    /// How much of it is cloned.
    pub depth: CloneDepth,
    /// Where work in it begins, if that was said.
    pub default_branch: Option<BranchName>,
    /// Its named commands.
    pub tools: BTreeMap<String, Tool>,
    /// Whether a file of the repository says where it is or what its remote is.
    origin: Origin,
}

impl RepoSection {
    /// The repository that has the plan, where nothing is said of it: it is not pushed by a run.
    pub(super) fn unnamed(top: &Path, name: RepoName) -> Self {
        Self {
            name,
            path: top.to_owned(),
            is_main: true,
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
        let path = plain(&join(top, Path::new(written)));
        let remote = keys.text("remote").map(|remote| keys.check_remote(remote, top)).transpose()?;
        let prefix = keys.text("branch-prefix").unwrap_or(PREFIX).to_owned();
        // Every branch begins with nothing: the user's own would be taken for those of sessions.
        if prefix.is_empty() || format!("{prefix}a/b").parse::<BranchName>().is_err() {
            return Err(keys.wrong("branch-prefix", "must be the beginning of a branch name"));
        }
        let default_branch = keys.text("default-branch").map(str::parse).transpose();
        let default_branch =
            default_branch.map_err(|_| keys.wrong("default-branch", "must be the name of a branch"))?;
        let depth = match settings.count(&keys.of("clone-depth")) {
            None => CloneDepth::Whole,
            Some(0) => return Err(keys.wrong("clone-depth", "must be a number of commits, from 1")),
            Some(count) => CloneDepth::Last(count),
        };
        let push = match (keys.text("push"), &remote) {
            (Some("never"), _) | (None, None) => PushPolicy::Never,
            (Some("on_checkpoint"), _) => PushPolicy::OnCheckpoint,
            (Some(_), _) | (None, Some(_)) => PushPolicy::OnCompletion,
        };
        // Who asks for pushes and names no remote means the one that every clone has.
        let remote = remote.or_else(|| (push != PushPolicy::Never).then(|| "origin".to_owned()));
        let origin = keys.origin(&["path", "remote", "push", "branch-prefix", "default-branch"]);
        let is_main = path == top;
        Ok(Self {
            tools: keys.tools(),
            name,
            path,
            is_main,
            remote,
            prefix,
            push,
            depth,
            default_branch,
            origin,
        })
    }

    /// What a file of the repository wants, if it wants anything outside.
    #[must_use]
    pub fn foreign_wish(&self) -> Option<String> {
        if self.origin == Origin::User || (self.is_main && self.remote.is_none()) {
            return None;
        }
        let remote = match &self.remote {
            Some(remote) => format!(", remote {}, push {}", distinct_url(remote), self.push.as_str()),
            None => String::new(),
        };
        let mut wish = format!("workspace.repos.{}: repository {}{remote}", self.name, self.path.display());
        if self.prefix != PREFIX {
            wish += &format!(", branch-prefix {}", self.prefix);
        }
        if let Some(branch) = &self.default_branch {
            wish += &format!(", default-branch {branch}");
        }
        Some(wish)
    }
}

/// A URL without its secrets, and yet told from every other: an approval is of this one alone.
fn distinct_url(url: &str) -> String {
    let shown = shown_url(url);
    if shown == url { shown } else { format!("{shown} (sha256 {})", digest(url.as_bytes())) }
}

/// The keys of one repository.
struct Keys<'a> {
    prefix: String,
    settings: &'a Settings,
}

impl Keys<'_> {
    fn of(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.settings.text(&self.of(key))
    }

    fn wrong(&self, key: &str, what: &str) -> WorkspaceError {
        let any = || self.settings.keys_below(&self.prefix).next().map(|key| self.of(key));
        let place = self.settings.place(&self.of(key)).map(str::to_owned);
        let place = place.or_else(|| self.settings.place(&any()?).map(str::to_owned)).unwrap_or_default();
        WorkspaceError::Wrong { place, key: self.of(key), what: what.to_owned() }
    }

    /// Whatever others can commit makes all of it theirs.
    fn origin(&self, keys: &[&str]) -> Origin {
        let is_foreign = |key: &&str| self.settings.origin(&self.of(key)) == Some(Origin::Repository);
        if keys.iter().any(is_foreign) { Origin::Repository } else { Origin::User }
    }

    fn tools(&self) -> BTreeMap<String, Tool> {
        let prefix = self.of("tools.");
        let origin =
            |name: &str| self.settings.origin(&format!("{prefix}{name}")).unwrap_or(Origin::Repository);
        let tools = self.settings.below(&prefix).map(|(name, command)| {
            (name.to_owned(), Tool { command: command.to_owned(), origin: origin(name) })
        });
        tools.collect()
    }

    /// A remote that starts no program. A path begins where the repository does.
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
        let is_foreign = self.settings.origin(&self.of("remote")) == Some(Origin::Repository);
        if is_helper && is_foreign {
            return wrong("names a program that would be run; only the user may set such a remote");
        }
        if remote.starts_with("./") || remote.starts_with("../") {
            return Ok(join(top, Path::new(remote)).display().to_string());
        }
        Ok(remote.to_owned())
    }
}

/// `path` seen from `top`, without the steps back that need no look at the disk.
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
