//! Decides what may be deleted, what must be saved first, and what stays and why. A pure function of the facts.

use std::{collections::HashSet, fmt};

use super::{Candidate, CandidateKind, CandidatePlace, Commits, InUse, Proof, UncommittedContent};
use crate::{history::RevertedMerge, message::first_of, settings::Age};

/// The rules of a cleanup.
#[derive(Debug, Clone)]
pub struct CleanupRules {
    /// The current time in seconds since 1970.
    pub now: i64,
    /// Younger candidates stay.
    pub older_than: Age,
    /// Younger saved work stays.
    pub keep_saved: Age,
    /// Younger records of sessions stay.
    pub keep_records: Age,
    /// How to treat work that no other ref or file contains.
    pub unsaved: UnsavedPolicy,
}

impl CleanupRules {
    /// The age below which a candidate stays.
    const fn limit_of(&self, what: CandidateKind) -> Age {
        match what {
            CandidateKind::Saved => self.keep_saved,
            CandidateKind::Record => self.keep_records,
            CandidateKind::Trash => Age(0),
            CandidateKind::Worktree
            | CandidateKind::Folder
            | CandidateKind::Branch
            | CandidateKind::RemoteBranch
            | CandidateKind::Landing
            | CandidateKind::Claim
            | CandidateKind::UnfinishedAttempt
            | CandidateKind::SessionBranch
            | CandidateKind::Log
            | CandidateKind::Report
            | CandidateKind::Cache => self.older_than,
        }
    }

    /// Whether a candidate that was last used at `time` stays because of its age.
    pub(super) fn is_young(&self, what: CandidateKind, time: i64) -> bool {
        self.now.saturating_sub(time).max(0) < self.limit_of(what).0
    }
}

/// How to treat work that no other ref or file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsavedPolicy {
    /// Keep the candidate.
    Kept,
    /// Save it first.
    Saved,
}

/// The decision about a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanupVerdict {
    /// Delete it, for this reason, after saving this.
    Remove(Grounds, Save),
    /// It stays.
    Keep(KeepReason),
}

/// Why something may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grounds {
    /// Everything in it is elsewhere.
    Held,
    /// It has landed.
    Landed(String, Proof),
    /// It has no uncommitted files, and no commits that exist only there.
    Empty,
    /// Its directory is gone, and nothing was staged there that no commit contains.
    Missing,
    /// It is not in use, and has no work in it.
    Old,
    /// It is saved work, which may be the last copy, and older than this.
    Expired(Age),
    /// Its content is saved first.
    Saved,
    /// It is in the trash, and an earlier deletion failed for this reason.
    DeletionFailed(String),
}

/// What has to be saved before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Save {
    /// The commits.
    pub commits: bool,
    /// The uncommitted files.
    pub content: bool,
}

impl Save {
    /// Saves nothing.
    pub const NOTHING: Self = Self { commits: false, content: false };
}

/// Why something stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// This fact could not be determined.
    Unknown(String),
    /// It is in use.
    InUse(InUse),
    /// It is younger than this.
    Young(Age),
    /// This many of its commits are nowhere else.
    Loose(usize),
    /// It was merged, and its changes were taken back.
    Reverted(RevertedMerge),
    /// These paths are not committed.
    Unsaved(Vec<String>),
    /// Its content cannot be saved.
    Stuck(String),
}

/// How many paths are named.
const SHOWN: usize = 2;

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(what) => write!(f, "not known: {what}"),
            Self::InUse(active) => active.fmt(f),
            Self::Young(age) => write!(f, "younger than {age}"),
            Self::Loose(1) => f.write_str("1 commit is not merged"),
            Self::Loose(count) => write!(f, "{count} commits are not merged"),
            Self::Reverted(reverted) => f.write_str(&reverted.words()),
            Self::Unsaved(paths) => {
                write!(f, "not committed: {}", first_of(paths, SHOWN))
            }
            Self::Stuck(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("commits are in other refs"),
            Self::Landed(into, Proof::Tree) => write!(f, "its files are in {into}"),
            Self::Landed(into, Proof::Squash) => write!(f, "squashed into {into}"),
            Self::Landed(into, Proof::Picks) => write!(f, "picked into {into}"),
            Self::Empty => f.write_str("no uncommitted files"),
            Self::Missing => f.write_str("its folder is missing"),
            Self::Old => f.write_str("not in use"),
            Self::Expired(limit) => write!(f, "older than {limit}"),
            Self::Saved => f.write_str("saved first"),
            Self::DeletionFailed(why) => write!(f, "could not be deleted: {why}"),
        }
    }
}

