//! Verifies object files. git does not hash what it reads, so a process that can write these files decides what git
//! checks out, what a reviewer sees and what git takes for the old version of a file. So every file that appears or
//! changes while child processes run is hashed after they have ended, before any git reads it. Forged files are moved
//! aside and reported.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::{
    git::{GitError, Repository, misplaced_files::unused_path},
    mutex::MutexExt,
    name::{ObjectFormat, Oid},
    safe_files::{self, ChangeStamp, Facts, FileKind, StampedName},
};

/// Larger files are verified by libgit2, which may read another file with the same id.
const LARGEST_OBJECT_FILE: u64 = 32 * 1024 * 1024;
/// Files with more uncompressed content are verified by libgit2, too.
const LARGEST_CONTENT: usize = 256 * 1024 * 1024;
/// git updates the mtime of a pack whenever it is about to write an object that is in it. Hashing a larger one each
/// time would take seconds.
const LARGEST_PACK: u64 = 256 * 1024 * 1024;
/// The extensions of the files of a pack, which are moved together.
pub(in crate::git) const PACK_EXTENSIONS: [&str; 6] = ["pack", "idx", "rev", "keep", "mtimes", "bitmap"];

/// The tables of this process, by common git directory.
static TABLES: LazyLock<Mutex<HashMap<PathBuf, ObjectFiles>>> = LazyLock::new(Mutex::default);

/// The table of one repository. Clones share it.
#[derive(Debug, Clone, Default)]
struct ObjectFiles(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    is_begun: bool,
    /// Whether known files have disappeared, for example because of `git gc`: objects may be lost.
    has_lost_files: bool,
    /// The files of each folder that were there before the first child, or were verified.
    loose: HashMap<OsString, Folder>,
    /// Each pack and its index, by their path without extension.
    packs: BTreeMap<PathBuf, (ChangeStamp, ChangeStamp)>,
    /// Messages about everything that was moved aside since the process started.
    changes: Vec<String>,
}

/// A folder of loose objects.
#[derive(Debug, Default)]
struct Folder {
    /// Its stamp when all its files were known. It changes when a file is created, removed or replaced.
    stamp: Option<ChangeStamp>,
    files: HashMap<Oid, KnownFile>,
}

/// A hash of the bytes of a file. It is no object id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContentHash(Oid);

impl ContentHash {
    fn of(bytes: &[u8]) -> Self {
        Self(Oid::hash_raw(bytes, ObjectFormat::Sha256))
    }
}

/// A verified file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownFile {
    /// It is valid while it has this stamp.
    Settled(ChangeStamp),
    /// It was changed just when it was read, and may change again with the same ctime. Until then it is read each time,
    /// and is valid while its bytes have this hash.
    Fresh(ContentHash),
}

/// Watches object files while a child process runs. Everything that is moved aside after its start was changed by this
/// child, or by another one at the same time.
#[derive(Debug)]
pub struct ObjectWatch {
    repository: Repository,
    known: usize,
}

impl ObjectWatch {
    /// Moves forged files aside. Returns messages about everything that was moved since the watch started. `folders`
    /// lists the folder of objects.
    #[must_use]
    pub fn restore(&self, folders: &[StampedName]) -> Vec<String> {
        let files = ObjectFiles::of(&self.repository);
        let mut table = files.lock();
        table.move_forged_aside(&self.repository, folders);
        table.changes.iter().skip(self.known).cloned().collect()
    }
}

impl Repository {
    /// Call this before a child process starts. Files from before the first one are trusted.
    #[must_use]
    pub fn watch_objects(&self) -> ObjectWatch {
        let files = ObjectFiles::of(self);
        let mut table = files.lock();
        if !table.is_begun {
            table.is_begun = true;
            // libgit2 reads the configuration when it opens a repository for writing, so not after a child could change it.
            self.objects.open_for_run(self);
            // First, because a new link changes the stamps of the files. It locks the held objects under this table.
            self.hold_objects();
            let objects = self.common_dir.join("objects");
            let listed = safe_files::list_stamps(&objects).unwrap_or_default();
            for (name, _, stamp) in listed.into_iter().filter(is_loose) {
                let stamp = Some(stamp).filter(|stamp| !stamp.is_fresh());
                let files = objects_in(&objects.join(&name)).into_iter();
                let files = files.map(|(id, stamp)| (id, KnownFile::Settled(stamp))).collect();
                table.loose.insert(name, Folder { stamp, files });
            }
            table.packs = packs_of(self);
        }
        ObjectWatch { repository: self.clone(), known: table.changes.len() }
    }
}

