//! Writes a few small files to a worktree and its index without git: starting git twice for each task would cost more
//! than all the rest. This is done only where git would write the files exactly as they are stored, according to
//! settings and attributes. In all other cases the caller lets git do it.

use std::{
    ffi::OsStr,
    fs::Metadata,
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    sync::OnceLock,
};

use crate::{
    git::{GitError, HiddenMarks, KnownIndex, Repository, TreeChange, objects::open_objects::libgit2_format},
    name::{ObjectKind, Oid},
    safe_files,
};

/// More files are left to git. Up to here they take less time than git, which compares all files of the worktree first.
const MAX_FILES: usize = 1000;
/// Larger files are left to git.
const LARGEST_PLAIN_FILE: usize = 1024 * 1024;
/// The only mode that is written here. The effect of others depends on the system.
const PLAIN_MODE: u32 = 0o100_644;
/// The files that define conversions of others.
const ATTRIBUTES: &str = ".gitattributes";
/// The variable that names a tree to read attributes from.
const ATTRIBUTE_SOURCE: &str = "GIT_ATTR_SOURCE";
/// Everything in the git directory of a worktree without an operation in progress. A checkout removes other files that
/// git leaves there.
const IDLE: [&str; 12] = [
    "HEAD", "ORIG_HEAD", "FETCH_HEAD", "arborist", "commondir", "gitdir", "index", "info", "locked", "logs",
    "refs", "reftable",
];

/// A file to write or, without content, to remove.
struct PlainFile<'a> {
    change: &'a TreeChange,
    content: Option<Vec<u8>>,
}

impl Repository {
    /// Writes missing files and adds them to the index. Returns false if git has to do the rest.
    pub(in crate::git) fn add_without_git(&self, changes: &[TreeChange]) -> bool {
        changes.iter().all(|change| change.before.is_none() && change.after.is_some())
            && self.are_missing(changes)
            && self.apply_without_git(changes).is_some()
    }

    /// Brings a worktree that is exactly at the old side of these changes to `commit`. Returns false if git has to do
    /// the rest.
    pub fn update_without_git(&self, commit: Oid, changes: &[TreeChange]) -> Result<bool, GitError> {
        if !changes.is_empty() && self.apply_without_git(changes).is_none() {
            return Ok(false);
        }
        self.note_staged_tree(self.tree_of(commit)?);
        Ok(true)
    }

    /// Checks out `commit` in one of our worktrees with a detached `HEAD`. Returns false if git has to do it: if that
    /// takes more than a few plain files, or if there are other files than those of the commit.
    pub fn check_out_without_git(&self, commit: Oid) -> Result<bool, GitError> {
        self.make_index_known(HiddenMarks::Cleared)?;
        let tree = self.tree_of(commit)?;
        let Some(before) = self.find_staged_tree().filter(|_| self.is_idle()) else { return Ok(false) };
        let changes = self.changes(before, tree)?;
        if !changes.is_empty() {
            if self.apply_without_git(&changes).is_none() {
                return Ok(false);
            }
            self.note_staged_tree(tree);
        }
        // The new scan is used again by the guard of the next step.
        if !self.holds_only_by_scan(tree, self.scan()) {
            return Ok(false);
        }
        self.detach(commit)?;
        Ok(true)
    }

    fn is_idle(&self) -> bool {
        let entries = safe_files::list_kinds(&self.git_dir).unwrap_or_default();
        let is_usual =
            |path: &Path| path.file_name().is_some_and(|name| IDLE.iter().any(|idle| name == *idle));
        !entries.is_empty() && entries.iter().all(|entry| is_usual(&entry.path))
    }

    /// Applies these changes to worktree and index. `None` if git has to do the rest.
    fn apply_without_git(&self, changes: &[TreeChange]) -> Option<()> {
        let files = self.find_plain_files(changes)?;
        let draft = self.private_index("plain").ok()?;
        let mut index = git2::Index::open_ext(&draft.file.path, libgit2_format(self.format)).ok()?;
        for PlainFile { change, content } in &files {
            let path = Path::new(OsStr::from_bytes(&change.path));
            if is_in_the_way(&index, path) {
                return None;
            }
            if change.before.is_some() {
                self.remove_without_git(path).ok()?;
            }
            match content {
                Some(content) => {
                    let written = safe_files::write_new(&self.top().join(path), content).ok()?;
                    index.add(&entry_of(change, &written)?).ok()?;
                }
                None => index.remove(path, 0).ok()?,
            }
        }
        index.write().ok()?;
        // Read it before it is installed: then other processes can write to it.
        let written = KnownIndex::read(&draft.file.path).ok()?;
        self.install_index(&draft.file).then(|| self.note_installed(written))
    }

