//! Getting a repository of the workspace: it is cloned where it is missing, and fetched where it is there.

use std::{fs, path::Path};

use super::{DraftClone, RepoSection, Workspace, WorkspaceError, abreast, tracking};
use crate::{
    git::{GitError, More, Ref, RefMove, RemoteError, Repository, Trouble},
    name::{BranchName, Oid},
};

/// How a repository came to be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supply {
    /// It has no remote: it is as it is.
    Local,
    /// It was not there.
    Cloned {
        /// Where from.
        remote: String,
    },
    /// The remote was asked.
    Fetched {
        /// Which one.
        remote: String,
    },
    /// The remote could not be asked.
    Offline {
        /// Why.
        why: String,
        /// How it went wrong.
        trouble: Trouble,
    },
}

/// What is fetched of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchScope {
    /// The branch that work begins at.
    Branch,
    /// That, and what these patterns name.
    Also(Vec<String>),
    /// That, and all branches and records of sessions.
    Everything,
}

/// A repository that is to be got.
#[derive(Debug)]
pub struct RepoRequest<'a> {
    /// Which one.
    pub section: &'a RepoSection,
    /// It, where it is there.
    pub here: Option<Repository>,
    /// What is fetched of its remote.
    pub wanted: FetchScope,
}

/// What asking for a repository came to.
#[derive(Debug)]
pub enum FetchReply {
    /// It is there, and its remote was asked.
    Here(Box<(Repository, Supply)>),
    /// It was cloned, and is not where it shall be yet.
    Cloned(DraftClone),
}

/// What has to be there of sessions, by the names that remotes have for it.
pub(super) const RECORDS: [&str; 2] = ["refs/arborist/sessions/*", "refs/arborist/transcripts/*"];

