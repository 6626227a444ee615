//! A call that is recorded as one turn: that of an agent that tells of no turns, and one that is no step of a task.

use crate::{
    agent::{AgentEvent, Tally, redact::Secrets},
    event::EventKind,
    git::{RefMove, Repository, TreeChange},
    history::Event,
    name::{Attempt, Oid, SessionId, TaskId},
    pipeline::{
        Called, Expense, Follower, PipelineError, StepRunner, TaskRun, Who, Words,
        turns::{
            message::TurnMessage,
            note::{CallOf, Noted, OpenTurn, TurnsOf},
        },
    },
    record::{StagedCommit, TaskEvent},
    session::{
        DraftRecord, OtherCommit, RecordKind as Record, SessionError, SessionWriter, Transcript, Turn,
        TurnDraft,
    },
};

/// What such a call changed: in the repository that has the plan, and in others, with their commits.
#[derive(Clone, Copy)]
pub(in crate::pipeline) struct Changed<'a> {
    pub(in crate::pipeline) here: &'a [TreeChange],
    pub(in crate::pipeline) others: &'a [(OtherCommit, Vec<TreeChange>)],
}

impl Changed<'_> {
    /// Who reviews changes nothing.
    pub(in crate::pipeline) const NOTHING: Self = Self { here: &[], others: &[] };
}

/// What such a call came to.
pub(in crate::pipeline) struct Plain {
    turn: Turn,
    transcript: Option<Transcript>,
    words: String,
}

impl Plain {
    pub(in crate::pipeline) fn new(of: &TurnsOf<'_>, who: &Who, noted: Noted) -> Self {
        let now = (of.checkpoints.clock)();
        let TurnDraft { turn, transcript, .. } = of.drafted(who, &noted, (None, &[]), (0, now));
        Self { turn, transcript, words: noted.words }
    }
}

impl TaskRun<'_, '_, '_> {
    /// Writes down the turn of an agent that told of none, if it was one. What it changed is in our newest commit.
    pub(in crate::pipeline) fn keep_plain(
        &mut self,
        plain: Option<Plain>,
        called: &Called,
        changed: Changed<'_>,
    ) {
        let Some(plain) = plain.map(|plain| self.stopped(plain, called)) else { return };
        let head = self.recorder.head();
        let written = self.write_plain(&plain, changed, (head, &[]));
        self.tell_of_unwritten(written.err().as_ref());
    }

    /// Writes the commit of a step together with the turn of an agent that told of none. A session that cannot be written
    /// keeps no commit from being made.
    pub(in crate::pipeline) fn deliver_plain(
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
        let interrupted = called.result.is_err() || self.context.run.cancel.is_cancelled();
        Plain { turn: Turn { interrupted, ..plain.turn }, ..plain }
    }

    fn tell_of_unwritten(&mut self, error: Option<&SessionError>) {
        if let Some(error) = error {
            let words = format!("a turn of {} could not be written down: {error}", self.task.id);
            self.context.tell(&self.task.id, EventKind::note(words));
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
        let message = first.map(|changes| self.context.run.options.message_by.unasked(words, changes));
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

/// Hears what is said in a call.
pub struct CallRecord {
    who: Who,
    draft: OpenTurn,
    model: Option<String>,
    session: Option<String>,
    words: Words,
}

/// What a call was about, and what it came to.
#[derive(Debug)]
pub struct CallFacts<'a> {
    /// The task.
    pub node: &'a TaskId,
    /// What was asked for.
    pub step: &'static str,
    /// Which time, from 0.
    pub attempt: Attempt,
    /// The code that it was about.
    pub about: Oid,
    /// What was spent.
    pub expense: Expense,
    /// The paths that were changed.
    pub files: Vec<String>,
    /// Why these are in no commit of the turn.
    pub not_committed: Option<String>,
    /// Whether it was stopped.
    pub interrupted: bool,
}

impl CallRecord {
    /// Of a call of this one that begins now.
    #[must_use]
    pub fn of(step_runner: &StepRunner, words: Words, now: i64) -> Self {
        let (who, draft) = (Who::called(step_runner), OpenTurn::new(now, words));
        let model = who.model.clone();
        Self { who, draft, model, session: None, words }
    }

    /// Writes the call down, if there is a session of this name.
    pub fn keep(
        mut self,
        (repository, session): (&Repository, &SessionId),
        matter: &CallFacts<'_>,
        (secrets, now): (&Secrets, i64),
    ) -> Result<(), SessionError> {
        let Some(session_writer) = SessionWriter::find(repository, session)? else {
            return Ok(());
        };
        self.draft.close();
        self.draft.usage = matter.expense.usage;
        let noted = Noted::new(&self.draft, (self.model, self.session), secrets);
        let (node, attempt, words) = (matter.node, matter.attempt, self.words);
        let call = CallOf { node, attempt, step: matter.step, words };
        session_writer.append(now, |number| {
            let (turn, transcript): (Turn, Option<Transcript>) =
                noted.written(&call, &self.who, (number, now));
            let turn = Turn {
                files: matter.files.clone(),
                not_committed: matter.not_committed.clone(),
                interrupted: matter.interrupted,
                ..turn
            };
            Ok::<_, SessionError>(DraftRecord {
                about: Some(matter.about),
                transcript,
                ..DraftRecord::of(Record::Turn(turn))
            })
        })?;
        Ok(())
    }
}

impl Follower for CallRecord {
    fn begins(&mut self, who: Who) {
        self.who = who;
    }

    fn goes_on(&mut self, who: Who) {
        self.who = who;
    }

    fn hear(&mut self, printed: &[u8], events: &[AgentEvent]) {
        self.draft.print(printed);
        events.iter().for_each(|event| self.draft.note(event, self.who.speaks_in_pieces()));
    }

    fn settle(&mut self, _: &Tally) -> Vec<EventKind> {
        Vec::new()
    }

    fn ends(&mut self, tally: &Tally) -> Vec<EventKind> {
        self.model = tally.model().map(str::to_owned).or(self.model.take());
        self.session = tally.session().map(str::to_owned);
        Vec::new()
    }
}
