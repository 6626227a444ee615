//! Where an agent works: the user's own checkout, or a lane. What was there before is told from what the agent did, and
//! what the agent did to the repository itself is undone.

use std::{io::ErrorKind, path::PathBuf, sync::Arc, thread, time::Duration};

use crate::{
    git::{
        self, FalseObject, FloatingRef, GitError, HeadOf, IndexFile, KnownIndex, NewCommit, PrivateIndex,
        RefMove, Repository, Signing, Stamp, Stock, TreeChange,
    },
    message::visible,
    name::{Attempt, Oid, TaskId},
    pipeline::{
        ChangedPaths, ConfigGuard,
        checkout::{
            guard::{ConfigWatch, PlaceWatch, joined},
            leftovers::{self, Folded, WorktreeBefore},
        },
    },
    process::{Cancel, within},
    record::{AttemptMark, RunRecorder, StagedCommit, Unfinished},
};

/// A look at the worktree in the midst of an agent's work takes seconds. The agent is not held up for longer.
const LOOK: Duration = Duration::from_secs(120);

/// A checkout that an attempt has begun in.
#[derive(Debug)]
pub struct AttemptCheckout {
    /// The mark that tells a later run of this attempt.
    pub unfinished: Unfinished,
    /// Where the branch was.
    pub head: Oid,
    /// What it held.
    pub tree: Oid,
    /// What lay in the worktree.
    before: Oid,
    /// What of that is not committed.
    changed_paths: ChangedPaths,
    /// The user's index then. If that is not what it was, somebody has staged something.
    index: Option<Stamp>,
    /// What was staged then, where not all of the worktree was committed.
    staged: Option<Arc<KnownIndex>>,
    /// Repositories without a commit that lay there.
    left_out: Vec<Vec<u8>>,
    /// Locks of git that were there.
    locks: Vec<PathBuf>,
    /// Submodules with something in them that is not committed there.
    inside: Vec<Vec<u8>>,
    watch: AttemptWatch,
    /// What becomes of the branch is decided here, and not by whoever compares the refs of the run: commits of the agent's
    /// own are folded in.
    _branch: FloatingRef,
}

/// What is watched while an attempt is under way.
#[derive(Debug)]
enum AttemptWatch {
    /// All repositories of the run.
    Run(Box<ConfigWatch>),
    /// This checkout, beside one that the run is watched from.
    Place(Box<PlaceWatch>),
}

/// From where the run is watched while an attempt is under way in a checkout.
#[derive(Debug, Clone, Copy)]
pub enum WatchedFrom<'w> {
    /// From here.
    Here(&'w ConfigGuard),
    /// From the checkout in the repository that has the plan.
    Home(&'w AttemptCheckout),
}

impl WatchedFrom<'_> {
    fn watch(self, repository: &Repository) -> AttemptWatch {
        match self {
            Self::Here(config_guard) => AttemptWatch::Run(Box::new(config_guard.watch(repository))),
            Self::Home(begun) => match &begun.watch {
                AttemptWatch::Run(watch) => AttemptWatch::Place(Box::new(watch.watch_place(repository))),
                AttemptWatch::Place(watch) => AttemptWatch::Place(Box::new(watch.watch_place(repository))),
            },
        }
    }
}

impl AttemptCheckout {
    /// Undoes what was done to the repository since it was last looked at, and adds what it was, once. The agent is still
    /// at work.
    pub fn look_again(&self, noticed: &mut Vec<String>) {
        let found = match &self.watch {
            AttemptWatch::Run(watch) => watch.restore(),
            AttemptWatch::Place(watch) => watch.restore(),
        };
        add(noticed, found);
    }

    /// The same once the agent, or the hook, has ended.
    pub(in crate::pipeline) fn look_at_end(&self, noticed: &mut Vec<String>) {
        let found = match &self.watch {
            AttemptWatch::Run(watch) => watch.end(),
            AttemptWatch::Place(watch) => watch.end(),
        };
        add(noticed, found);
    }

