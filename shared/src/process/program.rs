//! Programs that are run to their end for their answer, mostly git. A program that may hang, print without end or leave
//! processes behind is run as [`Supervised`](super::Supervised) instead.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    Confinement, ProcessError, environment,
    find::{ProgramPlace, locate_program},
    input, interrupt,
    mark::{self, RunMark},
    occupants::{DRIVER, driver_mark},
    running_program::{self, LIMIT, Pipes, Reach, RunningProgram},
    running_writers::{RunningWriter, WriteReach},
    spawn,
    timed_reader::WaitBounds,
};

/// How long a conversation waits for an answer. The program is git, whose answers take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// How long to wait before a program is run again, in milliseconds.
const REPEAT_PAUSES: [u64; 3] = [10, 40, 150];

/// A program with its arguments, environment and directory, ready to be started.
#[derive(Debug)]
pub struct Program {
    command: Command,
    /// Whether it gets its own process group, out of reach of Ctrl-C, if we handle signals ourselves.
    is_shielded_if_watched: bool,
    /// Whether it is known to write no file in any worktree.
    writes_no_worktree: bool,
    /// Whether it writes to no other worktree than its own.
    writes_one_worktree: bool,
    /// Where it may change files, if that is limited.
    confinement: Option<Confinement>,
    /// Whether everything that it starts must end with it.
    ends_descendants: bool,
    /// Whether it has a process group of its own.
    has_group: bool,
    /// Whether it is run again after it failed with this message.
    is_repeated: Option<fn(&str) -> bool>,
}

/// The result of a program that has ended.
#[derive(Debug)]
pub struct ProgramOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it wrote to standard output.
    pub stdout: Vec<u8>,
    /// All that it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl ProgramOutput {
    /// Standard error as text, without the line end.
    #[must_use]
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }
}

