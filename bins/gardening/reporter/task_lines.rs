//! The lines of a run without `--verbose`: one for each finished task, and one for each failed attempt.

use std::{collections::BTreeMap, time::Instant};

use arborist_core::{
    event::{EventKind, ReasonKind, RunEvent, StepReason},
    message::{Status, one_line},
    name::TaskId,
    progress::RunTotals,
};

use super::words;
use crate::{
    clock,
    ui::{TextStyle, Tone},
};

/// The tasks that are running, as far as their lines need it.
#[derive(Debug, Default)]
pub(super) struct TaskLines {
    running: BTreeMap<TaskId, RunningTask>,
    /// The last note about each task.
    noted: BTreeMap<TaskId, String>,
}

#[derive(Debug)]
struct RunningTask {
    name: String,
    since: Instant,
    attempt: u32,
    spent: RunTotals,
}

impl TaskLines {
    /// The line for an event; `None` for an event that needs none.
    pub(super) fn line(&mut self, style: TextStyle, event: &RunEvent) -> Option<String> {
        match (&event.kind, &event.task) {
            (EventKind::StepBegins { name, attempt, .. }, Some(task)) => {
                let running = self.running.entry(task.clone()).or_insert_with(|| RunningTask {
                    name: one_line(name),
                    since: Instant::now(),
                    attempt: 0,
                    spent: RunTotals::default(),
                });
                running.attempt = attempt.ordinal();
                None
            }
            (EventKind::Recorded { status, why, spent, .. }, Some(task)) => {
                if let Some(running) = self.running.get_mut(task) {
                    running.spent = running.spent.plus(spent.totals);
                }
                match status {
                    Status::Complete | Status::Failed => self.end(style, task, *status),
                    _ => why.as_ref().map(|why| self.failed_attempt(style, task, *status, why)),
                }
            }
            (EventKind::Recorded { .. } | EventKind::TurnCommitted { .. } | EventKind::Pushed { .. }, _) => {
                None
            }
            (EventKind::Note { words, .. }, Some(task)) => {
                self.noted.insert(task.clone(), one_line(words.trim()));
                words::line(style, event)
            }
            _ => words::line(style, event),
        }
    }

    fn end(&mut self, style: TextStyle, task: &TaskId, status: Status) -> Option<String> {
        let running = self.running.remove(task)?;
        let tone = if status == Status::Complete { Tone::Good } else { Tone::Bad };
        let mut facts =
            vec![clock::duration(running.since.elapsed().as_secs().try_into().unwrap_or(i64::MAX))];
        if running.attempt > 1 {
            facts.push(format!("{} attempts", running.attempt));
        }
        facts.extend(running.spent.cost.map(|cost| format!("${cost:.2}")));
        Some(format!(
            "{} {} \"{}\" ({})",
            style.paint(Tone::Strong, task.as_str()),
            style.paint(tone, status.as_str()),
            running.name,
            facts.join(", ")
        ))
    }

    fn failed_attempt(&self, style: TextStyle, task: &TaskId, status: Status, reason: &StepReason) -> String {
        let attempt = self.running.get(task).map_or(1, |running| running.attempt);
        let shown = style.paint(Tone::Strong, task.as_str());
        let why = one_line(&reason.words);
        if reason.kind == ReasonKind::Interrupted {
            return format!("{shown} attempt {attempt} was interrupted and does not count: {why}");
        }
        if status == Status::ImplementPass {
            return format!("{shown} attempt {attempt}: {why}; the files are tested as they are");
        }
        // A note has said this already.
        let noted = self.noted.get(task).and_then(|noted| why.strip_suffix(noted)?.strip_suffix("; "));
        let why = words::without_status(status, noted.unwrap_or(&why));
        let what = match status {
            // The reason says which program failed.
            Status::ImplementFail | Status::TestFail => {
                let why = with_subject(status, why);
                return format!("{shown} attempt {attempt}: {why}");
            }
            // The reason says so itself.
            Status::ReviewRejected if reason.kind == ReasonKind::NoVerdict => {
                return format!("{shown} attempt {attempt}: {why}");
            }
            Status::ReviewRejected => "review rejected",
            _ => status.as_str(),
        };
        let what = style.paint(Tone::Bad, what);
        format!("{shown} attempt {attempt}: {what}: {why}")
    }
}

/// The reason of a failed step with a subject instead of the "it" that stands for its program.
fn with_subject(status: Status, why: &str) -> String {
    let subject = if status == Status::TestFail { "the test command" } else { "the agent" };
    why.strip_prefix("it ").map_or_else(|| why.to_owned(), |rest| format!("{subject} {rest}"))
}
