//! The logs of steps: their names, `{task}_{step}_{time}.log`, and the headings in them. Everything between two
//! headings is what a program printed, redacted.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::{
    agent::EventFormat,
    git::{GitError, Repository},
    message::{Step, one_line},
    name::{Attempt, Oid, SessionId, TaskId},
    safe_files::{self, FileKind},
};

/// The form of the time in names of files.
const TIME: &str = "%Y%m%dT%H%M%S";

/// The longest first line of a log, in bytes.
const LONGEST_HEADING: u64 = 1024;

/// The first line of a log: the step that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepHeading {
    /// The task, or the phase.
    pub task: TaskId,
    /// The step.
    pub step: Step,
    /// The attempt.
    pub attempt: Attempt,
    /// When it began. Names of files are less precise.
    pub started: Timestamp,
    /// The session of the run; `None` in logs of earlier versions.
    pub session: Option<SessionId>,
}

impl StepHeading {
    /// A step of a session that begins now.
    #[must_use]
    pub fn now(session: &SessionId, task: &TaskId, step: Step, attempt: Attempt) -> Self {
        let session = Some(session.clone());
        Self { task: task.clone(), step, attempt, started: Timestamp::now(), session }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = between_marks(line)?.split(", ");
        let (task, step) = parts.next()?.split_once(' ')?;
        let ordinal: u32 = parts.next()?.strip_prefix("attempt ")?.parse().ok()?;
        Some(Self {
            task: task.parse().ok()?,
            step: Step::of_word(step)?,
            attempt: Attempt(ordinal.checked_sub(1)?),
            started: parts.next()?.parse().ok()?,
            session: parts
                .next()
                .and_then(|part| part.strip_prefix("session "))
                .and_then(|id| id.parse().ok()),
        })
    }
}

impl fmt::Display for StepHeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, step, attempt, started, session } = self;
        write!(f, "=== {task} {}, attempt {}, {started}", step.as_str(), attempt.ordinal())?;
        if let Some(session) = session {
            write!(f, ", session {session}")?;
        }
        f.write_str(" ===")
    }
}

/// Creates the log of a step below `home`, and returns its path relative to it. Each step has its own log: if there is
/// one of the same second, the name gets a number.
pub fn create_step_log(home: &Path, log_dir: &str, heading: &StepHeading, now: i64) -> io::Result<String> {
    let time = log_time(now);
    let stem = format!("{}/{}_{}_{time}", log_dir.trim_end_matches('/'), heading.task, heading.step.as_str());
    let (path, mut log) = create_numbered_log(home, &stem)?;
    writeln!(log, "{heading}")?;
    Ok(path)
}

/// Creates the log of a test before a task, and returns its path relative to `home`. `about` tells it from others: a time or
/// a commit.
pub fn create_baseline_log(home: &Path, log_dir: &str, about: &str) -> io::Result<String> {
    let stem = format!("{}/baseline_test_{about}", log_dir.trim_matches('/'));
    create_numbered_log(home, &stem).map(|(path, _)| path)
}

/// A time in the form that names of logs have.
#[must_use]
pub fn log_time(now: i64) -> String {
    Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH).strftime(TIME).to_string()
}

/// Creates a log that no other process writes: if there is one of this name, it gets a number.
fn create_numbered_log(home: &Path, stem: &str) -> io::Result<(String, File)> {
    let mut number = 1;
    loop {
        let path = if number == 1 { format!("{stem}.log") } else { format!("{stem}-{number}.log") };
        if let Some(log) = safe_files::create_log(&home.join(&path))? {
            return Ok((path, log));
        }
        number += 1;
    }
}

/// A heading within the log of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallHeading {
    /// The prompt for a runner follows, with `> ` before each line.
    Prompt {
        /// The runner.
        runner: String,
    },
    /// The output of a runner follows.
    Output {
        /// The runner.
        runner: String,
        /// The format of the output.
        events: EventFormat,
    },
}

impl CallHeading {
    /// Reads a line of a log.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let text = between_marks(line)?;
        if let Some(runner) = text.strip_prefix("prompt for ") {
            return Some(Self::Prompt { runner: runner.to_owned() });
        }
        let (runner, events) = text.strip_prefix("output of ")?.rsplit_once(" (")?;
        let events = events.strip_suffix(" events)")?.parse().ok()?;
        Some(Self::Output { runner: runner.to_owned(), events })
    }
}

impl fmt::Display for CallHeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt { runner } => write!(f, "=== prompt for {runner} ==="),
            Self::Output { runner, events } => write!(f, "=== output of {runner} ({events} events) ==="),
        }
    }
}

/// The beginning of a call in a log: the prompt, which must have passed the redactor, and the heading of the output.
#[must_use]
pub fn call_opening(runner: &str, events: EventFormat, prompt: &str) -> String {
    let runner = runner.to_owned();
    let mut text = format!("{}\n", CallHeading::Prompt { runner: runner.clone() });
    for line in prompt.trim_end().lines() {
        text.push_str(format!("> {line}").trim_end());
        text.push('\n');
    }
    text + &format!("{}\n", CallHeading::Output { runner, events })
}

/// The heading of a test command.
#[must_use]
pub fn command_heading(kind: &str, command: &str) -> String {
    format!("=== {kind} test: {} ===\n", one_line(command))
}

fn between_marks(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("=== ")?.strip_suffix(" ===")
}

