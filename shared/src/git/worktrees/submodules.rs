//! Lists, checks and updates submodules of a worktree.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use crate::{
    git::{
        GitCommand, GitError, IndexFile, Repository, TreeChange,
        command::without_prefix,
        index::{
            hidden_files::{HiddenReader, clear_marks},
            index_format::find_gitlinks,
        },
        plain_path,
    },
    name::{BranchName, ObjectFormat, Oid, digest},
    safe_files::{self, FileKind},
};

/// How deep nested submodules are checked.
const MAX_DEPTH: usize = 8;
/// How many paths are passed to git; with more, everything is listed.
const MAX_PATHS: usize = 200;
/// How many changed files of submodules are compared by content, and how many bytes of each.
const MAX_FILES: usize = 20_000;
const MAX_CONTENT: u64 = 1 << 20;

/// A submodule of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    /// Its name, which is also that of its folder below `modules`.
    pub name: String,
    /// Its path in the worktree.
    pub path: String,
}

/// Where the repository of a checked-out submodule is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SubmoduleRepository {
    /// Below `modules` of our repository, where its settings are watched.
    Module(PathBuf),
    /// In the worktree: its `.git` is a folder.
    Folder(PathBuf),
    /// Elsewhere or unknown.
    Elsewhere,
}

/// Uncommitted changes in submodules: a digest for each path.
pub type SubmoduleChanges = BTreeMap<Vec<u8>, String>;

/// What is compared in a submodule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubmoduleContent {
    /// All uncommitted changes.
    Changes,
    /// The commit that is checked out, and changes of tracked files.
    TrackedFiles,
}

/// Collects changes, and turns them into one digest.
#[derive(Debug, Default)]
struct ChangeDigest {
    text: Vec<u8>,
    files: usize,
}

impl ChangeDigest {
    fn add(&mut self, words: &[u8]) {
        self.text.extend_from_slice(words);
        self.text.push(0);
    }

    /// Adds everything in a folder, by name and content. Nothing in an empty or missing folder is a change.
    fn add_folder(&mut self, folder: &Path) {
        for entry in safe_files::list(folder).unwrap_or_default() {
            self.add_path(&entry.path);
        }
    }

