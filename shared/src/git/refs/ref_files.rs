//! Reads loose and packed refs from their files, which is faster than asking git. The answer is `None` wherever only
//! git can tell. libgit2 could read refs too, but it follows links and blocks on named pipes that an agent could plant.

use std::{collections::BTreeMap, fs, io::ErrorKind, os::unix::fs::MetadataExt, path::Path};

use crate::{
    git::{GitError, Ref, Repository, misplaced_files::unused_path, refs::TEMPORARY},
    name::Oid,
    safe_files,
};

/// The folders of refs that all worktrees share and that we use.
const SHARED: [&str; 2] = ["refs/heads/", "refs/arborist/"];

/// A larger packed-refs is left to git, which searches it without reading all of it.
const LARGEST_PACKED: u64 = 1 << 20;

impl Repository {
    /// The refs below each of `prefixes`, sorted by name. `None` if only git can tell. Of folders that we do not use, only
    /// the absence of refs is read here, as in [`Self::find_ref_in_files`].
    pub(in crate::git) fn read_refs(&self, prefixes: &[&str]) -> Option<Vec<Ref>> {
        let is_used = |prefix: &&str| {
            SHARED.iter().any(|folder| prefix.starts_with(folder) || *prefix == folder.trim_end_matches('/'))
        };
        let (used, unused): (Vec<&str>, Vec<&str>) = prefixes.iter().copied().partition(is_used);
        if !self.has_files_backend || !unused.iter().all(|prefix| self.lacks_loose(prefix)) {
            return None;
        }
        let is_wanted = |name: &str| prefixes.iter().any(|prefix| is_below(name, prefix));
        let mut found = BTreeMap::new();
        for prefix in used {
            for (name, loose) in self.read_loose(prefix.trim_end_matches('/')) {
                match loose {
                    RefValue::Id(target) if is_valid(&name) => found.insert(name, target),
                    RefValue::Id(_) | RefValue::Other => return None,
                };
            }
        }
        // git writes packed-refs before it removes loose files, so that packed-refs is read last.
        for (name, target) in self.read_packed_refs()? {
            if unused.iter().any(|prefix| is_below(&name, prefix)) {
                return None;
            }
            found.entry(name).or_insert(target);
        }
        let found = found.into_iter().filter(|(name, _)| is_wanted(name));
        Some(found.map(|(name, target)| Ref { name, target }).collect())
    }

    /// Whether a folder of refs that all worktrees share has no loose refs.
    fn lacks_loose(&self, folder: &str) -> bool {
        let is_shared =
            folder.starts_with("refs/") && !TEMPORARY.iter().any(|other| folder.starts_with(other));
        let path = self.common_dir.join(folder);
        is_shared && !folder.contains("..") && folder.ends_with('/') && !is_full_folder(&path)
    }

    /// All packed refs. `None` if only git can tell.
    pub(in crate::git) fn read_packed_refs(&self) -> Option<Vec<(String, Oid)>> {
        let text = self.packed_refs()?;
        let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
        lines.map(|line| self.parse_packed(line)).collect()
    }

    /// The value of one packed ref. `None` outside if only git can tell.
    fn find_packed(&self, name: &str) -> Option<Option<Oid>> {
        let text = self.packed_refs()?;
        let Some(at) = text.find(&format!(" {name}\n")) else { return Some(None) };
        let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.parse_packed(&text[begin..at + 1 + name.len()]).map(|(_, target)| Some(target))
    }

    fn parse_packed(&self, line: &str) -> Option<(String, Oid)> {
        let (id, name) = line.split_once(' ')?;
        let is_complete = id.len() == self.format.hex_len() && is_valid(name);
        is_complete.then(|| Oid::from_hex(id.as_bytes())).flatten().map(|id| (name.to_owned(), id))
    }

