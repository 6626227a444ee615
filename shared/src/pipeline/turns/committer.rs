//! Observes an agent's stream and commits each turn, in every repository of the task.
//!
//! After the last tool call of a turn was answered, the model is working and the files do not change. Only then is a
//! snapshot of the worktree taken.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, TryRecvError},
    time::Instant,
};

use crate::{
    agent::{AgentEvent, EventFormat, Tally, Usage, redact::Redactor},
    event::EventKind,
    history::Event,
    name::Oid,
    pipeline::{
        ActiveRunner, CallObserver, Expense, MessageOrigin,
        checkout::{
            attempt::{AttemptCheckout, TurnSnapshots, changes_of_turn},
            leftovers::Folded,
            other_repo::{Pending, Trees, TurnsElsewhere, diff},
            violations::Violations,
        },
        turns::{
            message::TurnMessage,
            messenger::{MessageReply, MessageTopic},
            note::{OpenTurn, TurnContext, TurnNotes},
            whole_call::WholeCallTurn,
        },
    },
    record::{IndexUpdate, RunRecorder, StagedCommit},
    session::SessionError,
};

/// How many turns that end between two looks are kept apart.
const MAX_ENDED_AT_ONCE: usize = 4;

/// Commits the turns of one attempt.
pub(in crate::pipeline) struct TurnCommitter<'k, 'r, 'a> {
    recorder: &'k mut RunRecorder<'r>,
    /// The checkout that the agent may write to; `None` for a reviewer.
    begun: Option<&'k AttemptCheckout>,
    of: TurnContext<'k>,
    snapshots: Option<TurnSnapshots<'r>>,
    /// Other repositories that the agent works in.
    others: Vec<TurnsElsewhere<'k, 'a>>,
    active_runner: ActiveRunner,
    /// The current turn.
    draft: OpenTurn,
    /// Turns that have ended since the last look, oldest first.
    ended: VecDeque<OpenTurn>,
    looked: Option<Instant>,
    /// Turns that have ended and wait for their message, oldest first.
    waiting: VecDeque<EndedTurn>,
    asked: usize,
    kept: CommittedTurns,
    has_warned: bool,
}

/// The trees of the worktree, and of the worktrees in other repositories.
type Seen = (Trees, Vec<Trees>);

/// A turn that has ended.
struct EndedTurn {
    draft: OpenTurn,
    /// The tree of the worktree, if it had changed.
    after: Option<Oid>,
    /// The trees of the worktrees in other repositories that had changed.
    beside: Vec<Option<Oid>>,
    model: Option<String>,
    session: Option<String>,
    /// Receives the message, if a model was asked for one.
    answer: Option<Receiver<MessageReply>>,
}

impl<'k, 'r, 'a> TurnCommitter<'k, 'r, 'a> {
    pub(in crate::pipeline) fn new(
        recorder: &'k mut RunRecorder<'r>,
        begun: Option<&'k AttemptCheckout>,
        of: TurnContext<'k>,
    ) -> Self {
        let draft = OpenTurn::new((of.checkpoints.clock)(), of.checkpoints.words);
        Self {
            recorder,
            begun,
            of,
            snapshots: None,
            others: Vec::new(),
            active_runner: ActiveRunner::default(),
            draft,
            ended: VecDeque::new(),
            looked: None,
            waiting: VecDeque::new(),
            asked: 0,
            kept: CommittedTurns::default(),
            has_warned: false,
        }
    }

    /// Adds other repositories that the agent works in.
    pub(in crate::pipeline) fn beside(self, others: Vec<TurnsElsewhere<'k, 'a>>) -> Self {
        Self { others, ..self }
    }

    /// Ends the attempt. Returns its turns here and in other repositories, and the single turn of an agent that reports
    /// none.
    pub(in crate::pipeline) fn finish(
        mut self,
    ) -> (CommittedTurns, Vec<CommittedTurns>, Option<WholeCallTurn>) {
        let is_plain =
            self.active_runner.events == EventFormat::Text && !self.active_runner.runner.is_empty();
        let plain = is_plain.then(|| {
            self.draft.close();
            let model = self.active_runner.model.clone();
            WholeCallTurn::new(
                &self.of,
                &self.active_runner,
                TurnNotes::new(&self.draft, (model, None), &self.of.secrets),
            )
        });
        (self.kept, self.others.into_iter().map(|other| other.kept).collect(), plain)
    }

    fn next_draft(&self) -> OpenTurn {
        OpenTurn::new((self.of.checkpoints.clock)(), self.of.checkpoints.words)
    }

    /// Whether the turn deserves a look at the worktree. An agent can talk faster than we can look, so text without
    /// tool calls right after another turn becomes part of the next turn.
    fn should_look(&self) -> bool {
        !self.draft.tools.is_empty()
            || self.looked.is_none_or(|looked| looked.elapsed() >= self.active_runner.pause)
    }

    /// Closes the current turn. If too many turns end at once, the oldest is dropped to bound memory.
    fn close_turn(&mut self) {
        let next = self.next_draft();
        if self.ended.len() == MAX_ENDED_AT_ONCE {
            self.ended.pop_front();
        }
        self.ended.push_back(std::mem::replace(&mut self.draft, next));
    }

