//! Edits of existing files, which keep their line endings.

use memchr::memmem;

/// Why nothing is replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditError {
    /// The text to replace is empty.
    Empty,
    /// It was not found.
    Missing,
    /// It occurs this many times.
    Repeated(usize),
    /// Nothing would change.
    Same,
}

/// `text` with the line endings of `old`, if these are all the same.
pub(super) fn with_line_ends_of(old: &[u8], text: &str) -> String {
    let ends = old.iter().filter(|byte| **byte == b'\n').count();
    let carriage_returns = memmem::find_iter(old, b"\r\n").count();
    if ends > 0 && ends == carriage_returns {
        return text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text.to_owned()
}

/// `file` with `old` replaced by `new`. `old` must occur exactly once.
pub(super) fn replace(file: &[u8], old: &str, new: &str) -> Result<Vec<u8>, EditError> {
    let (old, new) = (with_line_ends_of(file, old), with_line_ends_of(file, new));
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Same);
    }
    let mut found = memmem::find_iter(file, old.as_bytes());
    let Some(at) = found.next() else {
        return Err(EditError::Missing);
    };
    // Overlapping occurrences count too.
    if memmem::find(&file[at + 1..], old.as_bytes()).is_some() {
        return Err(EditError::Repeated(2 + found.skip(1).count()));
    }
    Ok([&file[..at], new.as_bytes(), &file[at + old.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_once_is_replaced() {
        assert_eq!(replace(b"a b c", "b", "x").unwrap(), b"a x c");
        assert_eq!(replace(b"\xff b", "b", "x").unwrap(), b"\xff x", "bytes that are no text stay");
        assert_eq!(replace(b"a b", "c", "x"), Err(EditError::Missing));
        assert_eq!(replace(b"a b", "", "x"), Err(EditError::Empty));
        assert_eq!(replace(b"a b", "b", "b"), Err(EditError::Same));
        assert_eq!(replace(b"b b b", "b", "x"), Err(EditError::Repeated(3)));
        assert_eq!(replace(b"aaa", "aa", "x"), Err(EditError::Repeated(2)));
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        assert_eq!(replace(b"a\r\nb\r\nc", "a\nb", "x\ny").unwrap(), b"x\r\ny\r\nc");
        assert_eq!(replace(b"a\r\nb\r\n", "a\r\nb", "x\r\ny").unwrap(), b"x\r\ny\r\n");
        assert_eq!(replace(b"a\nb\r\n", "a\nb", "x").unwrap(), b"x\r\n", "mixed ones are left alone");
        assert_eq!(with_line_ends_of(b"", "a\nb"), "a\nb");
        assert_eq!(with_line_ends_of(b"x\r\n", "a\nb\r\n"), "a\r\nb\r\n");
    }
}
