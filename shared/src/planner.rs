//! Asks an agent for a plan of a specification. Its reply is data: one JSON object is extracted and read like any tree
//! file. Problems are reported to the agent, which may try again a few times.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};

use crate::{
    agent::{CallOutcome, Request, Runner, RunnerKind},
    event::EventKind,
    failure::{Exit, Explain, Explanation},
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
        let task = task(specs);
        let mut prompt = task.clone();
        let mut problems = Vec::new();
        for call in 1..=MOST_CALLS {
            let reply = self.ask(&prompt, call)?;
            let object = find_object(&reply);
            match read(object, &doubts) {
                Ok(plan) => return Ok(plan),
                Err(found) => problems = found,
            }
            let words = format!("answer {call} is not a valid plan: {}", list_problems(&problems));
            (self.caller.on_event)(EventKind::note(words));
            prompt = task.clone() + &correction(object, &problems);
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
                Err(PlannerError::Failed { runner, message: plain_text(message.trim()), log })
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
fn list_problems(problems: &[Problem]) -> String {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        count => format!("{first} (and {} more)", count - 1),
    }
}

/// The schema of the reply.
const SCHEMA: &str = include_str!("../../schemas/task-tree.schema.json");

/// The prompt that asks for the tree of these specifications.
fn task(specs: &[(&str, &[u8])]) -> String {
    let mut prompt = format!(
        "Make a plan from the specification below: a tree of tasks for coding agents, each small enough for one \
         change that can be tested and reviewed by itself.\n\
         \n\
         Read the files in the current directory where it helps, but do not change any file.\n\
         Reply with one JSON object and nothing else, by this JSON Schema:\n\
         \n\
         ```json\n{}\n```\n\
         \n\
         - Keep task ids that the specification gives; otherwise use T001, T002 and so on.\n\
         - A phase is a node with children. Only nodes without children are worked on.\n\
         - 'depends_on' names what must be done first, and nothing else: tasks without a path between them may run \
         at once. There must be no cycle.\n\
         - 'description' has everything an agent needs to know that sees only this task.\n\
         - 'test_commands' has commands that work in this repository and fail until the task is done.\n\
         - 'files' has the paths that a task will change, as far as they can be foreseen.\n",
        SCHEMA.trim_end()
    );
    for (name, content) in specs {
        let content = String::from_utf8_lossy(content);
        let _ = write!(
            prompt,
            "\n--- specification: {name} ---\n{}\n--- end of {name} ---\n",
            content.trim_end()
        );
    }
    prompt
}

/// The prompt that reports problems of the last reply.
fn correction(object: Option<&str>, problems: &[Problem]) -> String {
    let mut prompt = String::new();
    if let Some(object) = object {
        let _ = write!(prompt, "\nYour last reply had this tree:\n\n```json\n{object}\n```\n");
    }
    prompt.push_str(
        "\nYour last reply cannot be used. What is wrong, with line and column ('reply' is the tree):\n\n",
    );
    for problem in problems {
        let _ = writeln!(prompt, "- {problem}");
        if !problem.fix.is_empty() {
            let _ = writeln!(prompt, "  to fix it: {}", problem.fix);
        }
    }
    prompt.push_str("\nReply with the whole corrected tree.\n");
    prompt
}

/// An object with `nodes` counts as a tree. Whether it is valid is checked later.
#[derive(Deserialize)]
struct Tree {
    #[serde(rename = "nodes")]
    _nodes: IgnoredAny,
}

/// The longest tree in `text`. Without a complete one, everything between the first and the last brace, so that the
/// plan reader can say where it is wrong.
fn find_object(text: &str) -> Option<&str> {
    let whole = trees(text).max_by_key(|object| object.len());
    whole.or_else(|| text.get(text.find('{')?..=text.rfind('}')?))
}

/// The trees of a text, from left to right.
fn trees(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = &rest[rest.find('{')?..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Tree>();
            if let Some(Ok(_)) = values.next() {
                let (object, behind) = rest.split_at(values.byte_offset());
                rest = behind;
                return Some(object);
            }
            rest = &rest[1..];
        }
    })
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The agent could not be called, or the user asked to stop.
    #[error(transparent)]
    Call(#[from] PipelineError),
    /// The runner is not an agent program.
    #[error("the runner '{runner}' cannot make a plan")]
    NoPlanner {
        /// Its name.
        runner: String,
    },
    /// The agent failed.
    #[error("'{runner}' did not make a plan: {message}")]
    Failed {
        /// Its name.
        runner: String,
        /// The reason, in its words.
        message: String,
        /// The file of its output.
        log: PathBuf,
    },
    /// The agent gave no valid tree in any of its calls.
    #[error("'{runner}' did not return a valid tree:\n{}", lines(.problems))]
    Wrong {
        /// Its name.
        runner: String,
        /// What is wrong with the last one.
        problems: Vec<Problem>,
        /// The file of its last output.
        log: PathBuf,
    },
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl Explain for PlannerError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Call(error) => error.explain(),
            Self::NoPlanner { .. } => Exit::No.hint("name an agent program with --runner"),
            Self::Failed { log, .. } | Self::Wrong { log, .. } => {
                Exit::No.hint(format!("read its output in {}", log.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_object_of_a_reply_is_found_with_or_without_surrounding_text() {
        let tree = r#"{"nodes": {"T1": {"name": "a } in ``` a text"}}}"#;
        for reply in [
            tree.to_owned(),
            format!("Here it is:\n\n```json\n{tree}\n```\nAnything else?"),
            format!("{{\"plan\": {tree}}}"),
            format!("By your schema {{\"type\": 1}}, with {{braces}}: {tree} and {{}}."),
        ] {
            assert_eq!(find_object(&reply), Some(tree), "{reply}");
        }
    }

    #[test]
    fn a_broken_json_object_is_returned_whole_for_error_reporting() {
        let broken = r#"{"nodes": {"T1": {"id": "T1"} "T2": {"id": "T2", "name": "b"}}}"#;
        assert_eq!(find_object(&format!("so:\n{broken}\n")), Some(broken), "not only one of its nodes");
        assert_eq!(find_object("so: {\"nodes\": [1,}} there"), Some("{\"nodes\": [1,}}"));
        assert_eq!(find_object("I cannot do that"), None);
        assert_eq!(find_object("} {"), None);
        assert_eq!(find_object(""), None);
    }
}
