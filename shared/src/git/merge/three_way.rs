//! Computes merges again in this process. git does not hash the objects that it reads, and an agent in another lane can
//! replace one for the moment in which `git merge-tree` reads it. So git only proposes a result: each of its paths must
//! follow from the three trees, which are read and hashed here. A path that does not is a conflict, and so is one that
//! a merge driver has written: its result has not been reviewed.

use std::collections::{BTreeMap, BTreeSet};

use git2::{MergeFileInput, MergeFileOptions};

use crate::{
    git::{
        ConflictKind, GitError, Merge, MergeConflict, Repository, TreeChange, Version,
        merge::renames::is_regular,
    },
    message::visible,
    name::{ObjectKind, Oid},
};

/// Mode and content of a path; `None` if it does not exist.
type Entry = Option<(u32, Oid)>;
type Path = Vec<u8>;

/// How many pairs of files are compared in one merge to find renames.
const MAX_PAIRS: usize = 20_000;
/// How many bytes git searches for a zero byte to decide whether a file is binary.
const BINARY_CHECK_LEN: usize = 8000;

/// The result of a merge, and whether all of it follows from the merged trees.
pub(in crate::git) struct CheckedMerge {
    pub(in crate::git) merge: Merge,
    pub(in crate::git) is_explained: bool,
}

/// Algorithms to compare lines. git uses one that libgit2 does not have, but if there is no conflict, they nearly
/// always give the same result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Usual,
    Patience,
    Minimal,
}

/// The changes of both sides since one common ancestor.
struct Sides {
    ours: BTreeMap<Path, TreeChange>,
    theirs: BTreeMap<Path, TreeChange>,
}

/// The three versions of a path.
#[derive(Clone, Copy)]
struct Versions {
    base: Entry,
    ours: Entry,
    theirs: Entry,
}

impl Sides {
    /// The versions of a path that at least one side has changed.
    fn find(&self, path: &[u8]) -> Option<Versions> {
        let (ours, theirs) = (self.ours.get(path), self.theirs.get(path));
        let base = ours.or(theirs)?.before;
        let after = |change: Option<&TreeChange>| change.map_or(base, |change| change.after);
        Some(Versions { base, ours: after(ours), theirs: after(theirs) })
    }

    /// The paths that one side has added and the other has not.
    fn added(side: &BTreeMap<Path, TreeChange>, other: &BTreeMap<Path, TreeChange>) -> Vec<Path> {
        let new = side.values().filter(|change| change.before.is_none());
        new.map(|change| change.path.clone()).filter(|path| !other.contains_key(path)).collect()
    }
}

impl Versions {
    /// The result, if at most one side has changed something, or both have made the same change.
    fn settled(self) -> Option<Entry> {
        one_of([self.base, self.ours, self.theirs])
    }

    /// All three of them, if they are regular files.
    fn as_files(self) -> Option<[(u32, Oid); 3]> {
        let files = [self.base?, self.ours?, self.theirs?];
        files.iter().all(|(mode, _)| is_regular(*mode)).then_some(files)
    }
}

/// The result for three values of which at most one side has changed.
fn one_of<T: PartialEq + Copy>([base, ours, theirs]: [T; 3]) -> Option<T> {
    if ours == theirs || base == theirs {
        return Some(ours);
    }
    (base == ours).then_some(theirs)
}

impl Repository {
    /// Merges the lines of two versions of a file with the common ancestor `base`, and stores the result. Attributes
    /// are ignored. `None` if there is a conflict.
    pub fn merge_blobs(&self, ours: Oid, base: Oid, theirs: Oid) -> Result<Option<Oid>, GitError> {
        let joined = self.join_lines([base, ours, theirs], Comparison::Usual)?;
        joined.map(|text| self.write_object(ObjectKind::Blob, &text)).transpose()
    }

    fn join_lines(&self, blobs: [Oid; 3], comparison: Comparison) -> Result<Option<Vec<u8>>, GitError> {
        let [base, ours, theirs] = self.read_texts(blobs)?;
        let mut options = MergeFileOptions::new();
        options.patience(comparison == Comparison::Patience).minimal(comparison == Comparison::Minimal);
        let merged = merge_text([&base, &ours, &theirs], &mut options);
        Ok(merged.and_then(|(text, is_clean)| is_clean.then_some(text)))
    }

    fn read_texts(&self, blobs: [Oid; 3]) -> Result<[Vec<u8>; 3], GitError> {
        let read = |id: Oid| {
            let unknown = || GitError::Unknown(id.to_string(), ObjectKind::Blob.as_str());
            self.read_object(ObjectKind::Blob, id)?.ok_or_else(unknown)
        };
        Ok([read(blobs[0])?, read(blobs[1])?, read(blobs[2])?])
    }

