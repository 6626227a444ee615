//! The tests of a run before its first task: runs the test command under guard, and finds out whether there are tests
//! yet and which of them fail already. Whether they have to run, and what follows, is decided in `check_baseline.rs` of
//! the module `run`.

use std::{
    fs::File,
    io::Write,
    path::{Component, Path, PathBuf},
};

use crate::{
    agent::redact::{Redactor, Secrets},
    gardener::{
        GardenerError,
        projects::{PROJECTS, ProjectKind},
    },
    git::{OtherWriters, Repository, TrackedFiles},
    history::NO_TEST_COMMAND,
    message::{self, Body, Key, Message, MessageReading, Status},
    name::Oid,
    pipeline::{
        ConcurrentChildren, ConfigGuard, EXPECTED_FAILURES, KnownRed, PipelineError, Redaction, RunContext,
        TestObservation, ran_no_tests,
    },
    process::{Cancel, Confinement, Ending, Limits, OrphanLock, Program, Supervised, SupervisedEnd},
    record, safe_files,
    sandbox::{Sandbox, SandboxedChild, list_denials, names_closed_path},
};

/// How many commits are searched for a passed test. A review, the end of a task and starts of runs may come after it.
const MAX_COMMITS: usize = 16;
/// How much of the output is read for counts and names.
const TAIL: usize = 512 * 1024;

/// A test command, and where it is run.
#[derive(Debug)]
pub struct Probe<'a> {
    /// The command, for a shell.
    pub command: &'a str,
    /// The directory that it runs in.
    pub dir: &'a Path,
    /// The worktree that it runs in, and other worktrees of the run.
    pub places: Vec<&'a Repository>,
    /// Limits where it can change files.
    pub sandbox: &'a Sandbox,
    /// Restores what it must not change.
    pub config_guard: &'a ConfigGuard,
    /// Its environment variables.
    pub environment: Vec<(String, String)>,
    /// Its limits.
    pub limits: Limits,
    /// The log file for its output.
    pub log: PathBuf,
    /// Secrets that must not be logged.
    pub secrets: &'a Secrets,
    /// Cancelled when the user wants to stop.
    pub cancel: &'a Cancel,
    /// Whether no agent has run yet, so that the files which it writes are those that the user's own tests write.
    pub learns: bool,
    /// Whether it may be run once more outside of the sandbox when it fails in it. This is only for the user's own code.
    pub may_leave_sandbox: bool,
}

/// Why a command that fails in the sandbox was not run outside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntriedOutside {
    /// Why.
    pub reason: &'static str,
    /// What the sandbox refused, as far as the output tells.
    pub denials: Vec<String>,
}

/// How a command that fails in the sandbox ends outside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideResult {
    /// Nothing limits it, or what it does there is not asked for.
    NotNeeded,
    /// It was not run there, because it may run code of agents, or because the user demands a sandbox.
    Untried(UntriedOutside),
    /// It succeeds. These messages say what the sandbox refused, as far as the output tells.
    Green(Vec<String>),
    /// It fails, too.
    Red,
}

/// Why a baseline fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedCause {
    /// The tests.
    Tests,
    /// The command took too long.
    TimeLimit,
    /// A program is not installed.
    NoProgram,
    /// A script of the project does not exist.
    NoFile,
}

/// Creates the log of a test before a task, and returns its path relative to `home`. `about` tells it from others.
pub fn create_baseline_log(home: &Path, log_dir: &str, about: &str) -> Result<String, GardenerError> {
    record::create_baseline_log(home, log_dir, about)
        .map_err(|source| GardenerError::Log { path: log_dir.to_owned(), why: source.to_string() })
}

/// The result of a baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The tests pass.
    Green(TestObservation),
    /// There are no tests yet, for this reason.
    NoTests(String),
    /// They fail, or could not be run.
    Red {
        /// The reason, in one line.
        why: String,
        /// The kind of reason.
        cause: RedCause,
        /// Counts and names that could be read from the output.
        observed: TestObservation,
        /// How they end outside of the sandbox.
        outside: OutsideResult,
    },
    /// The command changed something that belongs to the run. It has been restored; this says what it was.
    Trespass(String),
}

