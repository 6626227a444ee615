//! The commits of turns in other repositories of the workspace. Missing repositories are reported.

use std::cell::OnceCell;

use arborist_core::{
    failure::Failure,
    git::Repository,
    message::visible,
    name::Oid,
    process::Cancel,
    session::{OtherCommit, Turn},
    settings::Settings,
    workspace::Workspace,
};

use super::{document::OtherPatchDocument, open::OpenSessions, show::patch_of};
use crate::ui::Ui;

/// A repository and its name.
type Place = (String, Repository);

/// The other repositories of the workspace, opened when needed.
pub(super) struct Elsewhere<'a> {
    opened: &'a OpenSessions,
    found: OnceCell<Vec<Place>>,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn of(opened: &'a OpenSessions) -> Self {
        Self { opened, found: OnceCell::new() }
    }

    /// Those that exist here, by name.
    pub(super) fn all(&self) -> Result<&[Place], Failure> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let settings = Settings::load(&self.opened.repository, &self.opened.config)?;
        let workspace = Workspace::load(&self.opened.repository, &settings, &Cancel::new())?;
        let mut found = Vec::new();
        for section in workspace.sections.iter().filter(|section| !section.is_main) {
            let repository = workspace.open(section)?;
            found.extend(repository.map(|repository| (section.name.to_string(), repository)));
        }
        Ok(self.found.get_or_init(|| found))
    }

    /// The repository that has the commit of a turn. A missing one is reported.
    pub(super) fn find(&self, other: &OtherCommit, ui: &mut Ui) -> Result<Option<&Repository>, Failure> {
        let named = self.all()?.iter().find(|(name, _)| *name == other.repository);
        let (name, commit) = (visible(&other.repository), other.commit.short());
        match named {
            Some((_, repository)) if repository.find_commits(&[other.commit])? == [Some(other.commit)] => {
                return Ok(Some(repository));
            }
            Some(_) => ui.warn(&format!("commit {commit} is not in the repository '{name}'")),
            None => ui.warn(&format!("the repository '{name}', which has commit {commit}, is not here")),
        }
        Ok(None)
    }

    /// The changes of a turn in them.
    pub(super) fn patches(&self, turn: &Turn, ui: &mut Ui) -> Result<Vec<OtherPatchDocument>, Failure> {
        let mut patches = Vec::new();
        for other in &turn.others {
            if let Some(repository) = self.find(other, ui)? {
                let (repository, patch) = (other.repository.clone(), patch_of(repository, other.commit)?);
                patches.push(OtherPatchDocument { repository, patch });
            }
        }
        Ok(patches)
    }

    /// Finds a commit in any of them.
    pub(super) fn find_commit(&self, revision: &str) -> Result<Option<(&Place, Oid)>, Failure> {
        for place in self.all()? {
            if let Some(commit) = place.1.find_commit(revision)? {
                return Ok(Some((place, commit)));
            }
        }
        Ok(None)
    }
}
