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

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Reads the counts in `output`, whichever program printed them.
#[must_use]
pub fn read_counts(output: &str) -> Option<Counts> {
    let plain = crate::message::plain_text(output);
    let readers = [nextest, cargo, pytest, vitest, jest, unittest, junit, go, tap];
    readers.iter().find_map(|reader| reader(&plain))
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
    let mut found = None;
    for part in text.lines().filter_map(wanted) {
        *found.get_or_insert(Counts::default()) += pairs(part);
    }
    found
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

/// `Ran 15 tests in 3.2s` and `FAILED (failures=1, errors=2, skipped=3)` or `OK (skipped=3)`
fn unittest(text: &str) -> Option<Counts> {
    let ran = text
        .lines()
        .find_map(|line| line.strip_prefix("Ran ")?.split_once(" test")?.0.parse::<u64>().ok())?;
    let end = text.lines().rfind(|line| line.starts_with("FAILED (") || line.starts_with("OK"))?;
    let of = |name: &str| end.split_once(name).and_then(|(_, rest)| leading_number(rest)).unwrap_or(0);
    let failed = of("failures=") + of("errors=");
    let skipped = of("skipped=");
    Some(Counts { passed: ran.saturating_sub(failed + skipped), failed, skipped })
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Lines `--- PASS: TestX (0.00s)` of `go test -v`, or its events of `-json`.
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

/// Lines `ok 1 - x` and `not ok 2 - y`, if there is also a plan `1..n`.
fn tap(text: &str) -> Option<Counts> {
    let is_plan = |line: &str| line.strip_prefix("1..").is_some_and(|n| leading_number(n).is_some());
    if !text.lines().any(is_plan) {
        return None;
    }
    let mut counts = Counts::default();
    for line in text.lines() {
        let (is_ok, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
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

/// The attributes of `<testsuites …>`, else the sum over `<testsuite …>`.
fn junit(text: &str) -> Option<Counts> {
    let suites = |tag: &str| -> Vec<Counts> {
        let opening = text.split(tag).skip(1);
        opening.filter_map(|rest| suite(rest.split_once('>')?.0)).collect()
    };
    let found = match suites("<testsuites ") {
        whole if whole.is_empty() => suites("<testsuite "),
        whole => whole,
    };
    let mut counts = None;
    found.into_iter().for_each(|suite| *counts.get_or_insert(Counts::default()) += suite);
    counts
}

fn suite(attributes: &str) -> Option<Counts> {
    let of = |name: &str| {
        let (_, rest) = attributes.split_once(&format!("{name}=\""))?;
        leading_number(rest)
    };
    let failed = of("failures").unwrap_or(0) + of("errors").unwrap_or(0);
    let skipped = of("skipped").or_else(|| of("disabled")).unwrap_or(0);
    Some(Counts { passed: of("tests")?.saturating_sub(failed + skipped), failed, skipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Option<Counts> {
        Some(Counts { passed, failed, skipped })
    }

    #[test]
    fn every_program_is_read_in_its_own_words() {
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
        ] {
            assert_eq!(read_counts(output), expected, "{output}");
        }
    }

    #[test]
    fn words_that_only_look_like_counts_say_nothing() {
        for output in [
            "",
            "ok\n",
            "all 3 tests passed\n",
            "ok  \tpkg\t0.01s\n",
            "1 passed the exam in school\n",
            "it took 5 errors in total\n",
        ] {
            assert_eq!(read_counts(output), None, "{output}");
        }
    }
}
