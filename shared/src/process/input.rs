//! The standard input of a program, as a file that is complete before the program starts.
//!
//! A pipe can be cut off: if we are killed between starting git and writing a list of paths, git reads an empty list,
//! which means "everything" to `git reset` or `git checkout`. With a file this cannot happen.

use std::{
    fs::File,
    io::{self, Seek, Write},
};

/// Creates an unnamed file with `input`, positioned at its beginning.
pub(super) fn complete(input: &[u8]) -> io::Result<File> {
    let mut file = nameless()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// In memory, so that it can neither be left behind nor be opened by name.
#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create("arborist-input", flags).map(File::from)?)
}

/// A temporary file whose name is removed at once.
#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    tempfile::tempfile()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_input_file_is_read_from_its_beginning() {
        let mut text = String::new();
        complete(b"a\0b\n").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a\0b\n");
    }
}
