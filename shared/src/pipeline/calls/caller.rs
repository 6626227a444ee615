//! One supervised call of an agent program: its event stream, its limits, and the reason if it fails.

use std::{
    fs::File,
    io::Write,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    agent::{
        AgentEvent, CallOutcome, EventFormat, EventReader, FailureKind, LimitKind, ProcessEnd, Request,
        Runner, Tally, ToolServer, Usage,
        limits::{Backoff, Chosen},
        names_lost_session,
        redact::{Redactor, Secrets},
    },
    event::EventKind,
    git::ChildInputFiles,
    pipeline::{ActiveRunner, Expense, PipelineError, calls::gemini_home},
    process::{
        self, Cancel, Chunk, Confinement, Ending, Filter, Limits, OrphanLock, Program, Stream, Supervised,
        resolve_program, without_slot,
    },
    record::call_opening,
    safe_files,
    sandbox::describe_denials,
};

/// Everything that is the same for repeated calls of one agent.
pub struct Caller<'a> {
    /// The name of the runner.
    pub runner: &'a str,
    /// How long it may run in total, and without output.
    pub limits: Limits,
    /// How long to wait for its provider.
    pub backoff: Backoff,
    /// Secrets that must not appear in logs or commits.
    pub secrets: &'a Secrets,
    /// Signals that the run should stop.
    pub cancel: &'a Cancel,
    /// Is held by the agent's processes, for callers that must find them after a crash.
    pub orphan_lock: Option<&'a mut OrphanLock>,
    /// Receives every event.
    pub on_event: &'a mut (dyn FnMut(EventKind) + 'a),
    /// Observes the agent while it works.
    pub observer: Option<&'a mut (dyn CallObserver + 'a)>,
    /// What all calls have cost so far.
    pub expense: Expense,
    /// Limits where the agent can change files.
    pub confinement: Option<Confinement>,
    /// What the resumed session had cost before. Codex reports this again in its totals.
    pub prior_usage: Option<Usage>,
}

/// Observes an agent while it works.
pub trait CallObserver {
    /// A call of this runner with this prompt begins.
    fn on_begin(&mut self, active_runner: ActiveRunner, prompt: &str);

    /// The next turn belongs to this runner, within the same call.
    fn on_continue(&mut self, active_runner: ActiveRunner);

    /// The agent printed these bytes, not yet redacted, which contained these events. Each line is passed alone, unless
    /// it is very long.
    fn on_output(&mut self, printed: &[u8], events: &[AgentEvent]);

    /// No more output is available for now; `tally` contains all of it. Returns events to report.
    fn on_idle(&mut self, tally: &Tally) -> Vec<EventKind>;

    /// The call has ended. Returns events to report.
    fn on_end(&mut self, tally: &Tally) -> Vec<EventKind>;
}

/// Borrows the observer for a shorter time.
pub(in crate::pipeline) fn reborrow<'s>(
    observer: &'s mut Option<&mut (dyn CallObserver + '_)>,
) -> Option<&'s mut (dyn CallObserver + 's)> {
    match observer {
        Some(observer) => Some(&mut **observer),
        None => None,
    }
}

/// What to do when a usage limit is reached. An overloaded provider is always waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// Wait for the provider.
    Wait,
    /// Return, so that the next runner of the chain is called.
    Leave,
}

/// A program that is ready to be called.
#[derive(Debug)]
pub struct Call {
    /// The program, with its arguments and directory.
    pub program: Program,
    /// The prompt, for the log.
    pub prompt: String,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// The format of its output.
    pub format: EventFormat,
    /// The file that its output is appended to.
    pub log: PathBuf,
    /// Whether it talks to a provider, which may have limits.
    pub has_provider: bool,
    /// Files that it reads.
    pub handed: ChildInputFiles,
}

/// The result of a call.
#[derive(Debug)]
pub struct CallReply {
    /// Decided by the stream and the exit code.
    pub outcome: CallOutcome,
    /// The end of its answer and of its standard error, redacted.
    pub words: String,
    /// Whether the program exited without the agent having said or done anything, or with a message that the session
    /// does not exist. A call that should have resumed a session is then repeated without it.
    pub has_no_session: bool,
    /// Why its answer may not be its own, if there is a reason to think so. Only relevant for reviewers.
    pub doubt: Option<ReplyDoubt>,
    /// What the sandbox refused, as far as the output says so.
    pub denial: Option<String>,
}

