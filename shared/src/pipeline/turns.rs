//! A commit for each turn of an agent that changed something, made when the turn ends: the model has the word then, and
//! the tree stands still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Crew, Follower, Happening, Workshop,
    place::{self, Begun, Looker},
    turn_words::TurnMessage,
};
use crate::{
    agent::{
        AgentEvent, EventFormat, RunnerKind, Tally, provider_of,
        redact::{Redactor, Secrets},
    },
    git::Change,
    history::Event,
    message::{Key, Status, Trailers, Wording, plain_text},
    name::{Attempt, PipelineName},
    plan::Task,
    record::{Delivery, Entry, Index, RecordError, Recorder},
};

/// Most of an agent's words in a turn that is kept, in bytes.
const LONGEST_WORDS: usize = 16 * 1024;

/// Most characters of what stands in a trailer.
const LONGEST_VALUE: usize = 200;

/// Turns in which an agent only talks are not looked at more often than this.
const PAUSE: Duration = Duration::from_millis(50);

/// What nobody tells.
const UNKNOWN: &str = "unknown";

/// The numbers of a session's turns: from 1, and none twice, whoever works.
#[derive(Debug, Clone, Default)]
pub struct TurnNumbers(Arc<AtomicU64>);

impl TurnNumbers {
    /// The next one is behind `last`.
    #[must_use]
    pub fn after(last: u64) -> Self {
        Self(Arc::new(AtomicU64::new(last)))
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Whose turns are kept.
pub(super) struct TurnsOf<'a> {
    pub(super) task: &'a Task,
    pub(super) attempt: Attempt,
    pub(super) pipeline: PipelineName,
    pub(super) numbers: TurnNumbers,
    pub(super) secrets: Secrets,
}

impl<'a> TurnsOf<'a> {
    pub(super) fn of(shop: &Workshop<'_>, task: &'a Task, attempt: Attempt) -> Self {
        let (pipeline, numbers) = (shop.pipeline.clone(), shop.numbers.clone());
        Self { task, attempt, pipeline, numbers, secrets: shop.secrets.clone() }
    }
}

/// Keeps the turns of one attempt.
pub(super) struct TurnKeeper<'k, 'r> {
    recorder: &'k mut Recorder<'r>,
    begun: &'k Begun,
    of: TurnsOf<'k>,
    looker: Option<Looker<'r>>,
    who: Who,
    /// The turn under way.
    draft: Draft,
    /// The last that has ended and was not looked at.
    ended: Option<Draft>,
    looked: Option<Instant>,
    kept: Kept,
    has_complained: bool,
}

/// What became of an attempt's turns.
pub(super) struct Kept {
    /// What was written down.
    pub(super) events: Vec<Event>,
    /// What the agent did that it may not do; it has been undone.
    pub(super) noticed: Vec<String>,
    /// Whether the index knows of all of it.
    pub(super) index: Index,
}

/// Who works.
#[derive(Debug, Default)]
struct Who {
    program: String,
    model: Option<String>,
    /// Whether words come in pieces.
    in_pieces: bool,
}

/// What is known of the turn under way.
#[derive(Debug, Default)]
struct Draft {
    words: String,
    tools: usize,
}

impl<'k, 'r> TurnKeeper<'k, 'r> {
    pub(super) fn new(recorder: &'k mut Recorder<'r>, begun: &'k Begun, of: TurnsOf<'k>) -> Self {
        let kept = Kept { events: Vec::new(), noticed: Vec::new(), index: Index::There };
        Self {
            recorder,
            begun,
            of,
            looker: None,
            who: Who::default(),
            draft: Draft::default(),
            ended: None,
            looked: None,
            kept,
            has_complained: false,
        }
    }

    /// The attempt is over.
    pub(super) fn finish(self) -> Kept {
        self.kept
    }

    /// An agent can talk faster than anybody can look. What it says without using a tool, and right behind another turn,
    /// is a part of the next one.
    fn is_worth_a_look(&self) -> bool {
        self.draft.tools > 0 || self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE)
    }

    /// A number for the turn that has ended, if one has.
    pub(super) fn number_if_due(&mut self) -> Option<u64> {
        self.ended.as_ref().map(|_| self.of.numbers.next())
    }

    /// The turn that has ended, under this number.
    pub(super) fn settle_as(&mut self, turn: u64, tally: &Tally) -> Option<Happening> {
        let draft = self.ended.take()?;
        self.looked = Some(Instant::now());
        self.end_turn(turn, &draft, tally)
    }

