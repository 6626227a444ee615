//! The checkout of an attempt: the user's own, or a lane. An attempt begins and ends with a snapshot; the difference is
//! the agent's work, and what the agent did to the repository itself is undone.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use crate::{
    git::{
        ExemptRef, ForgedObject, GitError, HeadOf, IndexFile, KnownIndex, PrivateGit, Repository, Stamp,
        TreeChange, Unreadable, WorktreeSnapshot,
    },
    name::{Attempt, Oid, TaskId},
    pipeline::{
        ConfigGuard, FileSecrets, UsersIgnoredFiles, UsersPaths,
        checkout::{
            branch::{is_untouched, quit_operations, restore_branch, save, save_tree},
            folded_commits::{Folded, OwnCommits, find_own_commits},
            guard::CheckoutWatch,
            ignored::copies_in,
            leftovers::{self, WorktreeBefore},
            protected_files::TaskProtection,
            submodules::{MovedSubmodules, SubmodulesBefore},
            violations::Violations,
        },
    },
    record::{AttemptMark, RunRecorder, StagedCommit, UnfinishedAttempt},
};

/// A checkout in which an attempt has begun.
#[derive(Debug)]
pub struct AttemptCheckout {
    /// The mark by which a later run recognises this attempt.
    pub unfinished: UnfinishedAttempt,
    /// The tip of the branch.
    pub head: Oid,
    /// The tree of the tip.
    pub head_tree: Oid,
    /// The tree of the worktree when the attempt began.
    pub(super) worktree_tree: Oid,
    /// Paths with uncommitted changes.
    users_paths: UsersPaths,
    /// The stamp of the user's index. If it changed, something was staged meanwhile.
    index: Option<Stamp>,
    /// The index, if there were uncommitted changes.
    staged: Option<Arc<KnownIndex>>,
    /// Nested repositories without a commit, which no tree can contain.
    left_out: Vec<Vec<u8>>,
    /// Files that git could not add.
    unreadable: Vec<Vec<u8>>,
    /// Locks of git that already existed.
    locks: Vec<PathBuf>,
    /// The uncommitted changes in submodules that are not the agent's.
    inside: SubmodulesBefore,
    /// What the attempt may not commit.
    pub(super) rules: AttemptRules,
    /// Copies of ignored files of the user in a worktree.
    copies: Arc<BTreeSet<PathBuf>>,
    watch: Box<CheckoutWatch>,
    /// Excludes the branch from the comparison of the run's refs, because this module decides what becomes of it:
    /// commits by the agent are folded in.
    _branch_exemption: ExemptRef,
}

/// What an attempt may not commit, or only with permission.
#[derive(Debug)]
pub struct AttemptRules {
    /// The files that git ignored in the user's checkout before the run.
    pub users_ignored: Arc<UsersIgnoredFiles>,
    /// Searches changed files for secrets.
    pub file_secrets: Option<FileSecrets>,
    /// What is protected from the task.
    pub protection: TaskProtection,
}

/// Where the run is watched from during an attempt in a checkout.
#[derive(Debug, Clone, Copy)]
pub enum WatchedFrom<'w> {
    /// From this checkout.
    Here(&'w ConfigGuard),
    /// From the checkout in the repository with the plan.
    Plan(&'w AttemptCheckout),
}

impl WatchedFrom<'_> {
    fn watch(self, repository: &Repository) -> Box<CheckoutWatch> {
        Box::new(match self {
            Self::Here(config_guard) => config_guard.watch(repository),
            Self::Plan(checkout) => checkout.watch.watch_place(repository),
        })
    }
}

impl AttemptCheckout {
    /// Whether a change would add a file of the user's that git ignored before the run, or a copy of one.
    fn adds_ignored(&self, change: &TreeChange) -> bool {
        let path = Path::new(OsStr::from_bytes(&change.path));
        change.before.is_none() && (self.rules.users_ignored.has(&change.path) || self.copies.contains(path))
    }

    /// Takes ignored files of the user's out of the index, where an agent may have put them, and returns a note for the
    /// user.
    fn leave_out_ignored(
        &self,
        repository: &Repository,
        all: &[TreeChange],
    ) -> Result<Option<String>, GitError> {
        let is_ignored =
            |change: &&TreeChange| self.adds_ignored(change) && !self.users_paths.covers_change(change);
        let ignored: Vec<TreeChange> = all.iter().filter(is_ignored).cloned().collect();
        if ignored.is_empty() {
            return Ok(None);
        }
        repository.stage_as_in(&self.head.to_string(), &ignored)?;
        let paths: Vec<String> = ignored.iter().map(TreeChange::shown).collect();
        let paths = paths.join(", ");
        Ok(Some(format!("the agent added ignored files of yours; they are not committed: {paths}")))
    }

