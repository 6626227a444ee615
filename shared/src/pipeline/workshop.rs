//! What every step needs: options, limits, the wish to stop, and a voice.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Crew, Happening, Options, PipelineError};
use crate::{
    agent::{
        AgentEvent, End, EventFormat, EventReader, Outcome, Request, RunnerKind, Tally,
        limits::Backoff,
        redact::{Redactor, Secrets},
    },
    plan::Task,
    process::{
        self, Attendance, Cancel, Chunk, Ending, Filter, Limits, Program, Stream, Supervised, create_log,
    },
};

/// Where a pipeline works, and with what.
pub struct Workshop<'a> {
    /// What was meant.
    pub options: &'a Options,
    /// The top of the checkout.
    pub dir: &'a Path,
    /// What must not be written down.
    pub secrets: Secrets,
    /// The wish to stop.
    pub cancel: Cancel,
    /// Tells whether a process of an attempt lives.
    pub attendance: Attendance,
    /// The program of the built-in agent.
    pub demo: PathBuf,
    /// Whether the user has a hook to be asked before an agent's work is committed.
    pub hook: PreCommit,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
    /// Who is told what happens.
    pub voice: Box<dyn FnMut(Happening<'_>) + 'a>,
}

/// Whether the user has a pre-commit hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreCommit {
    /// It is asked.
    Asked,
    /// There is none.
    None,
}

/// What an agent was called for.
#[derive(Debug, Clone, Copy)]
pub struct Errand<'a> {
    /// Who.
    pub crew: &'a Crew,
    /// For which task.
    pub task: &'a Task,
    /// What it is told.
    pub prompt: &'a str,
    /// Where its output goes.
    pub log: &'a Path,
}

/// What came of it.
#[derive(Debug)]
pub struct Reply {
    /// Judged by stream and exit code.
    pub outcome: Outcome,
    /// The end of what it printed to standard error, redacted.
    pub complaints: String,
}

struct Call {
    program: Program,
    stdin: Vec<u8>,
    format: EventFormat,
}

impl Workshop<'_> {
    /// Calls an agent, and waits as long as its provider asks us to: that uses up no attempt.
    pub fn call(&mut self, errand: Errand<'_>) -> Result<Reply, PipelineError> {
        for tries in 0.. {
            let reply = self.call_once(errand)?;
            let Outcome::Limited { until, .. } = &reply.outcome else {
                return Ok(reply);
            };
            let now = Timestamp::now();
            let at = Backoff::default().resume_at(*until, tries, now);
            let seconds = u64::try_from(at.duration_since(now).as_secs()).unwrap_or(0);
            (self.voice)(Happening::Waits { seconds });
            if self.cancel.wait(std::time::Duration::from_secs(seconds)) {
                break;
            }
        }
        Err(PipelineError::Stopped)
    }

    fn call_once(&mut self, errand: Errand<'_>) -> Result<Reply, PipelineError> {
        let Call { program, stdin, format } = self.prepare(errand)?;
        let mut reader = EventReader::new(format);
        let mut tally = Tally::new(format);
        let limits = Limits {
            whole: Some(self.options.runner_time),
            silence: Some(self.options.silence),
            ..Limits::default()
        };
        let log = create_log(errand.log).map_err(|source| file_error(errand.log, source))?;
        let voice = &mut self.voice;
        let tally_ref = &mut tally;
        let reader_ref = &mut reader;
        let listener = move |chunk: Chunk<'_>| {
            if chunk.stream == Stream::Stdout {
                for event in reader_ref.feed(chunk.bytes) {
                    tell(voice, &event);
                    tally_ref.note(&event);
                }
            }
        };
        let supervised = Supervised::new(program).input(stdin).limits(limits).until(&self.cancel).log(log);
        let supervised = supervised.filter(Redaction::new(&self.secrets)).attended(&mut self.attendance);
        let ended = supervised.run(listener);
        reader.finish().iter().for_each(|event| tally.note(event));
        refuse_survivors(&ended)?;
        let outcome = redacted(tally.conclude(&end(&ended.ending)), &self.secrets);
        Ok(Reply { outcome, complaints: ended.stderr.text })
    }

    fn prepare(&self, errand: Errand<'_>) -> Result<Call, PipelineError> {
        let prompt = errand.prompt;
        let (program, stdin, format) = match &errand.crew.runner {
            RunnerKind::Shell => {
                let command = errand.task.command.as_deref();
                let command =
                    command.ok_or_else(|| PipelineError::NoCommand { task: errand.task.id.to_string() })?;
                (Program::new("sh").args(["-c", command]), Vec::new(), EventFormat::Text)
            }
            RunnerKind::Demo => (Program::new(&self.demo).arg("--agent"), prompt.into(), EventFormat::Text),
            RunnerKind::Program(runner) => {
                let file = errand.log.with_extension("prompt");
                if runner.wants_prompt_file() {
                    std::fs::write(&file, prompt).map_err(|source| file_error(&file, source))?;
                }
                let model = errand.crew.model.as_deref();
                let request =
                    Request { prompt, model, dir: self.dir, session: None, prompt_file: Some(&file) };
                let call = runner.call(&request);
                let program = call
                    .env
                    .iter()
                    .fold(Program::new(&call.program), |program, (name, value)| program.env(name, value));
                (program.args(call.args), call.stdin.unwrap_or_default(), runner.events)
            }
        };
        let program = program.dir(self.dir).env("ARBORIST_TASK", errand.task.id.as_str());
        Ok(Call { program, stdin, format })
    }

    /// A moment as it stands in file names.
    #[must_use]
    pub fn stamp(&self) -> String {
        let now = Timestamp::from_second((self.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        now.strftime("%Y%m%dT%H%M%S").to_string()
    }
}

pub(super) fn file_error(path: &Path, source: std::io::Error) -> PipelineError {
    PipelineError::File { path: path.display().to_string(), source }
}

pub(super) fn refuse_survivors(ended: &process::Outcome) -> Result<(), PipelineError> {
    if ended.survivors.is_empty() {
        return Ok(());
    }
    let pids: Vec<String> = ended.survivors.iter().map(ToString::to_string).collect();
    Err(PipelineError::Survivors(pids.join(", ")))
}

fn end(ending: &Ending) -> End {
    match ending {
        Ending::Exited(code) => End::Code(*code),
        Ending::Signalled(signal) => End::Signal(*signal),
        other => End::Stopped(other.to_string()),
    }
}

fn tell(voice: &mut dyn FnMut(Happening<'_>), event: &AgentEvent) {
    let words = match event {
        AgentEvent::Text(text) => text.clone(),
        AgentEvent::ToolCall { name, summary } => format!("{name}: {summary}"),
        AgentEvent::FileWritten { path } => format!("wrote {path}"),
        _ => return,
    };
    voice(Happening::Said { words: &words });
}

fn redacted(outcome: Outcome, secrets: &Secrets) -> Outcome {
    let clean = |text: String| Redactor::redact(secrets, &text);
    match outcome {
        Outcome::Success { text, usage, session } => Outcome::Success { text: clean(text), usage, session },
        Outcome::Failed { kind, message, usage, session } => {
            Outcome::Failed { kind, message: clean(message), usage, session }
        }
        limited @ Outcome::Limited { .. } => limited,
    }
}

/// Takes secrets out of both streams of a program.
pub(super) struct Redaction([Redactor; 2]);

impl Redaction {
    pub(super) fn new(secrets: &Secrets) -> Self {
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
