//! Keeps the user's index in step with the branch. The branch moves first, and until the index follows, the user's next
//! commit would revert the change. So a mark is written with the move, and removed after the index was updated: after a
//! crash it says what is still to be done.

use std::collections::HashSet;

use super::{PreparedCommit, RecordError, RunRecorder, RunWideEvent, TaskEvent};
use crate::{
    git::{GitError, IndexFile, RawCommit, RefMove, Repository, TreeChange},
    history::Event,
    message::Status,
    name::{BranchName, Oid},
};

/// A commit, and what it changes in the checkout.
#[derive(Debug, Clone, Copy)]
pub struct StagedCommit<'a> {
    /// Its tree.
    pub tree: Oid,
    /// The current tip of the branch.
    pub tip: Oid,
    /// The changes since the commit before.
    pub changes: &'a [TreeChange],
    /// An index of the whole worktree, if everything in it is committed and nothing else was staged. It replaces the
    /// user's index.
    pub index: Option<&'a IndexFile>,
}

/// Whether the index contains what was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexUpdate {
    /// It does.
    #[default]
    UpToDate,
    /// It does not.
    Behind,
}

/// A ref that exists while a turn is committed and the index does not contain it yet.
#[derive(Debug)]
pub struct TurnMark {
    name: String,
    before: Oid,
}

impl TurnMark {
    /// Creates the ref.
    #[must_use]
    pub fn begin_move(&self) -> RefMove<'_> {
        RefMove { name: &self.name, new: Some(self.before), old: None }
    }
}

/// The refs that move with the commit of a step: the branch, and the mark that is created with it.
#[derive(Debug)]
pub struct StepMoves {
    branch: String,
    tip: Oid,
    mark: Option<(String, Oid)>,
}

impl StepMoves {
    /// The moves that record this commit, the branch last.
    #[must_use]
    pub fn to<'m>(&'m self, commit: Oid, other_moves: &[RefMove<'m>]) -> Vec<RefMove<'m>> {
        let moved = RefMove { name: &self.branch, new: Some(commit), old: Some(self.tip) };
        self.begin_move().into_iter().chain(other_moves.iter().copied()).chain([moved]).collect()
    }

    fn begin_move(&self) -> Option<RefMove<'_>> {
        self.mark.as_ref().map(|(name, before)| RefMove { name, new: Some(*before), old: None })
    }
}

/// The prefix of marks of turns. Their missing files are not written again: the agent may have deleted them.
const TURN: &str = "turn-";
/// The prefix of marks of commits whose files are written into the checkout, such as a report.
const WRITTEN: &str = "written-";

