//! The worktrees of a repository, as git registers them, and what is done in one that is ours.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    GitError, Head, RefMove, Repository, TreeChange,
    command::{checked, without_prefix},
    known_index::seen_by,
    register::RegisterSigns,
};
use crate::{
    message::visible,
    name::{BranchName, Oid},
    process::Occupants,
    safe_files,
};

/// A worktree that git knows of. It need not be there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its top.
    pub path: PathBuf,
    /// Its own git directory, if that is there.
    pub git_dir: Option<PathBuf>,
    /// The branch that is checked out, unless `HEAD` is detached.
    pub branch: Option<BranchName>,
    /// The commit that is checked out; `None` for a branch without commits.
    pub head: Option<Oid>,
    /// The reason that it was locked with, if it is.
    pub lock: Option<String>,
    /// Whether it is no worktree at all, but a bare repository in the place of the main one.
    pub is_bare: bool,
    /// Whether it appeared while a child process ran, and this process did not make it. The child may have made it, so
    /// it has no lock of ours, whatever it is locked with.
    pub is_strange: bool,
}

/// Something in a worktree that no commit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedPath {
    /// The path, as bytes of a file name; a folder of which nothing is tracked ends in a slash.
    pub path: Vec<u8>,
    /// Whether git does not know the path at all.
    pub is_untracked: bool,
    /// Whether it is something in a submodule that is not committed there.
    pub is_inside_submodule: bool,
}

impl UncommittedPath {
    /// The path for people, with nothing in it that a terminal obeys.
    #[must_use]
    pub fn shown(&self) -> String {
        visible(&String::from_utf8_lossy(&self.path))
    }
}

/// What is to be checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout<'a> {
    /// A commit, on no branch.
    Commit(Oid),
    /// A branch. `HEAD` is put on it last.
    Branch(&'a BranchName),
}

/// How long to wait until git can list worktrees again.
const PATIENCE: Duration = Duration::from_secs(5);
/// A `git worktree add` that lives writes its files within this time, or is seen among the processes.
const HALF_MADE: Duration = Duration::from_secs(2);

