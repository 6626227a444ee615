//! The baseline: the test command on the tree that no task has touched yet. A suite that is red before would use up every
//! attempt of every task.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{GardenerError, project};
use crate::{
    agent::redact::{Redactor, Secrets},
    git::{OtherWriters, Repository, TrackedFiles},
    message::{self, Body, Key, Message, MessageReading, Status},
    name::Oid,
    pipeline::{ConfigGuard, KnownRed, Neighbours, Observed, PipelineError, Redaction, TO_BE_MENDED},
    process::{Cancel, Ending, Limits, OrphanLock, Program, Supervised, SupervisedEnd},
    queue::ran_no_tests,
    safe_files,
};

/// So many commits are looked at for a test that passed: a review, an end, and the starts of runs may lie behind it.
const FARTHEST: usize = 16;
/// How much of the output is read for counts and names.
const TAIL: usize = 64 * 1024;

/// A test command, and where it is run.
#[derive(Debug)]
pub struct Probe<'a> {
    /// For a shell.
    pub command: &'a str,
    /// Where.
    pub dir: &'a Path,
    /// The worktree that it runs in, and others of the run.
    pub places: Vec<&'a Repository>,
    /// Puts back what it may not change.
    pub config_guard: &'a ConfigGuard,
    /// What it finds in its environment.
    pub environment: Vec<(String, String)>,
    /// How long it may take.
    pub limit: Duration,
    /// Where all of its output goes.
    pub log: PathBuf,
    /// What must not be written down.
    pub secrets: &'a Secrets,
    /// The wish to stop.
    pub cancel: &'a Cancel,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The tests pass.
    Green(Observed),
    /// There are no tests yet, for this reason.
    NoTests(String),
    /// They fail, or could not be run.
    Red {
        /// Why, in one line.
        why: String,
        /// What could be read.
        observed: Observed,
    },
    /// They changed what belongs to the run, whatever else came of them. It has been put back, and this says what it was.
    Trespass(String),
}

impl Probe<'_> {
    /// Runs the command.
    pub fn run(&self, orphan_lock: &mut OrphanLock) -> Result<Baseline, GardenerError> {
        let program = Program::new("sh").args(["-c", self.command]).dir(self.dir);
        let program =
            self.environment.iter().fold(program, |program, (name, value)| program.env(name, value));
        let file = safe_files::open_log(&self.log).map_err(|source| GardenerError::Log {
            path: self.log.display().to_string(),
            why: source.to_string(),
        })?;
        let supervised = Supervised::new(program)
            .limits(Limits { whole: Some(self.limit), ..Limits::default() })
            .until(self.cancel)
            .log(file)
            .tail(TAIL)
            .filter(Redaction::new(self.secrets))
            .with_orphan_lock(orphan_lock);
        let neighbours = self.places.first().map(|place| Neighbours::count(place));
        let before = neighbours.and_then(|neighbours| self.look(neighbours));
        let (ended, trespass) = self.config_guard.guard_all(&self.places, || supervised.run(|_| {}));
        let company = neighbours.map(|neighbours| neighbours.since(self.places.len()));
        if let (Some((place, before)), Some(OtherWriters::Alone)) = (before, company) {
            place.learn_own_writes(&before)?;
        }
        if matches!(ended.ending, Ending::Cancelled) {
            return Err(PipelineError::stopped(self.cancel).into());
        }
        Ok(trespass.map_or_else(|| self.judge(&ended), Baseline::Trespass))
    }

    /// The tracked files of the place that it runs in, if no other child process is running.
    fn look(&self, neighbours: Neighbours<'_>) -> Option<(&Repository, TrackedFiles)> {
        let place = *self.places.first().filter(|_| neighbours.now() == OtherWriters::Alone)?;
        let tree = place.tree_of(place.find_commit("HEAD").ok()??).ok()?;
        Some((place, place.look_at_tracked(tree, OtherWriters::Alone).ok()?))
    }

    fn judge(&self, ended: &SupervisedEnd) -> Baseline {
        let observed = Observed::of(ended);
        let said = format!("{}\n{}", ended.stdout.text, ended.stderr.text);
        let command = Redactor::redact(self.secrets, self.command);
        if matches!(ended.ending, Ending::Exited(_)) {
            if ran_no_tests(&said) || project::says_so(&said) {
                return Baseline::NoTests(format!("'{command}' finds no tests"));
            }
            let missing = project::find_missing(self.command, self.dir);
            if let Some(file) = missing.filter(|_| !ended.ending.is_success()) {
                return Baseline::NoTests(format!("'{command}' finds no {file}"));
            }
        }
        if ended.ending.is_success() {
            return Baseline::Green(observed);
        }
        let counts = observed.counts.filter(|counts| counts.failed > 0);
        let counts = counts
            .map_or(String::new(), |counts| format!(" ({} failed, {} passed)", counts.failed, counts.passed));
        let is_missing = matches!(ended.ending, Ending::Exited(126 | 127) | Ending::NotStarted(_));
        let missing = if is_missing { ": is the command there?" } else { "" };
        Baseline::Red { why: format!("'{command}' {}{counts}{missing}", ended.ending), observed }
    }
}

/// Whether the tests of this commit have passed: it is the end of a task, or a landing that the test command let through.
/// What follows a passed test up to the end of its task adds only a report. Where history cannot be read, nobody knows.
#[must_use]
pub fn has_passed(repository: &Repository, commit: Oid) -> bool {
    let mut next = Some(commit);
    for _ in 0..FARTHEST {
        let Some(Ok(found)) = next.map(|commit| repository.load_commits(&[commit])) else { return false };
        let Some(raw) = found.first() else { return false };
        let MessageReading::Sound(message) = message::read(raw.message()) else { return false };
        match message.subject.status {
            Status::TestPass => return is_proof(&message),
            Status::Merge => {
                let gates = message.trailers.get(Key::Gate).unwrap_or_default();
                return gates.split(", ").any(|gate| gate == "test");
            }
            Status::Complete | Status::ReviewApproved | Status::RunStart => next = raw.parents().next(),
            _ => return false,
        }
    }
    false
}

/// A test without a command proves nothing, and neither does one that was passed by failing.
fn is_proof(message: &Message) -> bool {
    let body = Body::parse(&message.body);
    let is_red = KnownRed::read(&body, TO_BE_MENDED).is_some_and(|known| !known.is_empty());
    !is_red && !message.subject.text.ends_with("(no test command)")
}