    /// What may be committed of `all` that differs between our last commit and a worktree that holds `after`, with the tree
    /// of such a commit. `after` must be proven. What was not committed when the agent began is the user's.
    fn deliverable(
        &self,
        recorder: &RunRecorder<'_>,
        after: Oid,
        all: Vec<TreeChange>,
    ) -> Result<(Oid, Vec<TreeChange>), GitError> {
        let count = all.len();
        let is_ours = |change: &TreeChange| !change.is_gitlink() && !self.changed_paths.holds(change);
        let changes: Vec<TreeChange> = all.into_iter().filter(is_ours).collect();
        let tree = match changes.len() {
            0 => recorder.tree(),
            kept if kept == count => after,
            _ => {
                let tree = recorder.repository().tree_with(recorder.tree(), &changes)?;
                recorder.repository().require_proven(recorder.tree(), tree)?;
                tree
            }
        };
        Ok((tree, changes))
    }
}

impl AttemptCheckout {
    /// Stages of the user's paths what was staged of them when the attempt began: an agent's `git add`, `git reset` or `git
    /// stash` is not about them. What stands there instead and nowhere else is kept, for it may have been the user who
    /// staged it meanwhile.
    fn put_back_staged(&self, recorder: &RunRecorder<'_>, after: Oid) -> Result<Vec<String>, GitError> {
        let repository = recorder.repository();
        let Some(before) = &self.staged else { return Ok(Vec::new()) };
        if repository.find_known_index().as_ref() == Some(before) {
            return Ok(Vec::new());
        }
        // With a conflict in it, an index is no tree.
        let found = repository.staged().ok();
        if !repository.put_back_entries(before, |path| self.changed_paths.has(path))? {
            return Ok(Vec::new());
        }
        let Some(found) = found else { return Ok(Vec::new()) };
        let mut lost: Vec<TreeChange> = repository
            .changes(found, after)?
            .into_iter()
            .filter(|change| self.changed_paths.holds(change))
            .collect();
        for tree in [self.before, recorder.tree(), repository.staged()?] {
            let other = repository.changes(found, tree)?;
            lost.retain(|change| other.iter().any(|other| other.path == change.path));
        }
        if lost.iter().all(|change| change.before.is_none()) {
            return Ok(Vec::new());
        }
        let kept = save_tree(repository, &self.unfinished.name, (found, self.unfinished.before))?;
        let paths: Vec<String> = lost.iter().map(TreeChange::shown).collect();
        Ok(vec![format!("what was staged meanwhile of {} is kept in {kept}", paths.join(", "))])
    }
}

fn add(noticed: &mut Vec<String>, found: Vec<String>) {
    for trespass in found {
        if !noticed.contains(&trespass) {
            noticed.push(trespass);
        }
    }
}

/// What an agent left.
#[derive(Debug)]
pub struct AttemptWork {
    /// The commit's tree: what the branch held, with the agent's changes.
    pub tree: Oid,
    /// Where the branch is now; beyond our own head if the agent committed by itself.
    pub tip: Oid,
    /// The paths that changed since our last commit.
    pub changes: Vec<TreeChange>,
    /// What the agent did that it may not do, in a sentence; it has been undone.
    pub trespass: Option<String>,
    /// Commits that are not ours, and that a commit of this work folds in.
    pub folded: Vec<Folded>,
    /// What the user should know of what was put back.
    pub notes: Vec<String>,
    /// What lay in the worktree, and the index that has taken it in, if nothing of either is the user's.
    pub(super) seen: Option<(Oid, IndexFile)>,
}

impl AttemptWork {
    /// What a commit of it holds.
    pub fn delivery(&self) -> StagedCommit<'_> {
        StagedCommit { tree: self.tree, tip: self.tip, changes: &self.changes, index: None }
    }

    /// The index that holds all of the commit, if that is all that lies in the worktree.
    pub fn whole_index(&self) -> Option<&IndexFile> {
        self.seen.as_ref().filter(|(tree, _)| *tree == self.tree).map(|(_, index)| index)
    }
}

