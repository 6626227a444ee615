//! How a repository of the workspace stands. Nobody is asked but the disk.

use super::{PushSet, Remainder, RepoSection, Workspace, WorkspaceError, tracking};
use crate::{
    git::{Distance, Repository},
    name::{BranchName, Oid, SessionId},
};

/// How a repository stands.
#[derive(Debug)]
pub struct RepoStatus<'a> {
    /// The repository.
    pub section: &'a RepoSection,
    /// What is known of it; `None` if it is not there.
    pub present: Option<Present>,
}

/// A repository that is there.
#[derive(Debug)]
pub struct Present {
    /// The session branch, else the branch that is checked out.
    pub branch: Option<BranchName>,
    /// Where that is.
    pub head: Option<Oid>,
    /// Where the session began, or would begin.
    pub base: Option<Oid>,
    /// How far the branch is from the branch that it began at, as that was last seen.
    pub distance: Option<Distance>,
    /// How many paths of the user's checkout are not committed.
    pub dirty: usize,
    /// Whether history was cut off when it was cloned.
    pub is_shallow: bool,
    /// How many refs the remote has not as they are here; `None` without a remote.
    pub unpushed_refs: Option<usize>,
    /// How many commits of branches the remote has not.
    pub unpushed: Option<u64>,
    /// What the remote has not of the branch that is checked out, where that is no session's; `None` without a remote.
    pub remainder: Option<Remainder>,
}

impl Present {
    /// Whether the remote has everything, as far as we have heard; `None` without a remote.
    #[must_use]
    pub fn is_pushed(&self) -> Option<bool> {
        let left = self.remainder.as_ref()?;
        // Where a session has branches, they are what the row is about.
        Some(self.unpushed_refs? == 0 && (left.has_session || left.commits == 0))
    }
}

impl Workspace {
    /// How a repository stands, for a session if one is meant.
    pub fn standing<'a>(
        &self,
        section: &'a RepoSection,
        (cargo, session): (&PushSet, Option<&SessionId>),
    ) -> Result<RepoStatus<'a>, WorkspaceError> {
        let Some(repository) = self.open(section)? else {
            return Ok(RepoStatus { section, present: None });
        };
        let session = match session {
            Some(session) => section.find_session_branch(&repository, session)?,
            None => None,
        };
        let begin = self.base(&repository, section)?;
        let (branch, head) = match session {
            Some((branch, tip)) => (Some(branch), Some(tip)),
            None => (repository.head.branch.clone(), repository.head.commit),
        };
        let base = match (head, begin) {
            (Some(head), Some(begin)) => repository.find_merge_base(head, begin)?,
            _ => head,
        };
        let distance = match (head, begin) {
            (Some(head), Some(begin)) => Some(repository.distance(head, begin)?),
            _ => None,
        };
        let (unpushed, remainder) = match section.remote {
            Some(_) => (
                Some(self.unpushed(&repository, section, cargo)?),
                Some(self.remainder(&repository, section, cargo)?),
            ),
            None => (None, None),
        };
        let dirty = repository.changed_paths()?.len();
        Ok(RepoStatus {
            section,
            present: Some(Present {
                branch,
                head,
                base,
                distance,
                dirty,
                is_shallow: repository.is_shallow,
                unpushed_refs: unpushed.as_ref().map(|(refs, _)| refs.len()),
                unpushed: unpushed.as_ref().map(|(_, count)| *count),
                remainder,
            }),
        })
    }

    /// The newest commit of the branch that work begins at, as it was last seen at the remote, else as it is here.
    pub fn base(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Option<Oid>, WorkspaceError> {
        let branch = match (&section.default_branch, &section.remote) {
            (Some(branch), _) => Some(branch.clone()),
            (None, Some(remote)) if !section.is_main => {
                let remote = repository.find_remote(remote)?.unwrap_or_else(|| remote.clone());
                repository.find_remote_head(&remote)?
            }
            _ => repository.head.branch.clone(),
        };
        let Some(branch) = branch.or_else(|| repository.head.branch.clone()) else {
            return Ok(None);
        };
        let seen = repository.find_ref(&tracking::here(section, &branch.to_ref()))?;
        Ok(match seen {
            Some(seen) => Some(seen),
            None => repository.find_branch(&branch)?,
        })
    }
}
