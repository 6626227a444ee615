//! The interface through which a run reports what happens, to a person, a program or a test.

use std::path::Path;

use crate::{
    event::{EventKind, NoteLevel, RunEvent},
    git::shown_url,
    message::visible,
    name::{BranchName, Oid},
    workspace::{RepoSection, SyncOutcome},
};

/// Receives the events of a run.
pub trait RunListener {
    /// Called for each event.
    fn report(&mut self, event: RunEvent);
}

impl dyn RunListener + '_ {
    fn report_for_run(&mut self, kind: EventKind) {
        self.report(RunEvent::of_run(kind));
    }

    fn say(&mut self, level: NoteLevel, words: &str) {
        self.report_for_run(EventKind::message(level, words));
    }

    /// Reports something that failed although the run continues.
    pub(super) fn warn_of_failure(&mut self, words: &str) {
        self.report_for_run(EventKind::failure(words));
    }

    /// Reports a warning about something that has not failed. `--quiet` leaves it out.
    pub(super) fn warn(&mut self, words: &str) {
        self.say(NoteLevel::Warning, words);
    }

    /// Reports a hint.
    pub(super) fn hint(&mut self, words: &str) {
        self.say(NoteLevel::Hint, words);
    }

    /// Reports a hint about a remote that failed, only once even if several remotes cause it.
    pub(super) fn hint_once(&mut self, hint: Option<&'static str>) {
        if let Some(words) = hint {
            let (level, words) = (NoteLevel::Hint, words.to_owned());
            self.report_for_run(EventKind::Note {
                level,
                words,
                once: true,
                is_failure: true,
                is_of_step: false,
            });
        }
    }

    /// Reports a note.
    pub(super) fn remark(&mut self, words: &str) {
        self.say(NoteLevel::Note, words);
    }

    /// Reports that a repository of the workspace was cloned or fetched, or could not be reached.
    pub(super) fn report_sync(&mut self, section: &RepoSection, outcome: &SyncOutcome, base: Option<Oid>) {
        let repo = section.name.clone();
        match outcome {
            SyncOutcome::Local => {}
            SyncOutcome::Offline { why, trouble } => {
                let at = base.map(|base| base.short()).unwrap_or_default();
                self.warn_of_failure(&visible(&format!(
                    "offline: the remote of '{repo}' could not be reached ({why}); starting at {at}, which may be behind"
                )));
                self.hint_once(trouble.hint());
            }
            SyncOutcome::Cloned { remote } => {
                self.report_for_run(EventKind::Cloned { repo, remote: shown_url(remote) });
            }
            SyncOutcome::Fetched { remote } => {
                self.report_for_run(EventKind::Fetched { repo, remote: shown_url(remote) });
            }
        }
    }

    /// Reports that the session's branch was created in a repository.
    pub(super) fn report_branch(&mut self, section: &RepoSection, branch: &BranchName, base: Oid) {
        let (repo, branch) = (section.name.clone(), branch.clone());
        self.report_for_run(EventKind::BranchCreated { repo, branch, base });
    }

    /// Reports that the session's worktree was created in a repository.
    pub(super) fn report_worktree(&mut self, section: &RepoSection, path: &Path, branch: &BranchName) {
        let (repo, path, branch) = (Some(section.name.clone()), path.to_owned(), branch.clone());
        self.report_for_run(EventKind::WorktreeCreated { repo, path, branch, recycled: false });
    }
}
