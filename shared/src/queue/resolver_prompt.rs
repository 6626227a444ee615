//! The agents that resolve conflicts, and their prompt.

use std::{collections::HashMap, fmt::Write};

use super::Ticket;
use crate::{
    agent::{AgentError, RunnerKind, limits::Backoff},
    git::{MergeConflict, Version},
    name::TaskId,
    pipeline::{RunnerTable, StepRunner, backoff, call_limits},
    process::Limits,
};

/// The agents for conflicts.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Whether conflicts are resolved, or only resolutions of others reviewed.
    pub assists: bool,
    /// The agent that resolves.
    pub step_runner: StepRunner,
    /// The agent that reviews the resolution.
    pub reviewer: StepRunner,
    /// Their commands that come from files of the repository, one line each.
    pub foreign: Vec<String>,
    /// Time limits of one call.
    pub limits: Limits,
    /// How long to wait for an overloaded provider.
    pub backoff: Backoff,
}

impl Resolver {
    /// The agents that resolve and review conflicts, and why nothing is resolved, if that is not what the user
    /// configured. There are none if the reviewer cannot be called. With `merge.assist = false`, or if only the
    /// resolver cannot be called, nothing is resolved; but resolutions that are known only from a ticket are still
    /// reviewed, because a ticket is a ref and any process of the user can write it.
    pub fn find(runners: &RunnerTable) -> Result<(Option<Self>, Option<String>), AgentError> {
        let settings = runners.settings();
        let is_wanted = settings.merge.assist;
        let reviewer = runners.reviewers().map(|chain| chain.first().clone());
        let reviewer = match reviewer.map_err(|error| error.to_string()).and_then(require_callable) {
            Ok(reviewer) => reviewer,
            Err(why) => {
                let why = format!(
                    "an agent's resolution must be reviewed, and the reviewer cannot be called: {why} (to choose another one, run: git config arborist.steps.review.runner NAME)"
                );
                return Ok((None, is_wanted.then_some(why)));
            }
        };
        let resolver = is_wanted.then(|| runners.resolver()).transpose()?.map(require_callable);
        let (resolver, why) = match resolver {
            Some(Ok(resolver)) => (Some(resolver), None),
            Some(Err(why)) => (
                None,
                Some(format!(
                    "no agent can resolve it: {why} (to choose another agent, run: git config arborist.steps.resolve.runner NAME)"
                )),
            ),
            None => (None, None),
        };
        let assists = resolver.is_some();
        let step_runner = resolver.unwrap_or_else(|| reviewer.clone());
        let mut foreign = step_runner.lines_from_repository(settings);
        foreign.extend(reviewer.lines_from_repository(settings));
        foreign.dedup();
        let (limits, backoff) = (call_limits(settings), backoff(settings));
        Ok((Some(Self { assists, foreign, step_runner, reviewer, limits, backoff }), why))
    }
}

/// Returns the runner if it can be called for a conflict, or why not.
fn require_callable(step_runner: StepRunner) -> Result<StepRunner, String> {
    if !matches!(step_runner.runner, RunnerKind::Program(_)) {
        return Err(format!("the runner '{}' is not an agent program", step_runner.name));
    }
    step_runner.require_program().map_err(|error| error.to_string())?;
    Ok(step_runner)
}

/// What the resolver is told about a task of the plan.
#[derive(Debug)]
pub struct Brief {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
}

/// The inputs of the prompt for a resolver.
pub(super) struct ConflictPrompt<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) briefs: &'a HashMap<TaskId, Brief>,
    /// The tasks that have landed in the same files meanwhile.
    pub(super) others: Vec<TaskId>,
    pub(super) conflicts: &'a [MergeConflict],
    /// Returns the content of a version, if it is text.
    pub(super) text: &'a dyn Fn(&Version) -> Option<String>,
}

/// How many characters of one version of a file a prompt shows.
const LONGEST_VERSION: usize = 20_000;

impl ConflictPrompt<'_> {
    /// The prompt that asks an agent to resolve the conflicts.
    pub(super) fn prompt(&self) -> String {
        let Ticket { task, into, .. } = self.ticket;
        let mut prompt = format!("Resolve the merge conflict of task {task}: {}\n\n", self.ticket.name);
        self.brief(&mut prompt, task);
        if !self.others.is_empty() {
            let _ = writeln!(prompt, "It conflicts with tasks that landed on {into} meanwhile:");
            for other in &self.others {
                let name = self.briefs.get(other).map_or("", |brief| &brief.name);
                let _ = writeln!(prompt, "\nTask {other}: {name}");
                self.brief(&mut prompt, other);
            }
        }
        prompt.push_str("\nThe merge is in the current directory, with these conflicts:\n");
        for conflict in self.conflicts {
            self.show(&mut prompt, conflict);
        }
        if !self.ticket.tries.is_empty() {
            prompt.push_str("\nEarlier tries failed:\n");
            self.ticket.tries.iter().for_each(|tried| {
                let _ = writeln!(prompt, "- {tried}");
            });
        }
        prompt.push_str(
            "\nEdit the files so that the intent of both sides is kept. Leave no conflict markers.\n",
        );
        prompt.push_str(
            "Delete files that should be gone. Do not commit: your changes are committed for you.\n",
        );
        prompt
    }

    fn brief(&self, prompt: &mut String, task: &TaskId) {
        let description = self.briefs.get(task).map_or("", |brief| brief.description.trim());
        if !description.is_empty() {
            let _ = writeln!(prompt, "Description: {description}\n");
        }
    }

    fn show(&self, prompt: &mut String, conflict: &MergeConflict) {
        let _ = writeln!(
            prompt,
            "\n{} in {}: {}",
            conflict.kind.as_str(),
            conflict.paths.join(", "),
            conflict.message
        );
        let into = self.ticket.into.as_str();
        for (side, version) in [
            ("as both found it".to_owned(), &conflict.base),
            (format!("on {into}"), &conflict.ours),
            ("of the task".to_owned(), &conflict.theirs),
        ] {
            let Some(version) = version else { continue };
            if let Some(text) = (self.text)(version) {
                let cut: String = text.chars().take(LONGEST_VERSION).collect();
                let _ = writeln!(prompt, "--- {} {side} ---\n{}", version.path, cut.trim_end());
            }
        }
    }
}