    /// Whether a path had uncommitted changes of the user.
    pub(super) fn is_users(&self, path: &[u8]) -> bool {
        self.users_paths.covers(path)
    }

    /// Undoes what was done to the repository since the last look, while the agent is running: the index of git is not
    /// trusted yet.
    pub fn restore_while_running(&self) -> Violations {
        self.watch.restore()
    }

    /// Undoes what was done to the repository since the last look, after the agent or the hook has ended. From now on the
    /// index of git is trusted again.
    pub(in crate::pipeline) fn restore_after_end(&self) -> Violations {
        self.watch.restore_after_child()
    }

    /// Selects from `all`, the changes between our last commit and the worktree's tree `after`, those that may be
    /// committed, and returns the tree of such a commit. `after` must be proven. Paths that were uncommitted at the
    /// beginning are the user's.
    fn select_committable(
        &self,
        recorder: &RunRecorder<'_>,
        after: Oid,
        all: Vec<TreeChange>,
    ) -> Result<(Oid, Vec<TreeChange>), GitError> {
        let count = all.len();
        let is_agents = |change: &TreeChange| {
            !change.is_gitlink() && !self.users_paths.covers_change(change) && !self.adds_ignored(change)
        };
        let changes: Vec<TreeChange> = all.into_iter().filter(is_agents).collect();
        let tree = match changes.len() {
            0 => recorder.tree(),
            kept if kept == count => after,
            _ => {
                let tree = recorder.repository().tree_with(recorder.tree(), &changes)?;
                recorder.repository().require_verified(recorder.tree(), tree)?;
                tree
            }
        };
        Ok((tree, changes))
    }
}

impl AttemptCheckout {
    /// Moves files that git cannot add away, and returns messages about them. Uncommitted files of the user are
    /// restored later, and files that git could not add before the attempt stay.
    fn move_unreadable(
        &self,
        repository: &Repository,
        after: Oid,
        found: &[Unreadable],
    ) -> Result<Vec<String>, GitError> {
        let is_known = |found: &&Unreadable| {
            self.unreadable.contains(&found.path) || self.users_paths.covers(&found.path)
        };
        let (known, new): (Vec<&Unreadable>, Vec<&Unreadable>) = found.iter().partition(is_known);
        let known = (!known.is_empty()).then(|| leftovers::refusals(&known));
        Ok(known.into_iter().chain(leftovers::move_unreadable(repository, after, &new)?).collect())
    }

    /// Restores the index entries of the user's paths to what was staged when the attempt began: an agent's `git add`,
    /// `git reset` or `git stash` must not change them. Staged content that exists nowhere else is saved, because the
    /// user may have staged it meanwhile.
    fn put_back_staged(&self, recorder: &RunRecorder<'_>, after: Oid) -> Result<Vec<String>, GitError> {
        let repository = recorder.repository();
        let Some(before) = &self.staged else { return Ok(Vec::new()) };
        if repository.find_known_index().as_ref() == Some(before) {
            return Ok(Vec::new());
        }
        // An index with conflicts cannot be written as a tree.
        let found = repository.staged().ok();
        if !repository.restore_index_entries(before, |path| self.users_paths.covers(path))? {
            return Ok(Vec::new());
        }
        let Some(found) = found else { return Ok(Vec::new()) };
        let mut lost: Vec<TreeChange> = repository
            .changes(found, after)?
            .into_iter()
            .filter(|change| self.users_paths.covers_change(change))
            .collect();
        for tree in [self.worktree_tree, recorder.tree(), repository.staged()?] {
            let other = repository.changes(found, tree)?;
            lost.retain(|change| other.iter().any(|other| other.path == change.path));
        }
        if lost.iter().all(|change| change.before.is_none()) {
            return Ok(Vec::new());
        }
        let kept = save_tree(repository, &self.unfinished.name, found, self.unfinished.mark_commit)?;
        let paths: Vec<String> = lost.iter().map(TreeChange::shown).collect();
        Ok(vec![format!(
            "files that were staged while {} was worked on are kept in {kept}",
            paths.join(", ")
        )])
    }
}