impl Baseline {
    /// The warning if its log is incomplete.
    #[must_use]
    pub fn log_warning(&self) -> Option<String> {
        let (Self::Green(observed) | Self::Red { observed, .. }) = self else { return None };
        let error = observed.log_error.as_ref()?;
        Some(format!("the log of the tests before the first task is incomplete: {error}"))
    }
}

impl<'a> Probe<'a> {
    /// A command that is run when agents of the run may have worked already.
    pub(super) fn after_agents(
        context: &'a RunContext<'_>,
        command: &'a str,
        dir: &'a Path,
        place: &'a Repository,
        environment: Vec<(String, String)>,
        log: &str,
    ) -> Self {
        Self {
            command,
            dir,
            places: vec![place],
            sandbox: &context.options.sandbox,
            config_guard: &context.config_guard,
            environment,
            limits: context.options.test_limits(),
            log: context.home.join(log),
            secrets: &context.secrets,
            cancel: &context.cancel,
            learns: false,
            may_leave_sandbox: false,
        }
    }

    /// Runs the command.
    pub fn run(&self, orphan_lock: &mut OrphanLock) -> Result<Baseline, GardenerError> {
        let places = vec![self.dir.to_owned()];
        let child = SandboxedChild { step: "test", places, ..SandboxedChild::default() };
        let confinement = self.sandbox.confine(&child);
        let (ended, trespass) = self.run_once(confinement.as_ref(), orphan_lock)?;
        let denials = list_denials(&ended.words(), confinement.as_ref());
        let suffix = |denials: &[String]| denials.iter().map(|note| format!("; {note}")).collect::<String>();
        let (why, cause, observed) = match (trespass, self.judge(&ended)) {
            (Some(trespass), _) => return Ok(Baseline::Trespass(trespass)),
            (None, Baseline::Red { why, cause, observed, .. }) => (why, cause, observed),
            (None, judged) => return Ok(judged),
        };
        let is_limited = confinement.as_ref().is_some_and(Confinement::is_effective);
        if !(self.may_leave_sandbox && is_limited) {
            let why = format!("{why}{}", suffix(&denials));
            return Ok(Baseline::Red { why, cause, observed, outside: OutsideResult::NotNeeded });
        }
        if let Some(reason) = self.find_reason_to_stay(&child, &ended, confinement.as_ref())? {
            let why = format!("{why}, in the sandbox");
            let outside = OutsideResult::Untried(UntriedOutside { reason, denials });
            return Ok(Baseline::Red { why, cause, observed, outside });
        }
        let mut log = self.open_log()?;
        // The log is only for people.
        let _ = log.write_all(b"=== the same command outside of the sandbox ===\n");
        let (again, trespass) = self.run_once(self.sandbox.limit_resources(&child).as_ref(), orphan_lock)?;
        if let Some(trespass) = trespass {
            return Ok(Baseline::Trespass(trespass));
        }
        let (outside, why) = match again.ending.is_success() {
            true => (OutsideResult::Green(denials), format!("'{}' {}", self.shown_command(), ended.ending)),
            false => (OutsideResult::Red, format!("{why}, in the sandbox and outside of it")),
        };
        Ok(Baseline::Red { why, cause, observed, outside })
    }

