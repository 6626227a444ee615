//! Repairs packed-refs. git rewrites the file whenever refs are packed or a packed ref is deleted, so it cannot be
//! compared as a whole; but one bad line makes every git command fail. So lines that git would not write are removed,
//! and lines that are missing are restored.

use std::{collections::BTreeMap, path::Path};

use crate::{
    git::{Repository, misplaced_files::unused_path, refs::ref_files::PackedStamp},
    name::ObjectFormat,
    safe_files,
};

/// Larger files are not checked.
const LARGEST_PACKED_REFS: u64 = 64 * 1024 * 1024;
/// The header line, which declares whether the file is sorted and peeled.
const HEADER: &[u8] = b"# pack-refs with:";

/// The last version of the file that git could read.
#[derive(Debug, Default)]
pub(in crate::git) struct LastGoodPackedRefs {
    stamp: Option<PackedStamp>,
    content: Vec<u8>,
}

/// The lines of each ref, by its name.
type Entries<'a> = BTreeMap<&'a [u8], Vec<&'a [u8]>>;

impl Repository {
    /// Checks packed-refs if it has changed since the last check. If git could not read it, all readable lines are
    /// kept, and missing refs are taken from the last good version. Returns a message about the repair.
    pub(in crate::git) fn repair_packed_refs(&self, last_good: &mut LastGoodPackedRefs) -> Option<String> {
        let stamp = self.packed_stamp();
        if !self.has_files_backend || stamp == last_good.stamp {
            return None;
        }
        let file = self.common_dir.join("packed-refs");
        let content = match stamp {
            Some(_) => safe_files::read_up_to(&file, LARGEST_PACKED_REFS).ok()?,
            None => Vec::new(),
        };
        // git never deletes the file, even when no ref is left in it.
        let is_gone = stamp.is_none() && !last_good.content.is_empty();
        if !is_gone && parse(&content, self.format).is_some_and(|(_, is_readable)| is_readable) {
            *last_good = LastGoodPackedRefs { stamp, content };
            return None;
        }
        let mut message =
            String::from("packed-refs was removed or made unreadable while an agent or a command ran");
        match self.replace_packed(&file, &repaired(&content, last_good, self.format)) {
            Ok(kept) => message += &kept,
            Err(error) => message += &format!("; it could not be repaired: {error}"),
        }
        Some(message)
    }

    /// Like git, we write the lock file and rename it.
    fn replace_packed(&self, file: &Path, content: &[u8]) -> std::io::Result<String> {
        let lock = self.common_dir.join("packed-refs.lock");
        safe_files::write_new(&lock, content)?;
        let place = unused_path(&self.common_dir);
        let exists = file.symlink_metadata().is_ok();
        let moved = if exists { safe_files::rename(file, &place) } else { Ok(()) };
        moved.and_then(|()| safe_files::rename(&lock, file)).inspect_err(|_| {
            let _ = safe_files::remove(&lock);
        })?;
        Ok(if exists { format!("; its content is kept as {}", place.display()) } else { String::new() })
    }
}

fn repaired(content: &[u8], last_good: &LastGoodPackedRefs, format: ObjectFormat) -> Vec<u8> {
    let parsed = |content| parse(content, format).map(|(entries, _)| entries).unwrap_or_default();
    let mut entries: Entries<'_> = parsed(&last_good.content);
    for (name, lines) in parsed(content) {
        // For an unmoved tag, the line of the peeled object may be the one that was lost.
        let lost_peeled_line =
            |last_good: &Vec<&[u8]>| last_good.first() == lines.first() && last_good.len() > lines.len();
        if !entries.get(name).is_some_and(lost_peeled_line) {
            entries.insert(name, lines);
        }
    }
    let has_header = |content: &'_ [u8]| content.starts_with(HEADER);
    let with_header = [&last_good.content[..], content].into_iter().find(|content| has_header(content));
    let first = with_header.and_then(|content| content.split_inclusive(|byte| *byte == b'\n').next());
    first.into_iter().chain(entries.into_values().flatten()).flatten().copied().collect()
}

/// The refs in the file, and whether git would read all of it.
fn parse(content: &[u8], format: ObjectFormat) -> Option<(Entries<'_>, bool)> {
    let (mut entries, mut is_readable): (Entries<'_>, bool) = (BTreeMap::new(), true);
    let mut last: Option<&[u8]> = None;
    let is_sorted = content.starts_with(HEADER)
        && content.split(|byte| *byte == b'\n').next()?.windows(7).any(|word| word == b" sorted");
    for (at, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if at == 0 && line.starts_with(b"#") {
            continue;
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            is_readable = false;
            continue;
        };
        if let (Some(id), Some(name)) = (text.strip_prefix(b"^"), last) {
            let is_id = id.len() == format.hex_len() && id.iter().all(u8::is_ascii_hexdigit);
            is_readable &= is_id;
            if let (true, Some(lines)) = (is_id, entries.get_mut(name)) {
                lines.push(line);
            }
            continue;
        }
        let Some(name) = name_in(text, format) else {
            is_readable = false;
            continue;
        };
        is_readable &= !is_sorted || last.is_none_or(|last| last < name);
        entries.insert(name, vec![line]);
        last = Some(name);
    }
    Some((entries, is_readable))
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
    fn only_unreadable_lines_are_removed_from_packed_refs() {
        let id = "1".repeat(40);
        let good = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{id} refs/heads/a\n{id} refs/tags/t\n^{id}\n"
        );
        let is_readable = |text: &str| parse(text.as_bytes(), ObjectFormat::Sha1).unwrap().1;
        assert!(is_readable(&good) && is_readable(""));
        for bad in [
            format!("{good}zzz bad line\n"),
            format!("{good}{id} refs/heads/b\n"),
            good[..good.len() - 1].to_owned(),
            "garbage".to_owned(),
            format!("{good}{id} refs/heads/../x\n"),
        ] {
            assert!(!is_readable(&bad), "{bad}");
            let last_good = LastGoodPackedRefs { stamp: None, content: good.clone().into_bytes() };
            let repaired =
                String::from_utf8(repaired(bad.as_bytes(), &last_good, ObjectFormat::Sha1)).unwrap();
            assert!(is_readable(&repaired) && repaired.contains("refs/tags/t\n^1"), "{repaired}");
            assert_eq!(repaired.contains("refs/heads/b"), bad.contains("refs/heads/b"));
        }
    }
}
