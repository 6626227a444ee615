//! A workspace: the repositories that one plan is about, where they are, and when they are pushed. A single repository is
//! a workspace of its own and needs no configuration.

mod abreast;
mod branch;
mod draft;
mod error;
mod naming;
mod plans;
mod push;
mod pusher;
mod section;
mod standing;
mod supply;
mod toolbox;
mod tracking;

pub use abreast::abreast;
pub use branch::SessionFilter;
pub use draft::DraftClone;
pub use error::WorkspaceError;
pub use naming::Misplaced;
pub use plans::{find_plans, leave_word};
pub use push::{PushResult, PushSet, Remainder, Transcripts};
pub use pusher::{Close, Notice, Pusher};
pub use section::{PushPolicy, RepoSection, Tool};
pub use standing::{Present, RepoStatus};
pub use supply::{FetchReply, FetchScope, RepoRequest, Supply};
pub use toolbox::{ToolRoot, Toolbox};

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    git::{GitError, Network, Repository},
    name::RepoName,
    process::Cancel,
    settings::Settings,
};

/// The repositories of a plan.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The one that has the plan is the first.
    pub sections: Vec<RepoSection>,
    /// Whether anything was configured.
    pub is_configured: bool,
    /// How remotes are waited for.
    pub network: Network,
}

impl Workspace {
    /// From the settings that hold in the repository that has the plan.
    pub fn load(main: &Repository, settings: &Settings, cancel: &Cancel) -> Result<Self, WorkspaceError> {
        let top = top_of_main(main)?;
        let names: BTreeSet<RepoName> = settings
            .keys_below("workspace.repos.")
            .filter_map(|key| key.split('.').next()?.parse().ok())
            .collect();
        let mut sections = Vec::new();
        for name in names {
            sections.push(RepoSection::read(name, &top, settings)?);
        }
        let is_configured = !sections.is_empty();
        match sections.iter().position(|section| section.is_main) {
            Some(at) => sections[..=at].rotate_right(1),
            None => sections.insert(0, RepoSection::unnamed(&top, free_name(main, &sections))),
        }
        refuse_twins(&sections)?;
        let network = Network { silence: settings.network_silence(), cancel: cancel.clone() };
        Ok(Self { sections, is_configured, network })
    }

    /// The repository that has the plan.
    #[must_use]
    pub fn main(&self) -> &RepoSection {
        &self.sections[0]
    }

    /// Whether runs have a branch of their own: as it is configured, and where there is a workspace unless it is said
    /// otherwise.
    #[must_use]
    pub fn wants_session_branches(&self, settings: &Settings) -> bool {
        settings.switch("session.branch").unwrap_or(self.is_configured)
    }

    /// The repository of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&RepoSection> {
        self.sections.iter().find(|section| section.name.as_str() == name)
    }

    /// What files of the repository want to be done with other places: the user must have seen it.
    #[must_use]
    pub fn foreign_wishes(&self) -> BTreeSet<String> {
        self.sections.iter().filter_map(RepoSection::foreign_wish).collect()
    }
}

/// The name of the folder, unless another repository is called so.
fn free_name(main: &Repository, sections: &[RepoSection]) -> RepoName {
    let name = main.name();
    let is_taken = |name: &RepoName| sections.iter().any(|section| section.name == *name);
    let others = ["main", "plan", "home"].into_iter().filter_map(|name| name.parse().ok());
    std::iter::once(name.clone()).chain(others).find(|name| !is_taken(name)).unwrap_or(name)
}

fn refuse_twins(sections: &[RepoSection]) -> Result<(), WorkspaceError> {
    for (n, section) in sections.iter().enumerate() {
        if let Some(twin) = sections[..n].iter().find(|other| other.path == section.path) {
            return Err(WorkspaceError::SamePath {
                names: [twin.name.clone(), section.name.clone()],
                path: section.path.clone(),
            });
        }
    }
    Ok(())
}

/// The top of the main checkout, also from a linked worktree.
fn top_of_main(repository: &Repository) -> Result<PathBuf, GitError> {
    if repository.git_dir == repository.common_dir {
        return Ok(plain(repository.top()));
    }
    let main = repository.list_worktrees()?.into_iter().next();
    Ok(plain(&main.map_or_else(|| repository.top().to_owned(), |main| main.path)))
}

/// The path as the system knows it, as far as it exists.
fn plain(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