impl RunRecorder<'_> {
    /// Records an event as [`RunRecorder::record_over`] does, and updates the index. Files that are missing in the
    /// checkout are written there. In a lane there is no user whose index could be wrong, so there is no mark.
    pub fn record_staged(
        &mut self,
        event: TaskEvent<'_>,
        staged: StagedCommit<'_>,
        other_moves: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        let StagedCommit { tree, tip, changes, index } = staged;
        self.write_with_mark(changes, index, other_moves, |recorder, moves| {
            recorder.record_over(event, tree, tip, moves)
        })
    }

    /// Waits while the user commits in this checkout, and returns the refs that will move with the commit of a step, for a
    /// caller that moves other refs with them.
    pub fn plan_step(&self, staged: &StagedCommit<'_>) -> Result<StepMoves, RecordError> {
        self.await_user()?;
        let has_mark = !staged.changes.is_empty() && self.is_on_run_branch();
        let are_written = || self.repository().are_missing(staged.changes);
        let mark = has_mark.then(|| (step_mark_name(self.branch(), self.head(), are_written()), self.head()));
        Ok(StepMoves { branch: self.branch().to_ref(), tip: staged.tip, mark })
    }

    /// Accepts that the refs were moved as [`StepMoves::to`] says, and updates the index.
    pub fn finish_step(
        &mut self,
        prepared: PreparedCommit,
        moves: StepMoves,
        staged: &StagedCommit<'_>,
    ) -> Result<Event, RecordError> {
        let event = self.accept(prepared);
        self.update_index_and_files(staged.changes, staged.index)?;
        if let Some((name, before)) = moves.mark {
            remove_mark(self.repository(), &name, before)?;
        }
        Ok(event)
    }

    /// Moves the branch to a prepared step, and other refs with it.
    pub fn commit_step(
        &mut self,
        prepared: PreparedCommit,
        moves: StepMoves,
        staged: &StagedCommit<'_>,
        other_moves: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        let beside: Vec<RefMove<'_>> =
            moves.begin_move().into_iter().chain(other_moves.iter().copied()).collect();
        self.move_branch(prepared.commit, moves.tip, &beside)?;
        self.finish_step(prepared, moves, staged)
    }

    /// Records the prepared commit of a turn, and updates the index. The agent is still working in the checkout, so nothing is written
    /// there. If its git holds the index, that stays behind until [`RunRecorder::catch_up_index`].
    pub fn deliver_turn(
        &mut self,
        prepared: PreparedCommit,
        staged: StagedCommit<'_>,
    ) -> Result<(Event, IndexUpdate), RecordError> {
        let mark = self.turn_mark();
        let begun = mark.as_ref().map(TurnMark::begin_move);
        self.move_branch(prepared.commit, staged.tip, begun.as_slice())?;
        let event = self.accept(prepared);
        Ok((event, self.stage_turn(mark, staged)?))
    }

    /// The mark for the next turn. In a lane there is no user whose index could be wrong, so there is no mark.
    #[must_use]
    pub fn turn_mark(&self) -> Option<TurnMark> {
        let before = self.head();
        self.is_on_run_branch().then(|| TurnMark { name: turn_mark_name(self.branch(), before), before })
    }

    /// Updates the index after a turn, and removes its mark.
    pub fn stage_turn(
        &self,
        mark: Option<TurnMark>,
        staged: StagedCommit<'_>,
    ) -> Result<IndexUpdate, RecordError> {
        let is_there = staged.index.is_some_and(|index| self.repository().install_index(index));
        if !is_there && self.repository().stage_if_unlocked(staged.changes).is_err() {
            return Ok(IndexUpdate::Behind);
        }
        if let Some(mark) = mark {
            remove_mark(self.repository(), &mark.name, mark.before)?;
        }
        Ok(IndexUpdate::UpToDate)
    }

    /// Updates the index from the tree `before` to the newest commit.
    pub fn catch_up_index(&self, before: Oid) -> Result<(), GitError> {
        let repository = self.repository();
        repository.stage(&repository.changes(before, self.tree())?)?;
        for mark in repository.list_refs(&[&folder(self.branch())])? {
            remove_mark(repository, &mark.name, mark.target)?;
        }
        Ok(())
    }

    /// Records the start of a run, or a change of its plan, and updates the index.
    pub fn record_run_staged(
        &mut self,
        event: RunWideEvent<'_>,
        tree: Oid,
        changes: &[TreeChange],
    ) -> Result<Oid, RecordError> {
        self.write_with_mark(changes, None, &[], |recorder, moves| recorder.record_run(event, tree, moves))
    }

    fn update_index_and_files(
        &mut self,
        changes: &[TreeChange],
        index: Option<&IndexFile>,
    ) -> Result<(), GitError> {
        match index.filter(|_| !changes.is_empty()) {
            Some(index) if self.repository().install(index, changes)? => {
                self.worktree_tree = Some(self.tree());
                self.repository().note_staged_tree(self.tree());
            }
            Some(_) => {}
            None => self.repository().stage_and_write_missing(changes)?,
        }
        Ok(())
    }

    /// Records something with a mark, updates the index, and removes the mark.
    fn write_with_mark<T>(
        &mut self,
        changes: &[TreeChange],
        index: Option<&IndexFile>,
        other_moves: &[RefMove<'_>],
        write: impl FnOnce(&mut Self, &[RefMove<'_>]) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        if changes.is_empty() || !self.is_on_run_branch() {
            let written = write(self, other_moves)?;
            self.update_index_and_files(changes, index)?;
            return Ok(written);
        }
        let before = self.head();
        let mark = step_mark_name(self.branch(), before, self.repository().are_missing(changes));
        let begun = RefMove { name: &mark, new: Some(before), old: None };
        let moves: Vec<RefMove<'_>> = other_moves.iter().copied().chain([begun]).collect();
        let written = write(self, &moves)?;
        self.update_index_and_files(changes, index)?;
        remove_mark(self.repository(), &mark, before)?;
        Ok(written)
    }
}

/// Updates the index to the newest commit of `branch` after a crash. What the user has staged since stays.
pub fn repair_index(repository: &Repository, branch: &BranchName, head: Oid) -> Result<(), GitError> {
    for mark in repository.list_refs(&[&folder(branch)])? {
        let is_believed = repository.is_own_note(&mark.name, mark.target);
        if is_believed && mark.target != head && repository.is_ancestor(mark.target, head)? {
            let name = mark.name.rsplit('/').next().unwrap_or_default();
            let files = match name {
                _ if name.starts_with(TURN) => Files::LeaveMissing,
                _ if name.starts_with(WRITTEN) => Files::Rewrite,
                _ => Files::Write,
            };
            catch_up_after_crash(repository, branch, mark.target, head, files)?;
        }
        remove_mark(repository, &mark.name, mark.target)?;
    }
    Ok(())
}

/// How many commits of a lane are looked at. Its index follows each commit, so a crash leaves it one commit behind, or
/// more if an agent's git held it for several turns.
const LANE_COMMITS: usize = 20;

/// Updates the index of a lane after a crash. A lane has no marks: they would cost two more transactions for each
/// commit, and only its agent stages anything there. Without this, files of an earlier turn would look as if their
/// removal was staged.
pub fn repair_lane_index(repository: &Repository, head: Oid) -> Result<(), GitError> {
    let mut ahead: HashSet<Vec<u8>> = repository.staged_since(head)?.into_iter().collect();
    if ahead.is_empty() {
        return Ok(());
    }
    let mut behind = HashSet::new();
    let revisions = ["--first-parent".into(), format!("-n{LANE_COMMITS}"), head.to_string()];
    let commits: Vec<RawCommit> = repository.stream_commits(&revisions)?.collect::<Result<_, _>>()?;
    for earlier in commits.iter().skip(1) {
        let staged_paths: HashSet<Vec<u8>> = repository.staged_since(earlier.id)?.into_iter().collect();
        behind.extend(ahead.extract_if(|path| !staged_paths.contains(path)));
        if ahead.is_empty() {
            break;
        }
    }
    let named = |path: &Vec<u8>| TreeChange { path: path.clone(), before: None, after: None };
    repository.stage(&behind.iter().map(named).collect::<Vec<_>>())?;
    // After a turn the agent may have deleted a file. Only the report of a completed task is not written by the agent.
    match commits.as_slice() {
        [newest, before, ..] if is_complete(newest) => {
            let changes = repository.changes(repository.tree_of(before.id)?, repository.tree_of(head)?)?;
            repository.write_missing(&changes)
        }
        _ => Ok(()),
    }
}

fn is_complete(commit: &RawCommit) -> bool {
    Event::of(commit).is_some_and(|event| event.status() == Status::Complete)
}

/// What to do about files that are missing in the checkout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// Write them.
    Write,
    /// Write them, and replace those with only a part of their content: none existed before we wrote them.
    Rewrite,
    /// Leave them missing.
    LeaveMissing,
}

