//! Takes snapshots of a worktree as trees, without touching the user's index: all files are added to a copy of it.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    os::unix::fs::MetadataExt,
    path::{Component, Path},
    sync::Arc,
};

use crate::{
    git::{
        GitCommand, GitError, IndexFile, Repository,
        command::{names_of, nul_ended},
        files::{scan::Scan, special_files::list_special_in},
        index::known_index::with_index,
        objects::write::id_of,
    },
    message::visible,
    name::{ObjectFormat, Oid},
    process::ProcessError,
    safe_files,
};

/// A private copy of an index.
#[derive(Debug)]
pub struct PrivateIndex<'a> {
    pub(in crate::git) repository: &'a Repository,
    pub(in crate::git) file: IndexFile,
}

/// A snapshot of a worktree.
#[derive(Debug)]
pub struct WorktreeSnapshot {
    /// Its files as a tree.
    pub tree: Oid,
    /// The index from which the tree was written.
    pub index: IndexFile,
    /// Repositories inside the worktree without a commit, and folders that git cannot read. It cannot add them.
    pub left_out: Vec<Vec<u8>>,
    /// Files that git cannot add.
    pub unreadable: Vec<Unreadable>,
}

impl WorktreeSnapshot {
    /// Fails if there are unreadable files: for callers that need all of them.
    pub fn require_readable(self) -> Result<Self, GitError> {
        match self.unreadable.first() {
            Some(found) => Err(found.error()),
            None => Ok(self),
        }
    }
}

/// A file that git cannot add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its path, from the top.
    pub path: Vec<u8>,
    /// Why, in git's words.
    pub why: String,
}

impl Unreadable {
    fn error(&self) -> GitError {
        GitError::CannotAdd {
            path: visible(&String::from_utf8_lossy(&self.path)),
            why: self.why.trim_start_matches("error: ").trim_start_matches("fatal: ").to_owned(),
        }
    }
}

/// How many files may be unreadable before a snapshot fails: git is run once for each.
const MAX_UNREADABLE: usize = 200;

/// How many special files (named pipes, devices) are excluded: all of them must fit into git's arguments.
const MAX_SPECIAL: usize = 200;

/// Identifies one version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    written: (i64, i64),
    size: u64,
}

impl Stamp {
    pub(in crate::git) fn of(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        Some(Self { inode: found.ino(), written: (found.mtime(), found.mtime_nsec()), size: found.size() })
    }
}

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path, as bytes of a file name.
    pub path: Vec<u8>,
    /// Mode and content before; `None` if it is new.
    pub before: Option<(u32, Oid)>,
    /// Mode and content afterwards; `None` if it is gone.
    pub after: Option<(u32, Oid)>,
}

impl TreeChange {
    /// The path for display, without terminal control characters.
    #[must_use]
    pub fn shown(&self) -> String {
        visible(&String::from_utf8_lossy(&self.path))
    }

    /// Whether it is a submodule, or another repository inside the worktree.
    #[must_use]
    pub fn is_gitlink(&self) -> bool {
        is_gitlink(self.after)
    }

    /// Whether it was a gitlink before.
    #[must_use]
    pub fn was_gitlink(&self) -> bool {
        is_gitlink(self.before)
    }

    /// Whether it is or was a gitlink.
    #[must_use]
    pub fn concerns_gitlink(&self) -> bool {
        self.is_gitlink() || self.was_gitlink()
    }

    /// Whether the file has this name, in any folder.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.path.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
    }
}

fn is_gitlink(side: Option<(u32, Oid)>) -> bool {
    side.is_some_and(|(mode, _)| mode == 0o160_000)
}

impl Repository {
    /// Whether worktree and index match `HEAD`, except for ignored files.
    pub fn is_clean(&self) -> Result<bool, GitError> {
        let view = self.find_trusted_view()?;
        let hidden = self.start_hidden_with(view.as_ref());
        let is_clean = self.ask_status()?.is_clean;
        let hidden = hidden.finish(self.top())?;
        Ok(is_clean
            && self.changed_hidden_files(&hidden)?.is_empty()
            && self.dirty_submodules(None)?.is_empty())
    }

    /// git's description of branch, index and worktree, for comparisons.
    pub fn status(&self) -> Result<Vec<u8>, GitError> {
        self.refuse_special()?;
        let view = self.find_trusted_view()?;
        let status = with_index(view.as_ref(), self.git("status"));
        let status = status.args(["--porcelain=v2", "--branch", "-z", "--untracked-files=all"]);
        status.args(["--no-renames", "--no-ahead-behind"]).stdout()
    }

