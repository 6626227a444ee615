//! The subject line: `task({branch}@{task}@{status}): {text}`.

use std::fmt;

use super::{
    Fault, Status, hidden::is_invisible, nearest::nearest, plain_line, plain_text, trailers::has_control,
};
use crate::name::{Attempt, BranchName, TaskId};

const OPENING: &str = "task(";
const CLOSING: &str = "):";
const LONGEST_NAME: usize = 50;
const LONGEST_TURN: usize = 72;

/// The first line of a task commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The run's branch.
    pub branch: BranchName,
    /// The task; `None` if the commit concerns the whole run.
    pub task: Option<TaskId>,
    /// The status.
    pub status: Status,
    /// The text for people.
    pub text: String,
}

/// The parts of a subject's text.
#[derive(Debug, Clone, Copy)]
pub struct SubjectParts<'a> {
    /// The task's name, or the text of the turn.
    pub name: &'a str,
    /// The attempt that the commit belongs to.
    pub attempt: Attempt,
    /// The number of attempts.
    pub max: u32,
}

impl SubjectParts<'_> {
    /// The text of a subject with this status.
    #[must_use]
    pub fn text(&self, status: Status) -> String {
        let name = one_line(self.name, LONGEST_NAME);
        let (n, max) = (self.attempt.ordinal(), self.max);
        match status {
            Status::RunStart => "run started".into(),
            Status::Plan => format!("plan changed: {name}"),
            Status::Turn => one_line(self.name, LONGEST_TURN),
            Status::ImplementPass => format!("implement \"{name}\""),
            Status::ImplementFail => format!("implement \"{name}\" (failed, attempt {n}/{max})"),
            Status::TestPass => format!("tests pass for \"{name}\""),
            Status::TestFail => format!("tests fail for \"{name}\" (attempt {n}/{max})"),
            Status::ReviewApproved => format!("review approved for \"{name}\""),
            Status::ReviewRejected => format!("review rejected for \"{name}\" (attempt {n}/{max})"),
            Status::Complete => format!("complete \"{name}\""),
            Status::Failed => format!("failed \"{name}\" after {max} retries"),
            Status::Merge => format!("land \"{name}\""),
            Status::Reset => format!("reset \"{name}\""),
        }
    }
}

/// `text` on one line, without control characters, at most `longest` characters.
fn one_line(text: &str, longest: usize) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = plain_line(&spaced);
    let cut: String = line.trim().chars().take(longest).collect();
    match cut.trim() {
        "" => "(no words)".into(),
        words => words.to_owned(),
    }
}

impl Subject {
    /// The task's name between the quotes of the text, if there are any.
    #[must_use]
    pub fn quoted_name(&self) -> Option<&str> {
        let (_, rest) = self.text.split_once('"')?;
        rest.rsplit_once('"').map(|(name, _)| name)
    }

    /// The attempt that the text names, from 1.
    #[must_use]
    pub fn worded_attempt(&self) -> Option<u32> {
        let (_, tail) = self.text.rsplit_once("attempt ")?;
        tail.strip_suffix(')')?.split_once('/')?.0.parse().ok()
    }

    /// Whether `line` has the form of our subjects, even if its parts are wrong.
    #[must_use]
    pub fn has_subject_form(line: &str) -> bool {
        split(line).is_some()
    }

    pub(super) fn parse(line: &str) -> Result<Self, Fault> {
        let fault = |what: String, fix: &str| Err(Fault::new(1, what, fix));
        let Some((branch, task, status, text)) = split(line) else {
            return fault(
                "the subject does not have the form task(branch@task@status): text".into(),
                "start the message with: task(<branch>@<task>@<status>): <text>",
            );
        };
        if !line.is_ascii() && line.contains(is_deceptive) {
            return fault(
                "the subject contains a character that hides or reorders text".into(),
                "type the subject again instead of copying it",
            );
        }
        let Ok(branch) = branch.parse() else {
            return fault(
                format!("'{}' is not a branch name", plain_text(branch)),
                "write the full short name of the run's branch, such as feature/x",
            );
        };
        let Some(status) = Status::of_word(status) else {
            return Err(unknown_status(status));
        };
        let task = parse_task(task, status)?;
        if text.is_empty() || has_control(text) {
            return fault(
                "the text after '): ' is empty or not printable".into(),
                "add a few words after '): '",
            );
        }
        Ok(Self { branch, task, status, text: text.to_owned() })
    }
}

