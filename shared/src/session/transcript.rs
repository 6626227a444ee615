//! What was said in a session, turn by turn: prompts, words of agents, what tools answered. It stays in this repository
//! unless the user wants otherwise.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{SessionError, SessionReader, chain, transcript_ref_of, turn_record::cut};
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
    /// How it speaks, as runners are configured; empty where that was not written down.
    #[serde(default)]
    pub events: String,
    /// What was said, in order. It must have passed the redactor.
    pub lines: Vec<Utterance>,
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Utterance {
    /// By whom.
    #[serde(rename = "voice")]
    pub speaker: Speaker,
    /// What.
    pub text: String,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
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
    pub fn say(&mut self, speaker: Speaker, text: &str) {
        let used: usize = self.lines.iter().map(|line| line.text.len()).sum();
        let is_whole = speaker == Speaker::Stream;
        if used >= MOST || (is_whole && used + text.len() > MOST) {
            return;
        }
        let text = if is_whole { text.to_owned() } else { cut(text, LONGEST_LINE.min(MOST - used)) };
        self.lines.push(Utterance { speaker, text });
    }
}

impl SessionReader<'_> {
    /// Where what was said in each turn stands, by the number of the turn. The newest of a number counts.
    pub fn list_transcripts(&self, session: &SessionId) -> Result<HashMap<u32, Oid>, SessionError> {
        let Some(tip) = self.find_transcript(session)? else {
            return Ok(HashMap::new());
        };
        let begin = format!("transcript of {session}: turn ");
        let mut found = HashMap::new();
        for commit in self.repository.stream_commits(&["--first-parent".into(), tip.to_string()])? {
            let commit = commit?;
            let number = std::str::from_utf8(commit.message())
                .ok()
                .and_then(|said| said.strip_prefix(&begin)?.split_once(' ')?.0.parse().ok());
            // Newest first: of two with one number, the older belongs to a turn whose record a kill has cut off.
            if let Some(number) = number {
                found.entry(number).or_insert(commit.id);
            }
        }
        Ok(found)
    }

    /// What was said in the turn whose transcript stands at `commit`.
    pub fn load_transcript(&self, session: &SessionId, commit: Oid) -> Result<Transcript, SessionError> {
        let name = transcript_ref_of(session);
        let loaded = self.repository.load_commits(&[commit])?.pop();
        chain::read(&name, &loaded.ok_or_else(|| SessionError::Unknown(session.to_string()))?)
    }

    /// The newest commit of what was said in a session.
    pub fn find_transcript(&self, session: &SessionId) -> Result<Option<Oid>, SessionError> {
        Ok(self.repository.find_ref(&transcript_ref_of(session))?)
    }
}
