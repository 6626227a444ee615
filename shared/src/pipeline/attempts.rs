//! Decides from the commits of a task where it continues, and records interrupted attempts.
//!
//! An attempt that ends through no fault of the agent is recorded as interrupted. It does not count against the limit
//! of attempts, and the interrupted step is repeated with the same attempt number.

use crate::{
    history::{Event, FAILED, INTERRUPTED},
    message::{Body, Key, Status, Step, plain_text},
    name::Attempt,
    pipeline::{Expense, PipelineError, TaskRun},
    record::{StepStatus, TaskEvent},
};

/// The four steps of an attempt. [`Step`] has more, so a `match` of this type needs no arm for the others.
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
    /// The step that its commits and its [`StepStatus`] name.
    #[must_use]
    pub fn step(self) -> Step {
        match self {
            Self::Implement => Step::Implement,
            Self::Test => Step::Test,
            Self::Review => Step::Review,
            Self::Complete => Step::Complete,
        }
    }
}

/// Where a task continues: a step, and the attempt that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextStep {
    /// The attempt number.
    pub attempt: Attempt,
    /// The step.
    pub stage: Stage,
}

impl NextStep {
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

/// The reason of an interruption in an event, with what its child did without permission.
pub(super) fn describe_interruption(why: &str, violation: Option<&str>) -> String {
    let violation = violation.map(|violation| format!("; {violation}")).unwrap_or_default();
    format!("{why}{violation}")
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

impl TaskRun<'_, '_, '_> {
    /// Records that the step was interrupted, without changing files. An interruption has no status of its own: the
    /// trailer that [`mark_interrupted`] sets tells it from a failed attempt. `violation` is what the step's child did
    /// without permission.
    pub(super) fn record_interruption(
        &mut self,
        attempt: Attempt,
        why: &str,
        violation: Option<&str>,
        expense: Expense,
    ) -> Result<(), PipelineError> {
        let mut entry = self.entry(Status::ImplementFail, attempt);
        entry.body = violation.map_or_else(Body::default, |violation| Body::new(FAILED, violation));
        entry.trailers = expense.trailers();
        mark_interrupted(&mut entry, why);
        let event = self.recorder.record(entry, self.recorder.tree())?;
        self.apply_event(event, Some(&describe_interruption(why, violation)), expense);
        Ok(())
    }

    /// Records that an earlier process ended during a step. An implement step is marked by a ref and was recorded
    /// before this. The other steps have only a [`StepStatus`], or turns without a following step if a machine was lost
    /// and only its pushed commits are left.
    pub(super) fn record_lost_step(&mut self) -> Result<(), PipelineError> {
        let next = NextStep::after(&self.events);
        let is_cut = self.events.last().is_some_and(|last| last.status() == Status::Turn);
        let left =
            StepStatus::find_left(self.recorder.repository(), self.recorder.run_branch(), &self.task.id);
        let is_left = |left: &StepStatus| {
            left.attempt == next.attempt && next.stage != Stage::Implement && left.step == next.stage.step()
        };
        if !is_cut && !left.as_ref().is_some_and(is_left) {
            return Ok(());
        }
        let why = format!("the run ended during the {} step", next.stage.step().as_str());
        self.record_interruption(next.attempt, &why, None, Expense::default())
    }

    /// Refuses a task that was interrupted too often in a row, unless the user asked to retry it.
    pub(super) fn refuse_repeated_interruptions(&self) -> Result<(), PipelineError> {
        match PipelineError::interrupted_too_often(&self.task.id, &self.events) {
            Some(error) if !self.is_retried => Err(error),
            _ => Ok(()),
        }
    }
}