/// Why the answer of a call may not be the program's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDoubt {
    /// Something was printed after the program had exited.
    PrintedLate,
    /// It did not exit by itself after its result.
    Stopped,
    /// It had said `REJECTED` before.
    Rejected,
    /// A file with its instructions was written while it ran.
    Misled,
}

impl ReplyDoubt {
    fn find(ended: &process::SupervisedEnd, tally: &Tally, handed: &ChildInputFiles) -> Option<Self> {
        if !handed.are_untouched() {
            Some(Self::Misled)
        } else if ended.printed_late {
            Some(Self::PrintedLate)
        } else if !matches!(ended.ending, Ending::Exited(_)) {
            Some(Self::Stopped)
        } else {
            tally.has_rejected().then_some(Self::Rejected)
        }
    }
}

/// The longest prompt that is passed as an argument, in bytes. Linux allows 128 KiB for one argument. macOS allows 1 MiB
/// for all arguments and the environment.
const LONGEST_ARGUMENT: usize = 100 * 1024;

/// The user's home directory as the program of a runner sees it, if the runner reads its tools there.
fn user_home(runner: &Runner) -> Option<PathBuf> {
    let (variable, own) = runner.wants_tools_home()?;
    let non_empty = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    own.map(PathBuf::from).or_else(|| non_empty(variable)).or_else(|| non_empty("HOME"))
}

impl Call {
    /// Prepares the call of a runner. If the runner reads its prompt from a file, or if the prompt is too long for an
    /// argument, the file is written beside the log.
    pub fn of_runner(runner: &Runner, request: Request<'_>, log: &Path) -> Result<Self, PipelineError> {
        let file = log.with_extension("prompt");
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let is_too_long = runner.takes_prompt_argument() && request.prompt.len() > LONGEST_ARGUMENT;
        if runner.wants_prompt_file() || is_too_long {
            files.push((file.clone(), request.prompt.as_bytes().to_vec()));
        }
        let pointer = format!("Read all of the file {} and do what it says.", file.display());
        let request = Request { prompt: if is_too_long { &pointer } else { request.prompt }, ..request };
        let tools = request
            .tools
            .map(|server| ToolServer { file: Some(log.with_extension("tools")), ..server.clone() });
        if let Some(server) = tools.as_ref().filter(|_| runner.wants_tools_file()) {
            files.push((log.with_extension("tools"), server.json().into_bytes()));
        }
        let handed = ChildInputFiles::write(&files).map_err(|source| file_error(&file, source))?;
        if let Some(home) = tools.as_ref().and_then(|server| server.home.as_ref())
            && let (Some(user), Some(server)) = (user_home(runner), &tools)
        {
            gemini_home::prepare(home, &user, server).map_err(|source| file_error(home, source))?;
        }
        let call = runner.call(&Request { prompt_file: Some(&file), tools: tools.as_ref(), ..request });
        let file = runner.require_program(&std::env::var_os("PATH").unwrap_or_default())?;
        let file = if call.program.contains('/') { resolve_program(&call.program) } else { file };
        let program =
            call.env.iter().fold(Program::new(file), |program, (name, value)| program.env(name, value));
        Ok(Self {
            program: program.args(call.args).dir(request.dir),
            prompt: request.prompt.to_owned(),
            stdin: call.stdin.unwrap_or_default(),
            format: runner.events,
            log: log.to_owned(),
            has_provider: true,
            handed,
        })
    }
}

