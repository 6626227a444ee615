//! Guards tests, which run code of the repository and may not change refs, hooks or configuration. Files that they
//! write stay, because the checkout of a test also contains dependencies and caches.

use crate::{
    git::{GitError, OtherWriters, Repository, TrackedFiles},
    name::Oid,
    pipeline::{
        ConfigGuard, OtherRepo,
        checkout::{
            branch,
            guard::{ConfigWatch, PlaceWatch, joined},
            submodules::TestedSubmodules,
        },
    },
    record::RunRecorder,
};

/// Everything that is compared after the child has ended.
#[derive(Debug)]
pub(in crate::pipeline) struct Guarded {
    watch: ConfigWatch,
    /// Other worktrees that the child works in.
    places: Vec<PlaceWatch>,
}

/// Begins to watch a child that works in the checkout of `recorder` and in these other repositories.
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
    /// Undoes what the child moved, and returns a message about it. `attempt` is the mark under whose name commits are
    /// saved. Without it, the branch of `recorder` is a target, which others may move at any time, and is not moved
    /// back.
    pub(in crate::pipeline) fn end(
        self,
        recorder: &RunRecorder<'_>,
        attempt: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let mut found = self.watch.end();
        found.extend(self.places.iter().flat_map(PlaceWatch::end));
        if let Some(attempt) = attempt
            && !branch::is_untouched(recorder)?
        {
            found.extend(branch::put_back_at(recorder, attempt, recorder.head())?);
        }
        Ok(joined(&found))
    }
}

/// The tracked files of a checkout before a test, and those of its submodules. In the user's checkout they may differ
/// from the commit.
#[derive(Debug)]
pub(in crate::pipeline) struct FilesBeforeTest {
    tracked: TrackedFiles,
    submodules: TestedSubmodules,
}

impl FilesBeforeTest {
    pub(in crate::pipeline) fn read(
        repository: &Repository,
        tree: Oid,
        other_writers: OtherWriters,
    ) -> Result<Self, GitError> {
        let tracked = repository.read_tracked(tree, other_writers)?;
        Ok(Self { tracked, submodules: TestedSubmodules::read(repository, tree)? })
    }

    /// Restores tracked files that changed during the test, and describes them; changes in submodules are described,
    /// and stay.
    pub(in crate::pipeline) fn put_back(
        &self,
        recorder: &RunRecorder<'_>,
        other_writers: OtherWriters,
        attempt: &str,
    ) -> Result<Option<String>, GitError> {
        let changed = put_back_tracked(recorder, (&self.tracked, other_writers), attempt)?;
        let inside = self.submodules.find_changed(recorder)?;
        let found: Vec<String> = changed.into_iter().chain(inside).collect();
        Ok(joined(&found))
    }
}

/// Restores tracked files that changed during a test, and names them: a test that passed with other files says nothing
/// about the commit, and a failed one would leave them for the next attempt. If other processes were running, files
/// that were only rewritten count as well, because they may have been different for a while. In the user's checkout the
/// change may be the user's, so it is saved first, under the name of the mark `attempt`.
fn put_back_tracked(
    recorder: &RunRecorder<'_>,
    (before, other_writers): (&TrackedFiles, OtherWriters),
    attempt: &str,
) -> Result<Option<String>, GitError> {
    let repository = recorder.repository();
    let touched = repository.look_again(before, other_writers)?;
    let paths = touched.shown();
    if paths.is_empty() {
        return Ok(None);
    }
    let mut kept = String::new();
    if !touched.changes.is_empty() && recorder.branch() == recorder.run() {
        let now = repository.take_snapshot()?.tree;
        let under = branch::save_tree(repository, attempt, (now, recorder.head()))?;
        kept = format!("; the change is kept in {under}");
    }
    repository.put_back(recorder.tree(), &touched.changes)?;
    Ok(Some(format!(
        "tracked files were changed or written while the tests ran, by themselves or by another process: {}{kept}",
        paths.join(", ")
    )))
}

/// Moves `HEAD` and the branch of a checkout back to where the run left them, and returns messages about what had
/// changed. Commits are saved under the name of the mark `attempt`.
pub fn put_back_checkout(recorder: &RunRecorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
    if branch::is_untouched(recorder)? {
        return Ok(Vec::new());
    }
    branch::put_back_at(recorder, attempt, recorder.head())
}
