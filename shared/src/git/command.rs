//! One builder for every call of the git program.

use std::{
    ffi::OsStr,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    GitError,
    frozen::FrozenSettings,
    identity::{GitDirId, require_plain_top},
    locks,
};
use crate::process::{Awaited, DRIVER, Program, ProgramOutput, RunningProgram, driver_mark};

/// A call of git that only reads.
#[derive(Debug)]
pub struct GitCommand {
    name: String,
    program: Program,
    /// Whether it is tried again where a lock file of another git stands in its way.
    waits_for_locks: bool,
    /// The git directories that it must find as they were when the repository was opened.
    homes: Arc<[GitDirId]>,
    /// The worktree, which must not be behind a link.
    top: Option<PathBuf>,
    /// Why it must not be run.
    refusal: Option<String>,
    /// The copy of the settings that it obeys.
    settings: Option<Arc<FrozenSettings>>,
}

/// Why a command does not count whose settings were not those that were frozen.
const CHANGED_SETTINGS: &str = "something wrote to the copy of the settings while it ran";

/// Without this git looks for a ref that is called like an object, in a dozen places for every id that it is given.
const AMBIGUITY: &str = "core.warnAmbiguousRefs=false";

/// A commit-graph gives parents, trees and dates of commits without the commits, and nothing proves what stands in it: with a
/// false parent, a merge takes landed work off again.
const GRAPH: &str = "core.commitGraph=false";
/// The same for where objects are. Each pack has an index of its own.
const PACKS: &str = "core.multiPackIndex=false";

/// Settings that could run a program or change an answer, pinned for every reading call.
const PINNED: [&str; 13] = [
    "advice.graftFileDeprecated=false",
    GRAPH,
    PACKS,
    // All that git compares of a file: the time of its last change of status is what nobody can set.
    "core.checkStat=default",
    "core.trustctime=true",
    "core.fsmonitor=false",
    // These remember in the index what lies in folders, and which files need not be looked at.
    "core.ignoreStat=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    AMBIGUITY,
    "i18n.logOutputEncoding=",
    "log.showSignature=false",
    "submodule.recurse=false",
];

/// What is pinned for calls that change something.
const CHANGING: [&str; 17] = [
    "advice.graftFileDeprecated=false",
    GRAPH,
    PACKS,
    "core.checkStat=default",
    "core.trustctime=true",
    "core.fsmonitor=false",
    "core.ignoreStat=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    AMBIGUITY,
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    // What was once resolved stands in a folder that anybody can write to.
    "rerere.enabled=false",
    // An agent can put any repository in the place of a submodule.
    "submodule.recurse=false",
    // On a Mac, names with characters that cannot be seen are `.git`. Nobody else needs them.
    "core.protectHFS=true",
];

/// Commands that change something else than the files of worktrees, whatever their options. After any other a worktree is
/// examined again.
const HARMLESS: [&str; 11] = [
    "add",
    "commit-tree",
    "hash-object",
    "ls-files",
    "merge-tree",
    "mktree",
    "pack-objects",
    "prune-packed",
    "update-index",
    "update-ref",
    "write-tree",
];

/// Commands that write to the files of one worktree and to no others.
const SETTLED: [&str; 6] = ["checkout", "checkout-index", "clean", "read-tree", "reset", "restore"];

/// A command meets at most so many locks on its way: an index, `HEAD`, a branch, packed refs.
const LOCKS_PASSED: usize = 5;

/// What names a repository, or a part of one, in our own environment. A call for another repository sees none of it.
/// `GIT_CONFIG_COUNT` and its kind are no part of this: they are the user's wishes for all repositories.
const LOCAL: [&str; 12] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_NAMESPACE",
    "GIT_REPLACE_REF_BASE",
];

