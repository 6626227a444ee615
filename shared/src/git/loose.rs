//! A look into the file of a ref, which costs less than to ask git: that looks for the name in a dozen places. What stands
//! nowhere else, or is not understood, git is asked about.

use std::{collections::BTreeMap, fs, io::ErrorKind, os::unix::fs::MetadataExt, path::Path};

use super::{GitError, Ref, Repository, homes::free_place};
use crate::{name::Oid, safe_files};

/// The refs that all worktrees share, of those that we know.
const SHARED: [&str; 2] = ["refs/heads/", "refs/arborist/"];

/// A longer file of packed refs is left to git, which finds a place in it without reading all of it.
const MOST_PACKED: u64 = 1 << 20;

impl Repository {
    /// The refs below each of `prefixes`, by name. `None` if only git can tell. libgit2 could list them too, but it
    /// follows links and waits at pipes.
    pub(super) fn read_refs(&self, prefixes: &[&str]) -> Option<Vec<Ref>> {
        let is_shared = |prefix: &&str| {
            SHARED.iter().any(|folder| prefix.starts_with(folder) || *prefix == folder.trim_end_matches('/'))
        };
        if !self.keeps_loose_refs || !prefixes.iter().all(is_shared) {
            return None;
        }
        let is_asked = |name: &str| prefixes.iter().any(|prefix| is_below(name, prefix));
        let mut found = BTreeMap::new();
        for prefix in prefixes {
            for (name, loose) in self.read_loose(prefix.trim_end_matches('/')) {
                match loose {
                    Loose::At(target) if is_valid(&name) => found.insert(name, target),
                    Loose::At(_) | Loose::Odd => return None,
                };
            }
        }
        // Whoever packs refs writes the file of all before the file of one goes, so it is read last.
        for (name, target) in self.read_packed_refs()? {
            found.entry(name).or_insert(target);
        }
        let found = found.into_iter().filter(|(name, _)| is_asked(name));
        Some(found.map(|(name, target)| Ref { name, target }).collect())
    }

    /// All packed refs. `None` if only git can tell.
    pub(super) fn read_packed_refs(&self) -> Option<Vec<(String, Oid)>> {
        let text = self.packed_refs()?;
        let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
        lines.map(|line| self.parse_packed(line)).collect()
    }

    /// The same for one of them.
    fn find_packed(&self, name: &str) -> Option<Option<Oid>> {
        let text = self.packed_refs()?;
        let Some(at) = text.find(&format!(" {name}\n")) else { return Some(None) };
        let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.parse_packed(&text[begin..at + 1 + name.len()]).map(|(_, target)| Some(target))
    }

    fn parse_packed(&self, line: &str) -> Option<(String, Oid)> {
        let (id, name) = line.split_once(' ')?;
        let is_whole = id.len() == self.format.hex_len() && is_valid(name);
        is_whole.then(|| Oid::from_hex(id.as_bytes())).flatten().map(|id| (name.to_owned(), id))
    }

    /// The file of packed refs, which is empty if there is none. `None` if it is long, or cannot be read.
    fn packed_refs(&self) -> Option<String> {
        let file = self.common_dir.join("packed-refs");
        match file.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Some(String::new()),
            Ok(found) if found.len() <= MOST_PACKED => safe_files::read_text(&file).ok(),
            _ => None,
        }
    }

    /// What the ref of this full name points at, `None` within if there is none. `None` outside if only git can tell: refs
    /// may be packed, kept in tables, or lead to other refs.
    pub(super) fn glance_at_ref(&self, name: &str) -> Option<Option<Oid>> {
        let is_plain = SHARED.iter().any(|folder| name.starts_with(folder)) && !name.contains("..");
        if !is_plain || !self.keeps_loose_refs {
            return None;
        }
        match safe_files::read(&self.common_dir.join(name)) {
            Ok(content) => {
                let id = content.trim_ascii_end();
                let is_whole = id.len() == self.format.hex_len();
                is_whole.then(|| Oid::from_hex(id)).flatten().map(Some)
            }
            // Whoever packs refs writes the file of all before the file of one goes.
            Err(error) if error.kind() == ErrorKind::NotFound => self.find_packed(name),
            Err(_) => None,
        }
    }
}

/// Whether there is a folder with more in it than empty folders, which git removes by itself.
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

/// As git matches a prefix: the whole name, or the folders at its begin.
fn is_below(name: &str, prefix: &str) -> bool {
    let folder = prefix.trim_end_matches('/');
    name == prefix || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn is_valid(name: &str) -> bool {
    git2::Reference::is_valid_name(name)
}

/// What stands in the file of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loose {
    /// The name of an object.
    At(Oid),
    /// Something else: the name of another ref, a link, or nothing that git would read.
    Odd,
}

/// What tells one writing of the file of packed refs from the next. Nobody but the system can set the time of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedStamp([u64; 3], [i64; 4]);

/// Refs that stand above all of ours may be the user's.
const OURS: [&str; 2] = ["refs/heads/arborist/", "refs/arborist/"];

