//! Context for a resumed session from earlier turns: the conversation that an agent was in, and what it had done.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    RecordKind, SessionError, SessionReader, Speaker, StoredRecord, Transcript, Turn, record,
    transcript_ref_of, turn::cut,
};
use crate::{
    agent::{AgentEvent, EventFormat, EventReader},
    name::{SessionId, TaskId},
};

/// How many records are searched.
const MOST_RECORDS: usize = 2000;
/// How many turns of a task are described.
const MOST_TURNS: usize = 30;
/// The length of the line about a turn, in characters.
const LONGEST_LINE: usize = 160;
/// How many transcripts are read.
const MOST_TRANSCRIPTS: usize = 20;
/// How much is quoted from one transcript, in characters.
const LONGEST_WORDS: usize = 600;

/// The earlier turns of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeContext {
    /// The task.
    pub node: TaskId,
    /// The runner that was called last.
    pub runner: String,
    /// The agent's own session, if it may be continued.
    pub agent_session: Option<String>,
    /// What was done and said, one paragraph for each turn, oldest first.
    pub so_far: Vec<String>,
}

impl SessionReader<'_> {
    /// The context of the tasks `left` if the session of `newest` was just resumed or starts as a replay; otherwise
    /// empty. A replay does not continue conversations of the session that it was forked from.
    pub fn resume_contexts(
        &self,
        newest: &StoredRecord,
        left: &BTreeSet<&TaskId>,
    ) -> Result<Vec<ResumeContext>, SessionError> {
        if left.is_empty() {
            return Ok(Vec::new());
        }
        match &newest.record.kind {
            RecordKind::Resume(resumed) => self.recall(newest, resumed.turn.unwrap_or(u32::MAX), left),
            RecordKind::Start(start) => {
                let Some(fork) = &start.forked_from else {
                    return Ok(Vec::new());
                };
                let Some(origin) = self.newest(&fork.session)? else {
                    return Ok(Vec::new());
                };
                let mut recalled = self.recall(&origin, fork.turn, left)?;
                recalled.iter_mut().for_each(|resume_context| resume_context.agent_session = None);
                Ok(recalled)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The turns of these tasks up to this number. Skips other records by their subjects.
    fn recall(
        &self,
        newest: &StoredRecord,
        last: u32,
        left: &BTreeSet<&TaskId>,
    ) -> Result<Vec<ResumeContext>, SessionError> {
        let said = self.newest_words(&newest.record.session)?;
        let mut found: BTreeMap<TaskId, ResumeContext> = BTreeMap::new();
        let mut walk = self.walk(newest)?;
        for _ in 0..MOST_RECORDS {
            let Some(commit) = walk.stream.next().transpose()? else {
                break;
            };
            let is_asked_for = |(number, node): (u32, TaskId)| number <= last && left.contains(&node);
            if !walk.turn_in_subject(&commit).is_some_and(is_asked_for) {
                continue;
            }
            let record = walk.read(commit)?.record;
            let Some(turn) = record.turn().filter(|turn| turn.step == "implement" && turn.number <= last)
            else {
                continue;
            };
            let resume_context = found.entry(turn.node.clone()).or_insert_with(|| ResumeContext {
                node: turn.node.clone(),
                runner: turn.runner.clone(),
                agent_session: turn.agent_session.clone(),
                so_far: Vec::new(),
            });
            if resume_context.so_far.len() < MOST_TURNS {
                let said = said.get(&turn.number).map(String::as_str).unwrap_or_default();
                resume_context.so_far.push(line_of(turn) + said);
            }
            if found.len() == left.len() && found.values().all(|known| known.so_far.len() == MOST_TURNS) {
                break;
            }
        }
        let mut all: Vec<ResumeContext> = found.into_values().collect();
        all.iter_mut().for_each(|resume_context| resume_context.so_far.reverse());
        Ok(all)
    }
}

impl SessionReader<'_> {
    /// Quotes from the newest transcripts in this repository, by the numbers of their turns.
    fn newest_words(&self, session: &SessionId) -> Result<HashMap<u32, String>, SessionError> {
        let name = transcript_ref_of(session);
        let Some(tip) = self.find_transcript(session)? else {
            return Ok(HashMap::new());
        };
        let revisions = ["--first-parent".into(), format!("-n{MOST_TRANSCRIPTS}"), tip.to_string()];
        let mut words = HashMap::new();
        for commit in self.repository.stream_commits(&revisions)? {
            let said: Transcript = record::read_json(&name, &self.repository.exact(commit?)?)?;
            words.entry(said.turn).or_insert_with(|| words_of(&said));
        }
        Ok(words)
    }
}

/// What an agent said and which tools it used, each on its own line.
fn words_of(transcript: &Transcript) -> String {
    let Ok(format) = transcript.events.parse::<EventFormat>() else {
        return String::new();
    };
    let mut reader = EventReader::new(format);
    let (mut words, mut tools) = (String::new(), Vec::new());
    for line in transcript.lines.iter().filter(|line| line.speaker == Speaker::Stream) {
        for event in reader.feed(format!("{}\n", line.text).as_bytes()) {
            match event {
                AgentEvent::Text(text) if format == EventFormat::Gemini => words += &text,
                AgentEvent::Text(text) => words += &format!("{text} "),
                AgentEvent::ToolCall { name, summary } => tools.push(format!("{name}: {summary}")),
                _ => {}
            }
        }
    }
    let report = |what: &str, text: &str| match text.trim() {
        "" => String::new(),
        text => format!("\n  {what}: {}", cut(text, LONGEST_WORDS).replace('\n', " ")),
    };
    report("said", &words) + &report("used", &tools.join("; "))
}

fn line_of(turn: &Turn) -> String {
    let words = turn.message.as_deref().and_then(|message| message.lines().next()).unwrap_or("looked around");
    let files = turn.paths();
    let files = if files.is_empty() { String::new() } else { format!(" ({})", files.join(", ")) };
    cut(&format!("{words}{files}"), LONGEST_LINE).replace('\n', " ")
}
