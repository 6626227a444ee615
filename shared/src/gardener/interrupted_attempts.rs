//! Records attempts that a crash interrupted, with the files that they left.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::{
    gardener::GardenerError,
    git::{HiddenMarks, Repository, TreeChange, WorktreeSnapshot},
    history::{Event, Run},
    message::{Status, SubjectParts, first_of},
    name::{Oid, TaskId},
    pipeline::{
        ConfigGuard, RestoredTrees, RunOptions, UsersPaths, mark_interrupted, move_unreadable,
        quit_operations, restore_files,
    },
    plan::Plan,
    record::{RunRecorder, StagedCommit, TaskEvent, UnfinishedAttempt},
};

/// What recovery needs to know about tasks.
pub(super) struct TaskFacts<'a> {
    /// The events from which a task's attempts are counted.
    pub(super) events: &'a dyn Fn(&TaskId) -> &'a [Event],
    /// A task's name.
    pub(super) name: &'a dyn Fn(&TaskId) -> Option<&'a str>,
    /// The pathspecs that the plan allows a task to change.
    pub(super) allow: &'a dyn Fn(&TaskId) -> &'a [String],
    /// The options of the run.
    pub(super) options: &'a RunOptions,
    /// Knows the scripts that judge tasks.
    pub(super) config_guard: &'a ConfigGuard,
    /// Why the attempts did not end. `None` after a crash.
    pub(super) why: Option<&'a str>,
}

/// How many files are named in a message.
const MAX_NAMES: usize = 5;
/// How often files that judge tasks are looked for: restoring a link can show another one.
const MAX_ROUNDS: usize = 5;

/// An interrupted attempt that has been recorded.
#[derive(Debug)]
pub struct Recovered {
    attempt: UnfinishedAttempt,
    pub(super) event: Event,
    /// The files that were committed. Who wrote them is not known.
    files: Vec<String>,
    /// Those of them that were staged in the user's index.
    staged: Vec<String>,
    /// Nested repositories, which a commit cannot hold.
    inner: Vec<String>,
    /// A message about files that git cannot add.
    moved: Option<String>,
    /// Messages about files that no task may change.
    restored: Vec<String>,
}

impl Recovered {
    /// Whether the attempt left files, which are committed now.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// A description for the user.
    #[must_use]
    pub fn words(&self) -> String {
        let UnfinishedAttempt { task, attempt, .. } = &self.attempt;
        let mut words = format!("attempt {} of {task} was interrupted; ", attempt.ordinal());
        words += &match self.files.len() {
            0 if !self.restored.is_empty() => "none of its files are committed".to_owned(),
            0 => "it left no uncommitted files".to_owned(),
            _ => format!("the files that it left are now committed: {}", first_of(&self.files, MAX_NAMES)),
        };
        if !self.staged.is_empty() {
            words += &format!("; these were staged: {}", first_of(&self.staged, MAX_NAMES));
        }
        if !self.inner.is_empty() {
            words += &format!(
                "; a repository inside the repository was left as it is: {}",
                first_of(&self.inner, MAX_NAMES)
            );
        }
        for more in self.moved.iter().chain(&self.restored) {
            words += &format!("; {more}");
        }
        words
    }
}

/// Records unfinished attempts as interrupted, and returns them.
pub fn recover(
    recorder: &mut RunRecorder<'_>,
    run: &Run,
    plan: &Plan,
    options: &RunOptions,
    config_guard: &ConfigGuard,
) -> Result<Vec<Recovered>, GardenerError> {
    let events = |task: &TaskId| run.find(task).map_or(&[][..], |history| history.current());
    let name = |task: &TaskId| {
        let planned = plan.find(task).map(|task| task.name.as_str());
        planned.or_else(|| run.find(task).and_then(|history| history.name()))
    };
    let allow = |task: &TaskId| plan.find(task).map_or(&[][..], |task| &task.allow);
    let known = TaskFacts { events: &events, name: &name, allow: &allow, options, config_guard, why: None };
    record_unfinished(recorder, &known)
}

/// Records the unfinished attempts on the recorder's branch as interrupted. `known` tells about their tasks: from the run's
/// history, or in a lane from the task itself.
pub(super) fn record_unfinished(
    recorder: &mut RunRecorder<'_>,
    known: &TaskFacts<'_>,
) -> Result<Vec<Recovered>, GardenerError> {
    let mut written = Vec::new();
    for attempt in UnfinishedAttempt::find_all(recorder.repository(), recorder.branch())? {
        let events = (known.events)(&attempt.task);
        // A turn belongs to an attempt but does not end it.
        let is_end =
            |event: &&Event| event.attempt() == Some(attempt.attempt) && event.status() != Status::Turn;
        let last = events.iter().rfind(is_end);
        let is_written = match last {
            Some(event) => !recorder.repository().is_ancestor(event.commit, attempt.mark_commit)?,
            None => false,
        };
        if is_written {
            // An event after the mark was written by the attempt itself, so only the mark was left over.
            recorder.repository().move_refs(&[attempt.end_move()], "arborist: ended")?;
            continue;
        }
        written.push(record_attempt(recorder, attempt, known)?);
    }
    Ok(written)
}

