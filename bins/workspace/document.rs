//! What `workspace status`, `sync` and `push` print with `--json`.

use arborist_core::{
    git::shown_url,
    message::visible,
    name::SessionId,
    workspace::{Delivery, Section, Standing, Supply},
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
    /// Whether the remote has everything of sessions, as far as was heard; null without a remote.
    pushed: Option<bool>,
    /// How many commits of sessions the remote has not; null without a remote.
    unpushed: Option<u64>,
}

impl StatusDocument {
    pub(super) fn new(session: Option<&SessionId>, standings: &[Standing<'_>]) -> Self {
        let repositories = standings.iter().map(StandingDocument::new).collect();
        Self { session: session.map(ToString::to_string), repositories }
    }
}

impl StandingDocument {
    fn new(standing: &Standing<'_>) -> Self {
        let (section, present) = (standing.section, standing.present.as_ref());
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
            pushed: present.and_then(|present| present.unpushed_refs).map(|refs| refs == 0),
            unpushed: present.and_then(|present| present.unpushed),
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
}

/// What was done for one repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SyncedDocument {
    /// Its name.
    name: String,
    /// What was done.
    done: SupplyDocument,
    /// Why its remote could not be asked, if it could not.
    why: Option<String>,
    /// The refs of sessions that were taken over from the remote.
    taken: Vec<String>,
}

impl SyncedDocument {
    pub(super) fn new(section: &Section, supply: &Supply, taken: Vec<String>) -> Self {
        let (done, why) = match supply {
            Supply::Local => (SupplyDocument::Local, None),
            Supply::Cloned { .. } => (SupplyDocument::Cloned, None),
            Supply::Fetched { .. } => (SupplyDocument::Fetched, None),
            Supply::Offline { why } => (SupplyDocument::Offline, Some(why.clone())),
        };
        Self { name: section.name.to_string(), done, why, taken }
    }

    pub(super) fn is_offline(&self) -> bool {
        self.done == SupplyDocument::Offline
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
    /// Why it could not be reached, if it could not.
    failed: Option<String>,
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
    pub(super) fn new(section: &Section, delivery: &Delivery) -> Self {
        let pushed = delivery.pushed.iter();
        let refused = delivery.refused.iter();
        Self {
            name: section.name.to_string(),
            remote: delivery.remote.clone(),
            pushed: pushed
                .map(|push| PushedRefDocument { name: push.name.clone(), commit: push.target.to_string() })
                .collect(),
            refused: refused
                .map(|row| RefusedDocument {
                    name: row.name.clone(),
                    why: row.refused.clone().unwrap_or_default(),
                })
                .collect(),
            failed: None,
        }
    }

    pub(super) fn failed(section: &Section, remote: String, why: String) -> Self {
        let name = section.name.to_string();
        Self { name, remote, pushed: Vec::new(), refused: Vec::new(), failed: Some(why) }
    }

    /// Whether the remote has everything now.
    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none() && self.refused.is_empty()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        if self.is_whole() && self.pushed.is_empty() {
            return vec![format!("{}: everything is at {}", self.name, self.remote)];
        }
        let line = |push: &PushedRefDocument| format!("{}: pushed {}", self.name, visible(&push.name));
        self.pushed.iter().map(line).collect()
    }
}
