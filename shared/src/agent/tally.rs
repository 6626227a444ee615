//! The fold of a call's events into what it came to, with how the process ended. Neither is believed alone.

use crate::message::plain_text;

use super::{
    AgentEvent, CallOutcome, EventFormat, FailureKind, LimitKind, ProcessEnd, RetryWait, Usage, UsageScope,
};

/// Most of a runner's last words that is kept, in bytes.
const LONGEST: usize = 64 * 1024;

/// The last word of a stream. A later one takes the place of an earlier one.
#[derive(Debug, Clone)]
enum Verdict {
    Finished(String),
    Failed(FailureKind, String, RetryWait),
}

/// What is known of a call so far.
#[derive(Debug, Clone)]
pub struct Tally {
    format: EventFormat,
    session: Option<String>,
    model: Option<String>,
    turns: Option<Usage>,
    call: Option<Usage>,
    /// The provider let us wait, and nothing has happened since.
    waiting: Option<(LimitKind, RetryWait)>,
    verdict: Option<Verdict>,
    /// Whether there was a second final event.
    is_doubtful: bool,
    /// Whether a line of what it said begins with `REJECTED`, however long ago.
    has_rejected: bool,
    words: String,
    has_worked: bool,
}

impl Tally {
    /// Nothing is known of a call to a runner that prints `format`.
    #[must_use]
    pub fn new(format: EventFormat) -> Self {
        Self {
            format,
            session: None,
            model: None,
            turns: None,
            call: None,
            waiting: None,
            verdict: None,
            is_doubtful: false,
            has_rejected: false,
            words: String::new(),
            has_worked: false,
        }
    }

