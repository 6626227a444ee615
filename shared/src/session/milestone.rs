//! How far a session has come: steps that have ended, pauses, and its end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Asked;
use crate::name::{Oid, TaskId};

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The task; null if the whole run is concerned.
    #[schemars(with = "Option<String>")]
    pub node: Option<TaskId>,
    /// The step.
    pub step: String,
    /// How it ended, as in the subject of its commit.
    pub status: String,
    /// The head of each repository of the workspace. Best effort: they are read one after the other, and one that could not
    /// be read is left out.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub snapshot: BTreeMap<String, Oid>,
}

/// How a session continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The turn whose tree was restored; null if it continues from where it was.
    pub turn: Option<u32>,
    /// The commit from which it continues.
    #[schemars(with = "String")]
    pub commit: Oid,
    /// The new options of the run; null if they have not changed.
    #[serde(default)]
    pub asked: Option<Asked>,
}

/// Why a session was paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPause {
    /// In words.
    pub why: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnd {
    /// Whether everything was done.
    pub result: SessionVerdict,
    /// Further remarks.
    #[serde(default)]
    pub words: String,
}

/// Whether everything was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionVerdict {
    /// Everything was done.
    Complete,
    /// Something failed.
    Failed,
}
