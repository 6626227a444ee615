//! What a test that failed comes to: tests that are known to fail are not the task's fault, and a task that is marked red
//! has to fail.

use super::{KnownRed, PipelineError, TO_BE_MENDED, TaskRun, TestResult};
use crate::{
    history::FAILED,
    message::{Body, Key, Trailers},
};

/// The heading of known failures that a test was passed with.
const AS_EXPECTED: &str = "Tests that still fail, as expected";

impl TaskRun<'_, '_, '_> {
    /// What the result means for this task.
    pub(super) fn judged(&mut self, result: TestResult) -> Result<TestResult, PipelineError> {
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
    pub(super) fn require_good_lane(&mut self, result: &TestResult) -> Result<(), PipelineError> {
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
