//! What the steps of a pipeline work with: what all tasks of a run share, and what one task has for itself.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    agent::{ToolServer, redact::Secrets},
    event::{EventKind, RunEvent},
    name::{Oid, RepoName, TaskId},
    pipeline::{
        CallMemory, CheckpointWriter, ConfigGuard, IgnoredFiles, KnownRed, OtherRepo, PipelineError,
        Playback, ReviewPlaces, ReviewsIn, RunOptions,
    },
    process::{Cancel, OrphanLock, Program},
    record::RunIdentity,
};

/// What all tasks of a run share. It does not change while the run works.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// What holds for the run.
    pub options: &'a RunOptions,
    /// For which run and session commits are made.
    pub identity: RunIdentity,
    /// Where logs are: the top of the user's checkout, also for lanes.
    pub home: PathBuf,
    /// What must not be written down.
    pub secrets: Secrets,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The program of the built-in agent.
    pub demo: PathBuf,
    /// Whether the user has a hook to be asked before an agent's work is committed.
    pub hook: PreCommit,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
    /// Watches what agents share.
    pub config_guard: ConfigGuard,
    /// Worktrees for reviewers.
    pub reviews: Arc<dyn ReviewPlaces + Send>,
    /// What is played again instead of calling agents.
    pub playback: Option<Arc<Playback>>,
}

impl RunContext<'_> {
    /// Gives reviewers a place of their own; `None` if they work in the task's.
    pub(super) fn review_places(&self) -> Option<&dyn ReviewPlaces> {
        match self.options.reviews_in {
            ReviewsIn::Scratch => Some(&*self.reviews),
            ReviewsIn::Checkout => None,
        }
    }
}

/// What one task works with.
pub struct TaskContext<'a> {
    /// What all tasks share.
    pub run: &'a RunContext<'a>,
    /// The top of the checkout.
    pub dir: &'a Path,
    /// Tells whether a process of an attempt lives.
    pub orphan_lock: OrphanLock,
    /// What programs find in their environment, beside what is said of the task.
    pub environment: Vec<(String, String)>,
    /// The server of tools that agents may be given.
    pub tools: ToolServer,
    /// Receives every event.
    pub on_event: Box<dyn FnMut(RunEvent) + Send + 'a>,
    /// What is remembered of earlier calls.
    pub memory: CallMemory,
    /// Writes the records of the session.
    pub checkpoints: CheckpointWriter<'a>,
    /// Places in other repositories that the task works in.
    pub other_repos: Vec<OtherRepo>,
    /// Places in other repositories that only test the task, with tools of theirs.
    pub lent: Vec<OtherRepo>,
    /// Where the repositories of the task are, by their names.
    pub places: Vec<(RepoName, PathBuf)>,
    /// Commands of repositories that tests may name.
    pub commands: Vec<NamedCommand>,
    /// What git ignores in the user's checkout, where the task is worked on there.
    pub ignored: Option<IgnoredFiles>,
    /// Tells whether the lane that the task works in has all that its tests need.
    pub lane_check: Option<LaneCheck<'a>>,
    /// Where tests run, if not where the task is worked on.
    pub clean_places: Option<CleanPlaces<'a>>,
}

/// Told that tests passed in a lane, or asked whether they fail at the commit that its task began at too, but for those
/// that are known to.
pub type LaneCheck<'a> = Box<dyn FnMut(Option<(Oid, &KnownRed)>) -> Result<(), PipelineError> + Send + 'a>;

/// Makes a clean checkout of a commit.
pub type CleanPlaces<'a> = Box<dyn FnMut(Oid) -> Result<CleanPlace, PipelineError> + Send + 'a>;

/// A clean checkout that is used by one test at a time.
pub struct CleanPlace {
    /// Its top.
    pub path: PathBuf,
    /// What keeps it ours.
    pub held: Box<dyn Send>,
}

/// A command of a repository that a test may name.
#[derive(Debug, Clone)]
pub struct NamedCommand {
    /// As `NAME:TOOL`.
    pub name: String,
    /// For a shell.
    pub command: String,
    /// Where it runs.
    pub dir: PathBuf,
    /// What it finds in its environment that is not as for the task: the repository is its own.
    pub environment: Vec<(String, String)>,
}

/// Whether the user has a pre-commit hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreCommit {
    /// It is asked.
    Asked,
    /// There is none.
    None,
}

impl TaskContext<'_> {
    /// Gives up the checkout, and returns the lock for the next task.
    #[must_use]
    pub fn leave(self) -> OrphanLock {
        self.orphan_lock
    }

    /// Tells what has happened to a task.
    pub fn tell(&mut self, task: &TaskId, kind: EventKind) {
        (self.on_event)(RunEvent::of(task, kind));
    }

    /// A moment as it stands in file names.
    #[must_use]
    pub fn stamp(&self) -> String {
        let now = Timestamp::from_second((self.run.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        now.strftime("%Y%m%dT%H%M%S").to_string()
    }
}

/// A program that finds these variables.
pub(super) fn with_environment(program: Program, environment: &[(String, String)]) -> Program {
    environment.iter().fold(program, |program, (name, value)| program.env(name, value))
}
