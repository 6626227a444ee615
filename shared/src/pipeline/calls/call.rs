//! One call of an agent program, supervised: its stream, its limits, and why it failed.

use std::{
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
    git::HandedFiles,
    pipeline::{Expense, PipelineError, Who, calls::gemini_home},
    process::{self, Cancel, Chunk, Ending, Filter, Limits, OrphanLock, Program, Stream, Supervised},
    safe_files,
};

/// What holds for every call of an agent.
pub struct Caller<'a> {
    /// Who is called.
    pub runner: &'a str,
    /// How long it may take and be silent.
    pub limits: Limits,
    /// How long its provider is waited for.
    pub backoff: Backoff,
    /// What must not be written down.
    pub secrets: &'a Secrets,
    /// The wish to stop.
    pub cancel: &'a Cancel,
    /// Tells whether a process of an attempt lives, for callers that must know after a crash.
    pub orphan_lock: Option<&'a mut OrphanLock>,
    /// Who is told what happens.
    pub on_event: &'a mut (dyn FnMut(EventKind) + 'a),
    /// Who follows what the agent does, if somebody has to.
    pub follower: Option<&'a mut (dyn Follower + 'a)>,
    /// What all calls have spent.
    pub expense: Expense,
    /// What the session that is gone on with has spent before; Codex tells it again.
    pub retold: Option<Usage>,
}

/// Somebody who follows an agent while it works.
pub trait Follower {
    /// Somebody is called.
    fn begins(&mut self, who: Who);

    /// The next turn is of this one, who goes on with the same call.
    fn goes_on(&mut self, who: Who);

    /// The agent printed this, secrets and all, and told this by it. Lines come one by one, if they are not too long.
    fn hear(&mut self, printed: &[u8], events: &[AgentEvent]);

    /// It has told nothing more for now; `tally` has all of it. Gives what somebody else should be told.
    fn settle(&mut self, tally: &Tally) -> Vec<EventKind>;

    /// The call is over.
    fn ends(&mut self, tally: &Tally) -> Vec<EventKind>;
}

/// The same one for a shorter time.
pub(in crate::pipeline) fn lend<'s>(
    follower: &'s mut Option<&mut (dyn Follower + '_)>,
) -> Option<&'s mut (dyn Follower + 's)> {
    match follower {
        Some(follower) => Some(&mut **follower),
        None => None,
    }
}

/// What a limit that is used up means, where the provider names no time or a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// It is waited for.
    Wait,
    /// Somebody else is asked.
    Leave,
}

/// A program that is ready to be called.
#[derive(Debug)]
pub struct Call {
    /// The program, with its place.
    pub program: Program,
    /// What it reads on standard input.
    pub stdin: Vec<u8>,
    /// What it prints.
    pub format: EventFormat,
    /// Where its output goes.
    pub log: PathBuf,
    /// Whether a provider is behind it, who may have limits.
    pub has_provider: bool,
    /// What it reads besides.
    pub handed: HandedFiles,
}

/// What came of it.
#[derive(Debug)]
pub struct CallReply {
    /// Judged by stream and exit code.
    pub outcome: CallOutcome,
    /// The end of what it said and of what it printed to standard error, redacted.
    pub words: String,
    /// Whether the program ended by itself without the agent having said or done anything, or with words that its own
    /// session does not exist. One that was to continue a session is then called again without it.
    pub has_no_session: bool,
    /// Why its last words cannot be believed to be its own, if so. Who only works is not asked; who decides is.
    pub doubt: Option<Doubt>,
}

/// Why the last words of a call may not be the program's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Something was printed after it had ended.
    PrintedLate,
    /// It did not end by itself after its result.
    Stopped,
    /// It had said `REJECTED` before.
    Rejected,
    /// A file that tells it what to do was written while it ran.
    Misled,
}

