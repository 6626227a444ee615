//! A workspace is the set of repositories that one plan works in. This module knows where they are, clones and fetches
//! them, and pushes them.
//!
//! A single repository is a workspace with one member and needs no configuration.

mod branch;
mod error;
mod fetch;
mod naming;
mod parallel;
mod plan_hints;
mod push;
mod pusher;
mod reverted;
mod section;
mod status;
mod toolbox;
mod tracking;

pub use branch::{DamagedSession, SessionFilter};
pub use error::WorkspaceError;
pub use fetch::{DraftClone, FetchReply, FetchScope, RepoRequest, SyncOutcome};
pub use naming::NamingMistake;
pub use parallel::map_parallel;
pub(crate) use plan_hints::PLAN_HINTS;
pub use plan_hints::{list_plan_paths, list_plan_repositories, remember_plan_repository};
pub use push::{PushResult, PushSet, UnpushedCheckout};
pub use pusher::{PushReport, Pusher, RunEnd};
pub use reverted::{compare_elsewhere, compare_for_display, compare_with};
pub use section::{RepoSection, Tool};
pub use status::{Present, RepoStatus};
pub use toolbox::{ToolRoot, Toolbox};

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    git::{GitError, Network, Repository},
    name::RepoName,
    process::Cancel,
    settings::Settings,
};

/// The repositories that a plan works in.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The settings of each repository. The one that has the plan comes first.
    pub sections: Vec<RepoSection>,
    /// Whether `workspace.repos` has any entry.
    pub is_configured: bool,
    /// How long to wait for remotes.
    pub network: Network,
}

impl Workspace {
    /// Reads the settings of the plan's repository.
    pub fn load(main: &Repository, settings: &Settings, cancel: &Cancel) -> Result<Self, WorkspaceError> {
        let top = top_of_main_worktree(main)?;
        let named = settings.repos.iter().filter_map(|group| Some((group.name.parse().ok()?, group)));
        let named: BTreeMap<RepoName, _> = named.collect();
        let mut sections = Vec::new();
        for (name, group) in named {
            sections.push(RepoSection::read(name, &top, group)?);
        }
        let is_configured = !sections.is_empty();
        match sections.iter().position(|section| section.is_main) {
            Some(at) => sections[..=at].rotate_right(1),
            None => sections.insert(0, RepoSection::unconfigured(&top, free_name(main, &sections))),
        }
        refuse_duplicates(&sections)?;
        refuse_own_worktrees(main, &sections)?;
        let network = Network { silence: settings.network_silence(), cancel: cancel.clone() };
        Ok(Self { sections, is_configured, network })
    }

    /// The main checkouts of all repositories.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.sections.iter().map(|section| section.path.clone()).collect()
    }

    /// The repository that has the plan.
    #[must_use]
    pub fn main(&self) -> &RepoSection {
        &self.sections[0]
    }

    /// Whether runs have their own branch: the setting `session.branch`, which is on by default if a workspace is
    /// configured.
    #[must_use]
    pub fn wants_session_branches(&self, settings: &Settings) -> bool {
        settings.session.branch.unwrap_or(self.is_configured)
    }

    /// Finds a repository by its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&RepoSection> {
        self.sections.iter().find(|section| section.name.as_str() == name)
    }

    /// The settings of a repository: those that are configured for its path, or else the defaults.
    pub fn section_of(&self, repository: &Repository) -> Result<RepoSection, GitError> {
        let top = top_of_main_worktree(repository)?;
        let known = self.sections.iter().find(|section| section.path == top);
        Ok(known.cloned().unwrap_or_else(|| RepoSection::unconfigured(&top, repository.name())))
    }

    /// What files of the repository ask for outside of it, as lines for the user to approve.
    #[must_use]
    pub fn required_approvals(&self) -> BTreeSet<String> {
        self.sections.iter().filter_map(RepoSection::required_approval).collect()
    }
}

/// A name for the plan's repository: that of its directory, unless another repository has it.
fn free_name(main: &Repository, sections: &[RepoSection]) -> RepoName {
    let name = main.name();
    let is_taken = |name: &RepoName| sections.iter().any(|section| section.name == *name);
    let others = ["main", "plan", "home"].into_iter().filter_map(|name| name.parse().ok());
    std::iter::once(name.clone()).chain(others).find(|name| !is_taken(name)).unwrap_or(name)
}

fn refuse_duplicates(sections: &[RepoSection]) -> Result<(), WorkspaceError> {
    for (n, section) in sections.iter().enumerate() {
        if let Some(other) = sections[..n].iter().find(|before| before.path == section.path) {
            return Err(WorkspaceError::SamePath {
                names: [other.name.clone(), section.name.clone()],
                path: section.path.clone(),
            });
        }
    }
    Ok(())
}

/// Refuses a linked worktree of the plan's own repository: both would have the same branches.
fn refuse_own_worktrees(main: &Repository, sections: &[RepoSection]) -> Result<(), WorkspaceError> {
    // Only a linked worktree and a submodule have a file there, so that no other repository needs to be opened.
    let is_linked = |section: &&RepoSection| section.path.join(".git").is_file();
    for section in sections[1..].iter().filter(is_linked) {
        let path = canonical(&section.path);
        if Repository::open_at(&path).is_ok_and(|other| other.common_dir == main.common_dir) {
            let (name, of) = (section.name.clone(), sections[0].name.clone());
            return Err(WorkspaceError::OwnWorktree { name, of, path });
        }
    }
    Ok(())
}

/// The top of the main checkout, even if `repository` was opened in a linked worktree.
fn top_of_main_worktree(repository: &Repository) -> Result<PathBuf, GitError> {
    if repository.git_dir == repository.common_dir {
        return Ok(canonical(repository.top()));
    }
    let main = repository.list_worktrees()?.into_iter().next();
    Ok(canonical(&main.map_or_else(|| repository.top().to_owned(), |main| main.path)))
}

/// The canonical path, or the path itself if it does not exist.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
