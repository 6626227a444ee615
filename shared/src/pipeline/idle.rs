//! Attempts that change nothing. An agent whose every command failed also says that it is done, so a step that adds nothing
//! fails, unless the agent says in so many words that there is nothing to do: then the reviewer decides.

use super::{
    CallReply, PipelineError, TaskRun,
    other_repo::RepoAttempt,
    place::{AttemptCheckout, AttemptWork},
};
use crate::{
    agent::CallOutcome,
    history::Event,
    message::{Status, plain_text},
};

/// The heading over the reason of an agent that found nothing to do.
pub(super) const NOTHING_TO_DO: &str = "Nothing to do:";
/// What such an agent is asked to say in its last line, before the reason.
pub(super) const WORDS: &str = "NOTHING TO DO:";

/// The reason of an agent that says that there is nothing to do.
pub(super) fn reason(reply: &CallReply) -> Option<String> {
    let CallOutcome::Success { text, .. } = &reply.outcome else { return None };
    let text = plain_text(text);
    let last = text.lines().rfind(|line| !line.trim().is_empty())?;
    let last = last.trim().trim_matches(['*', '_', '`']);
    let reason = last.strip_prefix(WORDS)?.trim_matches([' ', '*', '_', '`']);
    (!reason.is_empty()).then(|| reason.to_owned())
}

/// The same as it was written down with the newest passed implement step.
pub(super) fn recorded_reason(events: &[Event]) -> Option<String> {
    let last = events.iter().rfind(|event| event.status() == Status::ImplementPass)?;
    let sections = last.body().sections;
    sections.into_iter().find(|section| section.heading == NOTHING_TO_DO).map(|section| section.text)
}

impl TaskRun<'_, '_, '_> {
    /// Why an attempt has added nothing, if so: the task has changed nothing at all, or nothing since it was last rejected.
    pub(super) fn find_emptiness(
        &self,
        (begun, work): (&AttemptCheckout, &AttemptWork),
        beside: &[(RepoAttempt<'_>, AttemptWork)],
    ) -> Result<Option<String>, PipelineError> {
        if work.tree == self.base.tree && beside.iter().all(|(room, work)| room.adds_nothing(work)) {
            return Ok(Some("the task has not changed any file".into()));
        }
        if beside.iter().any(|(room, work)| !room.is_untouched(work)) {
            return Ok(None);
        }
        let events: Vec<&Event> = self.earlier.iter().chain(&self.events).collect();
        let Some(at) = events.iter().rposition(|event| is_no(event)) else { return Ok(None) };
        let is_changed = work.tree != self.recorder.repository().tree_of(events[at].commit)?
            && (work.tree != begun.tree || self.has_changes(&events[at + 1..])?);
        Ok((!is_changed).then(|| {
            let what = if events[at].status() == Status::TestFail {
                "the tests failed"
            } else {
                "the review rejected it"
            };
            format!("no file has changed since {what}")
        }))
    }

    /// Whether one of these commits changed a file. Between the attempts of a task there may be commits of others, so trees
    /// of different times cannot be compared.
    fn has_changes(&self, events: &[&Event]) -> Result<bool, PipelineError> {
        let repository = self.recorder.repository();
        for event in events {
            let commit = repository.load_commits(&[event.commit])?;
            let Some(parent) = commit.first().and_then(|commit| commit.parents().next()) else { continue };
            if repository.tree_of(event.commit)? != repository.tree_of(parent)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an event says no to the work. A review or an attempt that was interrupted says nothing.
fn is_no(event: &Event) -> bool {
    matches!(event.status(), Status::ReviewRejected | Status::TestFail) && !event.is_interruption()
}
