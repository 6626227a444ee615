//! Indexes that this process knows: it wrote them itself, or has held all their files against them. An agent, a test or
//! whatever else runs in a worktree can write the index there, and git believes it. So after each of them the index is
//! compared with the one that is known. If it is another, what is staged stays, and nothing else of it is believed: git reads
//! every file whose entry is not as it was. A file that was changed since cannot seem unchanged then, since nobody can set
//! the time of its last change of status. Most gits compare that time by the second, so files that were changed in the second
//! in which the index was written are compared here, by the nanosecond.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use super::{
    GitCommand, GitError, HiddenMarks, IndexFile, PrivateIndex, Repository, Stamp,
    index_entries::{FileFacts, IndexEntries},
    index_format::LARGEST,
    install::give_to_readers_of,
    locks,
    misplaced::is_sparse,
};
use crate::{
    name::{ObjectFormat, Oid},
    process::ProcessError,
    safe_files,
};

/// So often another git may take the lock of an index just before us.
const LOCKS_PASSED: usize = 5;

/// The indexes that are known, by their files. For the whole process: a worktree is opened more than once.
static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Noted>>> = Mutex::new(BTreeMap::new());

/// What is known of an index.
#[derive(Debug, Clone)]
struct Noted {
    index: Arc<KnownIndex>,
    entries: Arc<IndexEntries>,
    /// The tree that is staged in it, where that is known too.
    tree: Option<Oid>,
    /// Entries of files that were changed in the second in which the index was written, or later.
    recent: Vec<(Vec<u8>, FileFacts)>,
}

impl Noted {
    /// `None` if the index cannot be read.
    fn new(index: KnownIndex, format: ObjectFormat) -> Option<Self> {
        let entries = IndexEntries::parse(&index.bytes, format)?;
        let written = index.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_recent = |facts: &FileFacts| u64::from(facts.changed.0) >= written;
        let recent = entries.facts().filter(|(_, facts)| is_recent(facts));
        let recent = recent.map(|(path, facts)| (path.to_vec(), facts)).collect();
        Some(Self { index: Arc::new(index), entries: Arc::new(entries), tree: None, recent })
    }

    /// Those of the recent entries whose files are not what they were in the worktree of `repository`.
    fn find_doubtful(&self, repository: &Repository) -> HashSet<&[u8]> {
        if self.recent.is_empty() {
            return HashSet::new();
        }
        let scan = repository.find_scan().filter(|scan| scan.is_whole());
        let top = repository.worktree.as_deref();
        let is_same = |path: &[u8], facts: &FileFacts| match (&scan, top) {
            (Some(scan), _) => scan.find(path).is_some_and(|found| facts.are(&found.stamp)),
            (None, Some(top)) => facts.are_of(&top.join(OsStr::from_bytes(path))),
            (None, None) => false,
        };
        let others = self.recent.iter().filter(|(path, facts)| !is_same(path, facts));
        others.map(|(path, _)| path.as_slice()).collect()
    }
}

/// An index file as it was at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownIndex {
    bytes: Vec<u8>,
    /// git reads files anew that are not older than the index: an index that seems younger hides changes.
    written: SystemTime,
}

impl KnownIndex {
    /// `None` if there is no index.
    pub(super) fn read(file: &Path) -> io::Result<Option<Self>> {
        let opened = match safe_files::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = opened.metadata()?;
        if found.len() > LARGEST || is_sparse(&found) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no index"));
        }
        let written = found.modified()?;
        // With room for one byte more, one read gives all of it and the next its end.
        let mut bytes = Vec::with_capacity(usize::try_from(found.len().min(LARGEST)).unwrap_or_default() + 1);
        io::Read::read_to_end(&mut io::Read::take(opened, LARGEST), &mut bytes)?;
        Ok(Some(Self { bytes, written }))
    }
}

fn recall(file: &Path) -> Option<Arc<Noted>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned()
}

impl Repository {
    /// The index of this worktree, if it is the one that is known.
    #[must_use]
    pub fn find_known_index(&self) -> Option<Arc<KnownIndex>> {
        let file = self.index_file()?;
        let found = KnownIndex::read(&file).ok()??;
        recall(&file).filter(|known| found == *known.index).map(|known| Arc::clone(&known.index))
    }

    /// Whether what the index says about files can be believed: it is known, or there is none.
    fn is_index_known(&self) -> bool {
        let Some(file) = self.index_file() else { return false };
        KnownIndex::read(&file)
            .is_ok_and(|found| self.is_believable(found.as_ref(), recall(&file).as_deref()))
    }

