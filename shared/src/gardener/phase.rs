//! The tests of a phase, which run once its tasks are done.

use crate::{
    agent::{limits::Spent, redact::Redactor},
    event::{EventKind, StepChanges, StepReason},
    history::{Event, State},
    message::{Status, Step, SubjectParts},
    name::Attempt,
    pipeline::{PipelineError, TaskContext, TaskEnd, TestsBefore},
    plan::{Plan, Task, TestCommand},
    progress::Progress,
    record::{RunRecorder, TaskEvent},
};

/// A phase whose tests are due: all its tasks are done and have landed, and its tests have not passed since. Inner
/// phases come first.
pub fn find_due_phase<'a>(plan: &'a Plan, progress: &Progress<'_>) -> Option<&'a Task> {
    let is_there = |leaf: &Task| {
        let node = progress.find(&leaf.id);
        node.is_some_and(|node| node.state == State::Skipped || node.is_landed())
    };
    let is_due = |task: &&Task| {
        let is_testing = progress.find(&task.id).is_some_and(|node| node.state == State::Testing);
        !task.is_leaf() && is_testing && plan.leaves_of(&task.id).all(is_there)
    };
    plan.tasks.iter().rev().find(is_due)
}

/// The phase's own test commands.
pub(super) fn commands(phase: &Task) -> Vec<TestCommand> {
    phase.own_tests().cloned().collect()
}

/// Runs the phase's tests, and records the result.
pub(super) fn test(
    context: &mut TaskContext<'_>,
    recorder: &mut RunRecorder<'_>,
    phase: &Task,
    mut before: TestsBefore,
    written: &mut Vec<Event>,
) -> Result<TaskEnd, PipelineError> {
    let commands = commands(phase);
    let attempt = Attempt(0);
    let by = commands.first().map_or("", |test| &test.command);
    let by = Redactor::redact(&context.run.secrets, by);
    let name = phase.name.clone();
    context.emit(&phase.id, EventKind::StepBegins { name, attempt, step: Step::Test, by, is_phase: true });
    let log = context.create_log(&phase.id, Step::Test, attempt)?;
    let result = context.test_phase(recorder, phase, &commands, &mut before, &log)?;
    let status = if result.is_passed { Status::TestPass } else { Status::TestFail };
    let mut entry =
        TaskEvent::new(phase.id.clone(), status, SubjectParts { name: &phase.name, attempt, max: 1 });
    entry.body = result.body;
    entry.trailers = result.trailers;
    let event = recorder.record(entry, recorder.tree())?;
    let (commit, why) = (event.commit, result.why.map(|why| StepReason::of(&event, &why)));
    written.push(event);
    context.emit(
        &phase.id,
        EventKind::Recorded { status, commit, why, spent: Spent::default(), changes: StepChanges::default() },
    );
    Ok(if result.is_passed { TaskEnd::Complete } else { TaskEnd::Failed })
}