/// Judges all candidates. A branch can be deleted only together with the worktree that has it checked out.
#[must_use]
pub fn judge_all(candidates: &[Candidate], rules: &CleanupRules) -> Vec<CleanupVerdict> {
    let alone: Vec<CleanupVerdict> = candidates.iter().map(|candidate| judge(candidate, rules)).collect();
    let with_place = |(candidate, verdict): (&Candidate, &CleanupVerdict)| {
        let Some(place) = candidate.worktree_index.filter(|_| matches!(verdict, CleanupVerdict::Remove(..)))
        else {
            return verdict.clone();
        };
        match (alone.get(place), candidates.get(place)) {
            (Some(CleanupVerdict::Remove(..)), _) => verdict.clone(),
            (_, Some(place)) => {
                CleanupVerdict::Keep(KeepReason::InUse(InUse::CheckedOut(place.name.clone())))
            }
            (_, None) => CleanupVerdict::Keep(KeepReason::Unknown("where it is checked out".into())),
        }
    };
    let placed: Vec<CleanupVerdict> = candidates.iter().zip(&alone).map(with_place).collect();
    let is_leaving = |(candidate, verdict): &(&Candidate, &CleanupVerdict)| {
        candidate.what == CandidateKind::SessionBranch && matches!(verdict, CleanupVerdict::Remove(..))
    };
    let leaving = candidates.iter().zip(&placed).filter(is_leaving);
    let leaving: HashSet<&String> = leaving.filter_map(|(branch, _)| branch.owners.first()).collect();
    let of_record = |(candidate, verdict): (&Candidate, &CleanupVerdict)| match verdict {
        CleanupVerdict::Keep(KeepReason::InUse(InUse::Branched))
            if candidate.owners.first().is_some_and(|session| leaving.contains(session)) =>
        {
            judge_after_branch(candidate, rules)
        }
        verdict => verdict.clone(),
    };
    candidates.iter().zip(&placed).map(of_record).collect()
}

/// Judges a record whose session's branch is deleted in the same cleanup. It stays until the branch is gone.
fn judge_after_branch(candidate: &Candidate, rules: &CleanupRules) -> CleanupVerdict {
    let mut alone = candidate.clone();
    alone.in_use.retain(|active| *active != InUse::Branched);
    match judge(&alone, rules) {
        CleanupVerdict::Remove(..) => CleanupVerdict::Keep(KeepReason::InUse(InUse::Leaving)),
        kept @ CleanupVerdict::Keep(_) => kept,
    }
}

