//! Runs one task from its current state to its end. The result of each step is committed before the next step begins.

use std::time::Duration;

use super::{
    Expense, FinishedCall, IgnoredFiles, KnownRed, NextStep, OtherSpending, PipelineError, Stage,
    TaskBackground, TaskContext, TestsBefore, feedback,
};
use crate::{
    agent::{
        CallOutcome,
        limits::{Budget, BudgetLevel, Overrun, Spent},
        redact::Redactor,
    },
    event::{EventKind, StepChanges, StepReason},
    history::{Event, FAILED, REFUSED_BY_HOOK, WorkBase},
    message::{Body, Status, Step, SubjectParts},
    name::{Attempt, TaskId},
    plan::Task,
    record::{RunRecorder, StepStatus, TaskEvent},
};

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// It is complete.
    Complete,
    /// Its attempts are used up.
    Failed,
}

/// A task that is being run.
pub struct TaskRun<'s, 'w, 'r> {
    /// The context of the task.
    pub context: &'s mut TaskContext<'w>,
    /// Writes the commits.
    pub recorder: &'s mut RunRecorder<'r>,
    /// The task.
    pub task: &'s Task,
    /// Events of earlier attempts that no longer count, for example from before a reset.
    pub earlier: Vec<Event>,
    /// Events from which attempts are counted; new ones are added.
    pub events: Vec<Event>,
    /// The state that the task's work is compared with.
    pub base: WorkBase,
    /// What prompts say about the task beside its own text.
    pub background: TaskBackground,
    /// The work of failed tasks that the task builds on.
    pub rejected: Vec<RejectedWork>,
    /// Tests that are allowed to fail.
    pub known_red: KnownRed,
    /// How many tests ran before the task.
    pub tests_before: TestsBefore,
    /// What the rest of the run has spent.
    pub others: OtherSpending,
    /// Whether the user asked to retry the task although it was interrupted too often.
    pub is_retried: bool,
}

/// Files from a task that has failed. In one checkout they stay, so that no work is lost.
#[derive(Debug, Clone)]
pub struct RejectedWork {
    /// The task.
    pub task: TaskId,
    /// The paths that it has changed.
    pub paths: Vec<String>,
}

/// The result of a step.
pub(super) enum StepOutcome {
    Passed,
    Failed,
}

