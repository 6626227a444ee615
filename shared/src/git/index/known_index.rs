//! Keeps index files that this process knows: it wrote them itself, or has compared all their files with them. An
//! agent, a test or anything else that runs in a worktree can write its index, and git trusts it. So after each of them
//! the index is compared with the known one. If it differs, staged content is kept, but its stat data is not trusted:
//! git reads every file whose entry has changed. Then a changed file cannot seem unchanged, since no process can set a
//! ctime. Most versions of git compare ctimes only by the second, so files that were changed in the second in which the
//! index was written are compared here, by the nanosecond.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use crate::{
    git::{
        GitCommand, GitError, HiddenMarks, IndexFile, PrivateIndex, Repository, Stamp, add_notice,
        index::{
            index_entries::{FileFacts, IndexEntries},
            index_format::LARGEST_INDEX,
            index_install::give_to_readers_of,
        },
        locks,
        misplaced_files::is_sparse,
        worktrees::worktree_git_dirs::is_own_git_dir,
    },
    mutex::MutexExt,
    name::{ObjectFormat, Oid, digest},
    safe_files,
};

/// How often another git may take the lock of an index just before us.
const MAX_LOCKS: usize = 5;

/// The known indexes, by their files. They are global, because a worktree is opened more than once.
static KNOWN_INDEXES: Mutex<BTreeMap<PathBuf, Arc<ParsedIndex>>> = Mutex::new(BTreeMap::new());

/// A known index, parsed.
#[derive(Debug, Clone)]
struct ParsedIndex {
    index: Arc<KnownIndex>,
    entries: Arc<IndexEntries>,
    /// The tree of its entries, if that has been computed.
    tree: Option<Oid>,
    /// Entries of files that were changed in the second in which the index was written, or later.
    recent: Vec<(Vec<u8>, FileFacts)>,
}

impl ParsedIndex {
    /// `None` if the index cannot be read.
    fn new(index: KnownIndex, format: ObjectFormat) -> Option<Self> {
        let entries = IndexEntries::parse(&index.bytes, format)?;
        let written = index.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_recent = |facts: &FileFacts| u64::from(facts.changed.0) >= written;
        let recent = entries.facts().filter(|(_, facts)| is_recent(facts));
        let recent = recent.map(|(path, facts)| (path.to_vec(), facts)).collect();
        Some(Self { index: Arc::new(index), entries: Arc::new(entries), tree: None, recent })
    }

    /// Recent entries whose files in the worktree of `repository` have changed.
    fn find_doubtful(&self, repository: &Repository) -> HashSet<&[u8]> {
        if self.recent.is_empty() {
            return HashSet::new();
        }
        let scan = repository.find_scan().filter(|scan| scan.is_complete());
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

/// An index file at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownIndex {
    bytes: Vec<u8>,
    /// The mtime. git rereads files that are not older than the index, so an index that seems younger would hide
    /// changes.
    written: SystemTime,
}

impl KnownIndex {
    /// `None` if there is no index.
    pub(in crate::git) fn read(file: &Path) -> io::Result<Option<Self>> {
        let opened = match safe_files::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = opened.metadata()?;
        if found.len() > LARGEST_INDEX || is_sparse(&found) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not an index"));
        }
        let written = found.modified()?;
        // With room for one more byte, the first read returns everything and the second one the end.
        let mut bytes =
            Vec::with_capacity(usize::try_from(found.len().min(LARGEST_INDEX)).unwrap_or_default() + 1);
        io::Read::read_to_end(&mut io::Read::take(opened, LARGEST_INDEX), &mut bytes)?;
        Ok(Some(Self { bytes, written }))
    }
}

impl KnownIndex {
    /// A digest of everything that makes it this index, and of the settings with which it was written.
    pub(super) fn digest(&self, settings: &str) -> String {
        let written = self.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        digest(&[settings.as_bytes(), &self.bytes, &written.as_nanos().to_be_bytes()].concat())
    }
}

