//! Verifies that a landing is the merge of its target and the completed task, and nothing else; and that its gates passed on
//! the tree that landed, according to the recorded results.

use super::{Verifier, VerifyCheck, VerifyError, list_paths};
use crate::{
    git::{GitError, Merge, MergeConflict, Repository},
    history::Event,
    message::Key,
    name::{Oid, TaskId},
    queue::{GATES, StoredGateResult, load_gate_results},
};

impl Verifier<'_> {
    pub(super) fn check_landing(&mut self, task: &TaskId, landing: &Event) -> Result<(), VerifyError> {
        let commit = self.load(landing.commit)?;
        let parents: Vec<Oid> = commit.parents().collect();
        let (task, at) = (Some(task), Some(landing.commit));
        let source = landing.trailers.source();
        let [onto, landed] = parents[..] else {
            self.result.problem(VerifyCheck::Landing, task, at, "it is not a merge of two commits");
            return Ok(());
        };
        if source != Some(landed) {
            let words = "its second parent is not the commit that it names as its source";
            self.result.problem(VerifyCheck::Landing, task, at, words);
            return Ok(());
        }
        let (merged, conflicts) = match self.repository.merge(onto, landed)? {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let resolved_by = landing.trailers.get(Key::ResolvedBy);
        let is_resolved = |path: &String| conflicts.iter().any(|conflict| conflict.is_about(path));
        let mut changed = self.differing_paths(merged, self.repository.tree_of(landing.commit)?)?;
        changed.retain(|path| !(resolved_by.is_some() && is_resolved(path)));
        if !changed.is_empty() {
            let words = format!("it differs from the merge of its parents in {}", list_paths(&changed));
            self.result.problem(VerifyCheck::Landing, task, at, words);
        } else if !conflicts.is_empty() && resolved_by.is_none() {
            let words = format!("its parents conflict in {}", list_paths(&paths_of(&conflicts)));
            self.result.problem(VerifyCheck::Landing, task, at, words);
        } else if let Some(by) = resolved_by.filter(|_| !conflicts.is_empty()) {
            let why = format!(
                "a conflict was resolved by {by} ({}), and history has no review of the resolution",
                list_paths(&paths_of(&conflicts))
            );
            self.result.unchecked(VerifyCheck::Landing, task, why);
        }
        Ok(())
    }
}

/// The paths with conflicts.
fn paths_of(conflicts: &[MergeConflict]) -> Vec<String> {
    let mut paths: Vec<String> = conflicts.iter().flat_map(|conflict| conflict.paths.clone()).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The newest results of gates that are recorded in this clone.
pub(super) struct GateResultList(Vec<StoredGateResult>);

impl GateResultList {
    pub(super) fn load(repository: &Repository) -> Result<Self, GitError> {
        load_gate_results(repository).map(Self)
    }

    /// Whether there are results of the gate `name`.
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|result| result.gate == name)
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
                if self.check_gate(gate, landing, &gated) {
                    continue;
                }
                if self.gates.has(gate) {
                    let why = format!(
                        "no result of gate '{gate}' is about {}: it was changed after its landing, or its result was not fetched",
                        landing.commit.short()
                    );
                    self.result.unchecked(VerifyCheck::Gates, landing.task, why);
                } else {
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
