//! Parses and writes index files, as described in `git help gitformat-index`.
//!
//! libgit2 is not used, for three reasons. The parsed index must be exactly the bytes that were compared with the known
//! ones, and libgit2 reads an index only from a file that it opens by name: an agent elsewhere can replace that file in
//! between, or put a named pipe there, on which libgit2 blocks for ever. It also writes an index only to such a file,
//! and the recorded bytes must not be read back from there. And it refuses the indexes of sparse checkouts, whose stat
//! data must not be trusted either. The tests below compare this parser with libgit2 and with git.

use std::{cmp::Ordering, io, path::Path};

use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::{
    git::misplaced_files::is_sparse,
    name::{ObjectFormat, Oid},
    safe_files,
};

/// No index is larger, even with tens of millions of files.
pub(in crate::git) const LARGEST_INDEX: u64 = 8 << 30;

/// The length of the stat data of an entry: times, device, inode, mode, owner and size.
pub(in crate::git) const FACTS: usize = 40;
/// The mode in the stat data, which belongs to the staged content.
pub(in crate::git) const MODE: std::ops::Range<usize> = 24..28;
/// The flag `assume-unchanged`.
pub(in crate::git) const ASSUMED: u16 = 0x8000;
/// The flag of an entry with extended flags.
pub(in crate::git) const EXTENDED: u16 = 0x4000;
/// The extended flag `skip-worktree`.
pub(in crate::git) const SKIPPED: u16 = 0x4000;
/// The stage of an entry in a conflict.
pub(in crate::git) const STAGE: u16 = 0x3000;
/// The length of the path; the maximum also stands for all longer paths.
const LENGTH: u16 = 0x0fff;
/// The extension of a sparse index, in which a whole folder can be one entry. git needs it to read such entries.
const SPARSE: &[u8] = b"sdir";
/// The type of a submodule, in the mode of its entry.
const GITLINK: u8 = 0o16;

/// The header of an index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct IndexForm {
    pub(in crate::git) version: u32,
    /// Whether whole folders may be one entry.
    pub(in crate::git) is_sparse: bool,
}

/// An entry in the file, with its full path.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct EntryView<'a> {
    pub(in crate::git) facts: &'a [u8; FACTS],
    pub(in crate::git) id: Oid,
    pub(in crate::git) flags: u16,
    pub(in crate::git) more: u16,
    pub(in crate::git) path: &'a [u8],
}

impl EntryView<'_> {
    /// The type of the entry: the highest bits of its mode.
    pub(in crate::git) fn kind(&self) -> u8 {
        match self.facts[MODE] {
            [0, 0, high, _] => high >> 4,
            _ => 0,
        }
    }

    /// Whether git is told not to look at its file.
    fn is_hidden(&self) -> bool {
        self.flags & ASSUMED != 0 || self.more & SKIPPED != 0
    }
}

/// Whether an entry is marked so that git does not look at its file; `None` if git has to be asked.
pub(in crate::git) fn has_hidden(file: &Path, format: ObjectFormat) -> Option<bool> {
    let mut has_hidden = false;
    visit_file(file, format, |entry| has_hidden |= entry.is_hidden())?;
    Some(has_hidden)
}

/// An entry that git is told not to look at.
#[derive(Debug)]
pub(in crate::git) struct HiddenEntry {
    pub(in crate::git) path: Vec<u8>,
    /// Whether it is marked `assume-unchanged`; otherwise only `skip-worktree`.
    pub(in crate::git) is_assumed: bool,
}

/// The entries that are marked so that git does not look at their files; `None` if git has to be asked.
pub(in crate::git) fn find_hidden(file: &Path, format: ObjectFormat) -> Option<Vec<HiddenEntry>> {
    let mut found = Vec::new();
    visit_file(file, format, |entry| {
        if entry.is_hidden() {
            let is_assumed = entry.flags & ASSUMED != 0;
            found.push(HiddenEntry { path: entry.path.to_vec(), is_assumed });
        }
    })?;
    Some(found)
}

/// The paths of submodules; `None` if git has to be asked.
pub(in crate::git) fn find_gitlinks(file: &Path, format: ObjectFormat) -> Option<Vec<Vec<u8>>> {
    let mut paths: Vec<Vec<u8>> = Vec::new();
    visit_file(file, format, |entry| {
        // A path with a conflict has several entries.
        if entry.kind() == GITLINK && paths.last().is_none_or(|last| last != entry.path) {
            paths.push(entry.path.to_vec());
        }
    })?;
    Some(paths)
}

