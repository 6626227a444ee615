//! A child process that runs code of the repository and may move nothing there: tests. What it wrote to files stays, for the
//! checkout of a test is where dependencies and caches are; refs, hooks and configuration are put back.

use super::{
    Annex, Sentry,
    guard::{Watch, joined},
    place,
};
use crate::{
    git::{Change, GitError},
    record::Recorder,
};

/// Everything that is compared once the child has ended.
#[derive(Debug)]
pub(super) struct Guarded {
    watches: Vec<Watch>,
}

/// A child begins in a place of `recorder`, with these other repositories in reach.
pub(super) fn begin(recorder: &Recorder<'_>, sentry: &Sentry, annexes: &[Annex]) -> Guarded {
    let others = annexes.iter().map(|annex| annex.sentry.watch(&annex.repository));
    Guarded { watches: [sentry.watch(recorder.repository())].into_iter().chain(others).collect() }
}

impl Guarded {
    /// Puts back what it moved, and says what that was. `attempt` is the mark under whose name commits are kept; without it
    /// the branch of `recorder` is a target, which others may move at any time and which is never moved back.
    pub(super) fn end(
        self,
        recorder: &Recorder<'_>,
        attempt: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let mut found: Vec<String> = self.watches.iter().flat_map(Watch::end).collect();
        if let Some(attempt) = attempt
            && !place::is_untouched(recorder)?
        {
            found.extend(place::put_back_at(recorder, attempt, recorder.head())?);
        }
        Ok(joined(&found))
    }
}

/// The tracked files of a lane that are not what the commit under test has, before the test. In the user's checkout nothing
/// is looked at: there they may have changed what they like, and nobody else is at work.
pub(super) fn look_at_lane(recorder: &Recorder<'_>) -> Result<Option<Vec<Change>>, GitError> {
    let is_lane = recorder.branch() != recorder.run();
    is_lane.then(|| recorder.repository().find_tracked_changes(recorder.tree())).transpose()
}

/// Puts tracked files of a lane back that are not what they were before the test, and says which: a test that passed with
/// other files says nothing about the commit. Who changed them cannot be told.
pub(super) fn put_back_lane(
    recorder: &Recorder<'_>,
    before: &Option<Vec<Change>>,
) -> Result<Option<String>, GitError> {
    let Some(before) = before else { return Ok(None) };
    let repository = recorder.repository();
    let mut changed = repository.find_tracked_changes(recorder.tree())?;
    changed.retain(|change| !before.contains(change));
    if changed.is_empty() {
        return Ok(None);
    }
    repository.put_back(recorder.tree(), &changed)?;
    let paths: Vec<String> = changed.iter().map(Change::shown).collect();
    Ok(Some(format!(
        "tracked files were changed while the tests ran, by themselves or by another process: {}",
        paths.join(", ")
    )))
}

/// Puts `HEAD` and the branch of a checkout back where the run left them, and says what was done to them. Commits are kept
/// under the name of the mark `attempt`.
pub fn put_back_checkout(recorder: &Recorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
    if place::is_untouched(recorder)? {
        return Ok(Vec::new());
    }
    place::put_back_at(recorder, attempt, recorder.head())
}
