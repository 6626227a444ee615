//! Finds renamed files: pairs of a deleted and a new file with similar content.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{GitError, Repository, TreeChange};
use crate::name::{ObjectKind, Oid};

/// The similarity in percent from which a file counts as renamed.
const MIN_SIMILARITY: usize = 50;
/// With more pairs than this, only files with identical content are paired.
const MAX_PAIRS: usize = 10_000;
/// Larger files are not compared.
const LARGEST: usize = 1024 * 1024;

/// A file on one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSide {
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    pub(super) id: Oid,
}

/// A file that was changed, and perhaps renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedFile {
    pub(super) old: Option<FileSide>,
    pub(super) new: Option<FileSide>,
    /// The similarity in percent, if it was renamed.
    pub(super) similarity: Option<usize>,
}

/// Whether a mode is that of a regular file.
pub(super) fn is_regular(mode: u32) -> bool {
    mode == 0o100_644 || mode == 0o100_755
}

impl Repository {
    /// The changed files, sorted by name. A file that became a link, for example, is two entries.
    pub(super) fn pair_renamed(&self, changes: Vec<TreeChange>) -> Result<Vec<ChangedFile>, GitError> {
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
        for (at, old, percent) in self.find_pairs(&gone, &new)? {
            let file = ChangedFile {
                old: Some(gone[old].clone()),
                new: Some(new[at].clone()),
                similarity: Some(percent),
            };
            files.push(file);
        }
        let is_paired = |side: &FileSide, of: fn(&ChangedFile) -> &Option<FileSide>| {
            files.iter().any(|file| file.similarity.is_some() && of(file).as_ref() == Some(side))
        };
        let left = |old, new| ChangedFile { old, new, similarity: None };
        let gone: Vec<ChangedFile> = (gone.iter().filter(|side| !is_paired(side, |file| &file.old)))
            .map(|side| left(Some(side.clone()), None))
            .collect();
        let new: Vec<ChangedFile> = (new.iter().filter(|side| !is_paired(side, |file| &file.new)))
            .map(|side| left(None, Some(side.clone())))
            .collect();
        files.extend(gone.into_iter().chain(new));
        files.sort_by(|a, b| a.path().cmp(b.path()).then(a.new.is_some().cmp(&b.new.is_some())));
        Ok(files)
    }

    /// The renamed files among changes between two trees: their old and new paths.
    pub fn find_renames(&self, changes: &[TreeChange]) -> Result<HashMap<Vec<u8>, Vec<u8>>, GitError> {
        let renamed = |file: ChangedFile| Some((file.old?.path, file.new?.path));
        let files = self.pair_renamed(changes.to_vec())?.into_iter();
        Ok(files.filter(|file| file.similarity.is_some()).filter_map(renamed).collect())
    }

    /// Pairs of a new file and a deleted one, with their similarity. Each file occurs at most once.
    fn find_pairs(
        &self,
        gone: &[FileSide],
        new: &[FileSide],
    ) -> Result<Vec<(usize, usize, usize)>, GitError> {
        let mut rated = Vec::new();
        let is_small = gone.len().saturating_mul(new.len()) <= MAX_PAIRS;
        let parts = |sides: &[FileSide]| -> Result<Vec<Option<LineHashes>>, GitError> {
            if !is_small || gone.is_empty() || new.is_empty() {
                return Ok(sides.iter().map(|_| None).collect());
            }
            sides.iter().map(|side| self.line_hashes_of(side)).collect()
        };
        let (old_parts, new_parts) = (parts(gone)?, parts(new)?);
        let mut by_id: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (at, old) in gone.iter().enumerate().filter(|(_, old)| is_regular(old.mode)) {
            by_id.entry(old.id).or_default().push(at);
        }
        for (at, now) in new.iter().enumerate().filter(|(_, now)| is_regular(now.mode)) {
            rated.extend(by_id.get(&now.id).into_iter().flatten().map(|old| (100, at, *old)));
            for (old, parts) in old_parts.iter().enumerate() {
                if let (Some(old_parts), Some(new_parts)) = (parts, &new_parts[at])
                    && let Some(percent) =
                        old_parts.similarity(new_parts).filter(|found| *found >= MIN_SIMILARITY)
                {
                    rated.push((percent.min(99), at, old));
                }
            }
        }
        rated.sort_by_key(|(percent, at, old)| (usize::MAX - percent, *at, *old));
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for (percent, at, old) in rated {
            if !pairs.iter().any(|pair| pair.0 == at || pair.1 == old) {
                pairs.push((at, old, percent));
            }
        }
        Ok(pairs)
    }

    fn line_hashes_of(&self, side: &FileSide) -> Result<Option<LineHashes>, GitError> {
        if !is_regular(side.mode) {
            return Ok(None);
        }
        let unknown = || GitError::Unknown(side.id.to_string(), ObjectKind::Blob.as_str());
        let text = self.read_object(ObjectKind::Blob, side.id)?.ok_or_else(unknown)?;
        Ok((text.len() <= LARGEST && !text.is_empty()).then(|| LineHashes::of(&text)))
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