impl Repository {
    /// All worktrees, the main one first.
    pub fn list_worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let mut found = self.list_registered()?;
        for worktree in found.iter_mut().skip(1) {
            if worktree.git_dir.as_deref().is_some_and(|home| self.is_strange_home(home)) {
                (worktree.is_strange, worktree.lock) = (true, None);
            }
        }
        Ok(found)
    }

    fn list_registered(&self) -> Result<Vec<Worktree>, GitError> {
        let signs = RegisterSigns::of(self);
        if let Some(known) = self.recall_worktrees(&signs)? {
            return Ok(known);
        }
        let ask = || self.git("worktree").args(["list", "--porcelain", "-z"]).stdout();
        let mut printed = ask();
        // git fails while another one is half-way through adding a worktree. On a busy machine that can take a while.
        let end = Instant::now() + PATIENCE;
        while printed.is_err() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
            self.remove_half_made_worktrees();
            printed = ask();
        }
        let homes = self.worktree_homes();
        let mut found = parse_list(&printed?)?;
        if let Some(main) = found.first_mut() {
            main.git_dir = Some(self.common_dir.clone());
        }
        for worktree in found.iter_mut().skip(1) {
            worktree.git_dir = homes.get(&worktree.path).cloned();
        }
        self.remember_worktrees(signs, &found);
        Ok(found)
    }

    /// Removes the git directories of worktrees that a killed `git worktree add` left half made: without a link to the
    /// repository and without an index there is nothing in them, and git lists no worktree as long as they are there.
    fn remove_half_made_worktrees(&self) {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        for home in entries.map(|entry| entry.path()) {
            let is_linked = fs::metadata(home.join("commondir")).is_ok_and(|file| file.len() > 0);
            let is_filled = home.join("index").symlink_metadata().is_ok();
            let age = home.symlink_metadata().and_then(|folder| folder.modified()).map(|time| time.elapsed());
            let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age >= HALF_MADE));
            let is_abandoned = || Occupants::has_other_git(&[&self.git_dir, &self.common_dir]) == Some(false);
            if !is_linked && !is_filled && is_old && is_abandoned() {
                let _ = self.change_homes(|| safe_files::remove_all(&home));
            }
        }
    }

    /// Each linked worktree's top with its git directory, as the repository itself has it. What stands in a worktree
    /// is not asked: whoever works there can change it. Of two that lead to one place the one that is known counts.
    fn worktree_homes(&self) -> HashMap<PathBuf, PathBuf> {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let mut homes: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        homes.sort_by_cached_key(|home| (!self.is_strange_home(home), home.clone()));
        homes.into_iter().filter_map(|home| Some((top_of_home(&home)?, home))).collect()
    }

    /// Registers a worktree without files, with `HEAD` detached at `commit`, locked so that only we remove it.
    pub fn add_worktree(&self, path: &Path, commit: Oid, reason: &str) -> Result<(), GitError> {
        let command =
            self.change("worktree").args(["add", "--no-checkout", "--detach", "--lock", "--reason"]);
        let command = command.arg(reason).arg("--").arg(path).arg(commit.to_string());
        let command = command.writing_in(path.parent().unwrap_or(path));
        self.make_home(path, command).map(drop)
    }

    /// Takes a worktree whose folder is gone out of the register.
    pub fn forget_worktree(&self, path: &Path) -> Result<(), GitError> {
        let command = self.change("worktree").args(["remove", "--force", "--force", "--"]).arg(path);
        self.change_homes(|| command.stdout().map(drop))
    }

    /// Makes the register and the folders agree again after folders were moved.
    pub fn repair_worktrees(&self, paths: &[PathBuf]) -> Result<String, GitError> {
        let command = self.change("worktree").arg("repair").args(paths);
        // It writes the files that lead from worktrees to the repository, also of those that were not named.
        let known = self.worktree_homes().into_keys();
        let command =
            known.chain(paths.iter().cloned()).fold(command, |command, top| command.writing_in(&top));
        let ended = self.change_homes(|| command.finish())?;
        let said = [ended.stdout, ended.stderr].concat();
        Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
    }

    /// The repository as it is seen from one of its worktrees. git is told where it is: what stands there is not asked.
    #[must_use]
    pub fn linked(&self, worktree: &Worktree) -> Option<Self> {
        Some(Self {
            dir: worktree.path.clone(),
            git_dir: worktree.git_dir.clone()?,
            worktree: Some(worktree.path.clone()),
            head: Head { branch: worktree.branch.clone(), commit: worktree.head },
            is_pinned: true,
            // Its own directory is made anew where a lane is, so the one that all share is what counts.
            homes: self.homes.iter().take(1).cloned().collect(),
            ..self.clone()
        })
    }

    /// Checks something out, and throws away what stands in its way.
    pub fn check_out(
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
            // Where the branch is by then, only git knows. What lies there is compared with it when it is taken in.
            Checkout::Branch(_) => None,
        };
        self.write_checkout(commit, |index| index.of(command.arg("--")).stdout().map(drop))
    }

    /// Brings the branch that is checked out here, the index and tracked files to `commit`, whatever they were. The branch is
    /// moved by its name: `git reset` moves whatever `HEAD` leads to, and anybody can write that.
    pub fn reset_hard(&self, branch: &BranchName, commit: Oid) -> Result<(), GitError> {
        let name = branch.to_ref();
        let old = self.find_ref(&name)?;
        if old != Some(commit) {
            self.move_refs(&[RefMove { name: &name, new: Some(commit), old }], "arborist: begun anew")?;
        }
        let command = self.change("read-tree").args(["--reset", "-u", &commit.to_string()]);
        self.write_index(|index| index.of(command).stdout().map(drop))
    }

    /// Puts `HEAD` on a branch whose commit is checked out.
    pub fn attach(&self, branch: &BranchName) -> Result<(), GitError> {
        let command = self.change("symbolic-ref").args(["-m", "arborist: begin", "HEAD"]);
        command.arg(branch.to_ref()).stdout().map(drop)
    }

    /// Brings these paths to what `commit` has there, in index and files. git looks at no other file.
    pub fn bring_paths(
        &self,
        commit: Oid,
        changes: &[TreeChange],
        env: &[(&str, &str)],
    ) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let paths = changes.iter().flat_map(|change| [change.path.as_slice(), b"\0"]);
        let command = self.change("restore").args(["--quiet", "--staged", "--worktree", "--source"]);
        let command = command.arg(commit.to_string()).args(["--ignore-skip-worktree-bits"]);
        let command = command.args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
        let command = env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let command = command.env("GIT_LITERAL_PATHSPECS", "1");
        let paths: Vec<u8> = paths.flatten().copied().collect();
        self.write_checkout(None, |index| {
            checked("restore", index.of(command).finish_with(&paths)?).map(drop)
        })
    }

    /// The branch that `HEAD` is on now, unless it is detached.
    pub fn find_head_branch(&self) -> Result<Option<BranchName>, GitError> {
        if let Some(head) = self.glance_at_head(&self.git_dir) {
            return Ok(head.branch);
        }
        let printed = self.git("symbolic-ref").args(["--quiet", "HEAD"]).answer()?.unwrap_or_default();
        let name = String::from_utf8_lossy(&printed);
        Ok(name.trim_end().strip_prefix("refs/heads/").and_then(|name| name.parse().ok()))
    }

    /// Brings files and index from one tree to another. What is changed, staged or untracked stays as it is; where it
    /// stands in the way, git's reason is returned and nothing is changed.
    pub fn bring_to(
        &self,
        (from, to): (Oid, Oid),
        settings: &[&str],
    ) -> Result<Result<(), String>, GitError> {
        let command = self.change_with("read-tree", settings).args(["-m", "-u"]);
        let command = command.args([from.to_string(), to.to_string()]);
        let ended = self.write_index(|index| index.of(command).finish())?;
        Ok(if ended.status.success() { Ok(()) } else { Err(without_prefix(&ended.complaint())) })
    }

    /// The paths whose entries in the index differ from `tree`.
    pub fn staged_beside(&self, tree: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("diff-index").args(["--cached", "--name-only", "-z", "--no-renames"]);
        Ok(names_of(&command.arg(tree.to_string()).stdout()?))
    }

    /// The paths that `new` has and `old` has not.
    pub fn added(&self, old: Oid, new: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let changes = self.changes(self.tree_of(old)?, self.tree_of(new)?)?;
        Ok(changes.into_iter().filter(|change| change.before.is_none()).map(|change| change.path).collect())
    }

    /// What no commit holds, ignored files aside.
    pub fn changed_paths(&self) -> Result<Vec<UncommittedPath>, GitError> {
        self.refuse_special()?;
        let view = self.find_view()?;
        let command = seen_by(view.as_ref(), self.git("status"));
        let command = command.args(["--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames"]);
        let status = command.finish_later();
        let hidden = self.start_hidden_in(view.as_ref());
        let mut changed_paths = parse_status(&checked("status", status.finish()?)?);
        changed_paths.extend(self.hidden_dirt(&hidden.finish(self.top())?)?);
        for path in self.dirty_submodules(None)? {
            // One whose commit was moved is among them already.
            changed_paths.retain(|changed_paths| changed_paths.path != path);
            changed_paths.push(UncommittedPath { path, is_untracked: false, is_inside_submodule: true });
        }
        Ok(changed_paths)
    }

    /// Removes what git does not know. Ignored files stay.
    pub fn remove_untracked(&self) -> Result<(), GitError> {
        self.change("clean").args(["-ffdq", "--", ":/"]).stdout().map(drop)
    }

    /// Removes ignored files but those that match one of `kept`.
    pub fn remove_ignored(&self, kept: &[String]) -> Result<(), GitError> {
        let kept = kept.iter().flat_map(|pattern| ["-e", pattern]);
        self.change("clean").args(["-ffdxq"]).args(kept).args(["--", ":/"]).stdout().map(drop)
    }

    /// What git does not know and one of `patterns` matches, whether it is ignored or not.
    pub fn find_untracked(&self, patterns: &[String]) -> Result<Vec<PathBuf>, GitError> {
        let patterns = patterns.iter().map(|pattern| format!("--exclude={pattern}"));
        let command =
            self.git("ls-files").args(["-z", "--others", "--ignored", "--directory", "--full-name"]);
        Ok(paths_of(&command.args(patterns).arg("--").arg(":/").stdout()?))
    }

    /// Whatever is not tracked, ignored or not. A folder in which nothing is tracked stands for all that is in it.
    pub fn list_untracked(&self) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--directory", "--full-name", "--", ":/"]);
        Ok(paths_of(&command.stdout()?))
    }

    /// Parts paths into those that git ignores in this worktree, and the others.
    pub fn split_ignored(&self, paths: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Vec<PathBuf>), GitError> {
        let input =
            paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
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

/// The top of the worktree whose git directory this is.
pub(super) fn top_of_home(git_dir: &Path) -> Option<PathBuf> {
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

fn names_of(printed: &[u8]) -> Vec<Vec<u8>> {
    printed.split(|b| *b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

fn paths_of(printed: &[u8]) -> Vec<PathBuf> {
    names_of(printed).into_iter().map(|name| PathBuf::from(OsString::from_vec(name))).collect()
}

/// Records of attributes `name` or `name SP value`, each ended by NUL; an empty one ends a record.
fn parse_list(printed: &[u8]) -> Result<Vec<Worktree>, GitError> {
    let mut found: Vec<Worktree> = Vec::new();
    for line in printed.split(|b| *b == 0).filter(|line| !line.is_empty()) {
        let (name, value) = match line.iter().position(|b| *b == b' ') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        if name == b"worktree" {
            let path = PathBuf::from(OsStr::from_bytes(value));
            found.push(Worktree {
                path,
                git_dir: None,
                branch: None,
                head: None,
                lock: None,
                is_bare: false,
                is_strange: false,
            });
            continue;
        }
        let Some(worktree) = found.last_mut() else {
            let what = String::from_utf8_lossy(line).into_owned();
            return Err(GitError::Strange { command: "worktree".into(), what });
        };
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"HEAD" => worktree.head = Oid::from_hex(value).filter(|_| value.iter().any(|b| *b != b'0')),
            b"branch" => {
                worktree.branch = text().strip_prefix("refs/heads/").and_then(|name| name.parse().ok());
            }
            b"bare" => worktree.is_bare = true,
            b"locked" => worktree.lock = Some(text()),
            _ => {}
        }
    }
    Ok(found)
}

/// Records of `status --porcelain=v2`; the path is the last of so many fields.
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
    fn a_list_is_read_with_any_path_and_any_reason() {
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
    fn what_is_dirty_is_told_with_spaces_in_its_name() {
        let printed = b"1 .M N... 100644 100644 100644 a b my file\0? other dir/\0! ignored\0";
        let found = parse_status(printed);
        let shown: Vec<(String, bool)> =
            found.iter().map(|changed_paths| (changed_paths.shown(), changed_paths.is_untracked)).collect();
        assert_eq!(shown, [("my file".to_owned(), false), ("other dir/".to_owned(), true)]);
    }
}