impl Program {
    /// The program `name`, looked up on `PATH`.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(name),
            is_shielded_if_watched: false,
            writes_no_worktree: false,
            writes_one_worktree: false,
            confinement: None,
            ends_descendants: false,
            has_group: false,
            is_repeated: None,
        }
    }

    /// The program `name`. `PATH` is searched for it only once per process, and not in checkouts if the program is elsewhere as well. A
    /// child could put another program there. Searching a long `PATH` also takes as long as a short program runs.
    #[must_use]
    pub fn located(name: &str) -> Self {
        let mut program = Self::new(Self::locate(name));
        program.command.arg0(name);
        program
    }

    /// The path of such a program; its name if it is not found.
    #[must_use]
    pub fn locate(name: &str) -> PathBuf {
        let path = env::var_os("PATH").unwrap_or_default();
        match locate_program(name, &path) {
            ProgramPlace::Found(file) | ProgramPlace::InCheckout(file) => file,
            ProgramPlace::Missing => name.into(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable from the environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the directory to run in.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Limits where it may change files. A second call replaces the first.
    #[must_use]
    pub fn confined(self, confinement: Confinement) -> Self {
        Self { confinement: Some(confinement), ..self }
    }

    /// Limits where it may change files, if there is a limit.
    #[must_use]
    pub fn confined_if(self, confinement: Option<Confinement>) -> Self {
        match confinement {
            Some(confinement) => self.confined(confinement),
            None => self,
        }
    }

    /// Also lets it change files below this folder, if it is confined.
    #[must_use]
    pub fn writing_in(mut self, folder: &Path) -> Self {
        self.confinement.iter_mut().for_each(|confinement| confinement.add(folder.to_owned()));
        self
    }

    pub(super) fn into_parts(self) -> (Command, Option<Confinement>) {
        (self.command, self.confinement)
    }

    fn spawn(&mut self) -> Result<Child, ProcessError> {
        let spawned = spawn::spawn(&mut self.command, self.confinement.as_ref());
        spawned.map_err(|source| self.error(source))
    }

    /// The error if it could not be started. The system reports a missing directory as if the program were missing.
    fn error(&self, source: io::Error) -> ProcessError {
        let program = self.command.get_program().to_string_lossy().into_owned();
        match self.command.get_current_dir().filter(|dir| !dir.is_dir()) {
            Some(dir) => {
                let words = format!("its folder '{}' is gone", dir.display());
                ProcessError { program, source: io::Error::new(io::ErrorKind::NotADirectory, words) }
            }
            None => ProcessError { program, source },
        }
    }

    /// Starts it without standard input, and with its output as a stream.
    pub fn start(mut self) -> Result<RunningProgram, ProcessError> {
        self.command.stdin(Stdio::null());
        self.launch()
    }

    /// Starts it for a conversation: requests on standard input, answers on standard output. Ctrl-C does not reach it.
    /// An answer that takes too long is an error.
    ///
    /// Sockets are used instead of pipes: any process of the same user could open a pipe through `/proc` and write
    /// requests or answers. A socket cannot be opened that way.
    pub fn start_interactive(self) -> Result<RunningProgram, ProcessError> {
        let mut program = self.shielded();
        let pairs = || Ok([UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?]);
        let pairs: io::Result<[_; 3]> = pairs();
        let [input, output, errors] = pairs.map_err(|source| program.error(source))?;
        let end = |socket: UnixStream| Stdio::from(OwnedFd::from(socket));
        program.command.stdin(end(input.1)).stdout(end(output.1)).stderr(end(errors.1));
        environment::remove_private(&mut program.command);
        let name = program.command.get_program().to_os_string();
        let writer = program.begin_writing(WriteReach::Driver);
        let mut child = program.spawn()?;
        running_program::register(&child, Reach { has_group: true, may_finish: false });
        child.stdin = Some(OwnedFd::from(input.0).into());
        let pipes = Pipes::Fresh(OwnedFd::from(output.0).into(), OwnedFd::from(errors.0).into());
        Ok(RunningProgram {
            child,
            pipes: Some(pipes),
            program: name,
            name: name_of(&program.command),
            patience: Some(ANSWER_TIMEOUT),
            mark: None,
            has_group: true,
            _writer: writer,
        })
    }

    /// Runs it to its end with `input` on standard input. The input is complete before the program starts: what git is
    /// told to write must not depend on whether we live long enough to send it.
    pub fn finish_with(mut self, input: &[u8]) -> Result<ProgramOutput, ProcessError> {
        self.finish_again(Some(input))
    }

    /// Runs it to its end without standard input.
    pub fn finish(mut self) -> Result<ProgramOutput, ProcessError> {
        self.finish_again(None)
    }

    /// Runs it again, after a short while, if it fails with such a message.
    #[must_use]
    pub fn repeated_if(self, is_repeated: fn(&str) -> bool) -> Self {
        Self { is_repeated: Some(is_repeated), ..self }
    }

    /// Runs it to its end, and again if [`Self::repeated_if`] says so.
    pub fn finish_again(&mut self, input: Option<&[u8]>) -> Result<ProgramOutput, ProcessError> {
        for pause in REPEAT_PAUSES.map(Duration::from_millis) {
            let ended = self.finish_once(input)?;
            let is_repeated = |is_repeated: fn(&str) -> bool| is_repeated(&ended.complaint());
            if ended.status.success() || !self.is_repeated.is_some_and(is_repeated) {
                return Ok(ended);
            }
            thread::sleep(pause);
        }
        self.finish_once(input)
    }

    fn finish_once(&mut self, input: Option<&[u8]>) -> Result<ProgramOutput, ProcessError> {
        let stdin = match input {
            Some(input) => input::complete(input).map_err(|source| self.error(source))?.into(),
            None => Stdio::null(),
        };
        self.command.stdin(stdin);
        self.launch()?.finish()
    }

    /// Its directory, unless it is ours.
    #[must_use]
    pub fn find_dir(&self) -> Option<PathBuf> {
        self.command.get_current_dir().map(Path::to_owned)
    }

    /// Runs it to its end in another thread. Even starting a program takes half a millisecond.
    #[must_use]
    pub fn finish_in_background(self) -> BackgroundProgram {
        let program = self.command.get_program().to_os_string();
        let bounds = WaitBounds::find();
        BackgroundProgram {
            thread: thread::spawn(|| WaitBounds::apply(bounds, || self.finish())),
            program,
            fault: None,
        }
    }

    /// Puts it into a separate process group, so that Ctrl-C on the terminal reaches only us.
    #[must_use]
    pub fn shielded(mut self) -> Self {
        self.command.process_group(0);
        self.has_group = true;
        self
    }

    /// Like [`Self::shielded`], but only if we handle signals ourselves; otherwise it ends with us. Not for programs that may ask the
    /// user something: only the foreground process group may read from a terminal.
    #[must_use]
    pub fn shielded_if_watched(self, is_shielded_if_watched: bool) -> Self {
        Self { is_shielded_if_watched, ..self }
    }

    /// Declares that it writes no file in any worktree, so that scans of worktrees stay valid.
    #[must_use]
    pub fn writes_no_worktree(self) -> Self {
        Self { writes_no_worktree: true, ..self }
    }

    /// Declares that it writes to no worktree but the one that it runs in, or that `GIT_WORK_TREE` names.
    #[must_use]
    pub fn writes_one_worktree(self) -> Self {
        Self { writes_one_worktree: true, ..self }
    }

    /// Ends and waits for everything that it started, after it has ended. For programs that run programs of others, as
    /// git runs filters.
    #[must_use]
    pub fn ends_descendants(self) -> Self {
        Self { ends_descendants: true, ..self }
    }

    fn begin_writing(&self, reach: WriteReach) -> Option<RunningWriter> {
        let named = self.command.get_envs().find(|(name, _)| *name == "GIT_WORK_TREE");
        let named = named.and_then(|(_, value)| value).map(Path::new);
        let folders: Vec<&Path> = self.command.get_current_dir().into_iter().chain(named).collect();
        let folders = if self.writes_one_worktree { folders.as_slice() } else { &[] };
        (!self.writes_no_worktree).then(|| RunningWriter::begin_child(folders, reach))
    }

    /// Removes the variables by which git described this repository and this call; variables that were set explicitly
    /// stay.
    #[must_use]
    pub fn without_git_variables(mut self) -> Self {
        environment::remove_git_variables(&mut self.command);
        self
    }

    /// Gives it the environment of a child whose changes to the git directory are put back.
    #[must_use]
    pub fn in_guarded_environment(mut self) -> Self {
        environment::clean(&mut self.command);
        self
    }

    /// Runs it to its end with our own standard streams.
    pub fn run_to_end(mut self) -> Result<ExitStatus, ProcessError> {
        environment::remove_private(&mut self.command);
        // Users name such programs, and they are in no sandbox.
        let _writer = self.begin_writing(WriteReach::Unlimited);
        let mut child = self.spawn()?;
        let status = child.wait();
        spawn::forget(child.id());
        status.map_err(|source| self.error(source))
    }

    /// Starts it in the background; it outlives this process.
    pub fn release(mut self) -> Result<(), ProcessError> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        environment::remove_private(&mut self.command);
        self.command.process_group(0).env(DRIVER, driver_mark());
        if let Some(writer) = self.begin_writing(WriteReach::Driver) {
            writer.stays();
        }
        let child = self.spawn()?;
        spawn::forget(child.id());
        Ok(())
    }

    /// Replaces this process by the program. Returns only if that failed.
    #[must_use]
    pub fn exec(mut self) -> ProcessError {
        if let Some(Err(source)) = self.confinement.as_ref().map(Confinement::enter) {
            return self.error(source);
        }
        let source = self.command.exec();
        self.error(source)
    }

    fn launch(&mut self) -> Result<RunningProgram, ProcessError> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        environment::remove_private(&mut self.command);
        let may_finish = self.has_group;
        if self.is_shielded_if_watched && interrupt::is_watched() {
            self.command.process_group(0);
            self.has_group = true;
        }
        let mark = self.ends_descendants.then(RunMark::fresh);
        if let Some(mark) = &mark {
            spawn::adopt_orphans();
            self.command.process_group(0).env(mark::VARIABLE, mark.as_str());
            self.has_group = true;
        }
        let program = self.command.get_program().to_os_string();
        let writer = self.begin_writing(WriteReach::Driver);
        let mut child = self.spawn()?;
        running_program::register(&child, Reach { has_group: self.has_group, may_finish });
        let pipes = child.stdout.take().zip(child.stderr.take()).map(|(out, err)| Pipes::Fresh(out, err));
        let (patience, has_group, name) = (Some(LIMIT), self.has_group, name_of(&self.command));
        Ok(RunningProgram { child, pipes, program, name, patience, mark, has_group, _writer: writer })
    }
}

