//! Task ids as people write them: `T001`, `T003a`, `T007.1`, `T-HF01`, `TASK-12`, and plain numbers `1.2`.

use crate::name::TaskId;

/// The id that `text` begins with: `T-?[A-Za-z]{0,3}\d+(?:[.\-]?\d+|[A-Za-z])*`, or `TASK-` and a number. With a dash before
/// the number, parts with letters may follow: `T-001-P1-002`. What follows must not go on with the same word.
pub(super) fn lettered(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut at = if text.starts_with("TASK-") {
        5 + group_at(&bytes[5..])
    } else {
        let dash = usize::from(bytes.get(1) == Some(&b'-'));
        let letters = bytes.iter().skip(1 + dash).take_while(|byte| byte.is_ascii_alphabetic()).count();
        (bytes.first() == Some(&b'T') && letters <= 3).then_some(1 + dash + letters)?
    };
    let digits = digits_at(bytes, at);
    if digits == 0 {
        return None;
    }
    at += digits;
    loop {
        let joint = usize::from(matches!(bytes.get(at), Some(b'.' | b'-')));
        match digits_at(bytes, at + joint) {
            0 if bytes.get(at).is_some_and(u8::is_ascii_alphabetic) => at += 1,
            // `TASK-001-A`.
            0 if joint == 1 && is_last_letter(bytes, at + 1) => at += 2,
            0 => match part_with_letters(text, at) {
                0 => break,
                len => at += len,
            },
            digits => at += joint + digits,
        }
    }
    whole_word(text, at)
}

/// The length of a part such as `-P1` or `-POLISH-005` that continues an id with a dash before its number. In `T-001-T-003` the
/// letters of the id are repeated, so it is a range.
fn part_with_letters(text: &str, at: usize) -> usize {
    const MOST_LETTERS: usize = 12;
    let bytes = text.as_bytes();
    let first = text[..at].bytes().take_while(u8::is_ascii_uppercase).count();
    let letters = bytes.iter().skip(at + 1).take_while(|byte| byte.is_ascii_uppercase()).count();
    let is_part = bytes.get(first) == Some(&b'-')
        && bytes.get(at) == Some(&b'-')
        && (1..=MOST_LETTERS).contains(&letters)
        && text[at + 1..at + 1 + letters] != text[..first];
    let joint = usize::from(bytes.get(at + 1 + letters) == Some(&b'-'));
    match digits_at(bytes, at + 1 + letters + joint) {
        digits if is_part && digits > 0 => 1 + letters + joint + digits,
        _ => 0,
    }
}

/// An id such as `t001`, with a small letter by mistake. `t3` is more likely the name of something else.
pub(super) fn lower_case(text: &str) -> Option<&str> {
    const FEWEST_DIGITS: usize = 2;
    let len = 1 + digits_at(text.as_bytes(), 1);
    let is_id = text.starts_with('t') && len > FEWEST_DIGITS;
    is_id.then(|| whole_word(text, len)).flatten()
}

/// Whether one capital letter is at a position, and no word continues after it.
fn is_last_letter(bytes: &[u8], at: usize) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    bytes.get(at).is_some_and(u8::is_ascii_uppercase) && !bytes.get(at + 1).is_some_and(goes_on)
}

/// The length of the letters and the joint in `TASK-Q.1`.
fn group_at(bytes: &[u8]) -> usize {
    const MAX_LETTERS: usize = 4;
    let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let joint = usize::from(matches!(bytes.get(letters), Some(b'.' | b'-')));
    if (1..=MAX_LETTERS).contains(&letters) { letters + joint } else { 0 }
}

/// An id of capital letters only: `T-NEW-A`.
pub(super) fn named(text: &str) -> Option<&str> {
    const LONGEST: usize = 24;
    let rest = text.strip_prefix("T-")?;
    let len = rest
        .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
        .unwrap_or(rest.len());
    let name = rest[..len].trim_end_matches('-');
    let is_name = name.len() > 1
        && name.len() <= LONGEST
        && !name.contains("--")
        && name.bytes().any(|b| b.is_ascii_uppercase());
    if is_name { whole_word(text, 2 + name.len()) } else { None }
}

