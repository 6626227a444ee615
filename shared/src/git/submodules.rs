//! Submodules of a worktree.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use super::{
    GitCommand, GitError, Repository, command::without_prefix, index_format::find_gitlinks, plain_path,
};
use crate::{
    name::{BranchName, ObjectFormat, Oid},
    safe_files::{self, FileKind},
};

/// So deep submodules of submodules are looked into.
const DEPTH: usize = 8;
/// So many paths are named to git; where there are more, it lists everything.
const FEW: usize = 200;

/// A submodule that a commit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    /// Its name, which is also that of its folder among the repository's modules.
    pub name: String,
    /// Where it stands in the worktree.
    pub path: String,
}

/// Where the repository of a submodule is that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    /// Below the modules of the repository, where its settings are watched.
    Module(PathBuf),
    /// In the worktree, as a `.git` that is a folder.
    Folder(PathBuf),
    /// Elsewhere, or it cannot be told.
    Elsewhere,
}

impl Repository {
    /// The paths of submodules in the index.
    pub fn list_gitlinks(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let ask = || self.git("ls-files");
        match self.index_file() {
            Some(file) => list_gitlinks(&file, self.format, ask),
            None => ask_gitlinks(ask()),
        }
    }

    /// The paths of submodules in a tree.
    pub fn list_gitlinks_of(&self, tree: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("ls-tree").args(["-r", "-z", "--full-tree", &tree.to_string()]);
        Ok(gitlinks_in(&command.stdout()?))
    }

    /// The submodules of the index in which something is not committed. Only their own repositories could hold it.
    ///
    /// git itself is never left to look into a submodule: it would use the settings of whatever repository an agent has put
    /// there. It is asked here for each by itself, where its settings are those that are watched. A `.git` that is a folder
    /// in the worktree is such only where the tree `known` has a submodule, and only in the main worktree.
    pub fn dirty_submodules(&self, known: Option<Oid>) -> Result<Vec<Vec<u8>>, GitError> {
        let gitlinks = self.list_gitlinks()?;
        if gitlinks.is_empty() {
            return Ok(Vec::new());
        }
        let folders = self.find_folder_submodules(known, &gitlinks)?;
        let mut dirty = Vec::new();
        for path in gitlinks {
            let place = self.top().join(OsStr::from_bytes(&path));
            let is_dirty = match self.home_of_submodule(&place) {
                Some(Home::Module(home)) => self.is_submodule_dirty(&home, &place, DEPTH)?,
                Some(Home::Folder(home)) if folders.contains(&path) => {
                    self.is_submodule_dirty(&home, &place, DEPTH)?
                }
                _ => false,
            };
            if is_dirty {
                dirty.push(path);
            }
        }
        Ok(dirty)
    }

    /// Those of these paths at which `known` has a submodule.
    fn find_folder_submodules(
        &self,
        known: Option<Oid>,
        paths: &[Vec<u8>],
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let Some(tree) = known.filter(|_| self.git_dir == self.common_dir) else {
            return Ok(BTreeSet::new());
        };
        if paths.len() > FEW {
            return Ok(self.list_gitlinks_of(tree)?.into_iter().collect());
        }
        let command = self.git("ls-tree").args(["-z", "--full-tree", &tree.to_string(), "--"]);
        let printed = command.args(paths.iter().map(|path| OsStr::from_bytes(path))).stdout()?;
        Ok(gitlinks_in(&printed).into_iter().collect())
    }

    /// Where the repository of the submodule at `place` is; `None` if it is not checked out.
    fn home_of_submodule(&self, place: &Path) -> Option<Home> {
        let file = place.join(".git");
        match safe_files::kind_of(&file)? {
            FileKind::Folder => Some(Home::Folder(file)),
            FileKind::File => {
                let content = safe_files::read(&file).unwrap_or_default();
                let target = content.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
                let home = target.map(|target| plain_path(&place.join(OsStr::from_bytes(target))));
                let is_ours = |home: &PathBuf| {
                    let mut dirs = [&self.common_dir, &self.git_dir].into_iter();
                    dirs.any(|dir| home.starts_with(dir.join("modules")))
                        && safe_files::kind_of(&home.join("HEAD")) == Some(FileKind::File)
                };
                Some(home.filter(is_ours).map_or(Home::Elsewhere, Home::Module))
            }
            FileKind::Link | FileKind::Special => Some(Home::Elsewhere),
        }
    }

