//! What `workspace status`, `sync` and `push` print with `--json`.

use arborist_core::{
    git::shown_url,
    message::visible,
    name::SessionId,
    workspace::{Present, PushResult, RepoSection, RepoStatus, SyncOutcome, UnpushedCheckout},
};
use schemars::JsonSchema;
use serde::Serialize;

/// The repositories of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StatusDocument {
    /// The session of the run that is checked out, or else the newest one; null if there is none.
    session: Option<String>,
    /// The repositories; the first has the plan.
    repositories: Vec<RepoStatusDocument>,
}

/// The state of one repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RepoStatusDocument {
    /// Its name.
    name: String,
    /// Where it is.
    path: String,
    /// Whether it exists.
    present: bool,
    /// Its remote, without secrets; null if it has none.
    remote: Option<String>,
    /// When it is pushed: `never`, `on_completion` or `on_checkpoint`.
    push: &'static str,
    /// The session branch, else the branch that is checked out.
    branch: Option<String>,
    /// Its newest commit.
    head: Option<String>,
    /// Where it forked from its base branch.
    base: Option<String>,
    /// How many commits it is ahead of its base branch.
    ahead: Option<u64>,
    /// How many commits it is behind.
    behind: Option<u64>,
    /// How many uncommitted paths the checkout has.
    dirty: Option<usize>,
    /// Whether it is a shallow clone.
    shallow: Option<bool>,
    /// Whether all commits of sessions, or else of the branch that is checked out, are at the remote, as far as known;
    /// null without a remote.
    pushed: Option<bool>,
    /// How many commits of sessions are missing at the remote; null without a remote.
    unpushed: Option<u64>,
    /// How many commits of the branch that is checked out are missing at the remote, if it is not a session's; null without a remote.
    unpushed_checkout: Option<u64>,
    /// Why the repository cannot be used; null if it can.
    error: Option<String>,
}

impl StatusDocument {
    pub(super) fn new(session: Option<&SessionId>, statuses: &[(RepoStatus<'_>, Option<String>)]) -> Self {
        let repositories = statuses.iter().map(RepoStatusDocument::new).collect();
        Self { session: session.map(ToString::to_string), repositories }
    }
}

impl RepoStatusDocument {
    fn new((status, error): &(RepoStatus<'_>, Option<String>)) -> Self {
        let (section, present) = (status.section, status.present.as_ref());
        let distance = present.and_then(|present| present.distance);
        Self {
            name: section.name.to_string(),
            path: section.path.display().to_string(),
            present: present.is_some(),
            remote: section.remote.as_deref().map(shown_url),
            push: section.push.as_str(),
            branch: present.and_then(|present| present.branch.as_ref()).map(ToString::to_string),
            head: present.and_then(|present| present.head).map(|head| head.to_string()),
            base: present.and_then(|present| present.base).map(|base| base.to_string()),
            ahead: distance.map(|distance| distance.ahead),
            behind: distance.map(|distance| distance.behind),
            dirty: present.map(|present| present.dirty),
            shallow: present.map(|present| present.is_shallow),
            pushed: present.and_then(Present::is_pushed),
            unpushed: present.and_then(|present| present.unpushed),
            unpushed_checkout: present.and_then(|present| Some(present.unpushed_checkout.as_ref()?.commits)),
            error: error.clone(),
        }
    }
}

/// What a sync did.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SyncDocument {
    /// The repositories.
    pub(super) repositories: Vec<SyncedDocument>,
}

/// The result of a sync for one repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum SupplyDocument {
    /// It has no remote.
    Local,
    /// It was not there.
    Cloned,
    /// It was fetched.
    Fetched,
    /// The remote could not be reached.
    Offline,
    /// It cannot be used.
    Failed,
}

/// What was done for one repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SyncedDocument {
    /// Its name.
    name: String,
    /// What was done.
    done: SupplyDocument,
    /// Why its remote could not be reached or it cannot be used; null otherwise.
    why: Option<String>,
    /// The session refs that were fetched.
    taken: Vec<String>,
}

impl SyncedDocument {
    pub(super) fn new(section: &RepoSection, supply: &SyncOutcome, taken: Vec<String>) -> Self {
        let (done, why) = match supply {
            SyncOutcome::Local => (SupplyDocument::Local, None),
            SyncOutcome::Cloned { .. } => (SupplyDocument::Cloned, None),
            SyncOutcome::Fetched { .. } => (SupplyDocument::Fetched, None),
            SyncOutcome::Offline { why, .. } => (SupplyDocument::Offline, Some(why.clone())),
        };
        Self { name: section.name.to_string(), done, why, taken }
    }

    pub(super) fn failed(section: &RepoSection, why: String) -> Self {
        let name = section.name.to_string();
        Self { name, done: SupplyDocument::Failed, why: Some(why), taken: Vec::new() }
    }

    /// Whether it is up to date.
    pub(super) fn is_well(&self) -> bool {
        self.why.is_none()
    }
}

/// What a push did.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PushDocument {
    /// The repositories that have a remote.
    pub(super) repositories: Vec<PushedDocument>,
}

/// What was pushed of one repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PushedDocument {
    /// Its name.
    name: String,
    /// The remote, without secrets.
    remote: String,
    /// The refs that were pushed.
    pushed: Vec<PushedRefDocument>,
    /// The refs that it refused.
    refused: Vec<RefusedDocument>,
    /// Why nothing could be pushed; null otherwise.
    failed: Option<String>,
    /// Whether there are branches of sessions here.
    has_session: bool,
    /// What the remote has not of the branch that is checked out, if that is no session's and there is anything.
    left: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PushedRefDocument {
    /// The full name.
    name: String,
    /// Its newest commit.
    commit: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RefusedDocument {
    /// The full name.
    name: String,
    /// Why.
    why: String,
}

impl PushedDocument {
    pub(super) fn new(section: &RepoSection, result: &PushResult, left: &UnpushedCheckout) -> Self {
        let pushed = result.pushed.iter();
        let refused = result.refused.iter();
        Self {
            name: section.name.to_string(),
            remote: result.remote.clone(),
            pushed: pushed
                .map(|push| PushedRefDocument { name: push.name.clone(), commit: push.target.to_string() })
                .collect(),
            refused: refused
                .map(|row| RefusedDocument { name: row.name.clone(), why: row.reason() })
                .collect(),
            failed: None,
            has_session: left.has_session,
            left: left.words(&result.remote),
        }
    }

    pub(super) fn failed(section: &RepoSection, remote: String, why: String) -> Self {
        let name = section.name.to_string();
        let (pushed, refused) = (Vec::new(), Vec::new());
        Self { name, remote, pushed, refused, failed: Some(why), has_session: false, left: None }
    }

    /// Whether the remote has everything now.
    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none() && self.refused.is_empty()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let line = |push: &PushedRefDocument| format!("{}: pushed {}", self.name, visible(&push.name));
        let mut lines: Vec<String> = self.pushed.iter().map(line).collect();
        if self.failed.is_some() {
            return lines;
        }
        let left = self.left.as_ref().map(|left| format!("; {}", visible(left))).unwrap_or_default();
        if !self.has_session {
            let words = match lines.is_empty() {
                true => "nothing to push: no session or task branches",
                false => "no session or task branches to push",
            };
            lines.push(format!("{}: {words}{left}", self.name));
        } else if self.refused.is_empty() && lines.is_empty() {
            let what = if left.is_empty() { "everything" } else { "all session refs" };
            lines.push(format!("{}: {what} is at {}{left}", self.name, self.remote));
        }
        lines
    }
}
