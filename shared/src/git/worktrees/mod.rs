//! Lists, adds and repairs worktrees, and changes what is checked out in ours.

pub(super) mod fast_forward;
pub(super) mod interrupted_updates;
pub(super) mod operations;
pub(super) mod private_git;
pub(super) mod submodules;
pub(super) mod verified_checkout;
pub(super) mod worktree_cache;
pub(super) mod worktree_folders;
pub(super) mod worktree_git_dirs;
pub(super) mod worktree_head;
pub(super) mod worktree_link;

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    git::{
        GitError, Head, RefMove, Repository, TreeChange,
        command::{checked, nul_ended, paths_of, without_prefix},
        index::known_index::with_index,
        worktrees::worktree_cache::WorktreeStamps,
    },
    message::visible,
    name::{BranchName, Oid},
    process::{Occupants, add_checkout},
    safe_files,
};

/// A worktree that git has registered. Its folder may be gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worktree {
    /// Its top.
    pub path: PathBuf,
    /// Its own git directory, if it exists.
    pub git_dir: Option<PathBuf>,
    /// The branch that is checked out, unless `HEAD` is detached.
    pub branch: Option<BranchName>,
    /// The commit that is checked out; `None` for a branch without commits.
    pub head: Option<Oid>,
    /// The reason with which it is locked, if it is.
    pub lock: Option<String>,
    /// Whether it is not a worktree but the main repository, which is bare.
    pub is_bare: bool,
    /// Whether it appeared while a child process ran and was not made by this process. The child may have made it, so
    /// its lock does not make it one of ours.
    pub is_unknown: bool,
}

/// A path of a worktree that is not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedPath {
    /// The path, as bytes of a file name; a folder without tracked files ends in a slash.
    pub path: Vec<u8>,
    /// Whether it is untracked.
    pub is_untracked: bool,
    /// Whether it is an uncommitted change inside a submodule.
    pub is_inside_submodule: bool,
}

impl UncommittedPath {
    /// The path for display, without terminal control characters.
    #[must_use]
    pub fn shown(&self) -> String {
        visible(&String::from_utf8_lossy(&self.path))
    }
}

/// What to check out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout<'a> {
    /// A commit, with a detached `HEAD`.
    Commit(Oid),
    /// A branch. `HEAD` is moved to it last.
    Branch(&'a BranchName),
}

/// How long to wait until git can list worktrees again.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// A running `git worktree add` writes its files within this time, or is found in the list of processes.
const ADD_TIMEOUT: Duration = Duration::from_secs(2);

