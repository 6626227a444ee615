//! Reads the output of a program with a time limit.

use std::{
    cell::RefCell,
    io::{self, Read},
    process::ChildStdout,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Cancel, cancel::TICK, interrupt, table::waits_at_named_pipe};

/// The output of a program.
#[derive(Debug)]
pub struct TimedReader {
    pub(super) pipe: ChildStdout,
    /// How long it may be silent, if that is limited.
    pub(super) patience: Option<Duration>,
    /// The process that writes it.
    pub(super) pid: u32,
    /// Its name for errors.
    pub(super) name: Arc<str>,
}

impl Read for TimedReader {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if let Some(patience) = self.patience {
            let mut wait = ProgramWait::new(patience, self.pid, &self.name);
            while !wait.poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)])? {}
        }
        self.pipe.read(piece)
    }
}

/// How long after a signal a program that we wait for may take to end by itself. Its work usually takes milliseconds,
/// and leaving it half done costs more than waiting.
const GRACE: Duration = Duration::from_secs(1);

/// How long such a program may take if another one did not end within [`GRACE`]: the next one probably hangs, too.
const GRACE_AFTER_HANG: Duration = Duration::from_millis(250);

/// Whether a program did not end in time after a signal.
static HAS_HUNG: AtomicBool = AtomicBool::new(false);

/// The error of a program that did not end in time after a signal.
#[derive(Debug, thiserror::Error)]
#[error("it was ended because this command was stopped by a signal")]
struct Hung;

/// The error of a program that was ended because it took too long.
#[derive(Debug, thiserror::Error)]
#[error("'{name}' did not finish in {} minutes, and was stopped", .limit.as_secs() / 60)]
pub(super) struct TooSlow {
    name: Arc<str>,
    limit: Duration,
}

/// How often a program is checked for waiting at a named pipe. It is ended if it waits at two checks.
const STUCK: Duration = Duration::from_secs(1);

/// The error of a program that was ended because it waited for a named pipe.
#[derive(Debug, thiserror::Error)]
#[error("it waited for a named pipe in place of a file")]
pub(super) struct Stuck;

thread_local! {
/// The bounds for programs that this thread waits for.
    static BOUNDS: RefCell<Option<WaitBounds>> = const { RefCell::new(None) };
}

/// A moment and a request to stop, whichever comes first, that end the waiting for programs.
#[derive(Debug, Clone)]
pub(super) struct WaitBounds {
    end: Instant,
    cancel: Cancel,
}

impl WaitBounds {
    /// The bounds of this thread.
    pub(super) fn find() -> Option<Self> {
        BOUNDS.with_borrow(Clone::clone)
    }

    /// Runs `work` in this thread with these bounds, or without any.
    pub(super) fn apply<T>(bounds: Option<Self>, work: impl FnOnce() -> T) -> T {
        /// Restores the previous bounds, also if the work panics.
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

/// Runs `work`, whose programs are ended when `limit` is over or `cancel` is triggered: they may wait for something
/// that an agent put in their way. Only for programs that can be ended at any time.
pub fn within<T>(limit: Duration, cancel: &Cancel, work: impl FnOnce() -> T) -> T {
    let bounds = WaitBounds { end: Instant::now() + limit, cancel: cancel.clone() };
    WaitBounds::apply(Some(bounds), work)
}

/// Waits for a program until its time is over, or until shortly after a signal requested to stop.
pub(super) struct ProgramWait {
    end: Instant,
    /// The limit of the program itself; the end may be earlier.
    limit: Duration,
    name: Arc<str>,
    signal_cancel: Option<&'static Cancel>,
    /// Whether a signal has requested to stop.
    is_signalled: bool,
    bounds: Option<WaitBounds>,
    pid: u32,
    /// When it was first seen waiting for a named pipe, if it was waiting at every check since.
    stuck: Option<Instant>,
    looked: Instant,
}

impl ProgramWait {
    pub(super) fn new(patience: Duration, pid: u32, name: &Arc<str>) -> Self {
        let (end, bounds) = (Instant::now() + patience, WaitBounds::find());
        let end = bounds.as_ref().map_or(end, |bounds| end.min(bounds.end));
        Self {
            end,
            limit: patience,
            name: Arc::clone(name),
            signal_cancel: interrupt::signal_cancel(),
            is_signalled: false,
            bounds,
            pid,
            stuck: None,
            looked: Instant::now(),
        }
    }

    /// Fails if the program waits for a named pipe. An agent can put one in the place of any file that git reads, so
    /// that the other end is never opened.
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

    /// Waits until one of `fds` is ready. Returns false if the caller should try again, and an error when time is up.
    pub(super) fn poll(&mut self, fds: &mut [PollFd<'_>]) -> io::Result<bool> {
        if self.signal_cancel.is_some_and(Cancel::is_cancelled) {
            self.signal_cancel = None;
            self.is_signalled = true;
            let grace = if HAS_HUNG.load(Ordering::SeqCst) { GRACE_AFTER_HANG } else { GRACE };
            self.end = self.end.min(Instant::now() + grace);
        }
        let is_cancelled = self.bounds.as_ref().is_some_and(|bounds| bounds.cancel.is_cancelled());
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() && self.is_signalled {
            HAS_HUNG.store(true, Ordering::SeqCst);
            return Err(io::Error::new(io::ErrorKind::TimedOut, Hung));
        }
        // Who set the bounds knows that they are over.
        if is_cancelled || self.bounds.as_ref().is_some_and(|bounds| left.is_zero() && bounds.end <= self.end)
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if left.is_zero() {
            let slow = TooSlow { name: Arc::clone(&self.name), limit: self.limit };
            return Err(io::Error::new(io::ErrorKind::TimedOut, slow));
        }
        self.refuse_stuck()?;
        // A short timeout, so that a signal is noticed soon. Data to read ends the wait immediately.
        let must_look = self.signal_cancel.is_some() || self.bounds.is_some();
        let left = left.min(if must_look { TICK } else { STUCK });
        match poll(fds, Timespec::try_from(left).ok().as_ref()) {
            Err(rustix::io::Errno::INTR) | Ok(0) => Ok(false),
            polled => Ok(polled.map(|count| count > 0)?),
        }
    }
}
