//! Child processes, signals and locks. No other module starts a process.
//!
//! [`Program`] runs programs that answer and end, mostly git. [`Supervised`] runs agents and tests: it limits them,
//! keeps their output in bounded memory, and leaves none of their processes behind. [`interrupt`] turns signals into a
//! [`Cancel`]. [`FileLock`] and [`OrphanLock`] tell which processes are running, also after a driver was killed.

mod bwrap;
mod cancel;
mod confine;
mod crash;
mod drivers;
mod ending;
mod environment;
mod file_lock;
mod find;
mod holder;
mod identity;
mod input;
pub mod interrupt;
mod landlock_rules;
mod limits;
mod mark;
mod mounts;
mod occupants;
mod opened;
mod orphan_lock;
mod output;
mod process_group;
mod program;
mod resources;
mod rights;
mod running_program;
mod running_writers;
mod sandbox_exec;
mod spawn;
mod streams;
mod supervised;
mod table;
mod timed_reader;
mod watch;
mod work_slots;

pub use cancel::Cancel;
pub use confine::{Confinement, ConfinementBackend, InnerSandbox};
pub use crash::{find_dead, forget_dead};
pub use drivers::{find_other_drivers, find_outer_driver, may_be_in_step};
pub use ending::Ending;
pub use file_lock::{FileLock, LockError, retake_lost_locks};
pub use find::{
    ProgramPlace, add_checkout, find_missing_interpreter, find_program, is_executable, is_in_checkout,
    list_unused_folders, locate_program, resolve_program,
};
pub use holder::Holder;
pub use identity::{ProcessId, is_process_alive};
pub use limits::Limits;
pub use mark::protect_memory;
pub use mounts::ReplacedPath;
pub use occupants::{DRIVER, Occupants, driver_mark};
pub use opened::is_open;
pub use orphan_lock::OrphanLock;
pub use output::Tail;
pub use output::{Chunk, Filter, Stream};
pub use output::{LineCutter, OutputLine};
pub use program::{BackgroundProgram, Program, ProgramOutput, shell_word};
pub use resources::ResourceLimits;
pub use running_program::RunningProgram;
pub use running_writers::{ChildReach, NoChildrenIn, OthersReach, Quiet, RunningWriter};
pub use supervised::{Supervised, SupervisedEnd};
pub use timed_reader::{TimedReader, within};
pub use work_slots::{with_slot, without_slot};

use std::io;

/// A program that could not be started, fed or waited for.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.words())]
pub struct ProcessError {
    /// The program's name.
    pub program: String,
    /// The error of the operating system.
    pub source: io::Error,
}

impl ProcessError {
    fn words(&self) -> String {
        let Self { program, source } = self;
        // The reason names the program and its subcommand.
        if self.is_too_slow() { source.to_string() } else { format!("could not run '{program}': {source}") }
    }

    /// Whether it was ended because it waited for a named pipe that no other process opens.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        matches!(self.source.get_ref(), Some(source) if source.is::<timed_reader::Stuck>())
    }

    /// Whether it was ended because it took too long.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        matches!(self.source.get_ref(), Some(source) if source.is::<timed_reader::TooSlow>())
    }
}