    /// A tree of all files in the worktree, except for ignored ones.
    pub fn snapshot(&self) -> Result<Oid, GitError> {
        self.private_index("snapshot")?.add_and_write_tree()
    }

    /// Like [`Self::snapshot`], together with the index. It does not check that git has every object: that is one
    /// lookup for each file, and most of them are known. [`Repository::require_verified`] checks the new ones. Files
    /// that git cannot add keep their entry of the index, and are listed.
    pub fn take_snapshot(&self) -> Result<WorktreeSnapshot, GitError> {
        let index = self.private_index("snapshot")?;
        let (left_out, unreadable) = index.add_readable()?;
        let tree = match self.write_tree_of(&index.file.path) {
            Some(tree) => tree,
            None => id_of("write-tree", &index.git("write-tree").arg("--missing-ok").stdout()?)?,
        };
        Ok(WorktreeSnapshot { tree, index: index.file, left_out, unreadable })
    }

    /// The tree of what is staged.
    pub fn staged(&self) -> Result<Oid, GitError> {
        self.private_index("staged")?.write_tree()
    }

    /// Restores these paths of the worktree from `tree`. No hook runs, and the user's index is not touched.
    pub fn restore_paths(&self, tree: Oid, paths: &[TreeChange]) -> Result<(), GitError> {
        let index = self.private_index("back")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let listed = index.git("ls-files").args(["-z", "--cached"]).stdout()?;
        let known: HashSet<&[u8]> = listed.split(|b| *b == 0).collect();
        let (present, gone): (Vec<&TreeChange>, Vec<&TreeChange>) =
            paths.iter().partition(|change| known.contains(change.path.as_slice()));
        self.open_folders_of(paths.iter());
        for change in gone {
            require_inner(&change.path)?;
            let path = Path::new(OsStr::from_bytes(&change.path));
            // Files behind a link are outside of the worktree, even if the path was once tracked.
            if is_behind_a_link(self.top(), path) {
                continue;
            }
            match safe_files::remove(&self.top().join(path)) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ProcessError { program: "git".into(), source }.into());
                }
                _ => {}
            }
        }
        let names = nul_ended(present.iter().map(|change| change.path.as_slice()));
        let command = index.git("checkout-index").args(["-f", "-q", "-z", "--stdin"]);
        command.stdout_with(&names).map(drop)
    }

    /// Sets these paths of the user's index to the state of `HEAD`. All other entries stay.
    pub fn stage(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        self.stage_as_in("HEAD", changes)
    }

    /// Like [`Self::stage`], but fails if another git holds the lock of the index.
    pub fn stage_if_unlocked(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        self.stage_by(self.change("reset").without_waiting_for_locks(), "HEAD", changes)
    }

    /// Like [`Self::stage`], with the state of another commit.
    pub fn stage_as_in(&self, commit: &str, changes: &[TreeChange]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.write_index(|index| self.stage_by(index.of(self.change("reset")), commit, changes))
    }

    fn stage_by(&self, reset: GitCommand, commit: &str, changes: &[TreeChange]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let paths = nul_ended(changes.iter().map(|change| change.path.as_slice()));
        let command = reset.args(["-q", "--pathspec-from-file=-", "--pathspec-file-nul", commit]);
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        command.stdout_with(&paths).map(drop)
    }

    /// The paths of the index that differ from a commit or a tree.
    pub fn staged_since(&self, commit: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("diff-index").args(["--cached", "--name-only", "-z", "--no-renames"]);
        Ok(names_of(&command.arg(commit.to_string()).stdout()?))
    }

    /// Sets the user's index to `tree`. Files stay as they are.
    pub fn stage_tree(&self, tree: Oid) -> Result<(), GitError> {
        let command = self.change("read-tree").arg(tree.to_string());
        self.write_index(|index| index.of(command).stdout().map(drop))
    }

    /// Whether a file that should be in the checkout is missing.
    fn is_missing(&self, change: &TreeChange) -> bool {
        let path = self.top().join(OsStr::from_bytes(&change.path));
        change.after.is_some() && path.symlink_metadata().is_err()
    }

    /// Whether all of these files should be in the checkout and are missing.
    #[must_use]
    pub fn are_missing(&self, changes: &[TreeChange]) -> bool {
        !changes.is_empty() && changes.iter().all(|change| self.is_missing(change))
    }

    /// Sets these paths of the user's index to the state of `HEAD`, and writes those files that are missing.
    pub fn stage_and_write_missing(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        if self.add_without_git(changes) {
            return Ok(());
        }
        if !self.are_missing(changes) {
            self.stage(changes)?;
            return self.write_missing(changes);
        }
        self.open_folders_of(changes.iter());
        let paths = nul_ended(changes.iter().map(|change| change.path.as_slice()));
        let command =
            self.change("checkout").args(["-q", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD"]);
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        self.write_index(|index| index.of(command).stdout_with(&paths).map(drop))
    }

    /// Opens the folders of these files that a child process has closed. What is behind a link is outside of the worktree.
    fn open_folders_of<'c>(&self, changes: impl Iterator<Item = &'c TreeChange>) {
        let paths = changes.map(|change| Path::new(OsStr::from_bytes(&change.path)));
        for path in paths.filter(|path| !is_behind_a_link(self.top(), path)) {
            safe_files::allow_writing_around(self.top(), &self.top().join(path));
        }
    }

    /// Writes those of these files that are missing, with the content of the index.
    pub fn write_missing(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        let missing: Vec<&TreeChange> = changes.iter().filter(|change| self.is_missing(change)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.open_folders_of(missing.iter().copied());
        let paths = nul_ended(missing.iter().map(|change| change.path.as_slice()));
        let command = self.change("checkout-index").args(["-q", "-u", "-z", "--stdin"]);
        self.write_index(|index| index.of(command).stdout_with(&paths).map(drop))
    }
}

impl Repository {
    /// Applies these changes to the user's index. All other entries stay.
    pub fn enter(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.write_index(|index| {
            let command = index.of(self.change("update-index")).args(["-z", "--index-info"]);
            command.stdout_with(&index_info(changes, self.format))?;
            index.of(self.change("update-index")).args(["-q", "--refresh"]).finish().map(drop)
        })
    }
}

/// The file that `core.safecrlf` or a required filter refuses, in a line of git's error message that does not quote it.
fn find_unquoted(line: &str) -> Option<&str> {
    if let Some((before, _)) = line.split_once(": clean filter '") {
        return Some(before.strip_prefix("fatal: ").unwrap_or(before));
    }
    let (_, rest) = line.split_once(" would be replaced by ")?;
    rest.split_once(" in ").map(|(_, path)| path)
}

impl PrivateIndex<'_> {
    /// Adds all files of the worktree, except for ignored ones, and writes a tree.
    pub fn add_and_write_tree(&self) -> Result<Oid, GitError> {
        self.add_all()?;
        self.write_tree()
    }

    /// Adds all files, including those outside of a sparse checkout and those marked `assume-unchanged` or
    /// `skip-worktree`. Returns the repositories that had to be left out.
    fn add_all(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.add_all_but(&[], None).map_err(|error| match &error {
            GitError::Failed { complaint, .. } => {
                self.find_refused(complaint, &[]).map_or(error, |found| found.error())
            }
            _ => error,
        })
    }

    fn add_all_but(&self, unreadable: &[Vec<u8>], scan: Option<Arc<Scan>>) -> Result<Vec<Vec<u8>>, GitError> {
        self.refuse_unreadable(unreadable, scan)?;
        let hidden = self.start_hidden();
        let left_out = self.add_possible(unreadable)?;
        let hidden = hidden.finish(self.repository.top())?;
        if hidden.is_empty() {
            return Ok(left_out);
        }
        self.reveal(&hidden)?;
        self.add_possible(unreadable)
    }

    /// Like [`Self::add_all`], but leaves out files that git cannot add: files without read permission, files whose
    /// content is not in the encoding of their attribute, and files that a required filter refuses. git stops at the first such file and names it.
    fn add_readable(&self) -> Result<(Vec<Vec<u8>>, Vec<Unreadable>), GitError> {
        let mut unreadable: Vec<Unreadable> = Vec::new();
        loop {
            let paths: Vec<Vec<u8>> = unreadable.iter().map(|found| found.path.clone()).collect();
            match self.add_all_but(&paths, None) {
                Err(GitError::Failed { command, complaint }) => {
                    let found =
                        self.find_refused(&complaint, &paths).filter(|_| paths.len() < MAX_UNREADABLE);
                    let Some(found) = found else { return Err(GitError::Failed { command, complaint }) };
                    unreadable.push(found);
                }
                Err(GitError::Huge { path }) if paths.len() < MAX_UNREADABLE => {
                    let why = GitError::Huge { path: path.clone() }.to_string();
                    unreadable
                        .push(Unreadable { path: path.into_os_string().into_vec(), why: visible(&why) });
                }
                added => return added.map(|left_out| (left_out, unreadable)),
            }
        }
    }

    /// The file that git refuses according to its error message, unless it is one of the `known` ones.
    fn find_refused(&self, complaint: &str, known: &[Vec<u8>]) -> Option<Unreadable> {
        let path = self.find_named(complaint, known)?;
        let name = String::from_utf8_lossy(&path);
        let mut lines = complaint.lines().filter(|line| !line.starts_with("hint:"));
        let first = lines.clone().next().unwrap_or_default();
        let why = visible(lines.find(|line| line.contains(&*name)).unwrap_or(first));
        Some(Unreadable { path, why })
    }

    /// The file of the worktree in git's error message, unless it is one of the `known` ones.
    fn find_named(&self, complaint: &str, known: &[Vec<u8>]) -> Option<Vec<u8>> {
        let is_file = |path: &str| {
            let path = Path::new(path);
            let is_inner = path.components().all(|part| matches!(part, Component::Normal(_)));
            is_inner && self.repository.top().join(path).symlink_metadata().is_ok_and(|found| !found.is_dir())
        };
        let quoted = complaint.split(['\'', '"']).filter(|word| !word.is_empty());
        let named = quoted.chain(complaint.lines().filter_map(find_unquoted));
        let mut named = named.filter(|word| is_file(word)).map(|word| word.as_bytes().to_vec());
        named.find(|path| !known.contains(path))
    }

    /// Like [`Self::add_and_write_tree`], for repeated snapshots: git writes the index only if something changed, so
    /// while it is the same file, the tree is the same too. Tracked files that have become named pipes or devices keep
    /// their old entries; they are reported at the end of the attempt.
    pub fn add_again(&self, seen: &mut Option<(Stamp, Oid)>) -> Result<Oid, GitError> {
        // One scan is enough: it only keeps git from blocking, and the agent changes files all the time anyway.
        let scan = self.repository.scan();
        let special = scan.as_deref().map(list_special_in).unwrap_or_default();
        let special = special.into_iter().take(MAX_SPECIAL);
        let mut left_out: Vec<Vec<u8>> = special.map(|path| path.into_os_string().into_vec()).collect();
        loop {
            match self.add_all_but(&left_out, scan.clone()) {
                Err(GitError::Huge { path }) if left_out.len() < MAX_SPECIAL => {
                    left_out.push(path.into_os_string().into_vec());
                }
                added => break drop(added?),
            }
        }
        if let (Some((stamp, tree)), Some(now)) = (*seen, Stamp::of(&self.file.path))
            && stamp == now
        {
            return Ok(tree);
        }
        let tree = self.write_tree()?;
        *seen = Stamp::of(&self.file.path).map(|stamp| (stamp, tree));
        Ok(tree)
    }

    /// Makes the worktree equal to `tree`. Ignored files stay.
    pub fn write_out(&self, tree: Oid) -> Result<(), GitError> {
        let now = self.add_and_write_tree()?;
        self.git("read-tree").args(["-m", "-u", &now.to_string(), &tree.to_string()]).stdout().map(drop)
    }

    pub(in crate::git) fn git(&self, name: &str) -> GitCommand {
        self.with_private_index(self.repository.change(name)).env("GIT_INDEX_FILE", &self.file.path)
    }

    pub(in crate::git) fn write_tree(&self) -> Result<Oid, GitError> {
        id_of("write-tree", &self.git("write-tree").stdout()?)
    }
}

