//! A turn in another repository that its task works in: committed there under the same number. Its record, which stands in
//! the repository that has the plan, names that commit.

use super::{
    PipelineEventKind,
    kept::CommittedTurns,
    place::{self, AttemptCheckout, AttemptWork, Looker},
    turn_words::TurnMessage,
};
use crate::{
    git::{GitError, Repository, TreeChange},
    message::Key,
    name::{Oid, RepoName},
    record::{IndexUpdate, Prepared, RecordError, RunRecorder, TaskEvent},
    session::OtherCommit,
};

/// What lay in a worktree before and after a turn; nothing where that is the same.
pub(super) type Trees = Option<(Oid, Oid)>;

/// Another repository while an agent works in it.
pub(super) struct Beside<'k, 'a> {
    name: &'k RepoName,
    recorder: &'k mut RunRecorder<'a>,
    begun: &'k AttemptCheckout,
    looker: Option<Looker<'a>>,
    pub(super) kept: CommittedTurns,
}

/// What a turn changed there, on the way to its commit.
pub(super) struct Pending {
    /// Which of the other repositories it is.
    pub(super) at: usize,
    pub(super) work: AttemptWork,
    pub(super) message: TurnMessage,
    /// Its commit, which the branch does not hold yet.
    pub(super) prepared: Option<Result<Prepared, RecordError>>,
}

impl Pending {
    /// Writes the commit, so that the record of the turn can name it.
    pub(super) fn prepare(
        &mut self,
        beside: &Beside<'_, '_>,
        entry: Option<TaskEvent<'_>>,
        number: u32,
    ) -> Option<OtherCommit> {
        let mut entry = entry?;
        let _ = entry.trailers.set(Key::Turn, number.to_string());
        let prepared = beside.recorder.prepare(entry, self.work.tree);
        let commit = prepared.as_ref().ok().map(|prepared| prepared.commit);
        self.prepared = Some(prepared);
        Some(OtherCommit {
            repository: beside.name.to_string(),
            commit: commit?,
            files: self.work.changes.iter().map(TreeChange::shown).collect(),
        })
    }
}

impl<'k, 'a> Beside<'k, 'a> {
    pub(super) fn new(
        name: &'k RepoName,
        recorder: &'k mut RunRecorder<'a>,
        begun: &'k AttemptCheckout,
    ) -> Self {
        Self { name, recorder, begun, looker: None, kept: CommittedTurns::default() }
    }

    /// What lay in its worktree before and what lies there now, if that is not the same.
    pub(super) fn look(&mut self) -> Result<Trees, RecordError> {
        self.begun.look_again(&mut self.kept.noticed);
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => none.insert(Looker::new(self.recorder.repository(), self.begun)?),
        };
        Ok(looker.look()?)
    }

    /// What is to be committed here, where `after` lay in the worktree when the turn ended.
    pub(super) fn find_work(&self, after: Oid) -> Result<Option<AttemptWork>, RecordError> {
        Ok(place::turn(self.recorder, self.begun, after)?)
    }

    /// The branch takes in what the turn of this number changed here.
    pub(super) fn keep(
        &mut self,
        pending: Pending,
        number: u32,
    ) -> Result<Option<PipelineEventKind>, RecordError> {
        let Pending { work, prepared: Some(prepared), .. } = pending else {
            return Ok(None);
        };
        let delivery = work.delivery();
        let (event, index) = self.recorder.deliver_turn(prepared?, delivery)?;
        if index == IndexUpdate::Behind {
            self.kept.index = index;
        }
        self.kept.folded.extend(work.folded);
        let (commit, words) = (event.commit, event.subject.text.clone());
        Ok(Some(PipelineEventKind::Committed {
            turn: number.into(),
            repo: Some(self.name.clone()),
            commit,
            words,
        }))
    }
}

/// What has changed here and in other repositories, as a patch and in a few words.
pub(super) fn diff(
    here: (&Repository, Trees),
    others: &[Beside<'_, '_>],
    beside: &[Trees],
) -> Result<(String, String), GitError> {
    let others =
        others.iter().zip(beside).map(|(other, trees)| (other.recorder.repository() as &Repository, *trees));
    let (mut patch, mut stat) = (String::new(), String::new());
    for (repository, trees) in std::iter::once(here).chain(others) {
        if let Some((before, after)) = trees {
            let (more, short) = repository.diff(before, after)?;
            patch += &more;
            stat += &short;
        }
    }
    Ok((patch, stat))
}
