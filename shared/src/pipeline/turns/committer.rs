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
        turns::{
            message::TurnMessage,
            messenger::{MessageReply, MessageTopic},
            turn_collector::{FinishedTurn, OpenTurn, TurnContext},
            turn_repo::{PendingTurn, RepoTurns, Trees, TurnRepo, diff},
            whole_call::WholeCallTurn,
        },
    },
    record::StagedCommit,
    session::SessionError,
};

/// How many turns that end between two looks are kept apart.
const MAX_ENDED_AT_ONCE: usize = 4;

/// Commits the turns of one attempt.
pub(in crate::pipeline) struct TurnCommitter<'k, 'r> {
    /// The repositories that the agent works in, or that a reviewer reads. The first is the one with the plan.
    repos: Vec<TurnRepo<'k, 'r>>,
    of: TurnContext<'k>,
    active_runner: ActiveRunner,
    /// The current turn.
    draft: OpenTurn,
    /// Turns that have ended since the last look, oldest first.
    ended: VecDeque<OpenTurn>,
    last_look: Option<Instant>,
    /// Turns that have ended and wait for their message, oldest first.
    waiting: VecDeque<EndedTurn>,
    asked: usize,
    events: Vec<Event>,
    expense: Expense,
    reported: Usage,
    has_warned: bool,
}

/// A turn that has ended.
struct EndedTurn {
    draft: OpenTurn,
    /// The trees of the worktrees in the repositories that had changed. Empty if they were not compared.
    after: Vec<Option<Oid>>,
    model: Option<String>,
    session: Option<String>,
    /// Receives the message, if a model was asked for one.
    reply: Option<Receiver<MessageReply>>,
}

/// The committed turns of an attempt.
pub(in crate::pipeline) struct CommittedTurns {
    /// The events of the commits in the plan's repository.
    pub(in crate::pipeline) events: Vec<Event>,
    /// The cost of messages.
    pub(in crate::pipeline) expense: Expense,
    /// The cost that the turns themselves reported.
    pub(in crate::pipeline) reported: Usage,
    /// What the turns did in each repository.
    pub(in crate::pipeline) repos: Vec<RepoTurns>,
    /// The whole call as one turn, if the agent reports none.
    pub(in crate::pipeline) whole_call: Option<WholeCallTurn>,
}

impl<'k, 'r> TurnCommitter<'k, 'r> {
    pub(in crate::pipeline) fn new(repos: Vec<TurnRepo<'k, 'r>>, of: TurnContext<'k>) -> Self {
        let draft = OpenTurn::new((of.checkpoints.clock)(), of.checkpoints.words);
        Self {
            repos,
            of,
            active_runner: ActiveRunner::default(),
            draft,
            ended: VecDeque::new(),
            last_look: None,
            waiting: VecDeque::new(),
            asked: 0,
            events: Vec::new(),
            expense: Expense::default(),
            reported: Usage::default(),
            has_warned: false,
        }
    }

    /// Ends the attempt.
    pub(in crate::pipeline) fn finish(mut self) -> CommittedTurns {
        let reports_no_turns =
            self.active_runner.events == EventFormat::Text && !self.active_runner.runner.is_empty();
        let whole_call = reports_no_turns.then(|| {
            self.draft.close();
            let model = self.active_runner.model.clone();
            WholeCallTurn::new(
                &self.of,
                &self.active_runner,
                FinishedTurn::new(&self.draft, model, None, &self.of.secrets),
            )
        });
        let Self { events, expense, reported, .. } = self;
        let repos = self.repos.into_iter().map(|repo| repo.turns).collect();
        CommittedTurns { events, expense, reported, repos, whole_call }
    }

    fn next_draft(&self) -> OpenTurn {
        OpenTurn::new((self.of.checkpoints.clock)(), self.of.checkpoints.words)
    }

