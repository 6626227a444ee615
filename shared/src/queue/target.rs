//! The branch that is landed on, and what is kept aside for it while somebody's checkout is in the way.

use std::path::Path;

use super::{Parking, QueueError};
use crate::{
    git::{BranchUse, Ref, RefMove, Repository, Taken},
    name::{BranchName, Oid},
};

/// Where a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The branch itself.
    pub branch: Oid,
    /// What is parked on top of it.
    pub parked: Option<Oid>,
    /// What was parked for it once, whether it still follows it or not.
    set_aside: Option<Oid>,
}

impl Position {
    /// What the next merge is put on top of.
    #[must_use]
    pub fn tip(&self) -> Oid {
        self.parked.unwrap_or(self.branch)
    }

    /// The same, where what is parked does not count.
    pub(super) fn without_parked(self) -> Self {
        Self { parked: None, ..self }
    }
}

/// How a move of a target ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moving {
    /// The branch is there.
    Done,
    /// It must not be moved.
    Refused(Parking),
    /// It is not where it was.
    Elsewhere,
}

/// How often the checkouts of a branch may change while it is moved.
const PATIENCE: usize = 5;

/// A branch to land on.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    repository: &'a Repository,
    into: &'a BranchName,
}

impl<'a> Target<'a> {
    /// The branch `into`.
    #[must_use]
    pub fn new(repository: &'a Repository, into: &'a BranchName) -> Self {
        Self { repository, into }
    }

    /// Where it is. What is parked counts only while it follows the branch.
    pub fn find(&self) -> Result<Option<Position>, QueueError> {
        let mut refs = Vec::new();
        for name in [self.into.to_ref(), self.into.landing_ref()] {
            refs.extend(self.repository.find_ref(&name)?.map(|target| Ref { name, target }));
        }
        self.find_among(&refs)
    }

    /// The same among refs that were listed already.
    pub(super) fn find_among(&self, refs: &[Ref]) -> Result<Option<Position>, QueueError> {
        let find = |name: String| refs.iter().find(|found| found.name == name).map(|found| found.target);
        let Some(branch) = find(self.into.to_ref()) else {
            return Ok(None);
        };
        let parked = self.repository.find_landing(refs, self.into, branch)?;
        Ok(Some(Position { branch, parked, set_aside: find(self.into.landing_ref()) }))
    }

    /// Where it is; it must be there.
    pub fn require(&self) -> Result<Position, QueueError> {
        self.find()?.ok_or_else(|| QueueError::NoTarget(self.into.clone()))
    }

    /// Takes away what was parked and does not follow the branch any more. What the branch does not have of it is
    /// saved; its tickets will be merged anew.
    pub(super) fn clear_stale(&self, position: &Position) -> Result<Option<String>, QueueError> {
        let (Some(parked), None) = (position.set_aside, position.parked) else {
            return Ok(None);
        };
        let mut kept = None;
        if !self.repository.is_ancestor(parked, position.branch)? {
            let saved = format!("refs/arborist/saved/landing/{}/{}", self.into.component(), parked.short());
            if self.repository.list_refs(&[&saved])?.is_empty() {
                let save = RefMove { name: &saved, new: Some(parked), old: None };
                self.repository.move_refs(&[save], "arborist: a landing that was overtaken")?;
            }
            kept = Some(saved);
        }
        let name = self.into.landing_ref();
        let drop = RefMove { name: &name, new: None, old: Some(parked) };
        self.repository.move_refs(&[drop], "arborist: no longer parked")?;
        Ok(kept)
    }

    /// Moves the branch, and a checkout of it where that touches nothing of the user's.
    pub(super) fn advance(&self, from: Oid, to: Oid) -> Result<Moving, QueueError> {
        for _ in 0..PATIENCE {
            let place = match self.repository.usage(self.into, to)? {
                BranchUse::Free => return self.swap(from, to),
                BranchUse::Busy(why) => return Ok(Moving::Refused(self.parking(&why, None))),
                BranchUse::CheckedOut(place) => place,
            };
            match self.repository.fast_forward(&place, self.into, (from, to))? {
                Taken::Done => return Ok(Moving::Done),
                _ if self.require()?.branch != from => return Ok(Moving::Elsewhere),
                Taken::Refused(why) => return Ok(Moving::Refused(self.parking(&why, Some(&place)))),
                Taken::Overtaken => {}
            }
        }
        Ok(Moving::Refused(self.parking("its checkouts change all the time", None)))
    }

    fn swap(&self, from: Oid, to: Oid) -> Result<Moving, QueueError> {
        let name = self.into.to_ref();
        let swap = RefMove { name: &name, new: Some(to), old: Some(from) };
        match self.repository.move_refs(&[swap], "arborist: land") {
            Ok(()) => Ok(Moving::Done),
            Err(_) if self.require()?.branch != from => Ok(Moving::Elsewhere),
            Err(error) => Err(error.into()),
        }
    }

    /// git adds advice to what it says; ours is the command.
    fn parking(&self, why: &str, place: Option<&Path>) -> Parking {
        let said: Vec<&str> = why.lines().filter(|line| !line.starts_with("hint:")).collect();
        let why = said.join("\n").trim().to_owned();
        let at = match place {
            Some(place) if place != self.repository.top() => format!(" -C '{}'", place.display()),
            _ => String::new(),
        };
        let command = match place {
            Some(_) => format!("git{at} merge --ff-only {}", self.into.landing_ref()),
            None => "git arborist merge run".into(),
        };
        Parking { why, command }
    }

    /// Puts `to` aside for the branch.
    pub(super) fn park(&self, position: &Position, to: Oid) -> Result<(), QueueError> {
        let name = self.into.landing_ref();
        let park = RefMove { name: &name, new: Some(to), old: position.set_aside };
        Ok(self.repository.move_refs(&[park], "arborist: parked")?)
    }
}
