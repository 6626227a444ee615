//! Finds ignored files and repositories inside a worktree, which no snapshot contains, and adds all other files to an
//! index.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    GitError, PrivateIndex, Repository, UncommittedPath, command::checked, folder_links::FolderLink,
    harmless_settings::runs_nothing, misplaced_files::move_aside, scan::Scan, submodules::list_gitlinks,
    worktree_git_dirs::is_own_git_dir, worktree_link::target_of, worktrees::top_of_git_dir,
};
use crate::safe_files::{self, FileKind};

/// How deep repositories are searched below untracked folders.
const MAX_DEPTH: usize = 3;

/// How many folders of a large checkout are searched for other repositories, beginning at the top. 10,000 folders take
/// less than 0.1 s, once in a run.
const MAX_FOLDERS: usize = 50_000;

/// What a folder contains that git takes for a git directory.
const BARE: [&[&str]; 2] = [&["HEAD", "objects", "refs"], &["HEAD", "commondir"]];

/// The folders of a checkout before the first child process started there.
#[derive(Debug, Default)]
pub(super) struct FoldersBefore {
    /// The `.git` of every other repository.
    pub(super) git_dirs: Vec<PathBuf>,
    /// The folders that look like a bare repository.
    pub(super) bare: BTreeSet<PathBuf>,
    /// All folders, in a very large checkout those that are nearest to its top.
    pub(super) all: BTreeSet<PathBuf>,
    /// Whether there are more folders than these.
    is_cut: bool,
}

/// A repository that a child made in a place where it must not be.
#[derive(Debug)]
pub struct PlantedRepository {
    /// What was taken away, from the top.
    pub path: PathBuf,
    /// Where it is kept.
    pub kept: Option<PathBuf>,
    /// The repository elsewhere, if a link to it was taken away.
    pub link_to: Option<PathBuf>,
}

impl Repository {
    /// The `.git` of every other repository inside of this checkout, as they were when this was called first. There are
    /// none in worktrees that runs have made.
    #[must_use]
    pub fn find_inner_git_dirs(&self) -> Vec<PathBuf> {
        self.folders_before().git_dirs.clone()
    }

    fn folders_before(&self) -> Arc<FoldersBefore> {
        static KNOWN: Mutex<BTreeMap<PathBuf, Arc<FoldersBefore>>> = Mutex::new(BTreeMap::new());
        let Some(top) = self.worktree.as_ref().filter(|_| !is_own_git_dir(&self.git_dir)) else {
            return Arc::default();
        };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(top.clone()).or_insert_with(|| {
            // The scan of a large checkout is not complete.
            let scan = self.scan().filter(|scan| scan.is_complete());
            let mut found =
                scan.map_or_else(|| FoldersBefore::list(top), |scan| FoldersBefore::of(&scan, top));
            // Another worktree of this repository.
            found.git_dirs.retain(|path| !self.is_own_link(path));
            Arc::new(found)
        });
        Arc::clone(found)
    }

    /// Takes every repository away that was not there before the first child process, and that no snapshot shows: a `.git`
    /// in a folder with tracked files, a folder that looks like a bare repository, and in ignored folders that were there
    /// before, both of these if they could run something. git obeys such a repository as soon as it is called in the folder.
    /// So are links in the place of folders that lead to such a repository elsewhere.
    pub fn move_planted_git(&self) -> Result<Vec<PlantedRepository>, GitError> {
        let Some(top) = &self.worktree else { return Ok(Vec::new()) };
        let before = self.folders_before();
        let scan = self.scan().filter(|scan| scan.is_complete());
        let found = match scan {
            Some(scan) => FoldersBefore::of(&scan, top),
            None => self.list_without_scan(top, &before)?,
        };
        let mut moved = TakenAway::default();
        for FolderLink { path, repository } in self.find_folder_links(top, &before, &found) {
            let taken = self.take_away(top, &path);
            moved.add(taken.map(|taken| PlantedRepository { link_to: Some(repository), ..taken }));
        }
        for path in found.git_dirs.iter().filter(|path| !before.git_dirs.contains(path)) {
            let folder = path.parent().unwrap_or(path);
            let inner = folder.strip_prefix(top).unwrap_or(folder);
            let is_planted = || {
                let is_old = before.all.contains(folder) && !self.is_own_link(path);
                Ok::<_, GitError>(is_old && could_run(path) && self.is_ignored(inner)?)
            };
            // git adds the files beside a `.git` that is no repository, and the folder is tracked from then on.
            let is_broken = || Ok::<_, GitError>(!is_repository(path) && !self.is_ignored(inner)?);
            if self.is_folder_tracked(inner)? || is_planted()? || is_broken()? {
                moved.add(self.take_away(top, path));
            }
        }
        for folder in found.bare.iter().filter(|folder| !before.bare.contains(*folder)) {
            let inner = folder.strip_prefix(top).unwrap_or(folder);
            let is_harmless = || {
                let is_old = before.all.contains(folder);
                Ok::<_, GitError>(!(is_old && could_run(folder)) && self.is_ignored(inner)?)
            };
            if let Some(name) = self.find_untracked_part(folder, inner)?
                && !is_harmless()?
            {
                moved.add(self.take_away(top, &folder.join(name)));
            }
        }
        moved.finish()
    }