    /// Whether the agent has said or done anything: text, a tool, a file, or a turn that ended.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// The program's own session, once it is known.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The model that works, once it is known.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// What was spent so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.call.or(self.turns)
    }

    /// Whether the program has said that it is done or has given up, even if its process goes on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.verdict.is_some()
    }

    /// Takes in one event.
    pub fn note(&mut self, event: &AgentEvent) {
        self.has_worked |= matches!(
            event,
            AgentEvent::Text(_)
                | AgentEvent::ToolCall { .. }
                | AgentEvent::FileWritten { .. }
                | AgentEvent::TurnEnded { .. }
        );
        match event {
            AgentEvent::SessionStarted { id, model } => {
                self.session = Some(id.clone());
                self.model = model.clone().or(self.model.take());
            }
            AgentEvent::Usage { scope: UsageScope::Call, usage } => self.call = Some(*usage),
            AgentEvent::Usage { scope: UsageScope::Turn, usage } => {
                self.turns = Some(self.turns.unwrap_or_default().plus(*usage));
            }
            AgentEvent::RateLimited { kind, wait } => self.waiting = Some((*kind, *wait)),
            AgentEvent::Failed { kind, message, wait } => {
                self.verdict = Some(Verdict::Failed(*kind, message.clone(), *wait));
            }
            AgentEvent::Finished { text } => self.verdict = Some(Verdict::Finished(text.clone())),
            AgentEvent::Text(words) => self.say(words),
            // Whatever was said before, work goes on.
            AgentEvent::TurnStarted { .. } => (self.waiting, self.verdict) = (None, None),
            AgentEvent::ToolCall { .. } => self.waiting = None,
            AgentEvent::SecondEnd => self.is_doubtful = true,
            AgentEvent::TurnEnded { .. } | AgentEvent::FileWritten { .. } | AgentEvent::Unread(_) => {}
        }
    }

    /// The end of what it has said.
    #[must_use]
    pub fn words(&self) -> &str {
        self.words.trim_end()
    }

    /// Whether a line of what it said begins with `REJECTED`. What is printed behind it cannot take that back.
    #[must_use]
    pub fn has_rejected(&self) -> bool {
        self.has_rejected
    }

    fn say(&mut self, words: &str) {
        self.has_rejected |= begins_with_rejection(words);
        self.words.push_str(words);
        self.words.push('\n');
        if self.words.len() > 2 * LONGEST {
            let mut cut = self.words.len() - LONGEST;
            while !self.words.is_char_boundary(cut) {
                cut += 1;
            }
            self.words.drain(..cut);
        }
    }

    /// What the call came to.
    #[must_use]
    pub fn conclude(mut self, end: &ProcessEnd) -> CallOutcome {
        if self.is_doubtful {
            let message = "more than one final result was printed, and only one can be its own";
            return self.failed(FailureKind::Other, message.to_owned());
        }
        if self.format == EventFormat::Text {
            return match end {
                ProcessEnd::Code(0) => {
                    let words = std::mem::take(&mut self.words);
                    self.success(words.trim_end().to_owned())
                }
                end => self.failed(FailureKind::Other, end.words()),
            };
        }
        match self.verdict.take() {
            Some(Verdict::Failed(FailureKind::Other, message, wait)) => {
                let kind = self.kind_of_code(end).unwrap_or(FailureKind::Other);
                self.gave_up(kind, message, wait)
            }
            Some(Verdict::Failed(kind, message, wait)) => self.gave_up(kind, message, wait),
            Some(Verdict::Finished(text)) => match end {
                // Programs have been seen to hang behind their last word.
                ProcessEnd::Code(0) | ProcessEnd::Stopped(_) => self.success(text),
                end => self.failed(FailureKind::Other, format!("said that it was done, but {}", end.words())),
            },
            None => self.broke_off(end),
        }
    }

    fn gave_up(self, kind: FailureKind, message: String, wait: RetryWait) -> CallOutcome {
        let told = self.waiting.map_or(RetryWait::Unknown, |(_, wait)| wait);
        match kind.as_limit() {
            Some(kind) => self.limited(kind, wait.or(told), message),
            None => self.failed(kind, message),
        }
    }

    /// A stream without its last event. If the provider let us wait, that is why.
    fn broke_off(self, end: &ProcessEnd) -> CallOutcome {
        if let Some((kind, until)) = self.waiting {
            return self.limited(kind, until, end.words());
        }
        let kind = self.kind_of_code(end).unwrap_or(FailureKind::Other);
        let message = match end {
            ProcessEnd::Code(0) => "ended without a result".to_owned(),
            end => format!("ended without a result: {}", end.words()),
        };
        self.gave_up(kind, message, RetryWait::Unknown)
    }

    /// What an exit code means by itself. Gemini CLI exits with the status of the provider's answer, of which the
    /// system keeps the last eight bits; its result has the answer's words, but not always its fields.
    fn kind_of_code(&self, end: &ProcessEnd) -> Option<FailureKind> {
        match (self.format, end) {
            (EventFormat::Gemini, ProcessEnd::Code(GEMINI_AUTH)) => Some(FailureKind::Auth),
            (EventFormat::Gemini, ProcessEnd::Code(code)) => {
                let told =
                    GEMINI_STATUSES.iter().find(|status| **status % 256 == u64::from(code.unsigned_abs()));
                told.map(|status| FailureKind::of_status(*status))
            }
            _ => None,
        }
    }

    fn success(self, text: String) -> CallOutcome {
        CallOutcome::Success { text, usage: self.usage(), session: self.session }
    }

    fn limited(self, kind: LimitKind, until: RetryWait, message: String) -> CallOutcome {
        CallOutcome::Limited { kind, until, message, usage: self.usage(), session: self.session }
    }

    fn failed(self, kind: FailureKind, message: String) -> CallOutcome {
        CallOutcome::Failed { kind, message, usage: self.usage(), session: self.session }
    }
}

/// Whether a line of `words` begins with `REJECTED`, as reviewers are asked to say no. Emphasis makes no difference.
#[must_use]
pub fn begins_with_rejection(words: &str) -> bool {
    words.contains("REJECTED")
        && plain_text(words)
            .lines()
            .any(|line| line.trim_start_matches(['*', '_', '`']).starts_with("REJECTED"))
}

/// The code that Gemini CLI keeps for a missing or wrong key.
const GEMINI_AUTH: i32 = 41;

/// The statuses that say who is to blame. Modulo 256 none of them is a code that the program or a shell uses.
const GEMINI_STATUSES: [u64; 7] = [401, 403, 429, 500, 502, 503, 504];
