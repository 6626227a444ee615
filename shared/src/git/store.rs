//! Writing objects where libgit2 cannot be used. For each kind one git stays and is told which file to take in: to start git costs more than that.

use std::{
    fs,
    io::BufRead,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::{GitError, Repository, command::checked, kept::GitService, write::id_of};
use crate::{
    name::{ObjectKind, Oid},
    process::RunningProgram,
    safe_files,
};

impl Repository {
    /// Has git store an object whose id is known.
    pub(super) fn have_git_write(&self, kind: ObjectKind, id: Oid, content: &[u8]) -> Result<Oid, GitError> {
        let told = self.told_to_write(kind, content)?;
        if told == Some(id) {
            return Ok(id);
        }
        let command = self.hash_object(kind).arg("--stdin");
        id_of("hash-object", &checked("hash-object", command.finish_with(content)?)?)
    }

    /// What the git that stays made of it; `None` if it gave no answer.
    fn told_to_write(&self, kind: ObjectKind, content: &[u8]) -> Result<Option<Oid>, GitError> {
        let folder = self.common_dir.join("arborist");
        let Some(slip) = Slip::new(&folder, content) else {
            return Ok(None);
        };
        let start = || {
            sweep(&folder);
            self.converse(self.hash_object(kind).args(["--no-filters", "--stdin-paths"]))
        };
        let told = self.clerk(GitService::Write(kind)).ask(start, |running| slip.hand_to(running))?;
        Ok(told.ok())
    }

    /// What is stored was made by us from what is there already, so that no other form is asked of it.
    fn hash_object(&self, kind: ObjectKind) -> super::GitCommand {
        self.change("hash-object").args(["-w", "--literally", "-t", kind.as_str()])
    }
}

/// A file that holds what is to be stored, removed when dropped.
struct Slip(PathBuf);

/// What such a file is called, before what tells it from others.
const NAME: &str = "object-";
/// Nobody hands in anything for so long.
const OLD: Duration = Duration::from_secs(60 * 60);

/// Removes what killed processes left.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let slips = entries.filter(|entry| entry.file_name().as_bytes().starts_with(NAME.as_bytes()));
    let is_old = |slip: &fs::DirEntry| {
        let written = slip.metadata().and_then(|slip| slip.modified());
        written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > OLD))
    };
    slips.filter(is_old).for_each(|slip| drop(safe_files::remove(&slip.path())));
}

impl Slip {
    /// `None` where no such file can be had: then it goes without.
    fn new(folder: &Path, content: &[u8]) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let slip = Slip(folder.join(format!("{NAME}{}-{count}", std::process::id())));
        if slip.0.as_os_str().as_bytes().contains(&b'\n') {
            return None;
        }
        // A name that is taken was planted, or is left of a process of the same number: it is never written into.
        match safe_files::write_new(&slip.0, content) {
            Ok(_) => Some(slip),
            Err(_) => None,
        }
    }

    fn hand_to(&self, running: &mut RunningProgram) -> Option<Oid> {
        running.tell(&[self.0.as_os_str().as_bytes(), b"\n"].concat()).ok()?;
        let mut answer = String::new();
        running.output()?.read_line(&mut answer).ok()?;
        answer.trim_end().parse().ok()
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        let _ = safe_files::remove(&self.0);
    }
}
