//! Reads a message by fixed rules that no configuration can change. A message that claims to be ours is sound, which
//! means exactly what we would have written, or it has faults and does not count.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Key, Message, Status, Subject, Trailers,
    nearest::nearest,
    plain_line,
    recognise::{claims_to_be_ours, looks_ours},
};

/// The result of reading a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageReading {
    /// It does not claim to be ours.
    Foreign,
    /// It claims to be ours and is not sound. There is at least one fault, in the order of lines. The reader stops at
    /// [`Fault::MAX_REPORTED`] of them.
    Malformed(Vec<Fault>),
    /// It is ours.
    WellFormed(Box<Message>),
}

/// The line at which git stops reading a message.
pub(super) const SCISSORS: &str = "------------------------ >8 ------------------------";

/// Trailers that people and tools add after ours.
const ALLOWED_AFTER: [&str; 3] = ["signed-off-by", "co-authored-by", "change-id"];
/// The shortest part of one of our lines that is not its value.
const SHORTEST_KEY: usize = "Arborist-: ".len();
const CHERRY_PICK: &str = "(cherry picked from commit ";

/// What an `Arborist-` trailer means that this version does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownTrailer {
    /// Nothing: a newer version may have written it.
    Ignored,
    /// A typing error.
    Fault,
}

/// Reads a message. `Arborist-` trailers that this version does not know are ignored.
#[must_use]
pub fn read(message: &[u8]) -> MessageReading {
    read_with(message, UnknownTrailer::Ignored)
}

/// Reads a message to check it: `Arborist-` trailers that this version does not know are faults.
#[must_use]
pub fn read_to_check(message: &[u8]) -> MessageReading {
    read_with(message, UnknownTrailer::Fault)
}

fn read_with(message: &[u8], unknown: UnknownTrailer) -> MessageReading {
    if !claims_to_be_ours(message) {
        return MessageReading::Foreign;
    }
    let line_at = |offset: usize| 1 + memchr::memchr_iter(b'\n', &message[..offset]).count();
    if let Some(at) = memchr::memchr(0, message) {
        return MessageReading::Malformed(vec![Fault::new(
            line_at(at),
            "a NUL byte: git ends the message there",
            "remove the byte",
        )]);
    }
    match std::str::from_utf8(message) {
        Ok(text) => Reader::new(text, unknown).read(),
        Err(error) => {
            let line = line_at(error.valid_up_to());
            MessageReading::Malformed(vec![Fault::new(
                line,
                "bytes that are not UTF-8",
                "write the message in UTF-8",
            )])
        }
    }
}