/// An id with letters of its own: `A1`, `DB-1`, `API-12b`, `M20A-T003`, `TEST-FE-US1-T001`. It is one only in a file whose boxes
/// begin so. Stories and priorities have such names too and are none.
pub(super) fn family(text: &str) -> Option<&str> {
    // `P1` is a priority, `P6.1.2` and `P001` are not.
    let is_priority =
        |id: &&str| id.starts_with('P') && id[1..].bytes().all(|byte| byte.is_ascii_digit()) && id.len() < 4;
    of_letters(text, &["US"]).filter(|id| !is_priority(id))
}

/// Like [`family`], in a table or in headings that count through, where requirements and criteria have such names too.
pub(super) fn series(text: &str) -> Option<&str> {
    of_letters(text, &["US", "FR", "NFR", "SC", "AC", "BR", "UC", "REQ", "ADR", "RISK", "R"])
}

fn of_letters<'a>(text: &'a str, not_tasks: &[&str]) -> Option<&'a str> {
    const MOST_LETTERS: usize = 10;
    const MOST_DIGITS: usize = 4;
    const MOST_PARTS: usize = 5;
    let bytes = text.as_bytes();
    let is_part = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let part_at = |at: usize| bytes.iter().skip(at).take_while(is_part).count();
    let letters_at = |at: usize| bytes.iter().skip(at).take_while(|byte| byte.is_ascii_uppercase()).count();
    let first = &text[..letters_at(0)];
    if first.is_empty() || not_tasks.contains(&first) {
        return None;
    }
    // It ends with the last part that is letters and a number.
    let (mut start, mut end) = (0, None);
    for _ in 0..MOST_PARTS {
        let (letters, len) = (letters_at(start), part_at(start));
        let digits = digits_at(bytes, start + letters);
        if letters > MOST_LETTERS || len == 0 {
            break;
        }
        if (1..=MOST_DIGITS).contains(&digits) && letters + digits == len {
            end = Some(start + len);
        }
        if bytes.get(start + len) != Some(&b'-') {
            break;
        }
        start += len + 1;
    }
    let mut at = end?;
    while bytes.get(at) == Some(&b'.') && digits_at(bytes, at + 1) > 0 {
        at += 1 + digits_at(bytes, at + 1);
    }
    at += usize::from(bytes.get(at).is_some_and(u8::is_ascii_lowercase));
    whole_word(text, at)
}

/// A number with dots: `3`, `1.1`, `2.4.1`.
pub(super) fn numeric(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut at = digits_at(bytes, 0);
    if at == 0 || at > 4 {
        return None;
    }
    while bytes.get(at) == Some(&b'.') && digits_at(bytes, at + 1) > 0 {
        at += 1 + digits_at(bytes, at + 1);
    }
    whole_word(text, at)
}

fn digits_at(bytes: &[u8], at: usize) -> usize {
    bytes.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count()
}

fn whole_word(text: &str, len: usize) -> Option<&str> {
    // The `_` of `_Depends: T001_` is emphasis, that of `T001_x` is part of a word.
    let behind = text[len..].trim_start_matches('_');
    let goes_on = behind.starts_with(|next: char| next.is_ascii_alphanumeric());
    (!goes_on).then(|| &text[..len])
}

/// The id as a name, if it is one.
pub(super) fn parse(text: &str) -> Option<TaskId> {
    text.parse().ok()
}

/// Ids in the order in which they count: by the text before the number, the number, and the text after it, in which numbers
/// are padded so that `2.10` comes after `2.9`.
pub(super) type SortKey = (String, u64, String);

/// The position of an id among those of its kind, so that `T004-T007` takes in `T005a`.
pub(super) fn sort_key(id: &str) -> SortKey {
    let start = id.bytes().take_while(|byte| !byte.is_ascii_digit()).count();
    let end = start + digits_at(id.as_bytes(), start);
    (id[..start].to_owned(), id[start..end].parse().unwrap_or(u64::MAX), with_wide_numbers(&id[end..]))
}