    /// What could not be committed now is a part of the next commit.
    fn end_turn(&mut self, turn: u64, draft: &Draft, tally: &Tally) -> Option<Happening> {
        match self.commit(turn, draft, tally) {
            Ok(committed) => committed,
            Err(error) if !self.has_complained => {
                self.has_complained = true;
                let words =
                    format!("turn {turn} of {} could not be committed by itself: {error}", self.of.task.id);
                Some(Happening::Note { words })
            }
            Err(_) => None,
        }
    }

    fn commit(&mut self, turn: u64, draft: &Draft, tally: &Tally) -> Result<Option<Happening>, RecordError> {
        self.begun.look_again(&mut self.kept.noticed);
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => none.insert(Looker::new(self.recorder.repository(), self.begun)?),
        };
        let Some(after) = looker.look()? else {
            return Ok(None);
        };
        let Some(work) = place::turn(self.recorder, self.begun, after)? else {
            return Ok(None);
        };
        let entry = self.entry(turn, draft, &work.changes, tally);
        let words = entry.text.clone();
        let delivery = Delivery { tree: work.tree, tip: work.tip, changes: &work.changes };
        let (event, index) = self.recorder.deliver_turn(entry, delivery)?;
        let commit = event.commit;
        self.kept.events.push(event);
        if index == Index::Behind {
            self.kept.index = index;
        }
        Ok(Some(Happening::Committed { turn, commit, words }))
    }

    fn entry(&self, turn: u64, draft: &Draft, changes: &[Change], tally: &Tally) -> Entry<'static> {
        let TurnsOf { task, attempt, pipeline, secrets, .. } = &self.of;
        let words = Redactor::redact(secrets, &draft.words);
        let message = TurnMessage::of(&words, changes);
        let model = tally.model().or(self.who.model.as_deref());
        let provider = provider_of(&self.who.program, model);
        let model = value(model.unwrap_or(UNKNOWN));
        let wording = Wording { name: &message.subject, attempt: *attempt, max: 0 };
        let mut entry = Entry::new(task.id.clone(), Status::Turn, wording);
        entry.body = message.body();
        entry.author = Some(format!("{} ({})", task.id, model.replace(['<', '>'], "")));
        let mut trailers = Trailers::default();
        let told = [
            (Key::Model, model),
            (Key::Provider, value(provider.as_deref().unwrap_or(UNKNOWN))),
            (Key::Node, task.id.to_string()),
            (Key::Pipeline, pipeline.to_string()),
            (Key::Turn, turn.to_string()),
        ];
        for (key, value) in told {
            let _ = trailers.set(key, value);
        }
        entry.trailers = trailers;
        entry
    }
}

impl Follower for TurnKeeper<'_, '_> {
    fn begins(&mut self, crew: &Crew) {
        let (program, in_pieces) = match &crew.runner {
            RunnerKind::Program(runner) => (runner.program(), runner.events == EventFormat::Gemini),
            RunnerKind::Shell | RunnerKind::Demo => (crew.name.as_str(), false),
        };
        self.who = Who { program: program.to_owned(), model: crew.model.clone(), in_pieces };
        self.draft = Draft::default();
    }

    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(words) => self.draft.say(words, self.who.in_pieces),
            AgentEvent::ToolCall { .. } => self.draft.tools += 1,
            AgentEvent::TurnEnded { .. } if self.is_worth_a_look() => {
                self.ended = Some(std::mem::take(&mut self.draft));
            }
            _ => {}
        }
    }

    /// Of several turns that have ended meanwhile only the last is looked at: nobody can tell what each of them did.
    fn settle(&mut self, tally: &Tally) -> Option<Happening> {
        let turn = self.number_if_due()?;
        self.settle_as(turn, tally)
    }
}

impl Draft {
    fn say(&mut self, words: &str, in_pieces: bool) {
        if !in_pieces && !self.words.is_empty() {
            self.words.push('\n');
        }
        let room = LONGEST_WORDS.saturating_sub(self.words.len());
        let end = (0..=room.min(words.len())).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        self.words.push_str(&words[..end]);
    }
}

/// Foreign text as the value of a trailer.
fn value(text: &str) -> String {
    let line: String = plain_text(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let cut: String = line.trim().chars().take(LONGEST_VALUE).collect();
    match cut.trim() {
        "" => UNKNOWN.to_owned(),
        value => value.to_owned(),
    }
}
