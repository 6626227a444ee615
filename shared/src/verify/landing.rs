//! Verifies that a landing is the merge of its target and the completed task, and nothing else.

use super::{Verifier, VerifyCheck, VerifyError, list_paths};
use crate::{
    git::{Merge, MergeConflict},
    history::Event,
    message::Key,
    name::{Oid, TaskId},
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
