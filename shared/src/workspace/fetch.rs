//! Clones and fetches the repositories of a workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{RepoSection, Workspace, WorkspaceError, map_parallel, tracking};
use crate::{
    git::{FetchDepth, GitError, Network, Ref, RefMove, RemoteError, RemoteFailure, Repository},
    name::{BranchName, Oid, TASK_REFS},
    safe_files,
};

/// How a repository was brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncOutcome {
    /// It has no remote.
    Local,
    /// It did not exist and was cloned.
    Cloned {
        /// The URL it was cloned from.
        remote: String,
    },
    /// It was fetched.
    Fetched {
        /// The name of the remote, or its URL.
        remote: String,
    },
    /// The remote could not be reached; the repository is used as it is.
    Offline {
        /// The error message.
        why: String,
        /// The kind of failure.
        trouble: RemoteFailure,
    },
}

/// What is fetched from a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchScope {
    /// The branch that work starts from.
    Branch,
    /// The branch, and the refs that match these patterns.
    Also(Vec<String>),
    /// The branch, and all branches and records of sessions.
    Everything,
}

/// A request to clone or fetch a repository.
#[derive(Debug)]
pub struct RepoRequest<'a> {
    /// The repository's settings.
    pub section: &'a RepoSection,
    /// The repository, if it exists already.
    pub here: Option<Repository>,
    /// What is fetched from its remote.
    pub wanted: FetchScope,
}

/// The result of cloning or fetching, before clones are moved to their paths.
#[derive(Debug)]
pub enum FetchReply {
    /// The repository existed and was fetched.
    Here(Box<(Repository, SyncOutcome)>),
    /// It was cloned to a temporary path.
    Cloned(DraftClone),
}

/// The records of sessions, as ref patterns at the remote.
pub(super) const RECORDS: [&str; 2] = ["refs/arborist/sessions/*", "refs/arborist/transcripts/*"];

impl Workspace {
    /// Opens the repository. Returns `None` if its path is missing or an empty directory.
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

    /// Like [`Self::open`], but an error if the repository is missing and has no remote to clone it from.
    pub fn locate(&self, section: &RepoSection) -> Result<Option<Repository>, WorkspaceError> {
        let here = self.open(section)?;
        if here.is_none() && section.remote.is_none() {
            return Err(WorkspaceError::absent(section));
        }
        Ok(here)
    }

