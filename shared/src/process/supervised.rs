//! Runs programs that may hang, print without end or leave processes behind: agents and tests.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Cancel, Chunk, Confinement, Ending, Filter, Limits, OrphanLock, Program, Tail, environment,
    limits::Clock,
    mark::{self, RunMark},
    output::OutputRecorder,
    output::TailKeeper,
    process_group::ProcessGroup,
    running_writers::{RunningWriter, WriteReach},
    spawn,
    streams::Streams,
    watch::SupervisedProgram,
    work_slots::without_slot,
};

/// The result of a supervised program. All of its processes have ended, except for `survivors`.
#[derive(Debug)]
pub struct SupervisedEnd {
    /// How it ended.
    pub ending: Ending,
    /// The time from its start to its end, without the time to end what it left behind.
    pub took: Duration,
    /// The end of its standard output, filtered.
    pub stdout: Tail,
    /// The end of its standard error, filtered.
    pub stderr: Tail,
    /// Why the log is incomplete, if it is.
    pub log_error: Option<io::Error>,
    /// Whether a process that it had started printed something on standard output after the program itself had ended.
    pub printed_late: bool,
    /// Processes that could not be ended. As long as there are any, files that they can write may change at any time.
    pub survivors: Vec<u32>,
}

impl SupervisedEnd {
    /// The end of its output, and how it ended.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}\n{}\n{}", self.stdout.text, self.stderr.text, self.ending)
    }
}

/// A program that is run in a separate process group, with limits, without a terminal and without git's variables.
///
/// Variables that were set with [`Program::env`] stay. Standard input is empty by default.
pub struct Supervised<'a> {
    command: Command,
    confinement: Option<Confinement>,
    /// Whether the process that we start is a bubblewrap that runs the program.
    is_in_bwrap: bool,
    /// The child's own folder for temporary files. It is removed when this is dropped.
    temp: Option<TempDir>,
    input: Vec<u8>,
    limits: Limits,
    cancels: Vec<Cancel>,
    tail: usize,
    log: Option<File>,
    filter: Option<Box<dyn Filter + 'a>>,
    orphan_lock: Option<&'a mut OrphanLock>,
}

