//! The pipeline of one task: implement, test, review, and again until it is done or its attempts are used up.
//!
//! - [`task`] takes the steps of a task in order and records each before the next begins; `attempts` decides from the
//!   commits alone where a task continues.
//! - `steps` holds what each step does, `calls` how an agent program is called, `turns` how its turns are committed and
//!   recorded, `checkout` how its work is told from what was there before.
//! - [`RunContext`] is what all tasks of a run share; it does not change. [`TaskContext`] is what one task works with.

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

pub use attempts::{Resume, Stage, mark_interrupted};
pub use calls::{
    call::{AtLimit, Call, CallReply, Caller, Doubt, Follower, Redaction},
    chain::{AgentCall, Called},
    memory::CallMemory,
    playback::Playback,
    runners::{NamedRunner, Post, RunnerFlags, RunnerTable, StepRunner, require_programs},
    who::Who,
};
pub use checkout::{
    changed_paths::{ChangedPaths, Sorted},
    guard::{ConfigGuard, Neighbours},
    guarded::put_back_checkout,
    ignored::{IgnoredChanges, IgnoredFiles},
    other_repo::OtherRepo,
    place,
};
pub use context::{CleanPlace, CleanPlaces, LaneCheck, NamedCommand, PreCommit, RunContext, TaskContext};
pub use error::PipelineError;
pub use expense::{Expense, Others};
pub use options::{Budgets, Flags, ReviewsIn, RunOptions, Sessions, backoff, call_limits};
pub use steps::{
    counts::{Counts, read_counts},
    failing::Observed,
    known_red::{BEFORE_THE_RUN, KnownRed, TO_BE_MENDED},
    prompt::{PromptSubject, RepoDiff as ReviewSection, cut_diff, implement, render as render_diff, review},
    review::{ReviewPlace, ReviewPlaces, altered, judge},
    test::TestResult,
    verdict::Verdict,
};
pub use task::{TaskEnd, TaskRun};
pub use turns::{
    checkpoint::{CheckpointWriter, SessionRepo, Words, repository_name},
    message::plain as describe_changes,
    messenger::MessageBy,
    whole_call::{CallFacts, CallRecord},
};
