//! Tests that are known to fail: because they failed before a run that was allowed to begin, or because a task wrote
//! them to fail first. They are recorded in the driver's own commits and read from there, never from a file.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    git::{GitError, Repository},
    history::Run,
    message::{self, Body, MessageReading, Status},
    name::TaskId,
    pipeline::{Counts, TestObservation},
};

/// The heading over tests that failed before a run began, in its first commit.
pub const BEFORE_THE_RUN: &str = "Tests before the run";
/// The heading over tests that a task wrote to fail first, in the commit of its test step.
pub const EXPECTED_FAILURES: &str = "Tests that must fail until a later task makes them pass";
/// The heading's addition if only the exit code is known.
const EXIT_CODE_ONLY: &str = "exit code only";

/// Tests that are known to fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KnownRed {
    names: BTreeSet<String>,
    failed: u64,
    /// The smallest number of other tests that passed.
    passed: u64,
    /// Whether only the exit code is known.
    is_unread: bool,
}

impl KnownRed {
    /// The tests that failed in this run of a command.
    #[must_use]
    pub fn of(observed: &TestObservation) -> Self {
        let Counts { passed, failed, .. } = observed.counts.unwrap_or_default();
        let names = observed.failing.clone().unwrap_or_default();
        Self { names, failed, passed, is_unread: false }
    }

    /// No known failures, and this many tests passed.
    #[must_use]
    pub fn none_of(passed: u64) -> Self {
        Self { passed, ..Self::default() }
    }

    /// Whether no test is known to fail.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.failed == 0 && !self.is_unread
    }

    /// Whether only the exit code says that something fails.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// The tests that failed before a run began, according to its newest start or accepted plan change.
    pub fn before_run(repository: &Repository, run: &Run) -> Result<Self, GitError> {
        let Some(start) = &run.start else { return Ok(Self::default()) };
        for commit in repository.load_commits(&[start.accepted, start.commit])? {
            if let MessageReading::WellFormed(message) = message::read(commit.message())
                && let Some(known) = Self::read(&Body::parse(&message.body), BEFORE_THE_RUN)
            {
                return Ok(known);
            }
        }
        Ok(Self::default())
    }

    /// The tests that a task wrote to fail, as recorded in its test commit.
    #[must_use]
    pub fn of_task(run: &Run, task: &TaskId) -> Option<Self> {
        let passed = run.find(task)?.events.iter().rfind(|event| event.status() == Status::TestPass)?;
        Self::read(&passed.body(), EXPECTED_FAILURES)
    }

    /// The number of tests that are known to fail.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.failed
    }

    /// All known failures of both.
    #[must_use]
    pub fn join(self, other: &Self) -> Self {
        let is_named = self.is_named() && other.is_named();
        let names: BTreeSet<String> =
            if is_named { self.names.union(&other.names).cloned().collect() } else { BTreeSet::new() };
        let failed = if is_named { names.len() as u64 } else { self.failed + other.failed };
        let is_unread = self.is_unread || other.is_unread;
        Self { names, failed, passed: self.passed.max(other.passed), is_unread }
    }

    /// Whether a command failed only because of these tests. Output without counts is not excused, because a suite that
    /// does not compile has no failing test either. Neither is a smaller number of passing tests, whatever their names
    /// are.
    #[must_use]
    pub fn excuses(&self, now: &TestObservation) -> bool {
        let Some(counts) = now.counts else {
            return self.is_unread && now.is_red();
        };
        if self.is_empty() || !now.is_red() || counts.failed == 0 || counts.passed < self.passed {
            return false;
        }
        match &now.failing {
            Some(failing) if self.is_named() => failing.is_subset(&self.names),
            _ => counts.failed <= self.failed,
        }
    }

    /// Returns the tests that a task wrote to fail first. `self` is the state before, `added` are the lines that the
    /// task added. `Err` says what is wrong with them.
    pub fn require_new(&self, now: &TestObservation, added: &str) -> Result<Self, String> {
        if now.code == Some(0) {
            return Err("the new tests pass, but the tests of a task marked [red] must fail first".to_owned());
        }
        let Some(counts) = now.counts else {
            return Ok(Self { is_unread: true, ..Self::default() });
        };
        if counts.passed < self.passed {
            let (now, before) = (counts.passed, self.passed);
            return Err(format!(
                "only new tests may fail, but {now} tests pass now and {before} passed before"
            ));
        }
        let Some(failing) = now.failing.as_ref().filter(|_| self.is_named()) else {
            return match counts.failed.checked_sub(self.failed) {
                None | Some(0) => Err("no new test fails".to_owned()),
                Some(failed) => {
                    Ok(Self { failed, passed: counts.passed, names: BTreeSet::new(), is_unread: false })
                }
            };
        };
        let names: BTreeSet<String> = failing.difference(&self.names).cloned().collect();
        if let Some(old) = names.iter().find(|name| !added.contains(last_part(name))) {
            return Err(format!("'{old}' fails, but this task did not add it"));
        }
        match names.len() as u64 {
            0 => Err("no new test fails".to_owned()),
            failed => Ok(Self { names, failed, passed: counts.passed, is_unread: false }),
        }
    }

    /// A section of a commit message.
    #[must_use]
    pub fn quoted(&self, heading: &str) -> Body {
        let mut stated = String::new();
        let _ = match self.is_unread {
            true => write!(stated, "{heading} ({EXIT_CODE_ONLY}):"),
            false => write!(stated, "{heading} ({} failed, {} passed):", self.failed, self.passed),
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        Body::new(&stated, &names.join("\n"))
    }

    /// Reads the section with this heading.
    #[must_use]
    pub fn read(body: &Body, heading: &str) -> Option<Self> {
        let section = body.sections.iter().find(|section| section.heading.starts_with(heading))?;
        let (_, stated) = section.heading.rsplit_once('(')?;
        let stated = stated.split(')').next().unwrap_or_default();
        if stated == EXIT_CODE_ONLY {
            return Some(Self { is_unread: true, ..Self::default() });
        }
        let number = |part: &str, word: &str| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok();
        let (failed, passed) = stated.split_once(',')?;
        let (failed, passed) = (number(failed, "failed")?, number(passed, "passed")?);
        let names: BTreeSet<String> = section.text.lines().map(str::to_owned).collect();
        let is_whole = names.len() as u64 == failed;
        Some(Self { names: if is_whole { names } else { BTreeSet::new() }, failed, passed, is_unread: false })
    }

    /// Whether the names of all of them are known.
    fn is_named(&self) -> bool {
        !self.is_unread && self.names.len() as u64 == self.failed
    }
}

