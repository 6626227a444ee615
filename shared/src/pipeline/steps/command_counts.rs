//! How many tests each command ran, before a task or a phase and after it: they must not pass their tests because tests were
//! removed or skipped. The numbers are recorded in the driver's own commits and read from there, never from a file.

use std::collections::BTreeMap;

use crate::{
    agent::redact::{Redactor, Secrets},
    git::{GitError, Repository},
    history::{Event, FAILED, Run, TaskHistory},
    message::{self, Body, Key, MessageReading, Status, one_line},
    name::{Oid, RepoName, TaskId},
    pipeline::{
        Counts, FEWER_TESTS, PipelineError, TaskContext, TaskRun, TestResult, TestTally,
        steps::{counts::ProgramCounts, placed_test::PlacedTest, test::TestSubject},
    },
};

/// The heading over the numbers, in the commits of test steps and of the start of a run.
const TESTS_THAT_RAN: &str = "Tests that ran, by command:";
/// The heading over the reasons why a test step would have failed without permission.
const ALLOWED: &str = "Fewer tests ran, with permission:";
/// How many commits are searched for the counts before a run. A review, the end of a task and starts of runs may come
/// after a test.
const MAX_COMMITS: usize = 16;
/// A command that contains this variable may test something else in each task.
const TASK_VARIABLE: &str = "ARBORIST_TASK";

/// How many tests each command ran. Different commands are compared only if one of them ran no tests at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandCounts(BTreeMap<String, TestTally>);

impl CommandCounts {
    /// The tests of one command. Empty if they say nothing about other tasks.
    #[must_use]
    pub fn of(command: &str, tally: TestTally) -> Self {
        let mut all = Self::default();
        if !command.contains(TASK_VARIABLE) {
            all.add(&one_line(command), tally);
        }
        all
    }

    /// Adds a command. If it is there already, it was run twice.
    pub(in crate::pipeline) fn add(&mut self, key: &str, tally: TestTally) {
        match self.0.get_mut(key) {
            Some(sum) => *sum += tally,
            None => self.set(key, tally),
        }
    }

    /// Sets the tests of a command.
    pub fn set(&mut self, key: &str, tally: TestTally) {
        self.0.insert(key.to_owned(), tally);
    }

    /// How many tests these commands ran together.
    #[must_use]
    pub fn sum_of(&self, keys: &[String]) -> TestTally {
        let tallies = keys.iter().map(|key| self.find(key).unwrap_or_default());
        tallies
            .reduce(|mut sum, tally| {
                sum += tally;
                sum
            })
            .unwrap_or_default()
    }

