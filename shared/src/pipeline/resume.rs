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

/// The attempt and the stage that a task goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The attempt.
    pub attempt: Attempt,
    /// What comes next in it.
    pub stage: Stage,
}

impl Resume {
    /// After these events, the ones that attempts are counted from. A passed step is not taken again; a failed one, or
    /// one whose end is not known, begins the next attempt.
    #[must_use]
    pub fn after(current: &[Event]) -> Self {
        let attempt = current.iter().rev().find_map(Event::attempt);
        let (Some(last), Some(attempt)) = (current.last(), attempt) else {
            return Self { attempt: Attempt(0), stage: Stage::Implement };
        };
        let goes_on = |stage| Self { attempt, stage };
        match last.status() {
            Status::ImplementFail if last.was_stopped() => goes_on(Stage::Implement),
            Status::ReviewRejected if last.was_stopped() => goes_on(Stage::Review),
            Status::ImplementPass => goes_on(Stage::Test),
            Status::TestPass => goes_on(Stage::Review),
            Status::ReviewApproved => goes_on(Stage::Complete),
            _ => Self { attempt: attempt.next(), stage: Stage::Implement },
        }
    }
}
