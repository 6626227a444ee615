//! The entries of an index file. git trusts the stat data of an index: times, sizes and inodes of files. A process that
//! can write the index can make git believe that a changed file is unchanged. So stat data is taken only from a known
//! index, and all extensions that only save git some work are left out.

use std::{cmp::Ordering, collections::HashSet, fs, path::Path};

use crate::{
    git::{
        TreeChange,
        index::index_format::{self, ASSUMED, EXTENDED, EntryView, FACTS, IndexForm, MODE, SKIPPED, STAGE},
    },
    name::{ObjectFormat, ObjectKind, Oid},
    safe_files::ChangeStamp,
};

/// The kinds of entries with content: files and links.
const FILE: u8 = 0o10;
const LINK: u8 = 0o12;

/// The mode of a submodule.
const GITLINK: &[u8] = &[0, 0, 0o340, 0];

/// All entries of an index, in git's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct IndexEntries {
    form: IndexForm,
    entries: Vec<IndexEntry>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexEntry {
    facts: [u8; FACTS],
    id: Oid,
    flags: u16,
    more: u16,
    path: Vec<u8>,
}

/// What to do with the marks `assume-unchanged` and `skip-worktree`, which keep git from looking at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenMarks {
    /// Keep them: it is the user's index.
    Kept,
    /// Clear them: nothing has a reason to set them in one of our worktrees.
    Cleared,
}

impl IndexEntry {
    fn of(entry: EntryView<'_>) -> Self {
        let EntryView { facts, id, flags, more, path } = entry;
        Self { facts: *facts, id, flags, more, path: path.to_vec() }
    }

    fn view(&self) -> EntryView<'_> {
        EntryView { facts: &self.facts, id: self.id, flags: self.flags, more: self.more, path: &self.path }
    }

    fn stage(&self) -> u16 {
        self.flags & STAGE
    }

    fn mode(&self) -> &[u8] {
        &self.facts[MODE]
    }

    fn mode_bits(&self) -> u32 {
        self.mode().iter().fold(0, |mode, byte| mode << 8 | u32::from(*byte))
    }

    fn kind(&self) -> u8 {
        self.view().kind()
    }

    /// git sorts by path, then by stage.
    fn order(&self, other: &Self) -> Ordering {
        self.path.cmp(&other.path).then(self.stage().cmp(&other.stage()))
    }

    /// Clears the stat data, as `git read-tree` does, so that git has to read the file.
    fn forget_facts(&mut self) {
        self.facts[..MODE.start].fill(0);
        self.facts[MODE.end..].fill(0);
    }
}

impl IndexEntries {
    /// Parses an index file. `None` if it is broken or split.
    pub(in crate::git) fn parse(bytes: &[u8], format: ObjectFormat) -> Option<Self> {
        let mut entries = Vec::new();
        let form = index_format::visit(bytes, format, |entry| entries.push(IndexEntry::of(entry)))?;
        Some(Self { form, entries })
    }

    /// The bytes of an index file, without any extensions.
    pub(in crate::git) fn to_bytes(&self, format: ObjectFormat) -> Vec<u8> {
        index_format::write(self.form, self.entries.iter().map(IndexEntry::view), format)
    }

    /// Takes stat data from `known`, where it has the same entry and `is_trusted` agrees. All other stat data is
    /// cleared.
    pub(in crate::git) fn trust_only(
        &mut self,
        known: Option<&Self>,
        is_trusted: impl Fn(&[u8]) -> bool,
        marks: HiddenMarks,
    ) {
        let mut others = known.map_or(&[][..], |known| &known.entries);
        for entry in &mut self.entries {
            while others.first().is_some_and(|other| other.order(entry) == Ordering::Less) {
                others = &others[1..];
            }
            let same = others.first().filter(|other| other.order(entry) == Ordering::Equal);
            match same.filter(|same| same.id == entry.id && same.mode() == entry.mode()) {
                Some(same) if is_trusted(&entry.path) => entry.facts = same.facts,
                _ => entry.forget_facts(),
            }
            if marks == HiddenMarks::Cleared && !self.form.is_sparse {
                entry.flags &= !ASSUMED;
                entry.more &= !SKIPPED;
            }
        }
    }

