//! How many tests each command ran, before a task or a phase and after it: they must not pass their tests because tests were
//! removed or skipped. The numbers are recorded in the driver's own commits and read from there, never from a file.

use std::collections::BTreeMap;

use crate::{
    agent::redact::Redactor,
    git::{GitError, Repository},
    history::{Event, FAILED, Run, State, TaskHistory},
    message::{self, Body, Key, MessageReading, Status, one_line},
    name::{Oid, TaskId},
    pipeline::{Counts, PipelineError, TaskContext, TaskRun, TestResult, steps::placed_tests::PlacedTest},
    plan::Task,
};

/// The heading over the numbers, in the commits of test steps and of the start of a run.
const TESTS_THAT_RAN: &str = "Tests that ran, by command:";
/// The heading over the reasons why a test step would have failed without permission.
const ALLOWED: &str = "Fewer tests ran, with permission:";
/// How many commits are searched for the counts before a run. A review, the end of a task and starts of runs may come after
/// a test.
const MAX_COMMITS: usize = 16;
/// A command that contains this variable may test something else in each task.
const TASK_VARIABLE: &str = "ARBORIST_TASK";

/// Counts by command. Counts of different commands are never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandCounts(BTreeMap<String, Counts>);

impl CommandCounts {
    /// The counts of one command, if they are known.
    #[must_use]
    pub fn of(command: &str, counts: Option<Counts>) -> Self {
        let mut all = Self::default();
        if let Some(counts) = counts.filter(|_| !command.contains(TASK_VARIABLE)) {
            all.add(&one_line(command), counts);
        }
        all
    }

    pub(in crate::pipeline) fn add(&mut self, key: &str, counts: Counts) {
        *self.0.entry(key.to_owned()).or_default() += counts;
    }

    fn find(&self, key: &str) -> Option<Counts> {
        self.0.get(key).copied()
    }

    /// Whether `other` has the same counts for all commands of this one.
    #[must_use]
    pub fn is_part_of(&self, other: &Self) -> bool {
        self.0.iter().all(|(command, counts)| other.find(command) == Some(*counts))
    }

    /// A section of a commit message, or none if nothing was counted.
    #[must_use]
    pub fn quoted(&self) -> Body {
        let lines: Vec<String> =
            self.0.iter().map(|(command, counts)| format!("{}: {command}", describe(*counts))).collect();
        if lines.is_empty() { Body::default() } else { Body::new(TESTS_THAT_RAN, &lines.join("\n")) }
    }

    /// Reads the section of a commit message.
    #[must_use]
    pub fn read(body: &Body) -> Self {
        let section = body.sections.iter().find(|section| section.heading == TESTS_THAT_RAN);
        let lines = section.map(|section| section.text.lines()).into_iter().flatten();
        Self(lines.filter_map(read_line).collect())
    }

    /// The last known counts of each command before a task: of the newest task that is complete, of the newest phase
    /// whose tests passed, or of the run's baseline. The task's own earlier attempts do not count, because only its base matters.
    pub fn before(repository: &Repository, run: &Run, task: Option<&TaskId>) -> Result<Self, GitError> {
        let is_done = |history: &&TaskHistory| {
            history.is_landed && history.state.state == State::Complete && Some(&history.id) != task
        };
        // A phase has no other steps than its tests.
        let is_phase = |history: &&TaskHistory| {
            let is_test = |event: &Event| matches!(event.status(), Status::TestPass | Status::TestFail);
            history.events.iter().all(is_test)
        };
        let is_counted = |history: &&TaskHistory| is_done(history) || is_phase(history);
        let tested = run.tasks.iter().filter(is_counted).filter_map(newest_counted);
        let mut tested: Vec<&Event> = tested.collect();
        tested.sort_by_key(|event| event.time);
        let (baseline, mut all) = Self::of_baseline(repository, run)?;
        let mut newest: BTreeMap<String, (Oid, Counts)> = BTreeMap::new();
        for event in tested {
            let counted = Self::read(&event.body()).0;
            newest.extend(counted.into_iter().map(|(command, counts)| (command, (event.commit, counts))));
        }
        for (command, (commit, counts)) in newest {
            // A run that continues after commits of others has a baseline that is newer than some of its tasks.
            let is_older = match baseline {
                Some(baseline) if all.0.contains_key(&command) => repository.is_ancestor(commit, baseline)?,
                _ => false,
            };
            if !is_older {
                all.0.insert(command, counts);
            }
        }
        Ok(all)
    }

