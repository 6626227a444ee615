//! Records which paths below a folder this process itself writes, so that a scan of the folder can be updated instead
//! of repeated.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Weak},
};

use crate::mutex::MutexExt;

/// The active journals.
static OPEN: Mutex<Vec<Weak<Journal>>> = Mutex::new(Vec::new());

/// The paths below a folder that this process has written, moved or removed since the journal began.
#[derive(Debug)]
pub struct Journal {
    top: PathBuf,
    paths: Mutex<BTreeSet<PathBuf>>,
}

impl Journal {
    /// Begins a journal.
    #[must_use]
    pub fn begin(top: &Path) -> Arc<Self> {
        let journal = Arc::new(Self { top: top.to_owned(), paths: Mutex::default() });
        let mut open = OPEN.hold();
        open.retain(|journal| journal.strong_count() > 0);
        open.push(Arc::downgrade(&journal));
        journal
    }

    /// The paths, relative to the top.
    #[must_use]
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        self.paths.hold().clone()
    }

    fn add(&self, path: &Path) {
        if let Ok(path) = path.strip_prefix(&self.top) {
            self.paths.hold().insert(path.to_owned());
        }
    }
}

/// A change of a path. It is noted after it was made or has failed, so that a scan before that is repeated.
pub(super) struct FileNote<'a>(&'a Path);

pub(super) fn note(path: &Path) -> FileNote<'_> {
    FileNote(path)
}

impl Drop for FileNote<'_> {
    fn drop(&mut self) {
        for journal in OPEN.hold().iter().filter_map(Weak::upgrade) {
            journal.add(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    #[test]
    fn the_journal_contains_every_file_operation() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let of = |path: &str| top.join(path);
        write(&of("old"), b"old").unwrap();
        write(&of("file"), b"old").unwrap();
        let journal = Journal::begin(&top);
        let other = Journal::begin(&of("other"));
        write(&of("a/b"), b"b").unwrap();
        write_new(&of("c"), b"c").unwrap();
        write_with_mode(&of("d"), b"d", 0o644).unwrap();
        rename(&of("old"), &of("new")).unwrap();
        copy(&of("new"), &of("e")).unwrap();
        hard_link(&of("e"), &of("f")).unwrap();
        symlink(&of("e"), &of("g")).unwrap();
        set_mode(&of("file"), 0o600).unwrap();
        make_folder(&of("h")).unwrap();
        make_folders(&of("i/j")).unwrap();
        open_log(&of("log")).unwrap();
        open_or_create(&of("lock")).unwrap();
        remove(&of("c")).unwrap();
        remove_folder(&of("h")).unwrap();
        remove_all(&of("k")).unwrap();
        let expected = ["a/b", "c", "d", "e", "f", "file", "g", "h", "i/j", "k", "lock", "log", "new", "old"];
        assert_eq!(journal.paths(), expected.iter().map(PathBuf::from).collect());
        assert_eq!(other.paths(), BTreeSet::new());
    }
}
