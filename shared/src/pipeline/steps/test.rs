//! The test step: all commands of a task, in order, as one result. Tests that are known to fail are not the task's fault,
//! and a task that is marked red has to fail.

use std::path::Path;

use crate::{
    agent::redact::{Redactor, Secrets},
    history::FAILED,
    message::{Body, Key, Trailers},
    name::{Attempt, Oid},
    pipeline::{
        Counts, KnownRed, Neighbours, Observed, PipelineError, TO_BE_MENDED, TaskContext, TaskRun,
        calls::call::{Redaction, file_error, refuse_survivors},
        checkout::{guard::joined, guarded, other_repo::TestedFiles},
        context::with_environment,
        read_counts,
    },
    plan::{Task, TestCommand, TestKind},
    process::{Ending, Limits, Program, Supervised, SupervisedEnd},
    record::{RunRecorder, Unfinished},
    safe_files,
};

/// What came of the tests.
#[derive(Debug)]
pub struct TestResult {
    /// Whether all commands succeeded.
    pub is_passed: bool,
    /// Why not, in one line.
    pub why: Option<String>,
    /// What could be read of the tests.
    pub observed: Observed,
    /// What is quoted.
    pub body: Body,
    /// Kinds, counts, time and log.
    pub trailers: Trailers,
}

impl TestResult {
    /// Of a task that has no test command. Nothing is run, so that there is nothing to be watched either.
    pub(in crate::pipeline) fn without_test(commands: &[TestCommand], log: &str) -> Self {
        Sum::default().result(commands, log)
    }

    /// Tests that did what they may not do have failed, whatever they said.
    #[must_use]
    pub fn but(self, trespass: Option<String>) -> Self {
        let Some(why) = trespass else { return self };
        let body = Body::new(FAILED, &why).followed_by(self.body);
        Self { is_passed: false, why: Some(why), body, ..self }
    }
}

/// How much of each stream stands in the commit.
const TAIL: usize = 1000;

impl TaskContext<'_> {
    /// The tests of a phase. They run on the run's own branch in its checkout, or on no branch beside it.
    pub fn test_phase(
        &mut self,
        recorder: &RunRecorder<'_>,
        (phase, commands): (&Task, &[TestCommand]),
        log: &str,
    ) -> Result<TestResult, PipelineError> {
        let first = Attempt(0);
        self.tidy_elsewhere(&phase.id, first)?;
        let neighbours = Neighbours::count(recorder.repository());
        let elsewhere = TestedFiles::look(self.tested_elsewhere(), neighbours.now())?;
        let guarded = guarded::begin(recorder, &self.run.config_guard, self.tested_elsewhere());
        let result = self.test(phase, commands, log, recorder.head());
        let is_in_place = self.dir == recorder.repository().top();
        let mark = Unfinished::name_of(recorder.branch(), &phase.id, first);
        let trespass = guarded.end(recorder, is_in_place.then_some(mark.as_str()))?;
        let company = neighbours.since(1);
        let changed = elsewhere.put_back(self.tested_elsewhere(), company, (&phase.id, first))?;
        let trespass = trespass.or(joined(&changed));
        Ok(result?.but(trespass))
    }

    /// Runs `commands` for a task; the log stays only if they fail.
    pub fn test(
        &mut self,
        task: &Task,
        commands: &[TestCommand],
        log: &str,
        commit: Oid,
    ) -> Result<TestResult, PipelineError> {
        let mut clean = self.clean_places.take();
        let place = clean.as_mut().map(|places| places(commit)).transpose();
        self.clean_places = clean;
        let place = place?;
        let place = place.as_ref().map(|place| place.path.as_path());
        let mut sum = Sum::default();
        for (n, command) in commands.iter().enumerate() {
            let file = self.run.home.join(log).with_extension(format!("{n}.log"));
            let ended = self.run_test(task, command, (&file, place))?;
            sum.add(command, &ended, &self.run.secrets);
            keep(&self.run.home.join(log), &file, ended.ending.is_success())?;
            if matches!(ended.ending, Ending::Cancelled) {
                return Err(PipelineError::stopped(&self.run.cancel));
            }
        }
        Ok(sum.result(commands, log))
    }

    fn run_test(
        &mut self,
        task: &Task,
        command: &TestCommand,
        (log, clean): (&Path, Option<&Path>),
    ) -> Result<SupervisedEnd, PipelineError> {
        let time = command.timeout.map_or(self.run.options.test_time, std::time::Duration::from_secs);
        let here = self.place_of(task);
        // Only what is tested in the repository that has the plan has a clean place.
        let clean = clean.filter(|_| here == self.dir);
        let own = (command.command.as_str(), clean.unwrap_or(here), &[][..]);
        let tool = self.find_tool(&command.command);
        let (script, dir, environment) =
            tool.map_or(own, |tool| (&tool.command, &tool.dir, &tool.environment));
        let program = Program::new("sh").args(["-c", script]).dir(dir).env("ARBORIST_TASK", task.id.as_str());
        let program = with_environment(with_environment(program, &self.environment), environment);
        let program = match clean {
            Some(place) => program.env("ARBORIST_WORKTREE", place),
            None => program,
        };
        let file = safe_files::open_log(log).map_err(|source| file_error(log, source))?;
        let supervised = Supervised::new(program).limits(Limits { whole: Some(time), ..Limits::default() });
        let supervised = supervised
            .until(&self.run.cancel)
            .log(file)
            .tail(64 * 1024)
            .filter(Redaction::new(&self.run.secrets));
        let ended = supervised.with_orphan_lock(&mut self.orphan_lock).run(|_| {});
        refuse_survivors(&ended)?;
        Ok(ended)
    }
}

