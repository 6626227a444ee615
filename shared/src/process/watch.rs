//! Watches one supervised program from its start until none of its processes is left.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::Child,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, waitid},
};

use super::{
    Cancel, Ending, Limits,
    cancel::TICK,
    limits::Clock,
    output::OutputRecorder,
    process_group::{ProcessGroup, Terminable, clear, number, terminate},
    spawn,
    streams::Streams,
    supervised::SupervisedEnd,
};

/// How often we check for the end where there is no pidfd.
const BLIND_TICK: Duration = Duration::from_millis(20);

/// A running supervised program. Dropping it kills all of its processes.
pub(super) struct SupervisedProgram<'a> {
    pub(super) child: Child,
    /// Whether the child is a bubblewrap that runs the program.
    pub(super) is_in_bwrap: bool,
    pub(super) group: ProcessGroup,
    pub(super) streams: Streams,
    pub(super) recorder: OutputRecorder<'a>,
    pub(super) limits: Limits,
    pub(super) cancels: Vec<Cancel>,
    pub(super) clock: Clock,
}

impl SupervisedProgram<'_> {
    /// Waits until all of its processes have ended.
    pub(super) fn run_to_end(mut self) -> SupervisedEnd {
        let limit = self.until_end_or_limit();
        let took = self.clock.started.elapsed();
        // The program's own output is in the pipe by now; anything that follows was printed by another process.
        self.streams.drain(&mut self.recorder);
        let printed = self.recorder.printed;
        let grace = self.limits.grace;
        let survivors = clear(&mut self, grace);
        self.streams.drain(&mut self.recorder);
        let [stdout, stderr] = self.recorder.finish();
        let printed_late = limit.is_none() && self.recorder.printed > printed;
        let ending = limit.unwrap_or_else(|| self.own_ending());
        let log_error = self.recorder.log_error.take();
        SupervisedEnd { ending, took, stdout, stderr, log_error, printed_late, survivors }
    }

    /// Waits for the program's end or a limit. `None` if the program ended by itself.
    fn until_end_or_limit(&mut self) -> Option<Ending> {
        let alarm = exit_alarm(&self.child);
        loop {
            let patience = self.limits.patience(self.clock, Instant::now());
            let tick = if alarm.is_some() { TICK } else { BLIND_TICK };
            let cancels = self.cancels.iter().filter_map(Cancel::descriptor);
            let wakers: Vec<BorrowedFd<'_>> = alarm.iter().map(AsFd::as_fd).chain(cancels).collect();
            let time = patience.map_or(tick, |patience| patience.min(tick));
            if self.streams.serve(Some(time), &wakers, &mut self.recorder) {
                self.clock.heard = Instant::now();
            }
            if has_ended(self.child.id()) {
                return None;
            }
            if self.cancels.iter().any(Cancel::is_cancelled) {
                return Some(Ending::Cancelled);
            }
            if let Some(breach) = self.limits.breach(self.clock, Instant::now()) {
                return Some(breach);
            }
        }
    }

    fn own_ending(&mut self) -> Ending {
        match self.child.wait() {
            Ok(status) => status.into(),
            Err(error) => Ending::NotStarted(error),
        }
    }
}

impl Terminable for SupervisedProgram<'_> {
    fn living(&mut self) -> Vec<u32> {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            spawn::forget(self.child.id());
        }
        self.group.living()
    }

    /// Spares bubblewrap: if it ended first, the system would kill the program at once.
    fn terminate(&self, members: &[u32]) {
        let spared = self.is_in_bwrap.then(|| self.child.id());
        let members: Vec<u32> = members.iter().copied().filter(|pid| Some(*pid) != spared).collect();
        terminate(&members);
    }

    fn kill(&self, members: &[u32]) {
        self.group.kill(members);
    }

    /// Reads its output meanwhile: a program that is ending may still print something, or block on a full pipe.
    fn pause(&mut self, time: Duration) {
        self.streams.serve(Some(time), &[], &mut self.recorder);
    }
}

impl Drop for SupervisedProgram<'_> {
    /// Only a listener or filter that panicked gets here, and it must not be called again.
    fn drop(&mut self) {
        if thread::panicking() {
            self.recorder.listener = Box::new(|_| {});
            self.recorder.filter = None;
            clear(self, Duration::ZERO);
        }
        spawn::forget_group(self.child.id());
    }
}

pub(super) fn has_ended(pid: u32) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = number(pid) else { return true };
    match waitid(WaitId::Pid(pid), look) {
        Ok(status) => status.is_some(),
        Err(error) => error != Errno::INTR,
    }
}

/// A descriptor that becomes readable when the program has ended.
#[cfg(target_os = "linux")]
fn exit_alarm(child: &Child) -> Option<OwnedFd> {
    rustix::process::pidfd_open(number(child.id())?, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
const fn exit_alarm(_child: &Child) -> Option<OwnedFd> {
    None
}
