//! What was said in a session, turn by turn: prompts, words of agents, what tools answered. It stays in this repository
//! unless the user wants otherwise.

use serde::{Deserialize, Serialize};

use super::{Archive, SessionError, chain, record::cut, transcript_ref_of};
use crate::name::{Attempt, Oid, SessionId, TaskId};

/// Most of one line, in characters, and of all lines of a turn, in bytes.
const LONGEST_LINE: usize = 32 * 1024;
const MOST: usize = 256 * 1024;

/// What was said in one turn, or in a call whose turns are not told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The turn.
    pub turn: u32,
    /// The task.
    pub node: TaskId,
    /// The step.
    pub step: String,
    /// The attempt.
    pub attempt: Attempt,
    /// Who was called.
    pub runner: String,
    /// What was said, in order. It must have passed the redactor.
    pub lines: Vec<Line>,
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// By whom.
    pub voice: Voice,
    /// What.
    pub text: String,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Voice {
    /// We: the prompt.
    Prompt,
    /// The agent.
    Agent,
    /// The agent calls a tool.
    Call,
    /// A tool answers.
    Tool,
    /// The program, in its own format: a line of its event stream, from which the others can be read again.
    Stream,
}

impl Transcript {
    pub(super) fn subject(&self, session: &SessionId) -> String {
        format!("transcript of {session}: turn {} of {}", self.turn, self.node)
    }

    /// Adds a line, as long as there is room. The program's own lines are kept whole or not at all, since a part of one
    /// cannot be read.
    pub fn say(&mut self, voice: Voice, text: &str) {
        let used: usize = self.lines.iter().map(|line| line.text.len()).sum();
        let is_whole = voice == Voice::Stream;
        if used >= MOST || (is_whole && used + text.len() > MOST) {
            return;
        }
        let text = if is_whole { text.to_owned() } else { cut(text, LONGEST_LINE.min(MOST - used)) };
        self.lines.push(Line { voice, text });
    }
}

impl Archive<'_> {
    /// What was said in a session, newest first, from at most `count` turns.
    pub fn transcripts(&self, session: &SessionId, count: usize) -> Result<Vec<Transcript>, SessionError> {
        let name = transcript_ref_of(session);
        let Some(tip) = self.repository.find_ref(&name)? else {
            return Ok(Vec::new());
        };
        let revisions = ["--first-parent".into(), format!("-n{count}"), tip.to_string()];
        self.repository
            .stream_commits(&revisions)?
            .map(|commit| chain::read(&name, &self.repository.exact(commit?)?))
            .collect()
    }

    /// The newest commit of what was said in a session.
    pub fn find_transcript(&self, session: &SessionId) -> Result<Option<Oid>, SessionError> {
        Ok(self.repository.find_ref(&transcript_ref_of(session))?)
    }
}