    /// Queues a turn that has ended, with the trees before and after it.
    fn end_turn(
        &mut self,
        mut draft: OpenTurn,
        (seen, beside): Seen,
        tally: &Tally,
    ) -> Result<(), SessionError> {
        draft.is_cut &= !tally.is_over();
        let has_changed = seen.is_some() || beside.iter().any(Option::is_some);
        let answer = match &self.of.messenger {
            Some(messenger) if has_changed => {
                let here = (self.recorder.repository(), seen);
                let (patch, stat) = diff(here, &self.others, &beside)?;
                let words = Redactor::redact(&self.of.secrets, &draft.words);
                let matter =
                    MessageTopic { task: &self.of.task.id, words: &words, patch: &patch, stat: &stat };
                self.asked += 1;
                Some(messenger.ask(&matter, self.asked))
            }
            _ => None,
        };
        let model = tally.model().or(self.active_runner.model.as_deref()).map(str::to_owned);
        let session = tally.session().map(str::to_owned);
        let after = |seen: Trees| seen.map(|(_, after)| after);
        let (after, beside) = (after(seen), beside.into_iter().map(after).collect());
        self.waiting.push_back(EndedTurn { draft, after, beside, model, session, answer });
        Ok(())
    }

    fn look_everywhere(&mut self) -> Result<Seen, SessionError> {
        let seen = self.look()?;
        let beside = self.others.iter_mut().map(TurnsElsewhere::look).collect::<Result<_, _>>()?;
        Ok((seen, beside))
    }

    fn look(&mut self) -> Result<Option<(Oid, Oid)>, SessionError> {
        self.looked = Some(Instant::now());
        let Some(begun) = self.begun else {
            return Ok(None);
        };
        self.kept.violations.extend(begun.restore_while_running());
        let snapshots = match &mut self.snapshots {
            Some(snapshots) => snapshots,
            none => none.insert(TurnSnapshots::new(self.recorder.repository(), begun)?),
        };
        Ok(snapshots.look()?)
    }

    /// Commits the turns whose message has arrived. [`WaitForMessages::Yes`] waits for the messages of all others.
    fn flush(&mut self, waits: WaitForMessages) -> Vec<EventKind> {
        let mut event = Vec::new();
        while let Some(turn) = self.waiting.front() {
            let answer = match (&turn.answer, waits) {
                (None, _) => MessageReply::default(),
                (Some(answer), WaitForMessages::Yes) => answer.recv().unwrap_or_default(),
                (Some(answer), WaitForMessages::No) => match answer.try_recv() {
                    Ok(answer) => answer,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => MessageReply::default(),
                },
            };
            if let Some(turn) = self.waiting.pop_front() {
                event.extend(self.commit_everywhere(turn, &answer));
            }
        }
        event
    }

    /// Reports the first error. Changes that could not be committed become part of the next commit.
    fn report_once(&mut self, kept: Result<Option<EventKind>, SessionError>) -> Option<EventKind> {
        match kept {
            Ok(committed) => committed,
            Err(error) if !self.has_warned => {
                self.has_warned = true;
                let words = format!("warning: a turn of {} could not be recorded: {error}", self.of.task.id);
                Some(EventKind::note(words))
            }
            Err(_) => None,
        }
    }

    /// Commits a turn here, and under the same number in other repositories.
    fn commit_everywhere(&mut self, turn: EndedTurn, answer: &MessageReply) -> Vec<EventKind> {
        let EndedTurn { draft, after, beside, model, session, .. } = turn;
        self.kept.expense.add(answer.expense.usage, answer.expense.time);
        let noted = TurnNotes::new(&draft, (model, session), &self.of.secrets);
        let told = answer.message.clone().or_else(|| self.recorded_message());
        let mut event = Vec::new();
        let mut elsewhere = Vec::new();
        for (at, after) in beside.into_iter().enumerate() {
            let work = after.map(|after| self.others[at].find_work(after)).transpose();
            match work {
                Ok(work) => elsewhere.extend(work.flatten().map(|work| {
                    let message = self.of.message(told.clone(), &noted.words, &work.changes);
                    Pending { at, work, message, prepared: None }
                })),
                Err(error) => event.extend(self.report_once(Err(error.into()))),
            }
        }
        let (number, committed) = match self.commit(after, &noted, told, &mut elsewhere) {
            Ok(kept) => kept,
            Err(error) => return event.into_iter().chain(self.report_once(Err(error))).collect(),
        };
        event.extend(committed);
        for pending in elsewhere {
            let kept = self.others[pending.at].commit(pending, number);
            event.extend(self.report_once(kept.map_err(SessionError::from)));
        }
        event
    }

    /// The message that a model wrote when a replayed turn was recorded.
    fn recorded_message(&self) -> Option<TurnMessage> {
        let is_model = matches!(self.of.message_by, MessageOrigin::Model(_));
        self.active_runner.message.clone().filter(|_| is_model)
    }