impl Caller<'_> {
    /// Calls an agent, and repeats the call after waiting for its provider; this does not use up an attempt. A provider
    /// that names no time is waited for only as long as [`Backoff`] allows.
    pub fn call(
        &mut self,
        at_limit: AtLimit,
        prepare: impl Fn() -> Result<Call, PipelineError>,
    ) -> Result<CallReply, PipelineError> {
        let mut waited = Duration::ZERO;
        for tries in 0.. {
            let reply = self.call_once(prepare()?)?;
            let CallOutcome::Limited { kind, until, message, .. } = &reply.outcome else {
                return Ok(reply);
            };
            if (*kind, at_limit) == (LimitKind::Limit, AtLimit::Leave) {
                return Ok(reply);
            }
            let Some(pause) = self.backoff.next(*until, tries, waited, Timestamp::now()) else {
                let (runner, said) = (self.runner.to_owned(), message.clone());
                return Err(PipelineError::Unavailable { kind: *kind, runner, said, waited });
            };
            if pause.chosen == Chosen::ByUs {
                waited += pause.span;
            }
            let seconds = pause.span.as_secs_f64().ceil() as u64;
            (self.on_event)(EventKind::Waits { seconds, chosen_by: pause.chosen });
            if without_slot(|| self.cancel.wait(pause.span)) {
                break;
            }
        }
        Err(PipelineError::stopped(self.cancel))
    }

    /// Calls the program once. The order matters:
    ///
    /// 1. Its output goes to the log, the tally and the observer while it runs.
    /// 2. What it spent is added before any error can be returned: it was paid.
    /// 3. A process that it left behind is an error, whatever it answered.
    /// 4. What the sandbox refused is named in the log. It only explains an end that nothing else explains.
    /// 5. Its words and its end decide the outcome.
    fn call_once(&mut self, call: Call) -> Result<CallReply, PipelineError> {
        let Call { program, prompt, stdin, format, log: log_path, has_provider, handed } = call;
        let mut reader = EventReader::new(format);
        let mut tally = Tally::new(format);
        let opening = call_opening(self.runner, format, &Redactor::redact(self.secrets, &prompt));
        let log = open_log_with_heading(&log_path, &opening)?;
        let mut dispatcher =
            EventDispatcher::new(self.on_event, reborrow(&mut self.observer), &mut tally, self.secrets);
        let (dispatcher_ref, reader_ref) = (&mut dispatcher, &mut reader);
        let listener = move |chunk: Chunk<'_>| {
            if chunk.stream == Stream::Stdout {
                for line in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
                    dispatcher_ref.on_output(line, &reader_ref.feed(line));
                }
                dispatcher_ref.on_idle();
            }
        };
        let mut supervised = Supervised::new(program.confined_if(self.confinement.clone()))
            .input(stdin)
            .limits(self.limits)
            .until(self.cancel)
            .log(log);
        supervised = supervised.filter(Redaction::new(self.secrets));
        if let Some(orphan_lock) = self.orphan_lock.as_deref_mut() {
            supervised = supervised.with_orphan_lock(orphan_lock);
        }
        let ended = supervised.run(listener);
        dispatcher.on_output(b"", &reader.finish());
        dispatcher.on_idle();
        dispatcher.end();
        let prior_usage = self.prior_usage.filter(|_| format == EventFormat::Codex).unwrap_or_default();
        self.expense.add(tally.usage().map(|usage| usage.minus(prior_usage)), ended.took);
        refuse_survivors(&ended)?;
        if let Some(error) = &ended.log_error {
            let words = format!("the log of {} is incomplete: {error}", self.runner);
            (self.on_event)(EventKind::step_note(words));
        }
        let doubt = ReplyDoubt::find(&ended, &tally, &handed);
        let unexplained = matches!(ended.ending, Ending::Exited(code) if code != 0) && !tally.is_over();
        let has_ended_itself = matches!(ended.ending, Ending::Exited(_));
        let is_mute = !tally.has_worked();
        let said = Redactor::redact(self.secrets, tally.words());
        let complaint = ended.stderr.text.trim_end();
        let words = [said.as_str(), complaint].join("\n").trim().to_owned();
        let may_be_denied = unexplained || matches!(ended.ending, Ending::Signalled(_));
        let ending = format!("{words}\n{}", ended.ending);
        let denial = describe_denials(&ending, self.confinement.as_ref());
        if let Some(denial) = &denial {
            append_to_log(&log_path, &format!("=== {denial} ===\n"))?;
        }
        if let Some(denial) = denial.as_ref().filter(|_| may_be_denied) {
            (self.on_event)(EventKind::step_note(denial));
        }
        let mut outcome = redacted(tally.conclude(&end(&ended.ending)), self.secrets);
        if has_provider {
            outcome = attribute_to_provider(
                outcome,
                if unexplained { [said.as_str(), complaint] } else { [""; 2] },
            );
        }
        if unexplained {
            append_reason(&mut outcome, &words);
        }
        let reason = denial.as_ref().filter(|_| may_be_denied);
        if let (CallOutcome::Failed { message, .. }, Some(denial)) = (&mut outcome, reason) {
            message.push_str("; ");
            message.push_str(denial);
        }
        let is_lost = is_mute || is_lost_session(&outcome, &words);
        Ok(CallReply { outcome, words, has_no_session: has_ended_itself && is_lost, doubt, denial })
    }
}

