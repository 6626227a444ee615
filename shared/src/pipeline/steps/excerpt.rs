//! What the next attempt is told about a failed test command: the failed tests with their messages, or the parts of the
//! output that most likely explain the failure. Pure.

use std::fmt::Write;

use super::{
    counts::read_counts,
    failed_tests::{FailedTest, READERS},
    review_diff::shares,
};
use crate::{
    history::{EXCERPTS, FAILED_TESTS},
    message::{Body, plain_text},
};

/// How many characters of messages are quoted for all tests together.
const MESSAGES: usize = 6000;
/// How many characters of one message are quoted.
const LONGEST_MESSAGE: usize = 2000;
/// How many tests are listed. The rest is counted.
const MOST_TESTS: usize = 50;
/// How many characters of a test's name are shown.
const LONGEST_NAME: usize = 200;
/// How many characters of output are quoted if the failed tests are not known.
const LONGEST_EXCERPTS: usize = 4000;
/// How many of these are the end of the output.
const LONGEST_END: usize = 1000;

/// Describes the failure of a command that printed `output`. The output itself is quoted unless all failed tests are
/// known by name, or none is known and the commit quotes all of a short output anyway (`is_quoted`).
#[must_use]
pub(super) fn describe_failure(output: &str, is_quoted: bool) -> Body {
    let plain = plain_text(output);
    let failed = read_counts(&plain).map(|counts| counts.failed).filter(|failed| *failed > 0);
    let found: Vec<Vec<FailedTest>> = READERS.iter().map(|reader| reader(&plain)).collect();
    let complete = found.iter().find(|tests| Some(tests.len() as u64) == failed);
    let most = found.iter().reduce(|most, tests| if tests.len() > most.len() { tests } else { most });
    let tests = complete.or(most).map(Vec::as_slice).unwrap_or_default();
    let mut body = Body::default();
    if !tests.is_empty() {
        body = body.with(FAILED_TESTS, &list(tests));
    }
    let is_explained = complete.is_some_and(|tests| tests.iter().any(|test| !test.message.is_empty()));
    let is_enough = is_explained || (is_quoted && tests.is_empty());
    let excerpts = if is_enough { String::new() } else { excerpts(&plain) };
    if excerpts.is_empty() { body } else { body.with(EXCERPTS, &excerpts) }
}

/// The names of tests, each with its message below it.
fn list(tests: &[FailedTest]) -> String {
    let shown = &tests[..tests.len().min(MOST_TESTS)];
    let sizes: Vec<usize> =
        shown.iter().map(|test| test.message.chars().count().min(LONGEST_MESSAGE)).collect();
    let mut text = String::new();
    for (test, share) in shown.iter().zip(shares(&sizes, MESSAGES)) {
        let name: String = test.name.chars().take(LONGEST_NAME).collect();
        let _ = writeln!(text, "{name}");
        for line in cut_middle(&test.message, share).lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    if tests.len() > shown.len() {
        let _ = writeln!(text, "[{} more failed tests]", tests.len() - shown.len());
    }
    text
}

/// The whole output if it is short; otherwise the lines around errors and the end, or the beginning and the end.
fn excerpts(output: &str) -> String {
    let output = output.trim_matches('\n');
    if output.chars().count() <= LONGEST_EXCERPTS {
        return output.to_owned();
    }
    let around = lines_around_errors(output);
    if around.is_empty() {
        return cut_middle(output, LONGEST_EXCERPTS);
    }
    let around = cut_middle(&around, LONGEST_EXCERPTS - LONGEST_END);
    let start = output.char_indices().rev().nth(LONGEST_END - 1).map_or(0, |(at, _)| at);
    format!("{around}\n[the end of the output:]\n{}", &output[start..])
}

/// Lines that name an error, with those around them. A gap is marked.
fn lines_around_errors(output: &str) -> String {
    const BEFORE: usize = 2;
    const AFTER: usize = 6;
    let lines: Vec<&str> = output.lines().collect();
    let mut text = String::new();
    let mut next = 0;
    for at in (0..lines.len()).filter(|at| names_error(lines[*at])) {
        let start = at.saturating_sub(BEFORE).max(next);
        let end = (at + AFTER + 1).min(lines.len());
        if start > next {
            text.push_str("[…]\n");
        }
        for line in &lines[start..end.max(start)] {
            text.push_str(line);
            text.push('\n');
        }
        next = end.max(next);
    }
    text
}

/// Whether a line tells of a failure. Summaries such as `0 failed` do not.
fn names_error(line: &str) -> bool {
    let line = line.to_lowercase();
    let is_failure = |word: &str| word.starts_with("fail") || word.starts_with("error");
    let is_clean = || {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).collect();
        words.windows(2).any(|pair| match pair {
            ["0" | "no", word] | [word, "0"] => is_failure(word),
            _ => false,
        })
    };
    ["fail", "error", "panicked", "panic:", "traceback"].iter().any(|word| line.contains(word)) && !is_clean()
}