/// All known indexes without marks that hide files from git, by their files.
pub(super) fn list_known_indexes() -> Vec<(PathBuf, Arc<KnownIndex>)> {
    let known = KNOWN_INDEXES.hold();
    let plain = known.iter().filter(|(_, parsed)| parsed.entries.plain().is_some());
    plain.map(|(file, parsed)| (file.clone(), Arc::clone(&parsed.index))).collect()
}

fn find_recorded(file: &Path) -> Option<Arc<ParsedIndex>> {
    KNOWN_INDEXES.hold().get(file).cloned()
}

impl Repository {
    /// The index of this worktree, if it is the known one.
    #[must_use]
    pub fn find_known_index(&self) -> Option<Arc<KnownIndex>> {
        let file = self.index_file()?;
        let found = KnownIndex::read(&file).ok()??;
        find_recorded(&file).filter(|known| found == *known.index).map(|known| Arc::clone(&known.index))
    }

    /// Whether the stat data of the index can be trusted: the index is known, or there is none.
    fn is_index_known(&self) -> bool {
        let Some(file) = self.index_file() else { return false };
        KnownIndex::read(&file)
            .is_ok_and(|found| self.can_be_trusted(found.as_ref(), find_recorded(&file).as_deref()))
    }

    fn can_be_trusted(&self, found: Option<&KnownIndex>, known: Option<&ParsedIndex>) -> bool {
        let is_sound = |known: &ParsedIndex| known.find_doubtful(self).is_empty();
        found == known.map(|known| &*known.index) && known.is_none_or(is_sound)
    }

    /// Records an index that is now at `file`. This process must have written it, and the bytes must not be read from
    /// `file`: an agent may have replaced it.
    fn note(&self, file: PathBuf, index: Option<KnownIndex>) {
        let parsed = index.and_then(|index| ParsedIndex::new(index, self.format));
        let mut known = KNOWN_INDEXES.hold();
        match parsed {
            Some(parsed) => drop(known.insert(file, Arc::new(parsed))),
            None => drop(known.remove(&file)),
        }
    }

    /// Records an index that is about to be installed.
    pub(in crate::git) fn note_installed(&self, index: Option<KnownIndex>) {
        if let Some(file) = self.index_file() {
            self.note(file, index);
        }
    }

    /// Records the tree of the index, if the index is the known one.
    pub fn note_staged_tree(&self, tree: Oid) {
        if !self.is_index_known() {
            return;
        }
        let mut known = KNOWN_INDEXES.hold();
        if let Some(parsed) = self.index_file().and_then(|file| known.get_mut(&file)) {
            *parsed = Arc::new(ParsedIndex { tree: Some(tree), ..ParsedIndex::clone(parsed) });
        }
    }

    /// The entries of the index, if it is known to contain exactly this tree.
    pub(in crate::git) fn find_entries_of(&self, tree: Oid) -> Option<Arc<IndexEntries>> {
        self.find_index_of(tree).map(|(entries, _)| entries)
    }

    /// Like [`Self::find_entries_of`], with the mtime of the index.
    pub(in crate::git) fn find_index_of(&self, tree: Oid) -> Option<(Arc<IndexEntries>, SystemTime)> {
        let parsed = find_recorded(&self.index_file()?)?;
        if parsed.tree.is_some_and(|staged| staged != tree) || !self.is_index_known() {
            return None;
        }
        let entries = Arc::clone(&parsed.entries);
        if parsed.tree.is_none() {
            entries.plain()?;
            let staged = entries.tree(self.format);
            self.note_tree_of(&parsed, staged);
            if staged != tree {
                return None;
            }
        }
        Some((entries, parsed.index.written))
    }

    /// The tree of the index, if the index is known.
    pub(in crate::git) fn find_staged_tree(&self) -> Option<Oid> {
        let parsed = find_recorded(&self.index_file()?)?;
        if !self.is_index_known() {
            return None;
        }
        let is_plain = || parsed.entries.plain().is_some();
        parsed.tree.or_else(|| is_plain().then(|| parsed.entries.tree(self.format)))
    }

