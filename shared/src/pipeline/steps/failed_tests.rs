//! Reads failed tests and their messages from the output of test programs. Pure.

use std::collections::HashMap;

/// A failed test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FailedTest {
    /// Its name, as the program prints it.
    pub(super) name: String,
    /// What the program says about it; empty if nothing was found.
    pub(super) message: String,
}

impl FailedTest {
    fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), message: String::new() }
    }
}

/// Reads the failed tests in the output of one program.
type Reader = fn(&str) -> Vec<FailedTest>;

/// The readers of all programs that we know.
pub(super) const READERS: [Reader; 10] =
    [cargo, pytest, unittest, nextest, go, tap, vitest, jest, junit, mocha];

/// Each name once, with the first message that was found for it.
fn once_each(tests: impl IntoIterator<Item = FailedTest>) -> Vec<FailedTest> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<FailedTest> = Vec::new();
    for test in tests {
        match known.get(&test.name) {
            Some(at) if kept[*at].message.is_empty() => kept[*at].message = test.message,
            Some(_) => {}
            None => {
                known.insert(test.name.clone(), kept.len());
                kept.push(test);
            }
        }
    }
    kept
}

/// Tests whose messages follow a line with the name, up to the next name or to a line that `ends` them.
fn blocks(text: &str, name: impl Fn(&str) -> Option<String>, ends: impl Fn(&str) -> bool) -> Vec<FailedTest> {
    paragraphs(text, name, ends, |_| true)
}

/// Like [`blocks`], but a message also ends before a paragraph that begins at the margin with a line that does not continue it: the
/// output of other programs follows the last failure.
fn paragraphs(
    text: &str,
    name: impl Fn(&str) -> Option<String>,
    ends: impl Fn(&str) -> bool,
    continues: impl Fn(&str) -> bool,
) -> Vec<FailedTest> {
    let mut tests: Vec<FailedTest> = Vec::new();
    let (mut is_open, mut is_after_blank) = (false, false);
    for line in text.lines() {
        let is_blank = line.trim().is_empty();
        let is_new = is_after_blank && !is_blank && !line.starts_with([' ', '\t']);
        is_after_blank = is_blank;
        if let Some(name) = name(line) {
            tests.push(FailedTest::named(name));
            is_open = true;
            continue;
        }
        let Some(test) = tests.last_mut().filter(|_| is_open) else { continue };
        let is_other = is_new && !test.message.trim().is_empty() && !continues(line);
        if is_other || ends(line) {
            is_open = false;
        } else {
            test.message.push_str(line);
            test.message.push('\n');
        }
    }
    for test in &mut tests {
        test.message = test.message.trim_matches('\n').trim_end().to_owned();
    }
    once_each(tests)
}

/// Gives each test the message that `find` returns for its name.
fn with_messages(tests: Vec<FailedTest>, find: impl Fn(&str) -> Option<String>) -> Vec<FailedTest> {
    let with = |test: FailedTest| {
        let message = find(&test.name).filter(|message| !message.is_empty()).unwrap_or(test.message);
        FailedTest { message, ..test }
    };
    once_each(tests.into_iter().map(with))
}

/// `test tests::adds ... FAILED`, and `---- tests::adds stdout ----` before the message.
fn cargo(text: &str) -> Vec<FailedTest> {
    let name =
        |line: &str| Some(FailedTest::named(line.trim().strip_prefix("test ")?.strip_suffix(" ... FAILED")?));
    let heading = |line: &str| Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned());
    let ends = |line: &str| line == "failures:" || line.starts_with("test result: ");
    let said = blocks(text, heading, ends);
    let find = |name: &str| said.iter().find(|test| test.name == name).map(|test| test.message.clone());
    with_messages(text.lines().filter_map(name).collect(), find)
}

