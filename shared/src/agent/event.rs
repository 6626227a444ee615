//! The events of agent programs, in one vocabulary for all of them, and the formats of event streams that we can read.

use std::{fmt, str::FromStr};

use super::{AgentError, FailureKind, LimitKind, RetryWait};
use crate::words::words;

words! {
    /// The format of a program's output.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum EventFormat {
        /// JSON lines of Claude Code, also used by Amp, Cursor and Qwen.
        Claude = "claude",
        /// JSON lines of Codex.
        Codex = "codex",
        /// JSON lines of Gemini CLI.
        Gemini = "gemini",
        /// JSON lines of OpenCode.
        Opencode = "opencode",
        /// Plain text without events.
        Text = "text",
    }
}

impl EventFormat {
    /// Whether programs with this format report the number of tokens.
    #[must_use]
    pub fn reports_tokens(self) -> bool {
        self != Self::Text
    }

    /// Whether programs with this format report their cost.
    #[must_use]
    pub fn reports_cost(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode)
    }
}

impl FromStr for EventFormat {
    type Err = AgentError;

    fn from_str(name: &str) -> Result<Self, AgentError> {
        Self::of_word(name).ok_or_else(|| AgentError::UnknownFormat { name: name.to_owned() })
    }
}

impl fmt::Display for EventFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The program has named its own session.
    SessionStarted {
        /// The id that a later call can resume.
        id: String,
        /// The model, if the program reports it.
        model: Option<String>,
    },
    /// The agent began its next turn.
    TurnStarted {
        /// Its number in this call, from 1.
        number: u32,
    },
    /// The turn has ended and its tools have answered: its changes are in the worktree.
    TurnEnded {
        /// The number of the turn.
        number: u32,
    },
    /// Text of the agent.
    Text(String),
    /// The agent calls a tool.
    ToolCall {
        /// The program's name of the tool.
        name: String,
        /// A summary in one line: the command, the file, the pattern.
        summary: String,
    },
    /// A tool has answered with text, or failed.
    ToolAnswer {
        /// The beginning of its answer.
        text: String,
        /// Whether it failed.
        is_failure: bool,
    },
    /// A tool wrote a file. Changes through a shell are not reported here, only visible in the worktree.
    FileWritten {
        /// The path, as the program prints it.
        path: String,
    },
    /// Tokens or money were spent.
    Usage {
        /// What it was spent for.
        scope: UsageScope,
        /// The amount.
        usage: Usage,
    },
    /// The provider makes us wait. The program may continue by itself.
    RateLimited {
        /// The kind of the limit.
        kind: LimitKind,
        /// How long to wait.
        wait: RetryWait,
    },
    /// The program gave up.
    Failed {
        /// The reason, as far as fields tell.
        kind: FailureKind,
        /// The program's message.
        message: String,
        /// When to try again, if the program says so.
        wait: RetryWait,
    },
    /// The program has finished successfully.
    Finished {
        /// Its whole final answer.
        text: String,
    },
    /// A second final event. Only one of them can be the program's own, and it is unknown which.
    SecondEnd,
    /// A line that is no known event.
    Unread(String),
}

/// Tokens and money that were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// US dollars, if the program reports them.
    pub cost: Option<f64>,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cost,
        }
    }

    /// The difference to `earlier`.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_sub(earlier.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(earlier.tokens_out),
            cost: self.cost.map(|cost| (cost - earlier.cost.unwrap_or(0.0)).max(0.0)),
        }
    }
}

/// What a usage covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageScope {
    /// The current turn.
    Turn,
    /// The whole call; the last one counts. Codex counts its whole session: a call that resumes a session reports what
    /// earlier calls spent as well.
    Call,
}