    /// Whether `proposed` is the result of a merge of these versions, by lines or as a whole.
    fn is_merge_of(&self, versions: Versions, proposed: Entry) -> Result<bool, GitError> {
        if let Some(settled) = versions.settled() {
            return Ok(settled == proposed);
        }
        let (Some(files), Some((told_mode, proposed))) = (versions.as_files(), proposed) else {
            return Ok(false);
        };
        if one_of(files.map(|(mode, _)| mode)) != Some(told_mode) {
            return Ok(false);
        }
        let blobs = files.map(|(_, id)| id);
        if let Some(blob) = one_of(blobs) {
            return Ok(blob == proposed);
        }
        for comparison in [Comparison::Usual, Comparison::Patience, Comparison::Minimal] {
            let joined = self.join_lines(blobs, comparison)?;
            if joined.is_some_and(|text| Oid::of(ObjectKind::Blob, &text, self.format) == proposed) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares git's merge of two commits with their trees. In the returned tree, all files follow from these trees.
    /// Files with conflicts have conflict markers, or the content of our side.
    pub(in crate::git) fn check_merge(
        &self,
        [ours, theirs]: [Oid; 2],
        proposed: Merge,
    ) -> Result<CheckedMerge, GitError> {
        let (tree, conflicts) = match proposed {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let mut sides = Vec::new();
        let [our_tree, their_tree] = [self.tree_of(ours)?, self.tree_of(theirs)?];
        let mut bases = Vec::new();
        for base in self.merge_bases(ours, theirs)? {
            bases.push(self.tree_of(base)?);
        }
        if bases.is_empty() {
            bases.push(self.empty_tree()?);
        }
        for base in bases {
            let [ours, theirs] = [self.changes(base, our_tree)?, self.changes(base, their_tree)?];
            sides.push(Sides { ours: by_path(ours), theirs: by_path(theirs) });
        }
        let proposed = by_path(self.changes(our_tree, tree)?);
        let mut review = MergeReview { repository: self, sides, proposed, conflicts, pairs: 0 };
        let mut open = review.unexplained_paths()?;
        review.explain_renames(&mut open)?;
        if open.is_empty() && review.conflicts.is_empty() {
            return Ok(CheckedMerge { merge: Merge::Clean(tree), is_explained: true });
        }
        let tree = self.tree_with(our_tree, &review.proven_changes(&open, [ours, theirs])?)?;
        let is_explained = open.is_empty();
        let own: Vec<MergeConflict> = open.iter().map(|path| review.conflict_at(path)).collect();
        let conflicts = review.conflicts.into_iter().chain(own).collect();
        Ok(CheckedMerge { merge: Merge::Conflicted(tree, conflicts), is_explained })
    }
}

fn by_path(changes: Vec<TreeChange>) -> BTreeMap<Path, TreeChange> {
    changes.into_iter().map(|change| (change.path.clone(), change)).collect()
}

/// The merge of three texts, with conflict markers, and whether there is no conflict; `None` if one of them is binary.
fn merge_text(texts: [&[u8]; 3], options: &mut MergeFileOptions) -> Option<(Vec<u8>, bool)> {
    // libgit2 returns no content for these.
    if texts.iter().any(|text| text[..text.len().min(BINARY_CHECK_LEN)].contains(&0)) {
        return None;
    }
    let [base, ours, theirs] = texts.map(|text| {
        let mut input = MergeFileInput::new();
        input.content(text);
        input
    });
    let merged = git2::merge_file(&base, &ours, &theirs, Some(options)).ok()?;
    Some((merged.content().to_vec(), merged.is_automergeable()))
}

/// A result that git proposes, and the changes from which it has to follow.
struct MergeReview<'a> {
    repository: &'a Repository,
    sides: Vec<Sides>,
    /// The differences between git's result and our side.
    proposed: BTreeMap<Path, TreeChange>,
    conflicts: Vec<MergeConflict>,
    /// How many pairs of files were compared so far.
    pairs: usize,
}

impl MergeReview<'_> {
    /// The entry of git's result at a path.
    fn proposed_at(&self, path: &[u8]) -> Entry {
        let ours = || self.sides.iter().find_map(|sides| sides.find(path)).and_then(|found| found.ours);
        self.proposed.get(path).map_or_else(ours, |change| change.after)
    }

    /// Whether git itself reports a conflict at this path.
    fn is_in_conflict(&self, path: &[u8]) -> bool {
        let path = String::from_utf8_lossy(path);
        self.conflicts.iter().any(|conflict| conflict.is_about(&path))
    }

    /// All paths that git or one of the sides has changed.
    fn paths(&self) -> BTreeSet<Path> {
        let theirs = self.sides.iter().flat_map(|sides| sides.theirs.keys());
        self.proposed.keys().chain(theirs).cloned().collect()
    }

    /// The paths that do not follow from the versions of the same path.
    fn unexplained_paths(&self) -> Result<BTreeSet<Path>, GitError> {
        let mut open = BTreeSet::new();
        for path in self.paths() {
            if !self.is_in_conflict(&path) && !self.is_explained(&path)? {
                open.insert(path);
            }
        }
        Ok(open)
    }

    fn is_explained(&self, path: &[u8]) -> Result<bool, GitError> {
        for versions in self.sides.iter().filter_map(|sides| sides.find(path)) {
            if self.repository.is_merge_of(versions, self.proposed_at(path))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Explains renames: a file that one side renamed and the other changed is changed under its new name.
    fn explain_renames(&mut self, open: &mut BTreeSet<Path>) -> Result<(), GitError> {
        for path in open.clone() {
            for at in 0..self.sides.len() {
                if let Some(name) = self.find_rename(at, &path, open)? {
                    open.remove(&path);
                    // If both sides renamed it, nothing follows for its old name.
                    if self.proposed_at(&path).is_none() {
                        open.remove(&name);
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// The other name of a renamed file, if git's result follows from the rename.
    fn find_rename(
        &mut self,
        at: usize,
        path: &[u8],
        open: &BTreeSet<Path>,
    ) -> Result<Option<Path>, GitError> {
        let sides = &self.sides[at];
        let Some(here) = sides.find(path) else { return Ok(None) };
        let Sides { ours, theirs } = sides;
        let is_gone = self.proposed_at(path).is_none();
        // Both sides renamed it to this name, or one of them from this name.
        let mut names = match (here.base, here.ours, here.theirs) {
            (None, Some(_), Some(_)) => gone_from_both(sides),
            (Some(_), None, Some(_)) if is_gone => Sides::added(ours, theirs),
            (Some(_), Some(_), None) if is_gone => Sides::added(theirs, ours),
            _ => return Ok(None),
        };
        names.sort_by_key(|name| (!open.contains(name), last_part(name) != last_part(path)));
        for name in names {
            let sides = &self.sides[at];
            let Some(there) = sides.find(&name) else { continue };
            let (versions, proposed) = match (here.base, here.ours, here.theirs) {
                (None, ours, theirs) => (Versions { base: there.base, ours, theirs }, self.proposed_at(path)),
                (base, None, theirs) => {
                    (Versions { base, ours: there.ours, theirs }, self.proposed_at(&name))
                }
                (base, ours, _) => (Versions { base, ours, theirs: there.theirs }, self.proposed_at(&name)),
            };
            self.pairs += 1;
            if self.pairs > MAX_PAIRS {
                return Ok(None);
            }
            if self.repository.is_merge_of(versions, proposed)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The changes to our side for a tree that contains the explained part of git's result, and conflict markers in the
    /// other files.
    fn proven_changes(&self, open: &BTreeSet<Path>, commits: [Oid; 2]) -> Result<Vec<TreeChange>, GitError> {
        let mut changes = Vec::new();
        for path in self.paths() {
            let is_open =
                open.contains(&path) || (self.is_in_conflict(&path) && !self.is_explained(&path)?);
            let after = if is_open {
                self.marked(&path, commits)?
            } else {
                self.proposed.get(&path).map(|c| c.after)
            };
            if let Some(after) = after {
                changes.push(TreeChange { path, before: None, after });
            }
        }
        Ok(changes)
    }

    /// A file with conflict markers, stored; `None` if our side stays.
    fn marked(&self, path: &[u8], commits: [Oid; 2]) -> Result<Option<Entry>, GitError> {
        let Some(found) = self.sides.iter().find_map(|sides| sides.find(path)) else { return Ok(None) };
        let (Some((mode, ours)), Some((other, theirs))) = (found.ours, found.theirs) else { return Ok(None) };
        if !is_regular(mode) || !is_regular(other) {
            return Ok(None);
        }
        let base = found.base.filter(|(mode, _)| is_regular(*mode)).map(|(_, id)| id);
        let base = base.map_or_else(|| self.repository.write_blob(b""), Ok)?;
        let [base, ours, theirs] = self.repository.read_texts([base, ours, theirs])?;
        let mut options = MergeFileOptions::new();
        options.style_zdiff3(true).our_label(commits[0].to_string()).their_label(commits[1].to_string());
        let Some((text, _)) = merge_text([&base, &ours, &theirs], &mut options) else { return Ok(None) };
        Ok(Some(Some((mode, self.repository.write_blob(&text)?))))
    }

    /// The conflict at a path that does not follow from the merged trees.
    fn conflict_at(&self, path: &[u8]) -> MergeConflict {
        let shown = String::from_utf8_lossy(path).into_owned();
        let found = self.sides.iter().find_map(|sides| sides.find(path));
        let is_joined = found.is_some_and(|found| found.settled().is_none());
        let (kind, why) = if is_joined {
            (ConflictKind::Driver, "both sides changed it, and it was not merged line by line")
        } else {
            (ConflictKind::Unknown, "the result differs from both sides there")
        };
        let version = |entry: Entry| {
            entry.map(|(mode, id)| Version { path: shown.clone(), mode: format!("{mode:06o}"), id })
        };
        MergeConflict {
            kind,
            message: format!("{}: {why}", visible(&shown)),
            base: version(found.and_then(|found| found.base)),
            ours: version(found.and_then(|found| found.ours)),
            theirs: version(found.and_then(|found| found.theirs)),
            paths: vec![shown.clone()],
        }
    }
}

fn gone_from_both(sides: &Sides) -> Vec<Path> {
    let is_gone = |change: &&TreeChange| change.after.is_none();
    let gone = sides.ours.values().filter(is_gone).map(|change| &change.path);
    gone.filter(|path| sides.theirs.get(*path).is_some_and(|change| change.after.is_none()))
        .cloned()
        .collect()
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