impl Workspace {
    /// The repository, if it is there.
    pub fn open(&self, section: &RepoSection) -> Result<Option<Repository>, WorkspaceError> {
        match fs::symlink_metadata(&section.path) {
            Err(_) => return Ok(None),
            Ok(_) if is_empty(&section.path) => return Ok(None),
            Ok(_) if !section.path.exists() => {
                return Err(WorkspaceError::Dangling {
                    name: section.name.clone(),
                    path: section.path.clone(),
                });
            }
            Ok(_) => {}
        }
        match Repository::open_at(&section.path) {
            Ok(repository) => Ok(Some(repository)),
            Err(GitError::NoRepository { complaint }) if !complaint.contains("ownership") => {
                let (name, path) = (section.name.clone(), section.path.clone());
                let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
                Err(if is_bare {
                    WorkspaceError::Bare { name, path }
                } else {
                    WorkspaceError::NoRepository { name, path }
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The repository, if it is there; one that is nowhere is refused.
    pub fn locate(&self, section: &RepoSection) -> Result<Option<Repository>, WorkspaceError> {
        let here = self.open(section)?;
        if here.is_none() && section.remote.is_none() {
            return Err(WorkspaceError::absent(section));
        }
        Ok(here)
    }

    /// Asks for all of these at once; what came of it stands in their order.
    pub fn ask_all(&self, requests: &[RepoRequest<'_>]) -> Vec<Result<FetchReply, WorkspaceError>> {
        abreast(requests, |request| self.ask(request))
    }

    /// The repositories that were asked for; those that were cloned are moved to their places.
    pub fn keep_all(
        &self,
        requests: &[RepoRequest<'_>],
        replies: &[FetchReply],
    ) -> Vec<Result<(Repository, Supply), WorkspaceError>> {
        let asked: Vec<_> = requests.iter().zip(replies).collect();
        abreast(&asked, |(request, reply)| self.keep(request, reply))
    }

    /// A repository, with what its remote has.
    pub fn supply(&self, request: &RepoRequest<'_>) -> Result<(Repository, Supply), WorkspaceError> {
        self.keep(request, &self.ask(request)?)
    }

    /// A remote that cannot be reached keeps nobody from a repository that is there.
    fn ask(
        &self,
        RepoRequest { section, here, wanted }: &RepoRequest<'_>,
    ) -> Result<FetchReply, WorkspaceError> {
        match (here, &section.remote) {
            (Some(repository), _) => {
                let supply = self.refresh(repository, section, wanted)?;
                Ok(FetchReply::Here(Box::new((repository.clone(), supply))))
            }
            (None, Some(remote)) => {
                Ok(FetchReply::Cloned(DraftClone::clone_from(remote, section, &self.network)?))
            }
            (None, None) => Err(WorkspaceError::absent(section)),
        }
    }

    fn keep(
        &self,
        RepoRequest { section, wanted, .. }: &RepoRequest<'_>,
        reply: &FetchReply,
    ) -> Result<(Repository, Supply), WorkspaceError> {
        match reply {
            FetchReply::Here(here) => Ok((**here).clone()),
            FetchReply::Cloned(draft) => {
                draft.move_to_place()?;
                let repository = Repository::open_at(&section.path)?;
                self.fetch(&repository, section, wanted)?;
                Ok((repository, Supply::Cloned { remote: draft.remote.clone() }))
            }
        }
    }

    /// Asks the remote of a repository that is there what it has.
    pub fn refresh(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &FetchScope,
    ) -> Result<Supply, WorkspaceError> {
        match self.fetch(repository, section, wanted) {
            Ok(None) => Ok(Supply::Local),
            Ok(Some(remote)) => Ok(Supply::Fetched { remote }),
            Err(WorkspaceError::Remote(RemoteError::Unreached { why, trouble, .. })) => {
                Ok(Supply::Offline { why, trouble })
            }
            Err(error) => Err(error),
        }
    }

    /// Asks the remote, if there is one. Gives its name.
    fn fetch(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &FetchScope,
    ) -> Result<Option<String>, WorkspaceError> {
        let Some(remote) = self.remote_of(repository, section)? else {
            return Ok(None);
        };
        let branch = self.default_branch(repository, section, &remote)?;
        // The user's own branch need not be anywhere else.
        let is_own = section.is_main && section.default_branch.is_none();
        let branch = match branch {
            Some(branch) if is_own && !self.is_at(repository, &remote, &branch)? => None,
            branch => branch,
        };
        let mut specs: Vec<String> =
            branch.iter().map(|branch| tracking::refspec(section, &branch.to_ref())).collect();
        let everything: Vec<String>;
        let names = match wanted {
            FetchScope::Branch => &[],
            FetchScope::Also(names) => names.as_slice(),
            FetchScope::Everything => {
                let heads = [format!("refs/heads/{}*", section.prefix), "refs/heads/arborist/task/*".into()];
                everything = RECORDS.iter().map(|name| (*name).to_owned()).chain(heads).collect();
                everything.as_slice()
            }
        };
        specs.extend(names.iter().map(|name| tracking::refspec(section, name)));
        specs.dedup();
        if !specs.is_empty() {
            repository.fetch_refs((&remote, &specs), More::Newer, &self.network)?;
        }
        Ok(Some(remote))
    }

    /// Asks whether a remote has a branch.
    fn is_at(
        &self,
        repository: &Repository,
        remote: &str,
        branch: &BranchName,
    ) -> Result<bool, WorkspaceError> {
        let found = repository.list_remote_refs((remote, &[&branch.to_ref()]), &self.network)?;
        Ok(found.iter().any(|(name, _)| *name == branch.to_ref()))
    }

    /// The branch that work in a repository begins at.
    pub fn default_branch(
        &self,
        repository: &Repository,
        section: &RepoSection,
        remote: &str,
    ) -> Result<Option<BranchName>, WorkspaceError> {
        if let Some(branch) = &section.default_branch {
            return Ok(Some(branch.clone()));
        }
        if section.is_main {
            return Ok(repository.head.branch.clone());
        }
        if let Some(branch) = repository.find_remote_head(remote)? {
            return Ok(Some(branch));
        }
        Ok(repository.ask_default_branch(remote, &self.network)?)
    }

    /// What git calls the remote of a repository: its name if it has one, else the URL.
    pub fn remote_of(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Option<String>, WorkspaceError> {
        let Some(remote) = &section.remote else {
            return Ok(None);
        };
        if let Some(name) = repository.find_remote(remote)? {
            return Ok(Some(name));
        }
        let is_name = !remote.contains(['/', ':']);
        if is_name && !Path::new(remote).exists() {
            return Err(WorkspaceError::NoRemote {
                name: section.name.clone(),
                remote: remote.clone(),
                path: section.path.clone(),
            });
        }
        Ok(Some(remote.clone()))
    }

    /// Where the remote had a ref when we last heard of it.
    pub fn find_seen(
        &self,
        repository: &Repository,
        section: &RepoSection,
        name: &str,
    ) -> Result<Option<Oid>, GitError> {
        repository.find_ref(&tracking::here(section, name))
    }

    /// The branches that the remote had when we last heard of it, and where they were.
    pub fn list_seen(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Vec<(BranchName, Oid)>, GitError> {
        let branch = |found: &Ref| found.name.strip_prefix("refs/heads/")?.parse().ok();
        let seen = tracking::list(repository, section)?;
        Ok(seen.iter().filter_map(|found| Some((branch(found)?, found.target))).collect())
    }

    /// Takes over what the remote has of sessions and is not here, or is here and older. Branches that are checked out
    /// stay where they are. Gives the names of what was taken.
    pub fn adopt(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Vec<String>, WorkspaceError> {
        let mut taken = Vec::new();
        let known =
            repository.list_refs(&["refs/heads", "refs/arborist/sessions", "refs/arborist/transcripts"])?;
        let worktrees = repository.list_worktrees()?;
        let is_used = |name: &str| {
            worktrees
                .iter()
                .any(|worktree| worktree.branch.as_ref().is_some_and(|branch| branch.to_ref() == name))
        };
        for there in tracking::list(repository, section)? {
            let base = section.default_branch.as_ref().map(BranchName::to_ref);
            let is_ours = there.name.starts_with("refs/arborist/")
                || there.name.starts_with(&format!("refs/heads/{}", section.prefix))
                || there.name.starts_with("refs/heads/arborist/task/");
            if !is_ours || Some(&there.name) == base.as_ref() {
                continue;
            }
            let old = known.iter().find(|found| found.name == there.name).map(|found| found.target);
            if follows(repository, old, there.target)? && !is_used(&there.name) {
                let moved = RefMove { name: &there.name, new: Some(there.target), old };
                repository.move_refs(&[moved], "arborist: fetched")?;
                taken.push(there.name);
            }
        }
        Ok(taken)
    }
}

/// Whether `new` may take the place of `old` without a loss.
fn follows(repository: &Repository, old: Option<Oid>, new: Oid) -> Result<bool, GitError> {
    match old {
        None => Ok(true),
        Some(old) if old == new => Ok(false),
        Some(old) => repository.is_ancestor(old, new),
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
