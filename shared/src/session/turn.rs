//! Writes a turn's commit and its record in one transaction.

use super::{DraftRecord, RecordKind, SessionError, SessionWriter, Transcript, Turn};
use crate::{
    git::RefMove,
    history::Event,
    message::{Body, Key, Status, Wording, plain_text},
    name::{Attempt, TaskId},
    record::{IndexUpdate, Prepared, RecordError, RunRecorder, StagedCommit, TaskEvent},
};

/// The longest value of a trailer, in characters.
const LONGEST_VALUE: usize = 200;
/// The value for something that is not known.
pub const UNKNOWN: &str = "unknown";

/// The commit of a turn, before the turn has a number.
#[derive(Debug)]
pub struct TurnCommit<'a> {
    /// The task.
    pub node: &'a TaskId,
    /// The attempt.
    pub attempt: Attempt,
    /// The model, if it is known.
    pub model: Option<&'a str>,
    /// The provider of the model, if it is known.
    pub provider: Option<&'a str>,
    /// The pipeline.
    pub pipeline: &'a str,
    /// The text of the subject after the colon.
    pub subject: &'a str,
    /// The body of the message.
    pub body: Body,
}

impl TurnCommit<'_> {
    /// The commit as an event, whose author is the task and the model.
    #[must_use]
    pub fn entry(self) -> TaskEvent<'static> {
        let wording = Wording { name: self.subject, attempt: self.attempt, max: 0 };
        let mut entry = TaskEvent::new(self.node.clone(), Status::Turn, wording);
        entry.body = self.body;
        sign_by_agent(&mut entry, (self.model, self.provider), self.pipeline);
        entry
    }
}

/// Makes an agent the author of an event, and adds trailers about it. A model or provider may be unknown.
pub fn sign_by_agent(
    entry: &mut TaskEvent<'_>,
    (model, provider): (Option<&str>, Option<&str>),
    pipeline: &str,
) {
    let (model, node) = (value_of(model), entry.task.to_string());
    entry.author = Some(format!("{node} ({})", model.replace(['<', '>'], "")));
    let (provider, pipeline) = (value_of(provider), value_of(Some(pipeline)));
    for (key, value) in
        [(Key::Model, model), (Key::Provider, provider), (Key::Node, node), (Key::Pipeline, pipeline)]
    {
        let _ = entry.trailers.set(key, value);
    }
}

/// Makes foreign text a value for trailers and records: one line, never empty.
#[must_use]
pub fn value_of(text: Option<&str>) -> String {
    let line = plain_text(text.unwrap_or_default()).replace('\n', " ");
    let cut: String = line.trim().chars().take(LONGEST_VALUE).collect();
    match cut.trim() {
        "" => UNKNOWN.to_owned(),
        value => value.to_owned(),
    }
}

/// What is recorded about a turn.
#[derive(Debug)]
pub struct TurnDraft<'a> {
    /// Its commit, to which the number is added. `None` if the turn changed nothing.
    pub entry: Option<TaskEvent<'a>>,
    /// Its record, to which the commit is added.
    pub turn: Turn,
    /// Its transcript, if transcripts are kept.
    pub transcript: Option<Transcript>,
}

impl SessionWriter {
    /// Records a turn: its changes on the recorder's branch, and its record. `draft` is called with the turn's number,
    /// and again with another one if a concurrent process took it. Returns the commit and its index update, if there is
    /// something to commit.
    pub fn deliver_turn<'e>(
        &self,
        recorder: &mut RunRecorder<'_>,
        delivery: StagedCommit<'_>,
        time: i64,
        mut draft: impl FnMut(u32) -> TurnDraft<'e>,
    ) -> Result<Option<(Event, IndexUpdate)>, SessionError> {
        let branch = recorder.branch().to_ref();
        let mark = recorder.turn_mark();
        let mut prepared: Option<Prepared> = None;
        let written = self.append(time, |number| {
            let TurnDraft { entry, turn, transcript } = draft(number);
            let mut turn = Turn { number, ..turn };
            let transcript = transcript.map(|said| Transcript { turn: number, ..said });
            let mut moves = Vec::new();
            prepared = match entry {
                Some(mut entry) => {
                    let _ = entry.trailers.set(Key::Turn, number.to_string());
                    Some(recorder.prepare(entry, delivery.tree)?)
                }
                None => None,
            };
            if let Some(prepared) = &prepared {
                turn.commit = Some(prepared.commit);
                // The mark first: if the branch moved without it, the index would stay outdated for good.
                moves.extend(mark.as_ref().map(|mark| mark.begun()));
                moves.push(RefMove { name: &branch, new: Some(prepared.commit), old: Some(delivery.tip) });
            }
            let about = Some(turn.commit.unwrap_or(recorder.head()));
            let tip = about.filter(|_| recorder.branch() == recorder.run());
            Ok::<_, SessionError>(DraftRecord { kind: RecordKind::Turn(turn), about, tip, transcript, moves })
        });
        if let Err(error) = written {
            let is_elsewhere = prepared.is_some()
                && recorder.repository().find_branch(recorder.branch())? != Some(delivery.tip);
            let moved = || RecordError::Moved { branch: recorder.branch().clone() };
            return Err(if is_elsewhere { moved().into() } else { error });
        }
        let Some(prepared) = prepared else {
            return Ok(None);
        };
        let event = recorder.accept(prepared);
        Ok(Some((event, recorder.stage_turn(mark, delivery)?)))
    }
}