    /// Whether a command is known.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn find(&self, key: &str) -> Option<TestTally> {
        self.0.get(key).copied()
    }

    /// Whether `other` has the same counts for all commands of this one.
    #[must_use]
    pub fn is_part_of(&self, other: &Self) -> bool {
        self.0.iter().all(|(command, tally)| other.find(command) == Some(*tally))
    }

    /// Why the tests of a command are fewer than these, or more of them are skipped.
    #[must_use]
    pub fn describe_decrease(&self, key: &str, now: TestTally) -> Option<String> {
        describe_decrease(key, self.find(key)?, now)
    }

    /// Why commands that ran no tests have tested nothing: others ran some. `None` if they ran none before.
    #[must_use]
    pub fn find_nothing_tested(&self, keys: &[String], now: TestTally) -> Option<String> {
        let was_empty = |key: &String| self.find(key).is_some_and(TestTally::is_zero);
        if !now.is_zero() || (!keys.is_empty() && keys.iter().all(was_empty)) {
            return None;
        }
        let (other, before) = self.0.iter().max_by_key(|(_, tally)| tally.ran())?;
        let what = match keys {
            [key] => format!("'{key}'"),
            _ => "the test commands".to_owned(),
        };
        (before.ran() > 0).then(|| format!("{what} ran no tests ('{other}' ran {} before)", number(*before)))
    }

    /// Leaves out commands whose output does not say how many tests ran, and never did.
    #[must_use]
    pub fn without_uncounted(mut self, before: &Self) -> Self {
        let was_counted = |key: &String| before.find(key).is_some_and(|tally| !tally.is_unknown());
        self.0.retain(|key, tally| !tally.is_unknown() || was_counted(key));
        self
    }

    /// Leaves out commands that ran no tests, and ran none before.
    #[must_use]
    pub fn without_empty(mut self, before: &Self) -> Self {
        let had_tests = |key: &String| before.find(key).is_some_and(|tally| tally.ran() > 0);
        self.0.retain(|key, tally| tally.ran() > 0 || had_tests(key));
        self
    }

    /// A section of a commit message, or none if nothing was counted.
    #[must_use]
    pub fn quoted(&self) -> Body {
        let lines = self.0.iter().flat_map(|(command, tally)| {
            written(*tally).map(move |described| format!("{described}: {command}"))
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { Body::default() } else { Body::new(TESTS_THAT_RAN, &lines.join("\n")) }
    }

    /// Reads the section of a commit message.
    #[must_use]
    pub fn read(body: &Body) -> Self {
        let section = body.sections.iter().find(|section| section.heading == TESTS_THAT_RAN);
        let mut all = Self::default();
        for line in section.map(|section| section.text.lines()).into_iter().flatten() {
            if let Some((command, read)) = read_line(line) {
                let tally = all.0.entry(command).or_default();
                tally.tests = tally.tests.or(read.tests);
                tally.packages = tally.packages.or(read.packages);
                for (program, counts) in read.programs.iter() {
                    if tally.programs.find(program).is_none() {
                        tally.programs.add(program, counts);
                    }
                }
            }
        }
        all
    }

    /// The last known counts of each command before a task: of the newest task that is complete, of the newest phase
    /// whose tests passed, or of the run's baseline. The task's own earlier attempts do not count, because only its
    /// base matters.
    pub fn before(repository: &Repository, run: &Run, task: Option<&TaskId>) -> Result<Self, GitError> {
        let is_done = |history: &&TaskHistory| history.has_landed() && Some(&history.id) != task;
        // A phase has no other steps than its tests.
        let is_phase = |history: &&TaskHistory| {
            let is_test = |event: &Event| matches!(event.status(), Status::TestPass | Status::TestFail);
            history.events.iter().all(is_test)
        };
        let is_counted = |history: &&TaskHistory| is_done(history) || is_phase(history);
        let mut newest: BTreeMap<String, Vec<(&Event, TestTally)>> = BTreeMap::new();
        for (event, counted) in run.tasks.iter().filter(is_counted).filter_map(newest_counted) {
            for (command, tally) in counted.0 {
                let known = newest.entry(command).or_default();
                let is_newer = known.first().is_some_and(|(known, _)| known.time < event.time);
                known.retain(|_| !is_newer);
                if known.first().is_none_or(|(known, _)| known.time == event.time) {
                    known.push((event, tally));
                }
            }
        }
        let (baseline, mut all) = Self::of_baseline(repository, run)?;
        for (command, known) in newest {
            let Some((event, tally)) = find_last(repository, known)? else { continue };
            // A run that continues after commits of others has a baseline that is newer than some of its tasks.
            let is_older = match baseline {
                Some(baseline) if all.0.contains_key(&command) => {
                    repository.is_ancestor(event.commit, baseline)?
                }
                _ => false,
            };
            if !is_older {
                all.0.insert(command, tally);
            }
        }
        Ok(all)
    }

    /// The counts of the newest baseline, and its commit. A run has no baseline if it starts at a commit whose tests
    /// have passed in another run; then that run has counted them.
    fn of_baseline(repository: &Repository, run: &Run) -> Result<(Option<Oid>, Self), GitError> {
        let Some(start) = &run.start else { return Ok((None, Self::default())) };
        let mut open = vec![start.commit, start.accepted];
        for _ in 0..MAX_COMMITS {
            let Some(next) = open.pop() else { break };
            let Some(commit) = repository.load_commits(&[next])?.pop() else { continue };
            let MessageReading::WellFormed(message) = message::read(commit.message()) else { continue };
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

/// How many tests ran when a task last passed its test step, and at the gates of its landing, which come after it. The
/// event is the one with which the work came to the run's branch.
fn newest_counted(history: &TaskHistory) -> Option<(&Event, CommandCounts)> {
    let at = history.events.iter().rposition(|event| event.status() == Status::TestPass);
    let tested = at.map(|at| &history.events[at]);
    let later = &history.events[at.map_or(0, |at| at + 1)..];
    let landed = later.iter().rfind(|event| event.status() == Status::Merge);
    let mut counted = CommandCounts::default();
    for event in tested.into_iter().chain(landed).filter(|event| event.mentions(TESTS_THAT_RAN)) {
        counted.0.extend(CommandCounts::read(&event.body()).0);
    }
    let event = landed.or(tested)?;
    (!counted.0.is_empty()).then_some((event, counted))
}

/// The last of these events. Times are in seconds, so several tasks may have landed at the same time.
fn find_last<'e>(
    repository: &Repository,
    events: Vec<(&'e Event, TestTally)>,
) -> Result<Option<(&'e Event, TestTally)>, GitError> {
    let mut last: Option<(&Event, TestTally)> = None;
    for (event, tally) in events {
        let is_later = match last {
            Some((known, _)) => repository.is_ancestor(known.commit, event.commit)?,
            None => true,
        };
        last = if is_later { Some((event, tally)) } else { last };
    }
    Ok(last)
}

/// The numbers for people. The programs are named if there are several.
fn describe(tally: TestTally) -> String {
    let several =
        if tally.programs.iter().nth(1).is_some() { tally.programs } else { ProgramCounts::default() };
    written(TestTally { programs: several, ..tally }).collect::<Vec<_>>().join("; ")
}

/// How many tests or packages ran.
fn number(tally: TestTally) -> String {
    let tests = tally.tests.map(Counts::ran).filter(|ran| *ran > 0 || tally.packages.is_none());
    let packages = tally.packages.map(|counts| plural(counts.ran(), "package"));
    tests.map(|ran| ran.to_string()).into_iter().chain(packages).collect::<Vec<_>>().join(" and ")
}

fn plural(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The prefix of the number of packages.
const PACKAGES: &str = "packages: ";
/// What stands between the name of a program and the number of its tests.
const OF_PROGRAM: &str = " alone: ";
/// What is recorded for a command whose output does not say how many tests ran.
const NOT_COUNTED: &str = "not counted";

/// The numbers as they are recorded, one line for each kind.
fn written(tally: TestTally) -> impl Iterator<Item = String> {
    let describe = |Counts { passed, failed, skipped }: Counts| {
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    };
    let unknown = tally.is_unknown().then(|| NOT_COUNTED.to_owned());
    let packages = tally.packages.map(|counts| format!("{PACKAGES}{}", describe(counts)));
    let programs: Vec<String> = tally
        .programs
        .iter()
        .map(|(program, counts)| format!("{program}{OF_PROGRAM}{}", describe(counts)))
        .collect();
    tally.tests.map(describe).into_iter().chain(packages).chain(unknown).chain(programs)
}

fn read_line(line: &str) -> Option<(String, TestTally)> {
    let (is_packages, line) = match line.strip_prefix(PACKAGES) {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    // A command may contain these words, but its numbers come before it.
    let program = line.split_once(OF_PROGRAM).filter(|(program, _)| !program.contains([' ', ':']));
    let line = program.map_or(line, |(_, rest)| rest);
    let (numbers, command) = line.split_once(": ")?;
    if numbers == NOT_COUNTED {
        return Some((command.to_owned(), TestTally::default()));
    }
    let mut parts = numbers.split(", ");
    let mut number = |word: &str| parts.next()?.strip_suffix(word)?.trim_end().parse::<u64>().ok();
    let counts = Counts { passed: number("passed")?, failed: number("failed")?, skipped: number("skipped")? };
    let mut tally = TestTally::default();
    match program {
        // A later version may know more programs.
        Some((program, _)) if !tally.programs.add(program, counts) => return None,
        Some(_) => {}
        None if is_packages => tally.packages = Some(counts),
        None => tally.tests = Some(counts),
    }
    Some((command.to_owned(), tally))
}

/// Why the tests of a command are worse than before, if they are. A repository that had no tests has nothing to lose.
fn describe_decrease(command: &str, before: TestTally, now: TestTally) -> Option<String> {
    if before.ran() == 0 {
        return None;
    }
    let uncounted = || format!("'{command}' does not say how many tests ran ({} before)", number(before));
    // Some programs print numbers only if a test fails.
    if now.is_unknown() {
        return (!before.has_failures()).then(uncounted);
    }
    let mut falls = Vec::new();
    if now.is_zero() {
        falls.push(format!("ran no tests ({} before)", number(before)));
    }
    let kinds =
        [(("ran", "test"), before.tests, now.tests), (("tested", "package"), before.packages, now.packages)];
    for ((verb, noun), then, now) in kinds.into_iter().filter_map(|(words, a, b)| Some((words, a?, b?))) {
        if now.ran() < then.ran() && falls.is_empty() {
            falls.push(format!("{verb} {} ({} before)", plural(now.ran(), noun), then.ran()));
        }
        if now.skipped > then.skipped && then.ran() > 0 {
            falls.push(format!("skipped {} ({} before)", plural(now.skipped, noun), then.skipped));
        }
    }
    // The number of packages says nothing about that of tests. If all tests are counted, packages need not be.
    let has_lost_tests = before.tests.is_some_and(|counts| counts.ran() > 0) && now.tests.is_none();
    if falls.is_empty() && has_lost_tests && !before.has_failures() {
        return Some(uncounted());
    }
    if falls.is_empty() && now.packages.is_none() && before.packages.is_some() && now.ran() < before.ran() {
        falls.push(format!("ran {} ({} before)", plural(now.ran(), "test"), number(before)));
    }
    // The output of a failed test may contain that of another program.
    if falls.is_empty() && !before.has_failures() {
        falls.extend(find_program_falls(before.programs, now.programs));
    }
    (!falls.is_empty()).then(|| format!("'{command}' {}", falls.join(" and ")))
}

/// How the tests of single programs of a command are worse than before. If one program has replaced the only other one, or
/// the output names no program any more, just the sums can be compared.
fn find_program_falls(before: ProgramCounts, now: ProgramCounts) -> Vec<String> {
    let is_replaced = before.iter().count() <= 1 && now.iter().count() <= 1;
    if is_replaced || now == ProgramCounts::default() {
        return Vec::new();
    }
    let mut falls = Vec::new();
    for (program, then) in before.iter().filter(|(_, then)| then.ran() > 0) {
        let now = now.find(program).unwrap_or_default();
        let noun = format!("{program} test");
        if now.ran() < then.ran() {
            falls.push(format!("ran {} ({} before)", plural(now.ran(), &noun), then.ran()));
        }
        if now.skipped > then.skipped {
            falls.push(format!("skipped {} ({} before)", plural(now.skipped, &noun), then.skipped));
        }
    }
    falls
}

/// The name under which the tests of a command are recorded. `None` if they say nothing about other tasks.
#[must_use]
pub fn find_count_key(command: &str, repo: Option<&RepoName>, secrets: &Secrets) -> Option<String> {
    if command.contains(TASK_VARIABLE) {
        return None;
    }
    let words = one_line(&Redactor::redact(secrets, command));
    Some(repo.map_or(words.clone(), |repo| format!("{repo}: {words}")))
}

/// Whether a task passed its test step although fewer tests ran, because that was allowed.
#[must_use]
pub fn has_permission(history: &TaskHistory) -> bool {
    let passed = history.events.iter().rfind(|event| event.status() == Status::TestPass);
    passed.is_some_and(|event| event.mentions(ALLOWED))
}

/// How to allow fewer tests. `place` is the task that needs the mark.
#[must_use]
pub fn permission_advice(place: &str) -> String {
    format!("to allow that, add [allow:{FEWER_TESTS}] to {place} in the plan, or use --allow {FEWER_TESTS}")
}

impl TaskContext<'_> {
    /// The name under which the counts of a command are recorded. `None` if they say nothing about other tasks.
    pub(in crate::pipeline) fn count_key(&self, placed: &PlacedTest) -> Option<String> {
        let command = placed.test.command.as_str();
        let repo = placed.repo.as_ref().filter(|_| self.find_tool(command).is_none());
        find_count_key(command, repo, &self.run.secrets)
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
    pub(in crate::pipeline) fn fail_if_fewer_tests(
        &mut self,
        tested: &TestSubject<'_>,
        before: &mut TestsBefore,
        result: TestResult,
    ) -> Result<TestResult, PipelineError> {
        if !result.is_passed {
            return Ok(result);
        }
        let mut falls = Vec::new();
        let mut keys = Vec::new();
        for test in tested.tests {
            let Some(key) = self.count_key(test).filter(|key| !keys.contains(key)) else { continue };
            let now = result.counted.find(&key).unwrap_or_default();
            keys.push(key.clone());
            // A command that fails only because of known failures may print other numbers than one that succeeds.
            let is_told = !now.is_unknown() || result.observed.code == Some(0);
            let Some(fall) = before.counts.describe_decrease(&key, now).filter(|_| is_told) else { continue };
            // Others may have removed the tests: then they are missing without this work, too.
            if let Some(base) = self.count_base(test, before.base)? {
                before.counts.set(&key, base);
                falls.extend(describe_decrease(&key, base, now));
            } else {
                falls.push(fall);
            }
        }
        if falls.is_empty() {
            falls.extend(before.counts.find_nothing_tested(&keys, result.observed.tally));
        }
        let counted = result.counted.clone().without_uncounted(&before.counts).quoted();
        if falls.is_empty() {
            return Ok(TestResult { body: result.body.followed_by(counted), ..result });
        }
        if self.run.options.allow_fewer || before.allows_fewer {
            let body = Body::new(ALLOWED, &falls.join("\n")).followed_by(result.body).followed_by(counted);
            return Ok(TestResult { body, ..result });
        }
        let place = if tested.task.is_leaf() { "the task" } else { "a task of the phase" };
        let why = format!("{}; {}", falls.join("; "), permission_advice(place));
        let body = Body::new(FAILED, &why).followed_by(result.body);
        let mut trailers = result.trailers;
        let _ = trailers.set(Key::TestLog, tested.log);
        Ok(TestResult { is_passed: false, why: Some(why), body, trailers, ..result })
    }

    /// Runs a test at the commit that the work began at, if there is a place for it, and returns its counts.
    fn count_base(
        &mut self,
        placed: &PlacedTest,
        base: Option<Oid>,
    ) -> Result<Option<TestTally>, PipelineError> {
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
        let commands = self.context.run.options.tests_of(self.task);
        for test in &self.place_tests_with_changed_repos(&commands)? {
            let Some(key) = self.context.count_key(test) else { continue };
            let counted = |counts: &CommandCounts| counts.find(&key).filter(|tally| !tally.is_unknown());
            let line = match (counted(&self.tests_before.counts), counted(&now)) {
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

    fn counts(passed: u64, failed: u64, skipped: u64) -> TestTally {
        TestTally { tests: Some(Counts { passed, failed, skipped }), ..TestTally::default() }
    }

    fn packages(passed: u64) -> TestTally {
        TestTally { packages: Some(Counts { passed, failed: 0, skipped: 0 }), ..TestTally::default() }
    }

    /// Tests of several programs: passed and skipped.
    fn programs(all: &[(&str, u64, u64)]) -> TestTally {
        let mut tally = TestTally::NONE;
        for (program, passed, skipped) in all {
            let counts = Counts { passed: *passed, failed: 0, skipped: *skipped };
            *tally.tests.get_or_insert_default() += counts;
            assert!(tally.programs.add(program, counts));
        }
        tally
    }

    #[test]
    fn tests_of_one_program_cannot_replace_those_of_another_in_one_command() {
        for (before, now, fall) in [
            (&[("pytest", 5, 0), ("jest", 5, 0)][..], &[("pytest", 5, 0), ("jest", 5, 0)][..], None),
            (
                &[("pytest", 5, 0), ("jest", 5, 0)],
                &[("pytest", 10, 0)],
                Some("'x' ran 0 jest tests (5 before)"),
            ),
            (
                &[("pytest", 5, 0), ("jest", 5, 0)],
                &[("pytest", 9, 0), ("jest", 1, 0)],
                Some("'x' ran 1 jest test (5 before)"),
            ),
            (
                &[("pytest", 5, 1), ("jest", 5, 0)],
                &[("pytest", 6, 0), ("jest", 5, 1)],
                Some("'x' skipped 1 jest test (0 before)"),
            ),
            (
                &[("pytest", 10, 0)],
                &[("pytest", 5, 0), ("jest", 5, 0)],
                Some("'x' ran 5 pytest tests (10 before)"),
            ),
            (&[("pytest", 5, 0), ("jest", 0, 0)], &[("pytest", 5, 0)], None),
            (&[("jest", 10, 0)], &[("vitest", 10, 0)], None),
            (&[("jest", 10, 0)], &[("jest", 10, 0), ("vitest", 1, 0)], None),
        ] {
            assert_eq!(
                describe_decrease("x", programs(before), programs(now)).as_deref(),
                fall,
                "{before:?} {now:?}"
            );
        }
        // Numbers whose program is not known, and output of failed tests, are compared by the sums alone.
        assert_eq!(
            describe_decrease("x", programs(&[("pytest", 5, 0), ("jest", 5, 0)]), counts(10, 0, 0)),
            None
        );
        let mut red = programs(&[("cargo", 5, 0), ("pytest", 1, 0)]);
        red.tests = Some(Counts { passed: 5, failed: 1, skipped: 0 });
        assert_eq!(describe_decrease("x", red, programs(&[("cargo", 6, 0)])), None);
    }

    #[test]
    fn only_fewer_or_newly_skipped_tests_are_a_decrease() {
        for (before, now, is_fall) in [
            (counts(10, 0, 1), counts(10, 0, 1), false),
            (counts(10, 0, 1), counts(12, 0, 0), false),
            (counts(8, 2, 0), counts(10, 0, 0), false),
            (counts(0, 0, 0), counts(3, 0, 1), false),
            (counts(10, 0, 0), counts(9, 0, 0), true),
            (counts(10, 0, 0), counts(12, 0, 1), true),
            (counts(10, 0, 0), counts(0, 0, 0), true),
            (counts(10, 0, 0), counts(0, 0, 10), true),
            (counts(10, 0, 0), TestTally::default(), true),
            (counts(10, 0, 0), packages(2), true),
            (counts(9, 1, 0), TestTally::default(), false),
            (TestTally::default(), counts(1, 0, 0), false),
            (packages(2), packages(2), false),
            (packages(2), packages(1), true),
            (packages(2), TestTally::NONE, true),
            (packages(2), TestTally::default(), true),
            (packages(2), counts(5, 0, 0), false),
        ] {
            assert_eq!(describe_decrease("x", before, now).is_some(), is_fall, "{before:?} {now:?}");
        }
    }

    #[test]
    fn test_counts_survive_writing_to_a_message_and_reading() {
        let mut all = CommandCounts::of("cargo test: all, 1 passed", counts(1, 2, 3));
        all.add("web: npm test", counts(4, 0, 0));
        all.add("go test ./...", packages(3));
        all.add("make: test", TestTally::default());
        all.add("both", TestTally { tests: counts(1, 0, 0).tests, ..packages(2) });
        all.add("x alone: y", programs(&[("pytest", 5, 1), ("TAP", 2, 0)]));
        assert_eq!(CommandCounts::read(&all.quoted()), all);
        let unknown = CommandCounts::of("true", TestTally::default());
        assert_eq!(unknown.without_uncounted(&CommandCounts::default()).quoted(), Body::default());
        assert_eq!(CommandCounts::of("t $ARBORIST_TASK", counts(1, 0, 0)), CommandCounts::default());
    }

    #[test]
    fn a_command_without_tests_is_reported_if_other_commands_had_some() {
        let before = CommandCounts::of("all", counts(5, 0, 0));
        let keys = ["none".to_owned()];
        let why = before.find_nothing_tested(&keys, TestTally::NONE);
        assert_eq!(why.as_deref(), Some("'none' ran no tests ('all' ran 5 before)"));
        assert_eq!(before.find_nothing_tested(&keys, counts(1, 0, 0)), None);
        assert_eq!(before.find_nothing_tested(&keys, TestTally::default()), None);
        assert_eq!(CommandCounts::default().find_nothing_tested(&keys, TestTally::NONE), None);
        let mut known = before.clone();
        known.set("none", TestTally::NONE);
        assert_eq!(known.find_nothing_tested(&keys, TestTally::NONE), None);
    }
}
