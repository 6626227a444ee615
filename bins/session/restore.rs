//! Goes back to a turn: a commit restores its tree and the states of all tasks.

use std::{
    collections::HashSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use arborist_core::{
    failure::{Exit, Failure},
    gardener::start::{FrozenPlan, difference, write_change},
    git::{RefMove, Repository, TreeChange},
    history::{BROUGHT_BACK, Run},
    message::{Body, Status, SubjectParts},
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
    plan::Plan,
    process::{FileLock, OrphanLock, shell_word},
    record::{RunRecorder, StagedCommit, TaskEvent, UnfinishedAttempt, repair_index},
    session::StoredRecord,
    settings::TRACKED_FILES,
    worktree::SessionWorktree,
};

use super::{
    moment::{self, Moment, PastTask},
    open::OpenSessions,
    other_repos,
    resume::lock,
};
use crate::ui::Ui;

/// Restores the tree of a turn on the session's branch, and returns the commit.
pub(super) fn turn(
    opened: &OpenSessions,
    newest: &StoredRecord,
    session_worktree: &SessionWorktree,
    history: &Run,
    number: u32,
    ui: &mut Ui,
) -> Result<Oid, Failure> {
    let stored = opened.session_reader().turn(newest, number)?;
    let session = &stored.record.session;
    let branch = &newest.record.context.branch;
    let lock = lock(&session_worktree.repository, branch)?;
    let _orphan_lock = end_leftover_processes(&lock, ui)?;
    let moment = Moment::of(opened, newest, number)?;
    let (commit, head) = (moment.commit, moment.point.head);
    let words = other_repos::words_on(newest, number, head);
    let node = stored.record.turn().map(|turn| &turn.node);
    // The commit in the plan's repository counts, so it comes last.
    for other in other_repos::at(opened, newest, (number, commit))? {
        // Each repository names its own commit, because the base of a task's work there is found by it.
        let words = other_repos::words_on(newest, number, other.point);
        node.map(|node| other.restore(session, node, &words)).transpose()?;
    }
    let (mut recorder, tree, changes) = restore(session_worktree, branch, session, commit)?;
    let (repository, tip) = (&session_worktree.repository, recorder.head());
    let is_under_way = head == stored.record.context.head;
    let mut tasks = later_tasks(repository, history, commit, tip, node.filter(|_| is_under_way))?;
    if let (true, false, Some(node)) = (tasks.is_empty(), changes.is_empty(), node) {
        tasks.push((node.clone(), node.to_string()));
    }
    let restored = bring_back(
        &mut recorder,
        &tasks,
        tree,
        &changes,
        &Past { tasks: moment::past_tasks(opened, newest, &moment)?, words },
    )?;
    let restored_plan = bring_back_plan(opened, newest, history, &moment, &mut recorder)?;
    ui.note(&match restored.as_slice() {
        [] => format!("turn {number} is the last one"),
        some => {
            format!(
                "restored the files as they were after turn {number}, and the states of the tasks: {}",
                some.join(", ")
            )
        }
    });
    if !restored_plan.is_empty() {
        ui.note(&format!(
            "the plan of turn {number} is in force again; compared with the later one, it has these changes:\n{restored_plan}"
        ));
    }
    Ok(recorder.head())
}

/// Records that the plan and the configuration of that time are in force again, if others were accepted since: the run
/// would refuse the restored files as changed ones. Returns the changes of the plan, one line each.
fn bring_back_plan(
    opened: &OpenSessions,
    newest: &StoredRecord,
    history: &Run,
    moment: &Moment,
    recorder: &mut RunRecorder<'_>,
) -> Result<String, Failure> {
    let Some(start) = &history.start else { return Ok(String::new()) };
    let Some(plan) = moment::restored_plan(opened, newest, history, moment)? else {
        return Ok(String::new());
    };
    let repository = &opened.repository;
    let mut is_same = start.plan.as_ref() == Some(&plan);
    for path in TRACKED_FILES {
        let (now, then) =
            (repository.find_path(start.accepted, path)?, repository.find_path(moment.commit, path)?);
        is_same &= now == then;
    }
    if !is_same {
        write_change(recorder, FrozenPlan::Kept(&plan), "brought back", Body::default())?;
    }
    let now = Plan::read_frozen(repository, start.plan.as_ref())?;
    let then = Plan::read_frozen(repository, Some(&plan))?;
    Ok(match (now, then) {
        (Some(Ok(now)), Some(Ok(then))) => difference(&now, &then),
        _ => String::new(),
    })
}

/// Restores the worktree of a session's branch to `commit`. Returns the recorder and the changes. Uncommitted changes
/// are not overwritten.
pub(super) fn restore<'h>(
    session_worktree: &'h SessionWorktree,
    branch: &BranchName,
    session: &SessionId,
    commit: Oid,
) -> Result<(RunRecorder<'h>, Oid, Vec<TreeChange>), Failure> {
    let repository = &session_worktree.repository;
    let tip = repository.require_commit(&branch.to_ref())?;
    let tree = repository.tree_of(commit)?;
    let is_there = repository.snapshot()? == tree;
    if !is_there && !repository.is_clean()? {
        let path = session_worktree.path.display().to_string();
        let hint = format!("commit them, or stash them with: git -C {} stash -u", shell_word(&path));
        return Err(Failure::new(Exit::Person, format!("'{path}' has uncommitted changes")).hint(hint));
    }
    repair_index(repository, branch, tip)?;
    let changes = repository.changes(repository.tree_of(tip)?, tree)?;
    if !is_there {
        refuse_to_overwrite(repository.top(), &changes)?;
    }
    // Files come first: after a kill, the next call finds them in their final state and continues.
    repository.restore_paths(tree, &changes)?;
    Ok((RunRecorder::new(repository, branch.clone(), session.clone(), tip)?, tree, changes))
}

