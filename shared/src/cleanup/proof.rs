//! Finds out whether commits that no kept ref leads to are in a branch by their content: squashed, cherry-picked, or
//! with the same files. Contents are compared byte by byte, including white space and modes.

use std::collections::{HashMap, HashSet};

use super::Proof;
use crate::{
    git::{GitError, PathChange, Repository},
    name::Oid,
};

/// Commits with their parents.
type LooseCommits = HashMap<Oid, Vec<Oid>>;

/// A tip that may have landed on one of these branches.
pub(super) struct Open {
    /// The index of its candidate.
    pub(super) at: usize,
    pub(super) tip: Oid,
    pub(super) targets: Vec<(String, Oid)>,
}

/// How many of the newest commits of a branch are searched.
const MAX_COMMITS: usize = 10_000;

/// The commits reachable from a tip that are nowhere else, the tip first.
pub(super) fn own_commits(loose: &LooseCommits, tip: Oid) -> Vec<Oid> {
    let mut seen = HashSet::from([tip]);
    let mut found = vec![tip];
    let mut at = 0;
    while let Some(commit) = found.get(at).copied() {
        at += 1;
        let parents = loose.get(&commit).into_iter().flatten();
        found.extend(parents.filter(|parent| loose.contains_key(parent) && seen.insert(**parent)));
    }
    found
}

/// Finds the branch that has the content of each tip, and how, by the index of its candidate.
pub(super) fn prove(
    repository: &Repository,
    loose: &LooseCommits,
    open: &[Open],
) -> Result<HashMap<usize, (String, Proof)>, GitError> {
    let mut targets: Vec<(String, Oid)> = Vec::new();
    for target in open.iter().flat_map(|open| &open.targets) {
        if !targets.iter().any(|known| known.1 == target.1) {
            targets.push(target.clone());
        }
    }
    let mut proved = HashMap::new();
    for (name, tip) in targets {
        let open_branches = open
            .iter()
            .filter(|one| !proved.contains_key(&one.at) && one.targets.iter().any(|target| target.1 == tip));
        let works = works_on(repository, loose, open_branches.collect(), tip)?;
        let found = LandedCheck { repository, loose, target: tip }.judge(works)?;
        proved.extend(found.into_iter().map(|(at, how)| (at, (name.clone(), how))));
    }
    Ok(proved)
}

/// A tip, and what it changed since it left the target.
struct Work {
    at: usize,
    tip: Oid,
    base: Oid,
    changes: Vec<PathChange>,
}

/// What the tips changed. One that changed nothing is left out: there is no content to look for.
fn works_on(
    repository: &Repository,
    loose: &LooseCommits,
    open_branches: Vec<&Open>,
    target: Oid,
) -> Result<Vec<Work>, GitError> {
    let mut roots: HashMap<Oid, Vec<Oid>> = HashMap::new();
    for open in &open_branches {
        roots.insert(open.tip, roots_of(loose, open.tip));
    }
    let all: Vec<Oid> = roots.values().flatten().copied().collect();
    let elsewhere = repository.loose_commits(&all, &[target])?;
    let mut bases = Vec::new();
    for open in open_branches {
        let base = match roots.get(&open.tip).map(Vec::as_slice) {
            Some([root]) if !elsewhere.contains_key(root) => Some(*root),
            Some([]) | None => None,
            Some(_) => repository.find_merge_base(open.tip, target)?,
        };
        bases.extend(base.map(|base| (open.at, open.tip, base)));
    }
    let pairs: Vec<(Oid, Option<Oid>)> = bases.iter().map(|(_, tip, base)| (*tip, Some(*base))).collect();
    let changes = repository.changes_of(&pairs)?;
    let work = |(at, tip, base)| {
        let changes = changes.get(&tip).cloned().unwrap_or_default();
        (!changes.is_empty()).then_some(Work { at, tip, base, changes })
    };
    Ok(bases.into_iter().filter_map(work).collect())
}

/// The parents of a tip's own commits that are not its own.
fn roots_of(loose: &LooseCommits, tip: Oid) -> Vec<Oid> {
    let own = own_commits(loose, tip);
    let parents = own.iter().filter_map(|commit| loose.get(commit)).flatten();
    let mut roots: Vec<Oid> = parents.filter(|parent| !loose.contains_key(parent)).copied().collect();
    roots.sort();
    roots.dedup();
    roots
}

/// Compares work with one branch.
struct LandedCheck<'a> {
    repository: &'a Repository,
    loose: &'a LooseCommits,
    target: Oid,
}

