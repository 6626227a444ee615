//! A child process that runs code of the repository and may move nothing there: tests. What it wrote to files stays, for the
//! checkout of a test is where dependencies and caches are; refs, hooks and configuration are put back.

use crate::{
    git::{GitError, OtherWriters, TrackedFiles},
    pipeline::{
        ConfigGuard, Neighbours, OtherRepo,
        checkout::{
            guard::{ConfigWatch, PlaceWatch, joined},
            place,
        },
    },
    record::RunRecorder,
};

/// Everything that is compared once the child has ended.
#[derive(Debug)]
pub(in crate::pipeline) struct Guarded {
    watch: ConfigWatch,
    /// Other worktrees that the child has business in.
    places: Vec<PlaceWatch>,
}

/// A child begins in a place of `recorder`, and has business in these places of other repositories.
pub(in crate::pipeline) fn begin<'o>(
    recorder: &RunRecorder<'_>,
    config_guard: &ConfigGuard,
    other_repos: impl Iterator<Item = &'o OtherRepo>,
) -> Guarded {
    let watch = config_guard.watch(recorder.repository());
    let places = other_repos.map(|other_repo| watch.watch_place(&other_repo.repository)).collect();
    Guarded { watch, places }
}

impl Guarded {
    /// Puts back what it moved, and says what that was. `attempt` is the mark under whose name commits are kept; without it
    /// the branch of `recorder` is a target, which others may move at any time and which is never moved back.
    pub(in crate::pipeline) fn end(
        self,
        recorder: &RunRecorder<'_>,
        attempt: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let mut found = self.watch.end();
        found.extend(self.places.iter().flat_map(PlaceWatch::end));
        if let Some(attempt) = attempt
            && !place::is_untouched(recorder)?
        {
            found.extend(place::put_back_at(recorder, attempt, recorder.head())?);
        }
        Ok(joined(&found))
    }
}

/// The tracked files as they are before the test: in the user's checkout the user may have changed what they like.
pub(in crate::pipeline) fn look_at_tracked(
    recorder: &RunRecorder<'_>,
    neighbours: Neighbours<'_>,
) -> Result<TrackedFiles, GitError> {
    recorder.repository().look_at_tracked(recorder.tree(), neighbours.now())
}

/// Puts tracked files back that are not what they were before the test, and says which: a test that passed with other files
/// says nothing about the commit, and one that failed would leave them for the next attempt. Who changed them cannot be
/// told, so where others were at work, files that were only written count too: they may have been others for a while. In the
/// user's checkout it may have been the user, so there all of it is kept first, under the name of the mark `attempt`.
pub(in crate::pipeline) fn put_back_tracked(
    recorder: &RunRecorder<'_>,
    (before, company): (&TrackedFiles, OtherWriters),
    attempt: &str,
) -> Result<Option<String>, GitError> {
    let repository = recorder.repository();
    let touched = repository.look_again(before, company)?;
    let paths = touched.shown();
    if paths.is_empty() {
        return Ok(None);
    }
    let mut kept = String::new();
    if !touched.changes.is_empty() && recorder.branch() == recorder.run() {
        let now = repository.snapshot()?;
        let under = place::save_tree(repository, attempt, (now, recorder.head()))?;
        kept = format!("; that is kept in {under}");
    }
    repository.put_back(recorder.tree(), &touched.changes)?;
    Ok(Some(format!(
        "tracked files were changed or written while the tests ran, by themselves or by another process: {}{kept}",
        paths.join(", ")
    )))
}

/// Puts `HEAD` and the branch of a checkout back where the run left them, and says what was done to them. Commits are kept
/// under the name of the mark `attempt`.
pub fn put_back_checkout(recorder: &RunRecorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
    if place::is_untouched(recorder)? {
        return Ok(Vec::new());
    }
    place::put_back_at(recorder, attempt, recorder.head())
}
