//! What a program says, heard with an end to patience.

use std::{
    io::{self, Read},
    process::ChildStdout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Cancel, cancel::TICK, interrupt};

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
            let mut wait = Wait::new(patience);
            while !wait.poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)])? {}
        }
        self.pipe.read(piece)
    }
}

/// After a signal a program that we only wait for may take so long to end by itself. What it does usually takes
/// milliseconds, and to leave it half done costs more than to wait.
const GRACE: Duration = Duration::from_secs(5);

/// Waiting for a program with an end: that of our patience, or a moment after a signal has asked us to stop.
pub(super) struct Wait {
    end: Instant,
    wish: Option<&'static Cancel>,
}

impl Wait {
    pub(super) fn new(patience: Duration) -> Self {
        Self { end: Instant::now() + patience, wish: interrupt::wish() }
    }

    /// Waits until one of `fds` has something; false if that is to be asked again, and an error when time is up.
    pub(super) fn poll(&mut self, fds: &mut [PollFd<'_>]) -> io::Result<bool> {
        if self.wish.is_some_and(Cancel::is_cancelled) {
            self.wish = None;
            self.end = self.end.min(Instant::now() + GRACE);
        }
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A signal is noticed soon enough: nobody is held up who has something to read.
        let left = if self.wish.is_some() { left.min(TICK) } else { left };
        match poll(fds, Timespec::try_from(left).ok().as_ref()) {
            Err(rustix::io::Errno::INTR) | Ok(0) => Ok(false),
            polled => Ok(polled.map(|count| count > 0)?),
        }
    }
}
