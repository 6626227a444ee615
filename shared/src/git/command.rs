//! Builds every call of the git program.

use std::{
    ffi::{OsStr, OsString},
    os::unix::{ffi::OsStringExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    GitError, before_children::require_plain_top, git_dir_id::GitDirId, locks,
    settings::frozen_settings::FrozenSettings,
};
use crate::{
    name::Oid,
    process::{BackgroundProgram, DRIVER, Program, ProgramOutput, RunningProgram, driver_mark},
};

/// A git command that is about to be run.
#[derive(Debug)]
pub struct GitCommand {
    name: String,
    program: Program,
    /// Whether it is run again after a lock of another git that stopped it is gone.
    waits_for_locks: bool,
    /// The git directories that must be the same as when the repository was opened.
    git_dirs: Arc<[GitDirId]>,
    /// The worktree, which must not be reached through a new link.
    top: Option<PathBuf>,
    /// Why it must not be run.
    refusal: Option<String>,
    /// The copy of the settings that it obeys.
    settings: Option<Arc<FrozenSettings>>,
}

/// The error if the copy of the settings was changed while a command ran.
const CHANGED_SETTINGS: &str = "another process wrote to the copy of the settings while git ran";

/// Otherwise git looks for refs that are named like an object, in a dozen places for every id in its arguments.
const NO_AMBIGUITY_CHECK: &str = "core.warnAmbiguousRefs=false";

/// A commit-graph contains parents, trees and dates of commits, and nothing proves that they are right: with a forged
/// parent, a merge would undo landed work.
const NO_COMMIT_GRAPH: &str = "core.commitGraph=false";
/// A multi-pack-index is not used, because nothing proves that it is right. Each pack has its own index anyway.
const NO_MULTI_PACK_INDEX: &str = "core.multiPackIndex=false";

/// Settings for all commands that obey only us: they keep git from running programs.
const COMMON_SETTINGS: [&str; 11] = [
    "advice.graftFileDeprecated=false",
    NO_COMMIT_GRAPH,
    NO_MULTI_PACK_INDEX,
    // Compare all stat data of a file. The ctime is the part that no process can set.
    "core.checkStat=default",
    "core.trustctime=true",
    "core.fsmonitor=false",
    // These make git cache in the index what folders contain, and which files it need not look at.
    "core.ignoreStat=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    NO_AMBIGUITY_CHECK,
    // An agent can put any repository in the place of a submodule.
    "submodule.recurse=false",
];

/// Further settings for commands that only read: they fix the output.
const READING_SETTINGS: [&str; 2] = ["i18n.logOutputEncoding=", "log.showSignature=false"];

/// Further settings for commands that change something.
const CHANGING_SETTINGS: [&str; 6] = [
    "core.splitIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    // The recorded resolutions are in a folder that every process can write to.
    "rerere.enabled=false",
    // On macOS, `.git` with additional invisible characters is still `.git`. No repository needs such names.
    "core.protectHFS=true",
];

/// Commands that never change files of worktrees. After any other command, the scan of a worktree is not valid any
/// more.
const WRITES_NO_WORKTREE: [&str; 14] = [
    "add", "commit-tree", "config", "hash-object", "ls-files", "merge-tree", "mktree", "pack-objects",
    "prune-packed", "symbolic-ref", "unpack-objects", "update-index", "update-ref", "write-tree",
];

/// Commands that write only to the files of one worktree.
const ONE_WORKTREE: [&str; 6] = ["checkout", "checkout-index", "clean", "read-tree", "reset", "restore"];

/// How many locks a command may have to wait for: an index, `HEAD`, a branch, packed-refs.
const MAX_LOCKS: usize = 5;

/// Variables that name a repository, or a part of one. They are removed for commands in another repository.
/// `GIT_CONFIG_COUNT` and so on are not among them: these are the user's settings for all repositories.
const REPOSITORY_VARIABLES: [&str; 12] = [
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

/// Variables that change how our own arguments are read: where `git config` looks, and what pathspecs mean.
/// `GIT_OBJECT_DIRECTORY` stays: a hook of a push finds the pushed objects there.
const ARGUMENT_VARIABLES: [&str; 4] =
    ["GIT_CONFIG", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

impl GitCommand {
    /// `git {name}` in `dir`, to read. It writes nothing and runs no program of the repository. Its output is buffered:
    /// a write for each of a million commits would cost more than finding them.
    #[must_use]
    pub fn reading(name: &str, dir: &Path) -> Self {
        let pins = COMMON_SETTINGS.iter().chain(&READING_SETTINGS).flat_map(|pin| ["-c", pin]);
        let program = Self::plain_program(dir)
            .shielded_if_watched(true)
            .writes_no_worktree()
            .repeated_if(is_about_moved_file)
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

    /// `git {name}` in `dir`, to change objects, refs or an index, with additional settings for this call. It runs no
    /// hooks and prunes nothing. The user's `core.fsync` decides what is on disk when it ends.
    #[must_use]
    pub(super) fn changing(name: &str, dir: &Path, settings: &[&str]) -> Self {
        let pins =
            COMMON_SETTINGS.iter().chain(&CHANGING_SETTINGS).chain(settings).flat_map(|pin| ["-c", pin]);
        let program = Self::plain_program(dir)
            .shielded_if_watched(true)
            .args(pins)
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_LITERAL_PATHSPECS", "0")
            .arg(name)
            .args(comparison_options(name));
        let program = match name {
            name if WRITES_NO_WORKTREE.contains(&name) => program.writes_no_worktree(),
            name if ONE_WORKTREE.contains(&name) => program.writes_one_worktree(),
            _ => program,
        };
        // `worktree add` creates a folder before it fails.
        let program = if name == "worktree" { program } else { program.repeated_if(is_about_moved_file) };
        Self { waits_for_locks: true, ..Self::of(name, program) }
    }

    /// Uses the repository of its directory, even if our environment names another one.
    #[must_use]
    pub(super) fn ignoring_environment(mut self) -> Self {
        self.program = REPOSITORY_VARIABLES.iter().fold(self.program, Program::env_remove);
        self
    }

    /// Keeps git from searching for a repository above `top`.
    #[must_use]
    pub(super) fn without_search_above(mut self, top: &Path) -> Self {
        let ceiling = top.parent().unwrap_or(top);
        let known = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
        let all = std::env::split_paths(&known).chain([ceiling.to_owned()]);
        // A folder with a colon in its name cannot be listed there; then the search is not limited.
        if let Ok(all) = std::env::join_paths(all) {
            self.program = self.program.env("GIT_CEILING_DIRECTORIES", all);
        }
        self
    }

    /// Fails unless these git directories are still the same.
    #[must_use]
    pub(super) fn requiring_git_dirs(mut self, git_dirs: &Arc<[GitDirId]>) -> Self {
        self.git_dirs = Arc::clone(git_dirs);
        self
    }

    /// Fails if this worktree is reached through a new link.
    #[must_use]
    pub(super) fn requiring_top(mut self, top: &Path) -> Self {
        self.top = Some(top.to_owned());
        self
    }

    /// Makes the command fail for this reason.
    #[must_use]
    pub(super) fn refused(mut self, why: String) -> Self {
        self.refusal = Some(why);
        self
    }

    /// Fails if this copy of the settings is changed before the command ends.
    #[must_use]
    pub(super) fn with_settings(mut self, settings: Arc<FrozenSettings>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Runs it once. If the copy of the settings was changed meanwhile, its result is not used.
    fn run(&mut self, input: Option<&[u8]>) -> Result<ProgramOutput, GitError> {
        let ended = match self.program.finish_again(input) {
            // A named pipe in the place of a file may be gone by now, so it is tried once more.
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

    /// Fails if the git directories are not the same any more, or if the command must not be run.
    pub(super) fn require_runnable(&self) -> Result<(), GitError> {
        if let Some(complaint) = self.refusal.clone() {
            return Err(GitError::Failed { command: self.name.clone(), complaint });
        }
        self.git_dirs.iter().try_for_each(GitDirId::require)?;
        self.top.as_deref().map_or(Ok(()), require_plain_top)
    }

    /// Protects it from Ctrl-C on the terminal, so that it is not stopped halfway.
    #[must_use]
    pub(super) fn shielded(mut self) -> Self {
        self.program = self.program.shielded();
        self
    }

    /// Allows it to ask the user on the terminal.
    #[must_use]
    pub(super) fn asking(mut self) -> Self {
        self.program = self.program.shielded_if_watched(false);
        self
    }

    fn of(name: &str, program: Program) -> Self {
        Self {
            name: name.to_owned(),
            program,
            waits_for_locks: false,
            git_dirs: Arc::default(),
            top: None,
            refusal: None,
            settings: None,
        }
    }

    /// `git {name}` in `dir` with the user's own settings, for commands that depend on hooks or configuration.
    #[must_use]
    pub fn acting(name: &str, dir: &Path) -> Self {
        // It only reads files; others may run programs that ask the user.
        let is_reading = name == "config";
        let program = Self::plain_program(dir).shielded_if_watched(is_reading).arg(name);
        let program = if is_reading { program.writes_no_worktree() } else { program };
        Self::of(name, program)
    }

    /// `git {name}` in `dir` with its output for the user: in their language, and in the repository of `dir`.
    #[must_use]
    pub fn watched(name: &str, dir: &Path) -> Self {
        let program = REPOSITORY_VARIABLES.iter().fold(Program::new("git").dir(dir), Program::env_remove);
        Self::of(name, program.arg(name).env(DRIVER, driver_mark()))
    }

    /// Runs it with our own standard streams. Any exit code but 0 is an error.
    pub fn run_to_end(self) -> Result<(), GitError> {
        self.require_runnable()?;
        let status = self.program.run_to_end()?;
        if status.success() {
            return Ok(());
        }
        Err(GitError::Failed { command: self.name, complaint: format!("it ended with {status}") })
    }

    fn plain_program(dir: &Path) -> Program {
        let program = ARGUMENT_VARIABLES.iter().fold(Program::located("git").dir(dir), Program::env_remove);
        program
            .env("LC_ALL", "C")
            .env("LANGUAGE", "")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env(DRIVER, driver_mark())
    }

    /// The subcommand.
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

    /// Runs it in another directory.
    #[must_use]
    pub(super) fn dir(mut self, dir: &Path) -> Self {
        self.program = self.program.dir(dir);
        self
    }

    pub(super) fn map_program(mut self, change: impl FnOnce(Program) -> Program) -> Self {
        self.program = change(self.program);
        self
    }

    /// Removes a variable from its environment.
    #[must_use]
    pub(super) fn env_remove(mut self, name: &str) -> Self {
        self.program = self.program.env_remove(name);
        self
    }

    /// The program, for callers that run it with limits, if it may be run.
    pub(super) fn checked_program(self) -> Result<Program, GitError> {
        self.require_runnable()?;
        Ok(self.into_program())
    }

    pub(super) fn into_program(self) -> Program {
        self.program
    }

    /// Starts it with a pipe to its standard input.
    pub(super) fn start_interactive(self) -> Result<RunningProgram, GitError> {
        self.require_runnable()?;
        Ok(self.program.start_interactive()?)
    }

    /// Starts it. Its output is read as it comes.
    pub fn start(self) -> Result<(String, RunningProgram), GitError> {
        self.require_runnable()?;
        Ok((self.name, self.program.start()?))
    }

    /// Does not wait for locks: the caller can do without it.
    #[must_use]
    pub(super) const fn without_waiting_for_locks(mut self) -> Self {
        self.waits_for_locks = false;
        self
    }

    /// Runs it to its end, with any exit code.
    pub fn finish(self) -> Result<ProgramOutput, GitError> {
        self.require_runnable()?;
        self.finish_past_locks(None)
    }

    /// git takes its locks before it changes anything, so a command that a lock has stopped can be run again. Except
    /// for `worktree add`, which creates a folder first.
    fn finish_past_locks(mut self, input: Option<&[u8]>) -> Result<ProgramOutput, GitError> {
        let dir = self.program.find_dir().unwrap_or_default();
        for _ in 0..MAX_LOCKS {
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

    /// Runs it in the background.
    #[must_use]
    pub fn finish_in_background(self) -> BackgroundProgram {
        if self.require_runnable().is_err() {
            // There is no result yet. git fails with this directory, and the caller gets that error later.
            return self.program.env("GIT_DIR", "/dev/null").finish_in_background();
        }
        match self.settings {
            Some(settings) => self
                .program
                .finish_in_background()
                .but(move || (!settings.is_untouched()).then(|| CHANGED_SETTINGS.to_owned())),
            None => self.program.finish_in_background(),
        }
    }

    /// Runs it to its end with `input` on standard input, with any exit code.
    pub fn finish_with(self, input: &[u8]) -> Result<ProgramOutput, GitError> {
        self.require_runnable()?;
        self.finish_past_locks(Some(input))
    }

    /// Its standard output. Any exit code but 0 is an error.
    pub fn stdout(self) -> Result<Vec<u8>, GitError> {
        let name = self.name.clone();
        checked(&name, self.finish()?)
    }

    /// Like [`Self::stdout`], with `input` on standard input.
    pub(super) fn stdout_with(self, input: &[u8]) -> Result<Vec<u8>, GitError> {
        let name = self.name.clone();
        checked(&name, self.finish_with(input)?)
    }

    /// Its standard output as text. Any exit code but 0 is an error.
    pub(super) fn text(self) -> Result<String, GitError> {
        self.stdout().map(into_text)
    }

    /// Like [`Self::text`], with `input` on standard input.
    pub(super) fn text_with(self, input: &[u8]) -> Result<String, GitError> {
        self.stdout_with(input).map(into_text)
    }

    /// The paths that it prints, each ended by NUL.
    pub(super) fn paths(self) -> Result<Vec<PathBuf>, GitError> {
        self.stdout().map(|printed| paths_of(&printed))
    }

    /// Its standard output, or `None` for exit code 1 ("no", "not found"). Other codes are errors.
    pub fn answer(self) -> Result<Option<Vec<u8>>, GitError> {
        let name = self.name.clone();
        let finished = self.finish()?;
        match finished.status.code() {
            Some(1) => Ok(None),
            _ => checked(&name, finished).map(Some),
        }
    }
}

/// Whether git's error message is about a file that another git has just moved or removed, as `pack-refs` and `worktree
/// prune` do: it was neither in its old place nor in its new one.
fn is_about_moved_file(complaint: &str) -> bool {
    let is_moved = |line: &str| {
        line.contains("unable to resolve reference")
            || line.contains("unable to read ref")
            || (line.contains("Unable to create '") && line.ends_with(".lock': No such file or directory"))
            || (line.contains("/worktrees/")
                && ["failed to read ", "not a git repository: "].iter().any(|words| line.contains(words)))
    };
    complaint.lines().any(is_moved)
}

/// Options for every comparison. `.gitmodules` is a file that an agent can write, and `ignore = all` in it would hide
/// moves of a submodule even between two trees; attributes could make git show another text. Uncommitted changes in a
/// submodule are ignored: to find them, git would run `git status` there, with the settings of any repository that an
/// agent has put in its place. [`super::Repository::dirty_submodules`] looks for them.
fn comparison_options(name: &str) -> &'static [&'static str] {
    match name {
        "diff-tree" | "diff-index" | "diff-files" => {
            &["--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv"]
        }
        "status" => &["--ignore-submodules=dirty"],
        _ => &[],
    }
}

/// The output of a successful command, otherwise an error with git's message.
pub(super) fn checked(name: &str, finished: ProgramOutput) -> Result<Vec<u8>, GitError> {
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    if let Some(signal) = finished.status.signal() {
        return Err(GitError::Killed { command: name.to_owned(), signal });
    }
    // The lock is still there, so we have already waited for it in vain.
    if let Some(lock) =
        locks::find_obstacle(&finished.complaint(), Path::new("")).filter(|lock| lock.exists())
    {
        return Err(locks::held(&lock));
    }
    Err(GitError::Failed { command: name.to_owned(), complaint: without_prefix(&finished.complaint()) })
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The names in a list of git, each ended by NUL.
pub(super) fn names_of(printed: &[u8]) -> Vec<Vec<u8>> {
    printed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The paths in a list of git, each ended by NUL.
pub(super) fn paths_of(printed: &[u8]) -> Vec<PathBuf> {
    names_of(printed).into_iter().map(|name| PathBuf::from(OsString::from_vec(name))).collect()
}

/// A list of paths for git, each ended by NUL.
pub(super) fn nul_ended<'p>(paths: impl IntoIterator<Item = &'p [u8]>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| [path, b"\0"]).collect::<Vec<_>>().concat()
}

/// The input of `git rev-list --stdin` for the commits that are reachable from `tips` and not from `others`.
pub(super) fn range_input(tips: &[Oid], others: &[Oid]) -> Vec<u8> {
    let tips = tips.iter().map(|tip| format!("{tip}\n"));
    tips.chain(others.iter().map(|other| format!("^{other}\n"))).collect::<String>().into_bytes()
}

/// git's error message without `fatal: ` or `error: `.
pub(super) fn without_prefix(complaint: &str) -> String {
    let line = complaint.trim();
    let line = line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line);
    if line.is_empty() { "it gave no reason".into() } else { line.to_owned() }
}
