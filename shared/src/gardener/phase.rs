//! The tests of a phase, which run once its tasks are done; and which tests may fail in the test step of a task: those
//! that failed before the run, and those that an earlier task wrote to fail until later ones make them pass.

use crate::{
    agent::limits::Spent,
    event::{EventKind, StepChanges},
    gardener::{Gardener, GardenerError},
    history::{Event, State},
    message::{Key, Status, Step, Wording},
    name::{Attempt, Oid, TaskId},
    pipeline::{CommandCounts, KnownRed, PipelineError, TO_BE_MENDED, TaskContext, TaskEnd, TestsBefore},
    plan::{Plan, Task, TestCommand},
    progress::{Boxes, Progress},
    record::{RunRecorder, TaskEvent},
};

/// A phase whose tests are due: all its tasks are done and have landed, and its tests have not passed since. Inner
/// phases come first.
pub fn find_due_phase<'a>(plan: &'a Plan, progress: &Progress<'_>) -> Option<&'a Task> {
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

/// The phase's own test commands.
pub(super) fn commands(phase: &Task) -> Vec<TestCommand> {
    phase.own_tests().cloned().collect()
}

/// Runs the phase's tests, and records the result.
pub(super) fn test(
    (context, recorder): (&mut TaskContext<'_>, &mut RunRecorder<'_>),
    (phase, mut before): (&Task, TestsBefore),
    written: &mut Vec<Event>,
) -> Result<TaskEnd, PipelineError> {
    let commands = commands(phase);
    let attempt = Attempt(0);
    let by = commands.first().map(|test| test.command.clone()).unwrap_or_default();
    let name = phase.name.clone();
    context.emit(&phase.id, EventKind::StepBegins { name, attempt, step: "test", by, is_phase: true });
    let log = context.create_log(&phase.id, Step::Test, attempt)?;
    let result = context.test_phase(recorder, (phase, &commands), &mut before, &log)?;
    let status = if result.is_passed { Status::TestPass } else { Status::TestFail };
    let mut entry = TaskEvent::new(phase.id.clone(), status, Wording { name: &phase.name, attempt, max: 1 });
    entry.body = result.body;
    entry.trailers = result.trailers;
    let event = recorder.record(entry, recorder.tree())?;
    let commit = event.commit;
    written.push(event);
    context.emit(
        &phase.id,
        EventKind::Recorded {
            status,
            commit,
            why: result.why,
            spent: Spent::default(),
            changes: StepChanges::default(),
        },
    );
    Ok(if result.is_passed { TaskEnd::Complete } else { TaskEnd::Failed })
}

impl Gardener<'_> {
    /// What the tests of a phase are compared with: those before its first task.
    pub(super) fn tests_before_phase(&self, phase: &Task) -> Result<TestsBefore, GardenerError> {
        let tasks: Vec<&Task> = self.plan.leaves_of(&phase.id).collect();
        let histories = tasks.iter().filter_map(|task| self.run.find(&task.id));
        let first = histories.flat_map(|history| &history.events).min_by_key(|event| event.time);
        let first: Vec<Oid> = first.iter().map(|event| event.commit).collect();
        let first = self.repository.load_commits(&first)?.pop();
        let protection = &self.tools.context.options.protection;
        Ok(TestsBefore {
            counts: CommandCounts::before(self.repository, &self.run, None)?,
            base: first.and_then(|commit| commit.parents().next()),
            allows_fewer: tasks
                .into_iter()
                .chain([phase])
                .any(|task| protection.allows_fewer_tests(&task.allow)),
        })
    }

    /// The tests that are known to fail when this task starts. The last of the tasks that have to make a test pass is
    /// not excused.
    pub(super) fn known_red(&self, task: &Task) -> KnownRed {
        let tests_first = self.plan.tests_first();
        if tests_first.is_empty() {
            return self.red_before.clone();
        }
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        let is_done = |id: &TaskId| progress.find(id).is_some_and(|standing| standing.state.is_done());
        let mut known = self.red_before.clone();
        for (red, menders) in tests_first.iter().filter(|(red, _)| *red != task.id) {
            let is_open = menders.is_empty() || menders.iter().any(|id| *id != task.id && !is_done(id));
            let is_beside = menders.contains(&task.id)
                || self.plan.find(red).is_some_and(|red| red.parent == task.parent);
            let own = self.to_be_mended(red).filter(|own| is_open && (is_beside || !own.is_unread()));
            known = own.map_or(known.clone(), |own| known.join(&own));
        }
        if task.red { known.join(&KnownRed::none_of(self.passed_before())) } else { known }
    }

    /// Refuses a task that has to write failing tests if there is no test command.
    pub(super) fn refuse_red_without_test(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let is_untested = |task: &&&Task| task.red && self.tools.context.options.tests_of(task).is_empty();
        match wanted.iter().find(is_untested) {
            Some(task) => Err(GardenerError::RedWithoutTest(task.id.clone())),
            None => Ok(()),
        }
    }

    /// The tests that a task wrote to fail, as recorded in its test commit.
    fn to_be_mended(&self, red: &TaskId) -> Option<KnownRed> {
        let history = self.run.find(red)?;
        let passed = history.events.iter().rfind(|event| event.status() == Status::TestPass)?;
        KnownRed::read(&passed.body(), TO_BE_MENDED)
    }

    /// How many tests passed in the newest passed test step.
    fn passed_before(&self) -> u64 {
        let events = self.run.tasks.iter().flat_map(|task| &task.events);
        let passes = events.filter(|event| event.status() == Status::TestPass);
        let newest = passes.max_by_key(|event| event.time);
        newest.and_then(|event| event.trailers.get(Key::TestPassed)?.parse().ok()).unwrap_or(0)
    }
}
