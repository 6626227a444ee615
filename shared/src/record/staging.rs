//! Between a commit and the user's index. The branch moves first, and until the index knows of it, the user's next commit
//! would take it back. So a mark is written with the move, and taken away when the index is there: after a crash it
//! tells what is still to be done.

use std::collections::HashSet;

use super::{Announcement, Prepared, RecordError, RunRecorder, TaskEvent};
use crate::{
    git::{GitError, IndexFile, RawCommit, RefMove, Repository, TreeChange},
    history::Event,
    message::Status,
    name::{BranchName, Oid},
};

/// What a commit holds, and what it changes in the checkout.
#[derive(Debug, Clone, Copy)]
pub struct StagedCommit<'a> {
    /// Its tree.
    pub tree: Oid,
    /// Where the branch is now.
    pub tip: Oid,
    /// What differs from the commit before.
    pub changes: &'a [TreeChange],
    /// An index that has taken in everything that lies in the worktree, where that is all committed and nothing else was
    /// staged: it becomes the user's own.
    pub index: Option<&'a IndexFile>,
}

/// Whether the index knows of what was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUpdate {
    /// It does.
    There,
    /// It does not.
    Behind,
}

/// A ref that stands while a turn is committed and the index does not know of it.
#[derive(Debug)]
pub struct TurnMark {
    name: String,
    before: Oid,
}

impl TurnMark {
    /// Its ref appears.
    #[must_use]
    pub fn begun(&self) -> RefMove<'_> {
        RefMove { name: &self.name, new: Some(self.before), old: None }
    }
}

/// The commit of a step that is written, with the mark that is to appear with it. No ref leads to it yet.
#[derive(Debug)]
pub struct PreparedStep {
    prepared: Prepared,
    branch: String,
    tip: Oid,
    mark: Option<(String, Oid)>,
}

impl PreparedStep {
    /// The commit.
    #[must_use]
    pub fn commit(&self) -> Oid {
        self.prepared.commit
    }

    /// What moves when it is recorded, the branch last.
    #[must_use]
    pub fn moves<'m>(&'m self, others: &[RefMove<'m>]) -> Vec<RefMove<'m>> {
        let moved = RefMove { name: &self.branch, new: Some(self.commit()), old: Some(self.tip) };
        self.begun().into_iter().chain(others.iter().copied()).chain([moved]).collect()
    }

    fn begun(&self) -> Option<RefMove<'_>> {
        self.mark.as_ref().map(|(name, before)| RefMove { name, new: Some(*before), old: None })
    }
}

/// How marks of turns begin. A file that is missing may be one that the agent has deleted since.
const TURN: &str = "turn-";
/// How marks of commits begin whose files were not in the checkout and are written there, such as a report.
const WRITTEN: &str = "written-";

