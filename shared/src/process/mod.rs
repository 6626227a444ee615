//! Child processes. The only place that starts one.

mod cancel;
mod ending;
mod find;
mod lines;
mod program;

pub use cancel::Cancel;
pub use ending::Ending;
pub use find::{find_program, is_executable};
pub use lines::{Line, Lines};
pub use program::{Finished, Program, Running};

use std::io;

/// A program that could not be started, fed or waited for.
#[derive(Debug, thiserror::Error)]
#[error("could not run '{program}': {source}")]
pub struct ProcessError {
    /// The program's name.
    pub program: String,
    /// What the system said.
    pub source: io::Error,
}