    fn is_believable(&self, found: Option<&KnownIndex>, known: Option<&Noted>) -> bool {
        let is_sound = |known: &Noted| known.find_doubtful(self).is_empty();
        found == known.map(|known| &*known.index) && known.is_none_or(is_sound)
    }

    /// Makes an index known that is now at `file`. It must be one that we wrote, and its bytes must not come from there: an
    /// agent may have put another one in its place since.
    fn note(&self, file: PathBuf, index: Option<KnownIndex>) {
        let noted = index.and_then(|index| Noted::new(index, self.format));
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match noted {
            Some(noted) => drop(known.insert(file, Arc::new(noted))),
            None => drop(known.remove(&file)),
        }
    }

    /// The same for one that is about to be put in place.
    pub(super) fn note_installed(&self, index: Option<KnownIndex>) {
        if let Some(file) = self.index_file() {
            self.note(file, index);
        }
    }

    /// The index holds exactly this tree, if it is the one that is known.
    pub fn note_staged_tree(&self, tree: Oid) {
        if !self.is_index_known() {
            return;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(noted) = self.index_file().and_then(|file| known.get_mut(&file)) {
            *noted = Arc::new(Noted { tree: Some(tree), ..Noted::clone(noted) });
        }
    }

    /// The entries of the index, if it is known to hold exactly this tree.
    pub(super) fn find_entries_of(&self, tree: Oid) -> Option<Arc<IndexEntries>> {
        self.find_index_of(tree).map(|(entries, _)| entries)
    }

    /// The same, with the time at which it was written.
    pub(super) fn find_index_of(&self, tree: Oid) -> Option<(Arc<IndexEntries>, SystemTime)> {
        let noted = recall(&self.index_file()?)?;
        if noted.tree.is_some_and(|staged| staged != tree) || !self.is_index_known() {
            return None;
        }
        let entries = Arc::clone(&noted.entries);
        if noted.tree.is_none() {
            entries.plain()?;
            let staged = entries.tree(self.format);
            self.note_tree_of(&noted, staged);
            if staged != tree {
                return None;
            }
        }
        Some((entries, noted.index.written))
    }

    /// The tree that the index holds, if it is known.
    pub(super) fn find_staged_tree(&self) -> Option<Oid> {
        let noted = recall(&self.index_file()?)?;
        if !self.is_index_known() {
            return None;
        }
        let is_plain = || noted.entries.plain().is_some();
        noted.tree.or_else(|| is_plain().then(|| noted.entries.tree(self.format)))
    }

    /// The entries of the index, if it is known.
    pub(super) fn find_known_entries(&self) -> Option<Arc<IndexEntries>> {
        let noted = recall(&self.index_file()?)?;
        self.is_index_known().then(|| Arc::clone(&noted.entries))
    }

    /// The same index, if it is still the known one, holds this tree.
    fn note_tree_of(&self, index: &Arc<Noted>, tree: Oid) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(noted) = self.index_file().and_then(|file| known.get_mut(&file))
            && Arc::ptr_eq(noted, index)
        {
            *noted = Arc::new(Noted { tree: Some(tree), ..Noted::clone(noted) });
        }
    }

    /// The entries of the index that was known last, whatever the file is now.
    pub(super) fn recall_entries(&self) -> Option<Arc<IndexEntries>> {
        Some(Arc::clone(&recall(&self.index_file()?)?.entries))
    }

    /// The same, with the time at which that one was written.
    pub(super) fn recall_index(&self) -> Option<(Arc<IndexEntries>, SystemTime)> {
        let noted = recall(&self.index_file()?)?;
        Some((Arc::clone(&noted.entries), noted.index.written))
    }

