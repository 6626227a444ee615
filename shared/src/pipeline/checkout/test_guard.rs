//! Guards tests, which run code of the repository and may not change refs, hooks, configuration, tracked files or the
//! user's uncommitted files. New files stay, because the checkout of a test also contains dependencies and caches.

use std::sync::Arc;

use crate::{
    git::{GitError, KnownIndex, OtherWriters, Repository, TrackedFiles, TreeChange},
    name::Oid,
    pipeline::{
        ConfigGuard, OtherRepo, UsersPaths,
        checkout::{branch, guard::CheckoutWatch, submodules::TestedSubmodules, violations::Violations},
    },
    record::RunRecorder,
};

/// Everything that is compared after the child has ended.
#[derive(Debug)]
pub(in crate::pipeline) struct Guarded {
    watch: CheckoutWatch,
    /// Other worktrees that the child works in.
    places: Vec<CheckoutWatch>,
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
    /// Undoes what the child moved, and returns messages about it. `attempt` is the mark under whose name commits are
    /// saved. Without it, the branch of `recorder` is a target, which others may move at any time, and is not moved
    /// back.
    pub(in crate::pipeline) fn end(
        self,
        recorder: &RunRecorder<'_>,
        attempt: Option<&str>,
    ) -> Result<Violations, GitError> {
        let mut violations = self.watch.restore_after_child();
        violations.extend(self.places.iter().flat_map(CheckoutWatch::restore_after_child));
        if let Some(attempt) = attempt
            && !branch::is_untouched(recorder)?
        {
            violations.extend(branch::restore_branch_at(recorder, attempt, recorder.head())?);
        }
        Ok(violations)
    }
}

/// The files of a checkout before a test: those that git tracks, those of its submodules, and uncommitted files of the
/// user. In the user's checkout, tracked files may differ from the commit.
#[derive(Debug)]
pub struct FilesBeforeTest {
    tracked: TrackedFiles,
    submodules: TestedSubmodules,
    users: Option<UsersFiles>,
}

/// The user's checkout before a test, if the user has uncommitted files there.
#[derive(Debug)]
struct UsersFiles {
    paths: Arc<UsersPaths>,
    worktree: Oid,
    index: Option<Arc<KnownIndex>>,
}

impl FilesBeforeTest {
    /// Reads the files of a checkout whose commit has this tree. `users` are the paths with uncommitted changes of the
    /// user.
    pub fn read(
        repository: &Repository,
        tree: Oid,
        users: &Arc<UsersPaths>,
        other_writers: OtherWriters,
    ) -> Result<Self, GitError> {
        let tracked = repository.read_tracked(tree, other_writers)?;
        let users = (!users.is_empty()).then(|| UsersFiles::read(repository, users)).transpose()?;
        Ok(Self { tracked, submodules: TestedSubmodules::read(repository, tree)?, users })
    }

    /// Restores files that changed during the test, and describes them: a test that passed with other files says
    /// nothing about the commit, and a failed one would leave them for the next attempt. New files stay, and changes in
    /// submodules are only described. What is replaced is saved under the name of the mark `attempt`.
    pub fn restore(
        &self,
        recorder: &RunRecorder<'_>,
        other_writers: OtherWriters,
        attempt: &str,
    ) -> Result<Violations, GitError> {
        let mut found = Violations::default();
        if let Some(users) = &self.users {
            recorder.repository().relink_missing_objects([users.worktree].into_iter());
        }
        found.extend(self.put_back_tracked(recorder, other_writers, attempt)?);
        if let Some(users) = &self.users {
            found.extend(users.restore(recorder, attempt)?);
        }
        found.extend(self.submodules.find_changed(recorder)?);
        Ok(found)
    }

    /// If other processes were running, files that were only rewritten count as well, because they may have been
    /// different for a while. In the user's checkout the change may be the user's, so it is saved first.
    fn put_back_tracked(
        &self,
        recorder: &RunRecorder<'_>,
        other_writers: OtherWriters,
        attempt: &str,
    ) -> Result<Option<String>, GitError> {
        let repository = recorder.repository();
        let touched = repository.look_again(&self.tracked, other_writers)?;
        let paths = touched.shown();
        if paths.is_empty() {
            return Ok(None);
        }
        let mut kept = String::new();
        if !touched.changes.is_empty() && recorder.is_on_run_branch() {
            let now = repository.take_snapshot()?.tree;
            let under = branch::save_tree(repository, attempt, now, recorder.head())?;
            kept = format!("; the change is kept in {under}");
        }
        repository.restore_paths(self.tracked.worktree_tree(repository)?, &touched.changes)?;
        Ok(Some(format!("the tests, or another process, changed tracked files: {}{kept}", paths.join(", "))))
    }
}

impl UsersFiles {
    fn read(repository: &Repository, paths: &Arc<UsersPaths>) -> Result<Self, GitError> {
        let worktree = repository.take_snapshot()?.tree;
        // The objects of this tree are the only copy of the user's files.
        repository.hold_objects();
        Ok(Self { paths: Arc::clone(paths), worktree, index: repository.find_known_index() })
    }

    /// Restores the user's files, and stages again what was staged.
    fn restore(&self, recorder: &RunRecorder<'_>, attempt: &str) -> Result<Option<String>, GitError> {
        let repository = recorder.repository();
        let now = repository.take_snapshot()?.tree;
        let changes = repository.changes(self.worktree, now)?.into_iter();
        let changes: Vec<TreeChange> =
            changes.filter(|change| self.paths.covers_change(change) && !change.concerns_gitlink()).collect();
        let mut kept = String::new();
        if !changes.is_empty() {
            kept = branch::save_tree(repository, attempt, now, recorder.head())?;
            repository.restore_paths(self.worktree, &changes)?;
        }
        if let Some(index) = &self.index
            && repository.find_known_index().as_ref() != Some(index)
        {
            repository.restore_index_entries(index, |path| self.paths.covers(path))?;
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
        let paths = paths.join(", ");
        Ok(Some(format!(
            "your uncommitted files were changed while the tests ran: {paths}; they were restored, and the other version is kept in {kept}"
        )))
    }
}

/// Moves `HEAD` and the branch of a checkout back to where the run left them, and returns messages about what had
/// changed. Commits are saved under the name of the mark `attempt`.
pub fn restore_checkout(recorder: &RunRecorder<'_>, attempt: &str) -> Result<Violations, GitError> {
    if branch::is_untouched(recorder)? {
        return Ok(Violations::default());
    }
    branch::restore_branch_at(recorder, attempt, recorder.head())
}
