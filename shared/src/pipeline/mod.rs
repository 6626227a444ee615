//! The pipeline runs one task: implement, test, review, repeated until the task is complete or has no attempts left.
//!
//! - [`task`] runs the steps of a task in order and commits the result of each one before the next begins. `attempts`
//!   decides from these commits alone where a task continues.
//! - `steps` implements the three steps, `calls` calls agent programs, `turns` commits and records their turns, and
//!   `checkout` tells an agent's changes from what was there before and guards everything else.
//! - [`RunContext`] is shared by all tasks of a run and does not change. [`TaskContext`] belongs to one task.

mod attempts;
mod calls;
mod checkout;
mod context;
mod error;
mod expense;
mod options;
mod steps;
mod task;
mod turns;

pub use attempts::{NextStep, Stage, mark_interrupted};
pub use calls::{
    active_runner::ActiveRunner,
    agent_call::{AgentCall, FinishedCall},
    caller::{AtLimit, Call, CallObserver, CallReply, Caller, Redaction, ReplyDoubt},
    memory::CallMemory,
    playback::Playback,
    runners::{NamedRunner, RunnerFlags, RunnerRole, RunnerTable, StepRunner, require_programs},
};
pub use checkout::{
    attempt,
    branch::quit_operations,
    file_secrets::FileSecrets,
    guard::{ConcurrentChildren, ConfigGuard, find_changed_since_kill, move_planted_git},
    ignored::{IgnoredChanges, IgnoredFiles, UsersIgnoredFiles, record_copies},
    leftovers::move_unreadable,
    other_repo::OtherRepo,
    protected_files::{RestoredTrees, restore_files},
    test_guard::{FilesBeforeTest, restore_checkout},
    users_paths::UsersPaths,
    violations::Violations,
};
pub use context::{
    BaseCounter, CleanCheckout, CleanCheckouts, LaneCheck, LaneTests, NamedCommand, PreCommit, RunContext,
    TaskContext,
};
pub use error::PipelineError;
pub use expense::{Expense, OtherSpending};
pub use options::{
    Budgets, Flags, PromptTemplates, RunOptions, Sessions, backoff, call_limits, is_blank, log_size,
};
pub use steps::{
    background::{PromptFiles, TaskBackground},
    command_counts::{CommandCounts, TestsBefore, find_count_key, has_permission, permission_advice},
    counts::{Counts, TestTally, ran_no_tests, read_counts},
    feedback::feedback,
    known_red::{BEFORE_THE_RUN, EXPECTED_FAILURES, KnownRed},
    observed::TestObservation,
    prompt::{PromptParts, PromptSubject},
    protect::{
        CHANGED_WITH_PERMISSION, FEWER_TESTS, ProtectedChange, ProtectedChanges, Protection, RecordedLists,
        find_permit_mistake,
    },
    review::{ReviewPlace, ReviewPlaces, UNUSED_ANSWER, describe_changed_during_review, judge_reply},
    review_diff::{RepoDiff, diff_command, render_diff},
    template::{PromptBlock, PromptTemplate, UnknownBlock},
    test::TestResult,
    verdict::Verdict,
};
pub use task::{RejectedWork, TaskEnd, TaskRun};
pub use turns::{
    checkpoint::{CheckpointWriter, SessionRepo, repository_name},
    message::plain as describe_changes,
    messenger::MessageOrigin,
    whole_call::{CallFacts, CallRecord},
};
