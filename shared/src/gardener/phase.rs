//! The tests of a phase: they run when its last leaf is done, and are written down under its own id.

use crate::{
    agent::limits::Spent,
    event::EventKind,
    history::{Event, State},
    message::{Status, Wording},
    name::Attempt,
    pipeline::{PipelineError, TaskContext, TaskEnd},
    plan::{Plan, Task, TestCommand},
    progress::Progress,
    record::{RunRecorder, TaskEvent},
};

/// The phase whose tests are due: all its leaves are done and there to be tested together, and its tests have not passed
/// since. Inner ones come first.
pub(super) fn find_due<'a>(plan: &'a Plan, progress: &Progress<'_>) -> Option<&'a Task> {
    let is_there = |leaf: &Task| {
        let standing = progress.find(&leaf.id);
        standing.is_some_and(|standing| standing.state == State::Skipped || standing.is_landed())
    };
    let is_due = |task: &&Task| {
        let is_testing = progress.find(&task.id).is_some_and(|standing| standing.state == State::Testing);
        !task.is_leaf() && is_testing && plan.leaves_of(&task.id).all(is_there)
    };
    plan.tasks.iter().rev().find(is_due)
}

/// The commands that a phase has of its own.
pub(super) fn commands(phase: &Task) -> Vec<TestCommand> {
    phase.own_tests().cloned().collect()
}

/// Runs them, and writes down what came of it.
pub(super) fn test(
    context: &mut TaskContext<'_>,
    recorder: &mut RunRecorder<'_>,
    phase: &Task,
    written: &mut Vec<Event>,
) -> Result<TaskEnd, PipelineError> {
    let commands = commands(phase);
    let attempt = Attempt(0);
    let by = commands.first().map(|test| test.command.clone()).unwrap_or_default();
    context.tell(&phase.id, EventKind::StepBegins { name: phase.name.clone(), attempt, step: "test", by });
    let log = format!("{}/{}_test_{}.log", context.run.options.log_dir, phase.id, context.stamp());
    let result = context.test_phase(recorder, (phase, &commands), &log)?;
    let status = if result.is_passed { Status::TestPass } else { Status::TestFail };
    let mut entry = TaskEvent::new(phase.id.clone(), status, Wording { name: &phase.name, attempt, max: 1 });
    entry.body = result.body;
    entry.trailers = result.trailers;
    let event = recorder.record(entry, recorder.tree())?;
    let commit = event.commit;
    written.push(event);
    context.tell(
        &phase.id,
        EventKind::Recorded { status, commit, why: result.why, spent: Spent::default(), files: None },
    );
    Ok(if result.is_passed { TaskEnd::Complete } else { TaskEnd::Failed })
}
