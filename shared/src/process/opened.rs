//! Finds out whether a file is open in any process.

use std::{fs::Metadata, path::Path};

/// Whether a visible process has the file at `path` open; `None` if the system does not tell.
#[must_use]
pub fn is_open(path: &Path) -> Option<bool> {
    path.symlink_metadata().ok().map_or(Some(false), |file| is_open_anywhere(&file))
}

#[cfg(target_os = "linux")]
fn is_open_anywhere(file: &Metadata) -> Option<bool> {
    use std::{fs, os::unix::fs::MetadataExt};
    let is_same = |entry: fs::DirEntry| {
        let found = fs::metadata(entry.path());
        found.is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut folders = processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    Some(folders.any(|folder| {
        fs::read_dir(folder.path().join("fd")).is_ok_and(|mut fds| fds.any(|fd| fd.is_ok_and(is_same)))
    }))
}

#[cfg(not(target_os = "linux"))]
fn is_open_anywhere(_file: &Metadata) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_counts_as_open_while_a_process_has_it_open() {
        // A folder is made without opening it, so no child of another test can have inherited it.
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(is_open(folder.path()), Some(false));
        let _held = std::fs::File::open(folder.path()).unwrap();
        assert_eq!(is_open(folder.path()), Some(true));
    }
}
