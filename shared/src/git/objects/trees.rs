//! Compares trees, and writes trees with changes.

use std::{
    collections::{BTreeMap, HashMap},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex},
};

use crate::{
    git::{GitError, Repository, TreeChange},
    mutex::MutexExt,
    name::{ObjectKind, Oid},
};

/// A folder's mode.
const FOLDER: &[u8] = b"40000";

/// How many tree entries are cached. Each takes about a hundred bytes.
const MAX_CACHED: usize = 100_000;

/// A cache of trees by id, because the same ones are compared many times for each task. Cached trees were hashed when
/// they were read; to verify the object files again, the objects themselves have to be read.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct TreeCache(Arc<Mutex<HashMap<Oid, Arc<Vec<TreeEntry>>>>>);

impl TreeCache {
    fn find(&self, tree: Oid) -> Option<Arc<Vec<TreeEntry>>> {
        self.0.hold().get(&tree).cloned()
    }

    fn remember(&self, tree: Oid, entries: &Arc<Vec<TreeEntry>>) {
        let mut known = self.0.hold();
        let count: usize = known.values().map(|entries| entries.len() + 1).sum();
        if count + entries.len() > MAX_CACHED {
            known.clear();
        }
        known.insert(tree, Arc::clone(entries));
    }
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct TreeEntry {
    mode: Vec<u8>,
    name: Vec<u8>,
    id: Oid,
}

impl TreeEntry {
    /// Whether it is a folder. Old trees have a zero before the mode.
    fn is_folder(&self) -> bool {
        self.mode.strip_prefix(b"0").unwrap_or(&self.mode) == FOLDER
    }

    /// Its mode as git shows it, and its id; `None` for a folder. Very old trees contain modes such as 100664.
    fn as_file(&self) -> Option<(u32, Oid)> {
        let mode = u32::from_str_radix(std::str::from_utf8(&self.mode).ok()?, 8).ok()?;
        let shown = match mode & 0o170_000 {
            0o040_000 => return None,
            0o100_000 if mode & 0o100 != 0 => 0o100_755,
            0o100_000 => 0o100_644,
            0o120_000 => 0o120_000,
            _ => 0o160_000,
        };
        Some((shown, self.id))
    }

    /// The sort key: folders are sorted as if their names ended in a slash.
    fn key(&self) -> Vec<u8> {
        let end: &[u8] = if self.is_folder() { b"/" } else { b"" };
        [&self.name, end].concat()
    }
}

/// The changes at one name of a tree.
#[derive(Default)]
struct Edit<'a> {
    /// The new file of that name; `Some(None)` if it is removed.
    file: Option<Option<(u32, Oid)>>,
    /// Changes below it.
    below: Vec<Step<'a>>,
}

/// The rest of a path, and the new mode and id there.
type Step<'a> = (&'a [u8], Option<(u32, Oid)>);

impl Repository {
    /// The repository with an empty cache of trees.
    pub(in crate::git) fn without_cached_trees(&self) -> Self {
        Self { tree_cache: TreeCache::default(), ..self.clone() }
    }