/// What changes how our own arguments are read: where `git config` looks, and what pathspecs mean. Objects that the
/// environment names (`GIT_OBJECT_DIRECTORY`) stay: a hook of a push finds what is pushed there.
const MISLEADING: [&str; 4] =
    ["GIT_CONFIG", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

impl GitCommand {
    /// `git {name}` in `dir`. It writes nothing and runs nothing that the repository brings along. What it prints comes
    /// when its buffer is full: a write for each of a million commits costs more than to find them.
    #[must_use]
    pub fn reading(name: &str, dir: &Path) -> Self {
        let pins = PINNED.iter().flat_map(|pin| ["-c", pin]);
        let program = Self::plain_program(dir)
            .spared(true)
            .harmless()
            .args(pins)
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_LITERAL_PATHSPECS", "0")
            .env("GIT_FLUSH", "0")
            .arg(name)
            .args(comparison_options(name));
        Self::of(name, program)
    }

    /// `git {name}` in `dir`, to change objects, refs or an index, with settings for this one call. It runs no hooks
    /// and prunes nothing. What is on the disk when it ends is what the user's own `core.fsync` asks for.
    #[must_use]
    pub(super) fn changing(name: &str, dir: &Path, settings: &[&str]) -> Self {
        let pins = CHANGING.iter().chain(settings).flat_map(|pin| ["-c", pin]);
        let program = Self::plain_program(dir)
            .spared(true)
            .args(pins)
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_LITERAL_PATHSPECS", "0")
            .arg(name)
            .args(comparison_options(name));
        let program = match name {
            name if HARMLESS.contains(&name) => program.harmless(),
            name if SETTLED.contains(&name) => program.settled(),
            _ => program,
        };
        Self {
            name: name.to_owned(),
            program,
            waits_for_locks: true,
            homes: Arc::default(),
            top: None,
            refusal: None,
            settings: None,
        }
    }

    /// The same in the repository of its directory, whichever our own environment names.
    #[must_use]
    pub(super) fn at_home(mut self) -> Self {
        self.program = LOCAL.iter().fold(self.program, Program::env_remove);
        self
    }

    /// The same for a repository that lies at `top` or below it: git does not look for one above.
    #[must_use]
    pub(super) fn not_above(mut self, top: &Path) -> Self {
        let ceiling = top.parent().unwrap_or(top);
        let known = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
        let all = std::env::split_paths(&known).chain([ceiling.to_owned()]);
        // A folder whose name has a colon in it cannot be named there; then git is left to look.
        if let Ok(all) = std::env::join_paths(all) {
            self.program = self.program.env("GIT_CEILING_DIRECTORIES", all);
        }
        self
    }

    /// The same for as long as these directories are where they were.
    #[must_use]
    pub(super) fn of_homes(mut self, homes: &Arc<[GitDirId]>) -> Self {
        self.homes = Arc::clone(homes);
        self
    }

    /// The same for as long as no link leads away from this worktree.
    #[must_use]
    pub(super) fn of_top(mut self, top: &Path) -> Self {
        self.top = Some(top.to_owned());
        self
    }

    /// The same as one that is never run, for this reason.
    #[must_use]
    pub(super) fn refused(mut self, why: String) -> Self {
        self.refusal = Some(why);
        self
    }

    /// The same with a copy of the settings that must stay as it is until it has ended.
    #[must_use]
    pub(super) fn with_settings(mut self, settings: Arc<FrozenSettings>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Runs it. It may have read a copy of the settings that was another for a moment: then it has done something else.
    fn run(&mut self, input: Option<&[u8]>) -> Result<ProgramOutput, GitError> {
        let ended = match self.program.finish_again(input) {
            // Whoever put a named pipe in the place of a file has perhaps taken it away again.
            Err(error) if error.is_stuck() => self.program.finish_again(input)?,
            ended => ended?,
        };
        match &self.settings {
            Some(settings) if !settings.is_untouched() => {
                let complaint = CHANGED_SETTINGS.to_owned();
                Err(GitError::Failed { command: self.name.clone(), complaint })
            }
            _ => Ok(ended),
        }
    }

    /// An error if the repository that it is meant for is not there any more, or if it must not be run.
    pub(super) fn require_homes(&self) -> Result<(), GitError> {
        if let Some(complaint) = self.refusal.clone() {
            return Err(GitError::Failed { command: self.name.clone(), complaint });
        }
        self.homes.iter().try_for_each(GitDirId::require)?;
        self.top.as_deref().map_or(Ok(()), require_plain_top)
    }

    /// The same out of reach of Ctrl-C on the terminal: what it writes must not be left half done.
    #[must_use]
    pub(super) fn shielded(mut self) -> Self {
        self.program = self.program.shielded();
        self
    }

    /// The same for what may ask the user something on the terminal.
    #[must_use]
    pub(super) fn asking(mut self) -> Self {
        self.program = self.program.spared(false);
        self
    }

    fn of(name: &str, program: Program) -> Self {
        Self {
            name: name.to_owned(),
            program,
            waits_for_locks: false,
            homes: Arc::default(),
            top: None,
            refusal: None,
            settings: None,
        }
    }

    /// `git {name}` in `dir` with the user's own settings, for what hooks and configuration may matter for.
    #[must_use]
    pub fn acting(name: &str, dir: &Path) -> Self {
        let program = Self::plain_program(dir).arg(name);
        Self::of(name, program)
    }

    /// `git {name}` in `dir` for a person to watch: in their language, and in no other repository than that of `dir`.
    #[must_use]
    pub fn watched(name: &str, dir: &Path) -> Self {
        let program = LOCAL.iter().fold(Program::new("git").dir(dir), Program::env_remove);
        Self {
            name: name.to_owned(),
            program: program.arg(name),
            waits_for_locks: false,
            homes: Arc::default(),
            top: None,
            refusal: None,
            settings: None,
        }
    }

    /// Runs it to its end where our own streams lead. Any exit code but 0 is an error.
    pub fn attend(self) -> Result<(), GitError> {
        self.require_homes()?;
        let status = self.program.attend()?;
        if status.success() {
            return Ok(());
        }
        Err(GitError::Failed { command: self.name, complaint: format!("it ended with {status}") })
    }

    fn plain_program(dir: &Path) -> Program {
        let program = MISLEADING.iter().fold(Program::located("git").dir(dir), Program::env_remove);
        program
            .env("LC_ALL", "C")
            .env("LANGUAGE", "")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env(DRIVER, driver_mark())
    }

    /// What git is asked to do.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.program = self.program.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.program = self.program.args(args);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.program = self.program.env(name, value);
        self
    }

    /// Runs it elsewhere.
    #[must_use]
    pub(super) fn dir(mut self, dir: &Path) -> Self {
        self.program = self.program.dir(dir);
        self
    }

    pub(super) fn map_program(mut self, change: impl FnOnce(Program) -> Program) -> Self {
        self.program = change(self.program);
        self
    }

    /// Keeps a variable of ours from it.
    #[must_use]
    pub(super) fn env_remove(mut self, name: &str) -> Self {
        self.program = self.program.env_remove(name);
        self
    }

    /// The same to be run with limits.
    /// The program for whoever runs it otherwise, if it may be run.
    pub(super) fn checked_program(self) -> Result<Program, GitError> {
        self.require_homes()?;
        Ok(self.into_program())
    }

    pub(super) fn into_program(self) -> Program {
        self.program
    }

    /// Starts it to be told things one after the other.
    pub(super) fn converse(self) -> Result<RunningProgram, GitError> {
        self.require_homes()?;
        Ok(self.program.converse()?)
    }

    /// Starts it; its output is read as it comes.
    pub fn start(self) -> Result<(String, RunningProgram), GitError> {
        self.require_homes()?;
        Ok((self.name, self.program.start()?))
    }

    /// The same for one that does not wait for lock files: who calls it knows what to do without it.
    #[must_use]
    pub(super) const fn at_once(mut self) -> Self {
        self.waits_for_locks = false;
        self
    }

    /// Runs it to its end, whatever its exit code is.
    pub fn finish(self) -> Result<ProgramOutput, GitError> {
        self.require_homes()?;
        self.finish_past_locks(None)
    }

    /// Git takes its lock before it changes anything, so one that a lock stopped can be run again. `worktree add` is not: it
    /// makes a folder first.
    fn finish_past_locks(mut self, input: Option<&[u8]>) -> Result<ProgramOutput, GitError> {
        let dir = self.program.find_dir().unwrap_or_default();
        for _ in 0..LOCKS_PASSED {
            let ended = self.run(input)?;
            let may_retry = self.waits_for_locks && self.name != "worktree" && !ended.status.success();
            let lock = may_retry.then(|| locks::find_obstacle(&ended.complaint(), &dir)).flatten();
            match lock {
                Some(lock) if locks::wait_for(&lock).is_ok() => {}
                _ => return Ok(ended),
            }
        }
        self.run(input)
    }

    /// Runs it to its end beside us.
    #[must_use]
    pub fn finish_later(self) -> Awaited {
        if self.require_homes().is_err() {
            // Nothing can be returned yet. git refuses this directory, and says so when it is waited for.
            return self.program.env("GIT_DIR", "/dev/null").finish_later();
        }
        match self.settings {
            Some(settings) => self
                .program
                .finish_later()
                .but(move || (!settings.is_untouched()).then(|| CHANGED_SETTINGS.to_owned())),
            None => self.program.finish_later(),
        }
    }

    /// Runs it to its end with `input` on standard input, whatever its exit code is.
    pub fn finish_with(self, input: &[u8]) -> Result<ProgramOutput, GitError> {
        self.require_homes()?;
        self.finish_past_locks(Some(input))
    }

    /// Its standard output. Any exit code but 0 is an error.
    pub fn stdout(self) -> Result<Vec<u8>, GitError> {
        let name = self.name.clone();
        checked(&name, self.finish()?)
    }

    /// Its standard output, `None` for exit code 1 ("no", "not there"). Other codes are errors.
    pub fn answer(self) -> Result<Option<Vec<u8>>, GitError> {
        let name = self.name.clone();
        let finished = self.finish()?;
        match finished.status.code() {
            Some(1) => Ok(None),
            _ => checked(&name, finished).map(Some),
        }
    }
}

/// What every comparison is told. `.gitmodules` is a file that an agent can write, and `ignore = all` in it would leave moves
/// of a submodule out even where two trees are compared; attributes could have a program show another text. What is not
/// committed in a submodule is left out: to find it, git would run `git status` there, with the settings of whatever
/// repository an agent has put in its place. [`super::Repository::dirty_submodules`] asks for that.
fn comparison_options(name: &str) -> &'static [&'static str] {
    match name {
        "diff-tree" | "diff-index" | "diff-files" => {
            &["--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv"]
        }
        "status" => &["--ignore-submodules=dirty"],
        _ => &[],
    }
}

/// The output of a call that succeeded, else an error with git's own words.
pub(super) fn checked(name: &str, finished: ProgramOutput) -> Result<Vec<u8>, GitError> {
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    if let Some(signal) = finished.status.signal() {
        return Err(GitError::Killed { command: name.to_owned(), signal });
    }
    // Only whoever waited for it in vain comes here with a lock that is still there.
    if let Some(lock) =
        locks::find_obstacle(&finished.complaint(), Path::new("")).filter(|lock| lock.exists())
    {
        return Err(locks::held(&lock));
    }
    Err(GitError::Failed { command: name.to_owned(), complaint: without_prefix(&finished.complaint()) })
}

/// git's complaint without `fatal: ` or `error: `, or a word for its silence.
pub(super) fn without_prefix(complaint: &str) -> String {
    let line = complaint.trim();
    let line = line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line);
    if line.is_empty() { "it gave no reason".into() } else { line.to_owned() }
}
