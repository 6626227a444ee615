//! Reads from the output of test programs how many tests passed, failed and were skipped. Returns nothing for programs
//! that we do not know.

use super::count_readers::{READERS, go_packages, junit};

/// Counts over the whole output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed.
    pub passed: u64,
    /// Failed, or ended in an error.
    pub failed: u64,
    /// Skipped, ignored or marked as to do.
    pub skipped: u64,
}

impl Counts {
    /// The number of tests that were not skipped.
    #[must_use]
    pub fn ran(self) -> u64 {
        self.passed + self.failed
    }

    /// The counts of a program that prints the number of all tests, and how many of them did not pass.
    pub(super) fn out_of(all: u64, failed: u64, skipped: u64) -> Self {
        Self { passed: all.saturating_sub(failed + skipped), failed, skipped }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// How many tests a command ran. `tests` and `packages` are empty if its output does not say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestTally {
    /// The tests.
    pub tests: Option<Counts>,
    /// The packages whose tests ran: `go test` without `-v` does not count tests.
    pub packages: Option<Counts>,
    /// The tests of each program, as far as its name is known. They are part of `tests`.
    pub programs: ProgramCounts,
}

/// How many tests each program ran, in the order of [`READERS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramCounts([Option<Counts>; READERS.len()]);

impl ProgramCounts {
    /// The counts of each program that ran, with its name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, Counts)> {
        READERS.iter().zip(self.0).filter_map(|((name, _), counts)| Some((*name, counts?)))
    }

    /// The counts of a program.
    pub(super) fn find(&self, program: &str) -> Option<Counts> {
        self.iter().find(|(name, _)| *name == program).map(|(_, counts)| counts)
    }

    /// Adds the counts of a program. Returns whether there is a program of this name.
    pub(super) fn add(&mut self, program: &str, counts: Counts) -> bool {
        let at = READERS.iter().position(|(name, _)| *name == program);
        at.inspect(|at| *self.0[*at].get_or_insert_default() += counts).is_some()
    }
}

impl TestTally {
    /// No test ran.
    pub const NONE: Self = Self {
        tests: Some(Counts { passed: 0, failed: 0, skipped: 0 }),
        packages: None,
        programs: ProgramCounts([None; READERS.len()]),
    };

    /// Whether the output does not say how many tests ran.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        self.tests.is_none() && self.packages.is_none()
    }

    /// The number of tests and packages that were not skipped.
    #[must_use]
    pub fn ran(self) -> u64 {
        [self.tests, self.packages].into_iter().flatten().map(Counts::ran).sum()
    }

    /// Whether it is known that no test ran.
    #[must_use]
    pub fn is_zero(self) -> bool {
        !self.is_unknown() && self.ran() == 0
    }

    /// Whether something failed.
    #[must_use]
    pub fn has_failures(self) -> bool {
        [self.tests, self.packages].into_iter().flatten().any(|counts| counts.failed > 0)
    }
}

impl std::ops::AddAssign for TestTally {
    /// Adds another command. A number that is known for only one of them is not known for both.
    fn add_assign(&mut self, other: Self) {
        if self.is_unknown() || other.is_unknown() {
            *self = Self::default();
            return;
        }
        for (sum, more) in [(&mut self.tests, other.tests), (&mut self.packages, other.packages)] {
            if let Some(more) = more {
                *sum.get_or_insert_default() += more;
            }
        }
        other.programs.iter().for_each(|(program, counts)| {
            self.programs.add(program, counts);
        });
    }
}

/// Reads the counts in `output`, whichever programs printed them. If all tests passed, the counts of several programs are
/// added. The output of a failed test may contain that of another program, so otherwise only the first one counts.
#[must_use]
pub fn read_counts(output: &str) -> Option<Counts> {
    let (readings, _) = read_all(&crate::message::plain_text(output));
    let has_failures = readings.iter().any(|counts| counts.failed > 0);
    if has_failures { readings.first().copied() } else { total(readings) }
}

/// Reads how many tests ran, to compare it with another run of the same command.
#[must_use]
pub(super) fn read_tally(output: &str) -> TestTally {
    let plain = crate::message::plain_text(output);
    let packages = go_packages(&plain);
    let (readings, programs) = match packages {
        // Only the failed tests are named, and those are counted with their packages.
        Some(_) => {
            let is_other = |line: &&str| !line.trim_start().starts_with("--- FAIL: ");
            read_all(&plain.lines().filter(is_other).collect::<Vec<_>>().join("\n"))
        }
        None => read_all(&plain),
    };
    let tests = total(readings).or_else(|| ran_no_tests(output).then(Counts::default));
    TestTally { tests, packages, programs }
}

