//! Decides from the commits of a task where it continues, and records interrupted attempts.
//!
//! An attempt that ends through no fault of the agent is recorded as interrupted. It does not count against the limit
//! of attempts, and the interrupted step is repeated with the same attempt number.

use crate::{
    event::INTERRUPTED as INTERRUPTED_PREFIX,
    history::{Event, FAILED, INTERRUPTED, Interruptions},
    message::{Body, Key, Status, plain_text},
    name::{Attempt, TaskId},
    pipeline::{Expense, PipelineError, TaskRun},
    record::{StepStatus, TaskEvent},
};

/// The next step of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Call the agent.
    Implement,
    /// Run the tests.
    Test,
    /// Call the reviewer.
    Review,
    /// Record the task as complete.
    Complete,
}

impl Stage {
    /// The name that a [`StepStatus`] contains.
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

/// The attempt and the stage at which a task continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The attempt number.
    pub attempt: Attempt,
    /// The next step of it.
    pub stage: Stage,
}

impl Resume {
    /// Decides after the events from which attempts are counted. A step that passed is not repeated, a failed one
    /// begins the next attempt, and an interrupted one is repeated with the same number. A step counts only if the steps
    /// before it passed in the same attempt.
    #[must_use]
    pub fn after(current: &[Event]) -> Self {
        let Some(last) = current.iter().rev().find_map(Event::attempt) else {
            return Self { attempt: Attempt(0), stage: Stage::Implement };
        };
        // Turns without a following step belong to an attempt that was interrupted.
        let is_end = |event: &&Event| event.status() != Status::Turn && !event.is_interruption();
        let mut ends = current.iter().rev().filter(is_end);
        let Some(end) = ends.next() else {
            return Self { attempt: last, stage: Stage::Implement };
        };
        let (stage, needed): (_, &[Status]) = match end.status() {
            Status::ImplementPass => (Stage::Test, &[]),
            Status::TestPass => (Stage::Review, &[Status::ImplementPass]),
            Status::ReviewApproved => (Stage::Complete, &[Status::TestPass, Status::ImplementPass]),
            _ => (Stage::Implement, &[]),
        };
        let ended = end.attempt().unwrap_or(last);
        let has_passed = |status: &Status| {
            ends.next().is_some_and(|event| event.status() == *status && event.attempt() == end.attempt())
        };
        if stage != Stage::Implement && ended == last && needed.iter().all(has_passed) {
            return Self { attempt: ended, stage };
        }
        Self { attempt: last.max(ended.next()), stage: Stage::Implement }
    }
}

/// The longest reason in a trailer. In bytes, because that is how trailer values are limited.
const MAX_REASON_LENGTH: usize = 500;

/// Marks `entry` as an interrupted attempt.
pub fn mark_interrupted(entry: &mut TaskEvent<'_>, why: &str) {
    let line = one_line(why);
    // Without the trailer the attempt would count against the limit, so a reason that is no valid value is replaced.
    if entry.trailers.set(Key::Interrupted, &line).is_err() {
        let _ = entry.trailers.set(Key::Interrupted, "unknown");
    }
    entry.body = Body::new(INTERRUPTED, why).followed_by(std::mem::take(&mut entry.body));
}

/// An interruption as the reason in an event, with what its child did without permission.
pub(super) fn describe_interruption(why: &str, violation: Option<&str>) -> String {
    let violation = violation.map(|violation| format!("; {violation}")).unwrap_or_default();
    format!("{INTERRUPTED_PREFIX}{why}{violation}")
}

/// The reason as the value of a trailer.
fn one_line(why: &str) -> String {
    let words: Vec<String> = plain_text(why).split_whitespace().map(str::to_owned).collect();
    let mut line = words.join(" ");
    if line.len() > MAX_REASON_LENGTH {
        let end = (0..=MAX_REASON_LENGTH).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
    }
    let line = line.trim_end();
    if line.is_empty() { "unknown".to_owned() } else { line.to_owned() }
}

