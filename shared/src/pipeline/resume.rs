//! Where a task goes on: decided from its commits alone.

use crate::{history::Event, message::Status, name::Attempt};

/// What comes next in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The agent works.
    Implement,
    /// The tests run.
    Test,
    /// The reviewer decides.
    Review,
    /// It is written down as done.
    Complete,
}

impl Stage {
    /// The word for it, as it stands in notes of what is under way.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Test => "test",
            Self::Review => "review",
            Self::Complete => "complete",
        }
    }
}

/// The attempt and the stage that a task goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The attempt.
    pub attempt: Attempt,
    /// What comes next in it.
    pub stage: Stage,
}

impl Resume {
    /// After these events, the ones that attempts are counted from. A passed step is not taken again, a failed one begins
    /// the next attempt, and what was interrupted is taken again under the same number.
    #[must_use]
    pub fn after(current: &[Event]) -> Self {
        let Some(last) = current.iter().rev().find_map(Event::attempt) else {
            return Self { attempt: Attempt(0), stage: Stage::Implement };
        };
        // Turns that nothing follows are of an attempt whose end is not known: it was interrupted.
        let is_end = |event: &&Event| event.status() != Status::Turn && !event.is_interruption();
        let Some(end) = current.iter().rfind(is_end) else {
            return Self { attempt: last, stage: Stage::Implement };
        };
        let passed = match end.status() {
            Status::ImplementPass => Some(Stage::Test),
            Status::TestPass => Some(Stage::Review),
            Status::ReviewApproved => Some(Stage::Complete),
            _ => None,
        };
        let ended = end.attempt().unwrap_or(last);
        match passed {
            Some(stage) if ended == last => Self { attempt: ended, stage },
            _ => Self { attempt: last.max(ended.next()), stage: Stage::Implement },
        }
    }
}
