//! Finds renamed files: pairs of a deleted and a new file with similar content.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::{
    git::{GitError, Repository, TreeChange},
    name::{ObjectKind, Oid},
};

/// The similarity in percent from which a file counts as renamed.
const MIN_SIMILARITY: usize = 50;
/// With more pairs than this among the other files, only files with identical content are paired.
const MAX_PAIRS: usize = 10_000;
/// Larger files are not compared.
const LARGEST_COMPARED_FILE: usize = 1024 * 1024;

/// A file on one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct FileSide {
    pub(in crate::git) path: Vec<u8>,
    pub(in crate::git) mode: u32,
    pub(in crate::git) id: Oid,
}

/// A file that was changed, and perhaps renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct ChangedFile {
    pub(in crate::git) old: Option<FileSide>,
    pub(in crate::git) new: Option<FileSide>,
    /// The similarity in percent, if it was renamed.
    pub(in crate::git) similarity: Option<usize>,
}

/// Whether a mode is that of a regular file.
pub(in crate::git) fn is_regular(mode: u32) -> bool {
    mode == 0o100_644 || mode == 0o100_755
}

impl Repository {
    /// The changed files, sorted by name. A file that became a link, for example, is two entries.
    pub(in crate::git) fn pair_renamed(
        &self,
        changes: Vec<TreeChange>,
    ) -> Result<Vec<ChangedFile>, GitError> {
        let mut files = Vec::new();
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for TreeChange { path, before, after } in changes {
            let side = |(mode, id)| FileSide { path: path.clone(), mode, id };
            let (before, after) = (before.map(side), after.map(side));
            match (before, after) {
                (Some(old), Some(now)) if old.mode & 0o170_000 == now.mode & 0o170_000 => {
                    files.push(ChangedFile { old: Some(old), new: Some(now), similarity: None });
                }
                (old, now) => {
                    gone.extend(old);
                    new.extend(now);
                }
            }
        }
        let (mut gone, mut new): (Vec<_>, Vec<_>) =
            (gone.into_iter().map(Some).collect(), new.into_iter().map(Some).collect());
        for (at, old, percent) in self.find_pairs(&gone, &new)? {
            files.push(ChangedFile { old: gone[old].take(), new: new[at].take(), similarity: Some(percent) });
        }
        let left = |old, new| ChangedFile { old, new, similarity: None };
        files.extend(gone.into_iter().flatten().map(|side| left(Some(side), None)));
        files.extend(new.into_iter().flatten().map(|side| left(None, Some(side))));
        files.sort_by(|a, b| a.path().cmp(b.path()).then(a.new.is_some().cmp(&b.new.is_some())));
        Ok(files)
    }

    /// The renamed files among changes between two trees: their old and new paths.
    pub fn find_renames(&self, changes: &[TreeChange]) -> Result<HashMap<Vec<u8>, Vec<u8>>, GitError> {
        let renamed = |file: ChangedFile| Some((file.old?.path, file.new?.path));
        let files = self.pair_renamed(changes.to_vec())?.into_iter();
        Ok(files.filter(|file| file.similarity.is_some()).filter_map(renamed).collect())
    }

