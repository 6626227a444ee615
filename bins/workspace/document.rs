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
    /// The session that is meant: that of the checked out run, else the newest; null if there is none.
    session: Option<String>,
    /// The repositories; the first has the plan.
    repositories: Vec<StandingDocument>,
}

/// How one repository stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct StandingDocument {
    /// Its name.
    name: String,
    /// Where it is.
    path: String,
    /// Whether it is there.
    present: bool,
    /// Its remote, without secrets; null if it has none.
    remote: Option<String>,
    /// When it is pushed: `never`, `on_completion` or `on_checkpoint`.
    push: &'static str,
    /// The session branch, else the branch that is checked out.
    branch: Option<String>,
    /// Its newest commit.
    head: Option<String>,
    /// Where it parts from the branch that it began at.
    base: Option<String>,
    /// How many commits it has beyond that branch, as that was last seen.
    ahead: Option<u64>,
    /// How many it lacks.
    behind: Option<u64>,
    /// How many paths of the checkout are not committed.
    dirty: Option<usize>,
    /// Whether its history was cut off when it was cloned.
    shallow: Option<bool>,
    /// Whether the remote has everything of sessions, or without any the branch that is checked out, as far as was heard;
    /// null without a remote.
    pushed: Option<bool>,
    /// How many commits of sessions the remote has not; null without a remote.
    unpushed: Option<u64>,
    /// How many commits of the branch that is checked out the remote has not, if it is no session's; null without a remote.
    unpushed_checkout: Option<u64>,
    /// Why nothing else is known, if the repository cannot be used.
    error: Option<String>,
}

impl StatusDocument {
    pub(super) fn new(session: Option<&SessionId>, statuses: &[(RepoStatus<'_>, Option<String>)]) -> Self {
        let repositories = statuses.iter().map(StandingDocument::new).collect();
        Self { session: session.map(ToString::to_string), repositories }
    }
}

impl StandingDocument {
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

/// How a repository came to be as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum SupplyDocument {
    /// It has no remote.
    Local,
    /// It was not there.
    Cloned,
    /// The remote was asked.
    Fetched,
    /// The remote could not be asked.
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
    /// Why its remote could not be asked or it cannot be used, if so.
    why: Option<String>,
    /// The refs of sessions that were taken over from the remote.
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
    /// The refs that the remote has now and had not before.
    pushed: Vec<PushedRefDocument>,
    /// The refs that it refused.
    refused: Vec<RefusedDocument>,
    /// Why nothing could be pushed, if so.
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
            let words = "nothing of ours to push: no session or task branches";
            lines.push(format!("{}: {words}{left}", self.name));
        } else if self.refused.is_empty() && lines.is_empty() {
            let what = if left.is_empty() { "everything" } else { "all of sessions" };
            lines.push(format!("{}: {what} is at {}{left}", self.name, self.remote));
        }
        lines
    }
}
