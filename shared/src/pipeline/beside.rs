//! A turn in another repository that its task works in: committed there under the same number, without a record of its own.

use super::{
    Happening,
    place::{self, Begun, Looker, Work},
    turns::Kept,
};
use crate::{
    message::Key,
    name::{Oid, RepoName},
    record::{Delivery, Entry, Index, RecordError, Recorder},
};

/// Another repository while an agent works in it.
pub(super) struct Beside<'k, 'a> {
    name: &'k RepoName,
    recorder: &'k mut Recorder<'a>,
    begun: &'k Begun,
    looker: Option<Looker<'a>>,
    pub(super) kept: Kept,
}

impl<'k, 'a> Beside<'k, 'a> {
    pub(super) fn new(name: &'k RepoName, recorder: &'k mut Recorder<'a>, begun: &'k Begun) -> Self {
        Self { name, recorder, begun, looker: None, kept: Kept::default() }
    }

    /// What lies in its worktree, if that is something new.
    pub(super) fn look(&mut self) -> Result<Option<Oid>, RecordError> {
        self.begun.look_again(&mut self.kept.noticed);
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => none.insert(Looker::new(self.recorder.repository(), self.begun)?),
        };
        Ok(looker.look()?.map(|(_, after)| after))
    }

    /// Commits what the turn of this number changed here.
    pub(super) fn keep(
        &mut self,
        after: Oid,
        number: u32,
        entry: impl FnOnce(&Work) -> Option<Entry<'static>>,
    ) -> Result<Option<Happening>, RecordError> {
        let Some(work) = place::turn(self.recorder, self.begun, after)? else {
            return Ok(None);
        };
        let Some(mut entry) = entry(&work) else {
            return Ok(None);
        };
        let _ = entry.trailers.set(Key::Turn, number.to_string());
        let delivery = Delivery { tree: work.tree, tip: work.tip, changes: &work.changes };
        let (event, index) = self.recorder.deliver_turn(entry, delivery)?;
        if index == Index::Behind {
            self.kept.index = index;
        }
        let (commit, words) = (event.commit, event.subject.text);
        Ok(Some(Happening::Committed { turn: number.into(), repo: Some(self.name.clone()), commit, words }))
    }
}