    /// Runs commands of ours that write the index of this worktree. They work with a copy, with the lock of the real one in
    /// hand, and the result takes its place: an agent that puts another index there meanwhile changes nothing of what git
    /// believes about files when it writes over them. Where it began with an index that is known, the result is known too.
    pub fn write_index<T>(
        &self,
        write: impl FnOnce(&IndexWriter<'_>) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let Some(file) = self.index_file() else { return write(&IndexWriter(None)) };
        if file.symlink_metadata().is_err() {
            // A new worktree. Nothing is believed about its files, and a kill must not leave them without an index.
            let written = write(&IndexWriter(None));
            let after = KnownIndex::read(&file).ok().flatten();
            self.note(file, after);
            return written;
        }
        let lock = IndexLock::take(self.git_dir.join("index.lock"))?;
        let may_be_known = recall(&file).is_some();
        let before = KnownIndex::read(&file).ok().flatten();
        let copy = self.private_index("write")?;
        let written = write(&IndexWriter(Some(&copy)));
        let failed = |source| GitError::File { path: file.display().to_string(), source };
        let after = KnownIndex::read(&copy.file.path).map_err(failed)?;
        if after.is_some() && after != before {
            give_to_readers_of(&file, &copy.file.path).map_err(failed)?;
            safe_files::rename(&copy.file.path, &file).map_err(failed)?;
        }
        drop(lock);
        if may_be_known {
            self.note(file, after);
        }
        written
    }

    /// Makes the index of this worktree one that is known: what is staged stays, and what it says about files is believed
    /// only where the known one says it. Where a git holds the index, it stays as it is, and [`Repository::private_index`]
    /// and all that look at the worktree believe as little of it.
    pub fn settle_index(&self, marks: HiddenMarks) -> Result<(), GitError> {
        let Some(file) = self.index_file() else { return Ok(()) };
        if self.is_index_known() {
            return Ok(());
        }
        if self.has_split_index(&file) {
            // Another file has a part of it, and who knows what stands there.
            self.change("update-index").arg("--no-split-index").finish()?;
        }
        let found = KnownIndex::read(&file).ok().flatten();
        let Some(wanted) = self.believable(found, recall(&file).as_deref(), marks) else { return Ok(()) };
        let wanted = self.refreshed(wanted)?;
        if self.put_index(&file, &wanted)? {
            self.note(file, Some(wanted));
        }
        Ok(())
    }

    /// The same index after git has read the files that nothing is known of, so that it need not do so each time that it
    /// looks. In a copy: whoever writes to the real one meanwhile is not believed.
    fn refreshed(&self, index: KnownIndex) -> Result<KnownIndex, GitError> {
        if self.worktree.is_none() {
            return Ok(index);
        }
        let file = IndexFile { path: self.name_index("refresh"), origin: None };
        let copy = PrivateIndex { repository: self, file };
        let path = &copy.file.path;
        let failed = |source| GitError::File { path: path.display().to_string(), source };
        write_index(path, &index).map_err(failed)?;
        if copy.refuse_unreadable(&[], None).is_err() {
            return Ok(index);
        }
        let refresh = self.change("update-index").args(["-q", "--refresh"]);
        refresh.env("GIT_INDEX_FILE", path).finish()?;
        Ok(KnownIndex::read(path).map_err(failed)?.unwrap_or(index))
    }

    /// Puts the entries of those paths back into the index that `is_meant` chooses, as they were in `before`. Whether that
    /// changed anything.
    pub fn put_back_entries(
        &self,
        before: &KnownIndex,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, GitError> {
        let Some(file) = self.index_file() else { return Ok(false) };
        let found = KnownIndex::read(&file).ok().flatten();
        let written = found.as_ref().map_or(before.written, |found| found.written.min(before.written));
        let entries = found.and_then(|found| IndexEntries::parse(&found.bytes, self.format));
        let before_entries = IndexEntries::parse(&before.bytes, self.format);
        let (Some(mut entries), Some(before_entries)) = (entries, before_entries) else { return Ok(false) };
        if !entries.put_back(&before_entries, is_meant) {
            return Ok(false);
        }
        let wanted = KnownIndex { bytes: entries.to_bytes(self.format), written };
        self.await_index()?;
        let is_known = self.is_index_known();
        if !self.put_index(&file, &wanted)? {
            return Err(GitError::IndexHeld { path: self.git_dir.join("index.lock") });
        }
        if is_known {
            self.note(file, Some(wanted));
        }
        Ok(true)
    }

    /// The index as far as it can be believed. One that is gone or broken is the known one again; `None` if nothing can be
    /// said of it.
    fn believable(
        &self,
        found: Option<KnownIndex>,
        known: Option<&Noted>,
        marks: HiddenMarks,
    ) -> Option<KnownIndex> {
        let parse = |index: &KnownIndex| IndexEntries::parse(&index.bytes, self.format);
        let read = found.and_then(|found| Some((parse(&found)?, found.written)));
        let (mut entries, written) = match read {
            Some(read) => read,
            None => (parse(&known?.index)?, known?.index.written),
        };
        let doubtful = known.map(|known| known.find_doubtful(self)).unwrap_or_default();
        let known_entries = known.and_then(|known| parse(&known.index));
        entries.believe_only(known_entries.as_ref(), |path| !doubtful.contains(path), marks);
        let written = known.map_or(written, |known| known.index.written.min(written));
        Some(KnownIndex { bytes: entries.to_bytes(self.format), written })
    }

    fn has_split_index(&self, file: &Path) -> bool {
        let found = KnownIndex::read(file).ok().flatten();
        let is_unreadable = |found: KnownIndex| IndexEntries::parse(&found.bytes, self.format).is_none();
        found.is_some_and(is_unreadable) && has_shared_part(&self.git_dir)
    }

    /// Makes this the index of the worktree, as git does it: whoever makes the lock file has the lock. False if another
    /// git has it.
    fn put_index(&self, file: &Path, index: &KnownIndex) -> Result<bool, GitError> {
        let draft = IndexFile { path: self.name_index("settled"), origin: None };
        let lock = self.git_dir.join("index.lock");
        let put = || -> io::Result<bool> {
            write_index(&draft.path, index)?;
            // A new worktree has no index yet.
            let _ = give_to_readers_of(file, &draft.path);
            match safe_files::hard_link(&draft.path, &lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                linked => linked?,
            }
            safe_files::rename(&lock, file).map(|()| true)
        };
        put().map_err(|source| GitError::File { path: file.display().to_string(), source })
    }

    /// A name for an index of our own that nobody has.
    fn name_index(&self, name: &str) -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        self.git_dir.join("arborist").join(format!("index-{name}-{}-{count}", std::process::id()))
    }

    /// An index of our own that begins as a copy of the user's, so that unchanged files need not be read. Where the user's
    /// is not the known one, no more of it is believed than [`Repository::settle_index`] does.
    pub fn private_index(&self, name: &str) -> Result<PrivateIndex<'_>, GitError> {
        let (own, path) = (self.git_dir.join("index"), self.name_index(name));
        let origin = Stamp::of(&own);
        let copy = || -> io::Result<()> {
            let found = KnownIndex::read(&own)?;
            let believed = match recall(&own) {
                Some(known) if !self.is_believable(found.as_ref(), Some(&known)) => {
                    self.believable(found, Some(&known), HiddenMarks::Kept)
                }
                _ => found,
            };
            // What a killed process left under this name, or an agent put there, is replaced and not written into.
            match believed {
                Some(index) => write_index(&path, &index),
                // git makes the index, but not the folder that it is in.
                None => path.parent().map_or(Ok(()), safe_files::make_folders),
            }
        };
        copy().map_err(|source| ProcessError { program: "git".into(), source })?;
        Ok(PrivateIndex { repository: self, file: IndexFile { path, origin } })
    }

