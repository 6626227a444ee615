//! Who resolves conflicts, and what they are told.

use std::{collections::HashMap, fmt::Write};

use super::Ticket;
use crate::{
    agent::limits::Backoff,
    git::{MergeConflict, Version},
    name::TaskId,
    pipeline::StepRunner,
    process::Limits,
};

/// An agent for conflicts.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Whether it resolves conflicts, or only reviews resolutions of others.
    pub assists: bool,
    /// Who.
    pub step_runner: StepRunner,
    /// Who decides on what it made.
    pub reviewer: StepRunner,
    /// What a repository brought along of it, a line each.
    pub foreign: Vec<String>,
    /// How long one call may take and be silent.
    pub limits: Limits,
    /// How long its provider is waited for.
    pub backoff: Backoff,
}

/// What the plan says of tasks: name and description.
pub type Briefs = HashMap<TaskId, (String, String)>;

/// What a prompt is made from.
pub(super) struct Case<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) briefs: &'a Briefs,
    /// The tasks that landed in the same files meanwhile.
    pub(super) others: Vec<TaskId>,
    pub(super) conflicts: &'a [MergeConflict],
    /// The text of a version, if it is text.
    pub(super) text: &'a dyn Fn(&Version) -> Option<String>,
}

/// How much of one version of a file a prompt shows.
const LONGEST: usize = 20_000;

impl Case<'_> {
    /// Asks for files in which both sides are kept.
    pub(super) fn prompt(&self) -> String {
        let Ticket { task, into, .. } = self.ticket;
        let mut prompt = format!("Resolve the merge conflict of task {task}: {}\n\n", self.ticket.name);
        self.brief(&mut prompt, task);
        if !self.others.is_empty() {
            let _ = writeln!(prompt, "It meets what has landed on {into} meanwhile:");
            for other in &self.others {
                let name = self.briefs.get(other).map_or("", |(name, _)| name);
                let _ = writeln!(prompt, "\nTask {other}: {name}");
                self.brief(&mut prompt, other);
            }
        }
        prompt.push_str("\nThe merge stands in the current directory, with these conflicts:\n");
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
            "\nEdit the files so that the intent of both sides is kept. Leave no marks of conflict.\n",
        );
        prompt.push_str(
            "Delete files that should be gone. Do not commit: what you leave in the directory is taken.\n",
        );
        prompt
    }

    fn brief(&self, prompt: &mut String, task: &TaskId) {
        let description = self.briefs.get(task).map_or("", |(_, description)| description.trim());
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
                let cut: String = text.chars().take(LONGEST).collect();
                let _ = writeln!(prompt, "--- {} {side} ---\n{}", version.path, cut.trim_end());
            }
        }
    }
}
