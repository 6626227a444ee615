//! Pushing: exactly the branches and records of sessions, by fast-forward only.

use super::{RepoSection, Workspace, WorkspaceError, tracking};
use crate::{
    git::{GitError, Push, Pushed, Ref, Repository},
    name::{BranchName, Oid, SessionId, TASK_REFS},
    settings::Settings,
};

const SESSIONS: &str = "refs/arborist/sessions/";
const TRANSCRIPTS: &str = "refs/arborist/transcripts/";

/// What of a repository is to be pushed.
#[derive(Debug, Clone)]
pub struct PushSet {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// Whether the agents' words go with them.
    pub transcripts: Transcripts,
}

/// Whether the words of agents leave this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transcripts {
    /// They do.
    Pushed,
    /// They do not.
    Kept,
}

/// What a push came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushResult {
    /// The remote.
    pub remote: String,
    /// What the remote has now and had not before.
    pub pushed: Vec<Push>,
    /// What it refused, and why.
    pub refused: Vec<Pushed>,
}

/// What pushing never takes along: the work on the branch that is checked out, if it is no session's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remainder {
    /// The branch.
    pub branch: Option<BranchName>,
    /// How many of its commits the remote has not, as far as we have heard.
    pub commits: u64,
    /// Whether there are branches of sessions that pushing does take along.
    pub has_session: bool,
}

impl Remainder {
    /// `19 commits of 'main' are not at origin`, if there are any.
    #[must_use]
    pub fn words(&self, remote: &str) -> Option<String> {
        let name = self.branch.as_ref().map_or_else(|| "HEAD".to_owned(), ToString::to_string);
        match self.commits {
            0 => None,
            1 => Some(format!("1 commit of '{name}' is not at {remote}")),
            count => Some(format!("{count} commits of '{name}' are not at {remote}")),
        }
    }
}

impl Transcripts {
    /// As they are configured.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        if settings.text("session.transcripts") == Some("push") { Self::Pushed } else { Self::Kept }
    }
}

impl PushSet {
    /// The refs of a repository that belong to it: session branches, task branches of their runs, and records.
    pub fn refs(&self, repository: &Repository, section: &RepoSection) -> Result<Vec<Push>, WorkspaceError> {
        let found = repository.list_refs(&["refs/heads", SESSIONS, TRANSCRIPTS])?;
        let mut heads: Vec<BranchName> = found
            .iter()
            .filter_map(|found| found.name.strip_prefix("refs/heads/")?.parse().ok())
            .filter(|branch| self.sessions.iter().any(|session| section.is_session_branch(branch, session)))
            .collect();
        // Where a run is at work, the branches that it owns are all that it has. Others were made by something else.
        let is_owned = |branch: &BranchName| repository.find_owned(&branch.to_ref()).is_some();
        if heads.iter().any(is_owned) {
            heads.retain(is_owned);
        }
        let is_ours = |name: &str| {
            heads.iter().any(|branch| name == branch.to_ref() || name.starts_with(&branch.task_refs()))
                || self.is_record(name)
        };
        let ours = found.into_iter().filter(|found| is_ours(&found.name));
        // What a child process made of a ref that the run owns is not pushed, also before it is put back.
        let known = |found: Ref| {
            let target = repository.find_owned(&found.name).unwrap_or(Some(found.target))?;
            Some(Push { name: found.name, target })
        };
        Ok(ours.filter_map(known).collect())
    }

    fn is_record(&self, name: &str) -> bool {
        let of = |prefix: &str| {
            let session = name.strip_prefix(prefix);
            session.is_some_and(|session| self.sessions.iter().any(|own| own.as_str() == session))
        };
        of(SESSIONS) || (self.transcripts == Transcripts::Pushed && of(TRANSCRIPTS))
    }
}

