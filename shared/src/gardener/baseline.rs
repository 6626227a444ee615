//! The tests of a run before its first task: whether the test command has anything to test yet, what it may not touch, and
//! which tests fail already.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    agent::redact::{Redactor, Secrets},
    gardener::GardenerError,
    git::{FloatingRef, OtherWriters, OwnedMeanwhile, RawCommit, RefWatch, Repository, TrackedFiles},
    message::{self, Body, Key, Message, MessageReading, Status},
    name::Oid,
    pipeline::{
        ConfigGuard, KnownRed, Neighbours, Observed, PipelineError, Redaction, TO_BE_MENDED,
        put_back_checkout,
    },
    process::{Cancel, Ending, Limits, OrphanLock, Program, Supervised, SupervisedEnd},
    queue::{queue_refs, ran_no_tests},
    record::{RunRecorder, Unfinished},
    safe_files,
    session::owned_by,
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
            if ran_no_tests(&said) || says_so(&said) {
                return Baseline::NoTests(format!("'{command}' finds no tests"));
            }
            let missing = find_missing(self.command, self.dir);
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

/// Everything that is compared once the baseline has ended.
#[derive(Debug)]
pub struct BaselineGuard<'a> {
    recorder: &'a RunRecorder<'a>,
    refs: RefWatch,
    /// Set where the branch is only a target, which its user may move at any time.
    target: Option<FloatingRef>,
    _meanwhile: OwnedMeanwhile,
}

impl<'a> BaselineGuard<'a> {
    /// From here on the refs of the run are owned: set-up commands that prepare the place of a baseline are watched, too.
    pub fn begin(recorder: &'a RunRecorder<'a>, is_in_place: bool) -> Result<Self, GardenerError> {
        let (repository, identity) = (recorder.repository(), recorder.identity());
        repository.own_refs(&owned_by(&identity.run, Some(&identity.session)))?;
        // Later others may queue and land what is finished. Nothing can be before the first task.
        let mut owned = queue_refs(&identity.run);
        owned.names.push(recorder.branch().to_ref());
        let meanwhile = repository.own_refs_meanwhile(&owned)?;
        let target = (!is_in_place).then(|| repository.float_ref(&recorder.branch().to_ref()));
        Ok(Self { recorder, refs: repository.watch_refs(), target, _meanwhile: meanwhile })
    }

    /// Puts back what was moved, also where the baseline did not come to its end. One that moved something has failed.
    pub fn end(self, ended: Result<Baseline, GardenerError>) -> Result<Baseline, GardenerError> {
        let repository = self.recorder.repository();
        let mut found = Vec::new();
        match &self.target {
            Some(_) if self.has_meddled()? => {
                repository.restore_ref(&self.recorder.branch().to_ref())?;
                found.extend(self.refs.restore());
            }
            Some(_) => found.extend(self.refs.restore()),
            None => {
                found.extend(self.refs.restore());
                found.extend(put_back_checkout(self.recorder, &self.mark())?);
            }
        }
        let baseline = ended?;
        if let Baseline::Trespass(why) = &baseline {
            found.retain(|change| !why.contains(change.as_str()));
            found.insert(0, why.clone());
        }
        Ok(if found.is_empty() { baseline } else { Baseline::Trespass(found.join("; ")) })
    }

    /// Whether the branch is gone, leads elsewhere, or has commits that claim to be the run's. What a user commits there
    /// stays: the run says later that its branch was moved.
    fn has_meddled(&self) -> Result<bool, GardenerError> {
        let (repository, branch) = (self.recorder.repository(), self.recorder.branch());
        let before = self.recorder.head();
        if repository.leads_elsewhere(&branch.to_ref()) {
            return Ok(true);
        }
        match repository.find_branch(branch)? {
            Some(now) if now == before => Ok(false),
            Some(now) => {
                let revisions = [now.to_string(), format!("^{before}")];
                for commit in repository.stream_commits(&revisions)? {
                    if self.is_claim(&commit?) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// Whether a commit says that the run made it, soundly or not. What another run made may have been merged meanwhile.
    fn is_claim(&self, commit: &RawCommit) -> bool {
        match message::read(commit.message()) {
            MessageReading::Foreign => false,
            MessageReading::Unsound(_) => true,
            MessageReading::Sound(message) => message.subject.branch == *self.recorder.run(),
        }
    }

    /// The name under which commits are kept that something made in the checkout.
    fn mark(&self) -> String {
        format!("{}{}/baseline/0", Unfinished::REFS, self.recorder.branch().component())
    }
}

/// Programs that test a project, and the files of which one has to be there. A name that begins with `*` is an ending.
const PROJECTS: [(&[&str], &[&str]); 13] = [
    (&["cargo"], &["Cargo.toml"]),
    (&["npm", "npx", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json"]),
    (&["go"], &["go.mod", "go.work"]),
    (&["mvn", "mvnw"], &["pom.xml"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (&["dotnet"], &["*.sln", "*.slnx", "*.csproj", "*.fsproj"]),
    (&["mix"], &["mix.exs"]),
    (&["bundle", "rake", "rspec"], &["Gemfile", "Rakefile"]),
    (&["composer", "phpunit"], &["composer.json", "phpunit.xml", "phpunit.xml.dist"]),
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["swift"], &["Package.swift"]),
];

/// What a package without tests says: npm without a script, and the script that `npm init` writes.
const SENTENCES: [&str; 2] = ["Missing script: \"test\"", "Error: no test specified"];

/// The project file that a command needs and does not find in `top`, if that is so.
pub(super) fn find_missing(command: &str, top: &Path) -> Option<&'static str> {
    let mut dir = top.to_owned();
    for part in command.split(['&', ';', '|', '\n']) {
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with(['-', '=']);
        let mut words = part.split_whitespace().skip_while(is_variable);
        let Some(program) = words.next() else { continue };
        let program = program.rsplit('/').next().unwrap_or(program);
        if program == "cd" {
            let folder: PathBuf = words.next().unwrap_or_default().trim_matches(['"', '\'']).into();
            dir = dir.join(folder);
            continue;
        }
        let known = PROJECTS.iter().find(|(programs, _)| programs.contains(&program));
        if let Some((_, files)) = known.filter(|(_, files)| !has_one(&dir, files)) {
            return files.first().map(|file| file.trim_start_matches('*'));
        }
    }
    None
}

/// Whether the output says that there are no tests yet.
pub(super) fn says_so(output: &str) -> bool {
    SENTENCES.iter().any(|words| output.contains(words))
}

fn has_one(dir: &Path, files: &[&str]) -> bool {
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
    fn a_command_needs_the_files_of_its_program_where_it_runs() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("web")).unwrap();
        std::fs::write(top.path().join("web/package.json"), "{}").unwrap();
        for (command, missing) in [
            ("cargo test", Some("Cargo.toml")),
            ("CI=1 npm test", Some("package.json")),
            ("cd web && npm test", None),
            ("cd web && npm test && cargo test", Some("Cargo.toml")),
            ("./gradlew check", Some("build.gradle")),
            ("dotnet test", Some(".sln")),
            ("pytest -q", None),
            ("sh test.sh", None),
        ] {
            assert_eq!(find_missing(command, top.path()), missing, "{command}");
        }
    }
}
