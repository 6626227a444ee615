//! The receiver of a push, and its refs.

use std::collections::HashSet;

use arborist_core::{
    git::{GitError, Ref, Repository},
    name::Oid,
};

use super::{
    RefUpdate,
    ref_update::{is_working, pattern},
};

/// The owner of the refs that a push changes.
pub(super) enum Receiver {
    /// A remote, known by its remote-tracking refs.
    Remote(String),
    /// This repository.
    Here,
}

/// The refs whose commits count as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keepers {
    /// All but those that come and go while a run works.
    All,
    /// All but records and saved work: state is read from branches, and cleaning up removes the others.
    Branches,
}

impl Receiver {
    /// The refs of the receiver, without `HEAD`, which only repeats another ref.
    pub(super) fn load_refs(&self, repository: &Repository) -> Result<Vec<Ref>, GitError> {
        let root = self.root();
        let mut refs = repository.list_refs(&[&root])?;
        refs.retain(|found| found.name.strip_prefix(&root) != Some("/HEAD"));
        Ok(refs)
    }

    /// The commits of `refs` that the receiver keeps in any case, and those that it gets.
    pub(super) fn kept(&self, refs: &[Ref], changed: &[RefUpdate], keepers: Keepers) -> Vec<Oid> {
        let names: HashSet<String> = changed.iter().map(|update| self.name_here(update)).collect();
        let is_keeper = |name: &str| match keepers {
            Keepers::All => !is_working(name),
            Keepers::Branches => !name.starts_with("refs/arborist/"),
        };
        let kept = refs.iter().filter(|found| !names.contains(&pattern(&found.name)));
        let kept = kept.filter(|found| is_keeper(&found.name)).map(|found| found.target);
        let new = changed.iter().filter(|update| is_keeper(&update.name)).filter_map(|update| update.new);
        distinct(kept.chain(new))
    }

    fn root(&self) -> String {
        match self {
            Self::Remote(name) => format!("refs/remotes/{}", name.replace(['*', '?', '['], "")),
            Self::Here => "refs".into(),
        }
    }

    fn name_here(&self, update: &RefUpdate) -> String {
        match (self, update.name.strip_prefix("refs/heads/")) {
            (Self::Remote(_), Some(branch)) => format!("{}/{branch}", self.root()),
            _ => update.name.clone(),
        }
    }
}

/// Removes duplicates.
pub(super) fn distinct(ids: impl Iterator<Item = Oid>) -> Vec<Oid> {
    let mut seen = HashSet::new();
    ids.filter(|id| seen.insert(*id)).collect()
}
