//! A program that is running: its streams are read and its end is waited for, with limits, because a git can hang.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStderr, ChildStdout, ExitStatus},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    process::{Signal, kill_process, kill_process_group},
};

use super::{
    ProcessError, ProgramOutput, TimedReader, crash, interrupt,
    mark::RunMark,
    process_group::{ProcessGroup, Terminable, clear, number},
    running_writers::RunningWriter,
    spawn,
    timed_reader::ProgramWait,
    watch::has_ended,
};

use crate::mutex::MutexExt;

/// Signals on which git removes its lock files before it ends: hang-up, interrupt, quit, broken pipe, termination.
const CLEANUP_SIGNALS: [i32; 5] = [1, 2, 3, 13, 15];

/// The longest time for any program that is run for its answer: a git that waits for a named pipe would wait forever.
/// The first scan of a huge checkout on a slow disk takes minutes.
pub(super) const LIMIT: Duration = Duration::from_secs(30 * 60);

/// How long a program may take to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(200);

/// How long [`end_all`] waits before it looks again.
const END_TICK: Duration = Duration::from_millis(10);

/// How a program can be ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Whether it has a process group of its own.
    pub(super) has_group: bool,
    /// Whether it may use the time until everything has to end, because it changes files.
    pub(super) may_finish: bool,
}

/// The programs that run, by their ids.
static RUNNING: Mutex<BTreeMap<u32, Reach>> = Mutex::new(BTreeMap::new());

/// Registers a program that was started, until it is dropped.
pub(super) fn register(child: &Child, reach: Reach) {
    RUNNING.hold().insert(child.id(), reach);
}

/// Ends all programs. They are asked first, so that git removes its locks: those that may finish after `grace`, the others
/// at once. Those that ignore this are killed.
pub(super) fn end_all(grace: Duration) {
    let end = Instant::now() + grace;
    // A program that was started just now may not be listed yet.
    thread::sleep(END_TICK);
    let left: Vec<(u32, Reach)> = RUNNING.hold().iter().map(|(pid, reach)| (*pid, *reach)).collect();
    let wait_until = |end: Instant| {
        while Instant::now() < end && !left.iter().all(|(pid, _)| has_ended(*pid)) {
            thread::sleep(END_TICK);
        }
    };
    left.iter()
        .filter(|(_, reach)| !reach.may_finish)
        .for_each(|(pid, reach)| send(Signal::TERM, *pid, *reach));
    wait_until(end);
    left.iter()
        .filter(|(_, reach)| reach.may_finish)
        .for_each(|(pid, reach)| send(Signal::TERM, *pid, *reach));
    wait_until(end + TERM_GRACE);
    // Also what a program left in its group.
    left.iter().for_each(|(pid, reach)| send(Signal::KILL, *pid, *reach));
}

fn send(signal: Signal, pid: u32, reach: Reach) {
    let Some(pid) = number(pid) else { return };
    let _ = if reach.has_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
}

/// Enlarges the pipe, because a walk over a whole history comes through it, and with a large pipe the two programs wake
/// each other less often. A failure is ignored.
#[cfg(target_os = "linux")]
fn widen(pipe: &ChildStdout) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn widen(_pipe: &ChildStdout) {}

/// A running program. Dropping it ends it.
#[derive(Debug)]
pub struct RunningProgram {
    pub(super) child: Child,
    pub(super) pipes: Option<Pipes>,
    pub(super) program: OsString,
    /// The program and its subcommand, for errors.
    pub(super) name: Arc<str>,
    pub(super) patience: Option<Duration>,
    /// The mark of everything that it starts, if that must end with it.
    pub(super) mark: Option<RunMark>,
    pub(super) has_group: bool,
    pub(super) _writer: Option<RunningWriter>,
}

/// Our ends of its pipes.
#[derive(Debug)]
pub(super) enum Pipes {
    /// Nothing was read yet.
    Fresh(ChildStdout, ChildStderr),
    /// Its output is read as a stream, and a thread collects its errors.
    Streamed(BufReader<TimedReader>, JoinHandle<Vec<u8>>),
}

impl Pipes {
    fn streamed(self, patience: Option<Duration>, pid: u32, name: &Arc<str>) -> Self {
        let Self::Fresh(out, err) = self else { return self };
        widen(&out);
        let reader = TimedReader { pipe: out, patience, pid, name: Arc::clone(name) };
        Self::Streamed(BufReader::with_capacity(1 << 18, reader), thread::spawn(|| drain(err)))
    }

    /// Reads the rest of both streams. `on_silence` is called whenever nothing arrives for a while.
    fn read(self, wait: ProgramWait, on_silence: impl FnMut()) -> io::Result<(Vec<u8>, Vec<u8>)> {
        match self {
            Self::Fresh(out, err) => read_both(out, err, wait, on_silence),
            Self::Streamed(mut reader, complaints) => {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest)?;
                Ok((rest, complaints.join().unwrap_or_default()))
            }
        }
    }
}