    /// Why the command must not be run outside of the sandbox; `None` if it may be. History is searched only now, because it
    /// may be long.
    fn find_reason_to_stay(
        &self,
        child: &SandboxedChild<'_>,
        ended: &SupervisedEnd,
        confinement: Option<&Confinement>,
    ) -> Result<Option<&'static str>, GardenerError> {
        const MAY_BE_AGENTS: &str = "a run has worked in this clone, so the command may run code of agents";
        if !self.sandbox.may_be_left(child) {
            return Ok(Some("a sandbox was chosen for it"));
        }
        // A command that changes the git directory would damage the run.
        if names_closed_path(&ended.words(), confinement) {
            return Ok(Some("it changes the git directory"));
        }
        if self.places.is_empty() {
            return Ok(Some("there is no history"));
        }
        for repository in &self.places {
            if repository.is_shallow {
                return Ok(Some("a clone is shallow, and the rest of the history may have code of agents"));
            }
            // Ignored files and kept worktrees may be of a run on any branch.
            for commit in repository.stream_commits(&["--all".into(), "HEAD".into()])? {
                if message::claims_to_be_ours(commit?.message()) {
                    return Ok(Some(MAY_BE_AGENTS));
                }
            }
        }
        Ok(None)
    }

    /// Runs the command once. Also returns what it changed without permission.
    fn run_once(
        &self,
        confinement: Option<&Confinement>,
        orphan_lock: &mut OrphanLock,
    ) -> Result<(SupervisedEnd, Option<String>), GardenerError> {
        let program = Program::located("sh").args(["-c", self.command]).dir(self.dir);
        let program = program.confined_if(confinement.cloned());
        let program =
            self.environment.iter().fold(program, |program, (name, value)| program.env(name, value));
        let supervised = Supervised::new(program)
            .limits(self.limits)
            .until(self.cancel)
            .log(self.open_log()?)
            .tail(TAIL)
            .filter(Redaction::new(self.secrets))
            .with_orphan_lock(orphan_lock);
        let concurrent_children = self.places.first().map(|place| ConcurrentChildren::count(place));
        let before = concurrent_children.and_then(|concurrent_children| self.look(concurrent_children));
        let (ended, trespass) = self.config_guard.guard_all(&self.places, || supervised.run(|_| {}));
        let other_writers =
            concurrent_children.map(|concurrent_children| concurrent_children.since_start(self.places.len()));
        if let (true, Some((place, before)), Some(OtherWriters::Alone)) = (self.learns, before, other_writers)
        {
            place.learn_own_writes(&before)?;
        }
        // What was undone is reported even if the user has stopped the run.
        if matches!(ended.ending, Ending::Cancelled) && trespass.is_none() {
            return Err(PipelineError::stopped(self.cancel).into());
        }
        Ok((ended, trespass))
    }

    /// The command for messages.
    fn shown_command(&self) -> String {
        Redactor::redact(self.secrets, self.command)
    }

    fn open_log(&self) -> Result<File, GardenerError> {
        safe_files::open_log(&self.log).map_err(|source| GardenerError::Log {
            path: self.log.display().to_string(),
            why: source.to_string(),
        })
    }

    /// The tracked files of the worktree that it runs in, if no other child process is running.
    fn look(&self, concurrent_children: ConcurrentChildren<'_>) -> Option<(&Repository, TrackedFiles)> {
        let place = *self.places.first().filter(|_| concurrent_children.at_start() == OtherWriters::Alone)?;
        let tree = place.tree_of(place.find_commit("HEAD").ok()??).ok()?;
        Some((place, place.read_tracked(tree, OtherWriters::Alone).ok()?))
    }

    fn judge(&self, ended: &SupervisedEnd) -> Baseline {
        let observed = TestObservation::of(ended);
        let printed = format!("{}\n{}", ended.stdout.text, ended.stderr.text);
        let command = self.shown_command();
        // Before success is looked at: a program that finds no tests may succeed, which proves nothing, or fail, although
        // nothing is broken.
        if matches!(ended.ending, Ending::Exited(_)) {
            if ran_no_tests(&printed) || says_no_tests(&printed) {
                return Baseline::NoTests(format!("'{command}' finds no tests"));
            }
            let absent = (observed.code == Some(PROGRAM_NOT_FOUND))
                .then(|| find_absent(self.command, &printed))
                .flatten();
            // The tasks can write a script of the project, but they cannot install a program.
            let is_program = absent.is_some_and(|program| !program.contains('/'));
            let folder = find_missing_folder(self.command, self.dir);
            if let Some(folder) = folder.filter(|folder| is_relative(folder) && self.is_new_project())
                && !ended.ending.is_success()
            {
                return Baseline::NoTests(format!("the folder '{folder}' does not exist"));
            }
            let missing = find_missing(self.command, self.dir, &printed).filter(|_| folder.is_none());
            if let Some(file) = missing.filter(|_| !ended.ending.is_success() && !is_program) {
                return Baseline::NoTests(format!("'{command}' finds no {file}"));
            }
            if let Some(script) = absent.filter(|path| is_inside(path) && self.is_new_project()) {
                return Baseline::NoTests(format!("'{script}' does not exist"));
            }
        }
        if ended.ending.is_success() {
            return Baseline::Green(observed);
        }
        let counts = observed.counts.filter(|counts| counts.failed > 0);
        let counts = counts
            .map_or(String::new(), |counts| format!(" ({} failed, {} passed)", counts.failed, counts.passed));
        // The ending says already that a command was not found.
        let has_words = counts.is_empty() && observed.code != Some(PROGRAM_NOT_FOUND);
        let words = if has_words { sole_line(&printed) } else { None };
        let words = words.map(|line| format!(": {line}")).unwrap_or_default();
        let is_missing = observed.code == Some(PROGRAM_NOT_FOUND);
        let script = find_absent(self.command, &printed)
            .filter(|path| is_missing && path.contains('/') && !self.dir.join(path).exists());
        let (why, cause) = match (&ended.ending, script) {
            (_, Some(script)) => (format!("there is no file '{script}'"), RedCause::NoFile),
            (Ending::TimedOut { .. }, _) => {
                (format!("'{command}' {} (setting timeouts.test){counts}", ended.ending), RedCause::TimeLimit)
            }
            (ending, _) => {
                let cause = if is_missing { RedCause::NoProgram } else { RedCause::Tests };
                (format!("'{command}' {ending}{counts}{words}"), cause)
            }
        };
        Baseline::Red { why, cause, observed, outside: OutsideResult::NotNeeded }
    }
}