/// Ends processes that a crashed run left, before anything is read: they would write into the restored files.
fn end_leftover_processes(lock: &FileLock, ui: &mut Ui) -> Result<OrphanLock, Failure> {
    let (orphan_lock, ended) =
        OrphanLock::take_over(lock, &OrphanLock::beside(lock.path()), Duration::from_secs(5))?;
    if !ended.is_empty() {
        let pids: Vec<String> = ended.iter().map(ToString::to_string).collect();
        ui.warn(&format!("ended processes that a crashed run had left: {}", pids.join(", ")));
    }
    Ok(orphan_lock)
}

/// What is restored.
pub(super) struct Past {
    pub(super) tasks: Vec<PastTask>,
    pub(super) words: String,
}

/// Resets tasks, the first together with the changes of the tree, and records again what had happened to them at that
/// time. Returns their states.
pub(super) fn bring_back(
    recorder: &mut RunRecorder<'_>,
    tasks: &[(TaskId, String)],
    tree: Oid,
    changes: &[TreeChange],
    past: &Past,
) -> Result<Vec<String>, Failure> {
    // Work that a killed run had not finished is undone too.
    let unfinished = UnfinishedAttempt::find_all(recorder.repository(), recorder.branch())?;
    let mut ended: Vec<RefMove<'_>> = unfinished.iter().map(UnfinishedAttempt::end_move).collect();
    let mut changes = changes;
    let mut restored = Vec::new();
    for (task, name) in tasks {
        let mut entry =
            TaskEvent::new(task.clone(), Status::Reset, SubjectParts { name, attempt: Attempt(0), max: 0 });
        entry.body = Body::new(BROUGHT_BACK, &past.words);
        let delivery = StagedCommit { tree, tip: recorder.head(), changes, index: None };
        recorder.record_staged(entry, delivery, &ended)?;
        (changes, ended) = (&[], Vec::new());
        let before = past.tasks.iter().find(|before| before.task == *task);
        if let Some(before) = before {
            before.repeat(recorder)?;
        }
        let state = before.map(PastTask::state).unwrap_or_default().state;
        restored.push(format!("{task} {}", state.as_str()));
    }
    Ok(restored)
}

/// Refuses to overwrite or delete ignored files, which no commit has.
fn refuse_to_overwrite(top: &Path, changes: &[TreeChange]) -> Result<(), Failure> {
    let tracked: HashSet<&Path> =
        changes.iter().filter(|change| change.before.is_some()).map(path_of).collect();
    for change in changes.iter().filter(|change| change.before.is_none()) {
        let path = path_of(change);
        let above = path.ancestors().skip(1).find(|folder| {
            top.join(folder).symlink_metadata().is_ok_and(|found| !found.is_dir())
                && !tracked.contains(folder)
        });
        if let Some(found) = above.map(Path::to_owned).or_else(|| find_untracked(top, path, &tracked)) {
            let words = format!("the untracked file '{}' would be overwritten", top.join(found).display());
            return Err(Failure::new(Exit::Person, words).hint("move it away and try again"));
        }
    }
    Ok(())
}

/// An untracked file at this path or below it.
fn find_untracked(top: &Path, path: &Path, tracked: &HashSet<&Path>) -> Option<PathBuf> {
    let whole = top.join(path);
    if !whole.symlink_metadata().ok()?.is_dir() {
        return (!tracked.contains(path)).then(|| path.to_owned());
    }
    let Ok(entries) = std::fs::read_dir(&whole) else {
        return Some(path.to_owned());
    };
    entries.flatten().find_map(|entry| find_untracked(top, &path.join(entry.file_name()), tracked))
}

fn path_of(change: &TreeChange) -> &Path {
    Path::new(OsStr::from_bytes(&change.path))
}

/// The tasks with events after `commit`, and the one that was in progress then, with their names.
fn later_tasks(
    repository: &Repository,
    history: &Run,
    commit: Oid,
    tip: Oid,
    node: Option<&TaskId>,
) -> Result<Vec<(TaskId, String)>, Failure> {
    let later: HashSet<Oid> = repository.list_between(&[tip], &[commit])?.into_iter().collect();
    let is_later = |task: &&arborist_core::history::TaskHistory| {
        Some(&task.id) == node || task.current().iter().any(|event| later.contains(&event.commit))
    };
    let found = history.tasks.iter().filter(is_later);
    let mut tasks: Vec<(TaskId, String)> =
        found.map(|task| (task.id.clone(), task.name().unwrap_or(task.id.as_str()).to_owned())).collect();
    if let (true, Some(node)) = (tasks.is_empty(), node) {
        tasks.push((node.clone(), node.to_string()));
    }
    Ok(tasks)
}
