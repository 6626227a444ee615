//! What is known about tests before a task or a phase starts: how many ran, and which may fail because they failed before
//! the run or were written to fail first. An unfinished task may have left changes in the checkout. A task that comes after
//! it must not be blamed for tests that fail because of them, so the tests run before that task starts. Its reviewers are
//! told which files come from a task that was rejected.

use super::{
    Baseline, BaselineGuard, Gardener, GardenerError, LeftoverWork, Probe, create_baseline_log, has_passed,
    task_thread::{RunResources, works_in},
};
use crate::{
    event::EventKind,
    git::{OtherWriters, TreeChange},
    history::{CommitSource, Run, RunScope, State, TaskHistory},
    message::{Key, Status},
    name::{Attempt, Oid, TaskId},
    pipeline::{
        CommandCounts, FilesBeforeTest, KnownRed, OtherRepo, PipelineError, RejectedWork, TaskContext,
        TestsBefore,
    },
    plan::Task,
    progress::{PlanMarks, Progress},
    record::{RunRecorder, UnfinishedAttempt, log_time},
};

impl Gardener<'_> {
    /// An unfinished task whose changes are in the checkout, if it is not known that the tests pass with them. Tasks with
    /// their own test commands are not asked about, because these may fail until the task is done.
    pub(super) fn find_leftovers(&self, task: &Task) -> Option<TaskId> {
        let options = self.resources.context.options;
        let is_tool = |command: &str| {
            self.resources.sections.iter().any(|section| section.find_tool(command).is_some())
        };
        let has_test = options.test_command.as_deref().is_some_and(|command| !is_tool(command));
        if !has_test || !task.test_commands.is_empty() || !task.repos.is_empty() {
            return None;
        }
        let checkout = self.checkout.as_ref().filter(|_| self.resources.context.playback.is_none())?;
        let is_unfinished = |history: &&TaskHistory| {
            let is_leaf = self.plan.find(&history.id).is_none_or(Task::is_leaf);
            history.id != task.id && is_leaf && !history.state().is_done() && history.state.commit.is_some()
        };
        let found = self.run.tasks.iter().rfind(is_unfinished)?;
        let has_passed = has_passed(&checkout.repository, checkout.tip.head, self.resources.gates_are_tests);
        (!has_passed).then(|| found.id.clone())
    }

    /// The work of other tasks that have failed, as far as it is in the checkout.
    pub(super) fn find_rejected(&self, task: &Task) -> Result<Vec<RejectedWork>, GardenerError> {
        let Some(checkout) = &self.checkout else { return Ok(Vec::new()) };
        let has_failed = |history: &&TaskHistory| history.id != task.id && history.state() == State::Failed;
        let failed: Vec<&TaskId> =
            self.run.tasks.iter().filter(has_failed).map(|history| &history.id).collect();
        let mut rejected = Vec::new();
        for id in &failed {
            let remains = LeftoverWork::find(&checkout.repository, &self.run, id, checkout.tip.head)?;
            let paths: Vec<String> = remains.changes.iter().map(TreeChange::shown).collect();
            rejected.extend((!paths.is_empty()).then(|| RejectedWork { task: (*id).clone(), paths }));
        }
        let is_there = |other: &&OtherRepo| works_in(task, &other.name) && !failed.is_empty();
        for other in self.other_repos.iter().filter(is_there) {
            let scope = RunScope { branch: other.identity.run_branch.clone(), tip: Some(other.tip.head) };
            let run = Run::scan(&other.repository, scope, CommitSource::Fresh)?;
            for id in &failed {
                let remains = LeftoverWork::find(&other.repository, &run, id, other.tip.head)?;
                let shown = |change: &TreeChange| format!("{}:{}", other.name, change.shown());
                let paths: Vec<String> = remains.changes.iter().map(shown).collect();
                rejected.extend((!paths.is_empty()).then(|| RejectedWork { task: (*id).clone(), paths }));
            }
        }
        Ok(rejected)
    }

    /// What the tests of a phase are compared with: those before its first task.
    pub(super) fn tests_before_phase(&self, phase: &Task) -> Result<TestsBefore, GardenerError> {
        let tasks: Vec<&Task> = self.plan.leaves_of(&phase.id).collect();
        let histories = tasks.iter().filter_map(|task| self.run.find(&task.id));
        let first = histories.flat_map(|history| &history.events).min_by_key(|event| event.time);
        let first: Vec<Oid> = first.iter().map(|event| event.commit).collect();
        let first = self.repository.load_commits(&first)?.pop();
        let protection = &self.resources.context.options.protection;
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
            return self.known_red.clone();
        }
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        let is_done = |id: &TaskId| progress.find(id).is_some_and(|node| node.state.is_done());
        let mut known = self.known_red.clone();
        for (red, fixers) in tests_first.iter().filter(|(red, _)| *red != task.id) {
            let is_open = fixers.is_empty() || fixers.iter().any(|id| *id != task.id && !is_done(id));
            let is_beside =
                fixers.contains(&task.id) || self.plan.find(red).is_some_and(|red| red.parent == task.parent);
            let own =
                KnownRed::of_task(&self.run, red).filter(|own| is_open && (is_beside || !own.is_unread()));
            known = own.map_or(known.clone(), |own| known.join(&own));
        }
        if task.red { known.join(&KnownRed::none_of(self.passed_before())) } else { known }
    }

    /// How many tests passed in the newest passed test step.
    fn passed_before(&self) -> u64 {
        let events = self.run.tasks.iter().flat_map(|task| &task.events);
        let passes = events.filter(|event| event.status() == Status::TestPass);
        let newest = passes.max_by_key(|event| event.time);
        newest.and_then(|event| event.trailers.get(Key::TestPassed)?.parse().ok()).unwrap_or(0)
    }
}