/// Whether a task was begun anew on a branch that the remote has as it was: nothing is pushed over that. What the task
/// does is in the session's records, and in its branch once it has landed.
fn is_anew(repository: &Repository, push: &Push, old: Option<Oid>) -> Result<bool, GitError> {
    match old {
        Some(old) if push.name.starts_with(TASK_REFS) => Ok(!repository.is_ancestor(old, push.target)?),
        _ => Ok(false),
    }
}

impl Workspace {
    /// The sessions that the repository with the plan has records of, the newest first.
    pub fn sessions(&self, main: &Repository) -> Result<Vec<SessionId>, WorkspaceError> {
        let command =
            main.git("for-each-ref").args(["--sort=-committerdate", "--format=%(refname)", SESSIONS]);
        let printed = command.stdout()?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.lines().filter_map(|name| name.strip_prefix(SESSIONS)?.parse().ok()).collect())
    }

    /// What of `cargo` the remote has not, as far as we have heard, and how many commits that is on branches. Nobody is
    /// asked.
    pub fn unpushed(
        &self,
        repository: &Repository,
        section: &RepoSection,
        cargo: &PushSet,
    ) -> Result<(Vec<Push>, u64), WorkspaceError> {
        let there = tracking::list(repository, section)?;
        let mut missing = Vec::new();
        for push in cargo.refs(repository, section)? {
            let old = there.iter().find(|found| found.name == push.name).map(|found| found.target);
            if old != Some(push.target) && !is_anew(repository, &push, old)? {
                missing.push(push);
            }
        }
        let tips = missing.iter().filter(|push| push.name.starts_with("refs/heads/")).map(|push| push.target);
        let count = tracking::count_unknown(repository, section, &tips.collect::<Vec<_>>())?;
        Ok((missing, count))
    }

    /// What of the checked out branch the remote has not and a push of `cargo` does not bring there. Nobody is asked.
    pub fn remainder(
        &self,
        repository: &Repository,
        section: &RepoSection,
        cargo: &PushSet,
    ) -> Result<Remainder, WorkspaceError> {
        let refs = cargo.refs(repository, section)?;
        let branch = repository.head.branch.clone();
        let name = branch.as_ref().map(BranchName::to_ref);
        let is_ours = refs.iter().any(|push| Some(&push.name) == name.as_ref());
        let tip = match &branch {
            _ if is_ours => None,
            // The branch may have moved since the repository was opened.
            Some(branch) => repository.find_branch(branch)?,
            None => repository.head.commit,
        };
        let commits = tracking::count_unknown(repository, section, tip.as_slice())?;
        let has_session = refs.iter().any(|push| push.name.starts_with("refs/heads/"));
        Ok(Remainder { branch, commits, has_session })
    }

    /// Asks the remote whether it is there.
    pub fn hail(&self, repository: &Repository, remote: &str) -> Result<(), WorkspaceError> {
        repository.list_remote_refs((remote, &["HEAD"]), &self.network)?;
        Ok(())
    }

    /// Pushes what of `cargo` the remote has not.
    pub fn deliver(
        &self,
        repository: &Repository,
        section: &RepoSection,
        cargo: &PushSet,
    ) -> Result<PushResult, WorkspaceError> {
        let remote = self.remote_of(repository, section)?;
        let remote = remote.ok_or_else(|| WorkspaceError::NowhereToPush { name: section.name.clone() })?;
        let (missing, _) = self.unpushed(repository, section, cargo)?;
        if missing.is_empty() {
            return Ok(PushResult { remote, ..PushResult::default() });
        }
        let rows = repository.push_refs((&remote, &missing), &self.network)?;
        let (refused, taken): (Vec<Pushed>, Vec<Pushed>) =
            rows.into_iter().partition(|row| row.refused.is_some());
        let is_taken = |push: &Push| taken.iter().any(|row| row.name == push.name);
        let pushed: Vec<Push> = missing.into_iter().filter(is_taken).collect();
        tracking::remember(repository, section, &pushed)?;
        Ok(PushResult { remote, pushed, refused })
    }
}
