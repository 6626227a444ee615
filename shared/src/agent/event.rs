//! What an agent program tells while it works, in one vocabulary for all programs.

use super::{FailureKind, LimitKind, RetryWait};

/// One thing that a stream told.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The program's own session has a name.
    SessionStarted {
        /// What a later call can resume.
        id: String,
        /// The model that it chose, if it says so.
        model: Option<String>,
    },
    /// The agent took up its next turn.
    TurnStarted {
        /// From 1, in this call.
        number: u32,
    },
    /// The turn is over and its tools have answered: what it changed is in the tree.
    TurnEnded {
        /// As when it started.
        number: u32,
    },
    /// Words of the agent.
    Text(String),
    /// The agent uses a tool.
    ToolCall {
        /// The tool, as the program names it.
        name: String,
        /// One line: the command, the file, the pattern.
        summary: String,
    },
    /// A tool wrote a file. Edits through a shell are not seen here, only in the tree.
    FileWritten {
        /// As the program names it.
        path: String,
    },
    /// Something was spent.
    Usage {
        /// For what.
        scope: UsageScope,
        /// How much.
        usage: Usage,
    },
    /// The provider lets us wait. The program may go on by itself.
    RateLimited {
        /// Whose fault it is.
        kind: LimitKind,
        /// For how long.
        wait: RetryWait,
    },
    /// The program gave up.
    Failed {
        /// Why, as far as fields tell.
        kind: FailureKind,
        /// In its own words.
        message: String,
        /// When it can be tried again, if it says so.
        wait: RetryWait,
    },
    /// The program is done and content.
    Finished {
        /// Its last words, whole.
        text: String,
    },
    /// A second final event. Only one of them can be the program's own, and nobody can tell which.
    SecondEnd,
    /// A line that is no event that we know: noise, or news.
    Unread(String),
}

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// US dollars, if the program knows.
    pub cost: Option<f64>,
}

impl Usage {
    /// Both together.
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

    /// What is left when `earlier` is taken away.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_sub(earlier.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(earlier.tokens_out),
            cost: self.cost.map(|cost| (cost - earlier.cost.unwrap_or(0.0)).max(0.0)),
        }
    }
}

/// What a usage is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageScope {
    /// The turn under way.
    Turn,
    /// The whole call; the last one that is told counts. Codex counts its whole session: a call that resumes one
    /// tells what earlier calls spent as well.
    Call,
}