    /// The paths that differ between two trees, sorted.
    pub fn changes(&self, before: Oid, after: Oid) -> Result<Vec<TreeChange>, GitError> {
        let mut changes = Vec::new();
        // A work list instead of recursion: an agent can create folders so deep that the stack would overflow.
        let mut open = vec![(Vec::new(), Some(before), Some(after))];
        while let Some((folder, before, after)) = open.pop() {
            if before == after {
                continue;
            }
            for (name, [before, after]) in self.pair_entries(before, after)? {
                let path = [folder.as_slice(), &name].concat();
                let inner = |entry: &Option<TreeEntry>| {
                    entry.as_ref().filter(|entry| entry.is_folder()).map(|entry| entry.id)
                };
                let file = |entry: &Option<TreeEntry>| entry.as_ref().and_then(TreeEntry::as_file);
                open.push(([path.as_slice(), b"/"].concat(), inner(&before), inner(&after)));
                let (before, after) = (file(&before), file(&after));
                if before != after {
                    changes.push(TreeChange { path, before, after });
                }
            }
        }
        // git sorts as if names of folders ended in a slash, which is the order of full paths.
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// The entries of two folders, paired by name.
    fn pair_entries(
        &self,
        before: Option<Oid>,
        after: Option<Oid>,
    ) -> Result<BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]>, GitError> {
        let mut pairs: BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]> = BTreeMap::new();
        let read = |tree: Option<Oid>| tree.map_or_else(|| Ok(Arc::default()), |tree| self.entries_of(tree));
        let (before, after) = (read(before)?, read(after)?);
        let (before, after) = without_same_ends(&before, &after);
        for (side, entries) in [before, after].into_iter().enumerate() {
            for entry in entries {
                pairs.entry(entry.name.clone()).or_default()[side] = Some(entry.clone());
            }
        }
        Ok(pairs)
    }

    /// The object at `path`, as bytes of a file name, in a tree.
    pub fn find_entry(&self, tree: Oid, path: &[u8]) -> Result<Option<Oid>, GitError> {
        let mut found = (tree, true);
        for name in path.split(|byte| *byte == b'/') {
            let (folder, true) = found else { return Ok(None) };
            match self.entries_of(folder)?.iter().find(|entry| entry.name == name) {
                Some(entry) => found = (entry.id, entry.is_folder()),
                None => return Ok(None),
            }
        }
        Ok(Some(found.0))
    }

    /// Whether a tree has a file or a folder at this path.
    pub fn has_path(&self, tree: Oid, path: &Path) -> Result<bool, GitError> {
        let names: Vec<&[u8]> = path.iter().map(OsStrExt::as_bytes).collect();
        Ok(self.find_entry(tree, &names.join(b"/".as_slice()))?.is_some())
    }

    /// The tree `base` with these changes.
    pub fn tree_with(&self, base: Oid, changes: &[TreeChange]) -> Result<Oid, GitError> {
        let steps = changes.iter().map(|change| (change.path.as_slice(), change.after));
        match self.apply_edits(Some(base), steps.collect())? {
            Some(tree) => Ok(tree),
            None => self.write_object(ObjectKind::Tree, b""),
        }
    }

    /// A tree with these changes; `None` if it would be empty. It uses a work list instead of recursion: an agent can
    /// commit folders so deep that the stack would overflow.
    fn apply_edits(&self, tree: Option<Oid>, steps: Vec<Step<'_>>) -> Result<Option<Oid>, GitError> {
        let mut open = vec![self.open_folder(b"", tree, None, steps)?];
        while let Some(folder) = open.last_mut() {
            if let Some((name, edit)) = folder.edits.next() {
                if let Some(inner) = self.edit_entry(folder, name, edit)? {
                    open.push(inner);
                }
                continue;
            }
            let Some(done) = open.pop() else { break };
            let id = self.write_entries(done.entries)?;
            match open.last_mut() {
                Some(parent) => {
                    let inner =
                        id.map(|id| TreeEntry { mode: FOLDER.to_vec(), name: done.name.to_vec(), id });
                    parent.entries.extend(inner.or(done.file));
                }
                None => return Ok(id),
            }
        }
        Ok(None)
    }

    fn open_folder<'s>(
        &self,
        name: &'s [u8],
        tree: Option<Oid>,
        file: Option<TreeEntry>,
        steps: Vec<Step<'s>>,
    ) -> Result<OpenFolder<'s>, GitError> {
        let entries = match tree {
            Some(tree) => self.entries_of(tree)?.to_vec(),
            None => Vec::new(),
        };
        Ok(OpenFolder { name, file, entries, edits: by_name(steps).into_iter() })
    }

    /// Applies one change in a folder. A file replaces a folder of the same name, and vice versa. Returns the folder of
    /// that name if there are changes below it.
    fn edit_entry<'s>(
        &self,
        folder: &mut OpenFolder<'s>,
        name: &'s [u8],
        edit: Edit<'s>,
    ) -> Result<Option<OpenFolder<'s>>, GitError> {
        let entries = &mut folder.entries;
        let old = entries.iter().position(|entry| entry.name == name).map(|at| entries.swap_remove(at));
        if let Some(Some((mode, id))) = edit.file {
            entries.push(TreeEntry { mode: format!("{mode:o}").into_bytes(), name: name.to_vec(), id });
            return Ok(None);
        }
        let (inner, file) = match old {
            Some(entry) if entry.is_folder() => (Some(entry), None),
            file => (None, file.filter(|_| edit.file.is_none())),
        };
        if edit.below.is_empty() {
            entries.extend(inner.or(file));
            return Ok(None);
        }
        self.open_folder(name, inner.map(|inner| inner.id), file, edit.below).map(Some)
    }

    /// Writes a tree; `None` if there are no entries.
    fn write_entries(&self, mut entries: Vec<TreeEntry>) -> Result<Option<Oid>, GitError> {
        if entries.is_empty() {
            return Ok(None);
        }
        entries.sort_by_cached_key(TreeEntry::key);
        let mut content = Vec::new();
        for TreeEntry { mode, name, id } in entries {
            content.extend([&mode, b" ".as_slice(), &name, b"\0", id.as_bytes()].concat());
        }
        self.write_object(ObjectKind::Tree, &content).map(Some)
    }

    /// The files of a tree that have this mode, with their contents.
    pub(in crate::git) fn list_files_of_mode(
        &self,
        tree: Oid,
        mode: u32,
    ) -> Result<Vec<(Vec<u8>, Oid)>, GitError> {
        let (mut open, mut found) = (vec![(Vec::new(), tree)], Vec::new());
        while let Some((folder, tree)) = open.pop() {
            for entry in self.entries_of(tree)?.iter() {
                let path = || [folder.as_slice(), &entry.name].concat();
                match entry.as_file() {
                    None => open.push(([path().as_slice(), b"/"].concat(), entry.id)),
                    Some((known, id)) if known == mode => found.push((path(), id)),
                    Some(_) => {}
                }
            }
        }
        Ok(found)
    }

    /// The folders in a tree, with their names.
    pub(in crate::git) fn folders_of(&self, tree: Oid) -> Result<Vec<(Vec<u8>, Oid)>, GitError> {
        let entries = self.entries_of(tree)?;
        let folders = entries.iter().filter(|entry| entry.is_folder());
        Ok(folders.map(|entry| (entry.name.clone(), entry.id)).collect())
    }

    fn entries_of(&self, tree: Oid) -> Result<Arc<Vec<TreeEntry>>, GitError> {
        if let Some(known) = self.tree_cache.find(tree) {
            return Ok(known);
        }
        let unknown = || GitError::Unknown(tree.to_string(), "tree");
        let content = self.read_object(ObjectKind::Tree, tree)?.ok_or_else(unknown)?;
        let unexpected =
            || GitError::UnexpectedOutput { command: "cat-file".into(), what: format!("tree {tree}") };
        let entries = Arc::new(parse_tree(&content, tree.as_bytes().len()).ok_or_else(unexpected)?);
        self.tree_cache.remember(tree, &entries);
        Ok(entries)
    }
}

