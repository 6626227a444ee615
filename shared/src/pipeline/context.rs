//! The context in which steps run: [`RunContext`] for everything that all tasks share, [`TaskContext`] for one task.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    agent::{ToolServer, redact::Secrets},
    event::{EventKind, RunEvent},
    message::Step,
    name::{Attempt, Oid, RepoName, TaskId},
    pipeline::{
        CallMemory, CheckpointWriter, ConfigGuard, IgnoredFiles, KnownRed, OtherRepo, PipelineError,
        Playback, ReviewPlaces, RunOptions, TestTally, UsersPaths, calls::caller::file_error,
    },
    process::{Cancel, OrphanLock, Program},
    record::{RunIdentity, RunRecorder, StepHeading, create_step_log},
    settings::ReviewsIn,
};

/// Everything that all tasks of a run share. It does not change during the run.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// The options of the run.
    pub options: &'a RunOptions,
    /// The run and session that commits are made for.
    pub identity: RunIdentity,
    /// The directory that contains logs: the top of the user's checkout, also for tasks in lanes.
    pub home: PathBuf,
    /// Secrets that must not appear in logs or commits.
    pub secrets: Secrets,
    /// Signals that the run should stop.
    pub cancel: Cancel,
    /// The program of the built-in agent.
    pub demo: PathBuf,
    /// Whether the user's pre-commit hook must accept an agent's work.
    pub hook: PreCommit,
    /// Returns the current time in seconds since 1970.
    pub clock: fn() -> i64,
    /// Guards the files and refs that agents could change behind our back.
    pub config_guard: ConfigGuard,
    /// Creates worktrees for reviewers.
    pub reviews: Arc<dyn ReviewPlaces + Send>,
    /// The paths with uncommitted changes of the user in the checkout of the run.
    pub users_paths: Arc<UsersPaths>,
    /// A recorded session that is replayed instead of calling agents.
    pub playback: Option<Arc<Playback>>,
}

impl RunContext<'_> {
    /// The paths with uncommitted changes of the user in a checkout.
    #[must_use]
    pub fn users_paths(&self, recorder: &RunRecorder<'_>) -> Arc<UsersPaths> {
        let is_in_place = recorder.is_on_run_branch();
        if is_in_place { Arc::clone(&self.users_paths) } else { Arc::default() }
    }

    /// The source of separate worktrees for reviewers; `None` if they work in the task's checkout.
    pub(super) fn review_places(&self) -> Option<&dyn ReviewPlaces> {
        match self.options.reviews_in {
            ReviewsIn::Scratch => Some(&*self.reviews),
            ReviewsIn::Checkout => None,
        }
    }
}

/// Everything that one task works with.
pub struct TaskContext<'a> {
    /// The context of the run.
    pub run: &'a RunContext<'a>,
    /// The top of the checkout.
    pub dir: &'a Path,
    /// Detects processes of an earlier attempt that are still alive.
    pub orphan_lock: OrphanLock,
    /// Environment variables for programs, in addition to those that describe the task.
    pub environment: Vec<(String, String)>,
    /// The MCP server that agents may be given.
    pub tools: ToolServer,
    /// Receives every event.
    pub on_event: Box<dyn FnMut(RunEvent) + Send + 'a>,
    /// What earlier calls have taught, such as runners that are not available.
    pub memory: CallMemory,
    /// Writes the session's records.
    pub checkpoints: CheckpointWriter<'a>,
    /// Checkouts of other repositories that the task works in.
    pub other_repos: Vec<OtherRepo>,
    /// Checkouts of other repositories whose commands test the task, but which it does not work in.
    pub test_only_repos: Vec<OtherRepo>,
    /// The paths of the task's repositories, by name.
    pub places: Vec<(RepoName, PathBuf)>,
    /// Commands of other repositories that tests may refer to by name.
    pub commands: Vec<NamedCommand>,
    /// The ignored files of the user's checkout, if the task is worked on there.
    pub ignored: Option<IgnoredFiles>,
    /// Finds out whether the task's lane has everything that its tests need.
    pub lane_check: Option<LaneCheck<'a>>,
    /// Counts the tests of a command without the work of the task.
    pub base_counter: Option<BaseCounter<'a>>,
    /// Creates the checkouts that tests run in, if they do not run in the task's own.
    pub clean_checkouts: Option<CleanCheckouts<'a>>,
    /// What the sandbox refused when the lane was set up. It is recorded with the first attempt.
    pub set_up_denials: Vec<String>,
}

/// How the tests of a task ended in its lane.
#[derive(Debug, Clone, Copy)]
pub enum LaneTests<'t> {
    /// They passed, so the lane has everything that they need.
    Passed,
    /// They failed.
    Failed {
        /// The commit that the task began at.
        base: Oid,
        /// The tests that are known to fail.
        known: &'t KnownRed,
    },
}

/// Checks a lane. After tests that failed, it runs them at the commit that the task began at, and returns an error if other
/// tests than the known ones fail there, too: the lane lacks something.
pub type LaneCheck<'a> = Box<dyn FnMut(LaneTests<'_>) -> Result<(), PipelineError> + Send + 'a>;

/// Runs a test command at a commit, and returns how many tests ran there. `None` if it failed and does not say it.
pub type BaseCounter<'a> = Box<dyn FnMut(Oid, &str) -> Result<Option<TestTally>, PipelineError> + Send + 'a>;

/// Creates a clean checkout of a commit.
pub type CleanCheckouts<'a> = Box<dyn FnMut(Oid) -> Result<CleanCheckout, PipelineError> + Send + 'a>;

/// A clean checkout, used by one test at a time.
pub struct CleanCheckout {
    /// Its top directory.
    pub path: PathBuf,
    /// Reserves the checkout for us until it is dropped.
    pub held: Box<dyn Send>,
}

/// A command of another repository that a test may refer to by name.
#[derive(Debug, Clone)]
pub struct NamedCommand {
    /// The name, as `NAME:TOOL`.
    pub name: String,
    /// The command line for a shell.
    pub command: String,
    /// The directory that it runs in.
    pub dir: PathBuf,
    /// Environment variables that differ from the task's, because the command belongs to another repository.
    pub environment: Vec<(String, String)>,
}

/// Whether the user has a pre-commit hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreCommit {
    /// There is one, which is called before agents' work is committed.
    Present,
    /// There is none.
    None,
}

impl TaskContext<'_> {
    /// Ends the use of the checkout, and returns the lock for the next task.
    #[must_use]
    pub fn into_orphan_lock(self) -> OrphanLock {
        self.orphan_lock
    }

    /// Reports an event of a task.
    pub fn emit(&mut self, task: &TaskId, kind: EventKind) {
        (self.on_event)(RunEvent::of(task, kind));
    }

    /// Creates the log of a step, and returns its path.
    pub fn create_log(&self, task: &TaskId, step: Step, attempt: Attempt) -> Result<String, PipelineError> {
        let RunContext { home, options, clock, identity, .. } = self.run;
        let heading = StepHeading::now(&identity.session, task, step, attempt);
        create_step_log(home, &options.log_dir, &heading, clock())
            .map_err(|source| file_error(&home.join(&options.log_dir), source))
    }

    /// The current time in the form that file names use.
    #[must_use]
    pub fn file_timestamp(&self) -> String {
        let now = Timestamp::from_second((self.run.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        now.strftime("%Y%m%dT%H%M%S").to_string()
    }
}

/// Adds environment variables to a program.
pub(super) fn with_environment(program: Program, environment: &[(String, String)]) -> Program {
    environment.iter().fold(program, |program, (name, value)| program.env(name, value))
}