    /// The entries of the index, if it is known.
    pub(in crate::git) fn find_known_entries(&self) -> Option<Arc<IndexEntries>> {
        let parsed = find_recorded(&self.index_file()?)?;
        self.is_index_known().then(|| Arc::clone(&parsed.entries))
    }

    /// Records the tree of an index, if that is still the known one.
    fn note_tree_of(&self, index: &Arc<ParsedIndex>, tree: Oid) {
        let mut known = KNOWN_INDEXES.hold();
        if let Some(parsed) = self.index_file().and_then(|file| known.get_mut(&file))
            && Arc::ptr_eq(parsed, index)
        {
            *parsed = Arc::new(ParsedIndex { tree: Some(tree), ..ParsedIndex::clone(parsed) });
        }
    }

    /// The entries of the last known index, even if the file has changed.
    pub(in crate::git) fn recall_entries(&self) -> Option<Arc<IndexEntries>> {
        Some(Arc::clone(&find_recorded(&self.index_file()?)?.entries))
    }

    /// Like [`Self::recall_entries`], with the mtime of that index.
    pub(in crate::git) fn recall_index(&self) -> Option<(Arc<IndexEntries>, SystemTime)> {
        let parsed = find_recorded(&self.index_file()?)?;
        Some((Arc::clone(&parsed.entries), parsed.index.written))
    }