/// The counts of each program. Reports in XML repeat what a program prints, so they count only if there is nothing else; they
/// do not say which program it was.
fn read_all(plain: &str) -> (Vec<Counts>, ProgramCounts) {
    let programs = ProgramCounts(READERS.map(|(_, reader)| reader(plain)));
    let found: Vec<Counts> = programs.0.into_iter().flatten().collect();
    (if found.is_empty() { junit(plain).into_iter().collect() } else { found }, programs)
}

/// The sum, if there is anything to add.
pub(super) fn total(counts: impl IntoIterator<Item = Counts>) -> Option<Counts> {
    counts.into_iter().fold(None, |sum, counts| {
        let mut sum = sum.unwrap_or_default();
        sum += counts;
        Some(sum)
    })
}

/// The output of programs that found no test: pytest, jest, vitest, nextest, phpunit, ctest, mocha.
const NO_TESTS: [&str; 8] = [
    "no tests ran in ",
    " deselected in ",
    "No tests found, exiting with code",
    "No test files found, exiting with code",
    "error: no tests to run",
    "No tests executed!",
    "No tests were found!!!",
    "Error: No test files found",
];

/// Whether the output says that no test ran. False if it says nothing about tests.
#[must_use]
pub fn ran_no_tests(output: &str) -> bool {
    match read_counts(output) {
        Some(counts) => counts.passed + counts.failed == 0,
        None => NO_TESTS.iter().any(|words| output.contains(words)) || has_only_empty_packages(output),
    }
}

/// `go test` prints a line for each package: `ok`, `FAIL` or `?`, and at the end whether there was anything to run.
fn has_only_empty_packages(output: &str) -> bool {
    let is_package = |line: &&str| ["ok  \t", "FAIL\t", "?   \t"].iter().any(|word| line.starts_with(word));
    let mut packages = output.lines().filter(is_package).peekable();
    packages.peek().is_some() && packages.all(is_empty_package)
}

