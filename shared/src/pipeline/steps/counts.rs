//! Reads from the output of test programs how many tests passed, failed and were skipped. Returns nothing for programs
//! that we do not know.

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
    fn out_of(all: u64, failed: u64, skipped: u64) -> Self {
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

/// Reads the counts of one program.
type Reader = fn(&str) -> Option<Counts>;

/// The readers of all programs that we know, with the names under which their tests are recorded. None of them reads the
/// summary of another.
const READERS: [(&str, Reader); 12] = [
    ("cargo", rust),
    ("pytest", pytest),
    ("vitest", vitest),
    ("jest", jest),
    ("unittest", unittest),
    ("go", go),
    ("TAP", tap),
    ("mocha", mocha),
    ("rspec", rspec),
    ("phpunit", phpunit),
    ("ctest", ctest),
    ("Maven", surefire),
];

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
fn total(counts: impl IntoIterator<Item = Counts>) -> Option<Counts> {
    counts.into_iter().fold(None, |sum, counts| {
        let mut sum = sum.unwrap_or_default();
        sum += counts;
        Some(sum)
    })
}

/// Adds up `<number> <word>` pairs: `3 failed, 14 passed`.
fn pairs(text: &str) -> Counts {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut counts = Counts::default();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<u64>() else { continue };
        match pair[1] {
            "passed" | "xpassed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" | "ignored" | "xfailed" | "todo" => counts.skipped += number,
            _ => {}
        }
    }
    counts
}

/// The sum of `pairs` over the parts of lines that `wanted` returns.
fn sum<'a>(text: &'a str, wanted: impl Fn(&'a str) -> Option<&'a str>) -> Option<Counts> {
    total(text.lines().filter_map(wanted).map(pairs))
}

/// The number at the beginning of a text.
fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The number after a name: 2 for `Failures: ` in `Tests: 5, Failures: 2.`
fn number_after(text: &str, name: &str) -> Option<u64> {
    leading_number(text.split_once(name)?.1)
}

/// cargo test and nextest. A failed test of nextest shows the output of its own process, which ends like that of cargo.
fn rust(text: &str) -> Option<Counts> {
    let nextest = nextest(text);
    let is_repeated = nextest.is_some_and(|counts| counts.failed > 0);
    total(nextest.into_iter().chain(cargo(text).filter(|_| !is_repeated)))
}

/// `test result: ok. 35 passed; 0 failed; 1 ignored; 0 measured; …`
fn cargo(text: &str) -> Option<Counts> {
    sum(text, |line| line.trim().strip_prefix("test result: "))
}

/// `Summary [   0.5s] 10 tests run: 9 passed, 1 failed, 2 skipped`
fn nextest(text: &str) -> Option<Counts> {
    sum(text, |line| line.trim().strip_prefix("Summary [")?.split_once(" run: ").map(|(_, counts)| counts))
}

/// `==== 3 failed, 14 passed, 2 skipped in 0.12s ====`, with or without the frame.
fn pytest(text: &str) -> Option<Counts> {
    sum(text, |line| {
        let inside = line.trim().trim_matches('=').trim();
        let (counts, time) = inside.rsplit_once(" in ")?;
        let is_time = time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('s');
        let begins = counts.starts_with(|c: char| c.is_ascii_digit());
        (is_time && begins && pairs(counts) != Counts::default()).then_some(counts)
    })
}

/// `Tests:       1 failed, 2 skipped, 14 passed, 17 total`
fn jest(text: &str) -> Option<Counts> {
    sum(text, |line| line.trim().strip_prefix("Tests:").filter(|rest| rest.contains(" total")))
}

/// `Tests  1 failed | 14 passed | 2 skipped (17)`
fn vitest(text: &str) -> Option<Counts> {
    sum(text, |line| line.trim().strip_prefix("Tests  ").filter(|rest| rest.trim_end().ends_with(')')))
}