/// Remembers what lies in the worktree, and marks that an attempt begins.
pub fn begin(
    recorder: &RunRecorder<'_>,
    watched_from: WatchedFrom<'_>,
    task: &TaskId,
    attempt: Attempt,
) -> Result<AttemptCheckout, GitError> {
    let repository = recorder.repository();
    require_unlocked(recorder)?;
    let locks = repository.find_locks(recorder.branch());
    // First: the guard needs the same look.
    let looks_clean = repository.is_known_clean(recorder.tree());
    let watch = watched_from.watch(repository);
    let branch = repository.float_ref(&recorder.branch().to_ref());
    let index = repository.index_stamp();
    let is_known_clean = is_untouched(recorder)? && looks_clean;
    let (before, staged_tree, changed_paths, left_out) = if is_known_clean || repository.is_clean()? {
        (recorder.tree(), None, ChangedPaths::default(), Vec::new())
    } else {
        let stock = repository.take_snapshot()?;
        // What git cannot take in after an earlier attempt is the agent's to mend. Before the first one it is the user's, and
        // nobody is paid.
        let stock = if attempt.0 == 0 { stock.require_readable()? } else { stock };
        let Stock { tree: before, left_out, .. } = stock;
        let staged = repository.staged()?;
        let changed_paths = ChangedPaths::of_checkout(repository, recorder.tree(), (before, staged))?;
        (before, Some(staged), changed_paths, left_out)
    };
    let staged = if changed_paths.is_empty() { None } else { repository.find_known_index() };
    let inside = repository.dirty_submodules(Some(recorder.tree()))?;
    let (head, head_tree) = (recorder.head(), recorder.tree());
    let mark = AttemptMark { task, attempt, head, head_tree, tree: before, staged: staged_tree };
    let unfinished = Unfinished::begin(repository, recorder.branch(), mark)?;
    Ok(AttemptCheckout {
        unfinished,
        head,
        tree: head_tree,
        before,
        changed_paths,
        index,
        staged,
        left_out,
        locks,
        inside,
        watch,
        _branch: branch,
    })
}

/// Looks at a worktree at the end of each turn. Its index is its own, so that where nothing changed nothing is read again.
#[derive(Debug)]
pub struct Looker<'a> {
    index: PrivateIndex<'a>,
    /// Whether a look hung at something that the agent has put there: it is not tried again before the agent ends.
    is_stuck: bool,
    seen: Option<(Stamp, Oid)>,
    last: Oid,
}

impl<'a> Looker<'a> {
    /// For an attempt that has begun.
    pub fn new(repository: &'a Repository, begun: &AttemptCheckout) -> Result<Self, GitError> {
        Ok(Self {
            index: repository.private_index("turns")?,
            is_stuck: false,
            seen: None,
            last: begun.before,
        })
    }

    /// What lay in the worktree before and what lies there now, if that is not the same.
    pub fn look(&mut self) -> Result<Option<(Oid, Oid)>, GitError> {
        if self.is_stuck {
            return Ok(None);
        }
        let after = match within(LOOK, &Cancel::new(), || self.index.take_in_again(&mut self.seen)) {
            Err(GitError::Process(error)) if error.source.kind() == ErrorKind::TimedOut => {
                self.is_stuck = true;
                return Ok(None);
            }
            // It is taken away, or told, when the agent ends.
            Err(GitError::Special { .. } | GitError::Failed { .. }) => return Ok(None),
            after => after?,
        };
        let before = std::mem::replace(&mut self.last, after);
        Ok((after != before).then_some((before, after)))
    }
}

/// What has changed up to `after` since our last commit, while the agent is still at work. Nothing is put back yet: if
/// the branch is not where the agent found it, what has changed is left for the end. So it is while a git holds the index
/// of the user's checkout: it may be a commit of theirs, with an editor open, which fails if the branch moves under it.
pub fn turn(
    recorder: &RunRecorder<'_>,
    begun: &AttemptCheckout,
    after: Oid,
) -> Result<Option<AttemptWork>, GitError> {
    let repository = recorder.repository();
    if recorder.branch() == recorder.run() && repository.is_index_held() {
        return Ok(None);
    }
    let HeadOf::Branch { tip } = repository.find_head(recorder.branch())? else {
        return Ok(None);
    };
    let mut folded = Vec::new();
    if tip != recorder.head() {
        if !repository.is_ancestor(begun.head, tip)? {
            return Ok(None);
        }
        let name = save(repository, &begun.unfinished.name, tip)?;
        folded.push(Folded::find(repository, (recorder.head(), tip), name)?);
    }
    if !repository.is_proven(recorder.tree(), after)? {
        return Ok(None);
    }
    let all = repository.changes(recorder.tree(), after)?;
    let (tree, changes) = begun.deliverable(recorder, after, all)?;
    Ok((!changes.is_empty()).then_some(AttemptWork {
        tree,
        tip,
        changes,
        trespass: None,
        folded,
        notes: Vec::new(),
        seen: None,
    }))
}