impl<'a> Supervised<'a> {
    /// `program`, without limits and with a tail of 2000 characters of each stream.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let (command, confinement) = program.into_parts();
        Self {
            command,
            confinement,
            is_in_bwrap: false,
            temp: None,
            input: Vec::new(),
            limits: Limits::default(),
            cancels: Vec::new(),
            tail: 2000,
            log: None,
            filter: None,
            orphan_lock: None,
        }
    }

    /// Sets its standard input.
    #[must_use]
    pub fn input(self, input: Vec<u8>) -> Self {
        Self { input, ..self }
    }

    /// Sets how long it may run and be silent.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Ends it when this is cancelled. Can be called several times.
    #[must_use]
    pub fn until(mut self, cancel: &Cancel) -> Self {
        self.cancels.push(cancel.clone());
        self
    }

    /// Sets how many characters of each stream the result contains.
    #[must_use]
    pub fn tail(self, characters: usize) -> Self {
        Self { tail: characters, ..self }
    }

    /// Writes its output to this file, both streams in the order of arrival, up to the limit for logs.
    #[must_use]
    pub fn log(self, file: File) -> Self {
        Self { log: Some(file), ..self }
    }

    /// Filters everything that is kept of its output.
    #[must_use]
    pub fn filter(self, filter: impl Filter + 'a) -> Self {
        Self { filter: Some(Box::new(filter)), ..self }
    }

    /// Lets all of its processes inherit this lock.
    #[must_use]
    pub fn with_orphan_lock(self, orphan_lock: &'a mut OrphanLock) -> Self {
        Self { orphan_lock: Some(orphan_lock), ..self }
    }

    /// Runs it until none of its processes is left. `listener` gets the raw output as it arrives; a slow listener slows
    /// the program down.
    pub fn run(mut self, listener: impl FnMut(Chunk<'_>) + 'a) -> SupervisedEnd {
        let folder = self.command.get_current_dir().map(Path::to_owned);
        let reach = WriteReach::of(self.confinement.as_ref());
        let writer = RunningWriter::begin_child(folder.as_deref().as_slice(), reach);
        let started = self.start();
        let temp = self.temp.take();
        // Whatever depends on the end of the child must not wait for a slot.
        without_slot(|| {
            let outcome = match started {
                Ok(((child, streams), group)) => {
                    self.watch(child, streams, group, Box::new(listener)).run_to_end()
                }
                Err(error) => SupervisedEnd::not_started(error),
            };
            if outcome.survivors.is_empty() {
                drop(writer);
            } else {
                writer.stays();
            }
            drop(temp);
            outcome
        })
    }

    fn start(&mut self) -> io::Result<((Child, Streams), ProcessGroup)> {
        let mark = RunMark::fresh();
        environment::clean(&mut self.command);
        self.confine()?;
        let stdin = if self.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.process_group(0).env(mark::VARIABLE, mark.as_str());
        if let Some(orphan_lock) = &mut self.orphan_lock {
            orphan_lock.announce(&mark)?;
        }
        let lock = self.orphan_lock.as_ref().map(|orphan_lock| orphan_lock.file());
        let (mut child, group) =
            spawn::spawn_group(&mut self.command, self.confinement.as_ref(), &mark, lock)?;
        if let Some(orphan_lock) = &mut self.orphan_lock {
            orphan_lock.enter(child.id());
        }
        match Streams::of(&mut child, std::mem::take(&mut self.input)) {
            Ok(streams) => Ok(((child, streams), group)),
            Err(error) => Err(undo(child, &group, error)),
        }
    }

    /// Makes the folder for temporary files, and wraps the command if another program confines it.
    fn confine(&mut self) -> io::Result<()> {
        let Some(confinement) = &mut self.confinement else { return Ok(()) };
        if let Some(temp) = confinement.make_temp()? {
            self.command.env("TMPDIR", temp.path());
            self.temp = Some(temp);
        }
        if let Some(command) = confinement.adapt_inner_sandbox(&self.command) {
            self.command = command;
        }
        // Inside of bubblewrap, so that its own processes are not limited.
        if let Some(command) = confinement.limit(&self.command)? {
            self.command = command;
        }
        if let Some(command) = confinement.wrap(&self.command)? {
            self.command = command;
            self.is_in_bwrap = confinement.is_bwrap();
            self.confinement = None;
        }
        Ok(())
    }

    fn watch(
        self,
        child: Child,
        streams: Streams,
        group: ProcessGroup,
        listener: Box<dyn FnMut(Chunk<'_>) + 'a>,
    ) -> SupervisedProgram<'a> {
        let now = Instant::now();
        let written = self.log.as_ref().and_then(|log| log.metadata().ok()).map_or(0, |log| log.len());
        let recorder = OutputRecorder {
            listener,
            filter: self.filter,
            log: self.log,
            log_room: self.limits.log_size.saturating_sub(written),
            log_error: None,
            tails: [TailKeeper::new(self.tail), TailKeeper::new(self.tail)],
            scratch: Vec::new(),
            printed: 0,
        };
        let clock = Clock { started: now, heard: now };
        SupervisedProgram {
            child,
            is_in_bwrap: self.is_in_bwrap,
            group,
            streams,
            recorder,
            limits: self.limits,
            cancels: self.cancels,
            clock,
        }
    }
}

fn undo(mut child: Child, group: &ProcessGroup, error: io::Error) -> io::Error {
    group.kill(&[]);
    let _ = child.wait();
    spawn::forget_group(child.id());
    error
}

impl SupervisedEnd {
    fn not_started(error: io::Error) -> Self {
        Self {
            ending: Ending::NotStarted(error),
            took: Duration::ZERO,
            stdout: Tail::default(),
            stderr: Tail::default(),
            log_error: None,
            printed_late: false,
            survivors: Vec::new(),
        }
    }
}