/// The log of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLog {
    /// The file.
    pub path: PathBuf,
    /// The task, or the phase.
    pub task: TaskId,
    /// The step.
    pub step: Step,
    /// The attempt; `None` if the log does not begin with a heading.
    pub attempt: Option<Attempt>,
    /// When it began.
    pub started: Timestamp,
    /// The session that wrote it; `None` if the log does not say so.
    pub session: Option<SessionId>,
}

impl StepLog {
    /// The logs in a folder, the oldest first. With `task`, only those of this task.
    pub fn list(folder: &Path, task: Option<&TaskId>) -> io::Result<Vec<Self>> {
        let mut found: Vec<Self> = safe_files::list_kinds(folder)?
            .into_iter()
            .filter_map(|entry| Self::of(entry.path, task))
            .collect();
        // Logs of one second are in the order of their last writes; of two with the same name, one has a number.
        found.sort_by_cached_key(|log| {
            let written = log.path.metadata().and_then(|found| found.modified()).ok();
            (log.started, written, log.path.as_os_str().len(), log.path.clone())
        });
        Ok(found)
    }

    /// The log with this path; `None` if the name has another form, or another task.
    fn of(path: PathBuf, wanted: Option<&TaskId>) -> Option<Self> {
        let (task, step, named) = parse_name(path.file_name()?.to_str()?)?;
        if wanted.is_some_and(|wanted| *wanted != task) {
            return None;
        }
        let heading = first_line(&path).as_deref().and_then(StepHeading::parse);
        let Some(StepHeading { attempt, started, session, .. }) = heading else {
            return Some(Self { path, task, step, attempt: None, started: named, session: None });
        };
        Some(Self { path, task, step, attempt: Some(attempt), started, session })
    }
}

/// A tracked link in the path of the log folder that leads out of the checkout, or to a git directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLink {
    /// The link, relative to the top.
    pub link: PathBuf,
    /// Where the log folder would be.
    pub target: PathBuf,
}

impl LogLink {
    /// Finds such a link in the checkout `top` of a commit. A link made by the user may lead to another disk; a tracked
    /// link was chosen by whoever committed it.
    pub fn find_tracked(
        repository: &Repository,
        top: &Path,
        commit: Oid,
        log_dir: &str,
    ) -> Result<Option<Self>, GitError> {
        let folders: Vec<&Path> = Path::new(log_dir.trim_matches('/')).ancestors().collect();
        let is_link = |folder: &&&Path| safe_files::kind_of(&top.join(folder)) == Some(FileKind::Link);
        // From the top down: nothing below the first link is tracked here.
        let Some(link) = folders.iter().rev().find(is_link) else { return Ok(None) };
        let is_tracked = repository.find_path(commit, &link.to_string_lossy())?.is_some();
        let target = safe_files::resolved(&top.join(folders[0]));
        let git_dirs = [&repository.git_dir, &repository.common_dir];
        let is_in_git_dir = git_dirs.iter().any(|dir| target.starts_with(safe_files::resolved(dir)));
        if !is_tracked || (target.starts_with(safe_files::resolved(top)) && !is_in_git_dir) {
            return Ok(None);
        }
        Ok(Some(Self { link: link.to_path_buf(), target }))
    }
}

fn first_line(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    safe_files::open(path).ok()?.take(LONGEST_HEADING).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// The task, step and time in the name of a log. Both ids and steps may contain an underscore or a dash.
fn parse_name(name: &str) -> Option<(TaskId, Step, Timestamp)> {
    let (rest, time) = name.strip_suffix(".log")?.rsplit_once('_')?;
    let (time, number) = time.split_once('-').unwrap_or((time, "1"));
    number.parse::<u32>().ok()?;
    let time = DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let (task, step) = rest.rsplit_once('_')?;
    let step = Step::of_word(step)?;
    let has_log = matches!(step, Step::Implement | Step::Test | Step::Review);
    Some((task.parse().ok().filter(|_| has_log)?, step, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_headings_survive_printing_and_parsing() {
        let (session, task) = ("1a2b3c4d".parse().unwrap(), "T001".parse().unwrap());
        let heading = StepHeading::now(&session, &task, Step::Test, Attempt(2));
        let of_earlier_version = StepHeading { session: None, ..heading.clone() };
        for heading in [heading, of_earlier_version] {
            assert_eq!(StepHeading::parse(&heading.to_string()), Some(heading));
        }
        let runner = "my (own) robot".to_owned();
        let headings = [
            CallHeading::Prompt { runner: runner.clone() },
            CallHeading::Output { runner, events: EventFormat::Claude },
        ];
        for heading in headings {
            assert_eq!(CallHeading::parse(&heading.to_string()), Some(heading));
        }
        for other in ["", "=== FAILURES ===", "=== T001 test ===", "=== output of x (odd events) ==="] {
            assert_eq!((StepHeading::parse(other), CallHeading::parse(other)), (None, None), "{other}");
        }
    }

    #[test]
    fn names_of_step_logs_are_distinguished_from_other_files() {
        for (name, task) in [
            ("T1_test_20250216T143022.log", Some("T1")),
            ("a_b_review_20250216T143022-12.log", Some("a_b")),
            ("T1_commit-message_20250216T143022.1.log", None),
            ("T1_run_20250216T143022.log", None),
            ("T1_test_20250216.log", None),
            ("T1_test_20250216T143022.prompt", None),
            ("gate-x_20250216T143022.log", None),
        ] {
            let found = parse_name(name).map(|(task, ..)| task.to_string());
            assert_eq!(found.as_deref(), task, "{name}");
        }
    }
}