/// What has changed since, with everything undone that an agent may not do. `noticed` is what was undone before. All objects
/// are proven that the tree `base`, which the task started from, does not hold: an agent can replace one that an earlier
/// attempt brought, and a reviewer sees them all.
pub fn end(
    recorder: &RunRecorder<'_>,
    begun: &AttemptCheckout,
    noticed: Vec<String>,
    base: Oid,
) -> Result<AttemptWork, GitError> {
    let repository = recorder.repository();
    if recorder.branch() == recorder.run() {
        repository.clear_new_locks(recorder.branch(), &begun.locks)?;
    } else {
        repository.clear_locks(recorder.branch());
    }
    let mut trespasses = noticed;
    begun.look_at_end(&mut trespasses);
    // The worktree and the branch are two questions, and neither waits for the other.
    let (after, moved) = thread::scope(|scope| {
        let after = scope.spawn(|| repository.take_proven_snapshot(base));
        let moved = put_back_branch(recorder, &begun.unfinished.name, begun.head);
        (after.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), moved)
    });
    let ((stock, untrue), (tip, saved, moved)) = (after?, moved?);
    let Stock { tree: after, index, left_out, unreadable } = stock;
    trespasses.extend(moved);
    trespasses.extend(unreadable.iter().map(|found| format!("git cannot take in a file: {}", found.why)));
    let words = |object: &FalseObject| format!("it stored something else under the id {}", object.id);
    trespasses.extend(untrue.iter().map(words));
    let mut folded = Vec::new();
    if let Some(name) = saved {
        folded.push(Folded::find(repository, (recorder.head(), tip), name)?);
    }
    trespasses.extend(quit_operations(repository, &begun.unfinished.name)?);
    let touched = repository.changes(begun.before, after)?;
    let before = WorktreeBefore { tree: begun.before, head: recorder.head(), left_out: &begun.left_out };
    trespasses.extend(leftovers::move_out(repository, before, &touched, &left_out)?);
    trespasses.extend(look_into_submodules(repository, begun)?);
    let is_all = begun.before == recorder.tree();
    let all = if is_all { touched.clone() } else { repository.changes(recorder.tree(), after)? };
    let files = touched.into_iter().filter(|change| !change.is_gitlink()).collect();
    let sorted = begun.changed_paths.sort(repository, &begun.unfinished, (begun.before, after), files)?;
    trespasses.extend(sorted.trespass);
    let notes = begun.put_back_staged(recorder, after)?;
    let (tree, changes) = begun.deliverable(recorder, after, all)?;
    let is_ours = unreadable.is_empty()
        && begun.changed_paths.is_empty()
        && begun.left_out.is_empty()
        && index.follows(begun.index);
    let seen = is_ours.then_some((after, index));
    Ok(AttemptWork { tree, tip, changes, trespass: joined(&trespasses), folded, notes, seen })
}

/// A git that an agent ran, and that was killed with it, leaves its locks. In a lane nobody else can have them; in the
/// user's checkout they may be the user's, and those that were there before an agent began are left alone.
fn require_unlocked(recorder: &RunRecorder<'_>) -> Result<(), GitError> {
    if recorder.branch() == recorder.run() {
        return recorder.repository().await_index();
    }
    recorder.repository().clear_locks(recorder.branch());
    Ok(())
}

/// A merge, a rebase and the like that was begun and not ended. Whoever ended it later would take back what is written
/// down since, or claim that something was merged.
pub fn quit_operations(repository: &Repository, attempt: &str) -> Result<Vec<String>, GitError> {
    let words = |git::EndedOperation { what, with, stashed }| {
        let of = with.map_or_else(String::new, |commit| format!(" of {}", commit.short()));
        let left = format!("it left a {what}{of} unfinished");
        Ok(match stashed {
            Some(stashed) => {
                format!("{left}, and what it had stashed is kept as {}", save(repository, attempt, stashed)?)
            }
            None => left,
        })
    };
    repository.quit_operations()?.into_iter().map(words).collect()
}

/// Says in which submodules something was changed and not committed. Only their own repositories could hold it.
fn look_into_submodules(
    repository: &Repository,
    begun: &AttemptCheckout,
) -> Result<Option<String>, GitError> {
    let dirty = repository.dirty_submodules(Some(begun.tree))?;
    let new = dirty.iter().filter(|path| !begun.inside.contains(path));
    let shown: Vec<String> = new.map(|path| visible(&String::from_utf8_lossy(path))).collect();
    let words =
        || format!("it changed files in a submodule, which are not committed here: {}", shown.join(", "));
    Ok((!shown.is_empty()).then(words))
}

