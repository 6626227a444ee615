//! Lists the commits between those of a run that belong to none of its tasks.

use std::collections::HashSet;

use super::{OutsideCommit, Verifier, VerifyError};
use crate::{
    git::{Merge, RawCommit},
    history::Run,
    message::{self, plain_text},
    name::Oid,
};

/// The longest subject that is shown, in characters.
const LONGEST: usize = 72;

impl Verifier<'_> {
    /// Lists commits after the start of the run and before its last task commit, as far as they are in the range. Clean
    /// merges bring in nothing that is not listed itself.
    pub(super) fn list_outside(&mut self, run: &Run) -> Result<(), VerifyError> {
        let Some(start) = &run.start else { return Ok(()) };
        let mut revisions: Vec<String> =
            run.tasks.iter().filter_map(|task| task.last()).map(|event| event.commit.to_string()).collect();
        if revisions.is_empty() {
            return Ok(());
        }
        revisions.push(format!("^{}", start.commit));
        let listed: HashSet<Oid> = self.result.outside.iter().map(|known| known.commit).collect();
        for commit in self.repository.stream_commits(&revisions)? {
            let commit = commit?;
            if !self.within.contains(&commit.id)
                || message::claims(commit.message())
                || self.is_clean_merge(&commit)?
                || listed.contains(&commit.id)
            {
                continue;
            }
            let branch = run.scope.branch.clone();
            self.result.outside.push(OutsideCommit {
                commit: commit.id,
                branch,
                subject: subject_of(&commit),
            });
        }
        Ok(())
    }

    fn is_clean_merge(&self, commit: &RawCommit) -> Result<bool, VerifyError> {
        let parents: Vec<Oid> = commit.parents().collect();
        let [ours, theirs] = parents[..] else { return Ok(false) };
        let merged = self.repository.merge(ours, theirs)?;
        Ok(matches!(merged, Merge::Clean(tree) if commit.tree() == Some(tree)))
    }
}

fn subject_of(commit: &RawCommit) -> String {
    let text = String::from_utf8_lossy(commit.message()).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    plain_text(line).chars().take(LONGEST).collect()
}
