//! The tools that read, write and edit files. Edited files keep their line endings.

use std::io::Read;

use arborist_core::safe_files::{EnclosureError, InnerPath, WriteOutcome};
use memchr::memmem;

use super::{
    excerpt::{self, Excerpt, is_binary},
    offer::{EditArgs, ReadArgs, WriteArgs},
    root::Root,
};

/// The largest file that is written or edited, in bytes.
const LARGEST_FILE: u64 = 8 * 1024 * 1024;

/// The output of a tool, in pieces, or an error.
pub(super) type ToolOutput = Result<Vec<String>, String>;

pub(super) fn read_file(root: &Root, args: &ReadArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    let file = root.enclosure.read(&path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_or(0, |known| known.len());
    let read = excerpt::read(file, args.offset, args.limit);
    match read.map_err(|error| format!("'{path}' could not be read: {error}"))? {
        Excerpt::Binary => Err(format!("'{path}' is a binary file of {size} bytes")),
        Excerpt::Lines { text, note } => {
            Ok([text].into_iter().chain(note.map(|note| format!("[{note}]"))).collect())
        }
    }
}

pub(super) fn write_file(root: &Root, args: &WriteArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    if args.content.len() as u64 > LARGEST_FILE {
        return Err(format!("'{path}' would be larger than {LARGEST_FILE} bytes"));
    }
    let content = match root.enclosure.read(&path) {
        Ok(old) => with_line_ends_of(&whole(&path, old).unwrap_or_default(), &args.content),
        Err(_) => args.content.clone(),
    };
    let written = root.enclosure.write(&path, content.as_bytes()).map_err(|error| error.to_string())?;
    let what = match written {
        WriteOutcome::Created => "created",
        WriteOutcome::Replaced => "replaced",
    };
    if let Some(planted) = root.take_planted_around(&path.to_string()) {
        return Err(planted);
    }
    Ok(vec![format!("{what} '{path}' ({} bytes)", content.len())])
}

pub(super) fn edit_file(root: &Root, args: &EditArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    let old = whole(&path, root.enclosure.read(&path).map_err(|error| error.to_string())?)?;
    if is_binary(&old) {
        return Err(format!("'{path}' is a binary file of {} bytes", old.len()));
    }
    let new = replace(&old, &args.old_string, &args.new_string).map_err(|error| match error {
        EditError::Empty => {
            "old_string is empty; give the text to replace, or write the whole file with write_file"
                .to_owned()
        }
        EditError::Missing => {
            format!("'{path}' does not contain old_string; read it again and copy it exactly")
        }
        EditError::Repeated(count) => {
            format!("'{path}' contains old_string {count} times; include more of the surrounding text")
        }
        EditError::Same => "old_string and new_string are the same".to_owned(),
    })?;
    root.enclosure.write(&path, &new).map_err(|error| error.to_string())?;
    Ok(vec![format!("edited '{path}'")])
}

fn parse(path: &str) -> Result<InnerPath, String> {
    path.parse().map_err(|error: EnclosureError| error.to_string())
}

/// The whole file, if it is not too large.
pub(super) fn whole(path: &InnerPath, file: std::fs::File) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("'{path}' could not be read: {error}"))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(format!("'{path}' is larger than {LARGEST_FILE} bytes"));
    }
    Ok(bytes)
}

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
fn with_line_ends_of(old: &[u8], text: &str) -> String {
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
    fn text_that_occurs_exactly_once_is_replaced() {
        assert_eq!(replace(b"a b c", "b", "x").unwrap(), b"a x c");
        assert_eq!(replace(b"\xff b", "b", "x").unwrap(), b"\xff x", "bytes that are no text stay");
        assert_eq!(replace(b"a b", "c", "x"), Err(EditError::Missing));
        assert_eq!(replace(b"a b", "", "x"), Err(EditError::Empty));
        assert_eq!(replace(b"a b", "b", "b"), Err(EditError::Same));
        assert_eq!(replace(b"b b b", "b", "x"), Err(EditError::Repeated(3)));
        assert_eq!(replace(b"aaa", "aa", "x"), Err(EditError::Repeated(2)));
    }

    #[test]
    fn line_endings_are_kept() {
        assert_eq!(replace(b"a\r\nb\r\nc", "a\nb", "x\ny").unwrap(), b"x\r\ny\r\nc");
        assert_eq!(replace(b"a\r\nb\r\n", "a\r\nb", "x\r\ny").unwrap(), b"x\r\ny\r\n");
        assert_eq!(replace(b"a\nb\r\n", "a\nb", "x").unwrap(), b"x\r\n", "mixed ones are left alone");
        assert_eq!(with_line_ends_of(b"", "a\nb"), "a\nb");
        assert_eq!(with_line_ends_of(b"x\r\n", "a\nb\r\n"), "a\r\nb\r\n");
    }
}
