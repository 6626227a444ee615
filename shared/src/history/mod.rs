//! Turns commits into events, and folds a task's events into its state. State is never stored; the cache only saves
//! reading from git.

mod base;
mod branches;
mod cache;
mod event;
mod fold;
mod graph;
mod merged_by_hand;
mod reverts;
mod run;
mod sides;
mod taken_back;
mod tasks;
mod walk;

pub use base::{BROUGHT_BACK, Conflicts, TaskWork, WorkBase};
pub use cache::{CommitCache, ReadAhead};
pub use event::{
    DENIED, EXCERPTS, Event, FAILED, FAILED_TESTS, INTERRUPTED, NO_TEST_COMMAND, REFUSED_BY_HOOK,
};
pub use fold::{Interruptions, State, TaskHistory, TaskState};
pub use merged_by_hand::{FirstParentLine, HandMerge, RevertedMerge, RevertedPlace};
pub use run::{EventPosition, HistoryError, Run, RunStart};
pub use walk::{CommitSource, RunScope};