    /// Restores the entries of the paths that `is_selected` selects from `before`. Returns whether that changed
    /// anything.
    pub(in crate::git) fn restore(&mut self, before: &Self, is_selected: impl Fn(&[u8]) -> bool) -> bool {
        let is_chosen = |entry: &&IndexEntry| is_selected(&entry.path);
        let wanted: Vec<&IndexEntry> = before.entries.iter().filter(is_chosen).collect();
        let same = |one: &IndexEntry, other: &IndexEntry| {
            let marks = |entry: &IndexEntry| (entry.flags, entry.more);
            (&one.path, one.id, one.mode(), marks(one)) == (&other.path, other.id, other.mode(), marks(other))
        };
        let found: Vec<&IndexEntry> = self.entries.iter().filter(is_chosen).collect();
        if found.len() == wanted.len() && found.iter().zip(&wanted).all(|(one, other)| same(one, other)) {
            return false;
        }
        // An entry where a restored path needs a folder, or below a restored path, cannot stay.
        let paths: HashSet<&[u8]> = wanted.iter().map(|entry| entry.path.as_slice()).collect();
        let folders: HashSet<&[u8]> = wanted.iter().flat_map(|entry| folders_of(&entry.path)).collect();
        let stays = |entry: &&IndexEntry| {
            let is_in_the_way = folders.contains(entry.path.as_slice())
                || folders_of(&entry.path).any(|folder| paths.contains(folder));
            !is_selected(&entry.path) && !is_in_the_way
        };
        let mut entries: Vec<IndexEntry> = self.entries.iter().filter(stays).cloned().collect();
        entries.extend(wanted.into_iter().cloned());
        entries.sort_by(IndexEntry::order);
        self.form.version = self.form.version.max(before.form.version);
        self.entries = entries;
        true
    }

