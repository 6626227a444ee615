//! The status of a repository of the workspace, read from the disk without contacting a remote.

use super::{PushSet, RepoSection, UnpushedCheckout, Workspace, WorkspaceError, tracking};
use crate::{
    git::{Distance, Repository},
    name::{BranchName, Oid, SessionId},
};

/// The status of one repository.
#[derive(Debug)]
pub struct RepoStatus<'a> {
    /// The repository.
    pub section: &'a RepoSection,
    /// Its state; `None` if it does not exist.
    pub present: Option<Present>,
}

/// The state of a repository that exists.
#[derive(Debug)]
pub struct Present {
    /// The session branch, else the branch that is checked out.
    pub branch: Option<BranchName>,
    /// The commit of that branch.
    pub head: Option<Oid>,
    /// The commit that the session started from, or would start from.
    pub base: Option<Oid>,
    /// How far the branch is ahead of and behind the branch that work starts from, as last fetched.
    pub distance: Option<Distance>,
    /// The number of uncommitted paths in the user's checkout.
    pub dirty: usize,
    /// Whether it is a shallow clone.
    pub is_shallow: bool,
    /// The number of refs that differ from the remote's; `None` without a remote.
    pub unpushed_refs: Option<usize>,
    /// The number of commits of session branches that are not at the remote; `None` without a remote.
    pub unpushed: Option<u64>,
    /// Unpushed commits of the checked out branch, if it is not a session branch; `None` without a remote.
    pub unpushed_checkout: Option<UnpushedCheckout>,
}

impl Present {
    /// Whether the remote has everything, according to our tracking refs; `None` without a remote.
    #[must_use]
    pub fn is_pushed(&self) -> Option<bool> {
        let left = self.unpushed_checkout.as_ref()?;
        // If the session has branches, the status is about them and not about the user's checkout.
        Some(self.unpushed_refs? == 0 && (left.has_session || left.commits == 0))
    }
}

impl Workspace {
    /// The status of a repository, for a session if one is given.
    pub fn status<'a>(
        &self,
        section: &'a RepoSection,
        wanted: &PushSet,
        session: Option<&SessionId>,
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
        let (unpushed, unpushed_checkout) = match section.remote {
            Some(_) => (
                Some(self.unpushed(&repository, section, wanted)?),
                Some(self.unpushed_checkout(&repository, section, wanted)?),
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
                unpushed_checkout,
            }),
        })
    }

    /// The newest commit of the branch that work starts from: as last fetched, or else the local branch.
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
        let seen = repository.find_ref(&tracking::ref_name(section, &branch.to_ref()))?;
        Ok(match seen {
            Some(seen) => Some(seen),
            None => repository.find_branch(&branch)?,
        })
    }
}