impl LandedCheck<'_> {
    fn judge(&self, works: Vec<Work>) -> Result<Vec<(usize, Proof)>, GitError> {
        if works.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.repository.files_of(self.target)?;
        let is_there = |change: &PathChange| files.get(&change.path).copied() == change.after;
        let (same, other): (Vec<Work>, Vec<Work>) =
            works.into_iter().partition(|work| work.changes.iter().all(is_there));
        let mut proved: Vec<(usize, Proof)> = same.iter().map(|work| (work.at, Proof::Tree)).collect();
        if other.is_empty() {
            return Ok(proved);
        }
        let known = Known::read(self.repository, self.target)?;
        let (squashed, other) = self.find_squashed(&known, other)?;
        proved.extend(squashed.into_iter().map(|at| (at, Proof::Squash)));
        proved.extend(self.find_picked(&known, &other)?.into_iter().map(|at| (at, Proof::Picks)));
        Ok(proved)
    }

    /// Work whose whole change is that of one commit.
    fn find_squashed(&self, known: &Known, works: Vec<Work>) -> Result<(Vec<usize>, Vec<Work>), GitError> {
        let alike: HashMap<Oid, Vec<Oid>> =
            works.iter().map(|work| (work.tip, known.alike(&work.changes))).collect();
        let open_branches =
            works.iter().filter(|work| alike.get(&work.tip).is_some_and(|found| !found.is_empty()));
        let open_branches: Vec<(Oid, Option<Oid>)> =
            open_branches.map(|work| (work.tip, Some(work.base))).collect();
        let own = self.repository.patches_of(&open_branches)?;
        let theirs = self.patches(alike.values().flatten())?;
        let is_squashed = |work: &Work| {
            let patch = own.get(&work.tip);
            alike
                .get(&work.tip)
                .into_iter()
                .flatten()
                .any(|commit| patch.is_some() && theirs.get(commit) == patch)
        };
        let (squashed, other): (Vec<Work>, Vec<Work>) = works.into_iter().partition(is_squashed);
        Ok((squashed.iter().map(|work| work.at).collect(), other))
    }

    /// Work of which every commit that changes something was cherry-picked. Merges are excluded: they may have content
    /// that no parent has.
    fn find_picked(&self, known: &Known, works: &[Work]) -> Result<Vec<usize>, GitError> {
        let is_line =
            |own: &[Oid]| own.iter().all(|commit| self.loose.get(commit).is_some_and(|p| p.len() < 2));
        let lines: Vec<(usize, Vec<Oid>)> = works
            .iter()
            .map(|work| (work.at, own_commits(self.loose, work.tip)))
            .filter(|(_, own)| is_line(own))
            .collect();
        let all: Vec<(Oid, Option<Oid>)> =
            lines.iter().flat_map(|(_, own)| own).map(|id| (*id, None)).collect();
        let changes = self.repository.changes_of(&all)?;
        let full = |own: &[Oid]| -> Vec<Oid> {
            let is_full = |id: &&Oid| changes.get(*id).is_some_and(|changes| !changes.is_empty());
            own.iter().filter(is_full).copied().collect()
        };
        let alike = |id: &Oid| changes.get(id).map(|changes| known.alike(changes)).unwrap_or_default();
        let lines: Vec<(usize, Vec<Oid>)> = lines
            .into_iter()
            .map(|(at, own)| (at, full(&own)))
            .filter(|(_, own)| own.iter().all(|id| !alike(id).is_empty()))
            .collect();
        let own: Vec<(Oid, Option<Oid>)> =
            lines.iter().flat_map(|(_, own)| own).map(|id| (*id, None)).collect();
        let own_patches = self.repository.patches_of(&own)?;
        let candidates: Vec<Oid> = lines.iter().flat_map(|(_, own)| own).flat_map(alike).collect();
        let theirs: HashSet<String> = self.patches(candidates.iter())?.into_values().collect();
        let is_picked = |id: &Oid| own_patches.get(id).is_some_and(|patch| theirs.contains(patch));
        Ok(lines.into_iter().filter(|(_, own)| own.iter().all(is_picked)).map(|(at, _)| at).collect())
    }

    fn patches<'b>(&self, commits: impl Iterator<Item = &'b Oid>) -> Result<HashMap<Oid, String>, GitError> {
        let mut commits: Vec<(Oid, Option<Oid>)> = commits.map(|commit| (*commit, None)).collect();
        commits.sort();
        commits.dedup();
        self.repository.patches_of(&commits)
    }
}

/// The newest commits of a branch, by the paths that they changed. Only commits with the same paths can be the same.
struct Known(HashMap<Vec<(Vec<u8>, bool)>, Vec<Oid>>);

impl Known {
    fn read(repository: &Repository, target: Oid) -> Result<Self, GitError> {
        let commits = repository.newest_commits(target, MAX_COMMITS)?;
        let commits: Vec<(Oid, Option<Oid>)> = commits.into_iter().map(|commit| (commit, None)).collect();
        let mut known: HashMap<Vec<(Vec<u8>, bool)>, Vec<Oid>> = HashMap::new();
        for (commit, changes) in repository.changes_of(&commits)? {
            known.entry(shape(&changes)).or_default().push(commit);
        }
        Ok(Self(known))
    }

    fn alike(&self, changes: &[PathChange]) -> Vec<Oid> {
        self.0.get(&shape(changes)).cloned().unwrap_or_default()
    }
}

/// The paths that were changed, and whether they still exist.
fn shape(changes: &[PathChange]) -> Vec<(Vec<u8>, bool)> {
    changes.iter().map(|change| (change.path.clone(), change.after.is_some())).collect()
}