    /// Runs commands of ours that write the index of this worktree. They work on a copy while we hold the lock of the
    /// real index, and the result replaces it. So an agent that replaces the index meanwhile cannot make git trust
    /// false stat data when it overwrites files. If the index was known before, the result is known too.
    pub fn write_index<T>(
        &self,
        write: impl FnOnce(&IndexWriter<'_>) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let Some(file) = self.index_file() else { return write(&IndexWriter(None)) };
        if file.symlink_metadata().is_err() {
            // A new worktree: there is no stat data to distrust, and a kill must not leave the files without an index.
            let written = write(&IndexWriter(None));
            let after = KnownIndex::read(&file).ok().flatten();
            self.note(file, after);
            return written;
        }
        let lock = IndexLock::take(self.git_dir.join("index.lock"))?;
        let may_be_known = find_recorded(&file).is_some();
        let before = KnownIndex::read(&file).ok().flatten();
        let copy = self.private_index("write")?;
        let written = write(&IndexWriter(Some(&copy)));
        let failed = GitError::file(&file);
        let after = KnownIndex::read(&copy.file.path).map_err(&failed)?;
        if after.is_some() && after != before {
            give_to_readers_of(&file, &copy.file.path).map_err(&failed)?;
            safe_files::rename(&copy.file.path, &file).map_err(&failed)?;
        }
        drop(lock);
        if may_be_known {
            self.note(file, after);
        }
        written
    }

    /// Makes the index of this worktree a known one: staged content is kept, and stat data is trusted only where the
    /// known index agrees. If another git holds the lock, the index stays as it is; [`Repository::private_index`] and
    /// everything that reads the worktree then apply the same rule to a copy.
    pub fn make_index_known(&self, marks: HiddenMarks) -> Result<(), GitError> {
        let Some(file) = self.index_file() else { return Ok(()) };
        if self.is_index_known() || self.recall_from_last_run(&file) {
            return Ok(());
        }
        if self.has_split_index(&file) {
            // A part of it is in another file, which cannot be trusted.
            self.change("update-index").arg("--no-split-index").finish()?;
        }
        let found = KnownIndex::read(&file).ok().flatten();
        let is_readable =
            found.as_ref().is_some_and(|found| IndexEntries::parse(&found.bytes, self.format).is_some());
        let Some(wanted) = self.trusted_part(found, find_recorded(&file).as_deref(), marks) else {
            return Ok(());
        };
        let wanted = self.refreshed(wanted)?;
        if self.put_index(&file, &wanted)? {
            if !is_readable && !is_own_git_dir(&self.git_dir) {
                let path = file.display();
                add_notice(format!(
                    "the index '{path}' was missing or damaged during the run, and was restored"
                ));
            }
            self.note(file, Some(wanted));
        }
        Ok(())
    }

    /// Makes an index known again that an earlier run knew and that has not changed since. Returns whether it was.
    fn recall_from_last_run(&self, file: &Path) -> bool {
        if find_recorded(file).is_some() {
            return false;
        }
        let found = KnownIndex::read(file).ok().flatten();
        let Some(index) = found.filter(|found| self.is_index_remembered(file, found)) else { return false };
        self.note(file.to_owned(), Some(index));
        self.is_index_known()
    }

    /// The index after git has read the files without stat data, so that it need not read them again each time. This
    /// happens in a copy: writes of other processes to the real index are not trusted.
    fn refreshed(&self, index: KnownIndex) -> Result<KnownIndex, GitError> {
        if self.worktree.is_none() {
            return Ok(index);
        }
        let file = IndexFile { path: self.name_index("refresh"), origin: None };
        let copy = PrivateIndex { repository: self, file };
        let path = &copy.file.path;
        let failed = GitError::file(path);
        write_index(path, &index).map_err(&failed)?;
        if copy.refuse_unreadable(&[], None).is_err() {
            return Ok(index);
        }
        let refresh = self.change("update-index").args(["-q", "--refresh"]);
        refresh.env("GIT_INDEX_FILE", path).finish()?;
        Ok(KnownIndex::read(path).map_err(&failed)?.unwrap_or(index))
    }

    /// Restores the index entries of the paths that `is_selected` selects from `before`. Returns whether that changed
    /// anything.
    pub fn restore_index_entries(
        &self,
        before: &KnownIndex,
        is_selected: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, GitError> {
        let Some(file) = self.index_file() else { return Ok(false) };
        let found = KnownIndex::read(&file).ok().flatten();
        let written = found.as_ref().map_or(before.written, |found| found.written.min(before.written));
        let entries = found.and_then(|found| IndexEntries::parse(&found.bytes, self.format));
        let before_entries = IndexEntries::parse(&before.bytes, self.format);
        let (Some(mut entries), Some(before_entries)) = (entries, before_entries) else { return Ok(false) };
        if !entries.restore(&before_entries, is_selected) {
            return Ok(false);
        }
        let wanted = KnownIndex { bytes: entries.to_bytes(self.format), written };
        self.await_index()?;
        let is_known = self.is_index_known();
        if !self.put_index(&file, &wanted)? {
            return Err(locks::held(&self.git_dir.join("index.lock")));
        }
        if is_known {
            self.note(file, Some(wanted));
        }
        Ok(true)
    }

    /// The index with stat data only where it can be trusted. A missing or broken index is replaced by the known one;
    /// `None` if there is neither.
    fn trusted_part(
        &self,
        found: Option<KnownIndex>,
        known: Option<&ParsedIndex>,
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
        entries.trust_only(known_entries.as_ref(), |path| !doubtful.contains(path), marks);
        let written = known.map_or(written, |known| known.index.written.min(written));
        Some(KnownIndex { bytes: entries.to_bytes(self.format), written })
    }

    fn has_split_index(&self, file: &Path) -> bool {
        let found = KnownIndex::read(file).ok().flatten();
        let is_unreadable = |found: KnownIndex| IndexEntries::parse(&found.bytes, self.format).is_none();
        found.is_some_and(is_unreadable) && has_shared_part(&self.git_dir)
    }

    /// Installs the index of the worktree the way git does: the process that creates the lock file has the lock.
    /// Returns false if another git has it.
    fn put_index(&self, file: &Path, index: &KnownIndex) -> Result<bool, GitError> {
        let draft = IndexFile { path: self.name_index("settled"), origin: None };
        let lock = self.git_dir.join("index.lock");
        let put = || -> io::Result<bool> {
            write_index(&draft.path, index)?;
            // A new worktree has no index yet, so this may fail.
            let _ = give_to_readers_of(file, &draft.path);
            match safe_files::hard_link(&draft.path, &lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                linked => linked?,
            }
            safe_files::rename(&lock, file).map(|()| true)
        };
        put().map_err(GitError::file(file))
    }

    /// An unused name for a private index.
    fn name_index(&self, name: &str) -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        self.git_dir.join("arborist").join(format!("index-{name}-{}-{count}", std::process::id()))
    }

    /// A private index that starts as a copy of the user's, so that unchanged files need not be read. If the user's is
    /// not the known one, its stat data is trusted no more than by [`Repository::make_index_known`].
    pub fn private_index(&self, name: &str) -> Result<PrivateIndex<'_>, GitError> {
        let (own, path) = (self.git_dir.join("index"), self.name_index(name));
        let origin = Stamp::of(&own);
        let copy = || -> io::Result<()> {
            let found = KnownIndex::read(&own)?;
            let trusted = match find_recorded(&own) {
                Some(known) if !self.can_be_trusted(found.as_ref(), Some(&known)) => {
                    self.trusted_part(found, Some(&known), HiddenMarks::Kept)
                }
                _ => found,
            };
            // A file of this name from a killed process or an agent is replaced, not written into.
            match trusted {
                Some(index) => write_index(&path, &index),
                // git creates the index, but not its folder.
                None => path.parent().map_or(Ok(()), safe_files::make_folders),
            }
        };
        copy().map_err(|source| self.file_error(source))?;
        Ok(PrivateIndex { repository: self, file: IndexFile { path, origin } })
    }

