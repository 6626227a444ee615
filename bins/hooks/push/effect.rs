//! What a push does to the commits of a ref, and whether that is permitted.

use std::collections::{HashMap, HashSet};

use arborist_core::{
    git::{GitError, RawCommit},
    message::{MessageReading, read},
    name::Oid,
    session::is_record,
};

use super::{Objection, Push, RefUpdate, receiver::KeepingRefs};

/// What a push does to the commits of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PushEffect {
    /// The receiver still has them.
    Kept,
    /// The ref is deleted.
    Deleted(UnreachableCommits),
    /// The ref is moved to something that does not contain them.
    Rewound(UnreachableCommits),
    /// They are not in this repository, so it is not known.
    Unknown,
}

/// The commits that no other ref of the receiver has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnreachableCommits {
    /// Their number.
    pub commits: usize,
    /// Those among them that record a task's state, newest first.
    pub task_commits: Vec<Oid>,
    /// Those among them that belong to the record of a session and that are not in another record either, newest first.
    pub records: Vec<Oid>,
}

/// Everything that the receiver loses.
pub(super) struct Lost {
    /// With our own refs.
    ours: LostCommits,
    /// With other refs, if records and saved work do not count.
    others: LostCommits,
    /// With other refs, from the whole receiver.
    others_records: LostCommits,
}

/// Lost commits, found in one walk.
#[derive(Default)]
struct LostCommits {
    slice: Slice,
    needed: HashSet<Oid>,
}

impl Lost {
    pub(super) fn scan(push: &Push<'_>) -> Result<Self, GitError> {
        let ours = LostCommits::scan(push, KeepingRefs::All, RefUpdate::is_ours, is_task_commit)?;
        let others = LostCommits::scan(push, KeepingRefs::Branches, RefUpdate::is_users_ref, is_task_commit)?;
        let of_session = |commit: &RawCommit| is_record(commit.message());
        let others_records = LostCommits::scan(push, KeepingRefs::All, RefUpdate::is_users_ref, of_session)?;
        Ok(Self { ours, others, others_records })
    }

    /// The loss with a ref that was at `old`.
    fn with(&self, update: &RefUpdate, old: Oid) -> UnreachableCommits {
        let lost = if update.is_ours() { &self.ours } else { &self.others };
        UnreachableCommits {
            commits: lost.slice.below(old).len(),
            task_commits: lost.needed_below(old),
            records: self.others_records.needed_below(old),
        }
    }
}

fn is_task_commit(commit: &RawCommit) -> bool {
    matches!(read(commit.message()), MessageReading::WellFormed(_))
}

impl LostCommits {
    /// Walks over everything that the refs selected by `which` lose, and remembers the commits selected by `is_needed`.
    fn scan(
        push: &Push<'_>,
        keepers: KeepingRefs,
        which: impl Fn(&RefUpdate) -> bool,
        is_needed: impl Fn(&RawCommit) -> bool,
    ) -> Result<Self, GitError> {
        let mut lost = Self::default();
        let tips = push.old_commits(|update| update.old != update.new && which(update));
        if tips.is_empty() {
            return Ok(lost);
        }
        let kept = push.receiver.kept(&push.refs, push.updates, keepers);
        push.each_between(&tips, &kept, |commit| {
            lost.slice.add(commit);
            if is_needed(commit) {
                lost.needed.insert(commit.id);
            }
        })?;
        Ok(lost)
    }

