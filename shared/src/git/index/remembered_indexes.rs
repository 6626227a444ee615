//! Remembers from one run to the next which indexes of lanes were known. Otherwise the first task in each lane would wait
//! until git has read every file there again.
//!
//! Only digests are kept, in the user's state folder, where a sandboxed agent cannot write. An index that differs from
//! its digest, or has none, is treated as unknown. A file that has changed since then has another ctime, which is
//! compared as always. With other settings, git might convert the same file to another content, so they are part of the
//! digest.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::known_index::{KnownIndex, list_known_indexes};
use crate::{
    git::{Repository, settings::frozen_settings::find_state_folder},
    name::digest,
    safe_files,
};

/// The folder of the records in our state folder. There is one for each repository.
const FOLDER: &str = "indexes";
/// The largest record that is read; an entry has about 150 bytes.
const LARGEST_RECORD: u64 = 1 << 20;

/// The digests of indexes, by their files.
type IndexDigests = BTreeMap<PathBuf, String>;

impl Repository {
    /// Records the known indexes of all linked worktrees, at the end of a run. Without a record, the next run is only
    /// slower, so errors are ignored. If two runs end at the same time, the record of one of them may be lost.
    pub fn remember_indexes(&self) {
        let (Some(record), Some(settings)) = (self.index_record(), self.frozen_digest()) else { return };
        let worktrees = self.common_dir.join("worktrees");
        let mut digests = read_record(&record);
        digests.retain(|file, _| file.exists());
        let known = list_known_indexes().into_iter().filter(|(file, _)| file.starts_with(&worktrees));
        digests.extend(known.map(|(file, index)| (file, index.digest(&settings))));
        let mut text = Vec::new();
        for (file, digest) in &digests {
            text.extend([digest.as_bytes(), b" ", file.as_os_str().as_bytes(), b"\0"].concat());
        }
        let _ = safe_files::write_with_mode(&record, &text, 0o600);
    }

    /// Whether an index was known when an earlier run ended, and has not changed since.
    pub(super) fn is_index_remembered(&self, file: &Path, index: &KnownIndex) -> bool {
        let (Some(record), Some(settings)) = (self.index_record(), self.frozen_digest()) else {
            return false;
        };
        read_record(&record).get(file).is_some_and(|digest| *digest == index.digest(&settings))
    }

    fn index_record(&self) -> Option<PathBuf> {
        let key = digest(self.common_dir.as_os_str().as_bytes());
        Some(find_state_folder()?.join(FOLDER).join(&key[..16]))
    }
}

fn read_record(record: &Path) -> IndexDigests {
    let text = safe_files::read_up_to(record, LARGEST_RECORD).unwrap_or_default();
    text.split(|byte| *byte == 0).filter_map(parse_entry).collect()
}

fn parse_entry(entry: &[u8]) -> Option<(PathBuf, String)> {
    let (digest, file) = entry.split_at_checked(entry.iter().position(|byte| *byte == b' ')?)?;
    Some((PathBuf::from(OsStr::from_bytes(&file[1..])), String::from_utf8(digest.to_vec()).ok()?))
}
