//! Calls that are recorded as a single turn: those of agents that report no turns, and those outside of a task's steps.

use crate::{
    agent::{AgentEvent, Tally, redact::Secrets},
    event::EventKind,
    git::{RefMove, Repository, TreeChange},
    history::Event,
    message::Key,
    name::{Attempt, Oid, SessionId, TaskId},
    pipeline::{
        ActiveRunner, CallObserver, Expense, FinishedCall, PipelineError, StepRunner, TaskRun,
        turns::{
            message::TurnMessage,
            turn_collector::{CallLabel, FinishedTurn, OpenTurn, TurnContext},
        },
    },
    record::{RunRecorder, StagedCommit, TaskEvent},
    session::{
        DraftRecord, OtherCommit, RecordKind, SessionError, SessionWriter, Transcript, Turn, TurnDraft,
        sign_by_agent,
    },
    settings::TranscriptMode,
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
    /// Whether an agent was called, and not the task's own command.
    is_agent: bool,
}

impl WholeCallTurn {
    pub(in crate::pipeline) fn new(
        of: &TurnContext<'_>,
        active_runner: &ActiveRunner,
        finished: FinishedTurn,
    ) -> Self {
        let now = (of.checkpoints.clock)();
        let TurnDraft { turn, transcript, .. } = of.drafted(active_runner, &finished, None, &[], 0, now);
        Self { turn, transcript, words: finished.words, is_agent: active_runner.is_agent }
    }

    /// Makes the agent the author of the commit with its changes, as for a turn that an agent reports.
    pub(in crate::pipeline) fn sign(&self, entry: &mut TaskEvent<'_>, pipeline: &str) {
        if self.is_agent {
            sign_by_agent(entry, (Some(&self.turn.model), Some(&self.turn.provider)), pipeline);
        }
    }
}

