//! The state of a task is never stored. It is folded from its events, oldest first; the last one decides.

use super::{Event, HandMerge, RevertedMerge};
use crate::{
    message::Status,
    name::{Attempt, Oid, TaskId},
    words::words,
};

words! {
    /// The state of a task.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum State {
        /// Nothing has happened, or it was reset.
        #[default]
        Pending = "pending",
        /// The agent is working, or its work was not tested yet.
        Implementing = "implementing",
        /// The tests ran.
        Testing = "testing",
        /// The reviewer has decided.
        Reviewing = "reviewing",
        /// Done.
        Complete = "complete",
        /// Its attempts are used up.
        Failed = "failed",
        /// The plan skips it.
        Skipped = "skipped",
        /// Two commits claim to be its last, and neither is an ancestor of the other.
        Forked = "forked",
        /// It was completed and merged by hand, and its changes are not on the run's branch: the merge was reverted, or took
        /// nothing of it.
        Reverted = "reverted",
    }
}

impl State {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_done(self) -> bool {
        matches!(self, Self::Complete | Self::Skipped)
    }

    /// Whether work has begun and not ended.
    #[must_use]
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Implementing | Self::Testing | Self::Reviewing)
    }
}

/// The folded state of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskState {
    /// The state.
    pub state: State,
    /// The current or last attempt.
    pub attempt: Option<Attempt>,
    /// The commit that decided it.
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

/// How often a task was interrupted in a row, and the last reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// The number of interruptions.
    pub count: usize,
    /// The last recorded reason.
    pub why: Option<String>,
}

impl Interruptions {
    /// This many in a row need a person: a task that is interrupted every time would otherwise be repeated forever.
    pub const MAX_IN_A_ROW: usize = 3;

    /// The interruptions at the end of these events. Turns end nothing, so they are ignored.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let row = events.iter().rev().filter(|event| event.status() != Status::Turn);
        let reasons: Vec<&str> = row.map_while(Event::interruption).collect();
        Self { count: reasons.len(), why: reasons.first().map(|why| (*why).to_owned()) }
    }
}

/// Everything that history knows about a task.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    /// Its id.
    pub id: TaskId,
    /// The events that count, oldest first.
    pub events: Vec<Event>,
    /// The events that were reverted, oldest first.
    pub cancelled: Vec<Event>,
    /// The state.
    pub state: TaskState,
    /// The newest commits, if none of them is the last: the task is forked.
    pub forks: Vec<Oid>,
    /// How many of the events are from before the last revert; attempts are counted from there.
    pub(super) earlier: usize,
    /// Whether its last event is on the run's branch, not only on the task's own.
    pub is_landed: bool,
    /// The place of its last event among the commits of the run. An event is after all of its ancestors.
    pub place: usize,
    /// Whether its landing could not be verified, because the landed commits are not in this repository (a shallow
    /// clone).
    pub is_unverified: bool,
    /// How its changes were lost, if it was merged by hand and reverted.
    pub reverted: Option<RevertedMerge>,
    /// The merge, if it was merged by hand.
    pub merged_by_hand: Option<HandMerge>,
}

impl TaskHistory {
    /// Its state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.state
    }

    /// Whether it is complete and on the run's branch.
    #[must_use]
    pub fn has_landed(&self) -> bool {
        self.is_landed && self.state() == State::Complete
    }

    /// A history whose state is not folded yet.
    pub(super) fn new(id: TaskId, events: Vec<Event>, cancelled: Vec<Event>, forks: Vec<Oid>) -> Self {
        Self {
            id,
            events,
            cancelled,
            state: TaskState::default(),
            forks,
            earlier: 0,
            is_landed: true,
            place: 0,
            is_unverified: false,
            reverted: None,
            merged_by_hand: None,
        }
    }

    /// Sets the number of events from before the last revert, and folds the state.
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

    /// The events from before, and those from which attempts are counted.
    #[must_use]
    pub fn split(&self) -> (&[Event], &[Event]) {
        let reset =
            self.events.iter().rposition(|event| event.status() == Status::Reset).map_or(0, |at| at + 1);
        self.events.split_at(reset.max(self.earlier))
    }

    /// Whether any event counts or did count. A task whose events were all left out does not exist.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.cancelled.is_empty() || !self.forks.is_empty()
    }

    /// The interruptions since any other event of the task.
    #[must_use]
    pub fn interruptions(&self) -> Interruptions {
        Interruptions::of(self.current())
    }

    /// The event that decided its state.
    #[must_use]
    pub fn last(&self) -> Option<&Event> {
        self.events.last()
    }

    /// The merge commit that landed `source` on the run's branch, also if the task was reset after it.
    #[must_use]
    pub fn find_landing(&self, source: Oid) -> Option<Oid> {
        let is_it =
            |event: &&Event| event.status() == Status::Merge && event.trailers.source() == Some(source);
        self.events.iter().rev().filter(|_| self.is_landed).find(is_it).map(|event| event.commit)
    }

    /// The task's name according to its commits.
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