/// Checks a path that is about to be removed. git checks only the paths that it writes.
fn require_inner(path: &[u8]) -> Result<(), GitError> {
    let is_inner = Path::new(OsStr::from_bytes(path))
        .components()
        .all(|part| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git")));
    let what =
        || format!("a path that leads out of the worktree: {}", visible(&String::from_utf8_lossy(path)));
    if is_inner {
        Ok(())
    } else {
        Err(GitError::UnexpectedOutput { command: "diff-tree".into(), what: what() })
    }
}

/// Whether one of the parent folders of a path is a link.
fn is_behind_a_link(top: &Path, path: &Path) -> bool {
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders
        .into_iter()
        .any(|folder| top.join(folder).symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// Records `mode SP id TAB path NUL` for `git update-index`; mode 0 removes the entry.
pub(in crate::git) fn index_info(changes: &[TreeChange], format: ObjectFormat) -> Vec<u8> {
    let nothing = "0".repeat(format.hex_len());
    let mut info = Vec::new();
    for change in changes {
        let (mode, id) =
            change.after.map_or_else(|| (0, nothing.clone()), |(mode, id)| (mode, id.to_string()));
        info.extend(format!("{mode:06o} {id}\t").bytes());
        info.extend(&change.path);
        info.push(0);
    }
    info
}
