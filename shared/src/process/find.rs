//! Finds programs without running them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The first executable file called `name` in the directories of `path` (the value of `PATH`).
#[must_use]
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    which::which_in(name, Some(path), std::env::current_dir().unwrap_or_default()).ok()
}

/// Whether `file` is a file with an execute permission.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