/// Whether the reason of a failure, or the last line of output, says that the session is gone. Earlier lines may be the
/// agent's own words about some session.
fn is_lost_session(outcome: &CallOutcome, words: &str) -> bool {
    let CallOutcome::Failed { message, .. } = outcome else { return false };
    [message.as_str(), words.lines().last().unwrap_or_default()].into_iter().any(names_lost_session)
}

/// Passes an agent's events to everything that needs them: the tally, the observer and the reporter.
pub(in crate::pipeline) struct EventDispatcher<'h> {
    on_event: &'h mut (dyn FnMut(EventKind) + 'h),
    pub(in crate::pipeline) observer: Option<&'h mut (dyn CallObserver + 'h)>,
    tally: &'h mut Tally,
    /// Removes secrets from reported text. A secret may span several lines, so one redactor sees all of them.
    redactor: Redactor,
    pending: Vec<EventKind>,
}

impl<'h> EventDispatcher<'h> {
    pub(in crate::pipeline) fn new(
        on_event: &'h mut (dyn FnMut(EventKind) + 'h),
        observer: Option<&'h mut (dyn CallObserver + 'h)>,
        tally: &'h mut Tally,
        secrets: &Secrets,
    ) -> Self {
        Self { on_event, observer, tally, redactor: Redactor::new(secrets), pending: Vec::new() }
    }

    pub(in crate::pipeline) fn on_output(&mut self, printed: &[u8], events: &[AgentEvent]) {
        events.iter().for_each(|event| self.tally.note(event));
        if let Some(observer) = &mut self.observer {
            observer.on_output(printed, events);
        }
        let redactor = &mut self.redactor;
        self.pending.extend(events.iter().filter_map(|event| visible_event(event, redactor)));
    }

    /// The files stay unchanged only until the agent continues, so the observer looks at them before anything is
    /// reported.
    pub(in crate::pipeline) fn on_idle(&mut self) {
        let event = self.observer.as_mut().map(|observer| observer.on_idle(self.tally)).unwrap_or_default();
        self.pending.drain(..).chain(event).for_each(&mut *self.on_event);
    }

    pub(in crate::pipeline) fn end(&mut self) {
        let event = self.observer.as_mut().map(|observer| observer.on_end(self.tally)).unwrap_or_default();
        event.into_iter().for_each(&mut *self.on_event);
    }
}

/// Appends words to a log, beginning on a line of their own.
pub(in crate::pipeline) fn append_to_log(path: &Path, words: &str) -> Result<(), PipelineError> {
    open_log_with_heading(path, words).map(drop)
}

/// Opens a log, and appends a heading to it on a line of its own.
pub(in crate::pipeline) fn open_log_with_heading(path: &Path, heading: &str) -> Result<File, PipelineError> {
    let open = || -> std::io::Result<File> {
        let mut log = safe_files::open_log(path)?;
        let mut last = [b'\n'];
        if let Some(at) = log.metadata()?.len().checked_sub(1) {
            safe_files::open(path)?.read_at(&mut last, at)?;
        }
        let line_end = if last == [b'\n'] { "" } else { "\n" };
        log.write_all(format!("{line_end}{heading}").as_bytes())?;
        Ok(log)
    };
    open().map_err(|source| file_error(path, source))
}

pub(in crate::pipeline) fn file_error(path: &Path, source: std::io::Error) -> PipelineError {
    PipelineError::File { path: path.display().to_string(), source }
}

pub(in crate::pipeline) fn refuse_survivors(ended: &process::SupervisedEnd) -> Result<(), PipelineError> {
    if ended.survivors.is_empty() {
        return Ok(());
    }
    let pids: Vec<String> = ended.survivors.iter().map(ToString::to_string).collect();
    Err(PipelineError::Survivors(pids.join(", ")))
}

fn end(ending: &Ending) -> ProcessEnd {
    match ending {
        Ending::Exited(code) => ProcessEnd::Code(*code),
        Ending::Signalled(signal) => ProcessEnd::Signal(*signal),
        Ending::TimedOut { .. } => ProcessEnd::Stopped(format!("{ending} (timeouts.runner)")),
        Ending::Silent { .. } => ProcessEnd::Stopped(format!("{ending} (timeouts.silence)")),
        other => ProcessEnd::Stopped(other.to_string()),
    }
}

