//! What becomes of the commits that a ref holds, and whether that may be.

use arborist_core::{
    git::{GitError, Repository},
    message::{Reading, read},
    name::Oid,
};

use super::{Objection, RefUpdate};

/// What a push does to the commits that a ref holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// They stay where they are.
    Kept,
    /// The ref goes.
    Deleted(Loss),
    /// The ref turns to something that does not contain them.
    Rewound(Loss),
    /// They are not here, so nobody can tell.
    Unknown,
}

/// The commits that no other ref of the receiver holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// How many.
    pub commits: usize,
    /// Those among them that record a task's state, newest first.
    pub sound: Vec<Oid>,
}

impl Fate {
    /// Asks git. `kept` are arguments of `rev-list` for what the receiver keeps.
    pub(super) fn of(update: &RefUpdate, kept: &[String], repository: &Repository) -> Result<Self, GitError> {
        let Some(old) = update.old else {
            return Ok(Self::Kept);
        };
        let Some(old) = repository.find_commit(&old.to_string())? else {
            return Ok(Self::Unknown);
        };
        let Some(new) = update.new else {
            return Ok(Self::Deleted(Loss::of(old, kept, repository)?));
        };
        match repository.find_commit(&new.to_string())? {
            Some(new) if repository.is_ancestor(old, new)? => Ok(Self::Kept),
            _ => Ok(Self::Rewound(Loss::of(old, kept, repository)?)),
        }
    }

    /// What speaks against it. Arborist's own refs only ever grow; one may go when nothing goes with it. Of
    /// other branches only the state that they record is guarded.
    pub(super) fn objection(&self, update: &RefUpdate) -> Option<Objection> {
        let name = update.name.clone();
        match self {
            Self::Unknown if update.is_ours() => Some(Objection::Unknown { name }),
            Self::Rewound(_) if update.is_ours() => Some(Objection::Rewound { name }),
            Self::Deleted(loss) if update.is_ours() && loss.commits > 0 => {
                Some(Objection::Deleted { name, commits: loss.commits })
            }
            Self::Deleted(loss) | Self::Rewound(loss) => {
                let newest = *loss.sound.first()?;
                Some(Objection::Dropped { name, newest, count: loss.sound.len() })
            }
            Self::Kept | Self::Unknown => None,
        }
    }
}

impl Loss {
    fn of(old: Oid, kept: &[String], repository: &Repository) -> Result<Self, GitError> {
        let mut revisions = vec![old.to_string(), "--not".into()];
        revisions.extend_from_slice(kept);
        let mut loss = Self::default();
        for commit in repository.stream_commits(&revisions)? {
            let commit = commit?;
            loss.commits += 1;
            if matches!(read(commit.message()), Reading::Sound(_)) {
                loss.sound.push(commit.id);
            }
        }
        Ok(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_become_of_a_ref() {
        let sound: Oid = "1".repeat(40).parse().unwrap();
        let nothing = Loss::default();
        let foreign = Loss { commits: 2, sound: vec![] };
        let state = Loss { commits: 2, sound: vec![sound] };
        for (fate, ours, other) in [
            (Fate::Kept, true, true),
            (Fate::Unknown, false, true),
            (Fate::Deleted(nothing.clone()), true, true),
            (Fate::Deleted(foreign.clone()), false, true),
            (Fate::Deleted(state.clone()), false, false),
            (Fate::Rewound(nothing), false, true),
            (Fate::Rewound(foreign), false, true),
            (Fate::Rewound(state), false, false),
        ] {
            let may = |name| fate.objection(&RefUpdate::new(name, Some(sound), None)).is_none();
            assert_eq!(may("refs/arborist/saved/x"), ours, "{fate:?}");
            assert_eq!(may("refs/heads/x"), other, "{fate:?}");
        }
    }
}
