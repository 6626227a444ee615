//! Follows an agent's stream and commits each turn, in every repository of the task.
//!
//! When the last tool of a turn has answered, the model has the word and the tree does not change: only then is the worktree
//! looked at.

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
        Expense, Follower, MessageBy, Who,
        checkout::{
            leftovers::Folded,
            other_repo::{Beside, Pending, Trees, diff},
            place::{self, AttemptCheckout, Looker},
        },
        turns::{
            message::TurnMessage,
            messenger::{MessageReply, MessageTopic},
            note::{Noted, OpenTurn as Draft, TurnsOf},
            whole_call::Plain,
        },
    },
    record::{IndexUpdate, RunRecorder, StagedCommit},
    session::SessionError,
};

/// So many turns that end at once are told apart.
const MOST_AT_ONCE: usize = 4;

/// Keeps the turns of one attempt.
pub(in crate::pipeline) struct TurnKeeper<'k, 'r, 'a> {
    recorder: &'k mut RunRecorder<'r>,
    /// Where the agent may write; a reviewer may not.
    begun: Option<&'k AttemptCheckout>,
    of: TurnsOf<'k>,
    looker: Option<Looker<'r>>,
    /// Other repositories that it works in.
    others: Vec<Beside<'k, 'a>>,
    who: Who,
    /// The turn under way.
    draft: Draft,
    /// Those that have ended since somebody last looked, oldest first.
    ended: VecDeque<Draft>,
    looked: Option<Instant>,
    /// Turns that have ended and wait for their message, oldest first.
    waiting: VecDeque<Waiting>,
    asked: usize,
    kept: CommittedTurns,
    has_complained: bool,
}

/// The worktree, and those of other repositories.
type Seen = (Trees, Vec<Trees>);

/// A turn that has ended.
struct Waiting {
    draft: Draft,
    /// What lay in the worktree then, if that was something new.
    after: Option<Oid>,
    /// The same in other repositories.
    beside: Vec<Option<Oid>>,
    model: Option<String>,
    session: Option<String>,
    /// Where its message comes from, if somebody was asked.
    answer: Option<Receiver<MessageReply>>,
}

impl<'k, 'r, 'a> TurnKeeper<'k, 'r, 'a> {
    pub(in crate::pipeline) fn new(
        recorder: &'k mut RunRecorder<'r>,
        begun: Option<&'k AttemptCheckout>,
        of: TurnsOf<'k>,
    ) -> Self {
        let draft = Draft::new((of.checkpoints.clock)(), of.checkpoints.words);
        Self {
            recorder,
            begun,
            of,
            looker: None,
            others: Vec::new(),
            who: Who::default(),
            draft,
            ended: VecDeque::new(),
            looked: None,
            waiting: VecDeque::new(),
            asked: 0,
            kept: CommittedTurns::default(),
            has_complained: false,
        }
    }

    /// The same with other repositories that the agent works in.
    pub(in crate::pipeline) fn beside(self, others: Vec<Beside<'k, 'a>>) -> Self {
        Self { others, ..self }
    }

    /// The attempt is over. Gives what became of its turns here, and in other repositories, and what is known of an agent
    /// that tells of none.
    pub(in crate::pipeline) fn finish(mut self) -> (CommittedTurns, Vec<CommittedTurns>, Option<Plain>) {
        let is_plain = self.who.events == EventFormat::Text && !self.who.runner.is_empty();
        let plain = is_plain.then(|| {
            self.draft.close();
            let model = self.who.model.clone();
            Plain::new(&self.of, &self.who, Noted::new(&self.draft, (model, None), &self.of.secrets))
        });
        (self.kept, self.others.into_iter().map(|other| other.kept).collect(), plain)
    }

    fn next_draft(&self) -> Draft {
        Draft::new((self.of.checkpoints.clock)(), self.of.checkpoints.words)
    }

    /// An agent can talk faster than anybody can look. What it says without using a tool, and right behind another turn,
    /// is a part of the next one.
    fn is_worth_a_look(&self) -> bool {
        !self.draft.tools.is_empty() || self.looked.is_none_or(|looked| looked.elapsed() >= self.who.pause)
    }