/// Visits all entries of an index file, which need not exist. `None` if git has to be asked.
fn visit_file(file: &Path, format: ObjectFormat, see: impl FnMut(EntryView<'_>)) -> Option<()> {
    if file.symlink_metadata().is_ok_and(|found| is_sparse(&found)) {
        return None;
    }
    match safe_files::read_up_to(file, LARGEST_INDEX) {
        Ok(bytes) => visit(&bytes, format, see).filter(|form| !form.is_sparse).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(()),
        Err(_) => None,
    }
}

/// Visits all entries of an index, in git's order. `None` if it is broken or split.
pub(in crate::git) fn visit(
    bytes: &[u8],
    format: ObjectFormat,
    mut see: impl FnMut(EntryView<'_>),
) -> Option<IndexForm> {
    let id_len = format.hex_len() / 2;
    let body = bytes.get(..bytes.len().checked_sub(id_len)?)?;
    let mut rest = body.strip_prefix(b"DIRC")?;
    let (version, count) = (take_number(&mut rest)?, take_number(&mut rest)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut last, mut path) = ((Vec::new(), 0), Vec::new());
    for _ in 0..count {
        let facts = rest.first_chunk::<FACTS>()?;
        let (id, flags, more) = take_entry(&mut rest, version, id_len, &last.0, &mut path)?;
        let stage = flags & STAGE;
        let order = last.0.as_slice().cmp(&path).then(last.1.cmp(&stage));
        if order != Ordering::Less && !last.0.is_empty() {
            return None;
        }
        see(EntryView { facts, id, flags, more, path: &path });
        std::mem::swap(&mut last.0, &mut path);
        last.1 = stage;
    }
    Some(IndexForm { version, is_sparse: take_extensions(rest)? })
}

/// Takes one entry off the front of `rest`: returns id and flags, and puts its path into `path`.
fn take_entry(
    rest: &mut &[u8],
    version: u32,
    id_len: usize,
    before: &[u8],
    path: &mut Vec<u8>,
) -> Option<(Oid, u16, u16)> {
    let start = *rest;
    let after = rest.get(FACTS..)?;
    let id = Oid::from_bytes(after.get(..id_len)?)?;
    *rest = after.get(id_len..)?;
    let flags = take_flags(rest)?;
    let more = if flags & EXTENDED == 0 { 0 } else { take_flags(rest)? };
    path.clear();
    if version == 4 {
        let kept = before.len().checked_sub(take_offset(rest)?)?;
        let end = memchr::memchr(0, rest)?;
        path.extend_from_slice(&before[..kept]);
        path.extend_from_slice(&rest[..end]);
        *rest = &rest[end + 1..];
    } else {
        let length = memchr::memchr(0, rest)?;
        path.extend_from_slice(&rest[..length]);
        let used = start.len() - rest.len() + length;
        // At least one zero byte, up to a multiple of eight.
        *rest = start.get(used + 8 - used % 8..)?;
    }
    let is_true = usize::from(flags & LENGTH) == path.len().min(usize::from(LENGTH));
    (is_true && !path.is_empty()).then_some((id, flags, more))
}

/// The bytes of an index file, without extensions that only save git some work.
pub(in crate::git) fn write<'a>(
    form: IndexForm,
    entries: impl ExactSizeIterator<Item = EntryView<'a>> + Clone,
    format: ObjectFormat,
) -> Vec<u8> {
    let is_extended = entries.clone().any(|entry| entry.flags & EXTENDED != 0);
    let version = if is_extended { form.version.max(3) } else { form.version };
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(entries.len()).unwrap_or(u32::MAX).to_be_bytes());
    let mut before: &[u8] = &[];
    for entry in entries {
        put_entry(&mut bytes, entry, version, before);
        before = entry.path;
    }
    if form.is_sparse {
        bytes.extend(SPARSE);
        bytes.extend(0_u32.to_be_bytes());
    }
    let checksum = match format {
        ObjectFormat::Sha1 => Sha1::digest(&bytes).to_vec(),
        ObjectFormat::Sha256 => Sha256::digest(&bytes).to_vec(),
    };
    bytes.extend(checksum);
    bytes
}

