//! Feedback about earlier attempts for the next one, read from the commits of the run. Pure.

use std::fmt::Write;

use super::excerpt::cut_middle;
use crate::{
    history::{EXCERPTS, Event, FAILED_TESTS, REFUSED_BY_HOOK},
    message::{Key, Status, Step, plain_text},
};

/// How many characters of feedback a prompt contains.
const LONGEST: usize = 16_000;
/// A failure that would be cut to fewer characters than this is left out.
const SHORTEST_PART: usize = 500;

/// The failures among these events of a task, newest first. `find_log` returns the path of a log that can still be
/// read.
#[must_use]
pub fn feedback<'e>(
    events: impl DoubleEndedIterator<Item = &'e Event>,
    find_log: impl Fn(&str) -> Option<String>,
) -> String {
    // An interruption says nothing about the work, and the end of a task repeats the reason of its last attempt.
    let is_told =
        |event: &&Event| event.is_failure() && !event.is_interruption() && event.status() != Status::Failed;
    let mut text = String::new();
    let mut room = LONGEST;
    let mut left_out = 0;
    for event in events.rev().filter(is_told) {
        let failure = describe(event, &find_log);
        let length = failure.chars().count();
        if left_out > 0 || (length > room && room < SHORTEST_PART) {
            left_out += 1;
            continue;
        }
        let _ = writeln!(text, "{}\n", cut_middle(&failure, room).trim_end());
        room = room.saturating_sub(length);
    }
    if left_out > 0 {
        let _ = writeln!(text, "[{left_out} older failures are left out]");
    }
    text.trim_end().to_owned()
}

/// One failure: what failed, and why.
fn describe(event: &Event, find_log: impl Fn(&str) -> Option<String>) -> String {
    let heading = match event.status().step() {
        Step::Review if event.lacks_verdict() => "Previous review (no verdict)",
        Step::Review => "Previous review (rejected)",
        Step::Test => "Previous test failure",
        _ => "Previous attempt (failed)",
    };
    let mut text = format!("--- {heading} ---\n");
    let sections = event.body().sections;
    let is_specific = |heading: &str| [FAILED_TESTS, EXCERPTS].contains(&heading);
    // The end of the output is worth its room only if nothing better is known.
    let has_specific = sections.iter().any(|section| is_specific(&section.heading));
    let is_output = |heading: &str| heading.starts_with("Test (") && heading.ends_with(" chars):");
    for section in sections.iter().filter(|section| !section.text.is_empty()) {
        if has_specific && is_output(&section.heading) {
            continue;
        }
        if is_specific(&section.heading) || section.heading == REFUSED_BY_HOOK {
            let _ = writeln!(text, "{}", section.heading);
        }
        let _ = writeln!(text, "{}", plain_text(&section.text));
    }
    if let Some(log) = event.trailers.get(Key::TestLog).and_then(find_log) {
        let _ = writeln!(text, "The complete output is in {log}");
    }
    text
}
