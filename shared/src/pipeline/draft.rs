//! What is known of a turn that is under way, at bounded memory.

use super::Words;
use crate::{
    agent::{AgentEvent, Usage, UsageScope},
    session::{Speaker, ToolCall, Utterance},
};

/// Most of an agent's words in a turn that is kept, in bytes.
const LONGEST_WORDS: usize = 16 * 1024;

/// Most calls of tools in a turn that are kept.
const MOST_TOOLS: usize = 500;

/// Most of what a program prints in a turn that is kept, in bytes.
const MOST_PRINTED: usize = 256 * 1024;

/// A turn under way.
#[derive(Debug)]
pub(super) struct OpenTurn {
    /// When it began: seconds since 1970.
    pub(super) started: i64,
    /// What the agent said.
    pub(super) words: String,
    /// The tools that it called.
    pub(super) tools: Vec<ToolCall>,
    /// What it spent, if that was told.
    pub(super) usage: Option<Usage>,
    /// What the program printed, a line each.
    pub(super) lines: Vec<Utterance>,
    /// Whether a turn has ended in it.
    pub(super) is_over: bool,
    /// Whether the program ended within it.
    pub(super) is_cut: bool,
    keeps: Words,
    unfinished: Vec<u8>,
    printed: usize,
}

impl OpenTurn {
    pub(super) fn new(started: i64, keeps: Words) -> Self {
        Self {
            started,
            words: String::new(),
            tools: Vec::new(),
            usage: None,
            lines: Vec::new(),
            is_over: false,
            is_cut: false,
            keeps,
            unfinished: Vec::new(),
            printed: 0,
        }
    }

    /// Takes in what the program printed. A line is kept whole or not at all, since a part of one cannot be read.
    pub(super) fn print(&mut self, bytes: &[u8]) {
        if self.keeps == Words::Forgotten {
            return;
        }
        self.printed += bytes.len();
        if self.printed > MOST_PRINTED {
            self.unfinished = Vec::new();
            return;
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.ends_with(b"\n") {
            self.close();
        }
    }

    /// Takes in a line that nobody has ended.
    pub(super) fn close(&mut self) {
        if !self.unfinished.is_empty() {
            let text = String::from_utf8_lossy(self.unfinished.trim_ascii_end()).into_owned();
            self.lines.push(Utterance { speaker: Speaker::Stream, text });
            self.unfinished.clear();
        }
    }

    /// Takes in what it told.
    pub(super) fn note(&mut self, event: &AgentEvent, in_pieces: bool) {
        match event {
            AgentEvent::Text(words) => self.say(words, in_pieces),
            AgentEvent::ToolCall { name, summary } if self.tools.len() < MOST_TOOLS => {
                self.tools.push(ToolCall { name: name.clone(), summary: summary.clone() });
            }
            AgentEvent::Usage { scope: UsageScope::Turn, usage } => {
                self.usage = Some(self.usage.unwrap_or_default().plus(*usage));
            }
            _ => {}
        }
    }

    fn say(&mut self, words: &str, in_pieces: bool) {
        if !in_pieces && !self.words.is_empty() {
            self.words.push('\n');
        }
        let room = LONGEST_WORDS.saturating_sub(self.words.len());
        let end = (0..=room.min(words.len())).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        self.words.push_str(&words[..end]);
    }
}