impl TaskRun<'_, '_, '_> {
    /// Runs steps until the task is complete or has no attempts left.
    pub fn run(&mut self) -> Result<TaskEnd, PipelineError> {
        let end = self.run_steps();
        StepStatus::remove(self.recorder.repository(), self.recorder.run_branch(), &self.task.id);
        end
    }

    fn run_steps(&mut self) -> Result<TaskEnd, PipelineError> {
        if let Some(ignored) = &self.context.ignored {
            let log_dir = &self.context.run.options.log_dir;
            ignored.begin(self.recorder.repository(), self.recorder.tree(), log_dir)?;
        }
        self.context.other_test_repos().for_each(|other_repo| other_repo.ignored.continue_from_last_look());
        self.record_lost_step()?;
        self.refuse_repeated_interruptions()?;
        let mut next = self.find_next_step()?;
        loop {
            if next.attempt.0 >= self.context.run.options.max_retries && next.stage == Stage::Implement {
                let body = self.last_reason().map_or_else(Body::default, |why| Body::new(FAILED, &why));
                self.record(Status::Failed, next.attempt, body, None)?;
                return Ok(TaskEnd::Failed);
            }
            if self.context.run.cancel.is_cancelled() {
                return Err(PipelineError::stopped(&self.context.run.cancel));
            }
            let step = self.run_step(next)?;
            if next.stage == Stage::Complete {
                let of_other_repos = self.context.other_test_repos().map(|other_repo| &other_repo.ignored);
                self.context.ignored.iter().chain(of_other_repos).for_each(IgnoredFiles::accept);
                return Ok(TaskEnd::Complete);
            }
            next = match step {
                StepOutcome::Passed => NextStep { stage: after(next.stage), ..next },
                StepOutcome::Failed => NextStep { attempt: next.attempt.next(), stage: Stage::Implement },
            };
        }
    }

    /// Where the task continues. What has passed says nothing about files that were committed since then, so the attempt
    /// then begins again.
    fn find_next_step(&mut self) -> Result<NextStep, PipelineError> {
        let next = NextStep::after(&self.events);
        let is_result = |event: &&Event| event.status() != Status::Turn && !event.is_interruption();
        let Some(passed) = self.events.iter().rfind(is_result).filter(|_| next.stage != Stage::Implement)
        else {
            return Ok(next);
        };
        if self.recorder.repository().tree_of(passed.commit)? == self.recorder.tree() {
            return Ok(next);
        }
        let words = "files were committed after its last step, so its attempt begins again";
        self.context.emit(&self.task.id, EventKind::step_note(words));
        Ok(NextStep { stage: Stage::Implement, ..next })
    }

    /// Runs one step. If an error of ours or a signal ends it, the interruption is recorded before the error is
    /// returned.
    fn run_step(&mut self, next: NextStep) -> Result<StepOutcome, PipelineError> {
        let known = self.events.len();
        let step = match next.stage {
            // It records its own interruptions, together with what the agent had changed. If it cannot, its mark stays, by
            // which the attempt is recorded later.
            Stage::Implement => return self.implement(next.attempt),
            Stage::Test => self.test(next.attempt),
            Stage::Review => self.review(next.attempt),
            Stage::Complete => self.complete(next.attempt).map(|()| StepOutcome::Passed),
        };
        if let Err(error) = &step
            && error.is_interruption()
            && !self.events[known..].iter().any(Event::is_interruption)
        {
            // The first error is the one to report. If this cannot be recorded either, the step is repeated anyway.
            let _ = self.record_interruption(next.attempt, &error.reason(), None, Expense::default());
        }
        step
    }

    /// The reason of the last failed attempt, in one line.
    fn last_reason(&self) -> Option<String> {
        let last = self.events.iter().rfind(|event| event.is_failure() && !event.is_interruption())?;
        let failure_text = explain_failure(last);
        Some(match last.status().step() {
            Step::Review if last.lacks_verdict() => failure_text,
            Step::Review => format!("the review rejected it: {failure_text}"),
            Step::Test => format!("the tests failed: {failure_text}"),
            _ => failure_text,
        })
    }

    /// How much time an agent has, if time is limited. `Err` if a budget is used up, including what the current step
    /// has spent.
    pub(super) fn allowance(&mut self, expense: &Expense) -> Result<Option<Duration>, Overrun> {
        let (task, run) = self.spent(expense);
        let budgets = &self.context.run.options.budgets;
        budgets.task.check(BudgetLevel::Task, &task)?;
        budgets.run.check(BudgetLevel::Run, &run)?;
        Ok([budgets.task.time_left(&task), budgets.run.time_left(&run)].into_iter().flatten().min())
    }

    /// What the task and the whole run have spent.
    fn spent(&mut self, expense: &Expense) -> (Spent, Spent) {
        let task = self.events.iter().collect::<Spent>() + expense.spent();
        (task, task + self.others.spent())
    }

    /// Replaces the result of a call that failed because the run was cancelled or its time was up: that is not a
    /// failure of the agent.
    pub(super) fn cut_short(&mut self, called: FinishedCall) -> FinishedCall {
        if !matches!(&called.result, Ok(reply) if !matches!(reply.outcome, CallOutcome::Success { .. })) {
            return called;
        }
        if self.context.run.cancel.is_cancelled() {
            return FinishedCall { result: Err(PipelineError::stopped(&self.context.run.cancel)), ..called };
        }
        let time = |budget: Budget| Budget { time: budget.time, ..Budget::default() };
        let (task, run) = self.spent(&called.expense);
        let budgets = &self.context.run.options.budgets;
        let checked = time(budgets.task).check(BudgetLevel::Task, &task);
        match checked.and_then(|()| time(budgets.run).check(BudgetLevel::Run, &run)) {
            Ok(()) => called,
            Err(overrun) => FinishedCall { result: Err(overrun.into()), ..called },
        }
    }

    fn record(
        &mut self,
        status: Status,
        attempt: Attempt,
        body: Body,
        why: Option<&str>,
    ) -> Result<(), PipelineError> {
        let mut entry = self.entry(status, attempt);
        entry.body = body;
        let event = self.recorder.record(entry, self.recorder.tree())?;
        self.apply_event(event, why, Expense::default());
        Ok(())
    }

    /// Adds a recorded event to the state from which the next step is decided, writes the session's checkpoint of it, and
    /// reports it.
    pub(super) fn apply_event(&mut self, event: Event, why: Option<&str>, expense: Expense) {
        self.apply_event_with_changes(event, why, expense, StepChanges::default());
    }

    /// Like [`Self::apply_event`], with what the step changed.
    pub(super) fn apply_event_with_changes(
        &mut self,
        event: Event,
        why: Option<&str>,
        expense: Expense,
        changes: StepChanges,
    ) {
        let (status, commit) = (event.status(), event.commit);
        let why = why.map(|why| StepReason::of(&event, why));
        let checkpoint = self.context.checkpoints.step(self.recorder, &event);
        let kind = EventKind::Recorded { status, commit, why, spent: expense.spent(), changes };
        self.context.emit(&self.task.id, kind);
        checkpoint.into_iter().for_each(|event| self.context.emit(&self.task.id, event));
        self.events.push(event);
    }

    pub(super) fn entry(&self, status: Status, attempt: Attempt) -> TaskEvent<'static> {
        let wording =
            SubjectParts { name: &self.task.name, attempt, max: self.context.run.options.max_retries };
        TaskEvent::new(self.task.id.clone(), status, wording)
    }

    /// Reports that a step begins. `by` is its program or command, which may contain a secret.
    pub(super) fn announce(&mut self, step: Step, attempt: Attempt, by: &str, log: &str) {
        let by = Redactor::redact(&self.context.run.secrets, by);
        let status = StepStatus {
            pid: std::process::id(),
            step,
            attempt,
            by: by.clone(),
            since: (self.context.run.clock)(),
            log: log.to_owned(),
        };
        status.post(self.recorder.repository(), self.recorder.run_branch(), &self.task.id);
        let begins =
            EventKind::StepBegins { name: self.task.name.clone(), attempt, step, by, is_phase: false };
        self.context.emit(&self.task.id, begins);
    }

    /// The failures of all earlier attempts of the run, also of those that no longer count.
    pub(super) fn feedback(&self) -> String {
        let home = &self.context.run.home;
        feedback(self.earlier.iter().chain(&self.events), |log| {
            let log = home.join(log);
            log.is_file().then(|| log.display().to_string())
        })
    }

    /// Creates the log of a step, and returns its path.
    pub(super) fn create_log(&self, step: Step, attempt: Attempt) -> Result<String, PipelineError> {
        self.context.create_log(&self.task.id, step, attempt)
    }
}

fn after(stage: Stage) -> Stage {
    match stage {
        Stage::Implement => Stage::Test,
        Stage::Test => Stage::Review,
        Stage::Review | Stage::Complete => Stage::Complete,
    }
}

/// Why a step failed according to its commit, in one line.
pub(super) fn explain_failure(event: &Event) -> String {
    let failure_text = event.body().sections.into_iter().find(|section| !section.text.is_empty());
    match failure_text {
        Some(section) if section.heading == REFUSED_BY_HOOK => describe_refusal(&section.text),
        failure_text => last_line(&failure_text.map(|section| section.text).unwrap_or_default()),
    }
}

/// Why the pre-commit hook refused a change, in one line.
pub(super) fn describe_refusal(failure_text: &str) -> String {
    match last_line(failure_text).as_str() {
        NO_REASON => "the pre-commit hook refused the change and gave no reason".to_owned(),
        line => format!("the pre-commit hook refused the change: {line}"),
    }
}

/// What a program says that prints nothing.
pub(super) const NO_REASON: &str = "it gave no reason";

pub(super) fn last_line(text: &str) -> String {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(NO_REASON).trim().to_owned()
}
