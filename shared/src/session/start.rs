//! The start of a session: where it works, its options, and the session that it was forked from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{BranchName, Oid, SessionId};

/// Who drives a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A run of `garden` or `gardener`.
    Run,
    /// Another program, or a person with an agent, through `git arborist session`.
    Other,
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStart {
    /// Where it works: at least one, the first is the one that holds these records.
    pub repositories: Vec<RepositoryStart>,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// Who drives it.
    pub driver: Driver,
    /// What was asked for, by the names of options. For people, and for what may be taken up again without harm.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Options that were given and hold a secret: only their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Where it comes from, if it is a replay.
    #[serde(default)]
    pub forked_from: Option<Fork>,
    /// Whether what agents did there is played again, so that nobody is called.
    #[serde(default)]
    pub offline: bool,
}

/// A repository as a session found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryStart {
    /// Its name in the workspace, or of its folder.
    pub name: String,
    /// The branch that is worked on.
    #[schemars(with = "String")]
    pub branch: BranchName,
    /// The commit that it began at.
    #[schemars(with = "String")]
    pub base: Oid,
}

/// What a replay was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The session.
    #[schemars(with = "String")]
    pub session: SessionId,
    /// The turn, whose tree it begins with.
    pub turn: u32,
}
