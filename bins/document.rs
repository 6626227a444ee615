//! What the JSON documents of several commands have in common.

use std::collections::BTreeMap;

use arborist_core::{
    failure::{Exit, Failure},
    history::Event,
    message::Trailers,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{entry::Outcome, ui::Ui};

/// One sound commit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventDocument {
    /// The full id of the commit.
    pub commit: String,
    /// When it was committed, in RFC 3339.
    pub time: String,
    /// The branch of the run.
    pub branch: String,
    /// The task; null for what concerns the whole run.
    pub task: Option<String>,
    /// The status in the subject, such as `test-fail`.
    pub status: String,
    /// The step of the pipeline.
    pub step: String,
    /// `pass`, `fail`, `approved` or `rejected`; null where the status has no outcome.
    pub result: Option<String>,
    /// The attempt, from 0; null where the status has none.
    pub attempt: Option<u32>,
    /// The session of the run, if the commit names it.
    pub session: Option<String>,
    /// The words of the subject.
    pub subject: String,
    /// All of its trailers.
    pub trailers: BTreeMap<String, String>,
    /// What it quotes, by heading: an agent's words, the output of tests, a review.
    pub body: Vec<SectionDocument>,
}

/// A quoted part of a commit's body.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectionDocument {
    /// The line before it.
    pub heading: String,
    /// The text, no longer quoted.
    pub text: String,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        let sections = event.body().sections.into_iter();
        Self {
            commit: event.commit.to_string(),
            time: rfc3339(event.time),
            branch: event.branch().to_string(),
            task: event.task().map(ToString::to_string),
            status: event.status().to_string(),
            step: event.status().step().as_str().to_owned(),
            result: event.outcome().map(str::to_owned),
            attempt: event.attempt().map(|attempt| attempt.0),
            session: event.session().map(|session| session.to_string()),
            subject: event.subject.text.clone(),
            trailers: trailers(&event.trailers),
            body: sections.map(|s| SectionDocument { heading: s.heading, text: s.text }).collect(),
        }
    }
}

/// Prints a document to standard output.
pub fn print(ui: &mut Ui, document: &impl Serialize) -> Outcome {
    match serde_json::to_string_pretty(document) {
        Ok(json) => ui.line(&json),
        Err(error) => return Err(Failure::new(Exit::Fatal, format!("could not write JSON: {error}"))),
    }
    Ok(Exit::Done)
}

/// Trailers by their keys.
#[must_use]
pub fn trailers(trailers: &Trailers) -> BTreeMap<String, String> {
    trailers.iter().map(|(key, value)| (key.as_str().to_owned(), value.to_owned())).collect()
}

/// A moment in RFC 3339. A time that no calendar has is the beginning of 1970.
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