impl Doubt {
    fn find(ended: &process::SupervisedEnd, tally: &Tally, handed: &HandedFiles) -> Option<Self> {
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

/// Where the program of a runner is at home, for one that finds its tools there.
fn user_home(runner: &Runner) -> Option<PathBuf> {
    let (variable, own) = runner.wants_tools_home()?;
    let told = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    own.map(PathBuf::from).or_else(|| told(variable)).or_else(|| told("HOME"))
}

impl Call {
    /// The call of a runner. Its prompt is put into a file beside the log if the runner wants one.
    pub fn of_runner(runner: &Runner, request: Request<'_>, log: &Path) -> Result<Self, PipelineError> {
        let file = log.with_extension("prompt");
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        if runner.wants_prompt_file() {
            files.push((file.clone(), request.prompt.as_bytes().to_vec()));
        }
        let tools = request
            .tools
            .map(|server| ToolServer { file: Some(log.with_extension("tools")), ..server.clone() });
        if let Some(server) = tools.as_ref().filter(|_| runner.wants_tools_file()) {
            files.push((log.with_extension("tools"), server.json().into_bytes()));
        }
        let handed = HandedFiles::write(&files).map_err(|source| file_error(&file, source))?;
        if let Some(home) = tools.as_ref().and_then(|server| server.home.as_ref())
            && let (Some(user), Some(server)) = (user_home(runner), &tools)
        {
            gemini_home::furnish(home, &user, server).map_err(|source| file_error(home, source))?;
        }
        let call = runner.call(&Request { prompt_file: Some(&file), tools: tools.as_ref(), ..request });
        let program = call
            .env
            .iter()
            .fold(Program::new(&call.program), |program, (name, value)| program.env(name, value));
        Ok(Self {
            program: program.args(call.args).dir(request.dir),
            stdin: call.stdin.unwrap_or_default(),
            format: runner.events,
            log: log.to_owned(),
            has_provider: true,
            handed,
        })
    }
}

impl Caller<'_> {
    /// Calls an agent, and waits as long as its provider asks us to: that uses up no attempt. A provider that cannot
    /// keep up and names no time is waited for so long, and not for ever.
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
            let Some(pause) = self.backoff.next(*until, (tries, waited), Timestamp::now()) else {
                let (runner, said) = (self.runner.to_owned(), message.clone());
                return Err(PipelineError::Unavailable { runner, said, waited });
            };
            if pause.chosen == Chosen::ByUs {
                waited += pause.span;
            }
            let seconds = pause.span.as_secs_f64().ceil() as u64;
            (self.on_event)(EventKind::Waits { seconds, chosen_by: pause.chosen });
            if self.cancel.wait(pause.span) {
                break;
            }
        }
        Err(PipelineError::stopped(self.cancel))
    }

    fn call_once(&mut self, call: Call) -> Result<CallReply, PipelineError> {
        let Call { program, stdin, format, log, has_provider, handed } = call;
        let mut reader = EventReader::new(format);
        let mut tally = Tally::new(format);
        let log = safe_files::open_log(&log).map_err(|source| file_error(&log, source))?;
        let mut hearing = Hearing::new(self.on_event, lend(&mut self.follower), (&mut tally, self.secrets));
        let (hearing_ref, reader_ref) = (&mut hearing, &mut reader);
        let listener = move |chunk: Chunk<'_>| {
            if chunk.stream == Stream::Stdout {
                for line in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
                    hearing_ref.hear(line, &reader_ref.feed(line));
                }
                hearing_ref.settle();
            }
        };
        let mut supervised =
            Supervised::new(program).input(stdin).limits(self.limits).until(self.cancel).log(log);
        supervised = supervised.filter(Redaction::new(self.secrets));
        if let Some(orphan_lock) = self.orphan_lock.as_deref_mut() {
            supervised = supervised.with_orphan_lock(orphan_lock);
        }
        let ended = supervised.run(listener);
        hearing.hear(b"", &reader.finish());
        hearing.settle();
        hearing.end();
        let retold = self.retold.filter(|_| format == EventFormat::Codex).unwrap_or_default();
        self.expense.add(tally.usage().map(|usage| usage.minus(retold)), ended.took);
        refuse_survivors(&ended)?;
        let doubt = Doubt::find(&ended, &tally, &handed);
        let unexplained = matches!(ended.ending, Ending::Exited(code) if code != 0) && !tally.is_over();
        let has_ended_itself = matches!(ended.ending, Ending::Exited(_));
        let is_mute = !tally.has_worked();
        let said = Redactor::redact(self.secrets, tally.words());
        let complaint = ended.stderr.text.trim_end();
        let words = [said.as_str(), complaint].join("\n").trim().to_owned();
        let mut outcome = redacted(tally.conclude(&end(&ended.ending)), self.secrets);
        if has_provider {
            outcome = attributed(outcome, if unexplained { [said.as_str(), complaint] } else { [""; 2] });
        }
        if unexplained {
            explain(&mut outcome, &words);
        }
        let is_lost = is_mute || is_lost_session(&outcome, &words);
        Ok(CallReply { outcome, words, has_no_session: has_ended_itself && is_lost, doubt })
    }
}

