//! Repeats recorded events, so that a replayed run gets the state of the original one.

use super::TaskEvent;
use crate::{
    history::Event,
    message::{Key, Status, Trailers},
    name::Attempt,
};

/// Trailers that follow from the status, the attempt and the session, and costs, which count only once.
const LEFT_OUT: [Key; 10] = [
    Key::Step,
    Key::Result,
    Key::Test,
    Key::Review,
    Key::Retry,
    Key::Session,
    Key::TokensIn,
    Key::TokensOut,
    Key::Cost,
    Key::Runtime,
];

impl TaskEvent<'static> {
    /// The same event without its cost. `None` unless it is the end of a step.
    #[must_use]
    pub fn repeating(event: &Event) -> Option<Self> {
        let task = event.task()?.clone();
        if matches!(event.status(), Status::Turn | Status::Merge | Status::Reset) {
            return None;
        }
        let mut trailers = Trailers::default();
        for (key, value) in event.trailers.iter().filter(|(key, _)| !LEFT_OUT.contains(key)) {
            let _ = trailers.set(key, value);
        }
        Some(Self {
            task,
            status: event.status(),
            text: event.subject.text.clone(),
            attempt: event.attempt().unwrap_or(Attempt(0)),
            remark: "",
            body: event.body(),
            trailers,
            author: None,
        })
    }
}
