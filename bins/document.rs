//! Parts that the JSON documents of several commands share.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use arborist_core::{
    event::{one_of, statuses, steps},
    failure::Exit,
    history::Event,
    message::{Key, Status, Trailers, escape_json},
};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::{entry::Outcome, ui::Ui};

/// One valid task commit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EventDocument {
    /// The full id of the commit.
    pub commit: String,
    /// When it was committed, in RFC 3339.
    pub time: String,
    /// The branch of the run.
    pub branch: String,
    /// The task; null if the whole run is concerned.
    pub task: Option<String>,
    /// The status in the subject, such as `test-fail`.
    #[schemars(schema_with = "statuses")]
    pub status: String,
    /// The step of the pipeline.
    #[schemars(schema_with = "steps")]
    pub step: String,
    /// `pass`, `fail`, `approved` or `rejected`; null where the status has no outcome.
    #[schemars(schema_with = "results")]
    pub result: Option<String>,
    /// The attempt, from 0; null where the status has none.
    pub attempt: Option<u32>,
    /// The session of the run, if the commit names it.
    pub session: Option<String>,
    /// The text of the subject.
    pub subject: String,
    /// All of its trailers.
    #[schemars(schema_with = "trailers_by_key")]
    pub trailers: BTreeMap<String, String>,
    /// Its quoted sections: an agent's words, the output of tests, a review.
    pub body: Vec<SectionDocument>,
}

/// A quoted part of a commit's body.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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

/// The ways in which a step may end, or null.
pub fn results(_: &mut SchemaGenerator) -> Schema {
    let outcomes = Status::ALL.iter().filter_map(|status| status.outcome());
    let words: BTreeSet<&str> = outcomes.map(|(_, word)| word).collect();
    let words: Vec<Option<&str>> = words.into_iter().map(Some).chain([None]).collect();
    json_schema!({ "type": ["string", "null"], "enum": words })
}

/// Trailers by keys that we know.
pub fn trailers_by_key(_: &mut SchemaGenerator) -> Schema {
    let keys = one_of(Key::ALL.iter().map(|key| key.as_str()));
    json_schema!({
        "type": "object",
        "propertyNames": keys,
        "additionalProperties": { "type": "string" },
    })
}

/// Prints a document to standard output.
pub fn print(ui: &mut Ui, document: &impl Serialize) -> Outcome {
    let json = serde_json::to_string_pretty(document).context("could not write JSON")?;
    ui.line(&escape_json(&json));
    Ok(Exit::Done)
}

/// Trailers by their keys.
#[must_use]
pub fn trailers(trailers: &Trailers) -> BTreeMap<String, String> {
    trailers.iter().map(|(key, value)| (key.as_str().to_owned(), value.to_owned())).collect()
}

/// A time in RFC 3339. An invalid time becomes the start of 1970.
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