impl Repository {
    pub(super) fn packed_stamp(&self) -> Option<PackedStamp> {
        let found = fs::symlink_metadata(self.common_dir.join("packed-refs")).ok()?;
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        Some(PackedStamp([found.dev(), found.ino(), found.size()], times))
    }

    /// The ref of this name, or all below it. No link is followed.
    pub(super) fn read_loose(&self, name: &str) -> Vec<(String, Loose)> {
        let mut found = Vec::new();
        self.add_loose(name, &mut found);
        found
    }

    fn add_loose(&self, name: &str, found: &mut Vec<(String, Loose)>) {
        let path = self.common_dir.join(name);
        let Ok(metadata) = path.symlink_metadata() else { return };
        if !metadata.is_dir() {
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            if !is_lock {
                found.push((name.to_owned(), self.read_file_of_ref(&path, metadata.is_file())));
            }
            return;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            // A name that is not UTF-8 is none of ours, and cannot hide one that is.
            if let Some(last) = entry.file_name().to_str() {
                self.add_loose(&format!("{name}/{last}"), found);
            }
        }
    }

    fn read_file_of_ref(&self, path: &Path, is_file: bool) -> Loose {
        let content = if is_file { safe_files::read(path).unwrap_or_default() } else { Vec::new() };
        let id = content.trim_ascii_end();
        let is_whole = id.len() == self.format.hex_len();
        is_whole.then(|| Oid::from_hex(id)).flatten().map_or(Loose::Odd, Loose::At)
    }

    /// What stands where folders of `name` must be, and keeps any ref from being made there.
    pub(super) fn find_blocking(&self, name: &str) -> Vec<(String, Loose)> {
        let ends = name.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &name[..at]);
        let is_ours = |above: &&str| OURS.iter().any(|ours| above.starts_with(ours));
        let is_no_folder = |above: &&str| {
            let found = self.common_dir.join(above).symlink_metadata();
            found.is_ok_and(|found| !found.is_dir())
        };
        let blocking = ends.filter(is_ours).filter(is_no_folder);
        blocking.flat_map(|above| self.read_loose(above)).collect()
    }

    /// Moves away what keeps git from writing the file of a ref: a folder with anything in it in its place, or a file where a
    /// folder of its name must be. Says where that is now.
    pub fn make_room_for_ref(&self, name: &str) -> Option<String> {
        if !self.keeps_loose_refs {
            return None;
        }
        let above = name.char_indices().filter(|(at, c)| *c == '/' && *at > 4).map(|(at, _)| &name[..at]);
        let is_no_folder = |path: &&str| {
            let found = self.common_dir.join(path).symlink_metadata();
            found.is_ok_and(|found| !found.is_dir())
        };
        let is_full = |path: &&str| is_full_folder(&self.common_dir.join(path));
        let blocking = above.filter(is_no_folder).chain([name].into_iter().filter(is_full)).next()?;
        let place = free_place(self);
        match safe_files::rename(&self.common_dir.join(blocking), &place) {
            Ok(()) => Some(format!("what stood at {blocking} is kept in {}", place.display())),
            Err(error) => Some(format!("what stands at {blocking} could not be moved away: {error}")),
        }
    }

    /// Whether a ref leads to another one. In tables only git can tell.
    #[must_use]
    pub fn leads_elsewhere(&self, name: &str) -> bool {
        if self.keeps_loose_refs {
            return self.read_loose(name).iter().any(|(_, loose)| *loose == Loose::Odd);
        }
        let asked = self.git("symbolic-ref").args(["--quiet", name]).finish();
        asked.is_ok_and(|ended| ended.status.success())
    }

    /// Takes a ref away that leads to another one. One that leads to an object stays.
    pub fn unlink_ref(&self, name: &str) -> Result<(), GitError> {
        if self.leads_elsewhere(name) { self.remove_odd_ref(name) } else { Ok(()) }
    }

    /// Takes away refs below these names that lead to other refs: a fetch would move those others.
    pub(super) fn remove_links_below(&self, names: &[&str]) -> Result<(), GitError> {
        let links: Vec<String> = if self.keeps_loose_refs {
            let loose = names.iter().flat_map(|name| self.read_loose(name));
            loose.filter(|(_, loose)| *loose == Loose::Odd).map(|(name, _)| name).collect()
        } else {
            let listed = self.list_refs_and_links(names)?.into_iter();
            listed.filter(|(_, is_link)| *is_link).map(|(listed, _)| listed.name).collect()
        };
        links.iter().try_for_each(|name| self.remove_odd_ref(name))
    }

    /// Takes away what is no ref, or leads to another one. The folders that it is in must be folders: nothing is removed
    /// through a link.
    pub(super) fn remove_odd_ref(&self, name: &str) -> Result<(), GitError> {
        let is_folder =
            |above: &str| self.common_dir.join(above).symlink_metadata().is_ok_and(|found| found.is_dir());
        let mut above = name.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &name[..at]);
        if self.keeps_loose_refs
            && above.all(is_folder)
            && safe_files::remove(&self.common_dir.join(name)).is_ok()
        {
            return Ok(());
        }
        self.change("update-ref").args(["--no-deref", "-d", name]).stdout().map(drop)
    }
}