/// The event that is reported to the user, redacted; `None` if this one is not reported.
fn visible_event(event: &AgentEvent, redactor: &mut Redactor) -> Option<EventKind> {
    let words = match event {
        AgentEvent::Text(text) => text.clone(),
        AgentEvent::ToolCall { name, summary } => format!("{name}: {summary}"),
        AgentEvent::FileWritten { path } => format!("wrote {path}"),
        AgentEvent::TurnEnded { .. } => return Some(EventKind::TurnEnded),
        _ => return None,
    };
    let shown = redactor.feed(format!("{words}\n").as_bytes());
    let words = String::from_utf8_lossy(&shown).trim_end_matches('\n').to_owned();
    (!words.is_empty()).then_some(EventKind::Said { words })
}

/// Removes secrets from both streams of a program.
pub struct Redaction([Redactor; 2]);

impl Redaction {
    /// Creates a filter for one run of a program.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self([Redactor::new(secrets), Redactor::new(secrets)])
    }

    fn of(&mut self, stream: Stream) -> &mut Redactor {
        &mut self.0[usize::from(stream == Stream::Stderr)]
    }
}

impl Filter for Redaction {
    fn pass(&mut self, chunk: Chunk<'_>, out: &mut Vec<u8>) {
        out.extend(self.of(chunk.stream).feed(chunk.bytes));
    }

    fn finish(&mut self, stream: Stream, out: &mut Vec<u8>) {
        out.extend(self.of(stream).finish());
    }
}

/// How many characters of a program's error message are repeated as the reason of a failure.
const MAX_REASON_LENGTH: usize = 300;

/// Adds the last line of output as the reason: a program that fails before its stream begins usually prints why.
pub(in crate::pipeline) fn append_reason(outcome: &mut CallOutcome, words: &str) {
    // A message of the provider is already the reason.
    let is_ours = matches!(outcome, CallOutcome::Failed { kind: FailureKind::Other, .. });
    if let (CallOutcome::Failed { message, .. }, Some(reason), true) =
        (outcome, last_nonempty_line(words), is_ours)
    {
        message.push_str(": ");
        message.extend(reason.chars().take(MAX_REASON_LENGTH));
    }
}

/// Changes a failure without a known cause into a failure of the provider if the last line says so. `printed` is the
/// output of a program that gave no other reason.
pub(in crate::pipeline) fn attribute_to_provider(outcome: CallOutcome, printed: [&str; 2]) -> CallOutcome {
    let CallOutcome::Failed { kind: FailureKind::Other, message, usage, session } = outcome else {
        return outcome;
    };
    let ends = [message.as_str()].into_iter().chain(printed).filter_map(last_nonempty_line);
    let provider_failure = ends.filter_map(|line| Some((line, FailureKind::of_words(line)?))).next_back();
    // The time after the last '|' is for programs.
    let shown =
        |line: &str| line.rsplit_once("limit reached|").map(|(before, _)| format!("{before}limit reached"));
    let provider_failure = provider_failure.map(|(line, failure)| {
        let line = shown(line).unwrap_or_else(|| line.to_owned());
        (line.chars().take(MAX_REASON_LENGTH).collect(), failure)
    });
    let Some((message, (kind, until))) = provider_failure else {
        return CallOutcome::Failed { kind: FailureKind::Other, message, usage, session };
    };
    match kind.as_limit() {
        Some(kind) => CallOutcome::Limited { kind, until, message, usage, session },
        None => CallOutcome::Failed { kind, message, usage, session },
    }
}

fn last_nonempty_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Removes secrets from an outcome.
pub(in crate::pipeline) fn redacted(outcome: CallOutcome, secrets: &Secrets) -> CallOutcome {
    let clean = |text: String| Redactor::redact(secrets, &text);
    match outcome {
        CallOutcome::Success { text, usage, session } => {
            CallOutcome::Success { text: clean(text), usage, session }
        }
        CallOutcome::Failed { kind, message, usage, session } => {
            CallOutcome::Failed { kind, message: clean(message), usage, session }
        }
        CallOutcome::Limited { kind, until, message, usage, session } => {
            CallOutcome::Limited { kind, until, message: clean(message), usage, session }
        }
    }
}