impl Probe<'_> {
    /// Whether nothing but documents and hidden files is committed yet. If that cannot be read, the project is not new.
    fn is_new_project(&self) -> bool {
        let has_only_documents = |place: &Repository| -> Option<bool> {
            let tree = place.tree_of(place.find_commit("HEAD").ok()??).ok()?;
            let files = place.changes(place.empty_tree().ok()?, tree).ok()?;
            Some(files.iter().all(|file| is_document(&file.shown())))
        };
        self.places.first().and_then(|place| has_only_documents(place)).unwrap_or(false)
    }
}

/// The output, if it is a single short line: it is the reason, as that of a shell that cannot parse the command.
fn sole_line(printed: &str) -> Option<&str> {
    const LONGEST: usize = 200;
    let mut lines = printed.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().filter(|line| lines.next().is_none() && line.len() <= LONGEST)
}

/// The name of the gate that is the run's test command.
pub const TEST_GATE: &str = "test";

/// Whether the tests of this commit are known to pass: it is the end of a task, or a landing that the test command
/// gated. After a passed test, the commits up to the end of the task add only a report. Unreadable history counts as
/// not passed. A landing records only the names of its gates: `gates_are_tests` says that [`TEST_GATE`] is the test command.
#[must_use]
pub fn has_passed(repository: &Repository, commit: Oid, gates_are_tests: bool) -> bool {
    let mut next = Some(commit);
    for _ in 0..MAX_COMMITS {
        let Some(Ok(found)) = next.map(|commit| repository.load_commits(&[commit])) else { return false };
        let Some(raw) = found.first() else { return false };
        let MessageReading::WellFormed(message) = message::read(raw.message()) else { return false };
        match message.subject.status {
            Status::TestPass => return is_proof(&message),
            Status::Merge => {
                let gates = message.trailers.get(Key::Gate).unwrap_or_default();
                return gates_are_tests && gates.split(", ").any(|gate| gate == TEST_GATE);
            }
            Status::Complete | Status::ReviewApproved | Status::RunStart => next = raw.parents().next(),
            _ => return false,
        }
    }
    false
}

/// Whether a passed test proves anything: it had a command, and was not a test that was expected to fail.
fn is_proof(message: &Message) -> bool {
    let body = Body::parse(&message.body);
    let is_red = KnownRed::read(&body, EXPECTED_FAILURES).is_some_and(|known| !known.is_empty());
    !is_red && !message.subject.text.ends_with(NO_TEST_COMMAND)
}

/// The output of a package without tests: npm without a test script, and the script that `npm init` writes.
const SENTENCES: [&str; 2] = ["Missing script: \"test\"", "Error: no test specified"];

/// The exit code of a shell for a program that does not exist.
const PROGRAM_NOT_FOUND: i32 = 127;

/// The words of each program that a command starts, without the variables before it.
fn programs(command: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    command.split(['&', ';', '|', '\n']).filter_map(|part| {
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with(['-', '=']);
        let mut words = part.split_whitespace().skip_while(is_variable);
        Some((words.next()?, words))
    })
}

/// The program of a command of which the shell says that it does not exist.
fn find_absent<'c>(command: &'c str, printed: &str) -> Option<&'c str> {
    let mut names = programs(command).map(|(program, _)| program.trim_matches(['"', '\'', '(']));
    names.find(|name| printed.lines().any(|line| line.contains(&format!(": {name}: "))))
}