/// The name of a program for errors, with its subcommand if it is git: `git status`.
fn name_of(command: &Command) -> Arc<str> {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let program = program.to_string_lossy();
    let mut args = command.get_args().skip_while(|_| program != "git");
    while let Some(arg) = args.next() {
        match arg.as_encoded_bytes() {
            // Settings for this call.
            b"-c" | b"-C" => drop(args.next()),
            [b'-', ..] => {}
            _ => return format!("{program} {}", arg.to_string_lossy()).into(),
        }
    }
    program.into()
}

/// A program that runs in another thread.
pub struct BackgroundProgram {
    thread: JoinHandle<Result<ProgramOutput, ProcessError>>,
    program: OsString,
    /// Returns a reason why the result is not valid, called after the program has ended.
    fault: Option<Box<dyn FnOnce() -> Option<String> + Send>>,
}

impl std::fmt::Debug for BackgroundProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Awaited").field("program", &self.program).finish_non_exhaustive()
    }
}

impl BackgroundProgram {
    /// Lets `fault` invalidate the result.
    #[must_use]
    pub fn but(self, fault: impl FnOnce() -> Option<String> + Send + 'static) -> Self {
        Self { fault: Some(Box::new(fault)), ..self }
    }

    /// Waits for its end.
    pub fn finish(self) -> Result<ProgramOutput, ProcessError> {
        let program = self.program.to_string_lossy().into_owned();
        let failed = |words: &str| ProcessError { program, source: io::Error::other(words.to_owned()) };
        let Ok(ended) = self.thread.join() else {
            return Err(failed("the thread that waited for it ended early"));
        };
        match self.fault.and_then(|fault| fault()) {
            Some(why) => Err(failed(&why)),
            None => ended,
        }
    }
}