/// Whether a line of `go test` says that a package has no tests.
pub(super) fn is_empty_package(line: &str) -> bool {
    line.ends_with("[no test files]") || line.ends_with("[no tests to run]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Option<Counts> {
        Some(Counts { passed, failed, skipped })
    }

    #[test]
    fn counts_are_read_from_the_output_of_every_known_test_program() {
        for (output, expected) in [
            (
                "test result: ok. 35 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\ntest result: FAILED. 4 passed; 2 failed; 0 ignored\n",
                counts(39, 2, 1),
            ),
            (
                "     Summary [   0.512s] 10 tests run: 9 passed (1 slow), 1 failed, 2 skipped\n",
                counts(9, 1, 2),
            ),
            (
                "FAILED test_x.py::test_y - assert 1\n=== 1 failed, 14 passed, 2 skipped, 1 warning in 0.12s ===\n",
                counts(14, 1, 2),
            ),
            ("14 passed in 0.12s\n", counts(14, 0, 0)),
            ("========= 2 errors in 1.2s (0:00:01) =========\n", counts(0, 2, 0)),
            ("Tests:       1 failed, 2 skipped, 14 passed, 17 total\nTime: 3 s\n", counts(14, 1, 2)),
            (
                " Test Files  1 passed (1)\n      Tests  1 failed | 14 passed | 2 skipped (17)\n",
                counts(14, 1, 2),
            ),
            ("\u{1b}[32mTests  \u{1b}[39m 3 passed (3)\n", counts(3, 0, 0)),
            (
                "--- PASS: TestA (0.00s)\n    --- FAIL: TestB/x (0.00s)\n--- SKIP: TestC\nFAIL\n",
                counts(1, 1, 1),
            ),
            (
                "{\"Action\":\"pass\",\"Test\":\"TestA\"}\n{\"Action\":\"fail\",\"Test\":\"TestB\"}\n{\"Action\":\"fail\",\"Package\":\"x\"}\n",
                counts(1, 1, 0),
            ),
            ("TAP version 13\n1..3\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP c\n", counts(1, 1, 1)),
            (
                "<testsuites tests=\"9\" failures=\"1\" errors=\"1\" skipped=\"2\"><testsuite tests=\"9\"/></testsuites>",
                counts(5, 2, 2),
            ),
            (
                "<testsuite name=\"a\" tests=\"3\" failures=\"0\"/><testsuite tests=\"2\" failures=\"2\"/>",
                counts(3, 2, 0),
            ),
            ("Ran 15 tests in 3.2s\n\nFAILED (failures=1, skipped=2)\n", counts(12, 1, 2)),
            ("Ran 15 tests in 3.2s\n\nOK\n", counts(15, 0, 0)),
            ("Ran 5 tests in 0.1s\n\nOK\n\nRan 3 tests in 0.1s\n\nOK (skipped=1)\n", counts(7, 0, 1)),
            ("Ran 4 tests in 0.1s\n\nOK (expected failures=1)\n", counts(3, 0, 1)),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", counts(0, 0, 0)),
        ] {
            assert_eq!(read_counts(output), expected, "{output}");
        }
    }

    #[test]
    fn counts_are_read_from_test_programs_of_other_languages() {
        for (output, expected) in [
            // mocha
            (
                "  sum\n    ✔ adds\n    - multiplies\n\n\n  5 passing (8ms)\n  2 pending\n  1 failing\n\n  1) sum\n",
                counts(5, 1, 2),
            ),
            ("\n\n  0 passing (1ms)\n", counts(0, 0, 0)),
            // node --test on a terminal
            (
                "✔ a (0.5ms)\nℹ tests 4\nℹ suites 0\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 1\nℹ todo 1\nℹ duration_ms 51.2\n",
                counts(2, 0, 2),
            ),
            ("ℹ tests 3\nℹ pass 3\nℹ fail 0\n", counts(3, 0, 0)),
            ("TAP version 13\n# a\nok 1 sum\nok 2 product\n\n1..2\n# tests 2\n# pass  2\n", counts(2, 0, 0)),
            // node --test in a pipe, with subtests
            (
                "TAP version 13\n# Subtest: s\n    # Subtest: a\n    ok 1 - a\n      ---\n      duration_ms: 0.3\n      ...\n    # Subtest: b\n    ok 2 - b\n    1..2\nok 1 - s\n  ---\n  type: 'suite'\n  ...\n1..1\n# tests 2\n# suites 1\n# pass 2\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 47.5\n",
                counts(2, 0, 0),
            ),
            // TAP with subtests, before and after the line of their test
            (
                "TAP version 13\n# Subtest: s\n    ok 1 - a\n    ok 2 - b\n    1..2\nok 1 - s\nok 2 - t\n1..2\n",
                counts(3, 0, 0),
            ),
            (
                "TAP version 14\nok 1 - s # time=5ms {\n    ok 1 - a\n    not ok 2 - b\n    1..2\n}\n1..1\n",
                counts(1, 1, 0),
            ),
            // rspec
            ("Finished in 0.1 seconds\n10 examples, 0 failures\n", counts(10, 0, 0)),
            ("1 example, 1 failure\n", counts(0, 1, 0)),
            ("8 examples, 1 failure, 2 pending\n", counts(5, 1, 2)),
            ("0 examples, 0 failures, 1 error occurred outside of examples\n", counts(0, 1, 0)),
            // phpunit
            (".....  5 / 5 (100%)\n\nOK (5 tests, 9 assertions)\n", counts(5, 0, 0)),
            ("OK (1 test, 1 assertion)\n", counts(1, 0, 0)),
            (
                "OK, but some tests were skipped!\nTests: 5, Assertions: 4, Skipped: 1, Incomplete: 1.\n",
                counts(3, 0, 2),
            ),
            ("FAILURES!\nTests: 5, Assertions: 9, Errors: 1, Failures: 1.\n", counts(3, 2, 0)),
            // GoogleTest
            (
                "[==========] 4 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.c\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.d\n\n 1 FAILED TEST\n  YOU HAVE 2 DISABLED TESTS\n",
                counts(2, 1, 3),
            ),
            ("[  PASSED  ] 1 test.\n[  PASSED  ] 3 tests.\n", counts(4, 0, 0)),
            // ctest
            (
                "2/5 Test #2: b ...***Skipped   0.00 sec\n\n100% tests passed, 0 tests failed out of 5\n\nTotal Test time (real) =   0.01 sec\n\nThe following tests did not run:\n\t  2 - b (Skipped)\n\t  6 - f (Disabled)\n",
                counts(4, 0, 2),
            ),
            ("60% tests passed, 2 tests failed out of 5\n", counts(3, 2, 0)),
            // Maven: a line for each class, then the result of each module
            (
                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.05 s -- in a.ATest\n[INFO] \n[INFO] Results:\n[INFO] \n[WARNING] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1\n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.02 s -- in b.BTest\n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n",
                counts(4, 0, 1),
            ),
            ("[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 0\n", counts(3, 2, 0)),
        ] {
            assert_eq!(read_counts(output), expected, "{output}");
        }
    }

    #[test]
    fn counts_of_several_programs_in_one_command_are_added() {
        let both = "test result: ok. 3 passed; 0 failed; 1 ignored\nTests:       9 passed, 9 total\n== 2 passed in 0.1s ==\n";
        assert_eq!(read_counts(both), counts(14, 0, 1));
        let programs: Vec<(&str, u64)> =
            read_tally(both).programs.iter().map(|(program, counts)| (program, counts.ran())).collect();
        assert_eq!(programs, [("cargo", 3), ("pytest", 2), ("jest", 9)]);
        // The same tests, once more in a report.
        let report = "== 2 passed in 0.1s ==\n<testsuite tests=\"2\" failures=\"0\"/>\n";
        assert_eq!(read_counts(report), counts(2, 0, 0));
        let only_report = read_tally("<testsuite tests=\"2\" failures=\"0\"/>\n");
        assert_eq!((only_report.tests, only_report.programs.iter().count()), (counts(2, 0, 0), 0));
        // The output of a failed test contains that of another program.
        let nested = "test result: FAILED. 3 passed; 1 failed; 0 ignored\n== 2 failed in 0.1s ==\n";
        assert_eq!(read_counts(nested), counts(3, 1, 0));
        let nextest = "test result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [   0.5s] 4 tests run: 3 passed, 1 failed, 0 skipped\n";
        assert_eq!(read_counts(nextest), counts(3, 1, 0));
        let with_documents = "     Summary [   0.5s] 4 tests run: 4 passed, 0 skipped\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
        assert_eq!(read_counts(with_documents), counts(6, 0, 0));
    }

    #[test]
    fn go_counts_packages_unless_it_lists_its_tests() {
        let none = TestTally::default();
        let packages = |passed, failed| TestTally { packages: counts(passed, failed, 0), ..none };
        for (output, tally) in [
            ("ok  \tm\t0.01s\nok  \tm/b\t(cached)\n?   \tm/c\t[no test files]\n", packages(2, 0)),
            ("ok  \tm\t0.01s\tcoverage: 50.0% of statements\n", packages(1, 0)),
            ("ok  \tm\t0.01s\nok  \tm/b\t0.01s [no tests to run]\n", packages(1, 0)),
            (
                "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tm\t0.01s\nok  \tm/b\t0.01s\nFAIL\n",
                packages(1, 1),
            ),
            ("FAIL\tm [build failed]\nFAIL\n", packages(0, 1)),
            (
                "?   \tm\t[no test files]\n",
                TestTally { tests: counts(0, 0, 0), packages: counts(0, 0, 0), ..none },
            ),
            (
                "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tm\t0.01s\n",
                TestTally { tests: counts(1, 0, 0), ..none },
            ),
            (
                "ok  \tm\t0.01s\nTests:       9 passed, 9 total\n",
                TestTally { tests: counts(9, 0, 0), packages: counts(1, 0, 0), ..none },
            ),
            ("make: Nothing to be done for 'test'.\n", TestTally::default()),
        ] {
            assert_eq!(
                TestTally { programs: ProgramCounts::default(), ..read_tally(output) },
                tally,
                "{output}"
            );
        }
    }

    #[test]
    fn text_that_only_looks_like_counts_is_ignored() {
        for output in [
            "",
            "ok\n",
            "all 3 tests passed\n",
            "ok  \tpkg\t0.01s\n",
            "1 passed the exam in school\n",
            "it took 5 errors in total\n",
            "5 passing cars\n",
            "10 examples, all good\n",
            "OK (done)\n",
            "FAIL src/a.test.js\n",
        ] {
            assert_eq!(read_counts(output), None, "{output}");
        }
    }

    #[test]
    fn output_of_a_run_without_tests_is_recognised() {
        for (output, is_none) in [
            ("collected 0 items\n\n==== no tests ran in 0.01s ====\n", true),
            ("5 deselected in 0.01s\n", true),
            ("3 passed, 5 deselected in 0.01s\n", false),
            ("No tests found, exiting with code 1\n", true),
            ("No test files found, exiting with code 1\n", true),
            ("error: no tests to run\n(hint: use `--no-tests` to customize)\n", true),
            ("?   \texample.com/m\t[no test files]\n", true),
            (
                "testing: warning: no tests to run\nPASS\nok  \texample.com/m\t0.001s [no tests to run]\n",
                true,
            ),
            ("?   \texample.com/m\t[no test files]\nok  \texample.com/m/b\t0.002s\n", false),
            ("FAIL\texample.com/m [build failed]\n", false),
            ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", true),
            ("1..0\n", true),
            ("No tests executed!\n", true),
            ("Test project /x/build\nNo tests were found!!!\n", true),
            ("Error: No test files found: \"test\"\n", true),
            ("0 examples, 0 failures\n", true),
            ("all is well\n", false),
            ("", false),
        ] {
            assert_eq!(ran_no_tests(output), is_none, "{output}");
        }
    }
}
