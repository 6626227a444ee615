//! A spec file in memory, and where its lines begin, so that every complaint can name its place.

use std::{borrow::Cow, cell::Cell};

use super::{PlanError, Problem};

const BOM: &str = "\u{feff}";

/// A byte of a file, as an offset.
pub(super) type Offset = usize;

/// A spec file: its name and its text.
#[derive(Debug)]
pub(super) struct SpecFile<'a> {
    pub(super) label: &'a str,
    pub(super) text: &'a str,
    starts: Vec<Offset>,
    /// The place of the last problem and its column, so that many problems of one long line take linear time.
    counted: Cell<(Offset, usize)>,
}

impl<'a> SpecFile<'a> {
    /// Takes bytes as UTF-8. Anything else is refused with the place where it stops being text.
    pub(super) fn new(label: &'a str, bytes: &'a [u8]) -> Result<Self, PlanError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { label, text, starts: line_starts(text), counted: Cell::default() }),
            Err(error) => {
                let sound = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                let file = Self { label, text: sound, starts: line_starts(sound), counted: Cell::default() };
                let fix = "save the file as UTF-8";
                Err(PlanError::wrong(vec![file.problem(sound.len(), "this is not UTF-8 text", fix)]))
            }
        }
    }

    /// Where the content begins: after a byte order mark, if there is one.
    pub(super) fn content_start(&self) -> Offset {
        if self.text.starts_with(BOM) { BOM.len() } else { 0 }
    }

    /// The line that holds a byte, from 1.
    pub(super) fn line_of(&self, at: Offset) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The line that holds a byte, without its end.
    pub(super) fn line_text(&self, at: Offset) -> &'a str {
        let line = self.line_of(at);
        let end = self.starts.get(line).copied().unwrap_or(self.text.len());
        self.text.get(self.starts[line - 1]..end).unwrap_or_default().trim_end_matches(['\r', '\n'])
    }

    /// The line around a byte, or a part of it where the line is so long that nobody would read it: a whole JSON file may be
    /// one line.
    pub(super) fn excerpt(&self, at: Offset) -> String {
        const LONGEST: usize = 400;
        let line = self.line_text(at).trim();
        if line.len() <= LONGEST {
            return line.to_owned();
        }
        let start = self.starts[self.line_of(at) - 1];
        let boundary = |at: Offset| (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let from = boundary(at.saturating_sub(LONGEST / 2).max(start));
        let to = boundary((from + LONGEST).min(self.text.len()));
        let part = self.text[from..to].lines().next().unwrap_or_default().trim();
        format!("{}{part}…", if from > start { "…" } else { "" })
    }

    /// The column of a byte in the line that begins at `start`, from 1.
    fn column_of(&self, at: Offset, start: Offset) -> usize {
        let (counted, column) = self.counted.get();
        let (from, column) =
            if (start..=at).contains(&counted) && column > 0 { (counted, column) } else { (start, 1) };
        let between = self.text.get(from..at).unwrap_or_default();
        let column = column + between.chars().filter(|c| *c != '\u{feff}').count();
        self.counted.set((at, column));
        column
    }

    /// A problem at a byte of this file.
    pub(super) fn problem(&self, at: Offset, what: impl Into<String>, fix: impl Into<String>) -> Problem {
        let line = self.line_of(at);
        Problem {
            file: self.label.to_owned(),
            line,
            column: self.column_of(at, self.starts[line - 1]),
            what: what.into(),
            fix: fix.into(),
        }
    }
}

/// The text of bytes that are not UTF-8, and what they are taken for. `None` for UTF-8, and for bytes that are no text.
pub(super) fn decode(bytes: &[u8]) -> Option<(String, &'static str)> {
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => return Some((utf16(u16::from_le_bytes), "UTF-16")),
        [0xfe, 0xff, ..] => return Some((utf16(u16::from_be_bytes), "UTF-16")),
        _ => {}
    }
    let is_text = |byte: &u8| !matches!(byte, 0..=8 | 14..=26 | 28..=31);
    let Cow::Owned(lossy) = String::from_utf8_lossy(bytes) else { return None };
    if !bytes.iter().all(is_text) {
        return None;
    }
    // A file in which most such characters are sound was damaged; in Windows-1252 none of them is.
    let (broken, sound): (Vec<char>, Vec<char>) =
        lossy.chars().filter(|c| !c.is_ascii()).partition(|c| *c == char::REPLACEMENT_CHARACTER);
    if sound.len() >= broken.len() {
        return Some((lossy, "damaged UTF-8"));
    }
    Some((bytes.iter().map(|byte| windows_1252(*byte)).collect(), "Windows-1252"))
}

fn windows_1252(byte: u8) -> char {
    /// The characters from 0x80 on; after them it is Latin-1.
    const FROM_80: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    match byte {
        0x80..=0x9f => FROM_80.chars().nth(usize::from(byte - 0x80)).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::from(byte),
    }
}

fn line_starts(text: &str) -> Vec<Offset> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_problems_count_lines_and_characters_from_one() {
        let file = SpecFile::new("a.md", "ü\näöx\n".as_bytes()).unwrap();
        assert_eq!(file.problem(7, "odd", "").to_string(), "a.md:2:3: odd");
        assert_eq!(file.problem(9, "end", "").to_string(), "a.md:3:1: end");
        assert_eq!(SpecFile::new("a", b"").unwrap().problem(0, "empty", "").to_string(), "a:1:1: empty");
    }

    #[test]
    fn other_encodings_are_detected_by_their_bytes() {
        let utf16 = |text: &str| -> Vec<u8> {
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        };
        for (bytes, wanted) in [
            (&b"plain"[..], None),
            ("a ä 好".as_bytes(), None),
            (&utf16("- [ ] T001 ä"), Some(("- [ ] T001 ä", "UTF-16"))),
            (b"\xfe\xff\0a", Some(("a", "UTF-16"))),
            (b"caf\xe9 \x80 \x93x\x94", Some(("café € “x”", "Windows-1252"))),
            (b"\xe5\xa5\xbd \xe5\xa5\xbd \xff", Some(("好 好 \u{fffd}", "damaged UTF-8"))),
            (b"\0\x01\xff", None),
        ] {
            let found = decode(bytes);
            assert_eq!(found.as_ref().map(|(text, name)| (text.as_str(), *name)), wanted, "{bytes:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_position() {
        let error = SpecFile::new("a.md", b"ok\nno\xff").unwrap_err();
        assert_eq!(error.to_string(), "a.md:2:3: this is not UTF-8 text");
    }
}