/// Records an attempt as interrupted, with the files that it left. The caller holds the lock of the run, and no process of
/// the attempt is left. The mark of the attempt is removed together with writing the commit, so if the process is killed
/// before, the next run does all of this again with what the earlier steps left:
///
/// 1. Distrust the index, and take a snapshot. From here on, the index is known.
/// 2. Move files away that git cannot add.
/// 3. Stage again what the user had staged and the agent unstaged.
/// 4. Restore files with uncommitted changes of the user that the agent has changed.
/// 5. Restore everything if an older commit may have been checked out, then protected files and scripts. What is replaced
///    is saved under refs first.
/// 6. Write the commit. Its tree is the run's, with the changes that are left.
fn record_attempt(
    recorder: &mut RunRecorder<'_>,
    attempt: UnfinishedAttempt,
    known: &TaskFacts<'_>,
) -> Result<Recovered, GardenerError> {
    let repository = recorder.repository();
    let before = repository.tree_of(attempt.mark_commit)?;
    // The attempt's agent could have written the index, and it has not been checked since.
    repository.make_index_known(HiddenMarks::Kept)?;
    let WorktreeSnapshot { tree: after, unreadable, .. } = repository.take_snapshot()?;
    let branch_tree = branch_tree_before(recorder, &attempt)?;
    let staged_before = attempt.find_staged(repository)?;
    let users_paths =
        UsersPaths::of_checkout(repository, branch_tree, before, staged_before.unwrap_or(branch_tree))?;
    // A file that git cannot add must not prevent every later run.
    let unreadable = unreadable.iter().filter(|found| !users_paths.covers(&found.path));
    let moved = move_unreadable(repository, after, &unreadable.collect::<Vec<_>>())?;
    if let Some(staged) = staged_before {
        stage_again_what_was_unstaged(repository, staged, [branch_tree, before])?;
    }
    let touched = repository.changes(before, after)?;
    let violations = users_paths.restore(repository, &attempt, before, after, &touched)?;
    let left = repository.changes(recorder.tree(), after)?;
    let left = left.into_iter().filter(|change| !users_paths.covers_change(change));
    let (inner, mut changes): (Vec<TreeChange>, Vec<TreeChange>) = left.partition(TreeChange::is_gitlink);
    let unclear = restore_after_private_checkout(recorder, &attempt, &users_paths, &mut changes)?;
    let mut restored = restore_guarded_files(recorder, &attempt, known, &mut changes)?;
    restored.extend(unclear);
    let staged = find_staged(recorder, &changes)?;
    let tree =
        if changes.is_empty() { recorder.tree() } else { repository.tree_with(recorder.tree(), &changes)? };
    let name = (known.name)(&attempt.task).unwrap_or(attempt.task.as_str()).to_owned();
    let wording = SubjectParts { name: &name, attempt: attempt.attempt, max: known.options.max_retries };
    let mut entry = TaskEvent::new(attempt.task.clone(), Status::ImplementFail, wording);
    let why = [known.why.unwrap_or("the run ended before the agent did").to_owned()].into_iter();
    let why = why.chain(violations.in_one_line()).chain(moved.clone()).chain(restored.clone());
    let why = why.chain(quit_operations(repository, &attempt.name)?);
    mark_interrupted(&mut entry, &why.collect::<Vec<_>>().join("; "));
    let delivery = StagedCommit { tree, tip: recorder.head(), changes: &changes, index: None };
    let event = recorder.record_staged(entry, delivery, &[attempt.end_move()])?;
    let [files, inner] = [&changes, &inner].map(|changes| changes.iter().map(TreeChange::shown).collect());
    Ok(Recovered { attempt, event, files, staged, inner, moved, restored })
}