    /// The content of packed-refs, empty if there is none. `None` if it is too large or cannot be read.
    fn packed_refs(&self) -> Option<String> {
        let file = self.common_dir.join("packed-refs");
        match file.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Some(String::new()),
            Ok(found) if found.len() <= LARGEST_PACKED => safe_files::read_text(&file).ok(),
            _ => None,
        }
    }

    /// The value of a ref with this full name, `None` inside if it does not exist. `None` outside if only git can tell:
    /// with reftables, for a symbolic ref and for a large packed-refs. Of refs that we do not use, only the absence is
    /// read here: git ignores those whose object is missing.
    pub(in crate::git) fn find_ref_in_files(&self, name: &str) -> Option<Option<Oid>> {
        let is_shared = name.starts_with("refs/") && !TEMPORARY.iter().any(|folder| name.starts_with(folder));
        if !is_shared || name.contains("..") || !self.has_files_backend {
            return None;
        }
        let found = self.find_shared_ref(name)?;
        let is_used = SHARED.iter().any(|folder| name.starts_with(folder));
        (is_used || found.is_none()).then_some(found)
    }

    fn find_shared_ref(&self, name: &str) -> Option<Option<Oid>> {
        match safe_files::read(&self.common_dir.join(name)) {
            Ok(content) => {
                let id = content.trim_ascii_end();
                let is_complete = id.len() == self.format.hex_len();
                is_complete.then(|| Oid::from_hex(id)).flatten().map(Some)
            }
            // git writes packed-refs before it removes the loose file.
            Err(error) if error.kind() == ErrorKind::NotFound => self.find_packed(name),
            Err(_) => None,
        }
    }
}

/// Whether this is a folder with at least one file. git itself removes empty folders.
fn is_full_folder(path: &Path) -> bool {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop().filter(|folder| is_folder(folder)) {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !is_folder(&entry.path()) {
                return true;
            }
            open.push(entry.path());
        }
    }
    false
}

/// Whether git's `for-each-ref` would match a name by this prefix: by the whole name, or by leading folders.
fn is_below(name: &str, prefix: &str) -> bool {
    let folder = prefix.trim_end_matches('/');
    name == prefix || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn is_valid(name: &str) -> bool {
    git2::Reference::is_valid_name(name)
}

/// The content of the file of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum RefValue {
    /// An object id.
    Id(Oid),
    /// Anything else: a symbolic ref, a symbolic link, or something that git cannot read.
    Other,
}

/// Identifies one version of packed-refs. Only the kernel can set a ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct PackedStamp([u64; 3], [i64; 4]);

/// Folders of refs that belong to us. Refs above these folders may be the user's.
const OURS: [&str; 2] = ["refs/heads/arborist/", "refs/arborist/"];

impl Repository {
    pub(in crate::git) fn packed_stamp(&self) -> Option<PackedStamp> {
        let found = fs::symlink_metadata(self.common_dir.join("packed-refs")).ok()?;
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Some(PackedStamp([found.dev(), found.ino(), found.size()], times))
    }

    /// The loose ref of this name, or all loose refs below it. Links are not followed.
    pub(in crate::git) fn read_loose(&self, name: &str) -> Vec<(String, RefValue)> {
        let mut found = Vec::new();
        self.add_loose(name, &mut found);
        found
    }

    fn add_loose(&self, name: &str, found: &mut Vec<(String, RefValue)>) {
        let path = self.common_dir.join(name);
        let Ok(metadata) = path.symlink_metadata() else { return };
        if !metadata.is_dir() {
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            if !is_lock {
                found.push((name.to_owned(), self.read_ref_file(&path, metadata.is_file())));
            }
            return;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            // Ref names of ours are UTF-8, and a name that is not cannot replace one of them.
            if let Some(last) = entry.file_name().to_str() {
                self.add_loose(&format!("{name}/{last}"), found);
            }
        }
    }

    fn read_ref_file(&self, path: &Path, is_file: bool) -> RefValue {
        let content = if is_file { safe_files::read(path).unwrap_or_default() } else { Vec::new() };
        let id = content.trim_ascii_end();
        let is_complete = id.len() == self.format.hex_len();
        is_complete.then(|| Oid::from_hex(id)).flatten().map_or(RefValue::Other, RefValue::Id)
    }

