//! A shared request to stop.
//!
//! It consists of a flag and a pipe. Cancelling closes the writing end of the pipe, which wakes all threads that wait
//! for it in `poll`, now and later.

use std::{
    io::{PipeReader, PipeWriter},
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::mutex::MutexExt;

/// How long a thread that cannot be woken sleeps at most.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// A request to stop. Clones share it, and it cannot be withdrawn.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wanted: AtomicBool,
    /// The signal that caused it, 0 for none.
    signal: AtomicI32,
    reader: Option<PipeReader>,
    writer: Mutex<Option<PipeWriter>>,
}

impl Default for Shared {
    /// Without a free descriptor there is no pipe, and waiting threads poll the flag instead.
    fn default() -> Self {
        let (reader, writer) = std::io::pipe().ok().unzip();
        Self {
            wanted: AtomicBool::default(),
            signal: AtomicI32::default(),
            reader,
            writer: Mutex::new(writer),
        }
    }
}

impl Cancel {
    /// A request that nothing has triggered yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests to stop.
    pub fn cancel(&self) {
        self.shared.wanted.store(true, Ordering::SeqCst);
        self.shared.writer.hold().take();
    }

    /// Requests to stop because of a signal.
    pub fn cancel_by(&self, signal: i32) {
        self.shared.signal.store(signal, Ordering::SeqCst);
        self.cancel();
    }

    /// The signal that requested to stop, if it was one. The exit code of a command is then 128 plus this.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        Some(self.shared.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Whether stopping was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.wanted.load(Ordering::SeqCst)
    }

    /// Sleeps for `time`, or until cancelled. Returns whether it was cancelled.
    #[must_use]
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.is_cancelled() || left.is_zero() {
                return self.is_cancelled();
            }
            sleep_on(self.descriptor().as_slice(), left);
        }
    }

    /// The descriptor that becomes readable when this is cancelled.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.shared.reader.as_ref().map(AsFd::as_fd)
    }
}

fn sleep_on(descriptors: &[BorrowedFd<'_>], time: Duration) {
    let time = if descriptors.is_empty() { time.min(TICK) } else { time };
    let mut fds: Vec<_> = descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let _ = poll(&mut fds, timespec(time).as_ref());
}

/// `time` for the system; `None` (forever) if it is too long to be represented.
pub(super) fn timespec(time: Duration) -> Option<Timespec> {
    Timespec::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_after_its_duration_or_on_cancellation() {
        let cancel = Cancel::new();
        assert!(!cancel.wait(Duration::from_millis(20)));
        let other = cancel.clone();
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        cancel.cancel();
        assert!(waiter.join().unwrap());
        assert!(cancel.wait(Duration::from_secs(60)));
    }
}