/// `FAILED tests/test_a.py::test_b - assert …`, and `ERROR …` for tests that failed before they ran. The message is in
/// a block that begins with `____ test_b ____`.
fn pytest(text: &str) -> Vec<FailedTest> {
    let name = |line: &str| {
        let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
        let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        let name = name.trim();
        let is_test = name.contains("::") || name.ends_with(".py");
        is_test.then(|| FailedTest { name: name.to_owned(), message: message.trim().to_owned() })
    };
    let heading = |line: &str| {
        let inside = line.strip_prefix("__")?.strip_suffix("__")?.trim_matches('_').trim();
        (!inside.is_empty() && inside.chars().any(|c| c != '_' && c != ' ')).then(|| inside.to_owned())
    };
    let said = blocks(text, heading, |line| line.starts_with("==="));
    let find = |name: &str| {
        let (file, inner) = name.split_once("::").unwrap_or((name, name));
        let inner = inner.replace("::", ".");
        let is_it = |heading: &str| {
            let last = heading.rsplit(' ').next().unwrap_or(heading);
            heading == inner || last == inner || last == file
        };
        said.iter().find(|test| is_it(&test.name)).map(|test| pytest_message(&test.message))
    };
    with_messages(text.lines().filter_map(name).collect(), find)
}

/// The line that failed, the error and its place, out of the source code that pytest prints around them.
fn pytest_message(block: &str) -> String {
    let is_place = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let file = parts.next().is_some_and(|file| file.ends_with(".py"));
        file && parts.next().is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let is_kept = |line: &&str| line.starts_with("> ") || line.starts_with("E ") || is_place(line);
    let kept: Vec<&str> = block.lines().filter(is_kept).collect();
    if kept.is_empty() { block.to_owned() } else { kept.join("\n") }
}

/// How unittest begins further paragraphs of a message: other exceptions, and the parts of a comparison.
const UNITTEST_PARTS: [&str; 7] =
    ["Traceback ", "The above ", "During ", "First ", "Second ", "Items ", "Diff is "];

/// `FAIL: test_b (tests.test_a.TestA.test_b)`, then the traceback.
fn unittest(text: &str) -> Vec<FailedTest> {
    let name = |line: &str| {
        let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
        Some(rest.trim().to_owned())
    };
    let is_rule = |line: &str| line.len() > 20 && line.chars().all(|c| c == '-');
    // A line of dashes also separates the name from the traceback.
    let text: Vec<&str> = text.lines().filter(|line| !is_rule(line)).collect();
    let ends = |line: &str| line.starts_with("=====") || line.starts_with("Ran ");
    let continues =
        |line: &str| is_difference(line) || UNITTEST_PARTS.iter().any(|part| line.starts_with(part));
    paragraphs(&text.join("\n"), name, ends, continues)
}

/// Whether it is a line of a comparison: expected, received, or a mark below them.
fn is_difference(line: &str) -> bool {
    line.starts_with(['-', '+', '?'])
}

/// `        FAIL [   0.005s] (1/2) package tests::adds`, then the test's output.
fn nextest(text: &str) -> Vec<FailedTest> {
    let name = |line: &str| {
        let (_, rest) = line.trim().strip_prefix("FAIL [")?.split_once(']')?;
        let rest = rest.trim();
        let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((_, behind)) => behind.trim(),
            None => rest,
        };
        Some(rest.to_owned())
    };
    let ends = |line: &str| {
        let line = line.trim();
        ["PASS [", "SLOW [", "SIGKILL [", "SIGABRT [", "Summary [", "Cancelling ", "────"]
            .iter()
            .any(|other| line.starts_with(other))
    };
    blocks(text, name, ends)
}

/// `--- FAIL: TestA (0.00s)`, or the events of `-json`. With `-v` the message is before that line, otherwise after it.
fn go(text: &str) -> Vec<FailedTest> {
    let mut said: HashMap<String, String> = HashMap::new();
    let mut tests = Vec::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(GoEvent { action, test, output }) = GoEvent::read(line) {
            if action == "fail" {
                tests.push(FailedTest::named(test));
            } else if !["=== ", "--- "].iter().any(|marker| output.trim_start().starts_with(marker)) {
                said.entry(test).or_default().push_str(&output);
            }
            continue;
        }
        let words = line.trim_start();
        let second = |rest: &str| rest.split_whitespace().next().map(str::to_owned);
        if let Some(rest) = words.strip_prefix("--- FAIL: ") {
            current = second(rest);
            tests.extend(current.clone().map(FailedTest::named));
        } else if let Some(rest) = words.strip_prefix("=== ") {
            // `=== RUN   TestA`, and `=== NAME  TestA` where the output of that test continues.
            current = rest.split_once(' ').and_then(|(_, name)| second(name));
        } else if ["--- ", "FAIL", "PASS", "ok "].iter().any(|end| words.starts_with(end)) {
            current = None;
        } else if let Some(test) = &current {
            let said = said.entry(test.clone()).or_default();
            said.push_str(line);
            said.push('\n');
        }
    }
    with_messages(tests, |name| said.get(name).map(|said| said.trim_end().to_owned()))
}

