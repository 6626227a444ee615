//! Asks an agent for a plan of a specification. Its reply is data: one JSON object is extracted and read like any tree
//! file. Problems are reported to the agent, which may try again a few times.

mod error;
mod prompt;
mod reply;

pub use error::PlannerError;

use std::path::{Path, PathBuf};

use crate::{
    agent::{CallOutcome, Request, Runner, RunnerKind},
    event::EventKind,
    message::plain_text,
    pipeline::{AtLimit, Call, Caller, PipelineError, StepRunner},
    plan::{Plan, Problem},
};

/// How many times an agent is called for one plan.
pub const MOST_CALLS: usize = 3;

/// The file name of a reply in messages.
const LABEL: &str = "reply";

/// An agent that makes plans.
pub struct Planner<'a> {
    /// The program.
    pub runner: &'a Runner,
    /// The model, if not the program's default.
    pub model: Option<&'a str>,
    /// Its working directory: the top of the checkout.
    pub dir: &'a Path,
    /// The path of its output; each call adds its number.
    pub log: &'a Path,
    /// How it is called.
    pub caller: Caller<'a>,
}

impl Planner<'_> {
    /// Asks for the plan of `specs`, given by name and content. `doubts` returns further problems of a valid plan.
    pub fn plan(
        &mut self,
        specs: &[(&str, &[u8])],
        doubts: impl Fn(&Plan) -> Vec<Problem>,
    ) -> Result<Plan, PlannerError> {
        let task = prompt::task(specs);
        let mut prompt = task.clone();
        let mut problems = Vec::new();
        for call in 1..=MOST_CALLS {
            let reply = self.ask(&prompt, call)?;
            let object = reply::find_object(&reply);
            match read(object, &doubts) {
                Ok(plan) => return Ok(plan),
                Err(found) => problems = found,
            }
            let words = format!("answer {call} is not a valid plan: {}", said(&problems));
            (self.caller.on_event)(EventKind::note(words));
            prompt = task.clone() + &prompt::correction(object, &problems);
        }
        Err(PlannerError::Wrong { runner: self.runner.name.clone(), problems, log: self.log_of(MOST_CALLS) })
    }

    /// Calls the agent, and returns its last message.
    fn ask(&mut self, prompt: &str, call: usize) -> Result<String, PlannerError> {
        let (runner, model) = (self.runner, self.model);
        let words = format!("asking {} for a plan, call {call} of at most {MOST_CALLS}", self.runner.name);
        (self.caller.on_event)(EventKind::note(words));
        let log = self.log_of(call);
        let request = Request { prompt, model, dir: self.dir, session: None, prompt_file: None, tools: None };
        let reply = self.caller.call(AtLimit::Wait, || Call::of_runner(runner, request, &log))?;
        if self.caller.cancel.is_cancelled() {
            return Err(PipelineError::stopped(self.caller.cancel).into());
        }
        match reply.outcome {
            CallOutcome::Success { text, .. } => Ok(text),
            CallOutcome::Failed { message, .. } | CallOutcome::Limited { message, .. } => {
                let runner = runner.name.clone();
                Err(PlannerError::Failed { runner, said: plain_text(message.trim()), log })
            }
        }
    }

    fn log_of(&self, call: usize) -> PathBuf {
        self.log.with_extension(format!("{call}.log"))
    }
}

/// The program of a step runner. The built-in runners execute tasks and cannot plan.
pub fn require_runner(step_runner: &StepRunner) -> Result<&Runner, PlannerError> {
    match &step_runner.runner {
        RunnerKind::Program(runner) => Ok(runner),
        RunnerKind::Shell | RunnerKind::Demo => {
            Err(PlannerError::NoPlanner { runner: step_runner.name.clone() })
        }
    }
}

/// Reads an object as a plan, or returns all of its problems.
fn read(object: Option<&str>, doubts: &impl Fn(&Plan) -> Vec<Problem>) -> Result<Plan, Vec<Problem>> {
    let object = object.ok_or_else(|| vec![problem("there is no JSON object", "reply with the tree")])?;
    let plan = Plan::read(LABEL, object.as_bytes()).map_err(|error| error.problems().to_vec())?;
    let mut problems = doubts(&plan);
    if plan.tasks.is_empty() {
        problems.push(problem("the plan has no task", "add a node for each task"));
    }
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

fn problem(what: &str, fix: &str) -> Problem {
    Problem { file: LABEL.into(), line: 1, column: 1, what: what.into(), fix: fix.into() }
}

/// The first problem, and how many more there are.
fn said(problems: &[Problem]) -> String {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        count => format!("{first} (and {} more)", count - 1),
    }
}
