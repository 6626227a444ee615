//! A repository while an agent works in it, or a reviewer reads it: what each turn has changed there.

use crate::{
    event::EventKind,
    git::{GitError, PrivateGit, Repository},
    history::Event,
    message::Key,
    name::{Oid, RepoName},
    pipeline::{
        checkout::{
            attempt::{AttemptCheckout, AttemptWork, changes_of_turn},
            folded_commits::Folded,
            repo_attempt::other_commit,
            turn_snapshots::TurnSnapshots,
            violations::Violations,
        },
        turns::message::TurnMessage,
    },
    record::{IndexUpdate, PreparedCommit, RecordError, RunRecorder, TaskEvent},
    session::OtherCommit,
};

/// The trees of a worktree before and after a turn; `None` if they are equal.
pub(in crate::pipeline) type Trees = Option<(Oid, Oid)>;

/// A repository while an agent works in it.
pub(in crate::pipeline) struct TurnRepo<'k, 'r> {
    /// Its name in messages; `None` for the one with the plan.
    name: Option<&'k RepoName>,
    pub(super) recorder: &'k mut RunRecorder<'r>,
    /// The checkout that the agent may write to, and the agent's private git directory; `None` for a reviewer.
    checkout: Option<(&'k AttemptCheckout, Option<&'k PrivateGit>)>,
    snapshots: Option<TurnSnapshots<'r>>,
    pub(super) turns: RepoTurns,
}

/// What the turns of an attempt did in one repository.
#[derive(Default)]
pub(in crate::pipeline) struct RepoTurns {
    /// What the agent did without permission.
    pub(in crate::pipeline) violations: Violations,
    /// Commits by others, which the commits of turns fold in.
    pub(in crate::pipeline) folded: Vec<Folded>,
    /// Whether the index is up to date.
    pub(in crate::pipeline) index: IndexUpdate,
}

/// What a turn changed in another repository than the plan's, before it is committed.
pub(super) struct PendingTurn {
    /// The position of the repository in the list.
    pub(super) at: usize,
    pub(super) work: AttemptWork,
    pub(super) message: TurnMessage,
    /// The written commit, which the branch does not contain yet.
    prepared: Option<Result<PreparedCommit, RecordError>>,
}

impl PendingTurn {
    pub(super) fn new(at: usize, work: AttemptWork, message: TurnMessage) -> Self {
        Self { at, work, message, prepared: None }
    }

    /// Writes the commit, so that the record of the turn can name it.
    pub(super) fn prepare(
        &mut self,
        repo: &TurnRepo<'_, '_>,
        entry: Option<TaskEvent<'_>>,
        number: u32,
    ) -> Option<OtherCommit> {
        let mut entry = entry?;
        let _ = entry.trailers.set(Key::Turn, number.to_string());
        let prepared = repo.recorder.prepare(entry, self.work.commit_tree);
        let commit = prepared.as_ref().ok().map(|prepared| prepared.commit);
        self.prepared = Some(prepared);
        other_commit(repo.name, commit?, &self.work.changes)
    }
}

impl<'k, 'r> TurnRepo<'k, 'r> {
    pub(in crate::pipeline) fn new(
        name: Option<&'k RepoName>,
        recorder: &'k mut RunRecorder<'r>,
        checkout: Option<(&'k AttemptCheckout, Option<&'k PrivateGit>)>,
    ) -> Self {
        Self { name, recorder, checkout, snapshots: None, turns: RepoTurns::default() }
    }

    /// Returns the trees of the worktree at the last look and now, if they differ.
    pub(super) fn look(&mut self) -> Result<Trees, RecordError> {
        let Some((checkout, _)) = self.checkout else { return Ok(None) };
        self.turns.violations.extend(checkout.restore_while_running());
        let snapshots = match &mut self.snapshots {
            Some(snapshots) => snapshots,
            none => none.insert(TurnSnapshots::new(self.recorder.repository(), checkout)?),
        };
        Ok(snapshots.look()?)
    }

    /// Returns what is to be committed here if the worktree had the tree `after` when the turn ended.
    pub(super) fn find_work(&self, after: Option<Oid>) -> Result<Option<AttemptWork>, RecordError> {
        match (self.checkout, after) {
            (Some((checkout, private_git)), Some(after)) => {
                Ok(changes_of_turn(self.recorder, checkout, private_git, after)?)
            }
            _ => Ok(None),
        }
    }

    /// Moves the branch to the prepared commit of a turn.
    pub(super) fn commit(
        &mut self,
        pending: PendingTurn,
        number: u32,
    ) -> Result<Option<EventKind>, RecordError> {
        let PendingTurn { work, prepared: Some(prepared), .. } = pending else {
            return Ok(None);
        };
        let (event, index) = self.recorder.deliver_turn(prepared?, work.of_turn())?;
        Ok(Some(self.committed(&event, index, work.folded, number)))
    }

    /// Takes note that the commit of a turn was made here.
    pub(super) fn committed(
        &mut self,
        event: &Event,
        index: IndexUpdate,
        folded: Vec<Folded>,
        number: u32,
    ) -> EventKind {
        if index == IndexUpdate::Behind {
            self.turns.index = index;
        }
        self.turns.folded.extend(folded);
        let (commit, words) = (event.commit, event.subject.text.clone());
        EventKind::TurnCommitted { turn: number.into(), repo: self.name.cloned(), commit, words }
    }
}

/// The changes in these repositories, as a patch and as a short summary.
pub(super) fn diff(repos: &[TurnRepo<'_, '_>], seen: &[Trees]) -> Result<(String, String), GitError> {
    let (mut patch, mut stat) = (String::new(), String::new());
    for (repo, trees) in repos.iter().zip(seen) {
        if let Some((before, after)) = trees {
            let repository: &Repository = repo.recorder.repository();
            let (more, short) = repository.diff(*before, *after)?;
            patch += &more;
            stat += &short;
        }
    }
    Ok((patch, stat))
}
