//! The worktree as a tree, without touching the user's index: a copy of it takes in what lies there.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    os::unix::fs::MetadataExt,
    path::{Component, Path},
    sync::Arc,
};

use super::{
    GitCommand, GitError, IndexFile, Repository, command::checked, known_index::seen_by, scan::Scan,
    special::list_special_in, write::id_of,
};
use crate::{
    message::visible,
    name::{ObjectFormat, Oid},
    process::ProcessError,
    safe_files,
};

/// An index of our own.
#[derive(Debug)]
pub struct PrivateIndex<'a> {
    pub(super) repository: &'a Repository,
    pub(super) file: IndexFile,
}

/// What lay in a worktree.
#[derive(Debug)]
pub struct Stock {
    /// As a tree.
    pub tree: Oid,
    /// The index that has taken it in.
    pub index: IndexFile,
    /// Repositories in it without a commit: git cannot take in anything of them.
    pub left_out: Vec<Vec<u8>>,
    /// Files that git cannot take in.
    pub unreadable: Vec<Unreadable>,
}

impl Stock {
    /// The same, for whoever needs all of it.
    pub fn require_readable(self) -> Result<Self, GitError> {
        match self.unreadable.first() {
            Some(found) => Err(GitError::Failed { command: "add".into(), complaint: found.why.clone() }),
            None => Ok(self),
        }
    }
}

/// A file that git cannot take in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its path, from the top.
    pub path: Vec<u8>,
    /// Why, in git's words.
    pub why: String,
}

/// So many files may be unreadable before it is given up: git is run once for each.
const MOST_UNREADABLE: usize = 20;

/// So many queues and devices are named to git: all of them must fit into its arguments.
const MOST_SPECIAL: usize = 200;

/// What tells one writing of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    written: (i64, i64),
    size: u64,
}

impl Stamp {
    pub(super) fn of(file: &Path) -> Option<Self> {
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
    /// The path for people, with nothing in it that a terminal obeys.
    #[must_use]
    pub fn shown(&self) -> String {
        visible(&String::from_utf8_lossy(&self.path))
    }

    /// Whether it is a repository inside the repository.
    #[must_use]
    pub fn is_gitlink(&self) -> bool {
        is_gitlink(self.after)
    }

    /// Whether it was one.
    #[must_use]
    pub fn was_gitlink(&self) -> bool {
        is_gitlink(self.before)
    }

    /// Whether it is one, or was.
    #[must_use]
    pub fn concerns_gitlink(&self) -> bool {
        self.is_gitlink() || self.was_gitlink()
    }

    /// Whether the file is called so, in whichever folder.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.path.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
    }
}

fn is_gitlink(side: Option<(u32, Oid)>) -> bool {
    side.is_some_and(|(mode, _)| mode == 0o160_000)
}

impl Repository {
    /// Whether worktree and index are as `HEAD` says, ignored files aside.
    pub fn is_clean(&self) -> Result<bool, GitError> {
        let view = self.find_view()?;
        let hidden = self.start_hidden_in(view.as_ref());
        let is_clean = self.ask_status()?.is_clean;
        let hidden = hidden.finish(self.top())?;
        Ok(is_clean && self.hidden_dirt(&hidden)?.is_empty() && self.dirty_submodules(None)?.is_empty())
    }

    /// What git says of the branch, the index and the worktree, for comparing.
    pub fn status(&self) -> Result<Vec<u8>, GitError> {
        self.refuse_special()?;
        let view = self.find_view()?;
        let status = seen_by(view.as_ref(), self.git("status"));
        let status = status.args(["--porcelain=v2", "--branch", "-z", "--untracked-files=all"]);
        status.args(["--no-renames", "--no-ahead-behind"]).stdout()
    }

    /// What lies in the worktree now, ignored files aside.
    pub fn snapshot(&self) -> Result<Oid, GitError> {
        self.private_index("snapshot")?.take_in()
    }

    /// The same with the index that holds it. Whether git has all of it is not asked: that is one look for each file, and
    /// most of them are known. [`Repository::require_proven`] is for those that are new.
    /// Files that git cannot take in are left as the index has them, and given.
    pub fn take_snapshot(&self) -> Result<Stock, GitError> {
        let index = self.private_index("snapshot")?;
        let (left_out, unreadable) = index.add_readable()?;
        let tree = match self.write_tree_of(&index.file.path) {
            Some(tree) => tree,
            None => id_of("write-tree", &index.git("write-tree").arg("--missing-ok").stdout()?)?,
        };
        Ok(Stock { tree, index: index.file, left_out, unreadable })
    }

    /// What is staged.
    pub fn staged(&self) -> Result<Oid, GitError> {
        self.private_index("staged")?.write_tree()
    }

