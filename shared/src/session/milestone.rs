//! How far a session has come: steps that have ended, pauses, and its end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Asked;
use crate::name::{Oid, TaskId};

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The task; null for what concerns the whole run.
    #[schemars(with = "Option<String>")]
    pub node: Option<TaskId>,
    /// The step.
    pub step: String,
    /// How it ended, as in the subject of its commit.
    pub status: String,
    /// The head of each repository of the workspace. Best effort: they are asked one after the other, and one that could not
    /// be asked is left out.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub snapshot: BTreeMap<String, Oid>,
}

/// How a session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The turn whose tree was brought back; null if it goes on from where it was.
    pub turn: Option<u32>,
    /// The commit that it goes on from.
    #[schemars(with = "String")]
    pub commit: Oid,
    /// What it is asked for from now on; null if that is what it was asked for before.
    #[serde(default)]
    pub asked: Option<Asked>,
}

/// Why a session rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPause {
    /// In words.
    pub why: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnd {
    /// Whether all was done.
    pub result: SessionVerdict,
    /// More, in words.
    #[serde(default)]
    pub words: String,
}

/// Whether all was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionVerdict {
    /// It was.
    Complete,
    /// Something failed.
    Failed,
}
