//! Which branches were created for sessions. A record is no proof: any process can write one, and a fetch brings those
//! of other users.

use std::io::Read;

use super::{branch_of, task_branch_proof::OUR_PREFIX};
use crate::{
    cleanup::CleanupError,
    git::{RefFacts, Repository},
    history::Event,
    message::Status,
    name::{BranchName, SessionId},
};

/// How many bytes of the start of a reflog are read.
const HEAD: u64 = 4096;
/// How many starts of runs are examined.
const MOST: usize = 10;

/// Tells which branches were created for sessions.
#[derive(Clone, Copy)]
pub(in crate::cleanup) struct SessionBranchProof<'a> {
    pub(in crate::cleanup) repository: &'a Repository,
}

impl SessionBranchProof<'_> {
    /// Whether a local branch was created for a session: its reflog starts with our entry, or the session starts on it.
    pub(super) fn has_made(&self, found: &RefFacts, session: &SessionId) -> Result<bool, CleanupError> {
        let Some(branch) = branch_of(&found.name) else { return Ok(false) };
        Ok(self.begins_log(&found.name)? || self.begins_on(found, &branch, session)?)
    }

    /// Whether a branch, local or not, has the start of the session's run.
    pub(super) fn begins_on(
        &self,
        found: &RefFacts,
        branch: &BranchName,
        session: &SessionId,
    ) -> Result<bool, CleanupError> {
        let Some(tip) = found.commit else { return Ok(false) };
        let starts =
            self.repository.find_commits_by_message(tip, &format!("task({branch}@@run-start): "), MOST)?;
        let commits = self.repository.load_commits(&starts)?;
        let is_start = |event: Event| {
            event.status() == Status::RunStart
                && event.branch() == branch
                && event.session().as_ref() == Some(session)
        };
        Ok(commits.iter().filter_map(Event::of).any(is_start))
    }

    /// Whether the first entry of a ref's reflog is ours.
    fn begins_log(&self, name: &str) -> Result<bool, CleanupError> {
        let common = &self.repository.common_dir;
        if !self.repository.has_files_backend {
            let log = self.repository.read_reflog(name)?;
            return Ok(log.last().is_some_and(|message| message.starts_with(OUR_PREFIX)));
        }
        let Ok(file) = crate::safe_files::open(&common.join("logs").join(name)) else { return Ok(false) };
        let mut head = Vec::new();
        let _ = file.take(HEAD).read_to_end(&mut head);
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().next().and_then(|line| line.split_once('\t'));
        Ok(first.is_some_and(|(_, message)| message.starts_with(OUR_PREFIX)))
    }
}
