//! The words for the state of a task. Every command that shows it to people uses these.

use super::NodeProgress;
use crate::{
    history::{Event, Interruptions, State, TaskHistory},
    message::Status,
    name::Attempt,
};

/// The state of a task on which no run is working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestingState {
    /// It was started and has not ended.
    Paused,
    /// It can be started.
    Ready,
    /// The state as history has it.
    Recorded(State),
}

impl RestingState {
    /// One word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Ready => "ready",
            Self::Recorded(state) => state.as_str(),
        }
    }
}

impl NodeProgress<'_> {
    /// The state of a task on which no run is working.
    #[must_use]
    pub fn resting_state(&self) -> RestingState {
        match self.state {
            _ if self.is_paused() => RestingState::Paused,
            _ if !self.is_leaf() => RestingState::Recorded(self.state),
            State::Complete | State::Failed | State::Skipped | State::Forked | State::Reverted => {
                RestingState::Recorded(self.state)
            }
            _ if self.is_ready => RestingState::Ready,
            _ => RestingState::Recorded(State::Pending),
        }
    }

    /// One word for the state of a task on which no run is working.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.resting_state().as_str()
    }

    /// The state of a task on which no run is working, in one line.
    #[must_use]
    pub fn words(&self) -> String {
        let word = self.word();
        let attempt = self.attempt().map_or(1, Attempt::ordinal);
        match self.state {
            _ if self.is_paused() => format!("{word}; {}", self.pause().unwrap_or_default()),
            State::Failed if attempt == 1 => format!("{word} after 1 attempt"),
            State::Failed => format!("{word} after {attempt} attempts"),
            State::Complete if self.is_unlanded() => format!("{word}, but not landed"),
            State::Complete if self.attempt().is_some() => format!("{word}, attempt {attempt}"),
            _ if self.is_undone() => format!("{word}: its commits were reverted, so it starts over"),
            State::Pending if !self.waits_for.is_empty() => {
                let needs: Vec<String> = self.waits_for.iter().map(ToString::to_string).collect();
                format!("{word}: waits for {}", needs.join(", "))
            }
            _ => word.to_owned(),
        }
    }

    /// Whether it was started and has not ended.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.is_leaf() && self.state.is_under_way() && !self.is_undone()
    }

    /// Whether its last commits were reverted, so that it starts over although some of its commits count.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        let is_undone = |history: &TaskHistory| {
            history.state().is_under_way() && history.current().is_empty() && !history.cancelled.is_empty()
        };
        self.history.is_some_and(is_undone)
    }

    /// Whether it was interrupted so often in a row that only `--retry-failed` continues it.
    #[must_use]
    pub fn needs_retry(&self) -> bool {
        self.history.is_some_and(|history| history.interruptions().count >= Interruptions::MAX_IN_A_ROW)
    }

    /// Whether it is paused because its last attempt was interrupted.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let history = self.history.filter(|_| self.is_paused());
        history.and_then(|history| history.current().last()).is_some_and(is_cut)
    }

    /// What happened last to a task that is paused.
    #[must_use]
    pub fn pause(&self) -> Option<String> {
        let history = self.history.filter(|_| self.is_paused())?;
        let events = history.current();
        let attempt = history.state.attempt.unwrap_or(Attempt(0));
        let passed = events.iter().rfind(|event| !is_cut(event));
        let n = attempt.ordinal();
        if self.is_interrupted() {
            let status = passed.filter(|event| event.attempt() == Some(attempt)).map(Event::status);
            let step = match status {
                Some(Status::ImplementPass) => State::Testing,
                Some(Status::TestPass | Status::ReviewApproved) => State::Reviewing,
                _ => State::Implementing,
            };
            return Some(format!("attempt {n} was interrupted while {}", step.as_str()));
        }
        let passed = passed?;
        Some(match passed.status() {
            Status::ImplementPass => "implemented, the tests are next".to_owned(),
            Status::TestPass => "tests passed, the review is next".to_owned(),
            Status::ReviewApproved => "the review approved it, and it only has to be recorded".to_owned(),
            Status::TestFail => format!("the tests failed in attempt {n}"),
            Status::ReviewRejected if passed.lacks_verdict() => {
                format!("the review of attempt {n} gave no verdict")
            }
            Status::ReviewRejected => format!("the review rejected attempt {n}"),
            _ => format!("the agent failed in attempt {n}"),
        })
    }
}

/// Whether an attempt was interrupted after this event: it belongs to a step and does not end it.
fn is_cut(event: &Event) -> bool {
    event.status() == Status::Turn || event.is_interruption()
}