impl TaskRun<'_, '_, '_> {
    /// Records the turn of an agent that reports none, if it is one. Its changes are in our newest commit.
    pub(in crate::pipeline) fn record_whole_call(
        &mut self,
        whole_call: Option<WholeCallTurn>,
        called: &FinishedCall,
        changed: CallChanges<'_>,
    ) {
        let Some(whole_call) = whole_call.map(|turn| self.stopped(turn, called)) else { return };
        let head = self.recorder.head();
        let written = self.write_whole_call(&whole_call, changed, |_| Ok((head, Vec::new())));
        self.report_unwritten(written.err().as_ref());
    }

    /// Commits a step together with the turn of an agent that reports none. If the session cannot be written, the
    /// commit is made anyway.
    pub(in crate::pipeline) fn record_with_whole_call(
        &mut self,
        recorder: &mut RunRecorder<'_>,
        (mut entry, delivery, ended): (TaskEvent<'_>, StagedCommit<'_>, &[RefMove<'_>]),
        (whole_call, called): (WholeCallTurn, &FinishedCall),
        changed: CallChanges<'_>,
    ) -> Result<Event, PipelineError> {
        let whole_call = self.stopped(whole_call, called);
        whole_call.sign(&mut entry, self.context.checkpoints.pipeline.as_str());
        let moves = recorder.plan_step(&delivery)?;
        let mut prepared = None;
        let written = self.write_whole_call(&whole_call, changed, |number| {
            let mut entry = entry.clone();
            if whole_call.is_agent {
                let _ = entry.trailers.set(Key::Turn, number.to_string());
            }
            let step = recorder.prepare(entry, delivery.tree)?;
            let commit = step.commit;
            prepared = Some(step);
            Ok((commit, moves.to(commit, ended)))
        });
        self.report_unwritten(written.as_ref().err());
        let delivered = match (written, prepared) {
            (Ok(()), Some(prepared)) => recorder.finish_step(prepared, moves, &delivery),
            _ => {
                let prepared = recorder.prepare(entry, delivery.tree)?;
                recorder.commit_step(prepared, moves, &delivery, ended)
            }
        };
        Ok(delivered?)
    }

    fn stopped(&self, whole_call: WholeCallTurn, called: &FinishedCall) -> WholeCallTurn {
        let interrupted = called.result.is_err() || self.context.run.cancel.is_cancelled();
        WholeCallTurn { turn: Turn { interrupted, ..whole_call.turn }, ..whole_call }
    }

    fn report_unwritten(&mut self, error: Option<&SessionError>) {
        if let Some(error) = error {
            let words = format!("a turn could not be recorded: {error}");
            self.context.emit(&self.task.id, EventKind::warning(words));
        }
    }

    /// Records the turn about a commit, together with the movement of refs. `commit` returns both for the number of the
    /// turn, and is called again with another number if another process was faster.
    fn write_whole_call<'m>(
        &self,
        whole_call: &WholeCallTurn,
        changed: CallChanges<'_>,
        mut commit: impl FnMut(u32) -> Result<(Oid, Vec<RefMove<'m>>), SessionError>,
    ) -> Result<(), SessionError> {
        let WholeCallTurn { turn, transcript, words, .. } = whole_call;
        let (recorder, checkpoints) = (&self.recorder, &self.context.checkpoints);
        let CallChanges { here, others } = changed;
        let own = (!here.is_empty()).then_some(here);
        let first = own.or_else(|| others.first().map(|(_, changes)| changes.as_slice()));
        let message = first.map(|changes| self.context.run.options.message_by.without_model(words, changes));
        let message = message.as_ref().map(TurnMessage::text);
        let files = here.iter().map(TreeChange::shown).collect();
        let others = others.iter().map(|(commit, _)| commit.clone()).collect();
        let said = turn.said.clone().filter(|_| message.is_none());
        let turn = Turn { others, message, said, files, ..turn.clone() };
        checkpoints.session_writer.append((checkpoints.clock)(), |number| {
            let (about, moves) = commit(number)?;
            let transcript = transcript.clone().map(|said| Transcript { turn: number, ..said });
            let kind = RecordKind::Turn(Turn { number, commit: own.map(|_| about), ..turn.clone() });
            let tip = recorder.is_on_run_branch().then_some(about);
            let about = Some(about);
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
    /// Begins to record a call of this runner with this prompt.
    #[must_use]
    pub fn of(step_runner: &StepRunner, prompt: &str, words: TranscriptMode, now: i64) -> Self {
        let (active_runner, mut draft) = (ActiveRunner::calling(step_runner), OpenTurn::new(now, words));
        draft.prompt(prompt);
        let model = active_runner.model.clone();
        Self { active_runner, draft, model, session: None, words }
    }

    /// Writes the record, if the session exists.
    pub fn keep(
        mut self,
        repository: &Repository,
        session: &SessionId,
        facts: &CallFacts<'_>,
        secrets: &Secrets,
        now: i64,
    ) -> Result<(), SessionError> {
        let Some(session_writer) = SessionWriter::find(repository, session)? else {
            return Ok(());
        };
        self.draft.close();
        self.draft.usage = facts.expense.usage;
        let finished = FinishedTurn::new(&self.draft, self.model, self.session, secrets);
        let (node, attempt, words) = (facts.node, facts.attempt, self.words);
        let call = CallLabel { node, attempt, step: facts.step, words };
        session_writer.append(now, |number| {
            let (turn, transcript): (Turn, Option<Transcript>) =
                finished.written(&call, &self.active_runner, number, now);
            let turn = Turn {
                files: facts.files.clone(),
                not_committed: facts.not_committed.clone(),
                interrupted: facts.interrupted,
                ..turn
            };
            Ok::<_, SessionError>(DraftRecord {
                about: Some(facts.about),
                transcript,
                ..DraftRecord::of(RecordKind::Turn(turn))
            })
        })?;
        Ok(())
    }
}

impl CallObserver for CallRecord {
    fn on_begin(&mut self, active_runner: ActiveRunner, prompt: &str) {
        self.active_runner = active_runner;
        self.draft.prompt(prompt);
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
