//! Commits and records a turn. Changes that the user had made before are left out, and nothing is committed during a
//! merge.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use arborist_core::{
    failure::{Exit, Failure},
    git::{NewCommit, OperationInProgress, RefMove, Repository, Signing, TreeChange, WorktreeSnapshot},
    message::visible,
    name::{BranchName, Oid, SessionId},
    process::FileLock,
    record::{RunRecorder, StagedCommit, UnfinishedAttempt, repair_index},
    run::lock_branch,
    session::{DraftRecord, RecordKind, SessionError, SessionWriter, Turn, TurnDraft},
};

use super::{
    external_driver::place,
    paths::{is_below, require_committable},
    turn::{ReportedTurn, commit_of, turn_of},
};
use crate::clock;

/// The ref of one session on its branch.
pub(super) struct SessionMark(String);

/// The files of the worktree, and the tree of the branch.
pub(super) struct TurnStart {
    pub(super) tree: Oid,
    committed: Oid,
}

impl SessionMark {
    pub(super) fn new(branch: &BranchName, session: &SessionId) -> Self {
        // No task can have this name, so it does not collide with marks of attempts.
        Self(format!("{}{}/@session/{session}", UnfinishedAttempt::REFS, branch.component()))
    }

    pub(super) fn find(&self, repository: &Repository) -> Result<Option<TurnStart>, Failure> {
        let Some(commit) = repository.find_ref(&self.0)? else {
            return Ok(None);
        };
        let parent = repository.load_commits(&[commit])?.first().and_then(|commit| commit.parents().next());
        let tree = repository.tree_of(commit)?;
        let committed = parent.map(|parent| repository.tree_of(parent)).transpose()?;
        Ok(Some(TurnStart { tree, committed: committed.unwrap_or(tree) }))
    }

    /// Saves the files of the worktree, with the branch at `head`.
    pub(super) fn set(&self, repository: &Repository, tree: Oid, head: Oid) -> Result<(), Failure> {
        let old = repository.find_ref(&self.0)?;
        let commit = NewCommit { tree, parent: head, message: "worktree before a turn\n", author: None };
        let new = Some(repository.write_commit(commit, Signing::No)?);
        Ok(repository.move_refs(&[RefMove { name: &self.0, new, old }], "arborist: session")?)
    }

    pub(super) fn take_away(&self, repository: &Repository) -> Result<(), Failure> {
        let Some(old) = repository.find_ref(&self.0)? else {
            return Ok(());
        };
        let gone = RefMove { name: &self.0, new: None, old: Some(old) };
        Ok(repository.move_refs(&[gone], "arborist: session")?)
    }
}

impl TurnStart {
    /// The paths that had been changed before and are not committed in `branch` in that state.
    pub(super) fn changed(&self, repository: &Repository, branch: Oid) -> Result<HashSet<Vec<u8>>, Failure> {
        let then = paths_between(repository, self.committed, self.tree)?;
        let now = paths_between(repository, branch, self.tree)?;
        Ok(then.intersection(&now).cloned().collect())
    }
}

fn paths_between(repository: &Repository, before: Oid, after: Oid) -> Result<HashSet<Vec<u8>>, Failure> {
    Ok(repository.changes(before, after)?.into_iter().map(|change| change.path).collect())
}

/// How long to wait for another turn on the branch.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Which changes belong to a turn.
pub(super) enum TurnScope {
    /// Changes at these paths or below them.
    Paths(Vec<PathBuf>),
    /// Changes since the last turn, except in files that had been changed before.
    Since,
}

/// What to do with a turn while a merge or the like is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amid {
    /// Refuse it.
    Refused,
    /// Record it without a commit.
    Recorded,
}

/// The changes to commit, and those of the turn that are not committed.
struct Choice {
    changes: Vec<TreeChange>,
    is_all: bool,
    left_out: Vec<String>,
}

/// Locks the branch against other turns. What was read before may be outdated.
pub(super) fn lock(repository: &Repository) -> Result<FileLock, Failure> {
    let (branch, _) = place(repository)?;
    lock_branch(repository, &branch, "git arborist session turn", Some(LOCK_TIMEOUT))
}

