//! Selects and pushes the refs of sessions: exactly their branches and records, and only by fast-forward.

use super::{RepoSection, Workspace, WorkspaceError, tracking};
use crate::{
    git::{GitError, Push, Pushed, Ref, Repository},
    name::{BranchName, Oid, SessionId, TASK_REFS},
    process::shell_word,
    settings::TranscriptMode,
};

const SESSIONS: &str = "refs/arborist/sessions/";
const TRANSCRIPTS: &str = "refs/arborist/transcripts/";

/// What to do about a ref that a remote accepted and does not have.
const SEE_HOOKS: &str = "; see its hooks there, such as post-receive";

/// Selects what is pushed from a repository.
#[derive(Debug, Clone)]
pub struct PushSet {
    /// The sessions whose branches and records are pushed.
    pub sessions: Vec<SessionId>,
    /// Whether their transcripts are pushed as well.
    pub transcripts: TranscriptMode,
}

/// The result of a push that reached the remote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushResult {
    /// The name of the remote, or its URL.
    pub remote: String,
    /// The refs that the remote accepted.
    pub pushed: Vec<Push>,
    /// The refs that it refused, with its reasons.
    pub refused: Vec<Pushed>,
}

/// Work that is never pushed: commits of the checked out branch, if it is not a session branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpushedCheckout {
    /// The branch; `None` if HEAD is detached.
    pub branch: Option<BranchName>,
    /// How many of its commits are not at the remote, according to our tracking refs.
    pub commits: u64,
    /// Whether there are session branches, which are pushed.
    pub has_session: bool,
}

impl UnpushedCheckout {
    /// Describes the commits, as in `19 commits of 'main' are not at origin`. `None` if there are none.
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

impl PushSet {
    /// Lists the refs to push: session branches, task branches of their runs, and records.
    pub fn refs(&self, repository: &Repository, section: &RepoSection) -> Result<Vec<Push>, WorkspaceError> {
        let found = repository.list_refs(&["refs/heads", SESSIONS, TRANSCRIPTS])?;
        let mut heads: Vec<BranchName> = found
            .iter()
            .filter_map(|found| BranchName::of_ref(&found.name))
            .filter(|branch| self.sessions.iter().any(|session| section.is_session_branch(branch, session)))
            .collect();
        // If this process runs a session here, it knows that session's branches. Other branches of the same form were
        // created by something else, for example by an agent.
        let is_of_run = |branch: &BranchName| repository.find_recorded_ref(&branch.to_ref()).is_some();
        if heads.iter().any(is_of_run) {
            heads.retain(is_of_run);
        }
        let is_ours = |name: &str| {
            heads.iter().any(|branch| name == branch.to_ref() || name.starts_with(&branch.task_refs()))
                || self.is_record(name)
        };
        let ours = found.into_iter().filter(|found| is_ours(&found.name));
        // A child process may have moved a ref that the run owns. Push the value that the run gave it, even before the
        // ref is restored or folded.
        let known = |found: Ref| {
            let target = repository.find_recorded_ref(&found.name).unwrap_or(Some(found.target))?;
            Some(Push { name: found.name, target })
        };
        Ok(ours.filter_map(known).collect())
    }

    fn is_record(&self, name: &str) -> bool {
        let of = |prefix: &str| {
            let session = name.strip_prefix(prefix);
            session.is_some_and(|session| self.sessions.iter().any(|own| own.as_str() == session))
        };
        of(SESSIONS) || (self.transcripts == TranscriptMode::Pushed && of(TRANSCRIPTS))
    }
}

/// Whether the remote has everything of a ref: the same commit, or a newer one that another clone has pushed.
fn has_all(repository: &Repository, push: &Push, old: Option<Oid>) -> Result<bool, GitError> {
    match old {
        Some(old) => Ok(old == push.target || repository.is_ancestor(push.target, old)?),
        None => Ok(false),
    }
}

/// Whether a task branch was restarted, so that the remote has an old version that is not an ancestor. Nothing is
/// pushed over that: the task's work is in the session's records, and in its branch once it has landed.
fn is_restarted_task(repository: &Repository, push: &Push, old: Option<Oid>) -> Result<bool, GitError> {
    match old {
        Some(old) if push.name.starts_with(TASK_REFS) => Ok(!repository.is_ancestor(old, push.target)?),
        _ => Ok(false),
    }
}

impl Workspace {
    /// Lists the sessions with records in the plan's repository, newest first.
    pub fn sessions(&self, main: &Repository) -> Result<Vec<SessionId>, WorkspaceError> {
        let command =
            main.git("for-each-ref").args(["--sort=-committerdate", "--format=%(refname)", SESSIONS]);
        let printed = command.stdout()?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.lines().filter_map(|name| name.strip_prefix(SESSIONS)?.parse().ok()).collect())
    }