/// Whether a path leads to a file below the folder in which the command runs.
fn is_inside(path: &str) -> bool {
    path.contains('/') && is_relative(path)
}

/// Whether a path does not lead out of the folder in which the command runs.
fn is_relative(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::CurDir | Component::Normal(_)))
}

/// Whether a file is a plan or another text for people, or hidden.
fn is_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_text = |ending: &&str| name.ends_with(*ending);
    path.split('/').any(|part| part.starts_with('.'))
        || [".md", ".markdown", ".txt", ".rst", ".adoc"].iter().any(is_text)
        || ["task-tree.json", "LICENSE", "README"].contains(&name)
}

/// The folder of a `cd` in a command that does not exist.
fn find_missing_folder<'c>(command: &'c str, top: &Path) -> Option<&'c str> {
    let mut dir = top.to_owned();
    folders(command).find(|folder| {
        dir = dir.join(folder);
        !dir.is_dir()
    })
}

/// The folders into which a command changes.
fn folders(command: &str) -> impl Iterator<Item = &str> {
    programs(command).filter_map(|(program, words)| folder_of(program, words))
}

/// The folder into which a part of a command changes, if the shell takes the word as it is.
fn folder_of<'c>(program: &str, mut words: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let folder = words.next().filter(|_| program == "cd")?.trim_matches(['"', '\'']);
    let is_plain = !folder.starts_with(['-', '~']) && !folder.contains(['$', '`', '*', '?', '\\']);
    is_plain.then_some(folder)
}

/// The project file that is missing, as a program of the command says itself. Only its message tells that it has
/// started: a command before it may have failed.
fn find_missing(command: &str, top: &Path, printed: &str) -> Option<&'static str> {
    let printed = printed.to_lowercase();
    let mut dir = top.to_owned();
    for (program, words) in programs(command) {
        if let Some(folder) = folder_of(program, words) {
            dir = dir.join(folder);
            continue;
        }
        let program = program.rsplit('/').next().unwrap_or(program);
        let known = PROJECTS.iter().find(|kind| kind.programs.contains(&program));
        let says_so = |kind: &&ProjectKind| kind.messages.iter().any(|message| printed.contains(message));
        if let Some(kind) = known.filter(|kind| !has_any(&dir, kind.files)).filter(says_so) {
            return kind.files.first().map(|file| file.trim_start_matches('*'));
        }
    }
    None
}

/// Whether the output says that there are no tests.
fn says_no_tests(output: &str) -> bool {
    SENTENCES.iter().any(|words| output.contains(words))
}

fn has_any(dir: &Path, files: &[&str]) -> bool {
    files.iter().any(|file| match file.strip_prefix('*') {
        None => dir.join(file).is_file(),
        Some(ending) => std::fs::read_dir(dir).is_ok_and(|found| {
            found.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_file_is_missing_if_the_program_says_so_and_it_is_not_there() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("web")).unwrap();
        std::fs::write(top.path().join("web/package.json"), "{}").unwrap();
        let (cargo, npm) =
            ("error: could not find `Cargo.toml` in `/x`", "npm error enoent Could not read package.json");
        for (command, printed, missing) in [
            ("cargo test", cargo, Some("Cargo.toml")),
            ("cargo test", "sh: cargo: killed", None),
            ("CI=1 npm test", npm, Some("package.json")),
            ("cd web && npm test", npm, None),
            ("cd web && npm test && cargo test", cargo, Some("Cargo.toml")),
            ("cd wbe && npm test", "sh: 1: cd: can't cd to wbe", None),
            ("./gradlew check", "Directory '/x' does not contain a Gradle build.", Some("build.gradle")),
            ("dotnet test", "MSBUILD : error MSB1003: Specify a project", Some(".sln")),
            ("pytest -q", "", None),
            ("sh test.sh", cargo, None),
        ] {
            assert_eq!(find_missing(command, top.path(), printed), missing, "{command}");
        }
        for (command, folder) in [
            ("cd wbe && npm test", Some("wbe")),
            ("cd web && npm test", None),
            ("cd \"$DIR\" && npm test", None),
        ] {
            assert_eq!(find_missing_folder(command, top.path()), folder, "{command}");
        }
    }
}