    /// Whether a folder around this path, which is relative to the top, looks like a bare repository.
    #[must_use]
    pub fn is_in_bare(&self, path: &Path) -> bool {
        let Some(top) = &self.worktree else { return false };
        let inner = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        inner.into_iter().any(|folder| looks_bare(&top.join(folder)))
    }

    /// Whether a `.git` file belongs to another worktree or to a submodule of this repository.
    pub(super) fn is_own_link(&self, path: &Path) -> bool {
        is_worktree_link(&self.common_dir, path)
            || (leads_into(path, &self.common_dir.join("modules")) && self.is_committed_submodule(path))
    }

    /// Whether the folder of a `.git` file is committed as a submodule.
    fn is_committed_submodule(&self, path: &Path) -> bool {
        let folder = path.parent().and_then(|folder| folder.strip_prefix(self.worktree.as_ref()?).ok());
        let find = |folder: &Path| self.find_path(self.head.commit?, folder.to_str()?).ok()?;
        folder.and_then(find).is_some()
    }

    /// Moves a folder aside, and removes anything else than a folder or a file.
    fn take_away(&self, top: &Path, path: &Path) -> Result<PlantedRepository, GitError> {
        safe_files::allow_writing_around(top, path);
        let is_kept = match safe_files::kind_of(path) {
            Some(FileKind::Folder) => true,
            Some(FileKind::File) => !path.ends_with(".git"),
            _ => false,
        };
        let kept = match is_kept {
            true => move_aside(&self.git_dir, path).map(Some),
            false => safe_files::remove(path).map(|()| None),
        };
        let kept = kept.map_err(|source| GitError::File { path: path.display().to_string(), source })?;
        let path = path.strip_prefix(top).unwrap_or(path).to_owned();
        Ok(PlantedRepository { path, kept, link_to: None })
    }