/// `Ran 15 tests in 3.2s`, then `FAILED (failures=1, errors=2, skipped=3)`, `OK (skipped=3)` or `NO TESTS RAN`, for each
/// run.
fn unittest(text: &str) -> Option<Counts> {
    let is_end = |line: &str| {
        line == "OK" || ["OK (", "FAILED (", "NO TESTS RAN"].iter().any(|word| line.starts_with(word))
    };
    let (mut ran, mut runs) = (None, Vec::new());
    for line in text.lines() {
        if let Some((number, _)) = line.strip_prefix("Ran ").and_then(|rest| rest.split_once(" test")) {
            ran = number.parse::<u64>().ok();
        } else if let Some(all) = ran.take_if(|_| is_end(line)) {
            let of = |name: &str| number_after(line, name).unwrap_or(0);
            let skipped = of("skipped=") + of("expected failures=");
            // The number after `failures=` is also found in `expected failures=`, if that is the first.
            let failed = number_after(&line.replace("expected failures=", ""), "failures=").unwrap_or(0);
            runs.push(Counts::out_of(all, failed + of("errors="), skipped));
        }
    }
    total(runs)
}

/// Lines `--- PASS: TestX (0.00s)` of `go test -v`, or its events of `-json`. Without `-v`, only the tests that failed.
fn go(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for line in text.lines() {
        let line = line.trim_start();
        let is_test_event = line.starts_with('{') && line.contains("\"Test\":");
        let said =
            |plain: &str, event: &str| line.starts_with(plain) || (is_test_event && line.contains(event));
        counts.passed += u64::from(said("--- PASS: ", "\"Action\":\"pass\""));
        counts.failed += u64::from(said("--- FAIL: ", "\"Action\":\"fail\""));
        counts.skipped += u64::from(said("--- SKIP: ", "\"Action\":\"skip\""));
    }
    (counts != Counts::default()).then_some(counts)
}

/// The packages of `go test` without `-v`: `ok   pkg  0.01s`, `ok  pkg  (cached)`, `FAIL  pkg  0.01s` and
/// `?  pkg  [no test files]`. A package without tests is not counted.
fn go_packages(text: &str) -> Option<Counts> {
    let is_verbose = |line: &str| {
        let line = line.trim_start();
        ["--- PASS: ", "--- SKIP: ", "=== RUN ", "{\"Time\":"].iter().any(|word| line.starts_with(word))
    };
    if text.lines().any(is_verbose) {
        return None;
    }
    let is_time = |word: &str| {
        word == "(cached)" || word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let package = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["?" | "ok", _, ..] if is_empty_package(line) => Some(Counts::default()),
            ["ok", _, time, ..] if is_time(time) => Some(Counts { passed: 1, ..Counts::default() }),
            ["FAIL", _, time] if is_time(time) => Some(Counts { failed: 1, ..Counts::default() }),
            ["FAIL", _, "[build" | "[setup", "failed]"] => Some(Counts { failed: 1, ..Counts::default() }),
            _ => None,
        }
    };
    total(text.lines().filter_map(package))
}

/// The summary of `node --test`: lines `tests 3`, `pass 3`, `fail 0` and others, each after this sign.
fn node(text: &str, sign: &str) -> Option<Counts> {
    let numbers = |name: &str| -> Option<u64> {
        let number = |line: &str| {
            let (word, number) = line.trim().strip_prefix(sign)?.trim_start().split_once(' ')?;
            if word == name { number.trim().parse::<u64>().ok() } else { None }
        };
        let found: Vec<u64> = text.lines().filter_map(number).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    };
    let of = |name: &str| numbers(name).unwrap_or(0);
    // Other programs print `# tests` and `# pass`, too, in the comments of TAP.
    let (passed, _) = (numbers("pass")?, numbers(if sign == "#" { "cancelled" } else { "tests" })?);
    Some(Counts { passed, failed: of("fail") + of("cancelled"), skipped: of("skipped") + of("todo") })
}

/// Lines `ok 1 - x` and `not ok 2 - y`, if there is also a plan `1..n`; or the summary that `node --test` prints.
fn tap(text: &str) -> Option<Counts> {
    let of_node = total(["ℹ", "#"].into_iter().filter_map(|sign| node(text, sign)));
    of_node.or_else(|| tap_lines(text))
}

