//! Who is told what happens in a run: a person, a program, or a test.

use std::path::Path;

use crate::{
    event::{EventKind, NoteLevel, RunEvent},
    git::shown_url,
    message::visible,
    name::{BranchName, Oid},
    workspace::{RepoSection, Supply},
};

/// Hears what happens while a run is opened, works and ends.
pub trait RunListener {
    /// Something has happened.
    fn tell(&mut self, event: RunEvent);
}

impl dyn RunListener + '_ {
    fn tell_of_run(&mut self, kind: EventKind) {
        self.tell(RunEvent::of_run(kind));
    }

    fn say(&mut self, level: NoteLevel, words: &str) {
        self.tell_of_run(EventKind::Note { level, words: words.to_owned(), once: false });
    }

    /// Something may be wrong.
    pub(super) fn warn(&mut self, words: &str) {
        self.say(NoteLevel::Warning, words);
    }

    /// What to try.
    pub(super) fn hint(&mut self, words: &str) {
        self.say(NoteLevel::Hint, words);
    }

    /// What to try about a remote: several may need the same.
    pub(super) fn hint_once(&mut self, hint: Option<&'static str>) {
        let hint =
            hint.map(|words| EventKind::Note { level: NoteLevel::Hint, words: words.to_owned(), once: true });
        hint.into_iter().for_each(|hint| self.tell_of_run(hint));
    }

    /// What is good to know.
    pub(super) fn remark(&mut self, words: &str) {
        self.say(NoteLevel::Note, words);
    }

    /// A repository of the workspace was cloned, fetched, or could not be.
    pub(super) fn tell_supply(&mut self, section: &RepoSection, supply: &Supply, base: Option<Oid>) {
        let repo = section.name.clone();
        match supply {
            Supply::Local => {}
            Supply::Offline { why, trouble } => {
                let at = base.map(|base| base.short()).unwrap_or_default();
                self.warn(&visible(&format!(
                    "offline: the remote of '{repo}' could not be reached ({why}); it begins at {at}, which may be behind"
                )));
                self.hint_once(trouble.hint());
            }
            Supply::Cloned { remote } => {
                self.tell_of_run(EventKind::Cloned { repo, remote: shown_url(remote) });
            }
            Supply::Fetched { remote } => {
                self.tell_of_run(EventKind::Fetched { repo, remote: shown_url(remote) });
            }
        }
    }

    /// A session has a branch in a repository.
    pub(super) fn tell_branch(&mut self, section: &RepoSection, branch: &BranchName, base: Oid) {
        let (repo, branch) = (section.name.clone(), branch.clone());
        self.tell_of_run(EventKind::BranchCreated { repo, branch, base });
    }

    /// A session has a worktree in a repository.
    pub(super) fn tell_worktree(&mut self, section: &RepoSection, path: &Path, branch: &BranchName) {
        let (repo, path, branch) = (Some(section.name.clone()), path.to_owned(), branch.clone());
        self.tell_of_run(EventKind::WorktreeCreated { repo, path, branch, recycled: false });
    }
}