    /// The counts of the newest baseline, and its commit. A run has no baseline if it starts at a commit whose tests have
    /// passed in another run; then that run has counted them.
    fn of_baseline(repository: &Repository, run: &Run) -> Result<(Option<Oid>, Self), GitError> {
        let Some(start) = &run.start else { return Ok((None, Self::default())) };
        let mut open = vec![start.commit, start.accepted];
        for _ in 0..MAX_COMMITS {
            let Some(next) = open.pop() else { break };
            let Some(commit) = repository.load_commits(&[next])?.pop() else { continue };
            let MessageReading::Sound(message) = message::read(commit.message()) else { continue };
            let found = Self::read(&Body::parse(&message.body));
            if !found.0.is_empty() {
                return Ok((Some(commit.id), found));
            }
            let mut parents = commit.parents();
            open.extend(match message.subject.status {
                Status::RunStart | Status::Complete | Status::ReviewApproved => parents.next(),
                // The task's own branch.
                Status::Merge => parents.nth(1),
                _ => None,
            });
        }
        Ok((None, Self::default()))
    }
}

/// The newest passed test step of a task, if its tests were counted.
fn newest_counted(history: &TaskHistory) -> Option<&Event> {
    let passed = history.events.iter().rfind(|event| event.status() == Status::TestPass)?;
    passed.mentions(TESTS_THAT_RAN).then_some(passed)
}

fn describe(counts: Counts) -> String {
    let Counts { passed, failed, skipped } = counts;
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

fn read_line(line: &str) -> Option<(String, Counts)> {
    let (numbers, command) = line.split_once(": ")?;
    let mut parts = numbers.split(", ");
    let mut number = |word: &str| parts.next()?.strip_suffix(word)?.trim_end().parse::<u64>().ok();
    let counts = Counts { passed: number("passed")?, failed: number("failed")?, skipped: number("skipped")? };
    Some((command.to_owned(), counts))
}

/// Why the counts of a command are worse than before, if they are. A repository that had no tests has nothing to lose.
fn find_fall(command: &str, before: Counts, now: Counts) -> Option<String> {
    let ran = |counts: Counts| counts.passed + counts.failed;
    let tests = |number: u64| if number == 1 { "1 test".to_owned() } else { format!("{number} tests") };
    let mut falls = Vec::new();
    match (ran(before), ran(now)) {
        (0, _) => return None,
        (then, 0) => falls.push(format!("ran no tests ({then} before)")),
        (then, now) if now < then => falls.push(format!("ran {} ({then} before)", tests(now))),
        _ => {}
    }
    if now.skipped > before.skipped {
        let then = before.skipped;
        falls.push(format!("skipped {} ({then} before)", tests(now.skipped)));
    }
    (!falls.is_empty()).then(|| format!("'{command}' {}", falls.join(" and ")))
}

impl TaskContext<'_> {
    /// The name under which the counts of a command are recorded. `None` if they say nothing about other tasks.
    pub(in crate::pipeline) fn count_key(&self, placed: &PlacedTest) -> Option<String> {
        let command = placed.test.command.as_str();
        if command.contains(TASK_VARIABLE) {
            return None;
        }
        let words = one_line(&Redactor::redact(&self.run.secrets, command));
        let repo = placed.repo.as_ref().filter(|_| self.find_tool(command).is_none());
        Some(repo.map_or(words.clone(), |repo| format!("{repo}: {words}")))
    }
}

/// What the tests of a task or a phase are compared with.
#[derive(Debug)]
pub struct TestsBefore {
    /// The last known counts.
    pub counts: CommandCounts,
    /// The commit that the work began at, if it is known.
    pub base: Option<Oid>,
    /// Whether fewer tests are allowed.
    pub allows_fewer: bool,
}