    /// The first name that makes a folder look like a bare repository and that was not committed before; `None` if all of
    /// them were: then it is not new.
    fn find_untracked_part(&self, folder: &Path, inner: &Path) -> Result<Option<&'static str>, GitError> {
        let is_there = |name: &&str| folder.join(name).symlink_metadata().is_ok();
        let Some(names) = BARE.into_iter().find(|names| names.iter().all(&is_there)) else {
            return Ok(None);
        };
        for name in names {
            let path = inner.join(name);
            let committed = self.head.commit.map(|commit| match path.to_str() {
                Some(path) => self.find_path(commit, path),
                None => Ok(None),
            });
            if committed.transpose()?.flatten().is_none() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn is_ignored(&self, folder: &Path) -> Result<bool, GitError> {
        let command = self.git("check-ignore").dir(self.top()).args(["-q", "--"]);
        Ok(command.arg(folder).finish()?.status.success())
    }

    /// The repositories of a checkout in which a scan would take too long. If it has so many folders that not all of them
    /// are looked at, those that were there before, those in the commit and those that `git add` could add are.
    fn list_without_scan(&self, top: &Path, before: &FoldersBefore) -> Result<FoldersBefore, GitError> {
        let mut found = FoldersBefore::list(top);
        if !found.is_cut {
            return Ok(found);
        }
        let mut more: BTreeSet<PathBuf> = before.all.difference(&found.all).cloned().collect();
        if let Some(commit) = self.head.commit {
            let command = self.git("ls-tree").args(["-r", "-d", "-z", "--name-only", "--full-tree"]);
            let printed = command.arg(commit.to_string()).stdout()?;
            let folders = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            more.extend(folders.map(|folder| top.join(OsStr::from_bytes(folder))));
        }
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let printed = command.args(["--", ":(top,icase,glob)**/HEAD"]).stdout()?;
        let heads = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        more.extend(heads.filter_map(|head| Some(top.join(OsStr::from_bytes(head)).parent()?.to_owned())));
        for folder in more {
            let is_there = |name: &str| folder.join(name).symlink_metadata().is_ok();
            found.add(folder.clone(), is_there);
        }
        Ok(found)
    }

    /// Whether a folder has files in the commit that is checked out, or in the one that was when this repository was
    /// opened: a child may have switched to another. The folder of a submodule has none.
    fn is_folder_tracked(&self, folder: &Path) -> Result<bool, GitError> {
        let inside = [folder.as_os_str().as_bytes(), b"/"].concat();
        let commits =
            self.head.commit.map(|commit| commit.to_string()).into_iter().chain(["HEAD".to_owned()]);
        for commit in commits {
            let command = self.git("ls-tree").args(["-r", "-z", "--name-only", "--full-tree", &commit, "--"]);
            let listed = command.arg(OsStr::from_bytes(&inside)).finish()?;
            // HEAD may name no commit.
            let names = listed.stdout.split(|byte| *byte == 0);
            if listed.status.success() && names.into_iter().any(|name| name.starts_with(&inside)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The ignored paths of this worktree. A folder that is ignored as a whole is one path, which ends in a slash.
    pub fn list_ignored(&self) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--ignored", "--exclude-standard"]);
        let printed = command.args(["--directory", "--full-name", "--", ":/"]).stdout()?;
        let paths = printed.split(|b| *b == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// The ignored files at or below these paths. A repository is one path, which ends in a slash.
    pub fn list_ignored_at<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<PathBuf>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--ignored", "--exclude-standard"]);
        let names = names.map(|name| format!(":(top,icase,literal){}", name.trim_end_matches('/')));
        let printed = command.args(["--full-name", "--"]).args(names).stdout()?;
        let paths = printed.split(|b| *b == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// A repository in the worktree at `top`, at or below an untracked or ignored path.
    #[must_use]
    pub fn find_inner(top: &Path, changed_paths: &[UncommittedPath], ignored: &[PathBuf]) -> Option<PathBuf> {
        let untracked = changed_paths.iter().filter(|changed_paths| changed_paths.is_untracked);
        let untracked = untracked.map(|changed_paths| Path::new(OsStr::from_bytes(&changed_paths.path)));
        let mut below = untracked.chain(ignored.iter().map(PathBuf::as_path));
        below.find_map(|path| find_repository(&top.join(path))?.strip_prefix(top).map(Path::to_owned).ok())
    }
}

/// git's warning about a folder that it cannot read. The path in it may be cut.
pub(super) const NOT_OPENED: &str = "could not open directory";
/// git's error message about a file whose path is too long, among others.
const NO_STAT: &str = "unable to stat";
/// git's error message about a repository inside the worktree without a commit.
const NO_COMMIT: &str = "does not have a commit checked out";
/// git's complaint about paths in its arguments that are ignored, even if they are excluded. It adds all others, and exits
/// with 1.
const IGNORED: &str = "paths are ignored by one of your .gitignore files";
/// How many of them are left out one by one; if there are more, all untracked repositories are left out.
const MAX_LEFT_OUT: usize = 20;

/// Whether git could read all folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoundFolders {
    AllOpen,
    SomeClosed,
}

impl PrivateIndex<'_> {
    /// Adds all files that git can add. A repository without a commit makes `git add` fail, and so does a path that
    /// some file system treats as `.git`; these are left out and returned. git names one at a time. No git is run in
    /// these repositories: that would read their settings. Folders that git cannot read are returned, too: it only warns
    /// about them. Files that are `unreadable` keep their index entries.
    pub(super) fn add_possible(&self, unreadable: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        let mut left_out: Vec<Vec<u8>> = Vec::new();
        loop {
            let all = [unreadable, &left_out].concat();
            let complaint = match self.add_without(&all) {
                Err(GitError::Failed { complaint, .. }) if complaint.contains(NO_COMMIT) => complaint,
                Err(GitError::Failed { command, complaint }) if complaint.contains(NO_STAT) => {
                    let closed = self.repository.list_closed()?;
                    let count = left_out.len();
                    left_out.extend(closed.into_iter().filter(|path| !all.contains(path)));
                    if left_out.len() == count {
                        return Err(GitError::Failed { command, complaint });
                    }
                    continue;
                }
                Err(GitError::Failed { command, complaint }) => match find_refused(&complaint) {
                    Some(path) if left_out.len() < MAX_LEFT_OUT && !left_out.contains(&path) => {
                        left_out.push(path);
                        continue;
                    }
                    _ => return Err(GitError::Failed { command, complaint }),
                },
                added => return self.with_closed(added?, left_out),
            };
            let inner = self.list_inner()?;
            let named = find_unborn(&complaint).map(|name| {
                let is_named = |path: &&Vec<u8>| String::from_utf8_lossy(path) == name;
                // In the place of a tracked file, it is not listed.
                inner.iter().find(is_named).cloned().unwrap_or_else(|| name.as_bytes().to_vec())
            });
            match named.filter(|path| left_out.len() < MAX_LEFT_OUT && !left_out.contains(path)) {
                Some(path) => left_out.push(path),
                None => {
                    left_out.extend(inner);
                    let all = [unreadable, &left_out].concat();
                    let added = self.add_without(&all)?;
                    return self.with_closed(added, left_out);
                }
            }
        }
    }

    /// Adds the folders that git could not read, if it warned about any.
    fn with_closed(&self, found: FoundFolders, mut left_out: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        if found == FoundFolders::SomeClosed {
            let closed = self.repository.list_closed()?;
            let new = closed.into_iter().filter(|path| !left_out.contains(path));
            left_out.extend(new.collect::<Vec<_>>());
        }
        Ok(left_out)
    }

    /// Runs `git add` for everything except `left_out` and submodules. For each submodule in the index, `git add` would
    /// run `git status` there, with the programs that its settings name, and an agent can put any repository in the
    /// place of a submodule.
    fn add_without(&self, left_out: &[Vec<u8>]) -> Result<FoundFolders, GitError> {
        let gitlinks = self.list_gitlinks()?;
        let excluded = left_out.iter().chain(&gitlinks);
        let excluded = excluded.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat());
        let command = self.git("add").args(["-A", "--sparse", "--", ":/"]);
        let ended = command.args(excluded.map(OsString::from_vec)).finish()?;
        let found = match ended.complaint().contains(NOT_OPENED) {
            true => FoundFolders::SomeClosed,
            false => FoundFolders::AllOpen,
        };
        // An index can contain a submodule in an ignored folder, if `git add -f` or an agent put it there.
        let is_about_ignored = ended.status.code() == Some(1) && ended.complaint().contains(IGNORED);
        if !is_about_ignored {
            checked("add", ended)?;
        }
        if !gitlinks.is_empty() {
            self.update_gitlinks()?;
        }
        Ok(found)
    }

    /// Updates which commit each submodule is at. git only reads `HEAD` there, and starts nothing.
    fn update_gitlinks(&self) -> Result<(), GitError> {
        // Added files may have replaced some submodules.
        let names: Vec<u8> =
            self.list_gitlinks()?.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let command = self.git("update-index").dir(self.repository.top());
        let command = command.args(["--add", "--remove", "-z", "--stdin"]);
        checked("update-index", command.finish_with(&names)?).map(drop)
    }

    pub(super) fn list_gitlinks(&self) -> Result<Vec<Vec<u8>>, GitError> {
        list_gitlinks(&self.file.path, self.repository.format, || self.git("ls-files"))
    }

    /// The untracked repositories. git lists each as one path that ends in a slash.
    fn list_inner(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let printed = command.args(["--", ":/"]).stdout()?;
        let inner = printed.split(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"/"));
        Ok(inner.map(<[u8]>::to_vec).collect())
    }
}

/// The repository without a commit that git complains about.
fn find_unborn(complaint: &str) -> Option<&str> {
    let (before, _) = complaint.split_once(&format!("/' {NO_COMMIT}"))?;
    before.lines().last()?.split_once('\'').map(|(_, path)| path)
}

/// The path that git refuses to add, up to the refused component.
fn find_refused(complaint: &str) -> Option<Vec<u8>> {
    let (_, rest) = complaint.split_once("invalid path '")?;
    let path = rest.lines().next()?.strip_suffix('\'')?;
    // Some file systems ignore case, invisible characters, spaces and dots.
    let is_git = |part: &str| {
        let plain: String = part.chars().filter(char::is_ascii_graphic).collect();
        let plain = plain.to_ascii_lowercase();
        plain.starts_with(".git") || plain.starts_with("git~")
    };
    let parts: Vec<&str> = path.split('/').collect();
    let end = parts.iter().position(|part| is_git(part)).map_or(parts.len(), |at| at + 1);
    Some(parts[..end].join("/").into_bytes())
}

impl FoldersBefore {
    /// The folders below `top` according to a scan.
    fn of(scan: &Scan, top: &Path) -> Self {
        let mut found = Self::default();
        for (folder, names) in scan.folders().filter(|(folder, _)| !folder.is_empty()) {
            let is_there =
                |name: &str| names.iter().any(|entry| entry.name.eq_ignore_ascii_case(name.as_bytes()));
            found.add(top.join(OsStr::from_bytes(folder.strip_suffix(b"/").unwrap_or(folder))), is_there);
        }
        found
    }

    /// The same without a scan. Neither links nor git directories are entered.
    fn list(top: &Path) -> Self {
        let mut found = Self::default();
        let mut open = VecDeque::from([top.to_owned()]);
        while let Some(folder) = open.pop_front() {
            if found.all.len() >= MAX_FOLDERS {
                found.is_cut = true;
                break;
            }
            let mut names = Vec::new();
            let visit = |name: &OsStr, kind: FileKind| {
                names.push(name.to_owned());
                if kind == FileKind::Folder && name != ".git" {
                    open.push_back(folder.join(name));
                }
            };
            // A folder that cannot be read is left out.
            let _ = safe_files::visit_kinds(&folder, visit);
            if folder != top {
                found.add(folder, |name| names.iter().any(|entry| entry.eq_ignore_ascii_case(name)));
            }
        }
        found
    }

    fn add(&mut self, folder: PathBuf, is_there: impl Fn(&str) -> bool) {
        if is_there(".git") {
            self.git_dirs.push(folder.join(".git"));
        }
        if is_there("HEAD") && BARE.iter().any(|names| names.iter().all(|name| is_there(name))) {
            self.bare.insert(folder.clone());
        }
        self.all.insert(folder);
    }
}

/// Whether git takes a `.git` for a repository.
fn is_repository(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let git_dir = match safe_files::kind_of(path) {
        Some(FileKind::File) => safe_files::read(path).ok().and_then(|content| target_of(folder, &content)),
        _ => Some(path.to_owned()),
    };
    git_dir.is_some_and(|dir| looks_bare(&dir))
}

/// Whether git takes a folder for a git directory.
pub(super) fn looks_bare(folder: &Path) -> bool {
    let is_there = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    BARE.iter().any(|names| names.iter().all(is_there))
}

/// Whether git would run something that a git directory contains.
pub(super) fn could_run(git_dir: &Path) -> bool {
    let hooks = safe_files::list_kinds(&git_dir.join("hooks")).unwrap_or_default();
    let is_hook = |path: &Path| path.extension() != Some(OsStr::new("sample"));
    let config = git_dir.join("config");
    let is_harmless = match safe_files::kind_of(&config) {
        None => true,
        Some(FileKind::File) => safe_files::read(&config).is_ok_and(|config| runs_nothing(&config)),
        Some(_) => false,
    };
    let leads_elsewhere = ["commondir", "config.worktree"];
    let leads_elsewhere = leads_elsewhere.iter().any(|name| git_dir.join(name).symlink_metadata().is_ok());
    let has_hooks_elsewhere =
        safe_files::kind_of(&git_dir.join("hooks")).is_some_and(|kind| kind != FileKind::Folder);
    safe_files::kind_of(git_dir) != Some(FileKind::Folder)
        || has_hooks_elsewhere
        || !is_harmless
        || leads_elsewhere
        || hooks.iter().any(|entry| is_hook(&entry.path))
}

/// What was taken away. An error does not end the search: what is left would count as the user's in the next run.
#[derive(Default)]
struct TakenAway {
    moved: Vec<PlantedRepository>,
    error: Option<GitError>,
}

impl TakenAway {
    fn add(&mut self, taken: Result<PlantedRepository, GitError>) {
        match taken {
            Ok(taken) => self.moved.push(taken),
            // Another name for the same place, such as `.GIT`, may be all that there was.
            Err(GitError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }

    fn finish(self) -> Result<Vec<PlantedRepository>, GitError> {
        self.error.map_or(Ok(self.moved), Err)
    }
}

/// Whether a `.git` file and the git directory of a worktree name each other. Any other folder there may be a whole
/// repository, or lead to one.
pub(super) fn is_worktree_link(common_dir: &Path, path: &Path) -> bool {
    let worktrees = safe_files::resolved(&common_dir.join("worktrees"));
    let Some(git_dir) = find_git_dir(path).filter(|git_dir| git_dir.parent() == Some(&*worktrees)) else {
        return false;
    };
    let top = top_of_git_dir(&git_dir).and_then(|top| top.canonicalize().ok());
    top.is_some()
        && top == path.parent().and_then(|top| top.canonicalize().ok())
        && has_own_commondir(&git_dir)
}

/// Whether a `.git` file names a folder below `git_dir`. Links on the way are followed, as git does.
pub(super) fn leads_into(link: &Path, git_dir: &Path) -> bool {
    find_git_dir(link).is_some_and(|target| target.starts_with(safe_files::resolved(git_dir)))
}

/// The folder that a `.git` file names, without links.
fn find_git_dir(link: &Path) -> Option<PathBuf> {
    let content = safe_files::read(link).ok()?;
    let named = content.strip_prefix(b"gitdir: ")?;
    link.parent()?.join(OsStr::from_bytes(named.trim_ascii_end())).canonicalize().ok()
}

/// Whether the git directory of a worktree leads to the repository that it is in. git writes this file after the folder.
pub(super) fn has_own_commondir(git_dir: &Path) -> bool {
    match safe_files::read(&git_dir.join("commondir")) {
        Ok(named) => named.trim_ascii_end() == b"../..",
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// A repository at or below a folder. Links are not followed.
#[must_use]
pub fn find_repository(folder: &Path) -> Option<PathBuf> {
    let mut open = vec![(folder.to_owned(), 1)];
    while let Some((folder, depth)) = open.pop() {
        // With a slash at the end of its name, a link would be followed.
        let plain: PathBuf = folder.components().collect();
        if !plain.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let is_there = |name: &str| plain.join(name).symlink_metadata().is_ok();
        if is_there(".git") || ["HEAD", "objects", "refs"].into_iter().all(is_there) {
            return Some(plain);
        }
        if depth < MAX_DEPTH {
            let entries = fs::read_dir(&plain).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(folders.map(|entry| (entry.path(), depth + 1)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_path_that_git_refuses_is_found() {
        let found =
            |path: &str| find_refused(&format!("invalid path '{path}'\nerror: unable to add '{path}'"));
        assert_eq!(found("a/.GIT/config").unwrap(), b"a/.GIT");
        assert_eq!(found("git~1/x").unwrap(), b"git~1");
        assert_eq!(found("a/b").unwrap(), b"a/b");
        assert_eq!(find_refused("permission denied"), None);
    }
}
