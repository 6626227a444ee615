//! Readers for the summaries of test programs. Each reads only what its own program prints, and returns nothing for the
//! output of others.

use super::counts::{Counts, is_empty_package, total};

/// Reads the counts of one program.
type Reader = fn(&str) -> Option<Counts>;

/// The readers of all programs that we know, with the names under which their tests are recorded. None of them reads the
/// summary of another.
pub(super) const READERS: [(&str, Reader); 12] = [
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
        let printed =
            |plain: &str, event: &str| line.starts_with(plain) || (is_test_event && line.contains(event));
        counts.passed += u64::from(printed("--- PASS: ", "\"Action\":\"pass\""));
        counts.failed += u64::from(printed("--- FAIL: ", "\"Action\":\"fail\""));
        counts.skipped += u64::from(printed("--- SKIP: ", "\"Action\":\"skip\""));
    }
    (counts != Counts::default()).then_some(counts)
}

/// The packages of `go test` without `-v`: `ok   pkg  0.01s`, `ok  pkg  (cached)`, `FAIL  pkg  0.01s` and
/// `?  pkg  [no test files]`. A package without tests is not counted.
pub(super) fn go_packages(text: &str) -> Option<Counts> {
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
pub(super) fn junit(text: &str) -> Option<Counts> {
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
