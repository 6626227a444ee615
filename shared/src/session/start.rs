//! The start of a session: where it works, its options, and the session that it was forked from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{BranchName, Oid, SessionId};

/// The program that runs a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A run of `garden` or `gardener`.
    Run,
    /// Another program, or a person with an agent, through `git arborist session`.
    Other,
}

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStart {
    /// The repositories: at least one; the first has these records.
    pub repositories: Vec<RepositoryStart>,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// The program that runs it.
    pub driver: Driver,
    /// The options of the run, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The names of options that contain a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Where it comes from, if it is a replay.
    #[serde(default)]
    pub forked_from: Option<Fork>,
    /// Whether it is an offline replay, which calls no agent.
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
    /// The commit at which it started.
    #[schemars(with = "String")]
    pub base: Oid,
}

/// What a replay was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The session.
    #[schemars(with = "String")]
    pub session: SessionId,
    /// The turn at which it starts.
    pub turn: u32,
}