    /// Adds a file with its content, or a folder with everything in it.
    fn add_path(&mut self, path: &Path) {
        // A work list instead of recursion: an agent can create folders so deep that the stack would overflow.
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            self.files += 1;
            if self.files > MAX_FILES {
                return;
            }
            self.add(path.as_os_str().as_bytes());
            match safe_files::look_at(&path) {
                Some(facts) if facts.kind == FileKind::Folder => {
                    let inner = safe_files::list(&path).unwrap_or_default();
                    open.extend(inner.into_iter().map(|entry| entry.path));
                }
                Some(facts) if facts.kind == FileKind::File => {
                    self.add(facts.stamp.size.to_string().as_bytes());
                    let content = safe_files::read_up_to(&path, MAX_CONTENT).unwrap_or_default();
                    self.add(digest(&content).as_bytes());
                }
                Some(facts) => self.add(format!("{:?}", facts.stamp.written).as_bytes()),
                None => self.add(b"missing"),
            }
        }
    }

    fn finish(self) -> Option<String> {
        (!self.text.is_empty()).then(|| digest(&self.text))
    }
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

    /// The paths of submodules in the index of the worktree with this git directory.
    pub fn list_gitlinks_at(&self, git_dir: &Path) -> Result<Vec<Vec<u8>>, GitError> {
        let file = git_dir.join("index");
        if safe_files::kind_of(&file).is_none() {
            return Ok(Vec::new());
        }
        list_gitlinks(&file, self.format, || self.git("ls-files").env("GIT_INDEX_FILE", &file))
    }

    /// The paths of submodules in a tree.
    pub fn list_gitlinks_of(&self, tree: Oid) -> Result<Vec<Vec<u8>>, GitError> {
        if self.find_entries_of(tree).is_some_and(|entries| entries.plain().is_some()) {
            return Ok(Vec::new());
        }
        let command = self.git("ls-tree").args(["-r", "-z", "--full-tree", &tree.to_string()]);
        Ok(gitlinks_in(&command.stdout()?))
    }

    /// Whether the repository of a submodule is in the worktree: its `.git` is a folder.
    pub fn has_folder_submodule(&self) -> bool {
        let is_folder = |path: &Vec<u8>| {
            let place = self.top().join(OsStr::from_bytes(path));
            matches!(self.repository_of_submodule(&place), Some(SubmoduleRepository::Folder(_)))
        };
        self.list_gitlinks().is_ok_and(|paths| paths.iter().any(is_folder))
    }

    /// The submodules of the index with uncommitted changes, which exist only in their own repositories.
    pub fn dirty_submodules(&self, known: Option<Oid>) -> Result<Vec<Vec<u8>>, GitError> {
        Ok(self.submodule_changes(known)?.into_keys().collect())
    }

    /// The submodules of the index with uncommitted changes, each with a digest of these changes. Files in the folder of
    /// a submodule that is not checked out are such changes too: git takes them in nowhere.
    ///
    /// git itself must not look into submodules: it would use the settings of any repository that an agent has put
    /// there. So each submodule is checked here, if its settings are watched. For a `.git` that is a folder in the
    /// worktree that is the case only if the tree `known` has a submodule there, and only in the main worktree.
    pub fn submodule_changes(&self, known: Option<Oid>) -> Result<SubmoduleChanges, GitError> {
        self.digest_submodules(known, SubmoduleContent::Changes)
    }

    /// The submodules of the index, each with a digest of the commit that is checked out and of changes of tracked
    /// files. New files do not count.
    pub fn tracked_in_submodules(&self, known: Option<Oid>) -> Result<SubmoduleChanges, GitError> {
        self.digest_submodules(known, SubmoduleContent::TrackedFiles)
    }

    fn digest_submodules(
        &self,
        known: Option<Oid>,
        content: SubmoduleContent,
    ) -> Result<SubmoduleChanges, GitError> {
        let gitlinks = self.list_gitlinks()?;
        if gitlinks.is_empty() {
            return Ok(SubmoduleChanges::new());
        }
        let folders = self.find_folder_submodules(known, &gitlinks)?;
        let mut changed = SubmoduleChanges::new();
        for path in gitlinks {
            let place = self.top().join(OsStr::from_bytes(&path));
            let mut found = ChangeDigest::default();
            match self.repository_of_submodule(&place) {
                Some(SubmoduleRepository::Module(git_dir)) => {
                    self.digest_submodule(&git_dir, &place, content, MAX_DEPTH, &mut found)?;
                }
                Some(SubmoduleRepository::Folder(git_dir)) if folders.contains(&path) => {
                    self.digest_submodule(&git_dir, &place, content, MAX_DEPTH, &mut found)?;
                }
                None if content == SubmoduleContent::Changes => found.add_folder(&place),
                _ => {}
            }
            if let Some(digest) = found.finish() {
                changed.insert(path, digest);
            }
        }
        Ok(changed)
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
        if paths.len() > MAX_PATHS {
            return Ok(self.list_gitlinks_of(tree)?.into_iter().collect());
        }
        let command = self.git("ls-tree").args(["-z", "--full-tree", &tree.to_string(), "--"]);
        let printed = command.args(paths.iter().map(|path| OsStr::from_bytes(path))).stdout()?;
        Ok(gitlinks_in(&printed).into_iter().collect())
    }

    /// Where the repository of the submodule at `place` is; `None` if it is not checked out.
    fn repository_of_submodule(&self, place: &Path) -> Option<SubmoduleRepository> {
        let file = place.join(".git");
        match safe_files::kind_of(&file)? {
            FileKind::Folder => Some(SubmoduleRepository::Folder(file)),
            FileKind::File => {
                let content = safe_files::read(&file).unwrap_or_default();
                let target = content.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
                let git_dir = target.map(|target| plain_path(&place.join(OsStr::from_bytes(target))));
                let is_ours = |git_dir: &PathBuf| {
                    let mut dirs = [&self.common_dir, &self.git_dir].into_iter();
                    dirs.any(|dir| git_dir.starts_with(dir.join("modules")))
                        && safe_files::kind_of(&git_dir.join("HEAD")) == Some(FileKind::File)
                };
                Some(
                    git_dir
                        .filter(is_ours)
                        .map_or(SubmoduleRepository::Elsewhere, SubmoduleRepository::Module),
                )
            }
            FileKind::Link | FileKind::Special => Some(SubmoduleRepository::Elsewhere),
        }
    }

    /// Adds the uncommitted changes of a submodule, and of those in it.
    fn digest_submodule(
        &self,
        git_dir: &Path,
        place: &Path,
        content: SubmoduleContent,
        depth: usize,
        found: &mut ChangeDigest,
    ) -> Result<(), GitError> {
        let ask = |name| {
            let command =
                GitCommand::reading(name, place).ignoring_environment().requiring_git_dirs(&self.git_dir_ids);
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", place)
        };
        let untracked = match content {
            SubmoduleContent::Changes => "--untracked-files=normal",
            SubmoduleContent::TrackedFiles => {
                // It has no commit if it was just initialised.
                let head = ask("rev-parse").args(["--verify", "--quiet", "HEAD"]).answer()?;
                found.add(head.unwrap_or_default().trim_ascii_end());
                "--untracked-files=no"
            }
        };
        let status = ask("status").args(["--porcelain", "-z", "--no-renames", untracked]);
        let revealed = self.reveal_in_submodule(git_dir, place, ask)?;
        let status = match &revealed {
            Some(index) => status.env("GIT_INDEX_FILE", &index.path),
            None => status,
        };
        for record in status.stdout()?.split(|byte| *byte == 0).filter(|record| record.len() > 3) {
            found.add(record);
            found.add_path(&place.join(OsStr::from_bytes(&record[3..])));
        }
        for path in list_gitlinks(&git_dir.join("index"), self.format, || ask("ls-files"))? {
            let inner = place.join(OsStr::from_bytes(&path));
            match self.repository_of_submodule(&inner) {
                None if content == SubmoduleContent::Changes => found.add_folder(&inner),
                None => {}
                Some(SubmoduleRepository::Module(git_dir)) if depth > 0 => {
                    self.digest_submodule(&git_dir, &inner, content, depth - 1, found)?;
                }
                // A submodule that cannot be checked may have changed.
                Some(_) => found.add(&path),
            }
        }
        Ok(())
    }

    /// A copy of a submodule's index in which no file is marked `assume-unchanged` or `skip-worktree`, so that git looks at
    /// all files that are or should be there; `None` if its index has no such marks.
    fn reveal_in_submodule(
        &self,
        git_dir: &Path,
        place: &Path,
        ask: impl Fn(&'static str) -> GitCommand,
    ) -> Result<Option<IndexFile>, GitError> {
        let own = git_dir.join("index");
        let is_sparse = || {
            let answer = ask("config").args(["--type=bool", "--get", "core.sparseCheckout"]).answer()?;
            Ok(answer.is_some_and(|answer| answer.trim_ascii_end() == b"true"))
        };
        let reader = HiddenReader::of(Some(&own), self.format, || ask("ls-files"));
        let hidden = reader.finish_with_deleted(place, is_sparse)?;
        if hidden.is_empty() {
            return Ok(None);
        }
        let index = self.copy_index(&own, "submodule")?;
        clear_marks(&hidden, || ask("update-index").env("GIT_INDEX_FILE", &index.path))?;
        Ok(Some(index))
    }

    /// The submodules of a commit.
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
            // An agent can write this file, and git is run at this path.
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

    /// Checks out the commit of a submodule, with the objects of `module`. `Err` inside is git's reason why it failed.
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

    /// Puts a submodule of this worktree on a branch at its present commit, so that new commits there are on a branch.
    pub fn branch_submodule(&self, submodule: &Submodule, branch: &BranchName) -> Result<(), GitError> {
        let command = self.change_submodule("checkout", submodule)?;
        command.args(["--quiet", "-B", branch.as_str(), "--no-track"]).stdout().map(drop)
    }

    /// A git command in the repository of a submodule, which must be below our own `modules`: an agent may have put
    /// another one in its place.
    fn change_submodule(&self, name: &str, submodule: &Submodule) -> Result<GitCommand, GitError> {
        let place = self.top().join(&submodule.path);
        match self.repository_of_submodule(&place) {
            Some(SubmoduleRepository::Module(git_dir)) => {
                let command = GitCommand::changing(name, &place, &[]).ignoring_environment();
                let command = command.env("GIT_DIR", &git_dir).env("GIT_WORK_TREE", &place);
                Ok(self.confine_to(command, [git_dir, place]))
            }
            _ => {
                let what = format!("the repository of '{}' is not among the modules", submodule.path);
                Err(GitError::unexpected("submodule", what))
            }
        }
    }

    /// Makes the `.git` of a submodule point to where this worktree keeps its repository. Anything else in its place is
    /// moved to the git directory of the worktree.
    pub fn repair_submodule(&self, submodule: &Submodule) -> Result<(), GitError> {
        let place = self.top().join(&submodule.path);
        let (file, git_dir) = (place.join(".git"), self.git_dir.join("modules").join(&submodule.name));
        let found = self.repository_of_submodule(&place);
        if found.is_none() || found == Some(SubmoduleRepository::Module(git_dir.clone())) {
            return Ok(());
        }
        let failed = GitError::file(&file);
        let mut free = (1..).map(|number| self.git_dir.join(format!("replaced.{number}")));
        let free = free.find(|free| free.symlink_metadata().is_err()).unwrap_or_default();
        safe_files::rename(&file, &free).map_err(&failed)?;
        if safe_files::kind_of(&git_dir.join("HEAD")).is_none() {
            return Ok(());
        }
        let content = [b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat();
        safe_files::write(&file, &content).map_err(&failed)
    }

    /// Pushes the task branches of a submodule to where the main worktree keeps its repository.
    pub fn push_submodule_branches(&self, submodule: &Submodule, module: &Path) -> Result<(), GitError> {
        let command = self.change_submodule("push", submodule)?.args(["--quiet", "--no-verify"]);
        command.arg(module).arg("refs/heads/arborist/*:refs/heads/arborist/*").stdout().map(drop)
    }
}

/// Whether a relative path, or a name that becomes one, stays inside.
fn is_inner(path: &str) -> bool {
    let is_plain =
        |part: Component<'_>| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    !path.is_empty() && Path::new(path).components().all(is_plain)
}

/// The paths of submodules in an index file. git is asked if it cannot be parsed.
pub(in crate::git) fn list_gitlinks(
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

/// The git directories of submodules below a git directory, including nested ones. The name of a submodule may contain
/// slashes, so a folder without `HEAD` may contain more of them, at any depth.
#[must_use]
pub fn find_module_dirs(git_dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![git_dir.join("modules")];
    while let Some(folder) = open.pop() {
        if safe_files::kind_of(&folder.join("HEAD")).is_some() {
            open.push(folder.join("modules"));
            found.insert(folder);
        } else if safe_files::kind_of(&folder) == Some(FileKind::Folder) {
            let entries = safe_files::list_kinds(&folder).unwrap_or_default().into_iter();
            let folders = entries.filter(|entry| entry.kind == FileKind::Folder);
            open.extend(folders.map(|entry| entry.path));
        }
    }
    found
}

impl Repository {
    /// Takes all submodules out of the index that are not `known`, and returns their paths. `git status` looks into every
    /// submodule of the index and obeys the settings of the repository there, and the commands of a run cannot add files
    /// around a submodule that is ignored. A task does not add submodules. A repository that is not ignored is found by
    /// the next snapshot.
    pub fn take_out_gitlinks(&self, known: &BTreeSet<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        let Some(commit) = self.head.commit.filter(|_| self.worktree.is_some()) else {
            return Ok(Vec::new());
        };
        // An index that cannot be read is reported elsewhere.
        let mut new = self.list_gitlinks().unwrap_or_default();
        new.retain(|path| !known.contains(path));
        let changes = new.iter().map(|path| TreeChange { path: path.clone(), before: None, after: None });
        self.stage_as_in(&commit.to_string(), &changes.collect::<Vec<_>>())?;
        Ok(new)
    }
}

/// The paths of submodules among records `mode … TAB path NUL`.
fn gitlinks_in(printed: &[u8]) -> Vec<Vec<u8>> {
    let records = printed.split(|byte| *byte == 0).filter(|record| record.starts_with(b"160000 "));
    let path = |record: &[u8]| Some(record[memchr::memchr(b'\t', record)? + 1..].to_vec());
    records.filter_map(path).collect()
}