impl RunningProgram {
    /// Its standard output.
    pub fn output(&mut self) -> Option<&mut BufReader<TimedReader>> {
        let pid = self.child.id();
        self.pipes = self.pipes.take().map(|pipes| pipes.streamed(self.patience, pid, &self.name));
        match &mut self.pipes {
            Some(Pipes::Streamed(reader, _)) => Some(reader),
            _ => None,
        }
    }

    /// Sends a request, if it was started for a conversation.
    pub fn send_request(&mut self, words: &[u8]) -> io::Result<()> {
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(words)
    }

    /// Reads the rest of its output and waits for its end.
    pub fn finish(mut self) -> Result<ProgramOutput, ProcessError> {
        drop(self.child.stdin.take());
        let pid = self.child.id();
        let mark = self.mark.take();
        let group = mark.map(|mark| ProcessGroup::new(pid, mark));
        // Processes that it left behind may hold our pipes open.
        let on_silence = || {
            if let Some(group) = group.as_ref().filter(|_| has_ended(pid)) {
                group.kill(&group.living());
            }
        };
        let read = self.pipes.take().map(|pipes| pipes.read(self.begin_waiting(), on_silence)).transpose();
        let ended = read.and_then(|read| Ok((read.unwrap_or_default(), self.wait()?)));
        if let (Err(_), Some(group)) = (&ended, &group) {
            group.kill(&group.living());
        }
        let ((stdout, stderr), status) = ended.map_err(|source| self.error(source))?;
        if let Some(group) = group {
            spawn::forget(pid);
            if !clear(&mut LeftoverProcesses(group), Duration::ZERO).is_empty() {
                return Err(self.error(io::Error::other("it left processes that could not be stopped")));
            }
        }
        if status.signal().is_some_and(|signal| !CLEANUP_SIGNALS.contains(&signal)) {
            crash::note_lost_child();
        }
        Ok(ProgramOutput { status, stdout, stderr })
    }

    fn begin_waiting(&self) -> ProgramWait {
        ProgramWait::new(self.patience.unwrap_or(LIMIT), self.child.id(), &self.name)
    }

    /// Waits for its end. It has closed its streams, so that usually takes no time, but it can hang now as well.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        #[cfg(target_os = "linux")]
        if let Some(pid) = number(self.child.id())
            && let Ok(end) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
        {
            let mut wait = self.begin_waiting();
            while !wait.poll(&mut [PollFd::new(&end, PollFlags::IN)])? {}
        }
        self.child.wait()
    }

    /// Ends it, and what it has started in its group. After a signal it is asked first, so that git removes its locks.
    fn end(&mut self) {
        let group = number(self.child.id()).filter(|_| self.has_group);
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = group.filter(|_| interrupt::received_signal().is_some()) {
            let _ = kill_process_group(group, Signal::TERM);
            let end = Instant::now() + TERM_GRACE;
            while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(5));
            }
            if matches!(self.child.try_wait(), Ok(None)) {
                crash::note_lost_child();
            }
        }
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn error(&self, source: io::Error) -> ProcessError {
        ProcessError { program: self.program.to_string_lossy().into_owned(), source }
    }
}

/// Processes that a program left behind.
struct LeftoverProcesses(ProcessGroup);

impl Terminable for LeftoverProcesses {
    fn living(&mut self) -> Vec<u32> {
        self.0.living()
    }

    fn kill(&self, members: &[u32]) {
        self.0.kill(members);
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // `end_all` ends it, and it is not reaped before that is done, so that its id stays its own.
        interrupt::wait_if_ending();
        self.end();
        RUNNING.hold().remove(&self.child.id());
        spawn::forget(self.child.id());
    }
}

/// Reads both streams until they end, whichever has data: a program can block on one while we wait for the other.
fn read_both(
    mut out: ChildStdout,
    mut err: ChildStderr,
    mut wait: ProgramWait,
    mut on_silence: impl FnMut(),
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut piece = vec![0; 1 << 16];
    let mut is_open = [true, true];
    while is_open != [false, false] {
        let mut fds = Vec::with_capacity(2);
        fds.extend(is_open[0].then(|| PollFd::new(&out, PollFlags::IN)));
        fds.extend(is_open[1].then(|| PollFd::new(&err, PollFlags::IN)));
        if !wait.poll(&mut fds)? {
            on_silence();
            continue;
        }
        let mut has = fds.iter().map(|fd| !fd.revents().is_empty());
        let has = is_open.map(|is_open| is_open && has.next().unwrap_or(false));
        if has[0] {
            is_open[0] = pass_on(&mut out, &mut piece, &mut stdout)?;
        }
        if has[1] {
            is_open[1] = pass_on(&mut err, &mut piece, &mut stderr)?;
        }
    }
    Ok((stdout, stderr))
}

/// Reads once. Returns false at the end.
fn pass_on(from: &mut impl Read, piece: &mut [u8], to: &mut Vec<u8>) -> io::Result<bool> {
    let read = from.read(piece)?;
    to.extend_from_slice(&piece[..read]);
    Ok(read > 0)
}

fn drain(mut stderr: ChildStderr) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stderr.read_to_end(&mut bytes);
    bytes
}
