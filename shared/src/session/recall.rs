//! What a session that goes on knows of the turns before: in which conversation an agent was, and what it had done.

use std::collections::BTreeMap;

use super::{Archive, Happening, SessionError, Stored, Turn, record::cut};
use crate::name::TaskId;

/// How many records are looked at, how many turns of a task are told, and how much of each.
const MOST_RECORDS: usize = 2000;
const MOST_TURNS: usize = 30;
const LONGEST_LINE: usize = 160;

/// The earlier turns of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recollection {
    /// The task.
    pub node: TaskId,
    /// Who was called last.
    pub runner: String,
    /// The agent's own session, if it may be continued.
    pub agent_session: Option<String>,
    /// What was done, a line for each turn, the first one first.
    pub so_far: Vec<String>,
}

impl Archive<'_> {
    /// What is known of each task when the session of `newest` is resumed, or begins as a replay; nothing otherwise. A
    /// replay does not continue the conversations of the session that it was forked from.
    pub fn recollections(&self, newest: &Stored) -> Result<Vec<Recollection>, SessionError> {
        match &newest.record.happening {
            Happening::Resume(resumed) => self.recall(newest, resumed.turn.unwrap_or(u32::MAX)),
            Happening::Start(start) => {
                let Some(fork) = &start.forked_from else {
                    return Ok(Vec::new());
                };
                let Some(origin) = self.newest(&fork.session)? else {
                    return Ok(Vec::new());
                };
                let mut recalled = self.recall(&origin, fork.turn)?;
                recalled.iter_mut().for_each(|recollection| recollection.agent_session = None);
                Ok(recalled)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The turns up to the one with this number.
    fn recall(&self, newest: &Stored, last: u32) -> Result<Vec<Recollection>, SessionError> {
        let mut found: BTreeMap<TaskId, Recollection> = BTreeMap::new();
        for stored in self.walk(newest)?.take(MOST_RECORDS) {
            let record = stored?.record;
            let Some(turn) = record.turn().filter(|turn| turn.step == "implement" && turn.number <= last)
            else {
                continue;
            };
            let recollection = found.entry(turn.node.clone()).or_insert_with(|| Recollection {
                node: turn.node.clone(),
                runner: turn.runner.clone(),
                agent_session: turn.agent_session.clone(),
                so_far: Vec::new(),
            });
            if recollection.so_far.len() < MOST_TURNS {
                recollection.so_far.push(line_of(turn));
            }
        }
        let mut all: Vec<Recollection> = found.into_values().collect();
        all.iter_mut().for_each(|recollection| recollection.so_far.reverse());
        Ok(all)
    }
}

fn line_of(turn: &Turn) -> String {
    let words = turn.message.as_deref().and_then(|message| message.lines().next()).unwrap_or("looked around");
    let files = if turn.files.is_empty() { String::new() } else { format!(" ({})", turn.files.join(", ")) };
    cut(&format!("{words}{files}"), LONGEST_LINE).replace('\n', " ")
}