/// Appends one command's log to the step's, or drops it.
fn keep(log: &Path, part: &Path, is_success: bool) -> Result<(), PipelineError> {
    let write = || -> std::io::Result<()> {
        if !is_success {
            std::io::copy(&mut safe_files::open(part)?, &mut safe_files::open_log(log)?)?;
        }
        safe_files::remove(part)
    };
    write().map_err(|source| file_error(log, source))
}

#[derive(Default)]
struct Sum {
    observed: Option<Observed>,
    why: Option<String>,
    counts: Option<Counts>,
    seconds: f64,
    body: Body,
}

impl Sum {
    fn add(&mut self, command: &TestCommand, ended: &SupervisedEnd, secrets: &Secrets) {
        self.seconds += ended.took.as_secs_f64();
        let observed = Observed::of(ended);
        self.observed = Some(match self.observed.take() {
            Some(earlier) => earlier.join(observed),
            None => observed,
        });
        if let Some(counts) = read_counts(&format!("{}\n{}", ended.stdout.text, ended.stderr.text)) {
            *self.counts.get_or_insert(Counts::default()) += counts;
        }
        if !ended.ending.is_success() && self.why.is_none() {
            let command = Redactor::redact(secrets, &command.command);
            self.why = Some(format!("'{command}' {}", ended.ending));
        }
        let kind = command.kind.as_str();
        let mut body = std::mem::take(&mut self.body);
        for (stream, text) in [("stderr", &ended.stderr.text), ("stdout", &ended.stdout.text)] {
            if !text.trim().is_empty() {
                body = body.with(&format!("Test ({kind}) {stream} (last {TAIL} chars):"), last(text, TAIL));
            }
        }
        self.body = body;
    }

    fn result(self, commands: &[TestCommand], log: &str) -> TestResult {
        let mut trailers = Trailers::default();
        let mut set = |key, value: String| {
            let _ = trailers.set(key, value);
        };
        set(Key::TestType, kinds(commands));
        // A command that succeeds although it printed failures decides; its counts would contradict it.
        if let Some(counts) = self.counts.filter(|counts| self.why.is_some() || counts.failed == 0) {
            set(Key::TestPassed, counts.passed.to_string());
            set(Key::TestFailed, counts.failed.to_string());
            set(Key::TestSkipped, counts.skipped.to_string());
        }
        set(Key::TestRuntime, format!("{:.1}", self.seconds));
        if self.why.is_some() {
            set(Key::TestLog, log.to_owned());
        }
        let body = match &self.why {
            Some(why) => Body::new(FAILED, why).followed_by(self.body),
            None => self.body,
        };
        let observed = self.observed.unwrap_or_default();
        TestResult { is_passed: self.why.is_none(), why: self.why, observed, body, trailers }
    }
}

fn kinds(commands: &[TestCommand]) -> String {
    let has = |kind: &&TestKind| commands.iter().any(|command| command.kind == **kind);
    TestKind::ALL.iter().filter(has).map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

/// The last `count` characters.
pub(in crate::pipeline) fn last(text: &str, count: usize) -> &str {
    let skip = text.chars().count().saturating_sub(count);
    text.char_indices().nth(skip).map_or("", |(at, _)| &text[at..])
}

/// The heading of known failures that a test was passed with.
const AS_EXPECTED: &str = "Tests that still fail, as expected";

impl TaskRun<'_, '_, '_> {
    /// What the result means for this task.
    pub(in crate::pipeline) fn judged(&mut self, result: TestResult) -> Result<TestResult, PipelineError> {
        if self.task.red {
            return self.judged_red(result);
        }
        if result.is_passed || !self.known_red.excuses(&result.observed) {
            return Ok(result);
        }
        let body = KnownRed::of(&result.observed).quoted(AS_EXPECTED);
        Ok(passed(result, body))
    }

    /// The new tests fail, and all others pass.
    fn judged_red(&mut self, result: TestResult) -> Result<TestResult, PipelineError> {
        // A command that did not run to its end has not shown that a test fails.
        if !result.is_passed && !result.observed.is_red() {
            return Ok(result);
        }
        let repository = self.recorder.repository();
        let patch = repository.difference(self.base.tree, self.recorder.tree())?.files.concat();
        let is_added = |line: &&str| line.starts_with('+') && !line.starts_with("+++");
        let added: Vec<&str> = patch.lines().filter(is_added).collect();
        Ok(match self.known_red.require_new(&result.observed, &added.join("\n")) {
            Ok(new) => passed(result, new.quoted(TO_BE_MENDED)),
            Err(why) => {
                let body = Body::new(FAILED, &why).followed_by(result.body);
                TestResult { is_passed: false, why: Some(why), body, ..result }
            }
        })
    }

    /// Whether the tests fail without the task's work too, in a lane in which none has passed yet: then it lacks
    /// something, and no attempt is charged for that.
    pub(in crate::pipeline) fn require_good_lane(
        &mut self,
        result: &TestResult,
    ) -> Result<(), PipelineError> {
        let Some(mut check) = self.context.lane_check.take() else { return Ok(()) };
        let checked =
            if result.is_passed { check(None) } else { check(Some((self.base.commit, &self.known_red))) };
        self.context.lane_check = Some(check);
        checked
    }
}

/// A test that was passed has no failures in its trailers: readers would not believe it. The body has them.
fn passed(result: TestResult, body: Body) -> TestResult {
    const OF_FAILURE: [Key; 4] = [Key::TestPassed, Key::TestFailed, Key::TestSkipped, Key::TestLog];
    let mut trailers = Trailers::default();
    for (key, value) in result.trailers.iter().filter(|(key, _)| !OF_FAILURE.contains(key)) {
        let _ = trailers.set(key, value);
    }
    TestResult { is_passed: true, why: None, body: body.followed_by(result.body), trailers, ..result }
}