    /// Makes these paths of the worktree what they are in `tree`. No hook runs, and the user's index is not touched.
    pub fn put_back(&self, tree: Oid, paths: &[TreeChange]) -> Result<(), GitError> {
        let index = self.private_index("back")?;
        index.git("read-tree").arg(tree.to_string()).stdout()?;
        let listed = index.git("ls-files").args(["-z", "--cached"]).stdout()?;
        let known: HashSet<&[u8]> = listed.split(|b| *b == 0).collect();
        let (there, gone): (Vec<&TreeChange>, Vec<&TreeChange>) =
            paths.iter().partition(|change| known.contains(change.path.as_slice()));
        for change in gone {
            require_inner(&change.path)?;
            let path = Path::new(OsStr::from_bytes(&change.path));
            // What a link leads to is not in the worktree, whatever was once tracked behind it.
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
        let names: Vec<u8> = there.iter().flat_map(|change| change.path.iter().copied().chain([0])).collect();
        let command = index.git("checkout-index").args(["-f", "-q", "-z", "--stdin"]);
        checked("checkout-index", command.finish_with(&names)?).map(drop)
    }

    /// Brings these paths of the user's own index to what `HEAD` holds, and leaves everything else in it alone.
    pub fn stage(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        self.stage_as_in("HEAD", changes)
    }

    /// The same, unless another git holds the index at this moment.
    pub fn stage_at_once(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        self.stage_by(self.change("reset").at_once(), "HEAD", changes)
    }

    /// The same with what another commit holds.
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
        let paths = changes.iter().flat_map(|change| [change.path.as_slice(), b"\0"]);
        let command = reset.args(["-q", "--pathspec-from-file=-", "--pathspec-file-nul", commit]);
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        checked("reset", command.finish_with(&paths.flatten().copied().collect::<Vec<u8>>())?).map(drop)
    }