fn put_entry(bytes: &mut Vec<u8>, entry: EntryView<'_>, version: u32, before: &[u8]) {
    let start = bytes.len();
    bytes.extend(entry.facts);
    bytes.extend(entry.id.as_bytes());
    bytes.extend(entry.flags.to_be_bytes());
    if entry.flags & EXTENDED != 0 {
        bytes.extend(entry.more.to_be_bytes());
    }
    if version == 4 {
        let shared = before.iter().zip(entry.path).take_while(|(one, other)| one == other).count();
        put_offset(bytes, before.len() - shared);
        bytes.extend(&entry.path[shared..]);
        bytes.push(0);
        return;
    }
    bytes.extend(entry.path);
    let used = bytes.len() - start;
    bytes.resize(start + used + 8 - used % 8, 0);
}

/// Whether it is a sparse index. `None` if there is an extension that changes the meaning of entries.
fn take_extensions(mut rest: &[u8]) -> Option<bool> {
    let mut is_sparse = false;
    while !rest.is_empty() {
        let name = rest.get(..4)?;
        rest = &rest[4..];
        let size = take_number(&mut rest)?;
        rest = rest.get(usize::try_from(size).ok()?..)?;
        match name {
            SPARSE => is_sparse = true,
            // Optional extensions begin with a capital letter.
            [b'A'..=b'Z', ..] => {}
            _ => return None,
        }
    }
    Some(is_sparse)
}

/// Takes a number of variable length: seven bits at a time, highest first; each additional byte adds one.
fn take_offset(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value = value.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1).filter(|value| *value < 1 << 24)?;
    }
}

fn put_offset(bytes: &mut Vec<u8>, mut value: usize) {
    let low = |value: usize| u8::try_from(value & 0x7f).unwrap_or_default();
    let mut digits = vec![low(value)];
    while value >> 7 != 0 {
        value = (value >> 7) - 1;
        digits.push(0x80 | low(value));
    }
    bytes.extend(digits.iter().rev());
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(u32::from_be_bytes(*number))
}

