//! The pipeline of one task: implement, test, review, and again until it is done or its attempts are used up.

mod call;
mod counts;
mod dirt;
mod error;
mod expense;
mod happening;
mod implementing;
mod memory;
mod options;
pub mod place;
mod prompt;
mod report;
mod resume;
mod reviewing;
mod staff;
mod task;
mod testing;
mod verdict;
mod workshop;

pub use crate::agent::limits::Chosen;
pub use call::{AtLimit, Call, Caller, Redaction, Reply};
pub use counts::{Counts, read_counts};
pub use dirt::{Dirt, Sorted};
pub use error::PipelineError;
pub use expense::Expense;
pub use happening::{Happening, News};
pub use memory::Memory;
pub use options::{Budgets, Flags, Options, Sessions, backoff, call_limits};
pub use prompt::{Subject, cut_diff, implement, review};
pub use resume::{Resume, Stage};
pub use staff::{Crew, CrewFlags, Named, Post, Staff, require_programs};
pub use task::{End, TaskRun};
pub use testing::TestResult;
pub use verdict::Verdict;
pub use workshop::{Called, Errand, PreCommit, Workshop};