fn tap_lines(text: &str) -> Option<Counts> {
    let is_plan = |line: &str| line.strip_prefix("1..").is_some_and(|n| leading_number(n).is_some());
    if !text.lines().any(is_plan) {
        return None;
    }
    let mut counts = Counts::default();
    let mut depth_before = 0;
    for line in text.lines() {
        let inner = line.trim_start();
        let after =
            |word: &str| inner.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(' '));
        let (is_ok, rest) = match (after("ok"), after("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        // The line of a test with subtests comes after them, or before them with a brace. Only the subtests count.
        let depth = line.len() - inner.len();
        let has_subtests = depth < std::mem::replace(&mut depth_before, depth) || rest.ends_with('{');
        if has_subtests {
            continue;
        }
        let directive =
            rest.split_once('#').map(|(_, words)| words.trim().to_ascii_uppercase()).unwrap_or_default();
        if directive.starts_with("SKIP") || directive.starts_with("TODO") {
            counts.skipped += 1;
        } else if is_ok {
            counts.passed += 1;
        } else {
            counts.failed += 1;
        }
    }
    Some(counts)
}

/// `5 passing (8ms)`, then `2 pending` and `1 failing` if there are any.
fn mocha(text: &str) -> Option<Counts> {
    let number = |line: &str, word: &str| line.trim().strip_suffix(word)?.trim_end().parse::<u64>().ok();
    let passing = |line: &str| number(line.split_once(" (")?.0, "passing");
    let summary = |line: &str| {
        let passed = passing(line);
        let failed = number(line, "failing");
        let skipped = number(line, "pending");
        let of = |found: Option<u64>| found.unwrap_or(0);
        let is_any = passed.or(failed).or(skipped).is_some();
        is_any.then(|| Counts { passed: of(passed), failed: of(failed), skipped: of(skipped) })
    };
    let is_mocha = text.lines().any(|line| passing(line).is_some());
    total(text.lines().filter_map(summary)).filter(|_| is_mocha)
}

/// `10 examples, 1 failure, 2 pending, 1 error occurred outside of examples`
fn rspec(text: &str) -> Option<Counts> {
    let summary = |line: &str| {
        let mut parts = line.trim().split(", ");
        let part = |part: &str, word: &str| {
            let (number, rest) = part.split_once(' ')?;
            if rest.starts_with(word) { number.parse::<u64>().ok() } else { None }
        };
        let all = part(parts.next()?, "example")?;
        let failed = part(parts.next()?, "failure")?;
        let rest: Vec<&str> = parts.collect();
        let of = |word: &str| rest.iter().find_map(|text| part(text, word)).unwrap_or(0);
        let counts = Counts::out_of(all, failed, of("pending"));
        Some(Counts { failed: failed + of("error"), ..counts })
    };
    total(text.lines().filter_map(summary))
}

/// `OK (5 tests, 9 assertions)`, or `Tests: 5, Assertions: 9, Failures: 1, Skipped: 2.`; also JUnit's `OK (5 tests)`.
fn phpunit(text: &str) -> Option<Counts> {
    let summary = |line: &str| {
        let line = line.trim();
        if let Some((number, rest)) = line.strip_prefix("OK (").and_then(|rest| rest.split_once(' ')) {
            let is_it = rest.starts_with("test") && rest.ends_with(')');
            return is_it.then(|| Some(Counts::out_of(number.parse().ok()?, 0, 0))).flatten();
        }
        let rest = line.strip_prefix("Tests: ").filter(|rest| rest.contains(", Assertions: "))?;
        let of = |name: &str| number_after(rest, name).unwrap_or(0);
        let skipped = of("Skipped: ") + of("Incomplete: ");
        Some(Counts::out_of(leading_number(rest)?, of("Failures: ") + of("Errors: "), skipped))
    };
    total(text.lines().filter_map(summary))
}

/// `100% tests passed, 0 tests failed out of 5`, and the tests that did not run as `2 - name (Skipped)`. Tests that ctest
/// starts may be programs of GoogleTest; without ctest, those are counted.
fn ctest(text: &str) -> Option<Counts> {
    let summary = |line: &str| {
        let (before, all) = line.trim().rsplit_once(" out of ")?;
        let rest = before.split_once("% tests passed")?.1;
        let failed = rest.trim_start_matches([',', ' ']);
        Some(Counts::out_of(leading_number(all)?, leading_number(failed).unwrap_or(0), 0))
    };
    let Some(mut counts) = total(text.lines().filter_map(summary)) else { return gtest(text) };
    let is_listed = |line: &str, end: &str| {
        let line = line.trim();
        line.ends_with(end) && leading_number(line).is_some() && line.contains(" - ")
    };
    let listed = |end: &str| text.lines().filter(|line| is_listed(line, end)).count() as u64;
    // A skipped test counts as passed there, and a disabled one not at all.
    let skipped = listed(" (Skipped)");
    counts.passed = counts.passed.saturating_sub(skipped);
    counts.skipped = skipped + listed(" (Disabled)");
    Some(counts)
}

/// `[  PASSED  ] 5 tests.`, `[  FAILED  ] 1 test, listed below:`, `[  SKIPPED ] 1 test, listed below:` and
/// `YOU HAVE 2 DISABLED TESTS`
fn gtest(text: &str) -> Option<Counts> {
    let summary = |line: &str| {
        let line = line.trim();
        let number = |start: &str, end: &str| {
            let rest = line.strip_prefix(start)?.trim_start();
            leading_number(rest).filter(|_| rest.ends_with(end))
        };
        let disabled =
            number("YOU HAVE ", " DISABLED TEST").or_else(|| number("YOU HAVE ", " DISABLED TESTS"));
        let passed = number("[  PASSED  ]", " test.").or_else(|| number("[  PASSED  ]", " tests."));
        let failed = number("[  FAILED  ]", ", listed below:");
        let skipped = number("[  SKIPPED ]", ", listed below:").or(disabled);
        let of = |found: Option<u64>| found.unwrap_or(0);
        let is_any = passed.or(failed).or(skipped).is_some();
        is_any.then(|| Counts { passed: of(passed), failed: of(failed), skipped: of(skipped) })
    };
    total(text.lines().filter_map(summary))
}

/// `Tests run: 5, Failures: 0, Errors: 0, Skipped: 0` of Maven, for each module. The lines for each class also give a time.
fn surefire(text: &str) -> Option<Counts> {
    let summary = |line: &str| {
        let (_, rest) = line.split_once("Tests run: ").filter(|(_, rest)| rest.contains(", Errors: "))?;
        let of = |name: &str| number_after(rest, name).unwrap_or(0);
        let failed = of("Failures: ") + of("Errors: ");
        let is_class = rest.contains("Time elapsed");
        Some((is_class, Counts::out_of(leading_number(rest)?, failed, of("Skipped: "))))
    };
    let found: Vec<(bool, Counts)> = text.lines().filter_map(summary).collect();
    let part = |wanted: bool| {
        let of = found.iter().filter(|(is_class, _)| *is_class == wanted);
        total(of.map(|(_, counts)| *counts))
    };
    part(false).or_else(|| part(true))
}

/// The attributes of `<testsuites …>`, else the sum over `<testsuite …>`.
fn junit(text: &str) -> Option<Counts> {
    let suites = |tag: &str| -> Vec<Counts> {
        let opening = text.split(tag).skip(1);
        opening.filter_map(|rest| suite(rest.split_once('>')?.0)).collect()
    };
    let whole = suites("<testsuites ");
    total(if whole.is_empty() { suites("<testsuite ") } else { whole })
}

fn suite(attributes: &str) -> Option<Counts> {
    let of = |name: &str| {
        let (_, rest) = attributes.split_once(&format!("{name}=\""))?;
        leading_number(rest)
    };
    let failed = of("failures").unwrap_or(0) + of("errors").unwrap_or(0);
    let skipped = of("skipped").or_else(|| of("disabled")).unwrap_or(0);
    Some(Counts::out_of(of("tests")?, failed, skipped))
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
fn is_empty_package(line: &str) -> bool {
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
