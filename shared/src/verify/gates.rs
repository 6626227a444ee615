//! Verifies that the gates of landings passed on the trees that landed, according to the recorded results.

use super::{Verifier, VerifyCheck, VerifyError};
use crate::{
    git::{GitError, Repository},
    history::Event,
    message::Key,
    name::{Oid, TaskId},
    queue::{GATES, StoredGateResult, load_gate_results},
};

/// The newest results of gates that are recorded in this clone.
pub(super) struct GateResultList(Vec<StoredGateResult>);

impl GateResultList {
    pub(super) fn load(repository: &Repository) -> Result<Self, GitError> {
        load_gate_results(repository).map(Self)
    }

    /// The results of the gate `name` for the tree `tree`.
    fn find(&self, name: &str, tree: Oid) -> impl Iterator<Item = &StoredGateResult> {
        self.0.iter().filter(move |result| result.gate == name && result.is_filed_under(tree))
    }
}

/// A landing as far as gates are concerned.
struct GatedLanding<'a> {
    task: Option<&'a TaskId>,
    commit: Oid,
    tree: Oid,
    onto: Option<Oid>,
    gates: Vec<&'a str>,
}

impl Verifier<'_> {
    /// Verifies the gates of all landings of a run. If the results are not in this clone, that is reported once.
    pub(super) fn check_gates(&mut self, landings: &[Event]) -> Result<(), VerifyError> {
        let mut gated = Vec::new();
        for landing in landings {
            let commit = self.load(landing.commit)?;
            let named = landing.trailers.get(Key::Gate);
            if named.is_none() {
                self.result.unchecked(VerifyCheck::Gates, landing.task(), "its landing names no gates");
            }
            let named = named.filter(|gates| *gates != "none");
            gated.push(GatedLanding {
                task: landing.task(),
                commit: landing.commit,
                tree: self.repository.tree_of(landing.commit)?,
                onto: commit.parents().next(),
                gates: named.map(|names| names.split(", ").collect()).unwrap_or_default(),
            });
        }
        let mut missing = Vec::new();
        for landing in &gated {
            for gate in &landing.gates {
                if !self.check_gate(gate, landing, &gated) {
                    missing.push(landing.task.map(ToString::to_string).unwrap_or_default());
                }
            }
        }
        missing.sort();
        missing.dedup();
        if !missing.is_empty() {
            let why = format!("no results of the gates of {} are in this clone", missing.join(", "));
            self.result.missing(VerifyCheck::Gates, GATES, why);
        }
        Ok(())
    }

    /// Verifies one gate of a landing; false if there is no result. Several landings can be tested together: then the
    /// gates ran on the last of them.
    fn check_gate(&mut self, gate: &str, landing: &GatedLanding<'_>, all: &[GatedLanding<'_>]) -> bool {
        let mut failed = None;
        let mut at = Some(landing);
        while let Some(tested) = at {
            for result in self.gates.find(gate, tested.tree) {
                self.records_used.insert(result.record);
                if result.tree != tested.tree {
                    failed.get_or_insert_with(|| {
                        format!("the result of gate '{gate}' is about another tree, {}", result.tree.short())
                    });
                } else if result.is_green {
                    return true;
                } else {
                    failed.get_or_insert_with(|| format!("gate '{gate}' did not pass on the landed tree"));
                }
            }
            at = all.iter().find(|next| next.onto == Some(tested.commit));
        }
        let is_known = failed.is_some();
        if let Some(words) = failed {
            self.result.problem(VerifyCheck::Gates, landing.task, Some(landing.commit), words);
        }
        is_known
    }
}