/// A folder whose changes are being applied.
struct OpenFolder<'s> {
    name: &'s [u8],
    /// The file of this name, which comes back if the folder ends up empty.
    file: Option<TreeEntry>,
    entries: Vec<TreeEntry>,
    edits: std::collections::btree_map::IntoIter<&'s [u8], Edit<'s>>,
}

/// Two lists without their common prefix and suffix, which cannot differ.
fn without_same_ends<'e>(
    mut one: &'e [TreeEntry],
    mut other: &'e [TreeEntry],
) -> (&'e [TreeEntry], &'e [TreeEntry]) {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    (one, other) = (&one[same..], &other[same..]);
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    (&one[..one.len() - same], &other[..other.len() - same])
}

fn by_name(steps: Vec<Step<'_>>) -> BTreeMap<&[u8], Edit<'_>> {
    let mut edits: BTreeMap<&[u8], Edit<'_>> = BTreeMap::new();
    for (path, after) in steps {
        match memchr::memchr(b'/', path) {
            Some(at) => edits.entry(&path[..at]).or_default().below.push((&path[at + 1..], after)),
            None => edits.entry(path).or_default().file = Some(after),
        }
    }
    edits
}

/// Parses records `mode SP name NUL id`.
fn parse_tree(mut content: &[u8], id_len: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !content.is_empty() {
        let (space, end) = (memchr::memchr(b' ', content)?, memchr::memchr(0, content)?);
        let (mode, name) = (content[..space].to_vec(), content.get(space + 1..end)?.to_vec());
        let id = Oid::from_bytes(content.get(end + 1..end + 1 + id_len)?)?;
        entries.push(TreeEntry { mode, name, id });
        content = &content[end + 1 + id_len..];
    }
    Some(entries)
}
