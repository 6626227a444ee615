//! Guards a reviewer, which may read everything but change nothing. Whatever it changes is restored.

use crate::{
    git::{GitError, Repository, TreeChange, WorktreeSnapshot},
    name::Oid,
    pipeline::{
        ConfigGuard,
        checkout::{
            branch,
            guard::{CheckoutWatch, WorktreeReach},
            leftovers::{self, WorktreeBefore},
            violations::Violations,
        },
    },
    record::RunRecorder,
};

/// The state of a checkout before a reviewer reads it.
#[derive(Debug)]
pub(in crate::pipeline) struct ReviewedCheckout {
    /// The output of `git status`; `None` if the checkout was known to be clean.
    status: Option<Vec<u8>>,
    /// Whether worktree and index were equal to the branch.
    is_clean: bool,
    /// The tree of the worktree.
    tree: Oid,
    /// The tree of the index.
    staged: Oid,
    /// Nested repositories without a commit, which no tree can contain.
    left_out: Vec<Vec<u8>>,
    reach: WorktreeReach,
    watch: CheckoutWatch,
}

/// Records the state of the checkout before a reviewer begins.
pub(in crate::pipeline) fn begin(
    recorder: &RunRecorder<'_>,
    config_guard: &ConfigGuard,
) -> Result<ReviewedCheckout, GitError> {
    let repository = recorder.repository();
    let reach = WorktreeReach::begin(repository);
    // If no child ran since the last commit, the checkout is known to be clean. Asked before the watch begins:
    // from then on no scan is valid.
    let is_known = recorder.worktree_is_at_tip() || repository.is_known_clean(recorder.tree());
    let watch = config_guard.watch(repository);
    let status = if is_known { None } else { Some(repository.status()?) };
    let is_clean = status.as_deref().is_none_or(is_clean_status);
    let (tree, staged, left_out) = if is_clean {
        (recorder.tree(), recorder.tree(), Vec::new())
    } else {
        let WorktreeSnapshot { tree, left_out, .. } = repository.take_snapshot()?;
        (tree, repository.staged()?, left_out)
    };
    Ok(ReviewedCheckout { status, is_clean, tree, staged, left_out, reach, watch })
}

impl ReviewedCheckout {
    /// Also watches the worktree that the reviewer works in. End the returned watch after [`Self::restore`].
    pub(in crate::pipeline) fn watch_place(&self, repository: &Repository) -> CheckoutWatch {
        self.watch.watch_place(repository)
    }

    /// Restores everything, and returns messages about what had changed. What the reviewer made of files is saved
    /// under the name of the mark `attempt`.
    pub(in crate::pipeline) fn restore(
        &self,
        recorder: &RunRecorder<'_>,
        attempt: &str,
    ) -> Result<Violations, GitError> {
        let mut violations = self.watch.restore_after_child();
        let is_untouched = !self.reach.is_reached()
            || self.is_clean
                && (self.is_known_untouched(recorder)?
                    || self.is_as_before(recorder, &recorder.repository().status()?));
        violations.extend(branch::quit_operations(recorder.repository(), attempt)?);
        // A branch that became a symbolic ref has the same value, but writing to it would move another branch.
        if !is_untouched || !branch::is_untouched(recorder)? {
            violations.extend(branch::restore_branch_at(recorder, attempt, recorder.head())?);
            violations.extend(self.put_back_files(recorder, attempt)?);
        }
        Ok(violations)
    }

    /// Whether nothing has changed, as far as can be decided without git.
    fn is_known_untouched(&self, recorder: &RunRecorder<'_>) -> Result<bool, GitError> {
        let is_clean = || recorder.repository().is_known_clean(recorder.tree());
        Ok(self.status.is_none() && branch::is_untouched(recorder)? && is_clean())
    }

    fn is_as_before(&self, recorder: &RunRecorder<'_>, status: &[u8]) -> bool {
        match &self.status {
            Some(before) => status == before,
            None => is_clean_status(status) && is_at_head(recorder, status),
        }
    }

    fn put_back_files(&self, recorder: &RunRecorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
        let repository = recorder.repository();
        let WorktreeSnapshot { tree: after, left_out, .. } = repository.take_snapshot()?;
        let touched = repository.changes(self.tree, after)?;
        let before = WorktreeBefore { tree: self.tree, head: recorder.head(), left_out: &self.left_out };
        let planted = leftovers::move_out(repository, before, &touched, &left_out)?;
        let files: Vec<TreeChange> = touched.into_iter().filter(|change| !change.is_gitlink()).collect();
        let shown: Vec<String> = files.iter().map(TreeChange::shown).collect();
        let mut kept = String::new();
        if !files.is_empty() {
            let under = branch::save_tree(repository, attempt, after, recorder.head())?;
            repository.restore_paths(self.tree, &files)?;
            let is_shared = recorder.is_on_run_branch();
            kept = if is_shared {
                recovery_hint(&under, &shown)
            } else {
                format!("; the change is kept in {under}")
            };
        }
        let staged = repository.staged()?;
        repository.enter(&repository.changes(staged, self.staged)?)?;
        let shown = shown.join(", ");
        let read =
            (!shown.is_empty()).then(|| format!("it changed files that it may only read: {shown}{kept}"));
        Ok(read.into_iter().chain(planted).collect())
    }
}

/// In the user's checkout the user may have saved a file meanwhile, so the message says how to get it back.
fn recovery_hint(under: &str, shown: &[String]) -> String {
    let is_plain =
        |path: &&String| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let file = match shown {
        [one] => Some(one).filter(is_plain).map_or("FILE", String::as_str),
        _ => "FILE",
    };
    format!("; the change is kept in {under}; if it is yours, run: git restore --source={under} -- {file}")
}

/// Whether a status contains only lines about the branch.
fn is_clean_status(status: &[u8]) -> bool {
    status.split(|byte| *byte == 0).all(|line| line.is_empty() || line.starts_with(b"# "))
}

/// Whether a status says that our branch is checked out and where we left it.
fn is_at_head(recorder: &RunRecorder<'_>, status: &[u8]) -> bool {
    let head = [format!("# branch.oid {}", recorder.head()), format!("# branch.head {}", recorder.branch())];
    head.iter().all(|wanted| status.split(|byte| *byte == 0).any(|line| line == wanted.as_bytes()))
}