impl Repository {
    /// Whether a child process of this process has started here.
    pub(in crate::git) fn has_watched_objects(&self) -> bool {
        ObjectFiles::of(self).lock().is_begun
    }

    /// Whether object files were removed since the last call, for example by `git gc`.
    pub(in crate::git) fn take_lost_objects(&self) -> bool {
        std::mem::take(&mut ObjectFiles::of(self).lock().has_lost_files)
    }
}

impl ObjectFiles {
    fn of(repository: &Repository) -> Self {
        let mut tables = TABLES.hold();
        tables.entry(repository.common_dir.clone()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.hold()
    }
}

impl Table {
    /// Verifies everything that is new or has changed. Forged files are moved aside, and objects are restored if they can be.
    fn move_forged_aside(&mut self, repository: &Repository, folders: &[StampedName]) {
        // Packs come first: a missing file may be in one.
        self.verify_packs(repository);
        let mut forged = Vec::new();
        let objects = repository.common_dir.join("objects");
        for (name, _, stamp) in folders.iter().filter(|entry| is_loose(entry)) {
            let folder = self.loose.entry(name.clone()).or_default();
            if folder.stamp != Some(*stamp) {
                let path = objects.join(name);
                // Checked before the folder is read, so that later changes get another ctime.
                folder.stamp = Some(*stamp).filter(|stamp| !stamp.is_fresh());
                let found = objects_in(&path);
                let before = std::mem::take(&mut folder.files);
                folder.files = found.iter().filter_map(|(id, _)| Some((*id, *before.get(id)?))).collect();
                self.has_lost_files |= folder.files.len() < before.len();
                for (id, found) in found {
                    forged.extend(folder.verify_file(repository, id, &found));
                }
            }
        }
        let listed: HashSet<&OsStr> = folders.iter().map(|(name, _, _)| name.as_os_str()).collect();
        let count = self.loose.len();
        // git removes folders that are empty.
        self.loose.retain(|name, _| listed.contains(name.as_os_str()));
        self.has_lost_files |= self.loose.len() < count;
        forged.extend(self.verify_written(repository));
        for (id, words) in forged {
            let mut words = format!("it stored other content under the object id {id}{words}");
            if !restore_object(repository, id) {
                words += "; the original content is lost";
            }
            self.changes.push(words);
        }
    }

    /// Verifies files that were written into, which does not change the stamp of their folder. Looking at all files would take
    /// too long, so only the objects in the known index are looked at, because tests and reviewers see those. Other objects
    /// are hashed when a checkout writes them.
    fn verify_written(&mut self, repository: &Repository) -> Vec<(Oid, String)> {
        let mut forged = Vec::new();
        let entries = repository.recall_entries();
        let objects = repository.common_dir.join("objects");
        let Ok(opened) = safe_files::OpenedFolder::open(&objects) else { return forged };
        for (_, id) in entries.iter().flat_map(|entries| entries.files_changed_since(None)) {
            let mut path = id.to_string();
            let Some(folder) = self.loose.get_mut(OsStr::new(&path[..2])) else { continue };
            let Some(known) = folder.files.get(&id).copied() else { continue };
            path.insert(2, '/');
            if let Some(Facts { kind: FileKind::File, stamp, .. }) = opened.look_at(path)
                && known != KnownFile::Settled(stamp)
            {
                forged.extend(folder.verify_file(repository, id, &stamp));
            }
        }
        forged
    }

