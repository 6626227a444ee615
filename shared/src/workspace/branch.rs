//! Names of session branches, and which session a run continues.

use super::{RepoSection, WorkspaceError};
use crate::{
    git::{RawCommit, Repository},
    message::PlanRef,
    name::{BranchName, Oid, PipelineName, SessionId, TASK_REFS},
    session::{DamagedRecord, Driver, Record, RecordKind, SessionReader, StoredRecord},
};

/// Selects sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFilter<'a> {
    /// All of them.
    Any,
    /// Sessions of the plan at this path.
    Plan(&'a str),
    /// Sessions without a plan.
    Unplanned,
}

/// A session whose newest record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSession {
    /// The session.
    pub session: SessionId,
    /// The session's branch.
    pub branch: BranchName,
    /// The commit of the branch.
    pub tip: Oid,
}

impl SessionFilter<'_> {
    fn matches(self, record: &Record) -> bool {
        let plan = record.context.plan.as_deref().and_then(PlanRef::parse);
        match self {
            Self::Any => true,
            Self::Plan(path) => plan.is_some_and(|plan| plan.path == path),
            Self::Unplanned => plan.is_none(),
        }
    }
}

impl RepoSection {
    /// The name of a session's branch in this repository.
    pub fn session_branch(
        &self,
        pipeline: &PipelineName,
        session: &SessionId,
    ) -> Result<BranchName, WorkspaceError> {
        let named = format!("{}{pipeline}/{session}", self.prefix).parse();
        named.map_err(|source| WorkspaceError::NoSessionBranch { name: self.name.clone(), source })
    }

    /// Whether the branch has the form of this session's branch: prefix, pipeline, session.
    #[must_use]
    pub fn is_session_branch(&self, branch: &BranchName, session: &SessionId) -> bool {
        let rest = branch.as_str().strip_prefix(&self.prefix).and_then(|rest| rest.rsplit_once('/'));
        let is_task = branch.to_ref().starts_with(TASK_REFS);
        !is_task && rest.is_some_and(|(_, last)| last == session.as_str())
    }

    /// The name that a session's branch has in this repository, if it is `branch` in the repository of `main`.
    #[must_use]
    pub fn branch_of_session_in(
        &self,
        main: &RepoSection,
        branch: &BranchName,
        session: &SessionId,
    ) -> Option<BranchName> {
        if !main.is_session_branch(branch, session) {
            return None;
        }
        let rest = branch.as_str().strip_prefix(&main.prefix)?;
        format!("{}{rest}", self.prefix).parse().ok()
    }

    /// Finds the branch of a session in this repository, and its commit.
    pub fn find_session_branch(
        &self,
        repository: &Repository,
        session: &SessionId,
    ) -> Result<Option<(BranchName, Oid)>, WorkspaceError> {
        let prefix = self.prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let refs = repository.list_refs(&[&format!("refs/heads/{prefix}")])?;
        let branches = refs.into_iter().filter_map(|found| {
            let branch = BranchName::of_ref(&found.name)?;
            self.is_session_branch(&branch, session).then_some((branch, found.target))
        });
        let mut branches: Vec<(BranchName, Oid)> = branches.collect();
        // A branch that this process owns is the right one. Its commit is the one that this process wrote, whatever a
        // child process has made of the ref since.
        let owned = |(branch, _): &(BranchName, Oid)| {
            let left = repository.find_owned_ref(&branch.to_ref()).flatten()?;
            Some((branch.clone(), left))
        };
        if let Some(owned) = branches.iter().find_map(owned) {
            return Ok(Some(owned));
        }
        Ok(branches.pop())
    }

    /// Finds the recorded session that has this branch.
    pub fn find_session_of(
        &self,
        repository: &Repository,
        branch: &BranchName,
    ) -> Result<Option<SessionId>, WorkspaceError> {
        let last = branch.as_str().rsplit_once('/').and_then(|(_, last)| last.parse().ok());
        let Some(session) = last.filter(|session| self.is_session_branch(branch, session)) else {
            return Ok(None);
        };
        let newest = SessionReader::new(repository).newest(&session)?;
        Ok(newest.filter(|newest| newest.record.context.branch == *branch).map(|_| session))
    }