impl PipelineError {
    /// Whether this error interrupts an attempt that has begun, so that it is recorded even if the agent changed and
    /// spent nothing. All other errors mean that something cannot be used or that a budget is spent; they are recorded
    /// only together with changes or expenses.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Git(_)
            | Self::Unrestored(_)
            | Self::Record(_)
            | Self::File { .. }
            | Self::Stopped { .. }
            | Self::Unavailable { .. }
            | Self::ReviewPlace(_)
            | Self::Survivors(_) => true,
            Self::Agent(_)
            | Self::Refused { .. }
            | Self::NoReview { .. }
            | Self::Budget(_)
            | Self::NotRecorded { .. }
            | Self::Session(_)
            | Self::NoCommand { .. }
            | Self::RedLane { .. }
            | Self::NoTestPlace(_)
            | Self::Interrupted { .. } => false,
        }
    }

    /// The recorded reason of an interruption.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Stopped { signal: Some(2) } => "stopped by Ctrl-C or SIGINT".into(),
            Self::Stopped { signal: Some(15) } => "stopped by SIGTERM".into(),
            Self::Stopped { signal: Some(signal) } => format!("stopped by signal {signal}"),
            Self::Stopped { signal: None } => "stopped by the user".into(),
            error => error.to_string(),
        }
    }

    /// Returns the same error, or [`PipelineError::Interrupted`] if the task was interrupted too often in a row. A
    /// signal is always returned, because its sender waits for the matching exit code.
    #[must_use]
    pub fn after(self, task: &TaskId, events: &[Event]) -> Self {
        match self {
            Self::Stopped { .. } | Self::Interrupted { .. } => self,
            error if error.is_interruption() => Self::interrupted_too_often(task, events).unwrap_or(error),
            error => error,
        }
    }

    /// The error of a task that was interrupted too often in a row.
    fn interrupted_too_often(task: &TaskId, events: &[Event]) -> Option<Self> {
        let Interruptions { count, why } = Interruptions::of(events);
        let why = why.filter(|_| count >= Interruptions::MAX_IN_A_ROW)?;
        Some(Self::Interrupted { task: task.clone(), count, why })
    }
}

impl TaskRun<'_, '_, '_> {
    /// Runs one step. If an error of ours or a signal ends it, the interruption is recorded before the error is
    /// returned.
    pub(super) fn run_step(&mut self, next: Resume) -> Result<super::task::StepOutcome, PipelineError> {
        let known = self.events.len();
        let step = match next.stage {
            Stage::Implement => return self.implement(next.attempt),
            Stage::Test => self.test(next.attempt),
            Stage::Review => self.review(next.attempt),
            Stage::Complete => self.complete(next.attempt).map(|()| super::task::StepOutcome::Passed),
        };
        if let Err(error) = &step
            && error.is_interruption()
            && !self.events[known..].iter().any(Event::is_interruption)
        {
            // The first error is the one to report. If this cannot be recorded either, the step is repeated anyway.
            let _ = self.record_interruption(next, (&error.reason(), None), Expense::default());
        }
        step
    }

    /// Records that the step was interrupted, without changing files. `violation` is what its child did without
    /// permission.
    pub(super) fn record_interruption(
        &mut self,
        next: Resume,
        (why, violation): (&str, Option<&str>),
        expense: Expense,
    ) -> Result<(), PipelineError> {
        let mut entry = self.entry(Status::ImplementFail, next.attempt);
        entry.body = violation.map_or_else(Body::default, |violation| Body::new(FAILED, violation));
        entry.trailers = expense.trailers();
        mark_interrupted(&mut entry, why);
        let event = self.recorder.record(entry, self.recorder.tree())?;
        self.recorded(event, Some(&describe_interruption(why, violation)), expense);
        Ok(())
    }

    /// Records that an earlier process ended during a step. An implement step is marked by a ref and was recorded
    /// before this. The other steps have only a [`StepStatus`], or turns without a following step if a machine was lost
    /// and only its pushed commits are left.
    pub(super) fn record_lost_step(&mut self) -> Result<(), PipelineError> {
        let next = Resume::after(&self.events);
        let is_cut = self.events.last().is_some_and(|last| last.status() == Status::Turn);
        let left = StepStatus::find_left(self.recorder.repository(), self.recorder.run(), &self.task.id);
        let is_left = |left: &StepStatus| {
            left.attempt == next.attempt && next.stage != Stage::Implement && left.step == next.stage.as_str()
        };
        if !is_cut && !left.as_ref().is_some_and(is_left) {
            return Ok(());
        }
        let why = format!("the run ended during the {} step", next.stage.as_str());
        self.record_interruption(next, (&why, None), Expense::default())
    }

    /// Refuses a task that was interrupted too often in a row, unless the user asked to retry it.
    pub(super) fn refuse_repeated_interruptions(&self) -> Result<(), PipelineError> {
        match PipelineError::interrupted_too_often(&self.task.id, &self.events) {
            Some(error) if !self.is_retried => Err(error),
            _ => Ok(()),
        }
    }
}
