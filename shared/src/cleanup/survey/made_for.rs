//! Which branches were made for sessions. A record is no proof: anybody can write one, and fetch brings those of strangers.

use std::io::Read;

use super::{branch_of, ours::WE};
use crate::{
    cleanup::CleanupError,
    git::{RefFacts, Repository},
    history::Event,
    message::Status,
    name::{BranchName, SessionId},
    session::{Driver, StoredRecord},
    workspace::RepoSection,
};

/// So much of the beginning of a log is read.
const HEAD: u64 = 4096;
/// So many starts of runs are looked at.
const MOST: usize = 10;

/// Who can tell.
#[derive(Clone, Copy)]
pub(in crate::cleanup) struct Maker<'a> {
    pub(in crate::cleanup) repository: &'a Repository,
    pub(in crate::cleanup) section: &'a RepoSection,
}

impl Maker<'_> {
    /// What the branch of a session would be called, if it is one that a run of ours has.
    pub(super) fn name_for(&self, stored: &StoredRecord) -> Option<String> {
        let (context, session) = (&stored.record.context, &stored.record.session);
        let is_one =
            context.driver == Driver::Run && self.section.is_session_branch(&context.branch, session);
        is_one.then(|| context.branch.to_ref())
    }

    /// Whether a branch here was made for a session: its log begins with us, or the session begins on it.
    pub(super) fn has_made(&self, found: &RefFacts, session: &SessionId) -> Result<bool, CleanupError> {
        let Some(branch) = branch_of(&found.name) else { return Ok(false) };
        Ok(self.begins_log(&found.name)? || self.begins_on(found, &branch, session)?)
    }

    /// Whether the start of the session's run stands on a branch, wherever that is.
    pub(super) fn begins_on(
        &self,
        found: &RefFacts,
        branch: &BranchName,
        session: &SessionId,
    ) -> Result<bool, CleanupError> {
        let Some(tip) = found.commit else { return Ok(false) };
        let starts = self.repository.commits_saying(tip, &format!("task({branch}@@run-start): "), MOST)?;
        let commits = self.repository.load_commits(&starts)?;
        let is_start = |event: Event| {
            event.status() == Status::RunStart
                && event.branch() == branch
                && event.session().as_ref() == Some(session)
        };
        Ok(commits.iter().filter_map(Event::of).any(is_start))
    }

    /// Whether the first that the log of a ref tells is that we wrote it.
    fn begins_log(&self, name: &str) -> Result<bool, CleanupError> {
        let common = &self.repository.common_dir;
        if !self.repository.keeps_loose_refs {
            let log = self.repository.read_reflog(name)?;
            return Ok(log.last().is_some_and(|message| message.starts_with(WE)));
        }
        let Ok(file) = crate::safe_files::open(&common.join("logs").join(name)) else { return Ok(false) };
        let mut head = Vec::new();
        let _ = file.take(HEAD).read_to_end(&mut head);
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().next().and_then(|line| line.split_once('\t'));
        Ok(first.is_some_and(|(_, message)| message.starts_with(WE)))
    }
}