impl AttemptCheckout {
    /// Restores all files and index entries that are not the user's to our last commit, because the worktree was based
    /// on another commit when the agent ended. Its tree `after` is saved on top of that commit. `all` are the changes
    /// between our last commit and `after`. Returns a violation, so the attempt fails.
    fn put_back_worktree(
        &self,
        recorder: &RunRecorder<'_>,
        after: Oid,
        other_base: Oid,
        all: Vec<TreeChange>,
    ) -> Result<Option<String>, GitError> {
        let repository = recorder.repository();
        let is_users =
            |change: &TreeChange| self.users_paths.covers_change(change) || self.adds_ignored(change);
        let ignored = all.iter().filter(|change| self.adds_ignored(change));
        let without_ignored: Vec<TreeChange> =
            ignored.map(|change| TreeChange { after: None, ..change.clone() }).collect();
        let saved = match without_ignored.is_empty() {
            true => after,
            false => repository.tree_with(after, &without_ignored)?,
        };
        let is_file = |change: &TreeChange| !change.concerns_gitlink() || change.after.is_none();
        let files: Vec<TreeChange> =
            all.into_iter().filter(|change| is_file(change) && !is_users(change)).collect();
        let mut message = None;
        if !files.is_empty() {
            let kept = save_tree(repository, &self.unfinished.name, saved, other_base)?;
            message = Some(format!("what it left is kept in {kept}, and the checkout was restored"));
            // The ignore rules of the other commit may not cover files that ours ignore. So they are restored first, and
            // what is new is listed again.
            let is_first = |change: &TreeChange| change.before.is_some() || change.is_called(".gitignore");
            let tracked = files.into_iter().filter(is_first);
            repository.restore_paths(recorder.tree(), &tracked.collect::<Vec<_>>())?;
            let now = repository.take_snapshot()?.tree;
            let new = repository.changes(recorder.tree(), now)?.into_iter();
            let new: Vec<TreeChange> = new.filter(|change| is_file(change) && !is_users(change)).collect();
            repository.restore_paths(recorder.tree(), &new)?;
        }
        let staged = repository.staged_since(recorder.head())?.into_iter();
        let staged = staged.filter(|path| !self.users_paths.covers(path));
        let staged: Vec<TreeChange> =
            staged.map(|path| TreeChange { path, before: None, after: None }).collect();
        repository.stage_as_in(&recorder.head().to_string(), &staged)?;
        Ok(message)
    }
}

/// The work that an agent left.
#[derive(Debug)]
pub struct AttemptWork {
    /// The tree of the commit to be made: what the branch held, with the agent's changes.
    pub commit_tree: Oid,
    /// Where the branch is now; beyond our own head if the agent committed by itself.
    pub tip: Oid,
    /// The paths that changed since our last commit.
    pub changes: Vec<TreeChange>,
    /// What the agent did without permission.
    pub violations: Violations,
    /// Commits by others, which a commit of this work folds in.
    pub folded: Vec<Folded>,
    /// Messages for the user about what was restored.
    pub notes: Vec<String>,
    /// Warnings about secrets in files.
    pub warnings: Vec<String>,
    /// The worktree's tree and an index that matches it, if nothing in either is the user's.
    pub(super) whole_worktree: Option<(Oid, IndexFile)>,
}

impl AttemptWork {
    /// No work: the branch and its tree as they are.
    pub(super) fn nothing(recorder: &RunRecorder<'_>) -> Self {
        Self::committing(recorder.tree(), recorder.head(), Vec::new())
    }

    fn committing(commit_tree: Oid, tip: Oid, changes: Vec<TreeChange>) -> Self {
        Self {
            commit_tree,
            tip,
            changes,
            violations: Violations::default(),
            folded: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            whole_worktree: None,
        }
    }

    /// The content of a commit of this work, while the agent is running.
    pub fn of_turn(&self) -> StagedCommit<'_> {
        StagedCommit { tree: self.commit_tree, tip: self.tip, changes: &self.changes, index: None }
    }

    /// The content of a commit of this work, with an index of the whole worktree if the commit contains all of it.
    pub fn of_step(&self) -> StagedCommit<'_> {
        let whole = self.whole_worktree.as_ref().filter(|(tree, _)| *tree == self.commit_tree);
        StagedCommit { index: whole.map(|(_, index)| index), ..self.of_turn() }
    }
}

