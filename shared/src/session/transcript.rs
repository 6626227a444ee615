//! Transcripts: what was said in a session, turn by turn: prompts, words of agents, answers of tools. They stay in this
//! repository unless the user wants them pushed.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SessionError, SessionReader, record, transcript_ref_of, turn::cut};
use crate::name::{Attempt, Oid, SessionId, TaskId};

/// The longest prompt, in characters.
const LONGEST_PROMPT: usize = 32 * 1024;

/// The transcript of one turn, or of a call whose turns cannot be distinguished.
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
    /// The runner that was called.
    pub runner: String,
    /// The format of its event stream; empty if that was not recorded.
    #[serde(default)]
    pub events: String,
    /// The lines, in order. They must have passed the redactor.
    pub lines: Vec<Utterance>,
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Utterance {
    /// Who said it.
    #[serde(rename = "voice")]
    pub speaker: Speaker,
    /// The text.
    pub text: String,
}

impl Utterance {
    /// What a speaker said. A prompt is cut to a reasonable length; a raw line is kept whole, because a part of one
    /// cannot be parsed.
    #[must_use]
    pub fn new(speaker: Speaker, text: &str) -> Self {
        let text = if speaker == Speaker::Stream { text.to_owned() } else { cut(text, LONGEST_PROMPT) };
        Self { speaker, text }
    }
}

/// The speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// The prompt.
    Prompt,
    /// The agent.
    Agent,
    /// The agent calls a tool.
    Call,
    /// A tool answers.
    Tool,
    /// A raw line of the program's event stream, from which the others can be derived again.
    Stream,
}

impl Transcript {
    pub(super) fn subject(&self, session: &SessionId) -> String {
        format!("transcript of {session}: turn {} of {}", self.turn, self.node)
    }

    /// The prompt; empty if none was recorded with this turn.
    #[must_use]
    pub fn prompt(&self) -> String {
        let prompts = self.lines.iter().filter(|line| line.speaker == Speaker::Prompt);
        prompts.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl SessionReader<'_> {
    /// The commits of transcripts by the numbers of their turns. For each number, the newest one counts.
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
                .and_then(|rest| rest.strip_prefix(&begin)?.split_once(' ')?.0.parse().ok());
            // Newest first: of two with the same number, the older one belongs to a turn whose record was lost in a
            // kill.
            if let Some(number) = number {
                found.entry(number).or_insert(commit.id);
            }
        }
        Ok(found)
    }

    /// Loads the transcript at `commit`.
    pub fn load_transcript(&self, session: &SessionId, commit: Oid) -> Result<Transcript, SessionError> {
        let name = transcript_ref_of(session);
        let loaded = self.repository.load_commits(&[commit])?.pop();
        record::read_json(&name, &loaded.ok_or_else(|| SessionError::Unknown(session.to_string()))?)
    }

    /// The newest commit of a session's transcripts.
    pub fn find_transcript(&self, session: &SessionId) -> Result<Option<Oid>, SessionError> {
        Ok(self.repository.find_ref(&transcript_ref_of(session))?)
    }
}