impl Repository {
    /// All worktrees, the main one first.
    pub fn list_worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let mut found = self.list_registered()?;
        for worktree in found.iter_mut().skip(1) {
            if worktree.git_dir.as_deref().is_some_and(|git_dir| self.is_unknown_git_dir(git_dir)) {
                (worktree.is_unknown, worktree.lock) = (true, None);
            }
        }
        Ok(found)
    }

    fn list_registered(&self) -> Result<Vec<Worktree>, GitError> {
        let signs = WorktreeStamps::of(self);
        if let Some(known) = self.recall_worktrees(&signs)? {
            return Ok(known);
        }
        let ask = || self.git("worktree").args(["list", "--porcelain", "-z"]).stdout();
        let mut printed = ask();
        // git fails while another one is adding a worktree, which can take a while on a busy machine.
        let end = Instant::now() + LIST_TIMEOUT;
        while printed.is_err() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
            self.remove_half_made_worktrees();
            printed = ask();
        }
        let git_dirs = self.worktree_git_dirs();
        let mut found = parse_list(&printed?)?;
        if let Some(main) = found.first_mut() {
            main.git_dir = Some(self.common_dir.clone());
        }
        for worktree in found.iter_mut().skip(1) {
            worktree.git_dir = git_dirs.get(&worktree.path).cloned();
        }
        self.remember_worktrees(signs, &found);
        Ok(found)
    }

    /// Removes the git directories of worktrees that a killed `git worktree add` left half made. Without `commondir`
    /// and index they contain nothing, and while they exist git cannot list worktrees.
    fn remove_half_made_worktrees(&self) {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        for git_dir in entries.map(|entry| entry.path()) {
            let is_linked = fs::metadata(git_dir.join("commondir")).is_ok_and(|file| file.len() > 0);
            let is_filled = git_dir.join("index").symlink_metadata().is_ok();
            let age =
                git_dir.symlink_metadata().and_then(|folder| folder.modified()).map(|time| time.elapsed());
            let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age >= ADD_TIMEOUT));
            let is_abandoned = || Occupants::has_other_git(&[&self.git_dir, &self.common_dir]) == Some(false);
            if !is_linked && !is_filled && is_old && is_abandoned() {
                let _ = self.change_git_dirs(|| safe_files::remove_all(&git_dir));
            }
        }
    }

    /// The top of each linked worktree with its git directory, read from the repository. Files in the worktree are not
    /// read, because an agent can change them. If two git directories point to the same worktree, the known one counts.
    fn worktree_git_dirs(&self) -> HashMap<PathBuf, PathBuf> {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let mut git_dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        git_dirs.sort_by_cached_key(|git_dir| (!self.is_unknown_git_dir(git_dir), git_dir.clone()));
        git_dirs.into_iter().filter_map(|git_dir| Some((top_of_git_dir(&git_dir)?, git_dir))).collect()
    }

    /// Adds a worktree without files, with `HEAD` detached at `commit`, and locks it so that only we remove it.
    pub fn add_worktree(&self, path: &Path, commit: Oid, reason: &str) -> Result<(), GitError> {
        let command =
            self.change("worktree").args(["add", "--no-checkout", "--detach", "--lock", "--reason"]);
        let command = command.arg(reason).arg("--").arg(path).arg(commit.to_string());
        let command = command.writing_in(path.parent().unwrap_or(path));
        self.add_git_dir(path, command).map(drop)
    }

    /// Removes the entry of a worktree whose folder is gone.
    pub fn forget_worktree(&self, path: &Path) -> Result<(), GitError> {
        let command = self.change("worktree").args(["remove", "--force", "--force", "--"]).arg(path);
        self.change_git_dirs(|| command.stdout().map(drop))
    }

    /// Repairs the links between repository and worktrees after folders were moved.
    pub fn repair_worktrees(&self, paths: &[PathBuf]) -> Result<String, GitError> {
        let command = self.change("worktree").arg("repair").args(paths);
        // git writes the `.git` files of worktrees, including those that were not named.
        let known = self.worktree_git_dirs().into_keys();
        let command =
            known.chain(paths.iter().cloned()).fold(command, |command, top| command.writing_in(&top));
        let ended = self.change_git_dirs(|| command.finish())?;
        let output = [ended.stdout, ended.stderr].concat();
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// The repository as seen from one of its worktrees. Its location is passed to git, not read from the worktree.
    #[must_use]
    pub fn linked(&self, worktree: &Worktree) -> Option<Self> {
        add_checkout(&worktree.path);
        Some(Self {
            dir: worktree.path.clone(),
            git_dir: worktree.git_dir.clone()?,
            worktree: Some(worktree.path.clone()),
            head: Head { branch: worktree.branch.clone(), commit: worktree.head },
            ignores_index_env: true,
            // A lane's git directory is replaced when the lane is made again, so only the common directory must be the
            // same.
            git_dir_ids: self.git_dir_ids.iter().take(1).cloned().collect(),
            ..self.clone()
        })
    }

    /// Checks something out, and discards everything that is in the way.
    pub fn check_out(
        &self,
        wanted: Checkout<'_>,
        settings: &[&str],
        env: &[(&str, &str)],
    ) -> Result<(), GitError> {
        self.write_in_open_folders(|| self.try_check_out(wanted, settings, env))
    }

    fn try_check_out(
        &self,
        wanted: Checkout<'_>,
        settings: &[&str],
        env: &[(&str, &str)],
    ) -> Result<(), GitError> {
        let command = self.change_with("checkout", settings).args(["--quiet", "--force"]);
        let command = env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let command = match wanted {
            Checkout::Commit(commit) => command.args(["--detach", &commit.to_string()]),
            Checkout::Branch(branch) => {
                command.args(["--no-guess", "--ignore-other-worktrees", branch.as_str()])
            }
        };
        let commit = match wanted {
            Checkout::Commit(commit) => Some(commit),
            // Only git knows where the branch is by then. The files are compared with it when they are added.
            Checkout::Branch(_) => None,
        };
        self.write_checkout(commit, |index| index.of(command.arg("--")).stdout().map(drop))
    }

    /// Sets the branch that is checked out here, the index and tracked files to `commit`. The branch is moved by name:
    /// `git reset` moves whatever `HEAD` points to, and every process can write that.
    pub fn reset_hard(&self, branch: &BranchName, commit: Oid) -> Result<(), GitError> {
        let name = branch.to_ref();
        let old = self.find_ref(&name)?;
        if old != Some(commit) {
            self.move_refs(&[RefMove { name: &name, new: Some(commit), old }], "arborist: started over")?;
        }
        self.write_in_open_folders(|| {
            let command = self.change("read-tree").args(["--reset", "-u", &commit.to_string()]);
            self.write_index(|index| index.of(command).stdout().map(drop))
        })
    }

    /// Runs a command that writes or removes files of one of our worktrees. If it fails, and a child process left folders
    /// without permission there, as some caches are, they are opened, and it runs once more.
    pub(in crate::git) fn write_in_open_folders(
        &self,
        write: impl Fn() -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        write().or_else(|error| match safe_files::allow_writing_below(self.top()) {
            true => write(),
            false => Err(error),
        })
    }

    /// Attaches `HEAD` to a branch whose commit is checked out.
    pub fn attach(&self, branch: &BranchName) -> Result<(), GitError> {
        let command = self.change("symbolic-ref").args(["-m", "arborist: begin", "HEAD"]);
        command.arg(branch.to_ref()).stdout().map(drop)
    }

    /// Sets these paths in index and files to their state in `commit`. git looks at no other file.
    pub fn restore_paths_from(
        &self,
        commit: Oid,
        changes: &[TreeChange],
        env: &[(&str, &str)],
    ) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let paths = nul_ended(changes.iter().map(|change| change.path.as_slice()));
        let command = self.change("restore").args(["--quiet", "--staged", "--worktree", "--source"]);
        let command = command.arg(commit.to_string()).args(["--ignore-skip-worktree-bits"]);
        let command = command.args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
        let command = env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        self.write_checkout(None, |index| index.of(command).stdout_with(&paths).map(drop))
    }

    /// The branch of `HEAD`, unless it is detached.
    pub fn find_head_branch(&self) -> Result<Option<BranchName>, GitError> {
        if let Some(head) = self.read_head_file(&self.git_dir) {
            return Ok(head.branch);
        }
        let printed = self.git("symbolic-ref").args(["--quiet", "HEAD"]).answer()?.unwrap_or_default();
        let name = String::from_utf8_lossy(&printed);
        Ok(BranchName::of_ref(name.trim_end()))
    }

    /// Updates files and index from one tree to another. Changed, staged and untracked files stay; if one is in the
    /// way, git's reason is returned and nothing is changed.
    pub fn update_to_tree(
        &self,
        from: Oid,
        to: Oid,
        settings: &[&str],
    ) -> Result<Result<(), String>, GitError> {
        let command = self.change_with("read-tree", settings).args(["-m", "-u"]);
        let command = command.args([from.to_string(), to.to_string()]);
        let ended = self.write_index(|index| index.of(command).finish())?;
        Ok(if ended.status.success() { Ok(()) } else { Err(without_prefix(&ended.complaint())) })
    }

    /// The paths that are in `new` and not in `old`.
    pub fn added(&self, old: Oid, new: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let changes = self.changes(self.tree_of(old)?, self.tree_of(new)?)?;
        Ok(changes.into_iter().filter(|change| change.before.is_none()).map(|change| change.path).collect())
    }

    /// All uncommitted paths, except for ignored ones.
    pub fn changed_paths(&self) -> Result<Vec<UncommittedPath>, GitError> {
        self.refuse_special()?;
        let view = self.find_trusted_view()?;
        let command = with_index(view.as_ref(), self.git("status"));
        let command = command.args(["--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames"]);
        let status = command.finish_in_background();
        let hidden = self.start_hidden_with(view.as_ref());
        let mut changed_paths = parse_status(&checked("status", status.finish()?)?);
        changed_paths.extend(self.changed_hidden_files(&hidden.finish(self.top())?)?);
        for path in self.dirty_submodules(None)? {
            // A submodule with another commit is already in the list.
            changed_paths.retain(|changed_paths| changed_paths.path != path);
            changed_paths.push(UncommittedPath { path, is_untracked: false, is_inside_submodule: true });
        }
        Ok(changed_paths)
    }

    /// The paths with conflicts that are not resolved, for display.
    pub fn unmerged_paths(&self) -> Result<Vec<String>, GitError> {
        let listed = self.git("ls-files").args(["--unmerged", "-z", "--", ":/"]).stdout()?;
        // Each version of a file has an entry: mode, id and stage, a tab, and the path.
        let path =
            |entry: &[u8]| Some(visible(&String::from_utf8_lossy(entry.splitn(2, |b| *b == b'\t').nth(1)?)));
        let mut paths: Vec<String> = listed.split(|b| *b == 0).filter_map(path).collect();
        paths.dedup();
        Ok(paths)
    }

    /// Removes untracked files. Ignored files stay.
    pub fn remove_untracked(&self) -> Result<(), GitError> {
        self.clean(&["-ffdq", "--", ":/"])
    }

    /// Removes ignored files, except for those that match one of `kept`.
    pub fn remove_ignored(&self, kept: &[String]) -> Result<(), GitError> {
        let kept = kept.iter().flat_map(|pattern| ["-e", pattern]);
        let options: Vec<&str> = ["-ffdxq"].into_iter().chain(kept).chain(["--", ":/"]).collect();
        self.clean(&options)
    }

    /// Runs `git clean` in one of our worktrees.
    pub fn clean(&self, options: &[&str]) -> Result<(), GitError> {
        self.write_in_open_folders(|| self.change("clean").args(options).stdout().map(drop))
    }

    /// Untracked paths that match one of `patterns`, ignored or not.
    pub fn find_untracked(&self, patterns: &[String]) -> Result<Vec<PathBuf>, GitError> {
        let patterns = patterns.iter().map(|pattern| format!("--exclude={pattern}"));
        let command =
            self.git("ls-files").args(["-z", "--others", "--ignored", "--directory", "--full-name"]);
        command.args(patterns).arg("--").arg(":/").paths()
    }

    /// All untracked paths, ignored or not. A folder without tracked files is one path.
    pub fn list_untracked(&self) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--directory", "--full-name", "--", ":/"]);
        command.paths()
    }

    /// The ignored files of this worktree that a merge of `branch` would overwrite. git does so without a word.
    pub fn find_overwritten_by(&self, branch: &BranchName) -> Result<Vec<PathBuf>, GitError> {
        let (Some(head), Some(tip)) = (self.head.commit, self.find_branch(branch)?) else {
            return Ok(Vec::new());
        };
        let changes = self.changes(self.tree_of(head)?, self.tree_of(tip)?)?;
        let added = changes.into_iter().filter(|change| change.before.is_none());
        let added = added.map(|change| PathBuf::from(OsString::from_vec(change.path)));
        let in_the_way: Vec<PathBuf> =
            added.filter(|path| self.top().join(path).symlink_metadata().is_ok()).collect();
        match in_the_way.is_empty() {
            true => Ok(in_the_way),
            false => Ok(self.split_ignored(in_the_way)?.0),
        }
    }

    /// Splits paths into those that git ignores in this worktree, and the others.
    pub fn split_ignored(&self, paths: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Vec<PathBuf>), GitError> {
        let input = nul_ended(paths.iter().map(|path| path.as_os_str().as_bytes()));
        let finished = self.git("check-ignore").args(["-z", "--stdin", "--no-index"]).finish_with(&input)?;
        let printed = match finished.status.code() {
            Some(1) => Vec::new(),
            _ => checked("check-ignore", finished)?,
        };
        let ignored = paths_of(&printed);
        Ok(paths
            .into_iter()
            .partition(|path| ignored.iter().any(|known| known.as_os_str() == path.as_os_str())))
    }
}