/// `HEAD` is on the run's branch again. Commits of the agent's own are saved under a ref, which is given; the branch itself is
/// moved when the work is written down. It must still follow `base`, where the agent found it: what it made of its own turns
/// is its affair.
pub(in crate::pipeline) fn put_back_branch(
    recorder: &RunRecorder<'_>,
    attempt: &str,
    base: Oid,
) -> Result<(Oid, Option<String>, Vec<String>), GitError> {
    let repository = recorder.repository();
    let branch = recorder.branch();
    let ours = recorder.head();
    let mut trespasses = part_branch(recorder, attempt)?;
    trespasses.extend(repository.make_room_for_ref(&branch.to_ref()));
    let found = repository.find_head(branch)?;
    if !matches!(found, HeadOf::Branch { .. }) {
        repository.change("symbolic-ref").args(["HEAD", &branch.to_ref()]).stdout()?;
    }
    let tip = match found {
        HeadOf::Branch { tip } => tip,
        HeadOf::Elsewhere { tip } => {
            trespasses.push("it switched to another branch".to_owned());
            tip
        }
        HeadOf::Nowhere => {
            let name = branch.to_ref();
            repository
                .move_refs(&[RefMove { name: &name, new: Some(ours), old: None }], "arborist: put back")?;
            trespasses.push("it deleted or renamed the branch".to_owned());
            return Ok((ours, None, trespasses));
        }
    };
    if tip == ours {
        return Ok((ours, None, trespasses));
    }
    let saved = save(repository, attempt, tip)?;
    if !repository.is_ancestor(base, tip)? {
        trespasses.push("it moved the branch away from the run's own commits".to_owned());
    }
    Ok((tip, Some(saved), trespasses))
}

/// A branch that leads to another one is made a branch again: whoever moved it would move that other one.
fn part_branch(recorder: &RunRecorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
    let (repository, name) = (recorder.repository(), recorder.branch().to_ref());
    if !repository.leads_elsewhere(&name) {
        return Ok(Vec::new());
    }
    if let Some(tip) = repository.find_commit(&name)?.filter(|tip| *tip != recorder.head()) {
        save(repository, attempt, tip)?;
    }
    repository.unlink_ref(&name)?;
    // An older value of it may be packed.
    let old = repository.find_ref(&name)?;
    if old != Some(recorder.head()) {
        let back = RefMove { name: &name, new: Some(recorder.head()), old };
        repository.move_refs(&[back], "arborist: put back")?;
    }
    Ok(vec!["it made the branch lead to another one".to_owned()])
}

/// The branch is at `tip` again, and checked out. Where it was is saved.
pub(in crate::pipeline) fn put_back_at(
    recorder: &RunRecorder<'_>,
    attempt: &str,
    tip: Oid,
) -> Result<Vec<String>, GitError> {
    let (found, _, mut trespasses) = put_back_branch(recorder, attempt, tip)?;
    if found != tip {
        let name = recorder.branch().to_ref();
        let back = RefMove { name: &name, new: Some(tip), old: Some(found) };
        recorder.repository().move_refs(&[back], "arborist: put back")?;
        trespasses.push("it committed by itself".to_owned());
    }
    Ok(trespasses)
}

/// Whether the branch is checked out, and where the run left it.
pub(in crate::pipeline) fn is_untouched(recorder: &RunRecorder<'_>) -> Result<bool, GitError> {
    recorder.repository().is_head_at(recorder.branch(), recorder.head())
}

/// Keeps a worktree that somebody left as it may not be, on top of `parent`, and tells where.
pub(in crate::pipeline) fn save_tree(
    repository: &Repository,
    attempt: &str,
    (tree, parent): (Oid, Oid),
) -> Result<String, GitError> {
    let message = format!("worktree after {}\n", attempt.trim_start_matches("refs/arborist/wip/"));
    let commit =
        repository.write_commit(NewCommit { tree, parent, message: &message, author: None }, Signing::No)?;
    save(repository, attempt, commit)
}

/// Keeps commits that nothing else would hold, named after the mark of an attempt, and tells where.
fn save(repository: &Repository, attempt: &str, tip: Oid) -> Result<String, GitError> {
    let folder = attempt.replace("refs/arborist/wip/", "refs/arborist/saved/");
    let name = format!("{folder}-{}", tip.short());
    if repository.list_refs(&[&name])?.is_empty() {
        repository.move_refs(&[RefMove { name: &name, new: Some(tip), old: None }], "arborist: saved")?;
    }
    Ok(name)
}