    /// Fetches or clones all of these in parallel. Results are in the order of the requests.
    pub fn fetch_all(&self, requests: &[RepoRequest<'_>]) -> Vec<Result<FetchReply, WorkspaceError>> {
        map_parallel(requests, |request| self.fetch_or_clone(request))
    }

    /// Completes the results of [`Self::fetch_all`]: moves clones to their paths and fetches the wanted refs into them.
    pub fn place_all(
        &self,
        requests: &[RepoRequest<'_>],
        replies: &[FetchReply],
    ) -> Vec<Result<(Repository, SyncOutcome), WorkspaceError>> {
        let answered: Vec<_> = requests.iter().zip(replies).collect();
        map_parallel(&answered, |(request, reply)| self.place(request, reply))
    }

    /// Fetches or clones one repository.
    pub fn get(&self, request: &RepoRequest<'_>) -> Result<(Repository, SyncOutcome), WorkspaceError> {
        self.place(request, &self.fetch_or_clone(request)?)
    }

    /// If the repository exists, an unreachable remote is not an error.
    fn fetch_or_clone(
        &self,
        RepoRequest { section, here, wanted }: &RepoRequest<'_>,
    ) -> Result<FetchReply, WorkspaceError> {
        match (here, &section.remote) {
            (Some(repository), _) => {
                let outcome = self.refresh(repository, section, wanted)?;
                Ok(FetchReply::Here(Box::new((repository.clone(), outcome))))
            }
            (None, Some(remote)) => {
                Ok(FetchReply::Cloned(DraftClone::clone_beside(remote, section, &self.network)?))
            }
            (None, None) => Err(WorkspaceError::absent(section)),
        }
    }

    fn place(
        &self,
        RepoRequest { section, wanted, .. }: &RepoRequest<'_>,
        reply: &FetchReply,
    ) -> Result<(Repository, SyncOutcome), WorkspaceError> {
        match reply {
            FetchReply::Here(here) => Ok((**here).clone()),
            FetchReply::Cloned(draft) => {
                draft.move_to_place()?;
                let repository = Repository::open_at(&section.path)?;
                self.fetch(&repository, section, wanted)?;
                Ok((repository, SyncOutcome::Cloned { remote: draft.remote.clone() }))
            }
        }
    }

    /// Fetches an existing repository. An unreachable remote is reported as [`SyncOutcome::Offline`], not as an error.
    pub fn refresh(
        &self,
        repository: &Repository,
        section: &RepoSection,
        wanted: &FetchScope,
    ) -> Result<SyncOutcome, WorkspaceError> {
        match self.fetch(repository, section, wanted) {
            Ok(None) => Ok(SyncOutcome::Local),
            Ok(Some(remote)) => Ok(SyncOutcome::Fetched { remote }),
            Err(WorkspaceError::Remote(RemoteError::Unreached { why, trouble, .. })) => {
                Ok(SyncOutcome::Offline { why, trouble })
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches from the remote and returns its name. Returns `None` if the repository has no remote.
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
        // The user's own branch need not exist at the remote.
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
                let heads = [format!("refs/heads/{}*", section.prefix), format!("{TASK_REFS}*")];
                everything = RECORDS.iter().map(|name| (*name).to_owned()).chain(heads).collect();
                everything.as_slice()
            }
        };
        specs.extend(names.iter().map(|name| tracking::refspec(section, name)));
        specs.dedup();
        if !specs.is_empty() {
            repository.fetch_refs(&remote, &specs, FetchDepth::Newer, &self.network)?;
        }
        Ok(Some(remote))
    }

    /// Asks the remote whether it has a branch.
    fn is_at(
        &self,
        repository: &Repository,
        remote: &str,
        branch: &BranchName,
    ) -> Result<bool, WorkspaceError> {
        Ok(repository.find_remote_ref(remote, &branch.to_ref(), &self.network)?.is_some())
    }

    /// The branch that work in a repository starts from.
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

    /// The name that git has for the remote of a repository, or else its URL.
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

    /// Where the remote had a ref when we last fetched or pushed it.
    pub fn find_seen(
        &self,
        repository: &Repository,
        section: &RepoSection,
        name: &str,
    ) -> Result<Option<Oid>, GitError> {
        repository.find_ref(&tracking::ref_name(section, name))
    }

    /// The branches that the remote had when we last fetched or pushed, with their commits.
    pub fn list_seen(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Vec<(BranchName, Oid)>, GitError> {
        let branch = |found: &Ref| BranchName::of_ref(&found.name);
        let seen = tracking::list(repository, section)?;
        Ok(seen.iter().filter_map(|found| Some((branch(found)?, found.target))).collect())
    }

    /// Creates or fast-forwards local session branches and records to what the remote has. Branches that are checked
    /// out are not moved. Returns the names of the refs that changed.
    pub fn adopt(
        &self,
        repository: &Repository,
        section: &RepoSection,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.adopt_below(repository, section, "refs/")
    }

    /// Like [`Self::adopt`], for refs whose names begin with `prefix`.
    pub fn adopt_below(
        &self,
        repository: &Repository,
        section: &RepoSection,
        prefix: &str,
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
                || there.name.starts_with(TASK_REFS);
            let is_wanted = is_ours && there.name.starts_with(prefix);
            if !is_wanted || Some(&there.name) == base.as_ref() {
                continue;
            }
            let old = known.iter().find(|found| found.name == there.name).map(|found| found.target);
            if is_fast_forward(repository, old, there.target)? && !is_used(&there.name) {
                let moved = RefMove { name: &there.name, new: Some(there.target), old };
                repository.move_refs(&[moved], "arborist: fetched")?;
                taken.push(there.name);
            }
        }
        Ok(taken)
    }
}

/// Whether moving a ref from `old` to `new` is a creation or a fast-forward.
fn is_fast_forward(repository: &Repository, old: Option<Oid>, new: Oid) -> Result<bool, GitError> {
    match old {
        None => Ok(true),
        Some(old) if old == new => Ok(false),
        Some(old) => repository.is_ancestor(old, new),
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// A clone in a temporary directory. It is deleted on drop unless it was moved to its destination.
#[derive(Debug)]
pub struct DraftClone {
    /// The URL it was cloned from.
    pub remote: String,
    temporary: PathBuf,
    destination: PathBuf,
}

impl DraftClone {
    /// Clones `remote` into a temporary directory next to the section's path.
    pub(super) fn clone_beside(
        remote: &str,
        section: &RepoSection,
        network: &Network,
    ) -> Result<Self, WorkspaceError> {
        // The path may be a symbolic link of the user's; the temporary directory must be on the same file system as its
        // target.
        let destination = &safe_files::resolved(&section.path);
        let (Some(parent), Some(name)) = (destination.parent(), destination.file_name()) else {
            return Err(WorkspaceError::Missing { name: section.name.clone(), path: destination.clone() });
        };
        safe_files::make_folders(parent).map_err(file_error(parent))?;
        let temporary = parent.join(format!(".{}.cloning-{}", name.to_string_lossy(), std::process::id()));
        // From here on, `Drop` removes an incomplete clone.
        let draft = Self { remote: remote.to_owned(), temporary, destination: destination.clone() };
        network.clone_to(remote, &draft.temporary, section.depth, section.default_branch.as_ref())?;
        Ok(draft)
    }

    pub(super) fn move_to_place(&self) -> Result<(), WorkspaceError> {
        safe_files::rename(&self.temporary, &self.destination).map_err(file_error(&self.destination))
    }
}

impl Drop for DraftClone {
    fn drop(&mut self) {
        let _ = safe_files::remove_all(&self.temporary);
    }
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::File { doing: "make", path, source }
}