/// An event of `go test -json` about a test.
struct GoEvent {
    action: String,
    test: String,
    output: String,
}

impl GoEvent {
    fn read(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let is_event = line.starts_with('{') && line.contains("\"Action\":") && line.contains("\"Test\":");
        let event: serde_json::Value = is_event.then(|| serde_json::from_str(line).ok()).flatten()?;
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        Some(Self {
            action: text("Action")?,
            test: text("Test")?,
            output: text("Output").unwrap_or_default(),
        })
    }
}

/// `not ok 2 - adds`, without the number, which changes when a test is added before it. The message follows it as
/// indented lines or comments. Failed subtests are indented and come before their test.
fn tap(text: &str) -> Vec<FailedTest> {
    let mut tests: Vec<FailedTest> = Vec::new();
    let (mut nested, mut is_nested_failure, mut is_open) = (String::new(), false, false);
    for line in text.lines() {
        let inner = line.trim_start();
        let is_inner = inner.len() < line.len();
        let is_result = inner.starts_with("ok ") || inner.starts_with("not ok ");
        if !is_inner && (is_result || inner == "ok" || inner == "not ok") {
            let name = tap_name(line);
            is_open = name.is_some();
            tests.extend(name.map(|name| FailedTest { name, message: std::mem::take(&mut nested) }));
            nested.clear();
            is_nested_failure = false;
        } else if is_inner && is_result {
            is_open = false;
            is_nested_failure = tap_name(inner).is_some();
            if is_nested_failure {
                nested.push_str(inner);
                nested.push('\n');
            }
        } else if inner.starts_with("# Subtest") || inner.starts_with("1..") {
            (is_open, is_nested_failure) = (is_open && is_inner, false);
        } else if is_open && (is_inner || line.starts_with('#')) {
            if let Some(test) = tests.last_mut() {
                test.message.push_str(line);
                test.message.push('\n');
            }
        } else if is_nested_failure && is_inner {
            nested.push_str(line);
            nested.push('\n');
        } else {
            is_open = false;
        }
    }
    let without_frame = |test: FailedTest| {
        let lines = test.message.lines().filter(|line| !matches!(line.trim(), "---" | "..."));
        let message = lines.collect::<Vec<_>>().join("\n");
        FailedTest { message, ..test }
    };
    once_each(tests.into_iter().map(without_frame))
}

/// The name of a test in a line `not ok …`, unless it is skipped or to do.
fn tap_name(line: &str) -> Option<String> {
    let rest = line.strip_prefix("not ok")?;
    let (rest, directive) = rest.split_once('#').unwrap_or((rest, ""));
    let directive = directive.trim().to_ascii_uppercase();
    if directive.starts_with("SKIP") || directive.starts_with("TODO") {
        return None;
    }
    let name = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    Some(name.strip_prefix("- ").unwrap_or(name).trim().to_owned())
}

/// ` FAIL  src/a.test.ts > adds > two numbers`, then the error.
fn vitest(text: &str) -> Vec<FailedTest> {
    let name = |line: &str| {
        let rest = line.trim().strip_prefix("FAIL ")?.trim();
        rest.contains(" > ").then(|| rest.to_owned())
    };
    let ends = |line: &str| line.trim().starts_with('⎯') || line.trim_start().starts_with("Test Files ");
    paragraphs(text, name, ends, |line| is_difference(line) || line.starts_with(['❯', '→']))
}

/// `  ● adds › two numbers`, then the error.
fn jest(text: &str) -> Vec<FailedTest> {
    let name = |line: &str| Some(line.trim().strip_prefix("● ")?.trim().to_owned());
    let ends =
        |line: &str| ["Test Suites:", "Tests:", "PASS ", "FAIL "].iter().any(|end| line.starts_with(end));
    paragraphs(text, name, ends, |_| false)
}