/// Records the state of the worktree, and marks that an attempt begins.
pub fn begin_attempt(
    recorder: &RunRecorder<'_>,
    watched_from: WatchedFrom<'_>,
    task: &TaskId,
    attempt: Attempt,
    rules: AttemptRules,
) -> Result<AttemptCheckout, GitError> {
    let repository = recorder.repository();
    require_unlocked(recorder)?;
    let locks = repository.find_locks(recorder.branch());
    // Asked before the watch begins: from then on no scan is valid, and git would have to compare all files.
    let looks_clean = repository.is_known_clean(recorder.tree());
    let watch = watched_from.watch(repository);
    let branch_exemption = repository.exempt_ref(&recorder.branch().to_ref());
    let index = repository.index_stamp();
    let is_known_clean = is_untouched(recorder)? && looks_clean;
    let mut unreadable = Vec::new();
    let (worktree_tree, staged_tree, users_paths, left_out) = if is_known_clean || repository.is_clean()? {
        (recorder.tree(), None, UsersPaths::default(), Vec::new())
    } else {
        let snapshot = repository.take_snapshot()?;
        // Files that git cannot add are the user's, because those of an earlier attempt were moved away. The error comes
        // before any agent is paid.
        let snapshot = if attempt.0 == 0 { snapshot.require_readable()? } else { snapshot };
        unreadable.extend(snapshot.unreadable.into_iter().map(|found| found.path));
        let WorktreeSnapshot { tree: worktree_tree, left_out, .. } = snapshot;
        let staged = repository.staged()?;
        let users_paths = UsersPaths::of_checkout(repository, recorder.tree(), worktree_tree, staged)?;
        (worktree_tree, Some(staged), users_paths, left_out)
    };
    let staged = if users_paths.is_empty() { None } else { repository.find_known_index() };
    let inside = SubmodulesBefore::look(recorder, worktree_tree)?;
    let (head, head_tree) = (recorder.head(), recorder.tree());
    let mark = AttemptMark { task, attempt, head, head_tree, worktree_tree, staged: staged_tree };
    let unfinished = UnfinishedAttempt::begin(repository, recorder.branch(), mark)?;
    if staged_tree.is_some() {
        // The mark is the only copy of the user's uncommitted files.
        repository.hold_objects();
    }
    Ok(AttemptCheckout {
        unfinished,
        head,
        head_tree,
        worktree_tree,
        users_paths,
        index,
        staged,
        left_out,
        unreadable,
        locks,
        inside,
        rules,
        copies: copies_in(repository.top()),
        watch,
        _branch_exemption: branch_exemption,
    })
}

/// Returns the changes up to the tree `after` since our last commit, while the agent is still running. Nothing is undone
/// yet. If the branch was moved, or another git holds the index of the user's checkout, the changes are committed when
/// the attempt ends: that git may be the user's own commit with an editor open, which would fail if the branch moved.
pub fn changes_of_turn(
    recorder: &RunRecorder<'_>,
    checkout: &AttemptCheckout,
    private_git: Option<&PrivateGit>,
    after: Oid,
) -> Result<Option<AttemptWork>, GitError> {
    let repository = recorder.repository();
    if let Some(private_git) = private_git {
        // The agent's own commits are read when it has ended, so what they are based on is not known yet.
        let checked_out = private_git.find_checked_out(repository)?;
        if !checked_out.map_or(Ok(false), |commit| repository.is_ancestor(checkout.head, commit))? {
            return Ok(None);
        }
    }
    if recorder.is_on_run_branch() && repository.is_index_held() {
        return Ok(None);
    }
    let HeadOf::Branch { tip } = repository.find_head(recorder.branch())? else {
        return Ok(None);
    };
    let mut folded = Vec::new();
    if tip != recorder.head() {
        if !repository.is_ancestor(checkout.head, tip)? {
            return Ok(None);
        }
        let name = save(repository, &checkout.unfinished.name, tip)?;
        folded.push(Folded::find(repository, recorder.head(), tip, name)?);
    }
    if !repository.is_proven(recorder.tree(), after)? {
        return Ok(None);
    }
    let all = repository.changes(recorder.tree(), after)?;
    let (tree, changes) = checkout.select_committable(recorder, after, all)?;
    // If a file is to be put back, the changes are committed when the attempt ends.
    if checkout.refuses(repository, &changes)? || checkout.changes_protected(repository, tree)? {
        return Ok(None);
    }
    Ok((!changes.is_empty()).then(|| AttemptWork { folded, ..AttemptWork::committing(tree, tip, changes) }))
}