    fn is_submodule_dirty(&self, home: &Path, place: &Path, depth: usize) -> Result<bool, GitError> {
        let ask = |name| {
            let command = GitCommand::reading(name, place).at_home().of_homes(&self.homes);
            command.env("GIT_DIR", home).env("GIT_WORK_TREE", place)
        };
        let status = ask("status").args(["--porcelain", "-z", "--no-renames", "--untracked-files=normal"]);
        if !status.stdout()?.is_empty() {
            return Ok(true);
        }
        for path in list_gitlinks(&home.join("index"), self.format, || ask("ls-files"))? {
            let inner = place.join(OsStr::from_bytes(&path));
            let is_dirty = match self.home_of_submodule(&inner) {
                None => false,
                Some(Home::Module(home)) if depth > 0 => self.is_submodule_dirty(&home, &inner, depth - 1)?,
                // What cannot be looked at is not known to be as it was.
                Some(_) => true,
            };
            if is_dirty {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The submodules that a commit names.
    pub fn list_submodules(&self, commit: Oid) -> Result<Vec<Submodule>, GitError> {
        let Some(blob) = self.find_path(commit, ".gitmodules")? else {
            return Ok(Vec::new());
        };
        let command = self.git("config").args(["--blob", &blob.to_string(), "-z"]);
        let printed = command.args(["--get-regexp", r"^submodule\..*\.path$"]).answer()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&printed);
        let parse = |entry: &str| {
            let (key, path) = entry.split_once('\n')?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            // An agent can write this file, and git is run at that path.
            let is_inside = is_inner(name) && is_inner(path);
            is_inside.then(|| Submodule { name: name.to_owned(), path: path.to_owned() })
        };
        Ok(text.split_terminator('\0').filter_map(parse).collect())
    }

    /// Where the main worktree keeps a submodule's repository, if it does.
    #[must_use]
    pub fn find_module(&self, submodule: &Submodule) -> Option<PathBuf> {
        let module = self.common_dir.join("modules").join(&submodule.name);
        module.join("HEAD").is_file().then_some(module)
    }

    /// Checks out what the commit wants of a submodule, with the objects that `module` has. `Err` inside is git's reason
    /// why it could not be had.
    pub fn update_submodule(
        &self,
        submodule: &Submodule,
        module: &Path,
    ) -> Result<Result<(), String>, GitError> {
        let command =
            self.change("submodule").args(["--quiet", "update", "--init", "--force", "--reference"]);
        let ended = command.arg(module).args(["--", &submodule.path]).finish()?;
        if ended.status.success() {
            return Ok(Ok(()));
        }
        let complaint = without_prefix(&ended.complaint());
        Ok(Err(complaint.lines().next().unwrap_or_default().to_owned()))
    }

    /// Puts a submodule of this worktree on a branch at its own commit, so that no commit there is on none.
    pub fn branch_submodule(&self, submodule: &Submodule, branch: &BranchName) -> Result<(), GitError> {
        let command = self.change_submodule("checkout", submodule)?;
        command.args(["--quiet", "-B", branch.as_str(), "--no-track"]).stdout().map(drop)
    }

    /// A call of git in the repository of a submodule, which must be below our own modules: an agent may have put any other
    /// in its place.
    fn change_submodule(&self, name: &str, submodule: &Submodule) -> Result<GitCommand, GitError> {
        let place = self.top().join(&submodule.path);
        match self.home_of_submodule(&place) {
            Some(Home::Module(home)) => {
                let command = GitCommand::changing(name, &place, &[]).at_home();
                let command = command.env("GIT_DIR", &home).env("GIT_WORK_TREE", &place);
                Ok(self.confine_to(command, [home, place]))
            }
            _ => {
                let what = format!("the repository of '{}' is not among the modules", submodule.path);
                Err(GitError::Strange { command: "submodule".into(), what })
            }
        }
    }

    /// Makes the `.git` of a submodule lead to where this worktree keeps its repository. Whatever else has taken its place is
    /// kept in the git directory of the worktree.
    pub fn mend_submodule(&self, submodule: &Submodule) -> Result<(), GitError> {
        let place = self.top().join(&submodule.path);
        let (file, home) = (place.join(".git"), self.git_dir.join("modules").join(&submodule.name));
        let found = self.home_of_submodule(&place);
        if found.is_none() || found == Some(Home::Module(home.clone())) {
            return Ok(());
        }
        let failed = |source| GitError::File { path: file.display().to_string(), source };
        let mut free = (1..).map(|number| self.git_dir.join(format!("replaced.{number}")));
        let free = free.find(|free| free.symlink_metadata().is_err()).unwrap_or_default();
        safe_files::rename(&file, &free).map_err(failed)?;
        if safe_files::kind_of(&home.join("HEAD")).is_none() {
            return Ok(());
        }
        let content = [b"gitdir: ", home.as_os_str().as_bytes(), b"\n"].concat();
        safe_files::write(&file, &content).map_err(failed)
    }

    /// Copies the branches of tasks that a submodule has to where the main worktree keeps its repository.
    pub fn keep_submodule(&self, submodule: &Submodule, module: &Path) -> Result<(), GitError> {
        let command = self.change_submodule("push", submodule)?.args(["--quiet", "--no-verify"]);
        command.arg(module).arg("refs/heads/arborist/*:refs/heads/arborist/*").stdout().map(drop)
    }
}

/// Whether a path from the top, or a name that becomes one, leads to no other place.
fn is_inner(path: &str) -> bool {
    let is_plain =
        |part: Component<'_>| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    !path.is_empty() && Path::new(path).components().all(is_plain)
}

/// The paths of submodules in an index file. git is asked where that cannot be read.
pub(super) fn list_gitlinks(
    file: &Path,
    format: ObjectFormat,
    ask: impl FnOnce() -> GitCommand,
) -> Result<Vec<Vec<u8>>, GitError> {
    find_gitlinks(file, format).map_or_else(|| ask_gitlinks(ask()), Ok)
}

fn ask_gitlinks(command: GitCommand) -> Result<Vec<Vec<u8>>, GitError> {
    let printed = command.args(["-z", "--stage", "--full-name", "--", ":/"]).stdout()?;
    Ok(gitlinks_in(&printed))
}

/// Those of the records `mode … TAB path NUL` that are submodules.
fn gitlinks_in(printed: &[u8]) -> Vec<Vec<u8>> {
    let records = printed.split(|byte| *byte == 0).filter(|record| record.starts_with(b"160000 "));
    let path = |record: &[u8]| Some(record[memchr::memchr(b'\t', record)? + 1..].to_vec());
    records.filter_map(path).collect()
}