impl RunRecorder<'_> {
    /// Writes an entry as [`Recorder::record_over`] does, and brings what it changes into the index. A file that is not in
    /// the checkout yet is written there. A lane has no user whose index could be wrong, so it has no mark.
    pub fn deliver(
        &mut self,
        entry: TaskEvent<'_>,
        delivery: StagedCommit<'_>,
        others: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        let StagedCommit { tree, tip, changes, index } = delivery;
        self.bring((changes, index), others, |recorder, moves| recorder.record_over(entry, tree, tip, moves))
    }

    /// Writes the commit of an entry for whoever moves other refs with it, such as its record.
    pub fn prepare_step(
        &self,
        entry: TaskEvent<'_>,
        delivery: &StagedCommit<'_>,
    ) -> Result<PreparedStep, RecordError> {
        self.await_user()?;
        let prepared = self.prepare(entry, delivery.tree)?;
        let has_mark = !delivery.changes.is_empty() && self.branch() == self.run();
        let are_written = || self.repository().are_missing(delivery.changes);
        let mark = has_mark.then(|| (mark_of(self.branch(), self.head(), are_written()), self.head()));
        Ok(PreparedStep { prepared, branch: self.branch().to_ref(), tip: delivery.tip, mark })
    }

    /// Takes note that the refs have been moved as [`PreparedStep::moves`] says, and brings what the step changes into the index.
    pub fn finish_step(
        &mut self,
        step: PreparedStep,
        delivery: &StagedCommit<'_>,
    ) -> Result<Event, RecordError> {
        let event = self.accept(step.prepared);
        self.stage(delivery.changes, delivery.index)?;
        if let Some((name, before)) = step.mark {
            end(self.repository(), &name, before)?;
        }
        Ok(event)
    }

    /// Moves the branch to a step that is prepared, and other refs with it.
    pub fn deliver_step(
        &mut self,
        step: PreparedStep,
        delivery: &StagedCommit<'_>,
        others: &[RefMove<'_>],
    ) -> Result<Event, RecordError> {
        let moves: Vec<RefMove<'_>> = step.begun().into_iter().chain(others.iter().copied()).collect();
        self.advance(step.prepared.commit, step.tip, &moves)?;
        self.finish_step(step, delivery)
    }

    /// The same for a turn whose commit is prepared. An agent is still at work in the checkout, so nothing is written there,
    /// and its own git may hold the index: then that stays behind until [`Recorder::catch_up`].
    pub fn deliver_turn(
        &mut self,
        prepared: Prepared,
        delivery: StagedCommit<'_>,
    ) -> Result<(Event, IndexUpdate), RecordError> {
        let mark = self.turn_mark();
        let begun = mark.as_ref().map(TurnMark::begun);
        self.advance(prepared.commit, delivery.tip, begun.as_slice())?;
        let event = self.accept(prepared);
        Ok((event, self.stage_turn(mark, delivery)?))
    }

    /// The mark that is to be written with the next turn. A lane has no user whose index could be wrong, so it has none.
    #[must_use]
    pub fn turn_mark(&self) -> Option<TurnMark> {
        let before = self.head();
        let name = || staging_mark(self.branch(), before);
        (self.branch() == self.run()).then(|| TurnMark { name: name(), before })
    }

    /// Brings what a turn changed into the index, and takes its mark away.
    pub fn stage_turn(
        &self,
        mark: Option<TurnMark>,
        delivery: StagedCommit<'_>,
    ) -> Result<IndexUpdate, RecordError> {
        let is_there = delivery.index.is_some_and(|index| self.repository().put_in_place(index));
        if !is_there && self.repository().stage_at_once(delivery.changes).is_err() {
            return Ok(IndexUpdate::Behind);
        }
        if let Some(mark) = mark {
            end(self.repository(), &mark.name, mark.before)?;
        }
        Ok(IndexUpdate::There)
    }

    /// Brings the index from the tree `before` to the newest commit.
    pub fn catch_up(&self, before: Oid) -> Result<(), GitError> {
        let repository = self.repository();
        repository.stage(&repository.changes(before, self.tree())?)?;
        for mark in repository.list_refs(&[&folder(self.branch())])? {
            end(repository, &mark.name, mark.target)?;
        }
        Ok(())
    }

    /// The same for the start of a run, or a change of its plan.
    pub fn deliver_run(
        &mut self,
        announcement: Announcement<'_>,
        tree: Oid,
        changes: &[TreeChange],
    ) -> Result<Oid, RecordError> {
        self.bring((changes, None), &[], |recorder, moves| recorder.record_run(announcement, tree, moves))
    }

    fn stage(&mut self, changes: &[TreeChange], index: Option<&IndexFile>) -> Result<(), GitError> {
        match index.filter(|_| !changes.is_empty()) {
            Some(index) if self.repository().install(index, changes)? => {
                self.settled = Some(self.tree());
                self.repository().note_staged_tree(self.tree());
            }
            Some(_) => {}
            None => self.repository().bring(changes)?,
        }
        Ok(())
    }

    /// Writes something down with a mark, brings what it changes into the index, and takes the mark away.
    fn bring<T>(
        &mut self,
        (changes, index): (&[TreeChange], Option<&IndexFile>),
        others: &[RefMove<'_>],
        write: impl FnOnce(&mut Self, &[RefMove<'_>]) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        if changes.is_empty() || self.branch() != self.run() {
            let written = write(self, others)?;
            self.stage(changes, index)?;
            return Ok(written);
        }
        let before = self.head();
        let mark = mark_of(self.branch(), before, self.repository().are_missing(changes));
        let begun = RefMove { name: &mark, new: Some(before), old: None };
        let moves: Vec<RefMove<'_>> = others.iter().copied().chain([begun]).collect();
        let written = write(self, &moves)?;
        self.stage(changes, index)?;
        end(self.repository(), &mark, before)?;
        Ok(written)
    }
}

/// Brings the index to the newest commit of `branch`, where a crash came between. What the user has staged since stays.
pub fn settle(repository: &Repository, branch: &BranchName, head: Oid) -> Result<(), GitError> {
    for mark in repository.list_refs(&[&folder(branch)])? {
        let is_believed = repository.is_own_note(&mark.name, mark.target);
        if is_believed && mark.target != head && repository.is_ancestor(mark.target, head)? {
            let name = mark.name.rsplit('/').next().unwrap_or_default();
            let files = match name {
                _ if name.starts_with(TURN) => Files::Left,
                _ if name.starts_with(WRITTEN) => Files::WrittenAgain,
                _ => Files::Written,
            };
            catch_up(repository, branch, (mark.target, head), files)?;
        }
        end(repository, &mark.name, mark.target)?;
    }
    Ok(())
}

/// So many commits of a lane are looked at. Its index follows each of them, so a crash leaves it one commit behind; more only
/// where an agent's git held it for several turns.
const LANE_COMMITS: usize = 20;

/// Brings the index of a lane that a crashed run has left to the newest commit of its branch. A lane has no marks: they would
/// cost two more transactions for each commit, and nobody but its agent stages anything there. Without this, files of an
/// earlier turn would look as if somebody else had staged their removal.
pub fn settle_lane(repository: &Repository, head: Oid) -> Result<(), GitError> {
    let mut ahead: HashSet<Vec<u8>> = repository.staged_since(head)?.into_iter().collect();
    if ahead.is_empty() {
        return Ok(());
    }
    let mut behind = HashSet::new();
    let revisions = ["--first-parent".into(), format!("-n{LANE_COMMITS}"), head.to_string()];
    let commits: Vec<RawCommit> = repository.stream_commits(&revisions)?.collect::<Result<_, _>>()?;
    for earlier in commits.iter().skip(1) {
        let others: HashSet<Vec<u8>> = repository.staged_since(earlier.id)?.into_iter().collect();
        behind.extend(ahead.extract_if(|path| !others.contains(path)));
        if ahead.is_empty() {
            break;
        }
    }
    let named = |path: &Vec<u8>| TreeChange { path: path.clone(), before: None, after: None };
    repository.stage(&behind.iter().map(named).collect::<Vec<_>>())?;
    // After a turn, the agent may have deleted a file. Only the report of a completed task is not its to write.
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

/// What becomes of files that are missing in the checkout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// They are written.
    Written,
    /// They are written, and so are those of which only a beginning is there: none was there before we wrote them.
    WrittenAgain,
    /// They stay missing.
    Left,
}

/// Paths that the index has as they were before are brought to `head`; of those that it has so, files are written.
fn catch_up(
    repository: &Repository,
    branch: &BranchName,
    (before, head): (Oid, Oid),
    files: Files,
) -> Result<(), GitError> {
    let all = repository.changes(repository.tree_of(before)?, repository.tree_of(head)?)?;
    let as_in = |commit| -> Result<Vec<TreeChange>, GitError> {
        let others: HashSet<Vec<u8>> = repository.staged_since(commit)?.into_iter().collect();
        Ok(all.iter().filter(|change| !others.contains(&change.path)).cloned().collect())
    };
    repository.stage(&as_in(before)?)?;
    if files == Files::WrittenAgain {
        repository.remove_begun(branch, (before, head), &as_in(head)?)?;
    }
    match files {
        Files::Written | Files::WrittenAgain => repository.write_missing(&as_in(head)?),
        Files::Left => Ok(()),
    }
}

fn end(repository: &Repository, mark: &str, before: Oid) -> Result<(), GitError> {
    repository.move_refs_again(&[RefMove { name: mark, new: None, old: Some(before) }])
}

/// The mark of a turn whose commit follows `before`, while the index does not know of it.
#[must_use]
pub fn staging_mark(branch: &BranchName, before: Oid) -> String {
    format!("{}{TURN}{before}", folder(branch))
}

/// No task can be called so: marks of attempts stand beside it.
fn folder(branch: &BranchName) -> String {
    format!("refs/arborist/wip/{}/@staging/", branch.component())
}

fn mark_of(branch: &BranchName, before: Oid, are_files_written: bool) -> String {
    let kind = if are_files_written { WRITTEN } else { "" };
    format!("{}{kind}{before}", folder(branch))
}
