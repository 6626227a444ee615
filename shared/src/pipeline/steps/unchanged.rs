//! Decides whether an attempt counts as unchanged, and reads the explanation of an agent that found nothing to do.

use crate::{
    agent::{CallOutcome, redact::Redactor},
    history::{Event, FAILED},
    message::{Status, plain_text},
    pipeline::{
        CallReply, PipelineError, TaskRun, checkout::repo_attempt::RepoAttempt, task::explain_failure,
    },
    plan::TestCommand,
};

/// The heading over the explanation of an agent that found nothing to do.
pub(super) const NOTHING_TO_DO: &str = "Nothing to do:";
/// How the last line of such an agent must begin; the explanation follows.
pub(super) const NOTHING_TO_DO_PREFIX: &str = "NOTHING TO DO:";

/// The explanation of an agent that says that there is nothing to do.
pub(super) fn find_idle_reason(reply: &CallReply) -> Option<String> {
    let CallOutcome::Success { text, .. } = &reply.outcome else { return None };
    let text = plain_text(text);
    let last = text.lines().rfind(|line| !line.trim().is_empty())?;
    let last = last.trim().trim_matches(['*', '_', '`']);
    let reason = last.strip_prefix(NOTHING_TO_DO_PREFIX)?.trim_matches([' ', '*', '_', '`']);
    (!reason.is_empty()).then(|| reason.to_owned())
}

/// The explanation of an agent that there was nothing to do, from the commit of the newest implement step that passed.
pub(super) fn find_recorded_idle_reason(events: &[Event]) -> Option<String> {
    let last = events.iter().rfind(|event| event.status() == Status::ImplementPass)?;
    let sections = last.body().sections;
    sections.into_iter().find(|section| section.heading == NOTHING_TO_DO).map(|section| section.text)
}

impl TaskRun<'_, '_, '_> {
    /// Why an attempt counts as unchanged, if it does: the task has changed nothing at all, or nothing since it was
    /// rejected.
    pub(super) fn find_unchanged_reason(
        &self,
        repos: &[RepoAttempt<'_, '_>],
    ) -> Result<Option<String>, PipelineError> {
        if repos.iter().all(RepoAttempt::adds_nothing) {
            return Ok(Some(format!(
                "the agent changed no file and gave no reason (if there is nothing to do, its reply must end with '{NOTHING_TO_DO_PREFIX} <reason>')"
            )));
        }
        // Rejections are in the history of the plan's repository, the first, so what was changed since is looked up there.
        let [RepoAttempt { checkout, work, .. }, others @ ..] = repos else { return Ok(None) };
        if !others.iter().all(RepoAttempt::is_untouched) {
            return Ok(None);
        }
        // After a reset, the tests and the reviewer decide again, so that a wrong test command can be corrected.
        let events = &self.events;
        let Some(at) = events.iter().rposition(is_rejection) else { return Ok(None) };
        if self.is_of_other_tests(&events[at]) {
            return Ok(None);
        }
        let is_changed = work.commit_tree != self.recorder.repository().tree_of(events[at].commit)?
            && (work.commit_tree != checkout.head_tree || self.has_changes(&events[at + 1..])?);
        let why = explain_failure(&events[at]);
        Ok((!is_changed).then(|| match events[at].status() {
            Status::TestFail => format!("the agent changed nothing after the tests failed ({why})"),
            _ if events[at].lacks_verdict() => {
                "the reviewer gave no verdict, and the agent then changed nothing".to_owned()
            }
            _ => format!("the agent changed nothing after the review rejected it ({why})"),
        }))
    }

    /// Whether it records that test commands failed which are no longer the commands of the task.
    fn is_of_other_tests(&self, event: &Event) -> bool {
        let failed = event.body().sections.into_iter().filter(|section| section.heading == FAILED);
        let failed: Vec<String> = failed.map(|section| section.text).collect();
        let names_command = failed.iter().any(|text| text.starts_with('\''));
        let run = &self.context.run;
        let is_current = |command: &TestCommand| {
            let quoted = plain_text(&format!("'{}'", Redactor::redact(&run.secrets, &command.command)));
            failed.iter().any(|text| text.contains(&quoted))
        };
        let commands = run.options.tests_of(self.task);
        event.status() == Status::TestFail && names_command && !commands.iter().any(is_current)
    }

    /// Whether one of these commits changed a file. Commits of others may lie between the attempts of a task, so trees
    /// of different times cannot be compared.
    fn has_changes(&self, events: &[Event]) -> Result<bool, PipelineError> {
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

/// Whether an event rejects the work. An interrupted review or test says nothing about it. What the pre-commit hook
/// refused is shown to it again, so its own answer counts.
fn is_rejection(event: &Event) -> bool {
    match event.status() {
        _ if event.is_interruption() => false,
        Status::ReviewRejected | Status::TestFail => true,
        _ => false,
    }
}