/// Returns the changes of the attempt, after undoing everything that an agent may not do. `violations` are
/// those that were undone while it worked. All objects that are not in `base`, the tree that the task started from, are proven: an
/// agent could replace an object of an earlier attempt, and the reviewer is shown all of them.
pub fn end_attempt(
    recorder: &RunRecorder<'_>,
    checkout: &AttemptCheckout,
    mut violations: Violations,
    base: Oid,
    private_git: Option<&PrivateGit>,
) -> Result<AttemptWork, GitError> {
    let repository = recorder.repository();
    if recorder.is_on_run_branch() {
        repository.clear_new_locks(recorder.branch(), &checkout.locks)?;
    } else {
        repository.clear_locks(recorder.branch());
    }
    violations.extend(checkout.restore_after_end());
    // The snapshot and the branch do not depend on each other, so they are looked at in parallel.
    let (taken, branch) = thread::scope(|scope| {
        let taken = scope.spawn(|| repository.take_verified_snapshot(base));
        let branch = restore_branch(recorder, &checkout.unfinished.name, checkout.head);
        (taken.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), branch)
    });
    let (snapshot, forged) = taken?;
    let WorktreeSnapshot { tree: after, index, left_out, unreadable } = snapshot;
    let mut branch = branch?;
    violations.extend(std::mem::take(&mut branch.violations));
    let words = |object: &ForgedObject| format!("it stored other content under the object id {}", object.id);
    violations.extend(forged.iter().map(words));
    let OwnCommits { tip, other_base, folded, violations: of_commits, mut notes } =
        find_own_commits(recorder, checkout.head, &checkout.unfinished.name, branch, private_git)?;
    violations.extend(of_commits);
    violations.extend(quit_operations(repository, &checkout.unfinished.name)?);
    violations.extend(checkout.move_unreadable(repository, after, &unreadable)?);
    let mut touched = repository.changes(checkout.worktree_tree, after)?;
    let started_clean = checkout.worktree_tree == recorder.tree();
    let all = if started_clean { touched.clone() } else { repository.changes(recorder.tree(), after)? };
    let moved_submodules = MovedSubmodules::among(&all);
    touched.retain(|change| !moved_submodules.has(change));
    let before =
        WorktreeBefore { tree: checkout.worktree_tree, head: recorder.head(), left_out: &checkout.left_out };
    violations.extend(leftovers::move_out(repository, before, &touched, &left_out)?);
    violations.extend(checkout.inside.find_changed(repository, checkout.head_tree, &moved_submodules)?);
    let files: Vec<TreeChange> = touched.into_iter().filter(|change| !change.is_gitlink()).collect();
    violations.extend(checkout.users_paths.restore(
        repository,
        &checkout.unfinished,
        checkout.worktree_tree,
        after,
        &files,
    )?);
    notes.extend(checkout.put_back_staged(recorder, after)?);
    if let Some(other_base) = other_base {
        violations.extend(checkout.put_back_worktree(recorder, after, other_base, all)?);
        if repository.has_filters() {
            violations.extend(checkout.restore_after_end());
        }
        let nothing = AttemptWork::committing(recorder.tree(), tip, Vec::new());
        return Ok(AttemptWork { violations, folded, notes, ..nothing });
    }
    notes.extend(checkout.leave_out_ignored(repository, &all)?);
    let (commit_tree, changes) = checkout.select_committable(recorder, after, all)?;
    if repository.has_filters() {
        // A filter may load files that the agent has just written.
        violations.extend(checkout.restore_after_end());
    }
    let is_all_ours = unreadable.is_empty()
        && checkout.users_paths.is_empty()
        && checkout.left_out.is_empty()
        && index.follows(checkout.index);
    let whole_worktree = is_all_ours.then_some((after, index));
    let mut work = AttemptWork {
        violations,
        folded,
        notes,
        whole_worktree,
        ..AttemptWork::committing(commit_tree, tip, changes)
    };
    checkout.search_for_secrets(recorder, &mut work)?;
    Ok(work)
}

/// Waits until the user's git has released the index of the user's checkout. In a lane, locks are what an agent's git
/// left that was killed with it, and they are removed.
fn require_unlocked(recorder: &RunRecorder<'_>) -> Result<(), GitError> {
    if recorder.is_on_run_branch() {
        return recorder.repository().await_index();
    }
    recorder.repository().clear_locks(recorder.branch());
    Ok(())
}