    /// The files to write or remove; `None` if one of them is not plain.
    fn find_plain_files<'c>(&self, changes: &'c [TreeChange]) -> Option<Vec<PlainFile<'c>>> {
        let is_plain_side = |side: Option<(u32, Oid)>| side.is_none_or(|(mode, _)| mode == PLAIN_MODE);
        let is_plain = |change: &TreeChange| {
            is_plain_path(&change.path) && is_plain_side(change.before) && is_plain_side(change.after)
        };
        let are_plain = changes.len() <= MAX_FILES && changes.iter().all(is_plain);
        if !are_plain || !self.stores_files_as_they_are(changes) {
            return None;
        }
        let read = |change: &'c TreeChange| {
            let content = match change.after {
                // Objects are hashed when they are read.
                Some((_, id)) => Some(self.read_object(ObjectKind::Blob, id).ok()??),
                None => None,
            };
            let is_small = content.as_ref().is_none_or(|content| content.len() <= LARGEST_PLAIN_FILE);
            is_small.then_some(PlainFile { change, content })
        };
        changes.iter().map(read).collect()
    }

    /// Whether neither settings nor attributes convert these files when they are written.
    fn stores_files_as_they_are(&self, changes: &[TreeChange]) -> bool {
        let Some(entries) = self.find_known_entries() else { return false };
        let folders =
            changes.iter().flat_map(|change| Path::new(OsStr::from_bytes(&change.path)).ancestors().skip(1));
        let has_attributes =
            |folder: &Path| safe_files::kind_of(&self.top().join(folder).join(ATTRIBUTES)).is_some();
        self.has_plain_settings()
            && std::env::var_os(ATTRIBUTE_SOURCE).is_none()
            && entries.called(ATTRIBUTES).is_empty()
            && !folders.into_iter().any(has_attributes)
            && self.lacks_system_attributes()
    }

    /// Whether there is no system-wide attributes file. Only git knows its path, and an old git cannot tell.
    fn lacks_system_attributes(&self) -> bool {
        static PLACE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        let path = PLACE.get_or_init(|| match self.git("var").arg("GIT_ATTR_SYSTEM").answer() {
            // git is told to ignore that file.
            Ok(None) => Some(Vec::new()),
            answer => answer.ok().flatten(),
        });
        let is_missing = |path: &Vec<u8>| {
            let path = path.trim_ascii_end();
            path.is_empty() || Path::new(OsStr::from_bytes(path)).symlink_metadata().is_err()
        };
        path.as_ref().is_some_and(is_missing)
    }

    /// Removes a file and the folders that become empty.
    fn remove_without_git(&self, path: &Path) -> io::Result<()> {
        match safe_files::remove(&self.top().join(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        folders
            .map(|folder| self.top().join(folder))
            .try_for_each(|folder| safe_files::remove_folder(&folder))
            .ok();
        Ok(())
    }
}

/// Whether an index entry is in the way: where the path needs a folder, or below the path.
fn is_in_the_way(index: &git2::Index, path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.any(|folder| index.get_path(folder, 0).is_some()) || index.find_prefix(path.join("")).is_ok()
}

/// Whether every system and every version of git treats a path literally.
fn is_plain_path(path: &[u8]) -> bool {
    let is_plain_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+=@, ".contains(byte);
    let is_plain_name = |name: &[u8]| {
        let is_usual = !name.is_empty() && name[0] != b'.' && !name.ends_with(b".") && !name.ends_with(b" ");
        is_usual && name.iter().all(is_plain_byte)
    };
    path.split(|byte| *byte == b'/').all(is_plain_name)
}

/// The index entry of a file that was just written.
fn entry_of(change: &TreeChange, written: &Metadata) -> Option<git2::IndexEntry> {
    let (mode, id) = change.after?;
    // git keeps the lower 32 bits of each number.
    let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).ok();
    let time = |seconds: i64, nanoseconds: i64| {
        Some(git2::IndexTime::new(i32::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?))
    };
    Some(git2::IndexEntry {
        ctime: time(written.ctime(), written.ctime_nsec())?,
        mtime: time(written.mtime(), written.mtime_nsec())?,
        dev: low(written.dev())?,
        ino: low(written.ino())?,
        mode,
        uid: written.uid(),
        gid: written.gid(),
        file_size: low(written.size())?,
        id: git2::Oid::from_bytes(id.as_bytes()).ok()?,
        flags: 0,
        flags_extended: 0,
        path: change.path.clone(),
    })
}
