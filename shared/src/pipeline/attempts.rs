//! Where a task continues, decided from its commits alone, and what interrupts an attempt.
//!
//! Attempts that end through no fault of the agent are recorded, do not count against the limit, and the interrupted step is
//! taken again under the same number.

use crate::{
    history::{Event, INTERRUPTED, Interruptions},
    message::{Body, Key, Status, plain_text},
    name::{Attempt, TaskId},
    pipeline::{Expense, PipelineError, TaskRun},
    record::{StepStatus, TaskEvent},
};

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

/// A reason is one line of a trailer, so it is cut. Bytes, because that is how values are limited.
const LONGEST_REASON: usize = 500;

/// Makes `entry` tell that the attempt was interrupted.
pub fn mark_interrupted(entry: &mut TaskEvent<'_>, why: &str) {
    let line = one_line(why);
    // A reason that cannot be written is still a reason: the attempt must not count because of it.
    if entry.trailers.set(Key::Interrupted, &line).is_err() {
        let _ = entry.trailers.set(Key::Interrupted, "unknown");
    }
    entry.body = Body::new(INTERRUPTED, why).followed_by(std::mem::take(&mut entry.body));
}

/// The reason as the value of a trailer.
fn one_line(why: &str) -> String {
    let words: Vec<String> = plain_text(why).split_whitespace().map(str::to_owned).collect();
    let mut line = words.join(" ");
    if line.len() > LONGEST_REASON {
        let end = (0..=LONGEST_REASON).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
    }
    let line = line.trim_end();
    if line.is_empty() { "unknown".to_owned() } else { line.to_owned() }
}

impl PipelineError {
    /// Whether it interrupts an attempt that has begun, and is recorded even if the agent has left nothing and spent
    /// nothing. The other errors say that something cannot be used, or that the user's own budget is spent; they are
    /// recorded only with what was left or spent.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Git(_)
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

    /// What is recorded as the reason of an interruption.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Stopped { signal: Some(2) } => "stopped by SIGINT".into(),
            Self::Stopped { signal: Some(15) } => "stopped by SIGTERM".into(),
            Self::Stopped { signal: Some(signal) } => format!("stopped by signal {signal}"),
            Self::Stopped { signal: None } => "stopped by the user".into(),
            error => error.to_string(),
        }
    }

    /// The same error, or the one that asks for a person if the task has been interrupted too often in a row. A signal
    /// stays what it is: its sender waits for its exit code.
    #[must_use]
    pub fn after(self, task: &TaskId, events: &[Event]) -> Self {
        match self {
            Self::Stopped { .. } | Self::Interrupted { .. } => self,
            error if error.is_interruption() => Self::too_often(task, events).unwrap_or(error),
            error => error,
        }
    }

    /// What is wrong with a task that was interrupted too often in a row.
    fn too_often(task: &TaskId, events: &[Event]) -> Option<Self> {
        let Interruptions { count, why } = Interruptions::of(events);
        let why = why.filter(|_| count >= Interruptions::MOST)?;
        Some(Self::Interrupted { task: task.clone(), count, why })
    }
}

impl TaskRun<'_, '_, '_> {
    /// Takes a step. If an error of ours or a signal ends it, that is recorded before the error is handed on.
    pub(super) fn take_step(&mut self, next: Resume) -> Result<super::task::StepOutcome, PipelineError> {
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
            // The first error is the one to report. If this one cannot be written either, the step is simply taken again.
            let _ = self.keep_interruption(next, &error.reason(), Expense::default());
        }
        step
    }

    /// Records that the step was interrupted, on an unchanged tree.
    pub(super) fn keep_interruption(
        &mut self,
        next: Resume,
        why: &str,
        expense: Expense,
    ) -> Result<(), PipelineError> {
        let mut entry = self.entry(Status::ImplementFail, next.attempt);
        entry.trailers = expense.trailers();
        mark_interrupted(&mut entry, why);
        let event = self.recorder.record(entry, self.recorder.tree())?;
        self.recorded(event, Some(&format!("interrupted: {why}")), expense);
        Ok(())
    }

    /// Records that an earlier process ended in the middle of a step. An agent's step is marked by a ref, and was recorded
    /// before we came here; these have nothing but a note, or turns whose attempt never ended (a machine that was lost,
    /// of which only the pushed commits are left).
    pub(super) fn note_lost_step(&mut self) -> Result<(), PipelineError> {
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
        self.keep_interruption(next, &why, Expense::default())
    }

    /// Refuses to go on with a task that was interrupted too often in a row, unless the user asks for it.
    pub(super) fn refuse_row(&self) -> Result<(), PipelineError> {
        match PipelineError::too_often(&self.task.id, &self.events) {
            Some(error) if !self.is_retried => Err(error),
            _ => Ok(()),
        }
    }
}