    /// The needed commits that are lost with a ref that was at `old`. No kept commit leads to a lost one, so all lost ones
    /// are found from `old` through others.
    fn needed_below(&self, old: Oid) -> Vec<Oid> {
        self.slice.below(old).into_iter().filter(|id| self.needed.contains(id)).collect()
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

    /// The objection to it. Our own refs only grow; one may be deleted if nothing is lost. Of other refs only the
    /// recorded state and the records of sessions are guarded.
    pub(super) fn objection(&self, update: &RefUpdate) -> Option<Objection> {
        let name = update.name.clone();
        match self {
            Self::Unknown if update.is_ours() => Some(Objection::Unknown { name }),
            Self::Rewound(_) if update.is_ours() => Some(Objection::Rewound { name }),
            Self::Deleted(loss) if update.is_ours() && loss.commits > 0 => {
                Some(Objection::Deleted { name, commits: loss.commits })
            }
            Self::Deleted(loss) | Self::Rewound(loss) => {
                let (what, lost) = match loss.task_commits.is_empty() {
                    true => ("the record of a session", &loss.records),
                    false => ("the state of tasks", &loss.task_commits),
                };
                Some(Objection::Dropped { name, newest: *lost.first()?, count: lost.len(), what })
            }
            Self::Kept | Self::Unknown => None,
        }
    }
}

/// Commits in git's order, with their parents.
#[derive(Debug, Default)]
pub(super) struct Slice {
    places: HashMap<Oid, usize>,
    commits: Vec<(Oid, Vec<Oid>)>,
}

impl Slice {
    pub(super) fn add(&mut self, commit: &RawCommit) {
        self.places.insert(commit.id, self.commits.len());
        self.commits.push((commit.id, commit.parents().collect()));
    }

    /// The commits of the slice that are reachable from `tip` within it, in git's order.
    fn below(&self, tip: Oid) -> Vec<Oid> {
        let mut places: Vec<usize> = self.reached_from(tip).into_iter().collect();
        places.sort_unstable();
        places.into_iter().map(|place| self.commits[place].0).collect()
    }

    /// Whether the slice proves that `old` is an ancestor of `new`. If not, it may still be one.
    fn leads(&self, new: Oid, old: Oid) -> bool {
        let reached = self.reached_from(new);
        reached.into_iter().any(|place| self.commits[place].1.contains(&old))
    }

    fn reached_from(&self, tip: Oid) -> HashSet<usize> {
        let mut reached = HashSet::new();
        let mut open: Vec<usize> = self.places.get(&tip).copied().into_iter().collect();
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.commits[place].1.iter().filter_map(|parent| self.places.get(parent)));
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_may_not_lose_task_commits_or_records() {
        let commit: Oid = "1".repeat(40).parse().unwrap();
        let nothing = UnreachableCommits::default();
        let foreign = UnreachableCommits { commits: 2, ..UnreachableCommits::default() };
        let state = UnreachableCommits { task_commits: vec![commit], ..foreign.clone() };
        let record = UnreachableCommits { records: vec![commit], ..foreign.clone() };
        for (effect, ours, other) in [
            (PushEffect::Kept, true, true),
            (PushEffect::Unknown, false, true),
            (PushEffect::Deleted(nothing.clone()), true, true),
            (PushEffect::Deleted(foreign.clone()), false, true),
            (PushEffect::Deleted(state.clone()), false, false),
            (PushEffect::Deleted(record.clone()), false, false),
            (PushEffect::Rewound(nothing), false, true),
            (PushEffect::Rewound(foreign), false, true),
            (PushEffect::Rewound(state), false, false),
            (PushEffect::Rewound(record), false, false),
        ] {
            let may = |name| effect.objection(&RefUpdate::new(name, Some(commit), None)).is_none();
            assert_eq!(may("refs/arborist/saved/x"), ours, "{effect:?}");
            assert_eq!(may("refs/heads/x"), other, "{effect:?}");
            assert_eq!(may("refs/tags/x"), other, "{effect:?}");
        }
    }

    fn id(digit: char) -> Oid {
        digit.to_string().repeat(40).parse().unwrap()
    }

    #[test]
    fn a_slice_finds_the_ancestors_of_its_commits() {
        let mut slice = Slice::default();
        for (commit, parents) in [('5', "43"), ('4', "2"), ('3', "1"), ('7', "6")] {
            let parents: String = parents.chars().map(|parent| format!("parent {}\n", id(parent))).collect();
            slice.add(&RawCommit::new(id(commit), format!("tree x\n{parents}\n").into_bytes()));
        }
        assert_eq!(slice.below(id('5')), ['5', '4', '3'].map(id));
        assert_eq!(slice.below(id('1')), []);
        assert!(slice.leads(id('5'), id('1')) && slice.leads(id('4'), id('2')));
        assert!(!slice.leads(id('4'), id('1')) && !slice.leads(id('5'), id('6')));
    }
}
