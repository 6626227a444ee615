//! Branches of sessions: what they are called, and which of them a run goes on with.

use super::{RepoSection, WorkspaceError};
use crate::{
    git::{RawCommit, Repository},
    message::PlanRef,
    name::{BranchName, Oid, PipelineName, SessionId, TASK_REFS},
    session::{Driver, Record, RecordKind, SessionReader, StoredRecord},
};

/// Which sessions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFilter<'a> {
    /// All of them.
    Any,
    /// Those of the plan at this path.
    Plan(&'a str),
    /// Those without a plan.
    Unplanned,
}

impl SessionFilter<'_> {
    fn is(self, record: &Record) -> bool {
        let plan = record.context.plan.as_deref().and_then(PlanRef::parse);
        match self {
            Self::Any => true,
            Self::Plan(path) => plan.is_some_and(|plan| plan.path == path),
            Self::Unplanned => plan.is_none(),
        }
    }
}

impl RepoSection {
    /// What the branch of a session is called in this repository.
    pub fn session_branch(
        &self,
        pipeline: &PipelineName,
        session: &SessionId,
    ) -> Result<BranchName, WorkspaceError> {
        let named = format!("{}{pipeline}/{session}", self.prefix).parse();
        named.map_err(|source| WorkspaceError::NoSessionBranch { name: self.name.clone(), source })
    }

    /// A session branch is one by its whole form: the prefix, a pipeline, and the session.
    #[must_use]
    pub fn is_session_branch(&self, branch: &BranchName, session: &SessionId) -> bool {
        let rest = branch.as_str().strip_prefix(&self.prefix).and_then(|rest| rest.rsplit_once('/'));
        let is_task = branch.to_ref().starts_with(TASK_REFS);
        !is_task && rest.is_some_and(|(_, last)| last == session.as_str())
    }

    /// The branch of a session in this repository, and where it is.
    pub fn find_session_branch(
        &self,
        repository: &Repository,
        session: &SessionId,
    ) -> Result<Option<(BranchName, Oid)>, WorkspaceError> {
        let prefix = self.prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let refs = repository.list_refs(&[&format!("refs/heads/{prefix}")])?;
        let branches = refs.into_iter().filter_map(|found| {
            let branch: BranchName = found.name.strip_prefix("refs/heads/")?.parse().ok()?;
            self.is_session_branch(&branch, session).then_some((branch, found.target))
        });
        let mut branches: Vec<(BranchName, Oid)> = branches.collect();
        // One that this process owns is the right one, and is where it was left, whatever a child has made of it by now.
        let left = |(branch, _): &(BranchName, Oid)| {
            let left = repository.find_owned(&branch.to_ref()).flatten()?;
            Some((branch.clone(), left))
        };
        if let Some(owned) = branches.iter().find_map(left) {
            return Ok(Some(owned));
        }
        Ok(branches.pop())
    }

    /// The recorded session whose own branch this is.
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

    /// The session that this user began last, of those that are meant, on a branch of its own that is still there. A replay
    /// is beside the point: it goes on only by its own name.
    pub fn find_last_session(
        &self,
        repository: &Repository,
        meant: SessionFilter<'_>,
    ) -> Result<Option<StoredRecord>, WorkspaceError> {
        let is_meant = |record: &Record| {
            let context = &record.context;
            context.driver == Driver::Run
                && context.forked_from.is_none()
                && meant.is(record)
                && self.is_session_branch(&context.branch, &record.session)
        };
        let mut found = SessionReader::new(repository).list()?.sessions;
        found.retain(|stored| is_meant(&stored.record));
        found.sort_by_key(|stored| (stored.record.context.started, stored.record.time));
        while let Some(last) = found.pop() {
            let is_there = repository.find_branch(&last.record.context.branch)?.is_some();
            if is_there && is_own(repository, &last)? {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }
}

impl RepoSection {
    /// Another session of those that are meant that was at work when this one began. Whoever began it may have been an agent
    /// of the other.
    pub fn find_session_beside(
        &self,
        repository: &Repository,
        meant: SessionFilter<'_>,
        session: &StoredRecord,
    ) -> Result<Option<SessionId>, WorkspaceError> {
        let began = session.record.context.started;
        let reader = SessionReader::new(repository);
        for other in reader.list()?.sessions {
            let Record { session: id, context, time, .. } = &other.record;
            let is_other = *id != session.record.session
                && context.driver == Driver::Run
                && meant.is(&other.record)
                && context.started <= began
                && *time > began;
            if is_other && was_at_work(&reader, &other, began)? {
                return Ok(Some(id.clone()));
            }
        }
        Ok(None)
    }
}

/// Whether a session had begun and not ended at a moment. Its records are asked, the newest first.
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

/// Whether this user began a session: those of others may have been fetched.
fn is_own(repository: &Repository, session: &StoredRecord) -> Result<bool, WorkspaceError> {
    let first = SessionReader::new(repository).start_of(session)?.commit;
    let commits = repository.load_commits(&[first])?;
    let began = commits.first().and_then(RawCommit::committer);
    Ok(began.is_some() && began == repository.committer()?)
}