/// One pass over the lines of a message that claims to be ours.
struct Reader<'a> {
    lines: Vec<&'a str>,
    /// Index of the subject: the first line that is not empty.
    subject: usize,
    /// Index of the first line of the last paragraph; the number of lines if there is no such paragraph.
    block: usize,
    faults: Vec<Fault>,
    trailers: Trailers,
    foreign: Vec<String>,
    unknown: UnknownTrailer,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, unknown: UnknownTrailer) -> Self {
        let mut lines = Vec::with_capacity(32);
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
            lines.push(without_trailing_space(&text[from..end]));
            from = end + 1;
        }
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        let subject = lines.iter().position(|line| !line.is_empty()).unwrap_or(0);
        let block = match lines.iter().rposition(|line| line.is_empty()) {
            Some(at) if at > subject => at + 1,
            _ => lines.len(),
        };
        let bytes = lines[block..].iter().map(|line| line.len().saturating_sub(SHORTEST_KEY)).sum();
        let trailers = Trailers::with_capacity(lines.len() - block, bytes);
        Self { lines, subject, block, faults: Vec::new(), trailers, foreign: Vec::new(), unknown }
    }

    fn fault(&mut self, line: usize, what: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault::new(line, what, fix));
    }

    /// Whether so much is wrong that the rest need not be read.
    fn is_hopeless(&self) -> bool {
        self.faults.len() >= Fault::MAX_REPORTED
    }

    fn read(mut self) -> MessageReading {
        let subject = self.read_subject();
        self.check_before_block();
        self.read_block();
        if let Some(subject) = subject.as_ref().filter(|_| !self.is_hopeless()) {
            self.check_required(subject);
            self.check_agreement(subject);
            self.check_attempt(subject);
            self.check_interruption(subject);
            self.check_count(subject);
        }
        self.faults.truncate(Fault::MAX_REPORTED);
        self.faults.sort_by_key(|fault| fault.line);
        match subject {
            Some(subject) if self.faults.is_empty() => {
                MessageReading::WellFormed(Box::new(self.into_message(subject)))
            }
            _ => MessageReading::Malformed(self.faults),
        }
    }

    fn into_message(self, subject: Subject) -> Message {
        let between = self.lines.get(2..self.block).unwrap_or_default();
        let end = between.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        Message { subject, body: between[..end].join("\n"), trailers: self.trailers, foreign: self.foreign }
    }

    fn read_subject(&mut self) -> Option<Subject> {
        if self.subject > 0 {
            self.fault(
                1,
                "empty lines before the subject",
                "start the message with its subject, and commit it without --cleanup=verbatim",
            );
        }
        match Subject::parse(self.lines.get(self.subject).unwrap_or(&"")) {
            Ok(subject) => Some(subject),
            Err(fault) => {
                self.faults.push(Fault { line: self.subject + 1, ..fault });
                None
            }
        }
    }

    /// Lines before the block may be anything that no reader can mistake for a trailer.
    fn check_before_block(&mut self) {
        let first = self.subject + 1;
        if self.lines.get(first).is_some_and(|line| !line.is_empty()) {
            self.fault(
                first + 1,
                "the line after the subject is not empty, so git reads no trailers below it",
                "put an empty line after the subject",
            );
        }
        for at in first..self.block {
            if self.is_hopeless() {
                return;
            }
            let line = self.lines[at];
            if looks_ours(line.as_bytes()) {
                self.fault(
                    at + 1,
                    "a trailer outside of the last paragraph, where git does not read it",
                    "move it into the last paragraph, or quote the line with '> '",
                );
            } else if line == "---" || line.starts_with("--- ") || line.starts_with("---\t") {
                self.fault(
                    at + 1,
                    "a line '---', where some programs end the message",
                    "quote the line with '> '",
                );
            } else if line.strip_prefix("# ") == Some(SCISSORS) {
                self.fault(
                    at + 1,
                    "git's scissors line, where git ends the message",
                    "quote the line with '> '",
                );
            }
        }
    }

    fn read_block(&mut self) {
        for at in self.block..self.lines.len() {
            if self.is_hopeless() {
                return;
            }
            self.read_trailer(at + 1, self.lines[at]);
        }
    }

    fn read_trailer(&mut self, number: usize, line: &str) {
        if line.starts_with(CHERRY_PICK) && line.ends_with(')') {
            return self.foreign.push(line.to_owned());
        }
        let Some((name, value)) = split_trailer(line) else {
            return self.fault(number, format!("'{}' is not a trailer", shown(line)), "leave only lines 'Key: value' in the last paragraph; put an empty line between text and trailers");
        };
        if let Ok(key) = name.parse::<Key>() {
            self.take(number, key, value);
        } else if name.to_ascii_lowercase().starts_with("arborist-") {
            // git reads 'arborist-result' as 'Arborist-Result', so another spelling is never ignored.
            let is_known = Key::ALL.iter().any(|key| key.as_str().eq_ignore_ascii_case(name));
            if self.unknown == UnknownTrailer::Ignored && !is_known {
                return;
            }
            self.fault(
                number,
                format!("'{}' is not a trailer of git arborist", shown(name)),
                match nearest(name, Key::ALL.iter().map(|key| key.as_str())) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => "remove the line".into(),
                },
            );
        } else if ALLOWED_AFTER.contains(&name.to_ascii_lowercase().as_str()) {
            self.foreign.push(line.to_owned());
        } else {
            self.fault(number, format!("'{}' is not allowed among the trailers of git arborist", shown(name)), "only Signed-off-by, Co-authored-by and Change-Id may follow them; move it above, with an empty line between");
        }
    }

    fn take(&mut self, number: usize, key: Key, value: &str) {
        let name = key.as_str();
        if !self.foreign.is_empty() {
            self.fault(
                number,
                format!("'{name}' comes after other trailers"),
                "put the trailers of git arborist first",
            );
        }
        if self.trailers.get(key).is_some() {
            self.fault(number, format!("'{name}' occurs twice"), "keep one of the two lines");
        } else if let Err(expected) = self.trailers.set(key, value) {
            self.fault(
                number,
                format!("'{}' is not a valid value of {name}", shown(value)),
                format!("write: {name}: <{expected}>"),
            );
        }
    }

    fn check_required(&mut self, subject: &Subject) {
        let end = self.lines.len();
        // An illegal value was already reported.
        let is_there = |key: &Key| {
            let mut lines = self.lines[self.block..].iter();
            lines.any(|line| split_trailer(line).is_some_and(|(found, _)| found == key.as_str()))
        };
        let missing: Vec<Key> =
            subject.status.required().iter().copied().filter(|key| !is_there(key)).collect();
        if missing.is_empty() {
            return;
        }
        let (are, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
        let names: Vec<String> = missing.iter().map(|key| format!("'{}'", key.as_str())).collect();
        let names = match names.split_last() {
            Some((last, before @ [_, ..])) => format!("{} and {last}", before.join(", ")),
            _ => names.concat(),
        };
        let lines = missing.iter().map(|key| match implied_value(*key, subject) {
            Some(value) => format!("\n  {}: {value}", key.as_str()),
            None => format!("\n  {}: <{}>", key.as_str(), key.check("").err().unwrap_or("value")),
        });
        // Without an empty line before it, a trailer would be part of the subject.
        let place = match self.block < end {
            true => "add to the last paragraph:",
            false => "add this as the last paragraph of the message, below an empty line:",
        };
        let fix = format!("{place}{}", lines.collect::<String>());
        let what =
            format!("{names} {are} missing: a commit with the status '{}' must have {them}", subject.status);
        self.faults.push(Fault { is_missing: true, ..Fault::new(end, what, fix) });
    }

    fn check_agreement(&mut self, subject: &Subject) {
        for key in [Key::Step, Key::Result, Key::Test, Key::Review] {
            let (name, expected) = (key.as_str(), implied_value(key, subject));
            match (self.trailers.get(key), expected) {
                (Some(found), Some(expected)) if found != expected => {
                    let (line, found) = (self.line_of(key), found.to_owned());
                    self.fault(
                        line,
                        format!("'{name}: {found}' does not agree with the status '{}'", subject.status),
                        format!("write: {name}: {expected}"),
                    );
                }
                (Some(_), None) => {
                    let line = self.line_of(key);
                    self.fault(
                        line,
                        format!("'{name}' does not belong to a commit with the status '{}'", subject.status),
                        "remove the line",
                    );
                }
                _ => {}
            }
        }
    }

    /// Only failures have the number of the attempt in their text.
    fn check_attempt(&mut self, subject: &Subject) {
        if !matches!(subject.status.outcome(), Some((_, "fail" | "rejected"))) {
            return;
        }
        let (Some(worded), Some(attempt)) = (subject.worded_attempt(), self.trailers.attempt()) else {
            return;
        };
        if worded != attempt.ordinal() {
            let line = self.line_of(Key::Retry);
            self.fault(
                line,
                format!(
                    "'{}: {attempt}' does not agree with attempt {worded} in the subject",
                    Key::Retry.as_str()
                ),
                format!("write: {}: {}", Key::Retry.as_str(), worded.saturating_sub(1)),
            );
        }
    }

    /// Only an attempt can be interrupted: with any other status the trailer would contradict the status.
    fn check_interruption(&mut self, subject: &Subject) {
        let key = Key::Interrupted;
        if self.trailers.get(key).is_some() && subject.status != Status::ImplementFail {
            let line = self.line_of(key);
            self.fault(
                line,
                format!(
                    "'{}' does not belong to a commit with the status '{}'",
                    key.as_str(),
                    subject.status
                ),
                "remove the line",
            );
        }
    }

    /// If the tests passed, no test can have failed.
    fn check_count(&mut self, subject: &Subject) {
        let failed = self.trailers.get(Key::TestFailed).filter(|count| *count != "0").map(str::to_owned);
        if let (Status::TestPass, Some(failed)) = (subject.status, failed) {
            let (line, name) = (self.line_of(Key::TestFailed), Key::TestFailed.as_str());
            self.fault(
                line,
                format!("'{name}: {failed}' does not agree with the status '{}'", subject.status),
                format!("write: {name}: 0, or make it a '{}' commit", Status::TestFail),
            );
        }
    }

    fn line_of(&self, key: Key) -> usize {
        let at = self.lines[self.block..]
            .iter()
            .position(|line| split_trailer(line).is_some_and(|(name, _)| name == key.as_str()));
        self.block + at.unwrap_or(0) + 1
    }
}