/// Whether the reason of a failure, or the last line that was printed, names a session that is gone. Earlier lines may be
/// the agent's own words about somebody's sessions.
fn is_lost_session(outcome: &CallOutcome, words: &str) -> bool {
    let CallOutcome::Failed { message, .. } = outcome else { return false };
    [message.as_str(), words.lines().last().unwrap_or_default()].into_iter().any(names_lost_session)
}

/// Everybody who hears what an agent tells.
pub(in crate::pipeline) struct Hearing<'h> {
    on_event: &'h mut (dyn FnMut(EventKind) + 'h),
    pub(in crate::pipeline) follower: Option<&'h mut (dyn Follower + 'h)>,
    tally: &'h mut Tally,
    /// Takes secrets out of what is told. A secret may have several lines, so it hears all of them.
    redactor: Redactor,
    untold: Vec<EventKind>,
}

impl<'h> Hearing<'h> {
    pub(in crate::pipeline) fn new(
        on_event: &'h mut (dyn FnMut(EventKind) + 'h),
        follower: Option<&'h mut (dyn Follower + 'h)>,
        (tally, secrets): (&'h mut Tally, &Secrets),
    ) -> Self {
        Self { on_event, follower, tally, redactor: Redactor::new(secrets), untold: Vec::new() }
    }

    pub(in crate::pipeline) fn hear(&mut self, printed: &[u8], events: &[AgentEvent]) {
        events.iter().for_each(|event| self.tally.note(event));
        if let Some(follower) = &mut self.follower {
            follower.hear(printed, events);
        }
        let redactor = &mut self.redactor;
        self.untold.extend(events.iter().filter_map(|event| told(event, redactor)));
    }

    /// The tree stands still only until the agent goes on, so it is looked at before anything is told.
    pub(in crate::pipeline) fn settle(&mut self) {
        let event = self.follower.as_mut().map(|follower| follower.settle(self.tally)).unwrap_or_default();
        self.untold.drain(..).chain(event).for_each(&mut *self.on_event);
    }

    pub(in crate::pipeline) fn end(&mut self) {
        let event = self.follower.as_mut().map(|follower| follower.ends(self.tally)).unwrap_or_default();
        event.into_iter().for_each(&mut *self.on_event);
    }
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
        other => ProcessEnd::Stopped(other.to_string()),
    }
}

/// What is told of an event, without secrets.
fn told(event: &AgentEvent, redactor: &mut Redactor) -> Option<EventKind> {
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

/// Takes secrets out of both streams of a program.
pub struct Redaction([Redactor; 2]);

impl Redaction {
    /// For one run of a program.
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

/// How many characters of a program's complaint are repeated as the reason of a failure.
const LONGEST_REASON: usize = 300;

/// A program that gives up before its stream begins says why, mostly on standard error, and its last line is the reason.
pub(in crate::pipeline) fn explain(outcome: &mut CallOutcome, words: &str) {
    // What the provider said is the reason already.
    let is_ours = matches!(outcome, CallOutcome::Failed { kind: FailureKind::Other, .. });
    if let (CallOutcome::Failed { message, .. }, Some(reason), true) = (outcome, last_words(words), is_ours) {
        message.push_str(": ");
        message.extend(reason.chars().take(LONGEST_REASON));
    }
}

/// A failure whose last words say that it is the provider's is the provider's: `printed` is what a program said that gave no
/// other reason.
pub(in crate::pipeline) fn attributed(outcome: CallOutcome, printed: [&str; 2]) -> CallOutcome {
    let CallOutcome::Failed { kind: FailureKind::Other, message, usage, session } = outcome else {
        return outcome;
    };
    let ends = [message.as_str()].into_iter().chain(printed).filter_map(last_words);
    let told = ends.filter_map(|line| Some((line, FailureKind::of_words(line)?))).next_back();
    let told = told.map(|(line, told)| (line.chars().take(LONGEST_REASON).collect(), told));
    let Some((message, (kind, until))) = told else {
        return CallOutcome::Failed { kind: FailureKind::Other, message, usage, session };
    };
    match kind.as_limit() {
        Some(kind) => CallOutcome::Limited { kind, until, message, usage, session },
        None => CallOutcome::Failed { kind, message, usage, session },
    }
}

fn last_words(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// The same without secrets.
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