/// A value as one word of a shell command. Plain words stay as they are, so that they can be read, and so that they can
/// stand inside of quotes.
#[must_use]
pub fn shell_word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn large_output_on_both_streams_is_read_completely() {
        let script =
            "head -c 300000 /dev/zero >&2; head -c 400000 /dev/zero; exec >&-; head -c 300000 /dev/zero >&2";
        let finished = Program::new("sh").args(["-c", script]).finish_in_background().finish().unwrap();
        assert!(finished.status.success());
        assert_eq!((finished.stdout.len(), finished.stderr.len()), (400_000, 600_000));
    }

    #[test]
    fn a_program_that_does_not_answer_times_out() {
        let mut running =
            Program::new("sh").args(["-c", "read word; sleep 600"]).start_interactive().unwrap();
        running.patience = Some(Duration::from_millis(10));
        running.send_request(b"word\n").unwrap();
        let error = running.output().unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(running.finish().unwrap_err().source.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_error_of_a_git_that_hangs_names_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("git");
        std::os::unix::fs::symlink("/bin/sh", &git).unwrap();
        let script = folder.path().join("status");
        std::fs::write(&script, "sleep 600").unwrap();
        let mut running = Program::new(&git).arg("-u").arg(&script).start().unwrap();
        running.patience = Some(Duration::from_millis(10));
        let error = running.finish().unwrap_err();
        assert!(error.is_too_slow());
        let name = format!("git {}", script.display());
        assert_eq!(error.to_string(), format!("'{name}' did not finish in 0 minutes, and was stopped"));
    }

    #[test]
    fn a_missing_background_program_is_reported_when_it_is_waited_for() {
        let error = Program::new("no-such-program").finish_in_background().finish().unwrap_err();
        assert_eq!(
            (error.program.as_str(), error.source.kind()),
            ("no-such-program", io::ErrorKind::NotFound)
        );
    }
}
