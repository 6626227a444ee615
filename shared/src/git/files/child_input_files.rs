//! Writes files that a child process reads: its prompt, and the list of its tools. Other processes can write where
//! these files are, so they are compared after the child has ended.

use std::{ffi::OsStr, io, path::PathBuf, thread, time::Duration};

use crate::{
    git::files::folder_watch::FolderWatch,
    safe_files::{self, ChangeStamp},
};

/// Two changes of a file within this time may have the same ctime: clocks of file systems tick every 10 ms or faster.
const TICK: Duration = Duration::from_millis(12);

/// Files as they were just before a child started.
#[derive(Debug, Default)]
pub struct ChildInputFiles(Vec<ChildInput>);

#[derive(Debug)]
struct ChildInput {
    path: PathBuf,
    stamp: Option<ChangeStamp>,
    folders: FolderWatch,
}

impl ChildInputFiles {
    /// Writes these files. Fails if one of them then has another content.
    pub fn write(files: &[(PathBuf, Vec<u8>)]) -> io::Result<Self> {
        let mut inputs = Vec::new();
        for (path, content) in files {
            safe_files::write(path, content)?;
            let name = path.file_name().map(OsStr::as_encoded_bytes);
            let folders = FolderWatch::begin(path.parent().unwrap_or(path), name.into_iter());
            inputs.push(ChildInput { path: path.clone(), stamp: ChangeStamp::at(path), folders });
        }
        // Any write after this gets another ctime.
        if !files.is_empty() {
            thread::sleep(TICK);
        }
        let is_other = |(path, content): &&(PathBuf, Vec<u8>)| {
            safe_files::read(path).map_or(true, |found| found != *content)
        };
        match files.iter().find(is_other) {
            Some((path, _)) => {
                Err(io::Error::other(format!("another process wrote to '{}'", path.display())))
            }
            None => Ok(Self(inputs)),
        }
    }

    /// Whether none of them has been written or replaced since.
    #[must_use]
    pub fn are_untouched(&self) -> bool {
        let is_same = |inputs: &ChildInput| {
            inputs.stamp.is_some()
                && ChangeStamp::at(&inputs.path) == inputs.stamp
                && inputs.folders.find_moved().is_empty()
        };
        self.0.iter().all(is_same)
    }
}
