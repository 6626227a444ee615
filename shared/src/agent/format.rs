//! The event formats that we can read.

use std::{fmt, str::FromStr};

use super::AgentError;

/// The format of a program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventFormat {
    /// JSON lines of Claude Code, also used by Amp, Cursor and Qwen.
    Claude,
    /// JSON lines of Codex.
    Codex,
    /// JSON lines of Gemini CLI.
    Gemini,
    /// JSON lines of OpenCode.
    Opencode,
    /// Plain text without events.
    Text,
}

impl EventFormat {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Text];

    /// The name used in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Text => "text",
        }
    }

    /// Whether programs with this format report the number of tokens.
    #[must_use]
    pub fn tells_tokens(self) -> bool {
        self != Self::Text
    }

    /// Whether programs with this format report their cost.
    #[must_use]
    pub fn tells_cost(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode)
    }
}

impl FromStr for EventFormat {
    type Err = AgentError;

    fn from_str(name: &str) -> Result<Self, AgentError> {
        let known = Self::ALL.iter().find(|format| format.as_str() == name);
        known.copied().ok_or_else(|| AgentError::UnknownFormat { name: name.to_owned() })
    }
}

impl fmt::Display for EventFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