    /// Whether the turn deserves a look at the worktree. An agent can talk faster than we can look, so text without
    /// tool calls right after another turn becomes part of the next turn.
    fn should_look(&self) -> bool {
        !self.draft.tools.is_empty()
            || self.last_look.is_none_or(|at| at.elapsed() >= self.active_runner.pause)
    }

    /// Closes the current turn. If too many turns end at once, the oldest is dropped to bound memory.
    fn close_turn(&mut self) {
        let next = self.next_draft();
        if self.ended.len() == MAX_ENDED_AT_ONCE {
            self.ended.pop_front();
        }
        self.ended.push_back(std::mem::replace(&mut self.draft, next));
    }

    /// Queues a turn that has ended, with the trees of the worktrees before and after it.
    fn end_turn(&mut self, mut draft: OpenTurn, seen: Vec<Trees>, tally: &Tally) -> Result<(), SessionError> {
        draft.is_cut &= !tally.is_over();
        let has_changed = seen.iter().any(Option::is_some);
        let reply = match &self.of.messenger {
            Some(messenger) if has_changed => {
                let (patch, stat) = diff(&self.repos, &seen)?;
                let words = Redactor::redact(&self.of.secrets, &draft.words);
                let topic =
                    MessageTopic { task: &self.of.task.id, words: &words, patch: &patch, stat: &stat };
                self.asked += 1;
                Some(messenger.ask(&topic, self.asked))
            }
            _ => None,
        };
        let model = tally.model().or(self.active_runner.model.as_deref()).map(str::to_owned);
        let session = tally.session().map(str::to_owned);
        let after = seen.into_iter().map(|trees| trees.map(|(_, after)| after)).collect();
        self.waiting.push_back(EndedTurn { draft, after, model, session, reply });
        Ok(())
    }

    fn look(&mut self) -> Result<Vec<Trees>, SessionError> {
        self.last_look = Some(Instant::now());
        Ok(self.repos.iter_mut().map(TurnRepo::look).collect::<Result<_, _>>()?)
    }

    /// Commits the turns whose message has arrived. [`WaitForMessages::Yes`] waits for the messages of all others.
    fn flush(&mut self, waits: WaitForMessages) -> Vec<EventKind> {
        let mut events = Vec::new();
        while let Some(turn) = self.waiting.front() {
            let reply = match (&turn.reply, waits) {
                (None, _) => MessageReply::default(),
                (Some(reply), WaitForMessages::Yes) => reply.recv().unwrap_or_default(),
                (Some(reply), WaitForMessages::No) => match reply.try_recv() {
                    Ok(reply) => reply,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => MessageReply::default(),
                },
            };
            if let Some(turn) = self.waiting.pop_front() {
                events.extend(self.commit_everywhere(turn, &reply));
            }
        }
        events
    }

    /// Reports the first error. Changes that could not be committed become part of the next commit.
    fn report_once(&mut self, committed: Result<Option<EventKind>, SessionError>) -> Option<EventKind> {
        match committed {
            Ok(event) => event,
            Err(error) if !self.has_warned => {
                self.has_warned = true;
                Some(EventKind::warning(format!("a turn could not be recorded: {error}")))
            }
            Err(_) => None,
        }
    }

    /// Commits a turn in all repositories under the same number: in the plan's together with the record, which names the
    /// commits in the others, and then in these.
    fn commit_everywhere(&mut self, turn: EndedTurn, reply: &MessageReply) -> Vec<EventKind> {
        let EndedTurn { draft, after, model, session, .. } = turn;
        self.expense.add(reply.expense.usage, reply.expense.time);
        let finished = FinishedTurn::new(&draft, model, session, &self.of.secrets);
        let by_model = reply.message.clone().or_else(|| self.recorded_message());
        let mut events = Vec::new();
        let mut pending = Vec::new();
        for (at, after) in after.iter().enumerate().skip(1) {
            match self.repos[at].find_work(*after) {
                Ok(work) => pending.extend(work.map(|work| {
                    let message = self.of.message(by_model.clone(), &finished.words, &work.changes);
                    PendingTurn::new(at, work, message)
                })),
                Err(error) => events.extend(self.report_once(Err(error.into()))),
            }
        }
        let of_plan = after.first().copied().flatten();
        let (number, committed) = match self.commit(of_plan, &finished, by_model, &mut pending) {
            Ok(committed) => committed,
            Err(error) => return events.into_iter().chain(self.report_once(Err(error))).collect(),
        };
        events.extend(committed);
        for pending in pending {
            let committed = self.repos[pending.at].commit(pending, number);
            events.extend(self.report_once(committed.map_err(SessionError::from)));
        }
        events
    }