impl RunResources<'_> {
    /// Runs the test command with what `other` has left. If it fails, `task` cannot start; with `allow-red`, the tests that
    /// fail become known failures.
    pub(super) fn test_leftovers(
        &self,
        context: &mut TaskContext<'_>,
        recorder: &RunRecorder<'_>,
        task: &TaskId,
        other: TaskId,
        known_red: KnownRed,
    ) -> Result<KnownRed, GardenerError> {
        let options = self.context.options;
        let Some(command) = options.test_command.as_deref() else { return Ok(known_red) };
        context.emit(task, EventKind::note(format!("{task}: running the tests once before the task starts")));
        let mut clean = context.clean_checkouts.take();
        let place = clean.as_mut().map(|places| places(recorder.head())).transpose();
        context.clean_checkouts = clean;
        let place = place?;
        let now = log_time((self.context.clock)());
        let log = create_baseline_log(&self.context.home, &options.log_dir, &now)?;
        let dir = place.as_ref().map_or(context.dir, |place| &place.path);
        let environment = context.environment.clone();
        let probe =
            Probe::after_agents(&self.context, command, dir, recorder.repository(), environment, &log);
        let (repository, users) = (recorder.repository(), self.context.users_paths(recorder));
        let before = FilesBeforeTest::read(repository, recorder.tree(), &users, OtherWriters::Alone)?;
        let guard = BaselineGuard::between_tasks(recorder)?;
        let ended = probe.run(&mut context.orphan_lock);
        let mark = UnfinishedAttempt::name_of(recorder.branch(), task, Attempt(0));
        // The code of a rejected task must not change what the next one is tested with.
        let changed = before.restore(recorder, OtherWriters::Alone, &mark);
        if let Some(words) = changed.map_err(PipelineError::Unrestored)?.in_one_line() {
            context.emit(task, EventKind::step_note(format!("{words}; they were restored")));
        }
        let baseline = guard.end(ended)?;
        if let Some(words) = baseline.log_warning() {
            context.emit(task, EventKind::step_note(words));
        }
        match baseline {
            Baseline::Green(_) | Baseline::NoTests(_) => Ok(known_red),
            Baseline::Red { observed, .. } if known_red.excuses(&observed) => Ok(known_red),
            Baseline::Red { observed, .. } if options.allow_red => {
                Ok(known_red.join(&KnownRed::of(&observed)))
            }
            Baseline::Red { why, .. } | Baseline::Trespass(why) => {
                Err(GardenerError::RedLeftovers { task: task.clone(), other, why, log })
            }
        }
    }
}
