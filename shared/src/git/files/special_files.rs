//! Finds named pipes, sockets and devices in a worktree. git opens files like `.gitignore` without checking their kind,
//! and blocks on a named pipe for ever; and it refuses to add a tracked file that has become one.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    git::{
        GitError, PrivateIndex, Repository,
        files::scan::{Scan, ScannedName},
        index::{
            index_entries::{FileFacts, IndexEntries},
            index_format::LARGEST_INDEX,
        },
        misplaced_files::{has_holes, move_and_report},
    },
    safe_files::{self, FileKind},
};

/// Files that git reads in every folder.
const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// The largest plausible size of such a file. git reads all of it.
const LARGEST_RULES: u64 = 1 << 24;

/// Larger files are not added: git would read them for minutes, each time. Users who track such files use pointers to
/// them, as git-lfs does.
const HUGE: u64 = 4 << 30;

/// How many names are checked, beginning with the folders at the top. Beyond that, only the time limit of git commands
/// helps.
const MAX_NAMES: usize = 20_000;

impl Repository {
    /// Fails if git would block in this worktree.
    pub fn refuse_special(&self) -> Result<(), GitError> {
        let Some(top) = &self.worktree else { return Ok(()) };
        match find_unreadable(self, top) {
            Some(path) => Err(GitError::Special { path: top.join(path) }),
            None => Ok(()),
        }
    }

    /// Named pipes, sockets, devices and huge files in this worktree, relative to its top.
    #[must_use]
    pub fn list_special(&self) -> Vec<PathBuf> {
        self.scan().map(|scan| list_special_in(&scan)).unwrap_or_default()
    }

    /// Removes those that block git and were not `known`, restores tracked files, and returns the paths.
    pub fn remove_special(&self, known: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let new: Vec<PathBuf> =
            self.list_special().into_iter().filter(|path| !known.contains(path)).collect();
        if new.is_empty() {
            return Ok(new);
        }
        let top = self.top();
        // These come first: git must not be run before they are gone.
        let (mut gone, others): (Vec<PathBuf>, Vec<PathBuf>) =
            new.into_iter().partition(|path| is_read_by_git(path));
        for path in &gone {
            safe_files::remove(&top.join(path)).map_err(GitError::file(path))?;
        }
        let listed = self.change("ls-files").args(["-z", "--cached", "--"]).args(gone.iter().chain(&others));
        let tracked = listed.env("GIT_LITERAL_PATHSPECS", "1").paths()?;
        for path in others.into_iter().filter(|path| tracked.contains(path)) {
            let full = top.join(&path);
            // A huge file may contain work, so it is moved. If that fails, it is removed, because git must not read it.
            let is_moved =
                safe_files::kind_of(&full) == Some(FileKind::File) && move_and_report(&self.git_dir, &full);
            if !is_moved {
                safe_files::remove(&full).map_err(GitError::file(&path))?;
            }
            gone.push(path);
        }
        if !tracked.is_empty() {
            self.change("checkout-index").args(["-q", "-f", "--"]).args(&tracked).finish()?;
        }
        Ok(gone)
    }
}

impl PrivateIndex<'_> {
    /// Fails if git would block in this worktree, or read a huge file that is not `known`. A file that is unchanged
    /// according to the index, or that is ignored, is not read by git. `scan` is a scan that was just taken, if there
    /// is one.
    pub(in crate::git) fn refuse_unreadable(
        &self,
        known: &[Vec<u8>],
        scan: Option<Arc<Scan>>,
    ) -> Result<(), GitError> {
        let scan = scan.or_else(|| self.repository.scan());
        let (Some(top), Some(scan)) = (&self.repository.worktree, scan) else { return Ok(()) };
        let UnusualFiles { special, mut huge } = UnusualFiles::of(&scan);
        if let Some(path) = special.into_iter().find(|path| is_read_by_git(path)) {
            return Err(GitError::Special { path: top.join(path) });
        }
        huge.retain(|path| !known.iter().any(|known| known == path.as_os_str().as_bytes()));
        if huge.is_empty() {
            return Ok(());
        }
        let entries = safe_files::read_up_to(&self.file.path, LARGEST_INDEX).unwrap_or_default();
        let entries = IndexEntries::parse(&entries, self.repository.format);
        let tracked: HashMap<&[u8], FileFacts> = entries.iter().flat_map(IndexEntries::facts).collect();
        let facts_of = |path: &PathBuf| tracked.get(path.as_os_str().as_bytes());
        huge.retain(|path| !facts_of(path).is_some_and(|facts| facts.are_of(&top.join(path))));
        let (tracked, new): (Vec<PathBuf>, Vec<PathBuf>) =
            huge.into_iter().partition(|path| facts_of(path).is_some());
        let (_, new) = self.repository.split_ignored(new.iter().map(|path| top.join(path)).collect())?;
        let new = new.iter().filter_map(|path| path.strip_prefix(top).ok().map(Path::to_owned));
        match tracked.into_iter().chain(new).next() {
            Some(path) => Err(GitError::Huge { path }),
            None => Ok(()),
        }
    }
}

/// Files that git cannot handle.
#[derive(Debug, Default)]
struct UnusualFiles {
    special: Vec<PathBuf>,
    huge: Vec<PathBuf>,
}

fn is_read_by_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| READ_BY_GIT.iter().any(|read| name == *read))
}

impl UnusualFiles {
    fn of(scan: &Scan) -> Self {
        let mut found = Self::default();
        for (folder, names) in scan.folders() {
            for ScannedName { name, kind, facts } in names {
                let (size, stored) = facts.map_or((0, 0), |facts| (facts.stamp.size, facts.stored));
                // Nearly all names are plain files, so no path is built for them.
                let list = match kind {
                    FileKind::Special => &mut found.special,
                    FileKind::File if size > LARGEST_RULES && is_read_by_git(name_of(name)) => {
                        &mut found.special
                    }
                    FileKind::File if size > HUGE || has_holes(size, stored) => &mut found.huge,
                    _ => continue,
                };
                list.push(PathBuf::from(OsStr::from_bytes(&[folder, name].concat())));
            }
        }
        found.special.sort();
        found.huge.sort();
        found
    }
}

/// Like [`Repository::list_special`], with a given scan.
pub(in crate::git) fn list_special_in(scan: &Scan) -> Vec<PathBuf> {
    let found = UnusualFiles::of(scan);
    [found.special, found.huge].concat()
}

fn name_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A file on which git would block, according to the last scan, or else to a search that does not check all sizes.
fn find_unreadable(repository: &Repository, top: &Path) -> Option<PathBuf> {
    match repository.find_scan() {
        Some(scan) => UnusualFiles::of(&scan).special.into_iter().find(|path| is_read_by_git(path)),
        None => find_by_kind(top),
    }
}

/// Searches for such a file. Neither links nor git directories are entered.
fn find_by_kind(top: &Path) -> Option<PathBuf> {
    let (mut seen, mut open) = (0, VecDeque::from([PathBuf::new()]));
    while let Some(folder) = open.pop_front().filter(|_| seen < MAX_NAMES) {
        for entry in fs::read_dir(top.join(&folder)).into_iter().flatten().flatten() {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() {
                open.extend((name != ".git").then(|| folder.join(name)));
            } else if !kind.is_symlink() && is_read_by_git(Path::new(&name)) {
                let is_long = || entry.metadata().is_ok_and(|file| file.len() > LARGEST_RULES);
                if !kind.is_file() || is_long() {
                    return Some(folder.join(name));
                }
            }
        }
    }
    None
}
