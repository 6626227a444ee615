//! Files of ours that a child process reads: its prompt, and which tools it has. They lie where whoever else is at work can
//! write, so they are compared with what was written once the child has ended.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::folder_watch::FolderWatch;
use crate::safe_files::{self, ChangeStamp};

/// Two changes of a file within this time may have the same time: clocks of file systems tick at up to 10 ms.
const TICK: Duration = Duration::from_millis(12);

/// Files as they were when a child was about to begin.
#[derive(Debug, Default)]
pub struct HandedFiles(Vec<Handed>);

#[derive(Debug)]
struct Handed {
    path: PathBuf,
    stamp: Option<ChangeStamp>,
    folders: FolderWatch,
}

impl HandedFiles {
    /// Writes these files. An error if one of them does not hold what was written.
    pub fn write(files: &[(PathBuf, Vec<u8>)]) -> io::Result<Self> {
        let mut handed = Vec::new();
        for (path, content) in files {
            safe_files::write(path, content)?;
            let name = path.file_name().map(OsStr::as_encoded_bytes);
            let folders = FolderWatch::begin(path.parent().unwrap_or(path), name.into_iter());
            handed.push(Handed { path: path.clone(), stamp: stamp_of(path), folders });
        }
        // What is written after this has another time.
        if !files.is_empty() {
            thread::sleep(TICK);
        }
        let is_other = |(path, content): &&(PathBuf, Vec<u8>)| {
            safe_files::read(path).map_or(true, |found| found != *content)
        };
        match files.iter().find(is_other) {
            Some((path, _)) => Err(io::Error::other(format!("something else wrote to '{}'", path.display()))),
            None => Ok(Self(handed)),
        }
    }

    /// Whether none of them was written or replaced since.
    #[must_use]
    pub fn are_untouched(&self) -> bool {
        let is_same = |handed: &Handed| {
            handed.stamp.is_some()
                && stamp_of(&handed.path) == handed.stamp
                && handed.folders.find_moved().is_empty()
        };
        self.0.iter().all(is_same)
    }
}

fn stamp_of(path: &Path) -> Option<ChangeStamp> {
    path.symlink_metadata().ok().map(|found| ChangeStamp::of(&found))
}
