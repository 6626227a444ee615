//! What a program says, heard with an end to patience.

use std::{
    io::{self, Read},
    process::ChildStdout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a program says, as it comes.
#[derive(Debug)]
pub struct Ear {
    pub(super) pipe: ChildStdout,
    /// How long it may say nothing, if that is limited.
    pub(super) patience: Option<Duration>,
}

impl Read for Ear {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if let Some(patience) = self.patience {
            let end = Instant::now() + patience;
            let mut fds = [PollFd::new(&self.pipe, PollFlags::IN)];
            loop {
                let left = end.saturating_duration_since(Instant::now());
                match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                    polled => break polled.map(drop)?,
                }
            }
        }
        self.pipe.read(piece)
    }
}