    /// All entries, if each is a file or a link that git looks at; `None` if there is a conflict, a submodule or an
    /// `intent-to-add`.
    pub(in crate::git) fn plain(&self) -> Option<Vec<PlainEntry<'_>>> {
        let is_plain = |entry: &IndexEntry| {
            entry.flags & (ASSUMED | EXTENDED | STAGE) == 0 && matches!(entry.kind(), FILE | LINK)
        };
        let are_plain = !self.form.is_sparse && self.entries.iter().all(is_plain);
        are_plain.then(|| self.entries.iter().map(PlainEntry::of).collect())
    }

    /// The paths and ids of files with this name, in any folder.
    pub(in crate::git) fn called(&self, name: &str) -> Vec<(Vec<u8>, Oid)> {
        let is_called = |entry: &&IndexEntry| {
            entry.path.strip_suffix(name.as_bytes()).is_some_and(|rest| matches!(rest, [] | [.., b'/']))
        };
        self.entries.iter().filter(is_called).map(|entry| (entry.path.clone(), entry.id)).collect()
    }

    /// Whether there is an entry below this folder, whose path ends in a slash.
    pub(in crate::git) fn has_below(&self, folder: &[u8]) -> bool {
        let at = self.entries.partition_point(|entry| entry.path.as_slice() < folder);
        self.entries.get(at).is_some_and(|entry| entry.path.starts_with(folder))
    }

    /// The tree that git would write. Only for entries that are [`IndexEntries::plain`].
    pub(in crate::git) fn tree(&self, format: ObjectFormat) -> Oid {
        tree_of(&self.entries, 0, format)
    }

    /// The tree of all entries, including submodules and sparse folders; `None` if there is a conflict.
    pub(in crate::git) fn staged_tree(&self, format: ObjectFormat) -> Option<Oid> {
        self.entries.iter().all(|entry| entry.stage() == 0).then(|| tree_of(&self.entries, 0, format))
    }

    /// Whether the entries are exactly the files of a tree, given as its changes since the empty tree.
    pub(in crate::git) fn are_those_of(&self, files: &[TreeChange]) -> bool {
        let mut files: Vec<&TreeChange> = files.iter().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let is_same = |(entry, change): (&IndexEntry, &&TreeChange)| {
            // An index keeps only whether a file is executable.
            let kept = |mode: u32| (mode >> 12, mode >> 12 == u32::from(FILE) && mode & 0o100 != 0);
            entry.stage() == 0
                && entry.path == change.path
                && change
                    .after
                    .is_some_and(|(mode, id)| entry.id == id && kept(mode) == kept(entry.mode_bits()))
        };
        files.len() == self.entries.len() && self.entries.iter().zip(&files).all(is_same)
    }

    /// Files whose entries differ from `before`, with their ids, without submodules.
    pub(in crate::git) fn files_changed_since<'a>(
        &'a self,
        before: Option<&'a Self>,
    ) -> impl Iterator<Item = (&'a [u8], Oid)> {
        let mut others = before.map_or(&[][..], |before| &before.entries);
        let new = self.entries.iter().filter(move |entry| {
            while others.first().is_some_and(|other| other.order(entry) == Ordering::Less) {
                others = &others[1..];
            }
            others.first().is_none_or(|other| other != *entry)
        });
        new.filter(|entry| entry.mode() != GITLINK).map(|entry| (entry.path.as_slice(), entry.id))
    }

    /// Paths, ids and stat data of all files and links.
    pub(in crate::git) fn files(&self) -> impl Iterator<Item = (&[u8], Oid, FileFacts)> {
        let is_file = |entry: &&IndexEntry| matches!(entry.kind(), FILE | LINK);
        let entries = self.entries.iter().filter(is_file);
        entries.map(|entry| (entry.path.as_slice(), entry.id, FileFacts::of(&entry.facts)))
    }

    /// Paths and stat data of all files and links.
    pub(in crate::git) fn facts(&self) -> impl Iterator<Item = (&[u8], FileFacts)> {
        let is_file = |entry: &&IndexEntry| matches!(entry.kind(), FILE | LINK);
        self.entries.iter().filter(is_file).map(|entry| (entry.path.as_slice(), FileFacts::of(&entry.facts)))
    }
}

/// The entry of a file or a link.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct PlainEntry<'a> {
    pub(in crate::git) path: &'a [u8],
    pub(in crate::git) id: Oid,
    pub(in crate::git) facts: FileFacts,
}

impl<'a> PlainEntry<'a> {
    fn of(entry: &'a IndexEntry) -> Self {
        Self { path: &entry.path, id: entry.id, facts: FileFacts::of(&entry.facts) }
    }
}

/// The tree of these entries, which are all in one folder; `folder` is the length of its path with the slash. An index
/// has the same order as trees.
fn tree_of(entries: &[IndexEntry], folder: usize, format: ObjectFormat) -> Oid {
    let mut content = Vec::new();
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let name = &first.path[folder..];
        let (mode, name, id, count) = match memchr::memchr(b'/', name) {
            // A folder of a sparse index, which is one entry.
            Some(at) if folder + at + 1 == first.path.len() => (0o40_000, &name[..at], first.id, 1),
            Some(at) => {
                let inner = &first.path[..=folder + at];
                let count = rest.iter().take_while(|entry| entry.path.starts_with(inner)).count();
                (0o40_000, &name[..at], tree_of(&rest[..count], inner.len(), format), count)
            }
            None => (first.mode_bits(), name, first.id, 1),
        };
        content.extend(format!("{mode:o} ").bytes());
        content.extend(name);
        content.push(0);
        content.extend(id.as_bytes());
        rest = &rest[count..];
    }
    Oid::of(ObjectKind::Tree, &content, format)
}

