//! The one turn of an agent that tells of none: a record for the whole call, about the commit of its step.

use super::{
    Called, PipelineError, PipelineEventKind, TaskRun, Who,
    turn_note::{Noted, TurnsOf},
    turn_words::TurnMessage,
};
use crate::{
    git::{RefMove, TreeChange},
    history::Event,
    name::Oid,
    record::{StagedCommit, TaskEvent},
    session::{DraftRecord, OtherCommit, RecordKind as Record, SessionError, Transcript, Turn, TurnDraft},
};

/// What such a call changed: in the repository that has the plan, and in others, with their commits.
#[derive(Clone, Copy)]
pub(super) struct Changed<'a> {
    pub(super) here: &'a [TreeChange],
    pub(super) others: &'a [(OtherCommit, Vec<TreeChange>)],
}

impl Changed<'_> {
    /// Who reviews changes nothing.
    pub(super) const NOTHING: Self = Self { here: &[], others: &[] };
}

/// What such a call came to.
pub(super) struct Plain {
    turn: Turn,
    transcript: Option<Transcript>,
    words: String,
}

impl Plain {
    pub(super) fn new(of: &TurnsOf<'_>, who: &Who, noted: Noted) -> Self {
        let now = (of.checkpoints.clock)();
        let TurnDraft { turn, transcript, .. } = of.drafted(who, &noted, (None, &[]), (0, now));
        Self { turn, transcript, words: noted.words }
    }
}

impl TaskRun<'_, '_, '_> {
    /// Writes down the turn of an agent that told of none, if it was one. What it changed is in our newest commit.
    pub(super) fn keep_plain(&mut self, plain: Option<Plain>, called: &Called, changed: Changed<'_>) {
        let Some(plain) = plain.map(|plain| self.stopped(plain, called)) else { return };
        let head = self.recorder.head();
        let written = self.write_plain(&plain, changed, (head, &[]));
        self.tell_of_unwritten(written.err().as_ref());
    }

    /// Writes the commit of a step together with the turn of an agent that told of none. A session that cannot be written
    /// keeps no commit from being made.
    pub(super) fn deliver_plain(
        &mut self,
        (entry, delivery, ended): (TaskEvent<'_>, StagedCommit<'_>, &[RefMove<'_>]),
        (plain, called): (Plain, &Called),
        changed: Changed<'_>,
    ) -> Result<Event, PipelineError> {
        let plain = self.stopped(plain, called);
        let step = self.recorder.prepare_step(entry, &delivery)?;
        let written = self.write_plain(&plain, changed, (step.commit(), &step.moves(ended)));
        self.tell_of_unwritten(written.as_ref().err());
        let delivered = match written {
            Ok(()) => self.recorder.finish_step(step, &delivery),
            Err(_) => self.recorder.deliver_step(step, &delivery, ended),
        };
        Ok(delivered?)
    }

    fn stopped(&self, plain: Plain, called: &Called) -> Plain {
        let interrupted = called.result.is_err() || self.context.cancel.is_cancelled();
        Plain { turn: Turn { interrupted, ..plain.turn }, ..plain }
    }

    fn tell_of_unwritten(&mut self, error: Option<&SessionError>) {
        if let Some(error) = error {
            let words = format!("a turn of {} could not be written down: {error}", self.task.id);
            self.context.tell(&self.task.id, PipelineEventKind::Note { words });
        }
    }

    /// Writes the turn about a commit, with refs that move with its record.
    fn write_plain(
        &self,
        plain: &Plain,
        changed: Changed<'_>,
        (about, moves): (Oid, &[RefMove<'_>]),
    ) -> Result<(), SessionError> {
        let Plain { turn, transcript, words } = plain;
        let (recorder, checkpoints) = (&self.recorder, &self.context.checkpoints);
        let Changed { here, others } = changed;
        let commit = (!here.is_empty()).then_some(about);
        let first = commit.map(|_| here).or_else(|| others.first().map(|(_, changes)| changes.as_slice()));
        let message = first.map(|changes| self.context.options.message_by.unasked(words, changes));
        let message = message.as_ref().map(TurnMessage::text);
        let files = here.iter().map(TreeChange::shown).collect();
        let others = others.iter().map(|(commit, _)| commit.clone()).collect();
        let said = turn.said.clone().filter(|_| message.is_none());
        let turn = Turn { commit, others, message, said, files, ..turn.clone() };
        let tip = (recorder.branch() == recorder.run()).then_some(about);
        checkpoints.session_writer.append((checkpoints.clock)(), |number| {
            let transcript = transcript.clone().map(|said| Transcript { turn: number, ..said });
            let kind = Record::Turn(Turn { number, ..turn.clone() });
            let (about, moves) = (Some(about), moves.to_vec());
            Ok::<_, SessionError>(DraftRecord { about, tip, transcript, moves, ..DraftRecord::of(kind) })
        })?;
        Ok(())
    }
}
