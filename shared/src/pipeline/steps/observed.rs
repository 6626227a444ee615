//! What is known about a run of a test command: its exit code, its counts and the names of failed tests. Pure.

use std::collections::BTreeSet;

use super::{
    counts::{Counts, TestTally, read_counts, read_tally},
    failed_tests::{FailedTest, READERS},
};
use crate::process::{Ending, SupervisedEnd};

/// How a test command ended, and what its output says about tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestObservation {
    /// The exit code; `None` if it did not start, was killed or timed out.
    pub code: Option<i32>,
    /// The counts, if the output contains them.
    pub counts: Option<Counts>,
    /// The failed tests, if the output names all of them.
    pub failing: Option<BTreeSet<String>>,
    /// How many tests ran, if the output says it. Unknown if its beginning is missing, because then it may be too low.
    pub tally: TestTally,
    /// Why its log is incomplete, if it is.
    pub log_error: Option<String>,
}

impl TestObservation {
    /// Reads what a program printed.
    #[must_use]
    pub fn of(ended: &SupervisedEnd) -> Self {
        let printed = format!("{}\n{}", ended.stdout.text, ended.stderr.text);
        let code = if let Ending::Exited(code) = ended.ending { Some(code) } else { None };
        let counts = read_counts(&printed);
        let failing = counts.and_then(|counts| read_failing(&printed, counts));
        let log_error = ended.log_error.as_ref().map(ToString::to_string);
        let is_cut = ended.stdout.cut || ended.stderr.cut;
        let tally = if is_cut { TestTally::default() } else { read_tally(&printed) };
        Self { code, counts, failing, tally, log_error }
    }

    /// Joins two commands. A fact that is known about only one of them is not known about both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let code = match (self.code, other.code) {
            (Some(0), code) | (code, Some(0)) => code,
            (Some(code), Some(_)) => Some(code),
            _ => None,
        };
        let counts = match (self.counts, other.counts) {
            (Some(mut sum), Some(more)) => {
                sum += more;
                Some(sum)
            }
            _ => None,
        };
        let failing = match (self.failing, other.failing) {
            (Some(a), Some(b)) => Some(a.union(&b).cloned().collect()),
            _ => None,
        };
        let mut tally = self.tally;
        tally += other.tally;
        let log_error = self.log_error.or(other.log_error);
        Self { code, counts, failing, tally, log_error }
    }

    /// Whether the command ran to its end and failed.
    #[must_use]
    pub fn is_red(&self) -> bool {
        self.code.is_some_and(|code| !matches!(code, 0 | 126 | 127))
    }
}

/// The names of all failed tests; `None` if the output names fewer than it counts.
fn read_failing(output: &str, counts: Counts) -> Option<BTreeSet<String>> {
    let plain = crate::message::plain_text(output);
    let names = |reader: &fn(&str) -> Vec<FailedTest>| -> BTreeSet<String> {
        reader(&plain).into_iter().map(|test| test.name).collect()
    };
    READERS.iter().map(names).find(|names| names.len() as u64 == counts.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_failed_tests_are_read_from_every_known_program() {
        for (output, names) in [
            (
                "test a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n",
                "a::c",
            ),
            (
                "FAILED t/test_x.py::test_y[1] - assert 1\nERROR t/test_z.py\n=== 1 failed, 1 error, 3 passed in 0.12s ===\n",
                "t/test_x.py::test_y[1] t/test_z.py",
            ),
            (
                "FAIL: test_b (m.A.test_b)\n\nRan 2 tests in 0.1s\n\nFAILED (failures=1)\n",
                "test_b (m.A.test_b)",
            ),
            (
                "        FAIL [   0.005s] (1/2) pkg tests::adds\n     Summary [   0.5s] 2 tests run: 1 passed, 1 failed\n",
                "pkg tests::adds",
            ),
            ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", "TestB"),
            ("1..3\nok 1 - a\nnot ok 2 - b c\nnot ok 3 - d # TODO later\n", "b c"),
            (
                " FAIL  src/a.test.ts > adds > two\n      Tests  1 failed | 1 passed (2)\n",
                "src/a.test.ts > adds > two",
            ),
            ("  ● adds › two\n\nTests:       1 failed, 1 passed, 2 total\n", "adds › two"),
            (
                "<testsuite tests=\"2\" failures=\"1\"><testcase classname=\"A\" name=\"ok\"/><testcase classname=\"A\" name=\"b\"><failure/></testcase></testsuite>",
                "A::b",
            ),
        ] {
            let counts = read_counts(output).unwrap();
            let found = read_failing(output, counts).unwrap_or_else(|| panic!("{output}"));
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), names, "{output}");
        }
    }

    #[test]
    fn incomplete_test_names_are_not_used() {
        let output = "FAILED t/test_x.py::test_y - assert 1\n=== 3 failed in 0.12s ===\n";
        assert_eq!(read_failing(output, read_counts(output).unwrap()), None);
    }
}