    /// A copy of the index of another repository, such as that of a submodule.
    pub(in crate::git) fn copy_index(&self, own: &Path, name: &str) -> Result<IndexFile, GitError> {
        let index = IndexFile { path: self.name_index(name), origin: Stamp::of(own) };
        let copied = KnownIndex::read(own)
            .and_then(|found| found.map_or(Ok(()), |found| write_index(&index.path, &found)));
        copied.map_err(|source| self.file_error(source))?;
        Ok(index)
    }

    /// A private index to read the worktree with, if its own index cannot be trusted.
    pub(in crate::git) fn find_trusted_view(&self) -> Result<Option<PrivateIndex<'_>>, GitError> {
        let is_untrusted =
            self.index_file().is_some_and(|file| find_recorded(&file).is_some()) && !self.is_index_known();
        is_untrusted.then(|| self.private_index("view")).transpose()
    }
}

/// Makes commands write the copy of an index, or the index that our environment names.
#[derive(Debug)]
pub struct IndexWriter<'a>(Option<&'a PrivateIndex<'a>>);

impl IndexWriter<'_> {
    /// The command, set up to write that index.
    #[must_use]
    pub fn of(&self, command: GitCommand) -> GitCommand {
        with_index(self.0, command)
    }
}

/// The lock of an index. It is released when dropped.
struct IndexLock {
    path: PathBuf,
    /// The open file shows others that this lock is in use.
    _open: fs::File,
}

impl IndexLock {
    /// Takes the lock. Waits for another git that has it, as long as every other command does.
    fn take(path: PathBuf) -> Result<Self, GitError> {
        let failed = GitError::file(&path);
        for _ in 0..MAX_LOCKS {
            match safe_files::write_new(&path, b"") {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => locks::wait_for(&path)?,
                made => {
                    made.map_err(&failed)?;
                    let open = safe_files::open(&path).map_err(&failed)?;
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

/// The command, set up to use this index, if there is one.
pub(in crate::git) fn with_index(view: Option<&PrivateIndex<'_>>, command: GitCommand) -> GitCommand {
    match view {
        Some(view) => command.env("GIT_INDEX_FILE", &view.file.path),
        None => command,
    }
}

/// Writes an index file with the recorded mtime.
fn write_index(file: &Path, index: &KnownIndex) -> io::Result<()> {
    safe_files::write(file, &index.bytes)?;
    safe_files::open(file)?.set_modified(index.written)
}

fn has_shared_part(git_dir: &Path) -> bool {
    let entries = fs::read_dir(git_dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex."))
}