    /// The message that a model wrote when a replayed turn was recorded.
    fn recorded_message(&self) -> Option<TurnMessage> {
        let is_model = matches!(self.of.message_by, MessageOrigin::Model(_));
        self.active_runner.message.clone().filter(|_| is_model)
    }

    /// Commits a turn in the plan's repository, records it, and prepares its commits in the others. Returns its number,
    /// and the report of the commit if there was something to commit.
    fn commit(
        &mut self,
        after: Option<Oid>,
        finished: &FinishedTurn,
        by_model: Option<TurnMessage>,
        pending: &mut [PendingTurn],
    ) -> Result<(u32, Option<EventKind>), SessionError> {
        let Self { of, active_runner, repos, .. } = self;
        let [plans, others @ ..] = &mut repos[..] else { return Ok((0, None)) };
        let work = plans.find_work(after)?;
        let (tree, tip) = (plans.recorder.tree(), plans.recorder.head());
        let changes = work.as_ref().map_or(&[][..], |work| &work.changes);
        let delivery = match &work {
            Some(work) => work.of_turn(),
            None => StagedCommit { tree, tip, changes, index: None },
        };
        let message = work.as_ref().map(|work| of.message(by_model, &finished.words, &work.changes));
        let now = (of.checkpoints.clock)();
        let mut number = 0;
        let written = of.checkpoints.session_writer.deliver_turn(plans.recorder, delivery, now, |given| {
            number = given;
            let mut draft = of.drafted(active_runner, finished, message.as_ref(), changes, given, now);
            for pending in &mut *pending {
                let entry = of
                    .drafted(
                        active_runner,
                        finished,
                        Some(&pending.message),
                        &pending.work.changes[..],
                        given,
                        now,
                    )
                    .entry;
                draft.turn.others.extend(pending.prepare(&others[pending.at - 1], entry, given));
                draft.turn.message = draft.turn.message.or_else(|| Some(pending.message.text()));
            }
            draft
        })?;
        self.reported = self.reported.plus(finished.usage.unwrap_or_default());
        let Some((event, index)) = written else {
            return Ok((number, None));
        };
        let folded = work.map(|work| work.folded).unwrap_or_default();
        let committed = plans.committed(&event, index, folded, number);
        self.events.push(event);
        Ok((number, Some(committed)))
    }
}

/// Whether to wait for messages.
#[derive(Clone, Copy)]
enum WaitForMessages {
    Yes,
    No,
}

impl CallObserver for TurnCommitter<'_, '_> {
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
        let mut events = Vec::new();
        let last = self.ended.len().saturating_sub(1);
        let doer = self.ended.iter().rposition(|draft| !draft.tools.is_empty()).unwrap_or(last);
        for (at, draft) in std::mem::take(&mut self.ended).into_iter().enumerate() {
            let seen = if at == doer { self.look() } else { Ok(Vec::new()) };
            let ended = seen.and_then(|seen| self.end_turn(draft, seen, tally));
            events.extend(self.report_once(ended.map(|()| None)));
        }
        events.extend(self.flush(WaitForMessages::No));
        events
    }

    fn on_end(&mut self, tally: &Tally) -> Vec<EventKind> {
        if self.draft.is_over {
            self.close_turn();
        }
        let mut events = self.on_idle(tally);
        events.extend(self.flush(WaitForMessages::Yes));
        events
    }
}