    /// The turn under way has ended. A stream that tells of more turns at once than anybody could have taken is not worth
    /// the memory.
    fn put_down(&mut self) {
        let next = self.next_draft();
        if self.ended.len() == MOST_AT_ONCE {
            self.ended.pop_front();
        }
        self.ended.push_back(std::mem::replace(&mut self.draft, next));
    }

    /// Takes in a turn that has ended, and what was seen then in the worktree, before and after it.
    fn end_turn(
        &mut self,
        mut draft: Draft,
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
        let model = tally.model().or(self.who.model.as_deref()).map(str::to_owned);
        let session = tally.session().map(str::to_owned);
        let after = |seen: Trees| seen.map(|(_, after)| after);
        let (after, beside) = (after(seen), beside.into_iter().map(after).collect());
        self.waiting.push_back(Waiting { draft, after, beside, model, session, answer });
        Ok(())
    }

    fn look_everywhere(&mut self) -> Result<Seen, SessionError> {
        let seen = self.look()?;
        let beside = self.others.iter_mut().map(Beside::look).collect::<Result<_, _>>()?;
        Ok((seen, beside))
    }

    fn look(&mut self) -> Result<Option<(Oid, Oid)>, SessionError> {
        self.looked = Some(Instant::now());
        let Some(begun) = self.begun else {
            return Ok(None);
        };
        begun.look_again(&mut self.kept.noticed);
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => none.insert(Looker::new(self.recorder.repository(), begun)?),
        };
        Ok(looker.look()?)
    }

    /// Writes turns down whose message is there; where `waits` says so, the others too, when theirs is.
    fn flush(&mut self, waits: Waits) -> Vec<EventKind> {
        let mut event = Vec::new();
        while let Some(turn) = self.waiting.front() {
            let answer = match (&turn.answer, waits) {
                (None, _) => MessageReply::default(),
                (Some(answer), Waits::Yes) => answer.recv().unwrap_or_default(),
                (Some(answer), Waits::No) => match answer.try_recv() {
                    Ok(answer) => answer,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => MessageReply::default(),
                },
            };
            if let Some(turn) = self.waiting.pop_front() {
                event.extend(self.keep_everywhere(turn, &answer));
            }
        }
        event
    }

    /// What could not be committed now is a part of the next commit.
    fn told(&mut self, kept: Result<Option<EventKind>, SessionError>) -> Option<EventKind> {
        match kept {
            Ok(committed) => committed,
            Err(error) if !self.has_complained => {
                self.has_complained = true;
                let words = format!("a turn of {} could not be written down: {error}", self.of.task.id);
                Some(EventKind::note(words))
            }
            Err(_) => None,
        }
    }

    /// Writes a turn down here, and commits under its number what it changed elsewhere.
    fn keep_everywhere(&mut self, turn: Waiting, answer: &MessageReply) -> Vec<EventKind> {
        let Waiting { draft, after, beside, model, session, .. } = turn;
        self.kept.expense.add(answer.expense.usage, answer.expense.time);
        let noted = Noted::new(&draft, (model, session), &self.of.secrets);
        let told = answer.message.clone().or_else(|| self.told_before());
        let mut event = Vec::new();
        let mut elsewhere = Vec::new();
        for (at, after) in beside.into_iter().enumerate() {
            let work = after.map(|after| self.others[at].find_work(after)).transpose();
            match work {
                Ok(work) => elsewhere.extend(work.flatten().map(|work| {
                    let message = self.of.message(told.clone(), &noted.words, &work.changes);
                    Pending { at, work, message, prepared: None }
                })),
                Err(error) => event.extend(self.told(Err(error.into()))),
            }
        }
        let (number, committed) = match self.keep(after, &noted, told, &mut elsewhere) {
            Ok(kept) => kept,
            Err(error) => return event.into_iter().chain(self.told(Err(error))).collect(),
        };
        event.extend(committed);
        for pending in elsewhere {
            let kept = self.others[pending.at].keep(pending, number);
            event.extend(self.told(kept.map_err(SessionError::from)));
        }
        event
    }

    /// What a model once said of a turn that is played again.
    fn told_before(&self) -> Option<TurnMessage> {
        let is_model = matches!(self.of.message_by, MessageBy::Model(_));
        self.who.message.clone().filter(|_| is_model)
    }

    fn keep(
        &mut self,
        after: Option<Oid>,
        noted: &Noted,
        told: Option<TurnMessage>,
        elsewhere: &mut [Pending],
    ) -> Result<(u32, Option<EventKind>), SessionError> {
        let work = match (self.begun, after) {
            (Some(begun), Some(after)) => place::turn(self.recorder, begun, after)?,
            _ => None,
        };
        let (tree, tip) = (self.recorder.tree(), self.recorder.head());
        let changes = work.as_ref().map_or(&[][..], |work| &work.changes);
        let delivery = match &work {
            Some(work) => StagedCommit { changes, ..work.delivery() },
            None => StagedCommit { tree, tip, changes, index: None },
        };
        let message = work.as_ref().map(|work| self.of.message(told, &noted.words, &work.changes));
        let Self { of, who, recorder, others, .. } = self;
        let now = (of.checkpoints.clock)();
        let mut number = 0;
        let written = of.checkpoints.session_writer.deliver_turn(recorder, delivery, now, |given| {
            number = given;
            let mut draft = of.drafted(who, noted, (message.as_ref(), changes), (given, now));
            for pending in &mut *elsewhere {
                let changed = (Some(&pending.message), &pending.work.changes[..]);
                let entry = of.drafted(who, noted, changed, (given, now)).entry;
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

/// Whether messages are waited for.
#[derive(Clone, Copy)]
enum Waits {
    Yes,
    No,
}

impl Follower for TurnKeeper<'_, '_, '_> {
    fn begins(&mut self, who: Who) {
        self.who = who;
        self.draft = self.next_draft();
    }

    fn goes_on(&mut self, who: Who) {
        self.who = who;
    }

    fn hear(&mut self, printed: &[u8], events: &[AgentEvent]) {
        self.draft.print(printed);
        for event in events {
            self.draft.note(event, self.who.speaks_in_pieces());
            if !matches!(event, AgentEvent::TurnEnded { .. }) {
                continue;
            }
            self.draft.is_over = true;
            // Nothing was printed: it is over because the program is.
            self.draft.is_cut = printed.is_empty();
            if self.is_worth_a_look() {
                self.put_down();
            }
        }
    }

    /// Of several turns that have ended meanwhile nobody can tell what each of them did: the last that used a tool did it.
    fn settle(&mut self, tally: &Tally) -> Vec<EventKind> {
        let mut event = Vec::new();
        let last = self.ended.len().saturating_sub(1);
        let doer = self.ended.iter().rposition(|draft| !draft.tools.is_empty()).unwrap_or(last);
        for (at, draft) in std::mem::take(&mut self.ended).into_iter().enumerate() {
            let seen = if at == doer { self.look_everywhere() } else { Ok((None, Vec::new())) };
            let ended = seen.and_then(|seen| self.end_turn(draft, seen, tally));
            event.extend(self.told(ended.map(|()| None)));
        }
        event.extend(self.flush(Waits::No));
        event
    }

    fn ends(&mut self, tally: &Tally) -> Vec<EventKind> {
        if self.draft.is_over {
            self.put_down();
        }
        let mut event = self.settle(tally);
        event.extend(self.flush(Waits::Yes));
        event
    }
}

/// What became of an attempt's turns.
pub(in crate::pipeline) struct CommittedTurns {
    /// What was written down.
    pub(in crate::pipeline) events: Vec<Event>,
    /// What the agent did that it may not do; it has been undone.
    pub(in crate::pipeline) noticed: Vec<String>,
    /// Commits that are not ours, and that those of the turns fold in.
    pub(in crate::pipeline) folded: Vec<Folded>,
    /// Whether the index knows of all of it.
    pub(in crate::pipeline) index: IndexUpdate,
    /// What was spent on messages.
    pub(in crate::pipeline) expense: Expense,
    /// What the turns themselves tell to have spent.
    pub(in crate::pipeline) told: Usage,
}

impl Default for CommittedTurns {
    fn default() -> Self {
        let (events, noticed, folded) = (Vec::new(), Vec::new(), Vec::new());
        let (expense, told) = (Expense::default(), Usage::default());
        Self { events, noticed, folded, index: IndexUpdate::There, expense, told }
    }
}
