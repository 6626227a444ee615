//! Reads a limited number of lines from a file of any size, with little memory.

use std::io::{self, BufRead, BufReader, Read};

/// The default number of lines.
const LINES: usize = 2000;
/// The maximal number of bytes; more does not help a model.
const SHOWN: usize = 64 * 1024;
/// The maximal number of bytes that are skipped to find a line.
const SKIPPED: u64 = 256 * 1024 * 1024;
/// How many bytes decide whether a file is text, as in git.
const PROBED: usize = 8000;

/// The result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Excerpt {
    /// The file is not text.
    Binary,
    /// Lines, with a note about them.
    Lines { text: String, note: Option<String> },
}

/// Whether the start of a file is not text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(PROBED).any(|byte| *byte == 0)
}

/// Reads lines from `offset`, which counts from 1.
pub(super) fn read(file: impl Read, offset: Option<usize>, limit: Option<usize>) -> io::Result<Excerpt> {
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(SKIPPED));
    if is_binary(reader.fill_buf()?) {
        return Ok(Excerpt::Binary);
    }
    let first = offset.unwrap_or(1).max(1);
    for line in 1..first {
        if reader.skip_until(b'\n')? == 0 {
            let note = match line - 1 {
                0 => "the file is empty".to_owned(),
                1 => "there is only 1 line".to_owned(),
                count => format!("there are only {count} lines"),
            };
            return Ok(Excerpt::Lines { text: String::new(), note: Some(note) });
        }
    }
    let mut bytes = Vec::new();
    let mut next = first;
    while next - first < limit.unwrap_or(LINES) {
        let room = SHOWN.saturating_sub(bytes.len());
        let before = bytes.len();
        // One byte more than there is room for shows that there is more.
        let read = (&mut reader).take(room as u64 + 1).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(lines(bytes, None));
        }
        if read > room {
            return Ok(cut(bytes, before, next));
        }
        next += 1;
    }
    let is_over = reader.fill_buf()?.is_empty();
    Ok(lines(bytes, (!is_over).then(|| format!("more lines follow from offset {next}"))))
}

/// A line for which there is no room is left to the next call, unless it is the only one.
fn cut(mut bytes: Vec<u8>, before: usize, line: usize) -> Excerpt {
    if before > 0 {
        bytes.truncate(before);
        return lines(bytes, Some(format!("more lines follow from offset {line}")));
    }
    bytes.truncate(SHOWN);
    lines(bytes, Some(format!("line {line} is longer than {SHOWN} bytes, and only its beginning is shown")))
}

fn lines(bytes: Vec<u8>, note: Option<String>) -> Excerpt {
    match String::from_utf8(bytes) {
        Ok(text) => Excerpt::Lines { text, note },
        Err(error) => {
            let told = "some bytes are not UTF-8 and are shown as U+FFFD";
            let note = note.map_or_else(|| told.to_owned(), |note| format!("{note}; {told}"));
            Excerpt::Lines { text: String::from_utf8_lossy(error.as_bytes()).into_owned(), note: Some(note) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(file: &[u8], offset: usize, limit: usize) -> (String, Option<String>) {
        match read(file, Some(offset), Some(limit)).unwrap() {
            Excerpt::Binary => ("binary".into(), None),
            Excerpt::Lines { text, note } => (text, note),
        }
    }

    #[test]
    fn lines_are_shown_unchanged() {
        let file = b"one\r\ntwo\nthree";
        assert_eq!(shown(file, 1, 9), ("one\r\ntwo\nthree".into(), None));
        assert_eq!(shown(file, 2, 1), ("two\n".into(), Some("more lines follow from offset 3".into())));
        assert_eq!(shown(file, 3, 1), ("three".into(), None));
        assert_eq!(shown(file, 0, 1).0, "one\r\n");
        assert_eq!(shown(file, 5, 1), (String::new(), Some("there are only 3 lines".into())));
        assert_eq!(shown(b"a\n", 5, 1), (String::new(), Some("there is only 1 line".into())));
        assert_eq!(shown(b"", 5, 1), (String::new(), Some("the file is empty".into())));
        assert_eq!(shown(b"", 1, 9), (String::new(), None));
        assert_eq!(shown(b"a\0b", 1, 9).0, "binary");
    }

    #[test]
    fn long_text_is_cut_at_a_line_end_if_there_is_one() {
        let long = "x".repeat(SHOWN - 2);
        let (text, note) = shown(format!("{long}\nsecond\n").as_bytes(), 1, 9);
        assert_eq!((text.len(), note.unwrap().as_str()), (SHOWN - 1, "more lines follow from offset 2"));
        let (text, note) = shown("y".repeat(SHOWN * 3).as_bytes(), 1, 9);
        assert_eq!(text.len(), SHOWN);
        assert!(note.unwrap().starts_with("line 1 is longer"));
        let (text, note) = shown("z".repeat(SHOWN).as_bytes(), 1, 9);
        assert_eq!((text.len(), note), (SHOWN, None));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_and_reported() {
        let (text, note) = shown(b"caf\xe9\n", 1, 9);
        assert_eq!(text, "caf\u{fffd}\n");
        assert!(note.unwrap().contains("not UTF-8"));
    }
}