fn judge(candidate: &Candidate, rules: &CleanupRules) -> CleanupVerdict {
    if let Some(what) = candidate.unknown.first() {
        return CleanupVerdict::Keep(KeepReason::Unknown(what.clone()));
    }
    if let Some(active) = candidate.in_use.first() {
        return CleanupVerdict::Keep(KeepReason::InUse(active.clone()));
    }
    let limit = rules.limit_of(candidate.what);
    match candidate.time {
        None => return CleanupVerdict::Keep(KeepReason::Unknown("how old it is".into())),
        Some(time) if rules.is_young(candidate.what, time) => {
            return CleanupVerdict::Keep(KeepReason::Young(limit));
        }
        Some(_) => {}
    }
    if let UncommittedContent::Stuck(why) = &candidate.content {
        return CleanupVerdict::Keep(KeepReason::Stuck(why.clone()));
    }
    match candidate.what {
        CandidateKind::Trash if candidate.deletion_failed.is_some() => {
            let why = candidate.deletion_failed.clone().unwrap_or_default();
            CleanupVerdict::Remove(Grounds::DeletionFailed(why), Save::NOTHING)
        }
        CandidateKind::Saved => CleanupVerdict::Remove(Grounds::Expired(limit), Save::NOTHING),
        CandidateKind::Trash
        | CandidateKind::Claim
        | CandidateKind::Log
        | CandidateKind::Report
        | CandidateKind::Cache => CleanupVerdict::Remove(Grounds::Old, Save::NOTHING),
        CandidateKind::RemoteBranch => judge_remote(&candidate.commits),
        CandidateKind::Record => judge_work(candidate, UnsavedPolicy::Saved),
        CandidateKind::SessionBranch
        | CandidateKind::Worktree
        | CandidateKind::Folder
        | CandidateKind::Branch
        | CandidateKind::Landing
        | CandidateKind::UnfinishedAttempt => judge_work(candidate, rules.unsaved),
    }
}

/// Nothing can be saved at a remote, so only branches that have landed are deleted.
fn judge_remote(commits: &Commits) -> CleanupVerdict {
    match commits {
        Commits::Held => CleanupVerdict::Remove(Grounds::Held, Save::NOTHING),
        Commits::Copied => CleanupVerdict::Remove(Grounds::Held, Save { commits: true, content: false }),
        Commits::Landed { into, how } => {
            let save = Save { commits: true, content: false };
            CleanupVerdict::Remove(Grounds::Landed(into.clone(), *how), save)
        }
        Commits::Loose(count) => CleanupVerdict::Keep(KeepReason::Loose(*count)),
        Commits::Reverted(reverted) => CleanupVerdict::Keep(KeepReason::Reverted(reverted.clone())),
        Commits::None => CleanupVerdict::Keep(KeepReason::Unknown("what it holds".into())),
    }
}

/// Judges a candidate that may contain work: all of it must be elsewhere, or is saved first.
fn judge_work(candidate: &Candidate, unsaved: UnsavedPolicy) -> CleanupVerdict {
    let is_scratch = matches!(candidate.place, CandidatePlace::Worktree { is_scratch: true, .. });
    if is_scratch {
        return CleanupVerdict::Remove(Grounds::Old, Save::NOTHING);
    }
    let is_missing = matches!(candidate.place, CandidatePlace::Worktree { is_missing: true, .. });
    let content = match &candidate.content {
        UncommittedContent::Unsaved(paths)
            if unsaved == UnsavedPolicy::Kept || candidate.what == CandidateKind::SessionBranch =>
        {
            return CleanupVerdict::Keep(KeepReason::Unsaved(paths.clone()));
        }
        content => *content != UncommittedContent::Nothing,
    };
    let commits = match &candidate.commits {
        Commits::Loose(count) if unsaved == UnsavedPolicy::Kept => {
            return CleanupVerdict::Keep(KeepReason::Loose(*count));
        }
        Commits::Reverted(reverted) if unsaved == UnsavedPolicy::Kept => {
            return CleanupVerdict::Keep(KeepReason::Reverted(reverted.clone()));
        }
        Commits::Loose(_) | Commits::Landed { .. } | Commits::Copied | Commits::Reverted(_) => true,
        Commits::Held | Commits::None => false,
    };
    let grounds = match &candidate.commits {
        _ if content => Grounds::Saved,
        Commits::Loose(_) | Commits::Reverted(_) => Grounds::Saved,
        Commits::Landed { into, how } => Grounds::Landed(into.clone(), *how),
        Commits::Held | Commits::Copied | Commits::None if is_missing => Grounds::Missing,
        Commits::Held | Commits::Copied if candidate.what != CandidateKind::Worktree => Grounds::Held,
        Commits::Held | Commits::Copied | Commits::None => Grounds::Empty,
    };
    CleanupVerdict::Remove(grounds, Save { commits, content })
}