/// After `1 failing`: `  1) adds`, further parts of the name that are indented more, the last with a colon, then the
/// error.
fn mocha(text: &str) -> Vec<FailedTest> {
    let mut lines = text.lines().skip_while(|line| {
        let count = line.trim().strip_suffix(" failing");
        count.is_none_or(|count| count.parse::<u64>().is_err())
    });
    lines.next();
    let mut tests: Vec<FailedTest> = Vec::new();
    let mut is_name = false;
    for line in lines {
        let numbered = line.trim_start().split_once(") ");
        let numbered = numbered.filter(|(number, _)| number.parse::<u64>().is_ok()).map(|(_, name)| name);
        if let Some(name) = numbered {
            is_name = !name.ends_with(':');
            tests.push(FailedTest::named(name.trim_end_matches(':')));
        } else if let Some(test) = tests.last_mut() {
            if is_name && !line.trim().is_empty() {
                test.name = format!("{} {}", test.name, line.trim().trim_end_matches(':'));
                is_name = !line.trim_end().ends_with(':');
            } else {
                is_name = false;
                test.message.push_str(line);
                test.message.push('\n');
            }
        }
    }
    for test in &mut tests {
        test.message = test.message.trim_matches('\n').trim_end().to_owned();
    }
    once_each(tests)
}

