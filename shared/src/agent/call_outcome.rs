//! Folds a call's events and the end of its process into the outcome. Neither is believed alone.

use super::{AgentEvent, EventFormat, FailureKind, LimitKind, RetryWait, Usage, UsageScope};
use crate::message::plain_text;

/// How the process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Code(i32),
    /// A signal that we did not send ended it.
    Signal(i32),
    /// We ended it, for this reason, such as `no output for 300 s`.
    Stopped(String),
}

impl ProcessEnd {
    /// A short description.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Code(code) => format!("the agent exited with code {code}"),
            Self::Signal(signal) => format!("the agent was ended by signal {signal}"),
            Self::Stopped(why) => format!("the agent {why}"),
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The agent finished.
    Success {
        /// Its final answer.
        text: String,
        /// What it cost, if it reported that.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// A limit was reached. The call can be repeated later; no attempt was used up.
    Limited {
        /// The kind of the limit.
        kind: LimitKind,
        /// When to try again.
        until: RetryWait,
        /// The program's message.
        message: String,
        /// What it cost nevertheless.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// The call failed.
    Failed {
        /// Why.
        kind: FailureKind,
        /// The reason in one sentence.
        message: String,
        /// What it cost nevertheless.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
}

/// How many bytes of a runner's last text are kept.
const LONGEST_LAST_TEXT: usize = 64 * 1024;

/// The final event of a stream. A later one replaces an earlier one.
#[derive(Debug, Clone)]
enum Verdict {
    Finished(String),
    Failed(FailureKind, String, RetryWait),
}

/// What is known about a call so far.
#[derive(Debug, Clone)]
pub struct Tally {
    format: EventFormat,
    session: Option<String>,
    model: Option<String>,
    turns: Option<Usage>,
    call: Option<Usage>,
    /// The provider made us wait, and nothing has happened since.
    waiting: Option<(LimitKind, RetryWait)>,
    verdict: Option<Verdict>,
    /// Whether there was a second final event.
    is_doubtful: bool,
    /// Whether any line of its text begins with `REJECTED`.
    has_rejected: bool,
    words: String,
    has_worked: bool,
}

impl Tally {
    /// For a runner that prints `format`.
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

    /// Whether the agent has said or done anything: text, a tool call, a file, or a turn that ended.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// The program's own session, once it is known.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The model, once it is known.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// What was spent so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.call.or(self.turns)
    }

    /// Whether the program has reported its result or gave up, even if its process continues.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.verdict.is_some()
    }

    /// Adds an event.
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
            // Whatever was reported before, the program continues to work.
            AgentEvent::TurnStarted { .. } => (self.waiting, self.verdict) = (None, None),
            AgentEvent::ToolCall { .. } => self.waiting = None,
            AgentEvent::SecondEnd => self.is_doubtful = true,
            AgentEvent::TurnEnded { .. }
            | AgentEvent::ToolAnswer { .. }
            | AgentEvent::FileWritten { .. }
            | AgentEvent::Unread(_) => {}
        }
    }

    /// The end of its text.
    #[must_use]
    pub fn words(&self) -> &str {
        self.words.trim_end()
    }

    /// Whether a line of its text begins with `REJECTED`. Later output cannot take that back.
    #[must_use]
    pub fn has_rejected(&self) -> bool {
        self.has_rejected
    }

    fn say(&mut self, words: &str) {
        self.has_rejected |= begins_with_rejection(words);
        self.words.push_str(words);
        self.words.push('\n');
        if self.words.len() > 2 * LONGEST_LAST_TEXT {
            let mut cut = self.words.len() - LONGEST_LAST_TEXT;
            while !self.words.is_char_boundary(cut) {
                cut += 1;
            }
            self.words.drain(..cut);
        }
    }

    /// The outcome of the call.
    #[must_use]
    pub fn conclude(mut self, end: &ProcessEnd) -> CallOutcome {
        if self.is_doubtful {
            let message = "it printed more than one final result";
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
                // Some programs hang after their final event.
                ProcessEnd::Code(0) | ProcessEnd::Stopped(_) => self.success(text),
                end => self
                    .failed(FailureKind::Other, format!("the agent reported success, but {}", end.words())),
            },
            None => self.ended_without_result(end),
        }
    }

    fn gave_up(self, kind: FailureKind, message: String, wait: RetryWait) -> CallOutcome {
        let stated = self.waiting.map_or(RetryWait::Unknown, |(_, wait)| wait);
        match kind.as_limit() {
            Some(kind) => self.limited(kind, wait.or(stated), message),
            None => self.failed(kind, message),
        }
    }

    /// A stream without a final event. If the provider made us wait, that is the reason.
    fn ended_without_result(self, end: &ProcessEnd) -> CallOutcome {
        if let Some((kind, until)) = self.waiting {
            return self.limited(kind, until, end.words());
        }
        let kind = self.kind_of_code(end).unwrap_or(FailureKind::Other);
        let message = match end {
            ProcessEnd::Code(0) => "the agent ended without a result".to_owned(),
            end => format!("{} without a result", end.words()),
        };
        self.gave_up(kind, message, RetryWait::Unknown)
    }

    /// The meaning of an exit code alone. Gemini CLI exits with the HTTP status of the provider's answer, of which the
    /// system keeps the last eight bits; its result contains the answer's text, but not always its fields.
    fn kind_of_code(&self, end: &ProcessEnd) -> Option<FailureKind> {
        match (self.format, end) {
            (EventFormat::Gemini, ProcessEnd::Code(GEMINI_AUTH)) => Some(FailureKind::Auth),
            (EventFormat::Gemini, ProcessEnd::Code(code)) => {
                let stated =
                    GEMINI_STATUSES.iter().find(|status| **status % 256 == u64::from(code.unsigned_abs()));
                stated.map(|status| FailureKind::of_status(*status))
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

/// Whether a line of `words` begins with `REJECTED`, as reviewers are asked to answer. Markdown emphasis is ignored.
#[must_use]
pub fn begins_with_rejection(words: &str) -> bool {
    words.contains("REJECTED")
        && plain_text(words)
            .lines()
            .any(|line| line.trim_start_matches(['*', '_', '`']).starts_with("REJECTED"))
}

/// The exit code of Gemini CLI for a missing or wrong key.
const GEMINI_AUTH: i32 = 41;

/// The HTTP statuses with a known meaning. Modulo 256 none of them is an exit code that the program or a shell uses.
const GEMINI_STATUSES: [u64; 7] = [401, 403, 429, 500, 502, 503, 504];
