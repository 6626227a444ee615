//! Reads the recorded results of gates for people and for verification. The queue itself never uses them: anyone who can
//! write a ref could have written them.

use serde::Deserialize;

use super::GATES;
use crate::{
    git::{GitError, Repository, skip_ref},
    name::Oid,
};

/// The newest result of a gate for a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGateResult {
    /// The name of the gate.
    pub gate: String,
    /// The tree that it tested, according to the record.
    pub tree: Oid,
    /// Whether it passed.
    pub is_green: bool,
    /// The commit of the record.
    pub record: Oid,
    ref_name: String,
}

impl StoredGateResult {
    /// Whether its ref is that of the results for `tree`.
    #[must_use]
    pub fn is_filed_under(&self, tree: Oid) -> bool {
        self.ref_name.ends_with(&format!("/{tree}"))
    }
}

#[derive(Deserialize)]
struct ResultFields {
    answer: String,
    gate: GateFields,
    tree: Oid,
}

#[derive(Deserialize)]
struct GateFields {
    name: String,
    /// The repository in which it ran; `None` for the plan's.
    repo: Option<String>,
}

/// The newest results of all gates in this repository. Those of other repositories of the workspace are left out.
pub fn load_gate_results(repository: &Repository) -> Result<Vec<StoredGateResult>, GitError> {
    let mut results = Vec::new();
    for (found, body) in repository.start_listing_notes(&[GATES])?.finish()? {
        match serde_json::from_str::<ResultFields>(&body) {
            Ok(ResultFields { gate: GateFields { repo: Some(_), .. }, .. }) => {}
            Ok(ResultFields { answer, gate, tree }) => results.push(StoredGateResult {
                gate: gate.name,
                tree,
                is_green: answer == "green",
                record: found.target,
                ref_name: found.name,
            }),
            Err(error) => skip_ref(&found.name, &error.to_string()),
        }
    }
    Ok(results)
}