/// A branch may contain `@` and `)` but neither space nor colon. So the first colon ends the bracket, and task and
/// status follow the last two `@` in it.
fn split(line: &str) -> Option<(&str, &str, &str, &str)> {
    let rest = line.strip_prefix(OPENING)?;
    let colon = memchr::memchr(b':', rest.as_bytes())?;
    let inside = rest[..colon].strip_suffix(')')?;
    let text = match &rest[colon + 1..] {
        "" => "",
        text => text.strip_prefix(' ')?,
    };
    let (rest, status) = cut_at_last(inside)?;
    let (branch, task) = cut_at_last(rest)?;
    Some((branch, task, status, text))
}

fn cut_at_last(text: &str) -> Option<(&str, &str)> {
    let at = memchr::memrchr(b'@', text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

/// Characters that could make a subject look like another one.
fn is_deceptive(c: char) -> bool {
    is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

fn unknown_status(status: &str) -> Fault {
    let known = Status::ALL.iter().map(|status| status.as_str());
    let fix = match nearest(status, known.clone()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => format!("use one of: {}", known.collect::<Vec<_>>().join(", ")),
    };
    Fault::new(1, format!("'{}' is not a status", plain_text(status)), fix)
}

fn parse_task(task: &str, status: Status) -> Result<Option<TaskId>, Fault> {
    if !status.names_task() {
        return match task {
            "" => Ok(None),
            _ => Err(Fault::new(
                1,
                format!("a '{status}' commit concerns the whole run and names no task"),
                format!("write: task(<branch>@@{status}): …"),
            )),
        };
    }
    match task.parse() {
        Ok(task) => Ok(Some(task)),
        Err(error) => Err(Fault::new(1, error.to_string(), "name the task by its id, such as T001")),
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.task.as_ref().map_or("", TaskId::as_str);
        write!(f, "{OPENING}{}@{task}@{}{CLOSING} {}", self.branch, self.status, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_with_unusual_characters_is_parsed_from_a_subject() {
        let subject = Subject::parse("task(a@b(c)/ü@T001@complete): complete \"x): y\"").unwrap();
        assert_eq!(subject.branch.as_str(), "a@b(c)/ü");
        assert_eq!(subject.task.as_ref().unwrap().as_str(), "T001");
        assert_eq!(subject.quoted_name(), Some("x): y"));
        assert_eq!(subject.to_string(), "task(a@b(c)/ü@T001@complete): complete \"x): y\"");
    }

    #[test]
    fn conventional_commits_do_not_claim_to_be_ours() {
        for line in [
            "task(ui): fix", "task(ui@2): fix", "task: x", "task(a@b@c) x", "task(a@b@c):x", "feat(a@b@c): x",
        ] {
            assert!(!Subject::has_subject_form(line), "{line}");
        }
    }

    #[test]
    fn names_are_cut_and_made_one_line() {
        let wording = SubjectParts { name: "a\nb\u{1b}[31m\tc", attempt: Attempt(1), max: 5 };
        assert_eq!(wording.text(Status::TestFail), "tests fail for \"a b [31m c\" (attempt 2/5)");
        let long = "ü".repeat(80);
        let wording = SubjectParts { name: &long, attempt: Attempt(0), max: 5 };
        assert_eq!(wording.text(Status::Complete).chars().count(), 50 + "complete \"\"".len());
    }
}