    /// Lists the refs of `wanted` that are not at the remote, and counts the commits of the branches among them. Uses
    /// our tracking refs; the remote is not contacted.
    pub fn unpushed(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &PushSet,
    ) -> Result<(Vec<Push>, u64), WorkspaceError> {
        let tracked = tracking::list(repository, section)?;
        let mut missing = Vec::new();
        for push in wanted.refs(repository, section)? {
            let old = tracked.iter().find(|found| found.name == push.name).map(|found| found.target);
            if !has_all(repository, &push, old)? && !is_restarted_task(repository, &push, old)? {
                missing.push(push);
            }
        }
        let tips = missing.iter().filter(|push| push.name.starts_with("refs/heads/")).map(|push| push.target);
        let count = tracking::count_unpushed(repository, section, &tips.collect::<Vec<_>>())?;
        Ok((missing, count))
    }

    /// Counts the commits of the checked out branch that are not at the remote and that a push of `wanted` would not
    /// bring there. Uses our tracking refs; the remote is not contacted.
    pub fn unpushed_checkout(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &PushSet,
    ) -> Result<UnpushedCheckout, WorkspaceError> {
        let refs = wanted.refs(repository, section)?;
        let branch = repository.head.branch.clone();
        let name = branch.as_ref().map(BranchName::to_ref);
        let is_ours = refs.iter().any(|push| Some(&push.name) == name.as_ref());
        let tip = match &branch {
            _ if is_ours => None,
            // The branch may have moved since the repository was opened.
            Some(branch) => repository.find_branch(branch)?,
            None => repository.head.commit,
        };
        let commits = tracking::count_unpushed(repository, section, tip.as_slice())?;
        let has_session = refs.iter().any(|push| push.name.starts_with("refs/heads/"));
        Ok(UnpushedCheckout { branch, commits, has_session })
    }

    /// Checks that the remote can be reached.
    pub fn check_reachable(&self, repository: &Repository, remote: &str) -> Result<(), WorkspaceError> {
        repository.list_remote_refs(remote, &["HEAD"], &self.network)?;
        Ok(())
    }

    /// Pushes the refs of `wanted` that are not at the remote.
    pub fn push_missing(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &PushSet,
    ) -> Result<PushResult, WorkspaceError> {
        let remote = self.remote_of(repository, section)?;
        let Some(remote) = remote else { return Err(Self::no_push_remote(repository, section)?) };
        let (missing, _) = self.unpushed(repository, section, wanted)?;
        if missing.is_empty() {
            return Ok(PushResult { remote, ..PushResult::default() });
        }
        let mut rows = repository.push_refs(&remote, &missing, &self.network)?;
        self.read_back(repository, &remote, &missing, &mut rows)?;
        let (refused, taken): (Vec<Pushed>, Vec<Pushed>) =
            rows.into_iter().partition(|row| row.refused.is_some());
        let is_taken = |push: &Push| taken.iter().any(|row| row.name == push.name);
        let pushed: Vec<Push> = missing.into_iter().filter(is_taken).collect();
        tracking::remember(repository, section, &pushed)?;
        Ok(PushResult { remote, pushed, refused })
    }

    /// The error for a repository that has no remote in its settings. It names a remote that git knows.
    pub fn no_push_remote(
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<WorkspaceError, WorkspaceError> {
        let mut remotes = repository.list_remotes()?;
        remotes.sort_by_key(|remote| remote != "origin");
        let remote = remotes.into_iter().next();
        let place = match section.is_main {
            true => String::new(),
            false => format!("-C {} ", shell_word(&section.path.to_string_lossy())),
        };
        let pushed = |(remote, branch): (&String, &BranchName)| {
            format!("{place}push {} {}", shell_word(remote), shell_word(branch.as_str()))
        };
        let push = remote.as_ref().zip(repository.head.branch.as_ref()).map(pushed);
        let (name, is_configured) = (section.name.clone(), section.is_configured);
        Ok(WorkspaceError::NowhereToPush { name, is_configured, remote, push })
    }

    /// Asks the remote for the refs that it accepted, and marks those as refused that it does not have: a hook there may
    /// have removed or replaced them after the push.
    fn read_back(
        &self,
        repository: &Repository,
        remote: &str,
        pushes: &[Push],
        rows: &mut [Pushed],
    ) -> Result<(), WorkspaceError> {
        let taken: Vec<&mut Pushed> = rows.iter_mut().filter(|row| row.refused.is_none()).collect();
        if taken.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = taken.iter().map(|row| row.name.as_str()).collect();
        let there = repository.list_remote_refs(remote, &names, &self.network)?;
        for row in taken {
            let Some(push) = pushes.iter().find(|push| push.name == row.name) else { continue };
            let found = there.iter().find(|(name, _)| *name == row.name).map(|(_, target)| *target);
            row.refused = match found {
                Some(found) if found == push.target => None,
                Some(found) => Some(format!("it is at {} there after the push{SEE_HOOKS}", found.short())),
                None => Some(format!("it is not there after the push{SEE_HOOKS}")),
            };
        }
        Ok(())
    }
}