    /// An index to look at the worktree with in the place of its own, which cannot be believed; `None` if it can.
    pub(super) fn find_view(&self) -> Result<Option<PrivateIndex<'_>>, GitError> {
        let is_other =
            self.index_file().is_some_and(|file| recall(&file).is_some()) && !self.is_index_known();
        is_other.then(|| self.private_index("view")).transpose()
    }
}

/// What leads commands to the index that they are to write: a copy, or the one that our environment names.
#[derive(Debug)]
pub struct IndexWriter<'a>(Option<&'a PrivateIndex<'a>>);

impl IndexWriter<'_> {
    /// The same command, to write that index.
    #[must_use]
    pub fn of(&self, command: GitCommand) -> GitCommand {
        seen_by(self.0, command)
    }
}

/// The lock of an index, removed when dropped.
struct IndexLock {
    path: PathBuf,
    /// Whoever looks for locks that were left behind sees that this one is in use.
    _open: fs::File,
}

impl IndexLock {
    /// Waits for another git that has it, for as long as every other command does.
    fn take(path: PathBuf) -> Result<Self, GitError> {
        let failed = |source| GitError::File { path: path.display().to_string(), source };
        for _ in 0..LOCKS_PASSED {
            match safe_files::write_new(&path, b"") {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => locks::wait_for(&path)?,
                made => {
                    made.map_err(failed)?;
                    let open = safe_files::open(&path).map_err(failed)?;
                    return Ok(Self { path, _open: open });
                }
            }
        }
        Err(locks::held(&path))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        let _ = safe_files::remove(&self.path);
    }
}

/// A command that looks at the worktree with this index, if it has one.
pub(super) fn seen_by(view: Option<&PrivateIndex<'_>>, command: GitCommand) -> GitCommand {
    match view {
        Some(view) => command.env("GIT_INDEX_FILE", &view.file.path),
        None => command,
    }
}

/// Writes an index file that seems as old as it is said to be.
fn write_index(file: &Path, index: &KnownIndex) -> io::Result<()> {
    safe_files::write(file, &index.bytes)?;
    safe_files::open(file)?.set_modified(index.written)
}

fn has_shared_part(git_dir: &Path) -> bool {
    let entries = fs::read_dir(git_dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex."))
}