fn take_flags(rest: &mut &[u8]) -> Option<u16> {
    let (flags, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(u16::from_be_bytes(*flags))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::objects::open_objects::libgit2_format;
    use crate::process::Program;

    fn kind(format: &str) -> ObjectFormat {
        if format == "sha1" { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 }
    }

    /// The index that git wrote after these commands, and its folder.
    fn made(format: &str, script: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let begin = format!(
            "git init -q --object-format={format} . && mkdir a && echo x > a/b && echo y > c && echo z > {} && git add -A",
            "long".repeat(50)
        );
        run(folder.path(), &format!("{begin} && {script}"));
        let file = folder.path().join(".git/index");
        (folder, file)
    }

    fn run(folder: &Path, script: &str) -> String {
        let program = Program::new("sh").args(["-c", script]).dir(folder);
        let ended = program.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }

    /// Every version of an index, each with a mark, a submodule and an `intent-to-add` entry.
    fn forms() -> impl Iterator<Item = (&'static str, tempfile::TempDir, std::path::PathBuf)> {
        let versions = ["sha1", "sha256"].into_iter().flat_map(|format| (2..=4).map(move |n| (format, n)));
        versions.map(|(format, version)| {
            let id = "1".repeat(kind(format).hex_len());
            let script = format!(
                "git update-index --index-version {version} && touch f && git add -N f && git update-index --assume-unchanged c
                 git update-index --skip-worktree a/b && git update-index --add --cacheinfo 160000,{id},a/sub"
            );
            let (folder, file) = made(format, &script);
            (format, folder, file)
        })
    }

    #[test]
    fn every_index_version_is_read_like_libgit2_does() {
        let number = |facts: &[u8; FACTS], at: usize| u32::from_be_bytes(*facts[at..].first_chunk().unwrap());
        for (format, _folder, file) in forms() {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            visit(&std::fs::read(&file).unwrap(), kind(format), |entry| {
                let facts: Vec<u32> = (0..10).map(|n| number(entry.facts, 4 * n)).collect();
                ours.push((
                    facts,
                    entry.id.as_bytes().to_vec(),
                    entry.flags,
                    entry.more,
                    entry.path.to_vec(),
                ));
            })
            .unwrap();
            for entry in git2::Index::open_ext(&file, libgit2_format(kind(format))).unwrap().iter() {
                let time = |time: git2::IndexTime| [time.seconds().cast_unsigned(), time.nanoseconds()];
                let rest = [entry.dev, entry.ino, entry.mode, entry.uid, entry.gid, entry.file_size];
                let facts = [&time(entry.ctime)[..], &time(entry.mtime), &rest].concat();
                theirs.push((
                    facts,
                    entry.id.as_bytes().to_vec(),
                    entry.flags,
                    entry.flags_extended,
                    entry.path,
                ));
            }
            assert_eq!(ours.len(), 5);
            assert_eq!(ours, theirs, "{format}");
        }
    }

    #[test]
    fn git_reads_every_index_version_that_we_write() {
        struct Owned([u8; FACTS], Oid, u16, u16, Vec<u8>);
        for (format, folder, file) in forms() {
            let list = "git ls-files --stage --debug && git ls-files -v";
            let (before, mut entries) = (run(folder.path(), list), Vec::new());
            let form = visit(&std::fs::read(&file).unwrap(), kind(format), |entry| {
                entries.push(Owned(*entry.facts, entry.id, entry.flags, entry.more, entry.path.to_vec()));
            });
            let views = entries.iter().map(|Owned(facts, id, flags, more, path)| EntryView {
                facts,
                id: *id,
                flags: *flags,
                more: *more,
                path,
            });
            std::fs::write(&file, write(form.unwrap(), views, kind(format))).unwrap();
            assert_eq!(run(folder.path(), list), before, "{format}");
        }
    }

    fn is_hidden(format: &str, script: &str) -> Option<bool> {
        let (_folder, file) = made(format, script);
        has_hidden(&file, kind(format))
    }

    #[test]
    fn hidden_entries_are_detected_in_every_index_version() {
        for format in ["sha1", "sha256"] {
            for version in 2..=4 {
                let version = format!("git update-index --index-version {version}");
                assert_eq!(is_hidden(format, &version), Some(false), "{format} {version}");
                for mark in ["--assume-unchanged", "--skip-worktree"] {
                    let script = format!("{version} && git update-index {mark} c");
                    assert_eq!(is_hidden(format, &script), Some(true), "{format} {script}");
                }
            }
        }
        assert_eq!(is_hidden("sha1", "git rm -rfq . && git add -N ."), Some(false));
        assert_eq!(is_hidden("sha1", "touch d && git add -N d"), Some(false));
    }

    #[test]
    fn submodules_are_detected_in_every_index_version() {
        let long = format!("{}/y", "long".repeat(60));
        for (format, id) in [("sha1", "1".repeat(40)), ("sha256", "1".repeat(64))] {
            for version in 2..=4 {
                let add = |path: &str| format!("git update-index --add --cacheinfo 160000,{id},{path}");
                let script =
                    [&*format!("git update-index --index-version {version}"), &add("a/sub"), &add(&long)];
                let (_folder, file) = made(format, &script.join(" && "));
                let found = find_gitlinks(&file, kind(format)).unwrap();
                assert_eq!(found, [b"a/sub".to_vec(), long.clone().into_bytes()], "{format} {version}");
            }
        }
    }

    #[test]
    fn damaged_and_split_index_files_are_not_read() {
        let (_folder, file) = made("sha1", "git update-index --split-index");
        assert_eq!(has_hidden(&file, ObjectFormat::Sha1), None);
        let (_folder, file) = made("sha1", "true");
        let bytes = std::fs::read(&file).unwrap();
        for length in 0..bytes.len() - 20 {
            let _ = visit(&bytes[..length], ObjectFormat::Sha1, |_| ());
        }
        assert_eq!(visit(&bytes[..80], ObjectFormat::Sha1, |_| ()), None);
        assert_eq!(visit(b"DIRC\0\0\0\x05\0\0\0\0aaaaaaaaaaaaaaaaaaaa", ObjectFormat::Sha1, |_| ()), None);
        assert_eq!(visit(b"", ObjectFormat::Sha1, |_| ()), None);
        assert_eq!(has_hidden(Path::new("/no/such/index"), ObjectFormat::Sha1), Some(false));
    }
}
