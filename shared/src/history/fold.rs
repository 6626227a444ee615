//! A task's state is never stored. It is folded from its events, oldest first; the last one decides.

use super::Event;
use crate::{
    message::Status,
    name::{Attempt, Oid, TaskId},
};

/// Where a task stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing has happened, or it begins anew.
    #[default]
    Pending,
    /// The agent works, or its work is to be tested.
    Implementing,
    /// The tests ran.
    Testing,
    /// The reviewer has spoken.
    Reviewing,
    /// Done.
    Complete,
    /// Its attempts are used up.
    Failed,
    /// The plan leaves it out.
    Skipped,
    /// Two commits claim to be its last, and neither is an ancestor of the other.
    Forked,
}

impl State {
    /// Every state.
    pub const ALL: &[Self] = &[
        Self::Pending,
        Self::Implementing,
        Self::Testing,
        Self::Reviewing,
        Self::Complete,
        Self::Failed,
        Self::Skipped,
        Self::Forked,
    ];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Implementing => "implementing",
            Self::Testing => "testing",
            Self::Reviewing => "reviewing",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Forked => "forked",
        }
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Complete | Self::Skipped)
    }

    /// Whether work has begun and not ended.
    #[must_use]
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Implementing | Self::Testing | Self::Reviewing)
    }
}

/// What the events of a task amount to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskState {
    /// Where it stands.
    pub state: State,
    /// The attempt that it is in, or ended in.
    pub attempt: Option<Attempt>,
    /// The commit that decided.
    pub commit: Option<Oid>,
}

impl TaskState {
    fn after(self, event: &Event) -> Self {
        let state = match event.status() {
            Status::RunStart | Status::Plan => return self,
            Status::Turn | Status::ImplementPass | Status::ImplementFail => State::Implementing,
            Status::TestPass | Status::TestFail => State::Testing,
            Status::ReviewApproved | Status::ReviewRejected => State::Reviewing,
            Status::Complete | Status::Merge => State::Complete,
            Status::Failed => State::Failed,
            Status::Reset => State::Pending,
        };
        let attempt = if state == State::Pending { None } else { event.attempt().or(self.attempt) };
        Self { state, attempt, commit: Some(event.commit) }
    }
}

impl<'a> FromIterator<&'a Event> for TaskState {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        events.into_iter().fold(Self::default(), Self::after)
    }
}

/// How often a task was interrupted in a row, and why the last time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// How often.
    pub count: usize,
    /// The reason that was recorded last.
    pub why: Option<String>,
}

impl Interruptions {
    /// So many in a row need a person: what interrupts a task every time would otherwise be tried for ever.
    pub const MOST: usize = 3;

    /// At the end of these events. Turns are no end of anything, so they do not break the row.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let row = events.iter().rev().filter(|event| event.status() != Status::Turn);
        let reasons: Vec<&str> = row.map_while(Event::interruption).collect();
        Self { count: reasons.len(), why: reasons.first().map(|why| (*why).to_owned()) }
    }
}

/// All that history knows of a task.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    /// Its id.
    pub id: TaskId,
    /// Its events that count, oldest first.
    pub events: Vec<Event>,
    /// Its events that were taken back by reverts, oldest first.
    pub cancelled: Vec<Event>,
    /// Where it stands.
    pub state: TaskState,
    /// Several commits of which none is the last, if it is forked.
    pub forks: Vec<Oid>,
    /// How many of the events are from before the last revert; attempts are counted since.
    pub(super) earlier: usize,
    /// Whether its last event is on the run's branch, not only on the task's own.
    pub is_landed: bool,
    /// Whether its landing could not be verified, because what it landed is not in this repository (a shallow clone).
    pub is_unverified: bool,
}

impl TaskHistory {
    /// A history of these events that is still to be folded.
    pub(super) fn new(id: TaskId, events: Vec<Event>, cancelled: Vec<Event>, forks: Vec<Oid>) -> Self {
        Self {
            id,
            events,
            cancelled,
            state: TaskState::default(),
            forks,
            earlier: 0,
            is_landed: true,
            is_unverified: false,
        }
    }

    /// The same with so many events from before the last revert, folded, or a fork.
    pub(super) fn with_earlier(mut self, earlier: usize) -> Self {
        self.earlier = earlier;
        self.state = self.events.iter().collect();
        if self.current().len() < self.events.len() {
            self.state.attempt = self.current().iter().collect::<TaskState>().attempt;
        }
        if !self.forks.is_empty() {
            self.state.state = State::Forked;
        }
        self
    }

    /// The events that attempts are counted from: those since the last reset or revert.
    #[must_use]
    pub fn current(&self) -> &[Event] {
        self.split().1
    }

    /// The events from before, and those that attempts are counted from.
    #[must_use]
    pub fn split(&self) -> (&[Event], &[Event]) {
        let reset =
            self.events.iter().rposition(|event| event.status() == Status::Reset).map_or(0, |at| at + 1);
        self.events.split_at(reset.max(self.earlier))
    }

    /// Whether anything of it counts or did: what was left out altogether tells of no task.
    pub(super) fn is_told(&self) -> bool {
        !self.events.is_empty() || !self.cancelled.is_empty() || !self.forks.is_empty()
    }

    /// The interruptions since anything else was recorded of the task.
    #[must_use]
    pub fn interruptions(&self) -> Interruptions {
        Interruptions::of(self.current())
    }

    /// The event that decided.
    #[must_use]
    pub fn last(&self) -> Option<&Event> {
        self.events.last()
    }

    /// The task's name as its commits tell it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let named = |event: &&Event| event.status() != Status::Turn;
        self.events
            .iter()
            .chain(&self.cancelled)
            .rev()
            .filter(named)
            .find_map(|event| event.subject.quoted_name())
    }
}
