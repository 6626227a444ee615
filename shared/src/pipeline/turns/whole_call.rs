//! Calls that are recorded as a single turn: those of agents that report no turns, and those outside of a task's steps.

use crate::{
    agent::{AgentEvent, Tally, redact::Secrets},
    event::EventKind,
    git::{RefMove, Repository, TreeChange},
    history::Event,
    name::{Attempt, Oid, SessionId, TaskId},
    pipeline::{
        ActiveRunner, CallObserver, Expense, FinishedCall, PipelineError, StepRunner, TaskRun,
        TranscriptMode,
        turns::{
            message::TurnMessage,
            note::{CallLabel, OpenTurn, TurnContext, TurnNotes},
        },
    },
    record::{StagedCommit, TaskEvent},
    session::{
        DraftRecord, OtherCommit, RecordKind as Record, SessionError, SessionWriter, Transcript, Turn,
        TurnDraft,
    },
};

/// The changes of such a call in the repository with the plan, and in others with their commits.
#[derive(Clone, Copy)]
pub(in crate::pipeline) struct CallChanges<'a> {
    pub(in crate::pipeline) here: &'a [TreeChange],
    pub(in crate::pipeline) others: &'a [(OtherCommit, Vec<TreeChange>)],
}

impl CallChanges<'_> {
    /// Reviewers change nothing.
    pub(in crate::pipeline) const NOTHING: Self = Self { here: &[], others: &[] };
}

/// The turn of such a call.
pub(in crate::pipeline) struct WholeCallTurn {
    turn: Turn,
    transcript: Option<Transcript>,
    words: String,
}

impl WholeCallTurn {
    pub(in crate::pipeline) fn new(
        of: &TurnContext<'_>,
        active_runner: &ActiveRunner,
        notes: TurnNotes,
    ) -> Self {
        let now = (of.checkpoints.clock)();
        let TurnDraft { turn, transcript, .. } = of.drafted(active_runner, &notes, (None, &[]), (0, now));
        Self { turn, transcript, words: notes.words }
    }
}

impl TaskRun<'_, '_, '_> {
    /// Records the turn of an agent that reports none, if it is one. Its changes are in our newest commit.
    pub(in crate::pipeline) fn keep_plain(
        &mut self,
        plain: Option<WholeCallTurn>,
        called: &FinishedCall,
        changed: CallChanges<'_>,
    ) {
        let Some(plain) = plain.map(|plain| self.stopped(plain, called)) else { return };
        let head = self.recorder.head();
        let written = self.write_plain(&plain, changed, (head, &[]));
        self.tell_of_unwritten(written.err().as_ref());
    }

    /// Commits a step together with the turn of an agent that reports none. If the session cannot be written, the
    /// commit is made anyway.
    pub(in crate::pipeline) fn deliver_plain(
        &mut self,
        (entry, delivery, ended): (TaskEvent<'_>, StagedCommit<'_>, &[RefMove<'_>]),
        (plain, called): (WholeCallTurn, &FinishedCall),
        changed: CallChanges<'_>,
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

    fn stopped(&self, plain: WholeCallTurn, called: &FinishedCall) -> WholeCallTurn {
        let interrupted = called.result.is_err() || self.context.run.cancel.is_cancelled();
        WholeCallTurn { turn: Turn { interrupted, ..plain.turn }, ..plain }
    }

    fn tell_of_unwritten(&mut self, error: Option<&SessionError>) {
        if let Some(error) = error {
            let words = format!("a turn of {} could not be written down: {error}", self.task.id);
            self.context.emit(&self.task.id, EventKind::note(words));
        }
    }

    /// Records the turn about a commit, together with the movement of refs.
    fn write_plain(
        &self,
        plain: &WholeCallTurn,
        changed: CallChanges<'_>,
        (about, moves): (Oid, &[RefMove<'_>]),
    ) -> Result<(), SessionError> {
        let WholeCallTurn { turn, transcript, words } = plain;
        let (recorder, checkpoints) = (&self.recorder, &self.context.checkpoints);
        let CallChanges { here, others } = changed;
        let commit = (!here.is_empty()).then_some(about);
        let first = commit.map(|_| here).or_else(|| others.first().map(|(_, changes)| changes.as_slice()));
        let message = first.map(|changes| self.context.run.options.message_by.without_model(words, changes));
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

/// Records a call outside of a task's steps.
pub struct CallRecord {
    active_runner: ActiveRunner,
    draft: OpenTurn,
    model: Option<String>,
    session: Option<String>,
    words: TranscriptMode,
}

/// What a call was about, and its result.
#[derive(Debug)]
pub struct CallFacts<'a> {
    /// The task.
    pub node: &'a TaskId,
    /// What it was called for.
    pub step: &'static str,
    /// The number of the attempt, from 0.
    pub attempt: Attempt,
    /// The commit that it was about.
    pub about: Oid,
    /// What it cost.
    pub expense: Expense,
    /// The paths that were changed.
    pub files: Vec<String>,
    /// Why these are in no commit of the turn.
    pub not_committed: Option<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl CallRecord {
    /// Begins to record a call of this runner.
    #[must_use]
    pub fn of(step_runner: &StepRunner, words: TranscriptMode, now: i64) -> Self {
        let (active_runner, draft) = (ActiveRunner::calling(step_runner), OpenTurn::new(now, words));
        let model = active_runner.model.clone();
        Self { active_runner, draft, model, session: None, words }
    }

    /// Writes the record, if the session exists.
    pub fn keep(
        mut self,
        (repository, session): (&Repository, &SessionId),
        facts: &CallFacts<'_>,
        (secrets, now): (&Secrets, i64),
    ) -> Result<(), SessionError> {
        let Some(session_writer) = SessionWriter::find(repository, session)? else {
            return Ok(());
        };
        self.draft.close();
        self.draft.usage = facts.expense.usage;
        let notes = TurnNotes::new(&self.draft, (self.model, self.session), secrets);
        let (node, attempt, words) = (facts.node, facts.attempt, self.words);
        let call = CallLabel { node, attempt, step: facts.step, words };
        session_writer.append(now, |number| {
            let (turn, transcript): (Turn, Option<Transcript>) =
                notes.written(&call, &self.active_runner, (number, now));
            let turn = Turn {
                files: facts.files.clone(),
                not_committed: facts.not_committed.clone(),
                interrupted: facts.interrupted,
                ..turn
            };
            Ok::<_, SessionError>(DraftRecord {
                about: Some(facts.about),
                transcript,
                ..DraftRecord::of(Record::Turn(turn))
            })
        })?;
        Ok(())
    }
}

impl CallObserver for CallRecord {
    fn on_begin(&mut self, active_runner: ActiveRunner) {
        self.active_runner = active_runner;
    }

    fn on_continue(&mut self, active_runner: ActiveRunner) {
        self.active_runner = active_runner;
    }

    fn on_output(&mut self, printed: &[u8], events: &[AgentEvent]) {
        self.draft.print(printed);
        events.iter().for_each(|event| self.draft.note(event, self.active_runner.streams_fragments()));
    }

    fn on_idle(&mut self, _: &Tally) -> Vec<EventKind> {
        Vec::new()
    }

    fn on_end(&mut self, tally: &Tally) -> Vec<EventKind> {
        self.model = tally.model().map(str::to_owned).or(self.model.take());
        self.session = tally.session().map(str::to_owned);
        Vec::new()
    }
}
