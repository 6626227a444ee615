//! A spec file in memory, and where its lines begin, so that every complaint can name its place.

use std::cell::Cell;

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

    /// Where the content begins: behind a byte order mark, if there is one.
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

fn line_starts(text: &str) -> Vec<Offset> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_counts_lines_and_characters_from_one() {
        let file = SpecFile::new("a.md", "ü\näöx\n".as_bytes()).unwrap();
        assert_eq!(file.problem(7, "odd", "").to_string(), "a.md:2:3: odd");
        assert_eq!(file.problem(9, "end", "").to_string(), "a.md:3:1: end");
        assert_eq!(SpecFile::new("a", b"").unwrap().problem(0, "empty", "").to_string(), "a:1:1: empty");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_where_they_stand() {
        let error = SpecFile::new("a.md", b"ok\nno\xff").unwrap_err();
        assert_eq!(error.to_string(), "a.md:2:3: this is not UTF-8 text");
    }
}