    fn verify_packs(&mut self, repository: &Repository) {
        let found = packs_of(repository);
        let count = self.packs.len();
        self.packs.retain(|stem, _| found.contains_key(stem));
        self.has_lost_files |= self.packs.len() < count;
        for (stem, stamps) in found {
            let is_valid = match self.packs.get(&stem) {
                Some(known) if *known == stamps => continue,
                // Only its mtime was set, or its content has changed.
                Some((pack, index)) if *index == stamps.1 && is_same_file(pack, &stamps.0) => {
                    stamps.0.size > LARGEST_PACK
                        || has_own_sum(&stem.with_extension("pack"), repository.format)
                }
                _ => is_valid_pack(repository, &stem),
            };
            if is_valid {
                self.packs.insert(stem, stamps);
                continue;
            }
            self.packs.remove(&stem);
            let files: Vec<PathBuf> = PACK_EXTENSIONS.iter().map(|end| stem.with_extension(end)).collect();
            let kept = move_away(repository, &files);
            let name = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.changes.push(format!("it stored a pack that does not match its index: {name}{kept}"));
        }
    }
}

impl Folder {
    /// Verifies a changed file. A forged one is moved aside, and its id and a message are returned.
    fn verify_file(
        &mut self,
        repository: &Repository,
        id: Oid,
        found: &ChangeStamp,
    ) -> Option<(Oid, String)> {
        let known = self.files.get(&id).copied();
        if known == Some(KnownFile::Settled(*found)) {
            return None;
        }
        // Checked before the file is read, so that later writes get another ctime.
        let is_fresh = found.is_fresh();
        let file = repository.loose_file(id);
        match verify(repository, &file, id, known) {
            Verification::True(_) if !is_fresh => {
                self.files.insert(id, KnownFile::Settled(*found));
                None
            }
            Verification::True(Some(hash)) => {
                self.files.insert(id, KnownFile::Fresh(hash));
                None
            }
            // Without the hash of its bytes, it is verified again each time.
            Verification::True(None) => {
                self.files.remove(&id);
                None
            }
            Verification::False => {
                self.files.remove(&id);
                Some((id, move_away(repository, &[file])))
            }
        }
    }
}

/// Whether this is a folder of loose objects.
fn is_loose((name, kind, _): &StampedName) -> bool {
    *kind == FileKind::Folder && name.len() == 2 && name.as_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// All files in a folder. Links and special files are watched elsewhere.
fn files_in(folder: &Path) -> HashMap<OsString, ChangeStamp> {
    let entries = safe_files::list_stamps(folder).unwrap_or_default().into_iter();
    entries.filter(|(_, kind, _)| *kind == FileKind::File).map(|(name, _, stamp)| (name, stamp)).collect()
}

/// The packs that git reads: those with an index.
fn packs_of(repository: &Repository) -> BTreeMap<PathBuf, (ChangeStamp, ChangeStamp)> {
    let folder = repository.common_dir.join("objects/pack");
    let found = files_in(&folder);
    let stems: BTreeSet<&[u8]> =
        found.keys().filter_map(|name| name.as_bytes().strip_suffix(b".idx")).collect();
    let stamp = |stem: &[u8], end: &[u8]| found.get(OsStr::from_bytes(&[stem, end].concat())).copied();
    let pair = |stem: &&[u8]| Some((stamp(stem, b".pack")?, stamp(stem, b".idx")?));
    stems.iter().filter_map(|stem| Some((folder.join(OsStr::from_bytes(stem)), pair(stem)?))).collect()
}

/// The files in a folder of loose objects, by their ids. An unfinished file of git has no id.
fn objects_in(folder: &Path) -> Vec<(Oid, ChangeStamp)> {
    let mut found = Vec::new();
    let mut hex = folder.file_name().unwrap_or_default().as_bytes().to_vec();
    let listed = safe_files::visit_stamps(folder, |name, kind, stamp| {
        hex.truncate(2);
        hex.extend(name.as_bytes());
        found.extend(Oid::from_hex(&hex).filter(|_| kind == FileKind::File).map(|id| (id, *stamp)));
        Some(())
    });
    // A folder that is gone is empty.
    let _ = listed;
    found
}

/// The ids of all loose objects.
pub(in crate::git) fn list_loose_ids(repository: &Repository) -> Vec<Oid> {
    let objects = repository.common_dir.join("objects");
    let folders = safe_files::list_stamps(&objects).unwrap_or_default().into_iter().filter(is_loose);
    folders.flat_map(|(name, _, _)| objects_in(&objects.join(name))).map(|(id, _)| id).collect()
}

/// The result of verifying a file.
enum Verification {
    /// The content matches its id. The hash of its bytes is given if they were read.
    True(Option<ContentHash>),
    False,
}

impl Verification {
    fn of(is_true: bool, hash: Option<ContentHash>) -> Self {
        if is_true { Self::True(hash) } else { Self::False }
    }
}

/// Whether the content of a file matches its id. A file that is gone does no harm.
fn verify(repository: &Repository, file: &Path, id: Oid, known: Option<KnownFile>) -> Verification {
    let Ok(stream) = safe_files::read_up_to(file, LARGEST_OBJECT_FILE) else {
        return Verification::of(safe_files::kind_of(file).is_none() || is_readable(repository, id), None);
    };
    let hash = ContentHash::of(&stream);
    if known == Some(KnownFile::Fresh(hash)) {
        return Verification::True(Some(hash));
    }
    // Not with libgit2 or git: they look up an object by its id, and may read another file than this one.
    match decompress_to_vec_zlib_with_limit(&stream, LARGEST_CONTENT) {
        Ok(object) => Verification::of(Oid::hash_raw(&object, repository.format) == id, Some(hash)),
        Err(_) => Verification::of(is_large(&stream) && is_readable(repository, id), None),
    }
}

/// Whether the content could be larger than the limit.
fn is_large(stream: &[u8]) -> bool {
    // Deflate needs at least two bits for 258 bytes.
    const HIGHEST_RATIO: usize = 258 * 4;
    stream.len() > LARGEST_CONTENT / HIGHEST_RATIO
}

fn is_readable(repository: &Repository, id: Oid) -> bool {
    matches!(repository.find_object(id, "object"), Ok(Some(_)))
}

/// Whether a pack is consistent with its index.
pub(in crate::git) fn is_valid_pack(repository: &Repository, stem: &Path) -> bool {
    let verify = repository.git("verify-pack").arg("--").arg(stem.with_extension("idx"));
    verify.finish().is_ok_and(|ended| ended.status.success())
}

/// Whether a pack ends with its own checksum. The known index contains the same checksum, which git compares.
fn has_own_sum(pack: &Path, format: ObjectFormat) -> bool {
    let Ok(bytes) = safe_files::read_up_to(pack, LARGEST_PACK) else { return false };
    let Some(at) = bytes.len().checked_sub(format.hex_len() / 2) else { return false };
    Oid::hash_raw(&bytes[..at], format).as_bytes() == &bytes[at..]
}

fn is_same_file(one: &ChangeStamp, other: &ChangeStamp) -> bool {
    (one.inode, one.size) == (other.inode, other.size)
}

/// Moves files into a new folder, and returns a message that says where they are.
fn move_away(repository: &Repository, files: &[PathBuf]) -> String {
    let folder = unused_path(&repository.common_dir);
    let there: Vec<&PathBuf> = files.iter().filter(|file| safe_files::kind_of(file).is_some()).collect();
    let target = |file: &Path| folder.join(file.file_name().unwrap_or_default());
    let moved = safe_files::make_folders(&folder)
        .and_then(|()| there.iter().try_for_each(|file| safe_files::rename(file, &target(file))));
    match moved {
        Ok(()) => format!("; it is kept in {}", folder.display()),
        Err(error) => format!("; it could not be moved away: {error}"),
    }
}

/// Writes an object again from a checked-out file. Returns whether it exists now.
fn restore_object(repository: &Repository, id: Oid) -> bool {
    let is_there = || is_readable(repository, id);
    let main = || repository.list_worktrees().ok()?.first().and_then(|main| repository.linked(main));
    is_there()
        || store_from(repository, id).is_ok_and(|()| is_there())
        || main().is_some_and(|main| store_from(&main, id).is_ok_and(|()| is_there()))
}

fn store_from(checkout: &Repository, id: Oid) -> Result<(), GitError> {
    let listed = checkout.git("ls-files").args(["-s", "-z", "--full-name", "--", ":/"]).stdout()?;
    let wanted = format!(" {id} ");
    for entry in listed.split(|byte| *byte == 0) {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        let (facts, path) = entry.split_at(tab);
        if String::from_utf8_lossy(facts).contains(&wanted) {
            let command = checkout.change("hash-object").args(["-w", "--"]);
            command.arg(OsStr::from_bytes(&path[1..])).stdout()?;
        }
    }
    Ok(())
}