    /// Pairs of a new file and a deleted one, with their similarity. Each file occurs at most once. Identical files are
    /// matched one to one first, because a folder can contain thousands of them, such as empty ones.
    fn find_pairs(
        &self,
        gone: &[Option<FileSide>],
        new: &[Option<FileSide>],
    ) -> Result<Vec<(usize, usize, usize)>, GitError> {
        let regular = |sides: &[Option<FileSide>]| -> Vec<(usize, Oid)> {
            let sides = sides.iter().enumerate().filter_map(|(at, side)| Some((at, side.as_ref()?)));
            sides.filter(|(_, side)| is_regular(side.mode)).map(|(at, side)| (at, side.id)).collect()
        };
        let mut by_id: HashMap<Oid, VecDeque<usize>> = HashMap::new();
        for (old, id) in regular(gone) {
            by_id.entry(id).or_default().push_back(old);
        }
        let (mut pairs, mut left) = (Vec::new(), Vec::new());
        for (at, id) in regular(new) {
            match by_id.get_mut(&id).and_then(VecDeque::pop_front) {
                Some(old) => pairs.push((at, old, 100)),
                None => left.push((at, id)),
            }
        }
        let mut unpaired: Vec<(usize, Oid)> =
            by_id.into_iter().flat_map(|(id, olds)| olds.into_iter().map(move |old| (old, id))).collect();
        unpaired.sort_unstable_by_key(|(old, _)| *old);
        let mut is_taken = (vec![false; new.len()], vec![false; gone.len()]);
        for (percent, at, old) in self.rate_pairs(&unpaired, &left)? {
            if !is_taken.0[at] && !is_taken.1[old] {
                (is_taken.0[at], is_taken.1[old]) = (true, true);
                pairs.push((at, old, percent));
            }
        }
        Ok(pairs)
    }

    /// The similar pairs among these files, best first: percentage, new file, deleted file.
    fn rate_pairs(
        &self,
        gone: &[(usize, Oid)],
        new: &[(usize, Oid)],
    ) -> Result<Vec<(usize, usize, usize)>, GitError> {
        let count = gone.len().saturating_mul(new.len());
        if count == 0 || count > MAX_PAIRS {
            return Ok(Vec::new());
        }
        let hashes = |sides: &[(usize, Oid)]| -> Result<Vec<(usize, LineHashes)>, GitError> {
            let mut found = Vec::new();
            for (at, id) in sides {
                found.extend(self.line_hashes_of(*id)?.map(|hashes| (*at, hashes)));
            }
            Ok(found)
        };
        let (gone, new) = (hashes(gone)?, hashes(new)?);
        let mut rated = Vec::new();
        for (at, now) in &new {
            let similar = gone.iter().filter_map(|(old, before)| Some((before.similarity(now)?, *at, *old)));
            let similar = similar.filter(|(percent, ..)| *percent >= MIN_SIMILARITY);
            rated.extend(similar.map(|(percent, at, old)| (percent.min(99), at, old)));
        }
        rated.sort_by_key(|(percent, at, old)| (usize::MAX - percent, *at, *old));
        Ok(rated)
    }

    fn line_hashes_of(&self, id: Oid) -> Result<Option<LineHashes>, GitError> {
        let unknown = || GitError::Unknown(id.to_string(), ObjectKind::Blob.as_str());
        let text = self.read_object(ObjectKind::Blob, id)?.ok_or_else(unknown)?;
        Ok((text.len() <= LARGEST_COMPARED_FILE && !text.is_empty()).then(|| LineHashes::of(&text)))
    }
}

impl ChangedFile {
    fn path(&self) -> &[u8] {
        self.new.as_ref().or(self.old.as_ref()).map_or(&[], |side| side.path.as_slice())
    }
}

/// The lines of a file by hash, with the number of their bytes.
struct LineHashes {
    bytes: HashMap<u64, usize>,
    size: usize,
}

impl LineHashes {
    fn of(text: &[u8]) -> Self {
        let mut bytes: HashMap<u64, usize> = HashMap::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            *bytes.entry(hasher.finish()).or_default() += line.len();
        }
        Self { bytes, size: text.len() }
    }

    /// The percentage of bytes of the larger file that are in both; `None` if the sizes alone rule it out.
    fn similarity(&self, other: &Self) -> Option<usize> {
        let (smaller, larger) = (self.size.min(other.size), self.size.max(other.size));
        if larger == 0 || smaller * 100 < larger * MIN_SIMILARITY {
            return None;
        }
        let common =
            |(line, count): (&u64, &usize)| other.bytes.get(line).map_or(0, |there| *there.min(count));
        Some(self.bytes.iter().map(common).sum::<usize>() * 100 / larger)
    }
}