    /// Finds the last session that this user started, among those that match `filter`, if its branch still exists.
    /// Replays are left out: they are continued only if the user names them.
    pub fn find_last_session(
        &self,
        repository: &Repository,
        filter: SessionFilter<'_>,
    ) -> Result<Option<StoredRecord>, WorkspaceError> {
        let is_candidate = |record: &Record| {
            let context = &record.context;
            context.driver == Driver::Run
                && context.forked_from.is_none()
                && filter.matches(record)
                && self.is_session_branch(&context.branch, &record.session)
        };
        let mut found = SessionReader::new(repository).list()?.sessions;
        found.retain(|stored| is_candidate(&stored.record));
        found.sort_by_key(|stored| {
            let Record { context, time, .. } = &stored.record;
            (context.started, context.started_nanosecond, *time)
        });
        while let Some(last) = found.pop() {
            let is_there = repository.find_branch(&last.record.context.branch)?.is_some();
            if is_there && is_own(repository, &last)? {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Finds a session of this pipeline whose record cannot be read, and whose branch exists. One that was last written
    /// before `last` started does not matter any more. Call this after the sessions were listed.
    pub fn find_damaged_session(
        &self,
        repository: &Repository,
        pipeline: &PipelineName,
        last: Option<&StoredRecord>,
    ) -> Result<Option<DamagedSession>, WorkspaceError> {
        for DamagedRecord { session, .. } in DamagedRecord::list() {
            let branch = self.session_branch(pipeline, &session)?;
            let Some(tip) = repository.find_branch(&branch)? else { continue };
            let commits = repository.load_commits(&[tip])?;
            let written = commits.first().and_then(RawCommit::committed).map_or(0, |(time, _)| time);
            if last.is_none_or(|last| written > last.record.context.started) {
                return Ok(Some(DamagedSession { session, branch, tip }));
            }
        }
        Ok(None)
    }

    /// Finds another matching session that was at work when this one started. If there is one, its agent may have
    /// started this session.
    pub fn find_concurrent_session(
        &self,
        repository: &Repository,
        filter: SessionFilter<'_>,
        session: &StoredRecord,
    ) -> Result<Option<StoredRecord>, WorkspaceError> {
        let began = session.record.context.started;
        let reader = SessionReader::new(repository);
        for other in reader.list()?.sessions {
            let Record { session: id, context, time, .. } = &other.record;
            let is_other = *id != session.record.session
                && context.driver == Driver::Run
                && filter.matches(&other.record)
                && !session.record.context.began_before(context)
                && *time > began;
            if is_other && was_at_work(&reader, &other, began)? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}

/// Whether a session had started and not ended at `moment`. Walks its records, newest first.
fn was_at_work(
    reader: &SessionReader<'_>,
    newest: &StoredRecord,
    moment: i64,
) -> Result<bool, WorkspaceError> {
    let mut was_resumed = false;
    for stored in reader.walk(newest)? {
        let Record { time, kind, .. } = stored?.record;
        if time <= moment {
            return Ok(!was_resumed && !matches!(kind, RecordKind::End(_) | RecordKind::Pause(_)));
        }
        was_resumed = matches!(kind, RecordKind::Resume(_));
    }
    Ok(false)
}

/// Whether this user started the session. Sessions of other users may have been fetched.
fn is_own(repository: &Repository, session: &StoredRecord) -> Result<bool, WorkspaceError> {
    let first = SessionReader::new(repository).start_of(session)?.commit;
    let commits = repository.load_commits(&[first])?;
    let began = commits.first().and_then(RawCommit::committer);
    Ok(began.is_some() && began == repository.committer()?)
}