/// The beginning and the end of a text that is longer than `longest` characters, and how many lines are left out
/// between them. Two thirds are the beginning.
#[must_use]
pub(super) fn cut_middle(text: &str, longest: usize) -> String {
    let count = text.chars().count();
    if count <= longest {
        return text.to_owned();
    }
    let tail = longest / 3;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(longest - tail)], &text[at(count - tail)..]);
    // Whole lines, unless there is only one.
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let tail = tail.find('\n').map_or(tail, |start| &tail[start + 1..]);
    let left = &text[head.len()..text.len() - tail.len()];
    let gap = match left.lines().count() {
        0 | 1 => "[…]".to_owned(),
        lines => format!("[… {lines} lines are left out …]"),
    };
    format!("{}\n{gap}\n{tail}", head.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(body: &Body, heading: &str) -> String {
        let found = body.sections.iter().find(|section| section.heading == heading);
        found.map(|section| section.text.clone()).unwrap_or_default()
    }

    #[test]
    fn an_excerpt_lists_failed_tests_instead_of_output_if_all_are_known() {
        let passing = "ok 2 - a test with a long name\n".repeat(500);
        let output = format!("1..501\nnot ok 1 - creates user\n  ---\n  message: no email\n  ...\n{passing}");
        let body = describe_failure(&output, false);
        assert_eq!(section(&body, FAILED_TESTS), "creates user\n      message: no email");
        assert_eq!(section(&body, EXCERPTS), "");
    }

    #[test]
    fn output_of_an_unknown_program_is_quoted_around_its_errors() {
        let noise = "compiling one thing or another\n".repeat(300);
        let body = describe_failure(
            &format!("{noise}src/a.c:4: error: no such field\n  x.y\n{noise}make: *** [all] stopped\n"),
            false,
        );
        let told = section(&body, EXCERPTS);
        assert!(told.contains("src/a.c:4: error: no such field\n  x.y\n"), "{told}");
        assert!(told.ends_with("make: *** [all] stopped") && told.chars().count() < 4200, "{told}");
        let body = describe_failure(&format!("first\n{noise}last\n"), false);
        let told = section(&body, EXCERPTS);
        assert!(told.starts_with("first\n") && told.ends_with("last"), "{told}");
        assert_eq!(section(&describe_failure("short\n", false), EXCERPTS), "short");
        assert_eq!(describe_failure("short\n", true), Body::default());
        assert_eq!(describe_failure("", false), Body::default());
    }

    #[test]
    fn summaries_without_failures_name_no_error() {
        for line in ["10 failed", "TypeError: x", "thread panicked at a.rs", "FAIL: y", "error[E0425]"] {
            assert!(names_error(line), "{line}");
        }
        for line in ["5 passed; 0 failed", "# fail 0", "no errors found", "all is well"] {
            assert!(!names_error(line), "{line}");
        }
    }

    #[test]
    fn many_long_failure_messages_share_the_space() {
        let test = |n: usize| FailedTest { name: format!("test_{n}"), message: "x y z\n".repeat(1000) };
        let tests: Vec<FailedTest> = (0..80).map(test).collect();
        let text = list(&tests);
        assert!(text.contains("test_49\n") && text.contains("[30 more failed tests]"), "{text}");
        assert!(text.chars().count() < 15_000, "{}", text.len());
    }

    #[test]
    fn a_shortened_text_keeps_its_beginning_and_its_end() {
        assert_eq!(cut_middle("short", 10), "short");
        let lines: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let text = cut_middle(&lines.join("\n"), 90);
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99"), "{text}");
        assert!(text.contains("lines are left out") && text.chars().count() < 130, "{text}");
        assert!(cut_middle(&"x".repeat(100), 30).contains("\n[…]\n"));
    }
}