    fn commit(
        &mut self,
        after: Option<Oid>,
        noted: &TurnNotes,
        told: Option<TurnMessage>,
        elsewhere: &mut [Pending],
    ) -> Result<(u32, Option<EventKind>), SessionError> {
        let work = match (self.begun, after) {
            (Some(begun), Some(after)) => changes_of_turn(self.recorder, begun, after)?,
            _ => None,
        };
        let (tree, tip) = (self.recorder.tree(), self.recorder.head());
        let changes = work.as_ref().map_or(&[][..], |work| &work.changes);
        let delivery = match &work {
            Some(work) => StagedCommit { changes, ..work.delivery() },
            None => StagedCommit { tree, tip, changes, index: None },
        };
        let message = work.as_ref().map(|work| self.of.message(told, &noted.words, &work.changes));
        let Self { of, active_runner, recorder, others, .. } = self;
        let now = (of.checkpoints.clock)();
        let mut number = 0;
        let written = of.checkpoints.session_writer.deliver_turn(recorder, delivery, now, |given| {
            number = given;
            let mut draft = of.drafted(active_runner, noted, (message.as_ref(), changes), (given, now));
            for pending in &mut *elsewhere {
                let changed = (Some(&pending.message), &pending.work.changes[..]);
                let entry = of.drafted(active_runner, noted, changed, (given, now)).entry;
                draft.turn.others.extend(pending.prepare(&others[pending.at], entry, given));
                draft.turn.message = draft.turn.message.or_else(|| Some(pending.message.text()));
            }
            draft
        })?;
        self.kept.told = self.kept.told.plus(noted.usage.unwrap_or_default());
        let Some((event, index)) = written else {
            return Ok((number, None));
        };
        let (commit, words) = (event.commit, event.subject.text.clone());
        self.kept.events.push(event);
        self.kept.folded.extend(work.into_iter().flat_map(|work| work.folded));
        if index == IndexUpdate::Behind {
            self.kept.index = index;
        }
        Ok((number, Some(EventKind::TurnCommitted { turn: number.into(), repo: None, commit, words })))
    }
}

/// Whether to wait for messages.
#[derive(Clone, Copy)]
enum WaitForMessages {
    Yes,
    No,
}

impl CallObserver for TurnCommitter<'_, '_, '_> {
    fn on_begin(&mut self, active_runner: ActiveRunner, prompt: &str) {
        self.active_runner = active_runner;
        self.draft = self.next_draft();
        self.draft.prompt(prompt);
    }

    fn on_continue(&mut self, active_runner: ActiveRunner) {
        self.active_runner = active_runner;
    }

    fn on_output(&mut self, printed: &[u8], events: &[AgentEvent]) {
        self.draft.print(printed);
        for event in events {
            self.draft.note(event, self.active_runner.streams_fragments());
            if !matches!(event, AgentEvent::TurnEnded { .. }) {
                continue;
            }
            self.draft.is_over = true;
            // Nothing was printed: the turn ended because the program did.
            self.draft.is_cut = printed.is_empty();
            if self.should_look() {
                self.close_turn();
            }
        }
    }

    /// If several turns ended at once, it is unknown which of them changed the files; the last one with a tool call is
    /// assumed.
    fn on_idle(&mut self, tally: &Tally) -> Vec<EventKind> {
        let mut event = Vec::new();
        let last = self.ended.len().saturating_sub(1);
        let doer = self.ended.iter().rposition(|draft| !draft.tools.is_empty()).unwrap_or(last);
        for (at, draft) in std::mem::take(&mut self.ended).into_iter().enumerate() {
            let seen = if at == doer { self.look_everywhere() } else { Ok((None, Vec::new())) };
            let ended = seen.and_then(|seen| self.end_turn(draft, seen, tally));
            event.extend(self.report_once(ended.map(|()| None)));
        }
        event.extend(self.flush(WaitForMessages::No));
        event
    }

    fn on_end(&mut self, tally: &Tally) -> Vec<EventKind> {
        if self.draft.is_over {
            self.close_turn();
        }
        let mut event = self.on_idle(tally);
        event.extend(self.flush(WaitForMessages::Yes));
        event
    }
}

/// The committed turns of an attempt.
pub(in crate::pipeline) struct CommittedTurns {
    /// The events of the commits.
    pub(in crate::pipeline) events: Vec<Event>,
    /// What the agent did without permission.
    pub(in crate::pipeline) violations: Violations,
    /// Commits by others, which the commits of turns fold in.
    pub(in crate::pipeline) folded: Vec<Folded>,
    /// Whether the index is up to date.
    pub(in crate::pipeline) index: IndexUpdate,
    /// The cost of messages.
    pub(in crate::pipeline) expense: Expense,
    /// The cost that the turns themselves reported.
    pub(in crate::pipeline) told: Usage,
}

impl Default for CommittedTurns {
    fn default() -> Self {
        let (events, violations, folded) = (Vec::new(), Violations::default(), Vec::new());
        let (expense, told) = (Expense::default(), Usage::default());
        Self { events, violations, folded, index: IndexUpdate::There, expense, told }
    }
}
