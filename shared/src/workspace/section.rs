//! The settings of one repository of a workspace (`workspace.repos.NAME`).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{WorkspaceError, canonical};
use crate::{
    git::{CloneDepth, plain_path, shown_url},
    name::{BranchName, RepoName, digest},
    settings::{NamedGroup, Origin, PushPolicy, RepoSettings, Sourced},
};

/// The default prefix of session branches.
const PREFIX: &str = "arborist/";

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

    pub(super) fn read(
        name: RepoName,
        top: &Path,
        group: &NamedGroup<RepoSettings>,
    ) -> Result<Self, WorkspaceError> {
        let settings = &group.settings;
        let wrong = |key: &str, what: &str| wrong(group, key, what);
        let text = |setting: &Option<Sourced<String>>| setting.as_ref().map(|setting| setting.value.clone());
        let written = text(&settings.path).ok_or_else(|| wrong("path", "is missing"))?;
        if written.is_empty() || written.contains(|c: char| c.is_control()) {
            return Err(wrong("path", "must be a path"));
        }
        let path = canonical(&plain_path(&top.join(written)));
        let remote = settings
            .remote
            .as_ref()
            .map(|remote| check_remote(remote, top).map_err(|what| wrong("remote", what)));
        let remote = remote.transpose()?;
        let prefix = text(&settings.branch_prefix).unwrap_or_else(|| PREFIX.to_owned());
        // With 'rel', the user's branch 'release' would be taken for a session branch.
        if !prefix.ends_with('/') || format!("{prefix}a/b").parse::<BranchName>().is_err() {
            return Err(wrong("branch-prefix", "must be the beginning of a branch name that ends in '/'"));
        }
        let default_branch = text(&settings.default_branch).map(|branch| branch.parse()).transpose();
        let default_branch =
            default_branch.map_err(|_| wrong("default-branch", "must be the name of a branch"))?;
        let depth = match settings.clone_depth.as_ref().map(|depth| depth.value) {
            None => CloneDepth::Whole,
            Some(0) => return Err(wrong("clone-depth", "must be a number of commits, from 1")),
            Some(count) => CloneDepth::Last(count),
        };
        let push = match (&settings.push, &remote) {
            (Some(push), _) => push.value,
            (None, None) => PushPolicy::Never,
            (None, Some(_)) => PushPolicy::OnCompletion,
        };
        // A repository that is pushed and names no remote uses `origin`.
        let remote = remote.or_else(|| (push != PushPolicy::Never).then(|| "origin".to_owned()));
        let is_main = path == top;
        Ok(Self {
            tools: tools(settings),
            name,
            path,
            is_main,
            is_configured: true,
            remote,
            prefix,
            push,
            depth,
            default_branch,
            origin: origin(settings),
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

/// An error about a key of a repository. A missing key has no place; then that of another key is named.
fn wrong(group: &NamedGroup<RepoSettings>, key: &str, what: &str) -> WorkspaceError {
    let RepoSettings { path, remote, branch_prefix, default_branch, clone_depth, .. } = &group.settings;
    let place = match key {
        "clone-depth" => clone_depth.as_ref().map(|depth| &depth.place),
        key => {
            let texts = [path, remote, branch_prefix, default_branch].into_iter().flatten();
            texts.filter(|text| text.key.ends_with(&format!(".{key}"))).map(|text| &text.place).next()
        }
    };
    WorkspaceError::Wrong {
        place: place.unwrap_or(&group.place).clone(),
        key: format!("workspace.repos.{}.{key}", group.name),
        what: what.to_owned(),
    }
}

/// A single value from a file that others can commit to makes the whole section untrusted.
fn origin(settings: &RepoSettings) -> Origin {
    let RepoSettings { path, remote, push, branch_prefix, default_branch, .. } = settings;
    let texts = [path, remote, branch_prefix, default_branch].into_iter().flatten();
    let is_tracked = push.as_ref().is_some_and(Sourced::is_tracked);
    if is_tracked || texts.into_iter().any(Sourced::is_tracked) { Origin::Repository } else { Origin::User }
}

fn tools(settings: &RepoSettings) -> BTreeMap<String, Tool> {
    let tools = settings.tools.iter().map(|(name, Sourced { value, origin, .. })| {
        (name.clone(), Tool { command: value.clone(), origin: *origin })
    });
    tools.collect()
}

/// Validates a remote and resolves a relative path. A remote helper such as `ext::` runs a program, so only the user may
/// name one.
fn check_remote(setting: &Sourced<String>, top: &Path) -> Result<String, &'static str> {
    let remote = setting.value.as_str();
    if remote.is_empty() || remote.starts_with('-') || remote.contains(|c: char| c.is_control()) {
        return Err("must be the URL of a repository, or the name of a remote");
    }
    let host = remote.split_once("://").map_or(remote, |(_, rest)| rest);
    if host.starts_with('-') || host.contains("@-") {
        return Err("must not have a host that begins with '-'");
    }
    let helper = remote.split_once("::").map(|(helper, _)| helper);
    let is_helper = helper.is_some_and(|helper| !helper.contains(['/', '[']));
    if is_helper && setting.is_tracked() {
        return Err("names a program to run; only your own configuration may set such a remote");
    }
    if remote.starts_with("./") || remote.starts_with("../") {
        return Ok(plain_path(&top.join(remote)).display().to_string());
    }
    Ok(remote.to_owned())
}