/// The part of a test's name that appears in its source: `test_y` of `t/test_x.py::test_y[1]`.
fn last_part(name: &str) -> &str {
    let name = [" (", "["].iter().fold(name, |name, cut| name.split(cut).next().unwrap_or(name));
    let parts = ["::", " > ", " › ", "/", " "];
    parts.iter().fold(name, |name, cut| match *cut {
        // A sentence is a whole name; a package before a path is not part of the name.
        " " if !name.contains("::") => name,
        cut => name.rsplit(cut).next().unwrap_or(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(names: &[&str], passed: u64) -> TestObservation {
        let counts = Counts { passed, failed: names.len() as u64, skipped: 0 };
        let failing = names.iter().map(|name| (*name).to_owned()).collect();
        TestObservation {
            code: Some(1),
            counts: Some(counts),
            failing: Some(failing),
            ..TestObservation::default()
        }
    }

    fn unnamed(failed: u64, passed: u64) -> TestObservation {
        let counts = Some(Counts { passed, failed, skipped: 0 });
        TestObservation { code: Some(1), counts, ..TestObservation::default() }
    }

    #[test]
    fn only_tests_that_failed_before_are_excused() {
        let known = KnownRed::of(&observed(&["a", "b"], 10));
        for (now, is_excused) in [
            (observed(&["a", "b"], 10), true),
            (observed(&["a"], 12), true),
            (observed(&["a", "c"], 10), false),
            (observed(&["a", "b", "c"], 10), false),
            (observed(&["a", "b"], 9), false),
            (observed(&[], 12), false),
            (unnamed(2, 10), true),
            (unnamed(3, 10), false),
            (TestObservation { code: Some(1), ..TestObservation::default() }, false),
            (TestObservation { code: Some(127), ..observed(&["a"], 10) }, false),
            (TestObservation { code: None, ..observed(&["a"], 10) }, false),
        ] {
            assert_eq!(known.excuses(&now), is_excused, "{now:?}");
        }
        assert!(!KnownRed::none_of(3).excuses(&observed(&["a"], 3)));
    }

    #[test]
    fn a_task_that_is_marked_red_has_to_add_failing_tests_and_break_no_others() {
        let before = KnownRed::none_of(3);
        let added = "+def test_new():\n+    assert add(1, 2) == 3\n";
        let red = |names: &[&str], passed: u64| before.require_new(&observed(names, passed), added);
        assert_eq!(red(&["t.py::test_new"], 3).unwrap().count(), 1);
        assert!(red(&["t.py::test_old"], 3).is_err(), "an old test");
        assert!(red(&["t.py::test_new"], 2).is_err(), "one passes no more");
        assert!(
            before
                .require_new(&TestObservation { code: Some(0), ..TestObservation::default() }, added)
                .is_err()
        );
        assert_eq!(before.require_new(&unnamed(2, 3), added).unwrap().count(), 2);
        let known = KnownRed::of(&observed(&["t.py::test_a"], 3));
        assert!(known.require_new(&observed(&["t.py::test_a"], 3), added).is_err(), "nothing new");
        assert!(known.require_new(&unnamed(1, 3), added).is_err(), "nothing new");
    }

    #[test]
    fn known_red_tests_survive_writing_to_a_message_and_reading() {
        let unread = KnownRed { is_unread: true, ..KnownRed::default() };
        for known in [
            KnownRed::of(&observed(&["a::b", "c d › e"], 10)),
            KnownRed::of(&unnamed(3, 10)),
            KnownRed::none_of(4),
            unread,
        ] {
            assert_eq!(KnownRed::read(&known.quoted(EXPECTED_FAILURES), EXPECTED_FAILURES), Some(known));
        }
        assert_eq!(KnownRed::read(&Body::default(), EXPECTED_FAILURES), None);
    }

    #[test]
    fn the_last_part_of_a_test_name_is_its_name_in_the_source() {
        for (name, part) in [
            ("t/test_x.py::test_y[1]", "test_y"),
            ("pkg tests::adds", "adds"),
            ("test_b (m.A.test_b)", "test_b"),
            ("src/a.test.ts > adds > two numbers", "two numbers"),
            ("adds › two numbers", "two numbers"),
            ("TestA/with_zero", "with_zero"),
            ("b c", "b c"),
        ] {
            assert_eq!(last_part(name), part);
        }
    }
}
