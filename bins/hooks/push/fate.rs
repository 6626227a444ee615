//! What a push does to the commits of a ref, and whether that is permitted.

use std::collections::HashSet;

use arborist_core::{
    git::GitError,
    message::{MessageReading, read},
    name::Oid,
};

use super::{Objection, Push, RefUpdate, receiver::Keepers, slice::Slice};

/// What a push does to the commits of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PushEffect {
    /// The receiver still has them.
    Kept,
    /// The ref is deleted.
    Deleted(Loss),
    /// The ref is moved to something that does not contain them.
    Rewound(Loss),
    /// They are not in this repository, so it is not known.
    Unknown,
}

/// The commits that no other ref of the receiver has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// Their number.
    pub commits: usize,
    /// Those among them that record a task's state, newest first.
    pub sound: Vec<Oid>,
}

/// Everything that the receiver loses.
pub(super) struct Lost {
    /// With our own refs.
    ours: LostCommits,
    /// With other branches.
    others: LostCommits,
}

/// Lost commits, found in one walk.
#[derive(Default)]
struct LostCommits {
    slice: Slice,
    sound: HashSet<Oid>,
}

impl Lost {
    pub(super) fn scan(push: &Push<'_>) -> Result<Self, GitError> {
        let ours = LostCommits::scan(push, Keepers::All, RefUpdate::is_ours)?;
        let others = LostCommits::scan(push, Keepers::Branches, |update| !update.is_ours())?;
        Ok(Self { ours, others })
    }

    /// The loss with a ref that was at `old`.
    fn with(&self, update: &RefUpdate, old: Oid) -> Loss {
        if update.is_ours() { self.ours.with(old) } else { self.others.with(old) }
    }
}

impl LostCommits {
    fn scan(push: &Push<'_>, keepers: Keepers, which: impl Fn(&RefUpdate) -> bool) -> Result<Self, GitError> {
        let mut lost = Self::default();
        let is_changed = |update: &RefUpdate| update.is_guarded() && update.old != update.new;
        let tips = push.old_commits(|update| is_changed(update) && which(update));
        if tips.is_empty() {
            return Ok(lost);
        }
        let kept = push.receiver.kept(&push.refs, push.updates, keepers);
        push.each_between(&tips, &kept, |commit| {
            lost.slice.add(commit);
            if matches!(read(commit.message()), MessageReading::Sound(_)) {
                lost.sound.insert(commit.id);
            }
        })?;
        Ok(lost)
    }

    /// The loss with a ref that was at `old`. No kept commit leads to a lost one, so all lost ones are found from `old`
    /// through others.
    fn with(&self, old: Oid) -> Loss {
        let commits = self.slice.below(old);
        let sound = commits.iter().copied().filter(|id| self.sound.contains(id)).collect();
        Loss { commits: commits.len(), sound }
    }
}

impl PushEffect {
    /// Determines the effect. A loss from refs that are not ours matters only if no other ref of the receiver has the
    /// commits.
    pub(super) fn of(
        update: &RefUpdate,
        push: &Push<'_>,
        lost: &Lost,
        arriving: &Slice,
    ) -> Result<Self, GitError> {
        let Some(old) = update.old else {
            return Ok(Self::Kept);
        };
        let Some(old) = push.commit(old) else {
            return Ok(Self::Unknown);
        };
        let loss = lost.with(update, old);
        let Some(new) = update.new else {
            return Ok(Self::Deleted(loss));
        };
        let Some(new) = push.commit(new).filter(|_| loss.commits == 0) else {
            return Ok(Self::Rewound(loss));
        };
        let is_kept = !update.is_ours()
            || old == new
            || arriving.leads(new, old)
            || push.repository.is_ancestor(old, new)?;
        Ok(if is_kept { Self::Kept } else { Self::Rewound(loss) })
    }

    /// The objection to it. Our own refs only grow; one may be deleted if nothing is lost. Of other branches only the
    /// recorded state is guarded.
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
            (PushEffect::Kept, true, true),
            (PushEffect::Unknown, false, true),
            (PushEffect::Deleted(nothing.clone()), true, true),
            (PushEffect::Deleted(foreign.clone()), false, true),
            (PushEffect::Deleted(state.clone()), false, false),
            (PushEffect::Rewound(nothing), false, true),
            (PushEffect::Rewound(foreign), false, true),
            (PushEffect::Rewound(state), false, false),
        ] {
            let may = |name| fate.objection(&RefUpdate::new(name, Some(sound), None)).is_none();
            assert_eq!(may("refs/arborist/saved/x"), ours, "{fate:?}");
            assert_eq!(may("refs/heads/x"), other, "{fate:?}");
        }
    }
}