/// Updates index entries that are still in the old state to `head`, and writes their files.
fn catch_up_after_crash(
    repository: &Repository,
    branch: &BranchName,
    before: Oid,
    head: Oid,
    files: Files,
) -> Result<(), GitError> {
    let all = repository.changes(repository.tree_of(before)?, repository.tree_of(head)?)?;
    // The changes whose index entries are as in `commit`.
    let unchanged_since = |commit| -> Result<Vec<TreeChange>, GitError> {
        let staged_paths: HashSet<Vec<u8>> = repository.staged_since(commit)?.into_iter().collect();
        Ok(all.iter().filter(|change| !staged_paths.contains(&change.path)).cloned().collect())
    };
    repository.stage(&unchanged_since(before)?)?;
    // Asked again, because the index has just changed.
    if files == Files::Rewrite {
        repository.remove_half_written(branch, before, head, &unchanged_since(head)?)?;
    }
    match files {
        Files::Write | Files::Rewrite => repository.write_missing(&unchanged_since(head)?),
        Files::LeaveMissing => Ok(()),
    }
}

fn remove_mark(repository: &Repository, mark: &str, before: Oid) -> Result<(), GitError> {
    repository.move_refs_with_default_reason(&[RefMove { name: mark, new: None, old: Some(before) }])
}

/// The name of the mark of a turn whose commit follows `before`, until the index contains it.
#[must_use]
pub fn turn_mark_name(branch: &BranchName, before: Oid) -> String {
    format!("{}{TURN}{before}", folder(branch))
}

/// The folder of these marks. No task can have this name: marks of attempts are beside it.
fn folder(branch: &BranchName) -> String {
    format!("refs/arborist/wip/{}/@staging/", branch.component())
}

/// The name of the mark of any other commit that follows `before`.
fn step_mark_name(branch: &BranchName, before: Oid, are_files_written: bool) -> String {
    let kind = if are_files_written { WRITTEN } else { "" };
    format!("{}{kind}{before}", folder(branch))
}
