//! The pipeline of one task: implement, test, review, and again until it is done or its attempts are used up.

mod call;
mod counts;
mod error;
mod happening;
mod options;
pub mod place;
mod prompt;
mod resume;
mod task;
mod testing;
mod verdict;
mod workshop;

pub use call::{Call, Caller, Reply};
pub use counts::{Counts, read_counts};
pub use error::PipelineError;
pub use happening::{Chosen, Happening, News};
pub use options::{Crew, Flags, Options, call_limits};
pub use prompt::{Subject, cut_diff, implement, review};
pub use resume::{Resume, Stage};
pub use task::{End, TaskRun};
pub use testing::TestResult;
pub use verdict::Verdict;
pub use workshop::{Errand, PreCommit, Workshop};
