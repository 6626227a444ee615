//! What every step needs: options, limits, the wish to stop, and a voice.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{
    Crew, Happening, News, Options, PipelineError,
    call::{Call, Caller, Reply},
};
use crate::{
    agent::{EventFormat, Request, RunnerKind, redact::Secrets},
    name::TaskId,
    plan::Task,
    process::{Attendance, Cancel, Program},
};

/// Where a pipeline works, and with what.
pub struct Workshop<'a> {
    /// What was meant.
    pub options: &'a Options,
    /// The top of the checkout.
    pub dir: &'a Path,
    /// Where logs stand: the top of the user's checkout, also for lanes.
    pub home: &'a Path,
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
    pub voice: Box<dyn FnMut(News) + Send + 'a>,
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

impl Workshop<'_> {
    /// Calls an agent for a task, as [`Caller::call`] does.
    pub fn call(&mut self, errand: Errand<'_>) -> Result<Reply, PipelineError> {
        let (dir, demo) = (self.dir, &self.demo);
        let voice = &mut self.voice;
        let mut tell = |happening| voice(News::of(&errand.task.id, happening));
        let mut caller = Caller {
            limits: self.options.call_limits,
            secrets: &self.secrets,
            cancel: &self.cancel,
            attendance: Some(&mut self.attendance),
            voice: &mut tell,
        };
        caller.call(|| prepare(errand, dir, demo))
    }

    /// Leaves the place to somebody else.
    #[must_use]
    pub fn leave(self) -> Attendance {
        self.attendance
    }

    /// Tells what has happened to a task.
    pub fn tell(&mut self, task: &TaskId, happening: Happening) {
        (self.voice)(News::of(task, happening));
    }

    /// A moment as it stands in file names.
    #[must_use]
    pub fn stamp(&self) -> String {
        let now = Timestamp::from_second((self.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        now.strftime("%Y%m%dT%H%M%S").to_string()
    }
}

fn prepare(errand: Errand<'_>, dir: &Path, demo: &Path) -> Result<Call, PipelineError> {
    let Errand { crew, task, prompt, log } = errand;
    let built_in = |program: Program, stdin: &str| Call {
        program: program.dir(dir),
        stdin: stdin.into(),
        format: EventFormat::Text,
        log: log.to_owned(),
    };
    let mut call = match &crew.runner {
        RunnerKind::Shell => {
            let command = task.command.as_deref();
            let command = command.ok_or_else(|| PipelineError::NoCommand { task: task.id.to_string() })?;
            built_in(Program::new("sh").args(["-c", command]), "")
        }
        RunnerKind::Demo => built_in(Program::new(demo).arg("--agent"), prompt),
        RunnerKind::Program(runner) => {
            let model = crew.model.as_deref();
            Call::of_runner(runner, Request { prompt, model, dir, session: None, prompt_file: None }, log)?
        }
    };
    call.program = call.program.env("ARBORIST_TASK", task.id.as_str());
    Ok(call)
}