    /// Refs of ours that are files where `name` needs folders, so that git cannot create it.
    pub(in crate::git) fn find_blocking(&self, name: &str) -> Vec<(String, RefValue)> {
        let ends = name.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &name[..at]);
        let is_ours = |above: &&str| OURS.iter().any(|ours| above.starts_with(ours));
        let is_not_a_folder = |above: &&str| {
            let found = self.common_dir.join(above).symlink_metadata();
            found.is_ok_and(|found| !found.is_dir())
        };
        let blocking = ends.filter(is_ours).filter(is_not_a_folder);
        blocking.flat_map(|above| self.read_loose(above)).collect()
    }

    /// Moves aside what keeps git from writing the file of a ref: a folder with files in its place, or a file where the
    /// name needs a folder. Returns a message that says where it is now.
    pub fn make_room_for_ref(&self, name: &str) -> Option<String> {
        if !self.has_files_backend {
            return None;
        }
        let above = name.char_indices().filter(|(at, c)| *c == '/' && *at > 4).map(|(at, _)| &name[..at]);
        let is_not_a_folder = |path: &&str| {
            let found = self.common_dir.join(path).symlink_metadata();
            found.is_ok_and(|found| !found.is_dir())
        };
        let is_full = |path: &&str| is_full_folder(&self.common_dir.join(path));
        let blocking = above.filter(is_not_a_folder).chain([name].into_iter().filter(is_full)).next()?;
        let place = unused_path(&self.common_dir);
        match safe_files::rename(&self.common_dir.join(blocking), &place) {
            Ok(()) => Some(format!("the file or folder at {blocking} is kept in {}", place.display())),
            Err(error) => Some(format!("the file or folder at {blocking} could not be moved away: {error}")),
        }
    }

    /// Whether a ref is symbolic, or something that git cannot read. With reftables, git is asked.
    #[must_use]
    pub fn is_symbolic_ref(&self, name: &str) -> bool {
        if self.has_files_backend {
            return self.read_loose(name).iter().any(|(_, loose)| *loose == RefValue::Other);
        }
        let reply = self.git("symbolic-ref").args(["--quiet", name]).finish();
        reply.is_ok_and(|ended| ended.status.success())
    }

    /// Removes a ref if it is symbolic.
    pub fn remove_symbolic_ref(&self, name: &str) -> Result<(), GitError> {
        if self.is_symbolic_ref(name) { self.remove_invalid_ref(name) } else { Ok(()) }
    }

    /// Removes symbolic refs below these names: a fetch would move the refs that they point to.
    pub(in crate::git) fn remove_symbolic_refs_below(&self, names: &[&str]) -> Result<(), GitError> {
        let links: Vec<String> = if self.has_files_backend {
            let loose = names.iter().flat_map(|name| self.read_loose(name));
            loose.filter(|(_, loose)| *loose == RefValue::Other).map(|(name, _)| name).collect()
        } else {
            let listed = self.list_refs_and_links(names)?.into_iter();
            listed.filter(|(_, is_link)| *is_link).map(|(listed, _)| listed.name).collect()
        };
        links.iter().try_for_each(|name| self.remove_invalid_ref(name))
    }

    /// Removes a ref that is symbolic or unreadable. All folders above it must be real folders, so that nothing is
    /// removed through a link.
    pub(in crate::git) fn remove_invalid_ref(&self, name: &str) -> Result<(), GitError> {
        let is_folder =
            |above: &str| self.common_dir.join(above).symlink_metadata().is_ok_and(|found| found.is_dir());
        let mut above = name.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &name[..at]);
        if self.has_files_backend
            && above.all(is_folder)
            && safe_files::remove(&self.common_dir.join(name)).is_ok()
        {
            return Ok(());
        }
        self.change("update-ref").args(["--no-deref", "-d", name]).stdout().map(drop)
    }
}

/// The folder of all refs with a prefix.
pub(in crate::git) fn folder_of(prefix: &str) -> &str {
    prefix.rfind('/').map_or(prefix, |at| &prefix[..at])
}

/// Whether a ref is below a folder.
pub(in crate::git) fn is_inside(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}
