//! What a program says, heard with an end to patience.

use std::{
    cell::RefCell,
    io::{self, Read},
    process::ChildStdout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Cancel, cancel::TICK, interrupt, table::waits_at_named_pipe};

/// What a program says, as it comes.
#[derive(Debug)]
pub struct TimedReader {
    pub(super) pipe: ChildStdout,
    /// How long it may say nothing, if that is limited.
    pub(super) patience: Option<Duration>,
    /// Who says it.
    pub(super) pid: u32,
}

impl Read for TimedReader {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if let Some(patience) = self.patience {
            let mut wait = ProgramWait::new(patience, self.pid);
            while !wait.poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)])? {}
        }
        self.pipe.read(piece)
    }
}

/// After a signal a program that we only wait for may take so long to end by itself. What it does usually takes
/// milliseconds, and to leave it half done costs more than to wait.
const GRACE: Duration = Duration::from_secs(5);

/// A program that waits at a named pipe is looked at so often, and ended when it does so twice.
const STUCK: Duration = Duration::from_secs(1);

/// Why such a program was ended.
#[derive(Debug, thiserror::Error)]
#[error("it waited at a named pipe that is, or was, in the place of a file")]
pub(super) struct Stuck;

thread_local! {
    /// What bounds the programs that this thread waits for.
    static BOUNDS: RefCell<Option<WaitBounds>> = const { RefCell::new(None) };
}

/// A moment and a wish that end the waiting for programs, whichever comes first.
#[derive(Debug, Clone)]
pub(super) struct WaitBounds {
    end: Instant,
    cancel: Cancel,
}

impl WaitBounds {
    /// Those of this thread.
    pub(super) fn find() -> Option<Self> {
        BOUNDS.with_borrow(Clone::clone)
    }

    /// Runs something in this thread within bounds, or without.
    pub(super) fn apply<T>(bounds: Option<Self>, work: impl FnOnce() -> T) -> T {
        /// Puts back what was there, also where the work panics.
        struct Before(Option<WaitBounds>);
        impl Drop for Before {
            fn drop(&mut self) {
                BOUNDS.set(self.0.take());
            }
        }
        let _before = Before(BOUNDS.replace(bounds));
        work()
    }
}

/// Runs something whose programs are ended once `limit` is over or `cancel` asks for it: they may wait for what an agent
/// has put in their way. Only for programs that leave nothing half done.
pub fn within<T>(limit: Duration, cancel: &Cancel, work: impl FnOnce() -> T) -> T {
    let bounds = WaitBounds { end: Instant::now() + limit, cancel: cancel.clone() };
    WaitBounds::apply(Some(bounds), work)
}

/// Waiting for a program with an end: that of our patience, or a moment after a signal has asked us to stop.
pub(super) struct ProgramWait {
    end: Instant,
    wish: Option<&'static Cancel>,
    bounds: Option<WaitBounds>,
    pid: u32,
    /// Since when it was seen to wait at a named pipe, each time it was looked at.
    stuck: Option<Instant>,
    looked: Instant,
}

impl ProgramWait {
    pub(super) fn new(patience: Duration, pid: u32) -> Self {
        let (end, bounds) = (Instant::now() + patience, WaitBounds::find());
        let end = bounds.as_ref().map_or(end, |bounds| end.min(bounds.end));
        Self { end, wish: interrupt::wish(), bounds, pid, stuck: None, looked: Instant::now() }
    }

    /// An error if the program waits for somebody who opens the other end of a named pipe. An agent can put one in the place
    /// of any file that git reads, and take it away again: nobody ever comes then.
    fn refuse_stuck(&mut self) -> io::Result<()> {
        if self.looked.elapsed() < STUCK {
            return Ok(());
        }
        self.looked = Instant::now();
        self.stuck = waits_at_named_pipe(self.pid).then(|| self.stuck.unwrap_or_else(Instant::now));
        match self.stuck {
            Some(since) if since.elapsed() >= STUCK => Err(io::Error::new(io::ErrorKind::TimedOut, Stuck)),
            _ => Ok(()),
        }
    }

    /// Waits until one of `fds` has something; false if that is to be asked again, and an error when time is up.
    pub(super) fn poll(&mut self, fds: &mut [PollFd<'_>]) -> io::Result<bool> {
        if self.wish.is_some_and(Cancel::is_cancelled) {
            self.wish = None;
            self.end = self.end.min(Instant::now() + GRACE);
        }
        let is_cancelled = self.bounds.as_ref().is_some_and(|bounds| bounds.cancel.is_cancelled());
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() || is_cancelled {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.refuse_stuck()?;
        // A signal is noticed soon enough: nobody is held up who has something to read.
        let must_look = self.wish.is_some() || self.bounds.is_some();
        let left = left.min(if must_look { TICK } else { STUCK });
        match poll(fds, Timespec::try_from(left).ok().as_ref()) {
            Err(rustix::io::Errno::INTR) | Ok(0) => Ok(false),
            polled => Ok(polled.map(|count| count > 0)?),
        }
    }
}
