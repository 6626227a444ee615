//! A look into the file of an index, which costs less than to start git. It answers two questions only: whether git is told
//! not to look at some files, and which paths are submodules. What it does not understand, git is asked about.

use std::{io, path::Path};

use super::misplaced::is_sparse;
use crate::{name::ObjectFormat, safe_files};

/// An index of a repository with tens of millions of files is not larger.
pub(super) const LARGEST: u64 = 8 << 30;

/// What stands before the name of an entry, but for the object's id and the flags.
const FACTS: usize = 40;
/// Set on an entry that is assumed not to change.
const ASSUMED: u16 = 0x8000;
/// Set on an entry that has more flags.
const EXTENDED: u16 = 0x4000;
/// Set among these on an entry whose file is not looked at.
const SKIPPED: u16 = 0x4000;
/// The length of a name, or that it is longer than can be said.
const LENGTH: u16 = 0x0fff;
/// Extensions without which entries do not tell everything: the rest is in another file, or whole folders are one entry.
const ELSEWHERE: [&[u8]; 2] = [b"link", b"sdir"];

/// The type of an entry, within its mode.
const TYPE: u32 = 0o170_000;
/// An entry that is a commit of another repository.
const GITLINK: u32 = 0o160_000;
/// Where the mode of an entry is, before its object's id.
const MODE: usize = 24;

/// What the entries of an index tell.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entries {
    has_hidden: bool,
    gitlinks: Vec<Vec<u8>>,
}

/// Whether an entry is marked so that git does not look at its file; `None` if git has to be asked.
pub(super) fn has_hidden(file: &Path, format: ObjectFormat) -> Option<bool> {
    Some(read(file, format)?.has_hidden)
}

/// The paths of submodules; `None` if git has to be asked.
pub(super) fn find_gitlinks(file: &Path, format: ObjectFormat) -> Option<Vec<Vec<u8>>> {
    Some(read(file, format)?.gitlinks)
}

fn read(file: &Path, format: ObjectFormat) -> Option<Entries> {
    if file.symlink_metadata().is_ok_and(|found| is_sparse(&found)) {
        return None;
    }
    match safe_files::read_up_to(file, LARGEST) {
        Ok(bytes) => scan(&bytes, format.hex_len() / 2),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Entries::default()),
        Err(_) => None,
    }
}

fn scan(bytes: &[u8], id_len: usize) -> Option<Entries> {
    let body = bytes.get(..bytes.len().checked_sub(id_len)?)?;
    let mut rest = body.strip_prefix(b"DIRC")?;
    let (version, count) = (take_number(&mut rest)?, take_number(&mut rest)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut found = Entries::default();
    let mut name = Vec::new();
    for _ in 0..count {
        let entry = rest;
        rest = rest.get(FACTS + id_len..)?;
        let flags = take_flags(&mut rest)?;
        let more = if flags & EXTENDED == 0 { 0 } else { take_flags(&mut rest)? };
        found.has_hidden |= flags & ASSUMED != 0 || more & SKIPPED != 0;
        if version == 4 {
            let dropped = take_offset(&mut rest)?;
            let end = memchr::memchr(0, rest)?;
            name.truncate(name.len().checked_sub(dropped)?);
            name.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
        } else {
            let length = match flags & LENGTH {
                LENGTH => memchr::memchr(0, rest)?,
                length => usize::from(length),
            };
            name.clear();
            name.extend_from_slice(rest.get(..length)?);
            let used = entry.len() - rest.len() + length;
            rest = entry.get(used + 8 - used % 8..)?;
        }
        let mode = u32::from_be_bytes(*entry.get(MODE..)?.first_chunk()?);
        // A path in conflict has several entries.
        if mode & TYPE == GITLINK && found.gitlinks.last() != Some(&name) {
            found.gitlinks.push(name.clone());
        }
    }
    while !rest.is_empty() {
        let name = rest.get(..4)?;
        if ELSEWHERE.contains(&name) {
            return None;
        }
        rest = &rest[4..];
        let size = take_number(&mut rest)?;
        rest = rest.get(usize::try_from(size).ok()?..)?;
    }
    Some(found)
}

/// How much of the last name is dropped in a compressed one: seven bits in each byte, the highest ones first, and each
/// byte but the last counts one more.
fn take_offset(rest: &mut &[u8]) -> Option<usize> {
    let mut value: usize = 0;
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
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
    use crate::process::Program;

    /// What is told of an index that git wrote after these commands.
    fn told(format: &str, script: &str) -> Option<Entries> {
        let folder = tempfile::tempdir().unwrap();
        let begin = format!(
            "git init -q --object-format={format} . && mkdir a && echo x > a/b && echo y > c && echo z > {} && git add -A",
            "long".repeat(50)
        );
        let program = Program::new("sh").args(["-c", &format!("{begin} && {script}")]).dir(folder.path());
        let ended = program.env("HOME", folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        let format = if format == "sha1" { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 };
        read(&folder.path().join(".git/index"), format)
    }

    fn is_hidden(format: &str, script: &str) -> Option<bool> {
        told(format, script).map(|told| told.has_hidden)
    }

    #[test]
    fn marked_entries_are_seen_in_every_form_of_an_index() {
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
    fn submodules_are_seen_in_every_form_of_an_index() {
        let long = format!("{}/y", "long".repeat(60));
        for (format, id) in [("sha1", "1".repeat(40)), ("sha256", "1".repeat(64))] {
            for version in 2..=4 {
                let add = |path: &str| format!("git update-index --add --cacheinfo 160000,{id},{path}");
                let script =
                    [&*format!("git update-index --index-version {version}"), &add("a/sub"), &add(&long)];
                let told = told(format, &script.join(" && ")).unwrap();
                assert_eq!(
                    told.gitlinks,
                    [b"a/sub".to_vec(), long.clone().into_bytes()],
                    "{format} {version}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_all_in_the_file_is_not_told() {
        assert_eq!(told("sha1", "git update-index --split-index"), None);
        assert_eq!(scan(b"DIRC\0\0\0\x05\0\0\0\0aaaaaaaaaaaaaaaaaaaa", 20), None);
        assert_eq!(scan(b"", 20), None);
        assert_eq!(has_hidden(Path::new("/no/such/index"), ObjectFormat::Sha1), Some(false));
    }
}