/// Commits and records a turn, under the lock of the branch.
pub(super) fn commit_turn(
    _lock: &FileLock,
    repository: &Repository,
    session_writer: &SessionWriter,
    reported: &ReportedTurn,
    meant: &TurnScope,
    amid: Amid,
) -> Result<(), Failure> {
    let (branch, head) = place(repository)?;
    let mark = SessionMark::new(&branch, session_writer.session());
    let before = repository.index_stamp();
    let staged = repository.staged_since(head)?;
    if let Some(refusal) = find_unsettled(repository, &staged)? {
        if amid == Amid::Refused {
            return Err(refusal);
        }
        let turn = Turn { not_committed: Some(refusal.message), ..turn_of(reported, &[]) };
        session_writer.append(clock::now(), |number| {
            let turn = Turn { number, ..turn.clone() };
            Ok::<_, SessionError>(DraftRecord::at(head, RecordKind::Turn(turn)))
        })?;
        return mark.set(repository, repository.snapshot()?, head);
    }
    repair_index(repository, &branch, head)?;
    let mut recorder = RunRecorder::new(repository, branch, session_writer.session().clone(), head)?;
    let WorktreeSnapshot { tree: snapshot, index, .. } = repository.take_snapshot()?.require_readable()?;
    let Choice { changes, is_all, left_out } = choose(repository, &mark, meant, recorder.tree(), snapshot)?;
    let tree = match is_all {
        _ if changes.is_empty() => recorder.tree(),
        true => snapshot,
        false => repository.tree_with(recorder.tree(), &changes)?,
    };
    let is_all_ours = tree == snapshot && staged.is_empty() && index.follows(before);
    let index = is_all_ours.then_some(&index);
    let delivery = StagedCommit { tree, tip: head, changes: &changes, index };
    let pipeline = session_writer.newest().record.context.pipeline;
    let draft = |_| TurnDraft {
        entry: (!changes.is_empty()).then(|| commit_of(reported, &pipeline, &changes)),
        turn: Turn { not_committed: already_changed(&left_out), ..turn_of(reported, &changes) },
        transcript: None,
    };
    session_writer.deliver_turn(&mut recorder, delivery, clock::now(), draft)?;
    mark.set(repository, snapshot, recorder.head())
}

/// The changes in `snapshot` to commit on top of `branch`.
fn choose(
    repository: &Repository,
    mark: &SessionMark,
    meant: &TurnScope,
    branch: Oid,
    snapshot: Oid,
) -> Result<Choice, Failure> {
    let all = repository.changes(branch, snapshot)?;
    repository.require_verified(branch, snapshot)?;
    let count = all.len();
    let mut left_out = Vec::new();
    let chosen: Vec<TreeChange> = match meant {
        TurnScope::Paths(paths) => {
            require_committable(repository, paths, branch, snapshot)?;
            all.into_iter().filter(|change| is_below(change, paths)).collect()
        }
        TurnScope::Since => {
            let before = mark.find(repository)?.ok_or_else(|| {
                Failure::new(Exit::Person, "the state of the worktree before the turn is not known any more")
                    .hint("name the files that the turn wrote with --files-from <file>")
            })?;
            let written = paths_between(repository, before.tree, snapshot)?;
            let earlier = before.changed(repository, branch)?;
            let (foreign, own): (Vec<TreeChange>, Vec<TreeChange>) = all
                .into_iter()
                .filter(|change| written.contains(&change.path))
                .partition(|change| earlier.contains(&change.path));
            left_out = foreign.iter().map(TreeChange::shown).collect();
            own
        }
    };
    let changes: Vec<TreeChange> = chosen.into_iter().filter(|change| !change.is_gitlink()).collect();
    let is_all = changes.len() == count;
    Ok(Choice { changes, is_all, left_out })
}

fn already_changed(paths: &[String]) -> Option<String> {
    match paths {
        [] => None,
        [one] => Some(format!("{one} was already changed")),
        [one, rest @ ..] => Some(format!("{one} and {} more were already changed", rest.len())),
    }
}

/// An operation of the user in progress that a commit would destroy.
fn find_unsettled(repository: &Repository, staged: &[Vec<u8>]) -> Result<Option<Failure>, Failure> {
    if let Some(going_on) = OperationInProgress::find_operation(&repository.git_dir) {
        let words = format!("a {} is in progress here", going_on.what);
        return Ok(Some(Failure::new(Exit::Person, words).hint("finish or cancel it first")));
    }
    // Conflicting files are not unchanged either.
    let unmerged = if staged.is_empty() { Vec::new() } else { repository.unmerged()? };
    Ok(unmerged.first().map(|path| {
        Failure::new(Exit::Person, format!("'{}' is in conflict", visible(path)))
            .hint("resolve it first, then run: git add <file>")
    }))
}