fn without_trailing_space(line: &str) -> &str {
    let end = line.bytes().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).map_or(0, |at| at + 1);
    &line[..end]
}

/// The value that the status in the subject requires, if it requires one.
fn implied_value(key: Key, subject: &Subject) -> Option<&'static str> {
    if key == Key::Step {
        return Some(subject.status.step().as_str());
    }
    subject.status.outcome().filter(|(outcome, _)| *outcome == key).map(|(_, value)| value)
}

/// Splits a line of exactly the form that we write: `Key: value`.
fn split_trailer(line: &str) -> Option<(&str, &str)> {
    let colon = memchr::memchr(b':', line.as_bytes())?;
    let (name, value) = (&line[..colon], line[colon + 1..].strip_prefix(' ')?);
    let is_key =
        !name.is_empty() && name.bytes().fold(true, |ok, b| ok & (b.is_ascii_alphanumeric() | (b == b'-')));
    let is_value = !value.is_empty() && !value.starts_with([' ', '\t']);
    (is_key && is_value).then_some((name, value))
}

/// Foreign text in one of our messages: plain and short.
fn shown(text: &str) -> String {
    let plain = plain_line(text);
    if plain.chars().count() <= 60 {
        return plain;
    }
    plain.chars().take(59).chain(['…']).collect()
}

/// One fault: the line, what is wrong, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fault {
    /// The line of the message, from 1. For something missing, the line after which it belongs.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// How to correct it.
    pub fix: String,
    /// Whether something is missing, so that no line is wrong.
    #[serde(skip)]
    pub is_missing: bool,
}

impl Fault {
    /// How many faults of one message are reported. A message may have as many as it has lines, and nobody fixes more
    /// at a time.
    pub const MAX_REPORTED: usize = 50;

    pub(crate) fn new(line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { line, what: what.into(), fix: fix.into(), is_missing: false }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_missing {
            true => f.write_str(&self.what),
            false => write!(f, "line {}: {}", self.line, self.what),
        }
    }
}