/// The stat data of an entry, without the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct FileFacts {
    /// The ctime, in seconds and nanoseconds.
    pub(in crate::git) changed: (u32, u32),
    written: (u32, u32),
    inode: u32,
    pub(in crate::git) size: u32,
}

impl FileFacts {
    fn of(facts: &[u8; FACTS]) -> Self {
        let number = |at: usize| u32::from_be_bytes([facts[at], facts[at + 1], facts[at + 2], facts[at + 3]]);
        Self {
            changed: (number(0), number(4)),
            written: (number(8), number(12)),
            inode: number(20),
            size: number(36),
        }
    }

    /// Whether this is the stat data of the file at present.
    pub(in crate::git) fn are_of(&self, file: &Path) -> bool {
        fs::symlink_metadata(file).is_ok_and(|file| self.are(&ChangeStamp::of(&file)))
    }

    /// Whether this is the stat data of a file with this stamp.
    pub(in crate::git) fn are(&self, stamp: &ChangeStamp) -> bool {
        // git keeps the lower 32 bits of each number.
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
        let time = |(seconds, nanos): (i64, i64)| (low(seconds.cast_unsigned()), low(nanos.cast_unsigned()));
        self.changed == time(stamp.changed)
            && self.written == time(stamp.written)
            && (self.inode, self.size) == (low(stamp.inode), low(stamp.size))
    }
}

/// All parent folders of a path.
fn folders_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Program;

    const BEGIN: &str = "mkdir -p a/d && echo x > a/b && echo y > c && echo z > a/d/e && touch f";

    /// The index that git writes in a new repository after these commands, and its folder.
    fn made(format: &str, script: &str) -> (tempfile::TempDir, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let long = "long".repeat(50);
        let script = format!(
            "git init -q --object-format={format} . && {BEGIN} && echo l > {long} && git add a c {long} && {script}"
        );
        run(folder.path(), &script);
        let bytes = std::fs::read(folder.path().join(".git/index")).unwrap();
        (folder, bytes)
    }

    fn run(folder: &std::path::Path, script: &str) -> String {
        let program = Program::new("sh").args(["-c", script]).dir(folder);
        let ended = program.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }

    #[test]
    fn stat_data_of_unknown_index_entries_is_not_trusted() {
        let (folder, known) = made("sha1", "true");
        run(folder.path(), "echo other > c && git add c && git update-index --assume-unchanged a/b");
        let found = std::fs::read(folder.path().join(".git/index")).unwrap();
        let known = IndexEntries::parse(&known, ObjectFormat::Sha1).unwrap();
        let mut entries = IndexEntries::parse(&found, ObjectFormat::Sha1).unwrap();
        entries.trust_only(Some(&known), |path| path != b"a/d/e", HiddenMarks::Cleared);
        let sizes: Vec<(&[u8], u32)> = entries.facts().map(|(path, facts)| (path, facts.size)).collect();
        assert_eq!(sizes[..3], [(&b"a/b"[..], 2), (&b"a/d/e"[..], 0), (&b"c"[..], 0)]);
        assert!(entries.entries.iter().all(|entry| entry.flags & ASSUMED == 0));
    }

    #[test]
    fn restored_index_entries_replace_conflicting_entries() {
        let (folder, before) = made("sha1", "true");
        run(folder.path(), "git rm -q --cached c && rm c && mkdir c && echo x > c/inner && git add c/inner");
        let found = std::fs::read(folder.path().join(".git/index")).unwrap();
        let before = IndexEntries::parse(&before, ObjectFormat::Sha1).unwrap();
        let mut entries = IndexEntries::parse(&found, ObjectFormat::Sha1).unwrap();
        assert!(entries.restore(&before, |path| path == b"c"));
        assert_eq!(entries.entries, before.entries);
        assert!(!entries.restore(&before, |path| path == b"c"), "all is there");
    }
}