/// `<testcase classname="a" name="b">` with a `<failure` or an `<error` in it.
fn junit(text: &str) -> Vec<FailedTest> {
    let attribute = |tag: &str, key: &str| {
        let (_, rest) = tag.split_once(&format!(" {key}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    let test = |case: &str| {
        let (tag, inside) = case.split_once('>')?;
        let inside = inside.split("</testcase>").next().unwrap_or_default();
        let failure = ["<failure", "<error"].iter().find_map(|kind| Some(inside.split_once(kind)?.1));
        let failure = failure.filter(|_| !tag.ends_with('/'))?;
        let name = attribute(tag, "name")?;
        let (opening, rest) = failure.split_once('>').unwrap_or((failure, ""));
        let said = if opening.ends_with('/') { "" } else { rest.split("</").next().unwrap_or_default() };
        let said = said.trim().trim_start_matches("<![CDATA[").trim_end_matches("]]>").trim();
        let message = attribute(&format!("{opening} "), "message").unwrap_or_default();
        // Most programs repeat the message at the start of the text.
        let parts = if said.starts_with(&message) { vec![said] } else { vec![message.as_str(), said] };
        let message = unescape(parts.join("\n").trim());
        Some(FailedTest {
            name: format!("{}::{name}", attribute(tag, "classname").unwrap_or_default()),
            message,
        })
    };
    once_each(text.split("<testcase").skip(1).filter_map(test))
}

fn unescape(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages that one of the readers finds, by name.
    fn message(output: &str, name: &str) -> String {
        let found = READERS.iter().flat_map(|reader| reader(output));
        let tests: Vec<FailedTest> = found.filter(|test| test.name == name).collect();
        tests.into_iter().map(|test| test.message).find(|message| !message.is_empty()).unwrap_or_default()
    }

    #[test]
    fn failed_tests_and_messages_are_read_from_every_known_program() {
        for (output, name, expected) in [
            (
                "test a::c ... FAILED\n\nfailures:\n\n---- a::c stdout ----\nthread 'a::c' panicked at src/lib.rs:5:9:\nassertion failed: x\n\n\nfailures:\n    a::c\n\ntest result: FAILED.\n",
                "a::c",
                "thread 'a::c' panicked at src/lib.rs:5:9:\nassertion failed: x",
            ),
            (
                "=== FAILURES ===\n____ TestA.test_y[1] ____\n\n    def test_y(self):\n>       assert 1 == 2\nE       assert 1 == 2\n\nt/test_x.py:4: AssertionError\n=== short test summary info ===\nFAILED t/test_x.py::TestA::test_y[1] - assert 1 == 2\n",
                "t/test_x.py::TestA::test_y[1]",
                ">       assert 1 == 2\nE       assert 1 == 2\nt/test_x.py:4: AssertionError",
            ),
            ("FAILED t/test_x.py::test_y - assert 1 == 2\n", "t/test_x.py::test_y", "assert 1 == 2"),
            (
                "======================\nFAIL: test_b (m.A)\n----------------------\nTraceback:\nAssertionError: 1 != 2\n\n----------------------\nRan 2 tests in 0.1s\n",
                "test_b (m.A)",
                "Traceback:\nAssertionError: 1 != 2",
            ),
            (
                "        FAIL [   0.005s] (1/2) pkg tests::adds\n  stdout ───\n    assertion failed\n────────────\n     Summary [   0.5s]\n        FAIL [   0.005s] (1/2) pkg tests::adds\n",
                "pkg tests::adds",
                "  stdout ───\n    assertion failed",
            ),
            ("--- FAIL: TestB (0.00s)\n    b_test.go:5: got 1\nFAIL\n", "TestB", "    b_test.go:5: got 1"),
            (
                "=== RUN   TestB\n    b_test.go:5: got 1\n--- FAIL: TestB (0.00s)\nFAIL\n",
                "TestB",
                "    b_test.go:5: got 1",
            ),
            (
                "{\"Action\":\"output\",\"Test\":\"TestB\",\"Output\":\"    b_test.go:5: got 1\\n\"}\n{\"Action\":\"fail\",\"Test\":\"TestB\"}\n",
                "TestB",
                "    b_test.go:5: got 1",
            ),
            (
                "1..2\nnot ok 1 - creates user\n  ---\n  message: no such column email\n  ...\nok 2 - b\n",
                "creates user",
                "  message: no such column email",
            ),
            (
                "not ok 1 - creates user\n# no such column email\nok 2 - b\n# fine\n",
                "creates user",
                "# no such column email",
            ),
            (
                "# Subtest: users\n    ok 1 - a\n    not ok 2 - create\n      ---\n      error: 'no email'\n      ...\n    1..2\nnot ok 1 - users\n  ---\n  error: '1 subtest failed'\n  ...\n",
                "users",
                "not ok 2 - create\n      error: 'no email'\n  error: '1 subtest failed'",
            ),
            (
                " FAIL  src/a.test.ts > adds > two\nAssertionError: expected 1 to be 2\n ❯ src/a.test.ts:5:13\n⎯⎯⎯⎯[1/1]⎯\n",
                "src/a.test.ts > adds > two",
                "AssertionError: expected 1 to be 2\n ❯ src/a.test.ts:5:13",
            ),
            (
                "  ● adds › two\n\n    expect(received).toBe(2)\n\nTest Suites: 1 failed\n",
                "adds › two",
                "    expect(received).toBe(2)",
            ),
            (
                "  1 passing (5ms)\n  1 failing\n\n  1) adds\n       two:\n\n      AssertionError: 1 == 2\n",
                "adds two",
                "      AssertionError: 1 == 2",
            ),
            (
                "<testcase classname=\"A\" name=\"b\"><failure message=\"1 &lt; 2\">at A.java:4</failure></testcase>",
                "A::b",
                "1 < 2\nat A.java:4",
            ),
        ] {
            assert_eq!(message(output, name), expected, "{output}");
        }
    }

    #[test]
    fn output_after_the_last_failure_is_no_part_of_its_message() {
        for (output, name, expected) in [
            (
                "  ● adds\n\n    expect(1)\n\n      at a.js:4\n\nlater\n",
                "adds",
                "    expect(1)\n\n      at a.js:4",
            ),
            (
                " FAIL  a.ts > adds\nAssertionError: 1\n\n- Expected\n+ Received\n\n- 2\n+ 1\n\n ❯ a.ts:5\n\nlater\n",
                "a.ts > adds",
                "AssertionError: 1\n\n- Expected\n+ Received\n\n- 2\n+ 1\n\n ❯ a.ts:5",
            ),
            (
                "FAIL: test_b (m.A)\nTraceback (most recent call last):\nAssertionError: Lists differ\n\nFirst differing element 0:\n1\n2\n\n- [1]\n+ [2]\n\nlater\n",
                "test_b (m.A)",
                "Traceback (most recent call last):\nAssertionError: Lists differ\n\nFirst differing element 0:\n1\n2\n\n- [1]\n+ [2]",
            ),
        ] {
            assert_eq!(message(output, name), expected, "{output}");
        }
    }

    #[test]
    fn a_failed_test_is_listed_once() {
        let tests = jest("  ● adds\n\n    one\n\nSummary of all failing tests\n  ● adds\n\n    two\n");
        assert_eq!(tests.len(), 1);
    }
}