/// A text with at least eight digits for each of its numbers.
fn with_wide_numbers(text: &str) -> String {
    let mut wide = String::with_capacity(text.len());
    for part in text.as_bytes().chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit()) {
        let part = String::from_utf8_lossy(part);
        match part.starts_with(|c: char| c.is_ascii_digit()) {
            true => wide.push_str(&format!("{part:0>8}")),
            false => wide.push_str(&part),
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_custom_prefixes_are_found_completely() {
        for (text, wanted) in [
            ("A1 a", Some("A1")),
            ("DB-1: a", Some("DB-1")),
            ("API-12b", Some("API-12b")),
            ("M20A-T003 a", Some("M20A-T003")),
            ("E2E tests", None),
            ("US1 a", None),
            ("P1 a", None),
            ("P6.1.2 a", Some("P6.1.2")),
            ("P001 a", Some("P001")),
            ("API a", None),
            ("Add a", None),
        ] {
            assert_eq!(family(text), wanted, "{text}");
        }
    }

    #[test]
    fn ids_of_every_spelling_are_found_completely() {
        for (text, wanted) in [
            ("T001 x", Some("T001")),
            ("T003a: x", Some("T003a")),
            ("T068A", Some("T068A")),
            ("T007.1 x", Some("T007.1")),
            ("T054b-1 x", Some("T054b-1")),
            ("T-HF01", Some("T-HF01")),
            ("T-01** x", Some("T-01")),
            ("T001. x", Some("T001")),
            ("T001-T003", Some("T001")),
            ("T001–T003", Some("T001")),
            ("TASK-12 x", Some("TASK-12")),
            ("TASK12 x", Some("TASK12")),
            ("TASK-Q.1**: x", Some("TASK-Q.1")),
            ("TASK-001-A: x", Some("TASK-001-A")),
            ("T001-API x", Some("T001")),
            ("T-001-P1-001-001 : x", Some("T-001-P1-001-001")),
            ("T-001-POLISH-005-002", Some("T-001-POLISH-005-002")),
            ("TASK-001-US1-003 x", Some("TASK-001-US1-003")),
            ("T-001-T-003", Some("T-001")),
            ("TASK-1-TASK-3", Some("TASK-1")),
            ("T001-P1 x", Some("T001")),
            ("TASK-FORCE x", None),
            ("TXXX x", None),
            ("Tests 1", None),
            ("T001_x", None),
            ("t001", None),
            ("", None),
            ("T", None),
        ] {
            assert_eq!(lettered(text), wanted, "{text}");
        }
    }

    #[test]
    fn ids_are_compared_by_their_numbers() {
        for (one, other) in [("2.9", "2.10"), ("T005", "T005a"), ("T-1-P1-9", "T-1-P1-10"), ("T9", "T10")] {
            assert!(sort_key(one) < sort_key(other), "{one} {other}");
        }
    }

    #[test]
    fn ids_with_a_lower_case_letter_are_distinguished_from_other_names() {
        for (text, wanted) in [
            ("t010 lower", Some("t010")),
            ("t01: lower", Some("t01")),
            ("t3.micro", None),
            ("t100x", None),
            ("T010", None),
            ("test", None),
            ("t", None),
        ] {
            assert_eq!(lower_case(text), wanted, "{text}");
        }
    }

    #[test]
    fn numbers_are_ids_only_as_whole_words() {
        for (text, wanted) in [
            ("1.1 x", Some("1.1")),
            ("2. x", Some("2")),
            ("10.2.3", Some("10.2.3")),
            ("3rd", None),
            ("x", None),
        ] {
            assert_eq!(numeric(text), wanted, "{text}");
        }
    }

    #[test]
    fn ids_are_sorted_by_number_first() {
        let mut ids = ["T010", "T005a", "T9", "T005", "T-1", "T005.2"];
        ids.sort_by_key(|id| sort_key(id));
        assert_eq!(ids, ["T005", "T005.2", "T005a", "T9", "T010", "T-1"]);
    }
}