/// The top of the worktree with this git directory.
pub(in crate::git) fn top_of_git_dir(git_dir: &Path) -> Option<PathBuf> {
    let mut bytes = safe_files::read(&git_dir.join("gitdir")).ok()?;
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let file = plain_path(&git_dir.join(OsString::from_vec(bytes)));
    file.parent().map(Path::to_owned)
}

/// The path without `.` and `..`, whether it exists or not.
#[must_use]
pub fn plain_path(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// Parses records of attributes `name` or `name SP value`, each ended by NUL; an empty one ends a record.
fn parse_list(printed: &[u8]) -> Result<Vec<Worktree>, GitError> {
    let mut found: Vec<Worktree> = Vec::new();
    for line in printed.split(|b| *b == 0).filter(|line| !line.is_empty()) {
        let (name, value) = match line.iter().position(|b| *b == b' ') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        if name == b"worktree" {
            let path = PathBuf::from(OsStr::from_bytes(value));
            found.push(Worktree { path, ..Worktree::default() });
            continue;
        }
        let Some(worktree) = found.last_mut() else {
            let what = String::from_utf8_lossy(line).into_owned();
            return Err(GitError::unexpected("worktree", what));
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"HEAD" => worktree.head = Oid::from_hex(value).filter(|_| value.iter().any(|b| *b != b'0')),
            b"branch" => {
                worktree.branch = BranchName::of_ref(&text());
            }
            b"bare" => worktree.is_bare = true,
            b"locked" => worktree.lock = Some(text()),
            _ => {}
        }
    }
    Ok(found)
}

/// Parses records of `status --porcelain=v2`; the path is the last field.
fn parse_status(printed: &[u8]) -> Vec<UncommittedPath> {
    let records = printed.split(|b| *b == 0);
    let changed_paths = |record: &[u8]| {
        let fields = match record.first()? {
            b'1' => 9,
            b'u' => 11,
            b'?' => 2,
            _ => return None,
        };
        let words: Vec<&[u8]> = record.splitn(fields, |b| *b == b' ').collect();
        let path = words.get(fields - 1)?.to_vec();
        Some(UncommittedPath { path, is_untracked: record[0] == b'?', is_inside_submodule: false })
    };
    records.filter_map(changed_paths).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_list_is_parsed_with_any_path_and_lock_reason() {
        let id = "1".repeat(40);
        let printed = format!(
            "worktree /a b\0HEAD {id}\0branch refs/heads/x\0\0worktree /c\nd\0HEAD {}\0detached\0locked a b\0\0",
            "0".repeat(40)
        );
        let found = parse_list(printed.as_bytes()).unwrap();
        assert_eq!((found[0].path.to_str(), found[0].branch.as_ref().unwrap().as_str()), (Some("/a b"), "x"));
        assert_eq!((found[1].path.to_str(), found[1].head), (Some("/c\nd"), None));
        assert_eq!(found[1].lock.as_deref(), Some("a b"));
        assert!(parse_list(b"HEAD x\0").is_err());
    }

    #[test]
    fn the_status_output_is_parsed_with_spaces_in_paths() {
        let printed = b"1 .M N... 100644 100644 100644 a b my file\0? other dir/\0! ignored\0";
        let found = parse_status(printed);
        let shown: Vec<(String, bool)> =
            found.iter().map(|changed_paths| (changed_paths.shown(), changed_paths.is_untracked)).collect();
        assert_eq!(shown, [("my file".to_owned(), false), ("other dir/".to_owned(), true)]);
    }
}
