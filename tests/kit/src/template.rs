//! A folder that is made once and written many times, because a copy costs less than the calls of git that made it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// The folders and files of a folder, in memory: nothing has to be removed when the tests end.
#[derive(Debug)]
pub(crate) struct Template {
    /// Each folder is named before what it holds.
    folders: Vec<PathBuf>,
    files: Vec<(PathBuf, Vec<u8>, Permissions)>,
}

impl Template {
    /// What is in `top` now.
    pub(crate) fn of(top: &Path) -> Self {
        let mut template = Self { folders: Vec::new(), files: Vec::new() };
        template.read(top, Path::new(""));
        template
    }

    fn read(&mut self, top: &Path, folder: &Path) {
        self.folders.push(folder.to_owned());
        for entry in fs::read_dir(top.join(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                self.read(top, &path);
            } else {
                let bytes = fs::read(entry.path()).expect("a file");
                let permissions = entry.metadata().expect("a file").permissions();
                self.files.push((path, bytes, permissions));
            }
        }
    }

    /// Writes all of it to a new folder.
    pub(crate) fn write_to(&self, top: &Path) {
        for folder in &self.folders {
            fs::create_dir(top.join(folder)).expect("a folder");
        }
        for (path, bytes, permissions) in &self.files {
            let path = top.join(path);
            fs::write(&path, bytes).expect("a file");
            if permissions.mode() & 0o777 != 0o644 {
                fs::set_permissions(&path, permissions.clone()).expect("a file");
            }
        }
    }
}