impl TaskContext<'_> {
    /// Fails a passed test step if a command ran fewer tests than before, or skipped more. Records the counts.
    pub fn require_tests(
        &mut self,
        (task, tests): (&Task, &[PlacedTest]),
        before: &mut TestsBefore,
        result: TestResult,
        log: &str,
    ) -> Result<TestResult, PipelineError> {
        if !result.is_passed {
            return Ok(result);
        }
        let mut falls = Vec::new();
        for test in tests {
            let Some(key) = self.count_key(test) else { continue };
            let Some(now) = result.counted.find(&key) else { continue };
            let fall = before.counts.find(&key).and_then(|before| find_fall(&key, before, now));
            let Some(fall) = fall.filter(|fall| !falls.contains(fall)) else { continue };
            // Others may have removed the tests: then they are missing without this work, too.
            if let Some(base) = self.count_base(test, before.base)? {
                before.counts.0.insert(key.clone(), base);
                falls.extend(find_fall(&key, base, now));
            } else {
                falls.push(fall);
            }
        }
        let counted = result.counted.quoted();
        if falls.is_empty() {
            return Ok(TestResult { body: result.body.followed_by(counted), ..result });
        }
        if self.run.options.allow_fewer || before.allows_fewer {
            let body = Body::new(ALLOWED, &falls.join("\n")).followed_by(result.body).followed_by(counted);
            return Ok(TestResult { body, ..result });
        }
        let place = if task.is_leaf() { "the task" } else { "a task of the phase" };
        let why = format!(
            "{}; to allow it, add [allow:fewer-tests] to {place} in the plan, or use --allow fewer-tests",
            falls.join("; ")
        );
        let body = Body::new(FAILED, &why).followed_by(result.body);
        let mut trailers = result.trailers;
        let _ = trailers.set(Key::TestLog, log);
        Ok(TestResult { is_passed: false, why: Some(why), body, trailers, ..result })
    }

    /// Runs a test at the commit that the work began at, if there is a place for it, and returns its counts.
    fn count_base(
        &mut self,
        placed: &PlacedTest,
        base: Option<Oid>,
    ) -> Result<Option<Counts>, PipelineError> {
        let command = placed.test.command.as_str();
        if self.find_tool(command).is_some() || placed.dir != self.dir {
            return Ok(None);
        }
        let Some(base) = base else { return Ok(None) };
        let Some(mut counter) = self.base_counter.take() else { return Ok(None) };
        let counted = counter(base, command);
        self.base_counter = Some(counter);
        counted
    }
}

impl TaskRun<'_, '_, '_> {
    /// The part of a reviewer's prompt about the tests that ran.
    pub(in crate::pipeline) fn describe_tests(&self) -> Result<String, GitError> {
        let passed = self.events.iter().rfind(|event| event.status() == Status::TestPass);
        let now = passed.map(|event| CommandCounts::read(&event.body())).unwrap_or_default();
        let mut lines: Vec<String> = Vec::new();
        let commands = self.context.run.options.tests_of(self.task).0;
        for test in &self.place_tests(&commands)? {
            let Some(key) = self.context.count_key(test) else { continue };
            let line = match (self.tests_before.counts.find(&key), now.find(&key)) {
                (None, None) => continue,
                (None, Some(now)) => format!("- '{key}': {}", describe(now)),
                (Some(before), Some(now)) => {
                    format!("- '{key}': {} (before: {})", describe(now), describe(before))
                }
                (Some(before), None) => format!(
                    "- '{key}': its output does not say how many tests ran (before: {})",
                    describe(before)
                ),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if lines.is_empty() {
            return Ok(String::new());
        }
        Ok(format!("\n\nTests that ran:\n{}", lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts { passed, failed, skipped }
    }

    #[test]
    fn only_fewer_or_newly_skipped_tests_are_a_fall() {
        for (before, now, is_fall) in [
            (counts(10, 0, 1), counts(10, 0, 1), false),
            (counts(10, 0, 1), counts(12, 0, 0), false),
            (counts(8, 2, 0), counts(10, 0, 0), false),
            (counts(0, 0, 0), counts(3, 0, 1), false),
            (counts(10, 0, 0), counts(9, 0, 0), true),
            (counts(10, 0, 0), counts(12, 0, 1), true),
            (counts(10, 0, 0), counts(0, 0, 0), true),
            (counts(10, 0, 0), counts(0, 0, 10), true),
        ] {
            assert_eq!(find_fall("x", before, now).is_some(), is_fall, "{before:?} {now:?}");
        }
    }

    #[test]
    fn counts_are_read_back_from_a_message_as_they_were_written() {
        let mut all = CommandCounts::of("cargo test: all, 1 passed", Some(counts(1, 2, 3)));
        all.add("web: npm test", counts(4, 0, 0));
        assert_eq!(CommandCounts::read(&all.quoted()), all);
        assert_eq!(CommandCounts::of("true", None).quoted(), Body::default());
        assert_eq!(CommandCounts::of("t $ARBORIST_TASK", Some(counts(1, 0, 0))), CommandCounts::default());
    }
}
