//! The file of packed refs. git writes it anew whenever refs are packed or a packed one is deleted, so it cannot be watched
//! as a whole; but one bad line in it stops every git. What is not what git would write is mended.

use std::{collections::BTreeMap, path::Path};

use super::{Repository, homes::free_place, loose::PackedStamp};
use crate::{name::ObjectFormat, safe_files};

/// No larger file is looked at.
const LARGEST: u64 = 64 * 1024 * 1024;
/// How the first line begins, which says what is known of the others.
const TRAITS: &[u8] = b"# pack-refs with:";

/// The file as it was when git could read it last.
#[derive(Debug, Default)]
pub(super) struct SoundPacked {
    stamp: Option<PackedStamp>,
    content: Vec<u8>,
}

/// The lines about each ref, by its name.
type Entries<'a> = BTreeMap<&'a [u8], Vec<&'a [u8]>>;

impl Repository {
    /// Looks at the file of packed refs, if it is another than the known one. Where git could not read it, all lines that
    /// can be read are kept, and those that are missing come from the known one. Says what was done.
    pub(super) fn mend_packed_refs(&self, known: &mut SoundPacked) -> Option<String> {
        let stamp = self.packed_stamp();
        if !self.keeps_loose_refs || stamp == known.stamp {
            return None;
        }
        let file = self.common_dir.join("packed-refs");
        let content = match stamp {
            Some(_) => safe_files::read_up_to(&file, LARGEST).ok()?,
            None => Vec::new(),
        };
        // git leaves the file there, also when nothing is in it.
        let is_gone = stamp.is_none() && !known.content.is_empty();
        if !is_gone && parse(&content, self.format).is_some_and(|(_, is_sound)| is_sound) {
            *known = SoundPacked { stamp, content };
            return None;
        }
        let mut words = String::from("packed-refs was removed or made unreadable while it ran");
        match self.replace_packed(&file, &mended(&content, known, self.format)) {
            Ok(kept) => words += &kept,
            Err(error) => words += &format!("; it could not be mended: {error}"),
        }
        Some(words)
    }

    /// As git does it: the new file is the lock.
    fn replace_packed(&self, file: &Path, content: &[u8]) -> std::io::Result<String> {
        let lock = self.common_dir.join("packed-refs.lock");
        safe_files::write_new(&lock, content)?;
        let place = free_place(self);
        let is_there = file.symlink_metadata().is_ok();
        let moved = if is_there { safe_files::rename(file, &place) } else { Ok(()) };
        moved.and_then(|()| safe_files::rename(&lock, file)).inspect_err(|_| {
            let _ = safe_files::remove(&lock);
        })?;
        Ok(if is_there {
            format!("; what it was then is kept as {}", place.display())
        } else {
            String::new()
        })
    }
}

fn mended(content: &[u8], known: &SoundPacked, format: ObjectFormat) -> Vec<u8> {
    let parsed = |content| parse(content, format).map(|(entries, _)| entries).unwrap_or_default();
    let mut entries: Entries<'_> = parsed(&known.content);
    for (name, lines) in parsed(content) {
        // Of a ref that is where it was, the line about what a tag leads to may be the one that was cut.
        let is_cut = |known: &Vec<&[u8]>| known.first() == lines.first() && known.len() > lines.len();
        if !entries.get(name).is_some_and(is_cut) {
            entries.insert(name, lines);
        }
    }
    let traits = |content: &'_ [u8]| content.starts_with(TRAITS);
    let from = [&known.content[..], content].into_iter().find(|content| traits(content));
    let first = from.and_then(|content| content.split_inclusive(|byte| *byte == b'\n').next());
    first.into_iter().chain(entries.into_values().flatten()).flatten().copied().collect()
}

/// The refs in a file, and whether git would read all of it.
fn parse(content: &[u8], format: ObjectFormat) -> Option<(Entries<'_>, bool)> {
    let (mut entries, mut is_sound): (Entries<'_>, bool) = (BTreeMap::new(), true);
    let mut last: Option<&[u8]> = None;
    let is_sorted = content.starts_with(TRAITS)
        && content.split(|byte| *byte == b'\n').next()?.windows(7).any(|word| word == b" sorted");
    for (at, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if at == 0 && line.starts_with(b"#") {
            continue;
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            is_sound = false;
            continue;
        };
        if let (Some(id), Some(name)) = (text.strip_prefix(b"^"), last) {
            let is_id = id.len() == format.hex_len() && id.iter().all(u8::is_ascii_hexdigit);
            is_sound &= is_id;
            if let (true, Some(lines)) = (is_id, entries.get_mut(name)) {
                lines.push(line);
            }
            continue;
        }
        let Some(name) = name_in(text, format) else {
            is_sound = false;
            continue;
        };
        is_sound &= !is_sorted || last.is_none_or(|last| last < name);
        entries.insert(name, vec![line]);
        last = Some(name);
    }
    Some((entries, is_sound))
}

/// The name in a line `<id> <name>`.
fn name_in(line: &[u8], format: ObjectFormat) -> Option<&[u8]> {
    let (id, rest) = line.split_at_checked(format.hex_len())?;
    let name = rest.strip_prefix(b" ").filter(|_| id.iter().all(u8::is_ascii_hexdigit))?;
    let is_valid = std::str::from_utf8(name).map_or(true, git2::Reference::is_valid_name);
    (is_valid && name.starts_with(b"refs/")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_git_cannot_read_go_and_all_others_stay() {
        let id = "1".repeat(40);
        let good = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{id} refs/heads/a\n{id} refs/tags/t\n^{id}\n"
        );
        let is_sound = |text: &str| parse(text.as_bytes(), ObjectFormat::Sha1).unwrap().1;
        assert!(is_sound(&good) && is_sound(""));
        for bad in [
            format!("{good}zzz bad line\n"),
            format!("{good}{id} refs/heads/b\n"),
            good[..good.len() - 1].to_owned(),
            "garbage".to_owned(),
            format!("{good}{id} refs/heads/../x\n"),
        ] {
            assert!(!is_sound(&bad), "{bad}");
            let known = SoundPacked { stamp: None, content: good.clone().into_bytes() };
            let mended = String::from_utf8(mended(bad.as_bytes(), &known, ObjectFormat::Sha1)).unwrap();
            assert!(is_sound(&mended) && mended.contains("refs/tags/t\n^1"), "{mended}");
            assert_eq!(mended.contains("refs/heads/b"), bad.contains("refs/heads/b"));
        }
    }
}