    /// The paths of the user's own index that differ from `commit`.
    pub fn staged_since(&self, commit: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("diff-index").args(["--cached", "--name-only", "-z", "--no-renames"]);
        let paths = command.arg(commit.to_string()).stdout()?;
        Ok(paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Makes the user's own index what `tree` holds. Files stay as they are.
    pub fn stage_tree(&self, tree: Oid) -> Result<(), GitError> {
        let command = self.change("read-tree").arg(tree.to_string());
        self.write_index(|index| index.of(command).stdout().map(drop))
    }

    /// Whether a file should be in the checkout and is not.
    fn is_missing(&self, change: &TreeChange) -> bool {
        let path = self.top().join(OsStr::from_bytes(&change.path));
        change.after.is_some() && path.symlink_metadata().is_err()
    }

    /// Whether all of these files should be in the checkout and none is.
    #[must_use]
    pub fn are_missing(&self, changes: &[TreeChange]) -> bool {
        !changes.is_empty() && changes.iter().all(|change| self.is_missing(change))
    }

    /// Brings these paths of the user's own index to what `HEAD` holds, and writes those files that are not in the checkout.
    pub fn bring(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        if self.add_plainly(changes) {
            return Ok(());
        }
        if !self.are_missing(changes) {
            self.stage(changes)?;
            return self.write_missing(changes);
        }
        let paths = changes.iter().flat_map(|change| [change.path.as_slice(), b"\0"]);
        let command =
            self.change("checkout").args(["-q", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD"]);
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        let paths: Vec<u8> = paths.flatten().copied().collect();
        self.write_index(|index| checked("checkout", index.of(command).finish_with(&paths)?).map(drop))
    }

    /// Writes those of these files that are not in the checkout, as the index has them.
    pub fn write_missing(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        let missing: Vec<&TreeChange> = changes.iter().filter(|change| self.is_missing(change)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let paths = missing.iter().flat_map(|change| [change.path.as_slice(), b"\0"]);
        let command = self.change("checkout-index").args(["-q", "-u", "-z", "--stdin"]);
        let paths: Vec<u8> = paths.flatten().copied().collect();
        self.write_index(|index| checked("checkout-index", index.of(command).finish_with(&paths)?).map(drop))
    }
}

impl Repository {
    /// Enters these changes into the user's own index as they are, and leaves everything else in it alone.
    pub fn enter(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.write_index(|index| {
            let command = index.of(self.change("update-index")).args(["-z", "--index-info"]);
            checked("update-index", command.finish_with(&index_info(changes, self.format))?)?;
            index.of(self.change("update-index")).args(["-q", "--refresh"]).finish().map(drop)
        })
    }
}

impl PrivateIndex<'_> {
    /// Takes in what lies in the worktree now, ignored files aside, and gives it as a tree.
    pub fn take_in(&self) -> Result<Oid, GitError> {
        self.add_all()?;
        self.write_tree()
    }

    /// Files that a sparse checkout leaves out and files that git is told not to look at are taken in like all others.
    /// Gives the repositories that had to be left out.
    fn add_all(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.add_all_but(&[], None)
    }

    fn add_all_but(&self, unreadable: &[Vec<u8>], scan: Option<Arc<Scan>>) -> Result<Vec<Vec<u8>>, GitError> {
        self.refuse_unreadable(unreadable, scan)?;
        let hidden = self.start_hidden();
        let left_out = self.add_what_can_be(unreadable)?;
        let hidden = hidden.finish(self.repository.top())?;
        if hidden.is_empty() {
            return Ok(left_out);
        }
        self.reveal(&hidden)?;
        self.add_what_can_be(unreadable)
    }

    /// The same without files that git cannot take in: without permission to read them, or whose content is not in the
    /// encoding that an attribute names. git gives up at the first one, and names it.
    fn add_readable(&self) -> Result<(Vec<Vec<u8>>, Vec<Unreadable>), GitError> {
        let mut unreadable: Vec<Unreadable> = Vec::new();
        loop {
            let paths: Vec<Vec<u8>> = unreadable.iter().map(|found| found.path.clone()).collect();
            match self.add_all_but(&paths, None) {
                Err(GitError::Failed { command, complaint }) => {
                    let named = self.find_named(&complaint, &paths).filter(|_| paths.len() < MOST_UNREADABLE);
                    let Some(path) = named else { return Err(GitError::Failed { command, complaint }) };
                    let why = complaint.lines().find(|line| !line.starts_with("hint:")).unwrap_or_default();
                    unreadable.push(Unreadable { path, why: visible(why) });
                }
                Err(GitError::Huge { path }) if paths.len() < MOST_UNREADABLE => {
                    let why = GitError::Huge { path: path.clone() }.to_string();
                    unreadable
                        .push(Unreadable { path: path.into_os_string().into_vec(), why: visible(&why) });
                }
                added => return added.map(|left_out| (left_out, unreadable)),
            }
        }
    }

    /// The file in the worktree that git complains of, unless it is among those that are known.
    fn find_named(&self, complaint: &str, known: &[Vec<u8>]) -> Option<Vec<u8>> {
        let is_file = |path: &str| {
            let path = Path::new(path);
            let is_inner = path.components().all(|part| matches!(part, Component::Normal(_)));
            is_inner && self.repository.top().join(path).symlink_metadata().is_ok_and(|found| !found.is_dir())
        };
        let quoted = complaint.split(['\'', '"']).filter(|word| !word.is_empty());
        let mut quoted = quoted.filter(|word| is_file(word)).map(|word| word.as_bytes().to_vec());
        quoted.find(|path| !known.contains(path))
    }

    /// The same for one who looks again and again: git writes the index only where something changed, so as long as
    /// that is the same file, the tree is the same. Tracked files that have become queues or devices are left as they were:
    /// whoever ends the attempt tells of them.
    pub fn take_in_again(&self, seen: &mut Option<(Stamp, Oid)>) -> Result<Oid, GitError> {
        // One look is enough: it only keeps git from waiting, and the agent is at work all the time.
        let scan = self.repository.scan();
        let special = scan.as_deref().map(list_special_in).unwrap_or_default();
        let special = special.into_iter().take(MOST_SPECIAL);
        let mut left_out: Vec<Vec<u8>> = special.map(|path| path.into_os_string().into_vec()).collect();
        loop {
            match self.add_all_but(&left_out, scan.clone()) {
                Err(GitError::Huge { path }) if left_out.len() < MOST_SPECIAL => {
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

    /// Makes the worktree what `tree` holds. What is ignored stays.
    pub fn write_out(&self, tree: Oid) -> Result<(), GitError> {
        let now = self.take_in()?;
        self.git("read-tree").args(["-m", "-u", &now.to_string(), &tree.to_string()]).stdout().map(drop)
    }

    pub(super) fn git(&self, name: &str) -> GitCommand {
        self.apart(self.repository.change(name)).env("GIT_INDEX_FILE", &self.file.path)
    }

    pub(super) fn write_tree(&self) -> Result<Oid, GitError> {
        id_of("write-tree", &self.git("write-tree").stdout()?)
    }
}

/// git itself looks at the paths that it writes; what is only removed was not looked at by anybody.
fn require_inner(path: &[u8]) -> Result<(), GitError> {
    let is_inner = Path::new(OsStr::from_bytes(path))
        .components()
        .all(|part| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git")));
    let what = || format!("a path that leads elsewhere: {}", visible(&String::from_utf8_lossy(path)));
    if is_inner { Ok(()) } else { Err(GitError::Strange { command: "diff-tree".into(), what: what() }) }
}

/// Whether one of the folders that lead to a path is a link.
fn is_behind_a_link(top: &Path, path: &Path) -> bool {
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders
        .into_iter()
        .any(|folder| top.join(folder).symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// Records `mode SP id TAB path NUL`; mode 0 removes.
pub(super) fn index_info(changes: &[TreeChange], format: ObjectFormat) -> Vec<u8> {
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