/// Restores all files if the agent had a private git directory and files of the branch differ: it may have checked out an
/// older commit. Returns a message.
fn restore_after_private_checkout(
    recorder: &RunRecorder<'_>,
    attempt: &UnfinishedAttempt,
    users_paths: &UsersPaths,
    changes: &mut Vec<TreeChange>,
) -> Result<Option<String>, GardenerError> {
    let (repository, base, head) = (recorder.repository(), recorder.tree(), recorder.head());
    if changes.iter().all(|change| change.before.is_none()) || !attempt.had_private_git(repository)? {
        return Ok(None);
    }
    let trees = RestoredTrees { base, tree: repository.tree_with(base, changes)?, head };
    // The ignore rules of an older commit may not cover files that ours ignore. So they are restored first, and what is
    // new is listed again.
    let is_first = |change: &TreeChange| change.before.is_some() || change.is_called(".gitignore");
    changes.retain(is_first);
    let (_, kept) = restore_files(repository, &attempt.name, trees, changes, &|_| false)?;
    let now = repository.take_snapshot()?.tree;
    let mut new = repository.changes(base, now)?;
    new.retain(|change| !change.is_gitlink() && !users_paths.covers_change(change));
    repository.restore_paths(base, &new)?;
    repository.stage_as_in(&base.to_string(), &new)?;
    changes.clear();
    Ok(Some(format!(
        "its files may belong to an older commit that the agent had checked out; they are kept in {kept}, and the checkout was restored"
    )))
}

/// Restores files that a task must not change: protected ones, and scripts that git or a reviewer runs. Returns
/// messages about them.
fn restore_guarded_files(
    recorder: &RunRecorder<'_>,
    attempt: &UnfinishedAttempt,
    known: &TaskFacts<'_>,
    changes: &mut Vec<TreeChange>,
) -> Result<Vec<String>, GardenerError> {
    let (repository, base, head) = (recorder.repository(), recorder.tree(), recorder.head());
    let (protection, allow) = (&known.options.protection, (known.allow)(&attempt.task));
    let mut messages = Vec::new();
    for _ in 0..MAX_ROUNDS {
        if changes.is_empty() {
            break;
        }
        let tree = repository.tree_with(base, changes)?;
        let protected = protection.find_changes(repository, (base, tree), allow)?;
        let scripts = known.config_guard.list_scripts(repository);
        let is_guarded = |change: &TreeChange| {
            let path = repository.top().join(OsStr::from_bytes(&change.path));
            scripts.contains(&path) || protected.has_refused(&change.path)
        };
        let (files, others): (Vec<TreeChange>, Vec<TreeChange>) = changes.drain(..).partition(is_guarded);
        *changes = others;
        if files.is_empty() {
            break;
        }
        let trees = RestoredTrees { base, tree, head };
        let (_, kept) = restore_files(repository, &attempt.name, trees, &files, &|_| false)?;
        let names: Vec<String> = files.iter().map(TreeChange::shown).collect();
        messages.push(format!(
            "files that a task must not change were restored, and the task's versions are kept in {kept}: {}",
            first_of(&names, MAX_NAMES)
        ));
    }
    Ok(messages)
}

/// Stages again what was staged when the attempt started and is in none of these trees: an agent may have unstaged it.
fn stage_again_what_was_unstaged(
    repository: &Repository,
    staged: Oid,
    known: [Oid; 2],
) -> Result<(), GardenerError> {
    // An index with conflicts has no tree. The user is working on it, so leave it alone.
    let Ok(now) = repository.staged() else { return Ok(()) };
    let mut lost = repository.changes(now, staged)?;
    for tree in known {
        let other = repository.changes(tree, staged)?;
        lost.retain(|change| other.iter().any(|other| other.path == change.path));
    }
    Ok(repository.enter(&lost)?)
}

/// Those of these changes that are staged. In a lane only an agent can have staged them, so none are returned.
fn find_staged(recorder: &RunRecorder<'_>, changes: &[TreeChange]) -> Result<Vec<String>, GardenerError> {
    if !recorder.is_on_run_branch() || changes.is_empty() {
        return Ok(Vec::new());
    }
    let staged = recorder.repository().staged_since(recorder.head())?;
    let is_staged = |change: &&TreeChange| staged.contains(&change.path);
    Ok(changes.iter().filter(is_staged).map(TreeChange::shown).collect())
}

/// The tree of the branch when the attempt started. The mark points to the branch's commit at that time, or to a child
/// of it.
fn branch_tree_before(recorder: &RunRecorder<'_>, attempt: &UnfinishedAttempt) -> Result<Oid, GardenerError> {
    let repository = recorder.repository();
    if repository.is_ancestor(attempt.mark_commit, recorder.head())? {
        return Ok(repository.tree_of(attempt.mark_commit)?);
    }
    let commits = repository.load_commits(&[attempt.mark_commit])?;
    let parent = commits.first().and_then(|commit| commit.parents().next());
    Ok(repository.tree_of(parent.unwrap_or(recorder.head()))?)
}
