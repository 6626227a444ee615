//! Finds repositories that a child process made inside a checkout. git obeys the settings of such a repository as soon as
//! it is called in its folder, or looks into it as a submodule of another one.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex},
};

use crate::{
    git::{
        GitError, Repository,
        files::{
            folder_links::{FolderLink, find_link},
            scan::Scan,
        },
        index::index_format::find_gitlinks,
        misplaced_files::move_aside,
        settings::harmless_settings::runs_nothing,
        worktrees::{top_of_git_dir, worktree_git_dirs::is_own_git_dir, worktree_link::target_of},
    },
    mutex::MutexExt,
    name::ObjectFormat,
    safe_files::{self, FileKind},
};

/// How many folders of a large checkout are searched for other repositories, beginning at the top. 10,000 folders take
/// less than 0.1 s, once in a run.
const MAX_FOLDERS: usize = 50_000;

/// What a folder contains that git takes for a git directory.
const BARE: [&[&str]; 2] = [&["HEAD", "objects", "refs"], &["HEAD", "commondir"]];

/// The folders of a checkout before the first child process started there.
#[derive(Debug, Default)]
pub(in crate::git) struct FoldersBefore {
    /// The `.git` of every other repository.
    pub(in crate::git) git_dirs: Vec<PathBuf>,
    /// The `.git` of our own submodules and of other worktrees of this repository.
    own_links: BTreeSet<PathBuf>,
    /// The folders of submodules in the index.
    submodules: Vec<PathBuf>,
    /// Those of `git_dirs` and `own_links` whose index only git can read, such as a split one.
    opaque: BTreeSet<PathBuf>,
    /// The folders that look like a bare repository.
    pub(in crate::git) bare: BTreeSet<PathBuf>,
    /// All folders, in a very large checkout those that are nearest to its top.
    pub(in crate::git) all: BTreeSet<PathBuf>,
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
    /// Whether it is the index of another repository, with a submodule that could be anywhere.
    pub is_index: bool,
}

impl Repository {
    /// The `.git` of every other repository inside of this checkout, as they were when this was called first. There are
    /// none in worktrees that runs have made.
    #[must_use]
    pub fn find_inner_git_dirs(&self) -> Vec<PathBuf> {
        self.folders_before().git_dirs.clone()
    }

    fn folders_before(&self) -> Arc<FoldersBefore> {
        static FOLDERS_BEFORE: Mutex<BTreeMap<PathBuf, Arc<FoldersBefore>>> = Mutex::new(BTreeMap::new());
        let Some(top) = self.worktree.as_ref().filter(|_| !is_own_git_dir(&self.git_dir)) else {
            return Arc::default();
        };
        let mut known = FOLDERS_BEFORE.hold();
        let found = known.entry(top.clone()).or_insert_with(|| {
            // The scan of a large checkout is not complete.
            let scan = self.scan().filter(|scan| scan.is_complete());
            let mut found =
                scan.map_or_else(|| FoldersBefore::list(top), |scan| FoldersBefore::of(&scan, top));
            let git_dirs = std::mem::take(&mut found.git_dirs).into_iter();
            let (own, others): (Vec<_>, Vec<_>) = git_dirs.partition(|path| self.is_own_link(path));
            (found.own_links, found.git_dirs) = (own.into_iter().collect(), others);
            // An index that cannot be read is reported elsewhere.
            let gitlinks = self.list_gitlinks().unwrap_or_default();
            let git_dirs = found.git_dirs.iter().chain(&found.own_links);
            found.opaque = git_dirs.filter(|git_dir| gitlinks_at(git_dir).is_none()).cloned().collect();
            found.submodules = gitlinks.iter().map(|path| top.join(OsStr::from_bytes(path))).collect();
            Arc::new(found)
        });
        Arc::clone(found)
    }

    /// Takes every repository away that was not there before the first child process, and that no snapshot shows: a `.git`
    /// in a folder with tracked files, anywhere in a submodule or where another repository has a submodule, a folder that
    /// looks like a bare repository, and in other folders that were there before, both of these if they could run something.
    /// git obeys such a repository as soon as it is called in the folder.
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
        let entered = self.find_entered(top, &before);
        for index in &entered.forged {
            let taken = self.take_away(top, index);
            moved.add(taken.map(|taken| PlantedRepository { is_index: true, ..taken }));
        }
        for path in found.git_dirs.iter().filter(|path| !before.git_dirs.contains(path)) {
            let folder = path.parent().unwrap_or(path);
            let inner = folder.strip_prefix(top).unwrap_or(folder);
            let is_own = self.is_own_link(path);
            if is_own && before.own_links.contains(path) {
                continue;
            }
            let could_run = || if is_own { has_inner_gitlink(folder, path) } else { could_run(path) };
            let is_planted = before.is_in_submodule(folder)
                || entered.contains(folder)
                || (before.all.contains(folder) && could_run());
            // git adds the files beside a `.git` that is no repository, and the folder is tracked from then on.
            let is_broken = || Ok::<_, GitError>(!is_repository(path) && !self.is_ignored(inner)?);
            if is_planted || self.is_folder_tracked(inner)? || is_broken()? {
                moved.add(self.take_away(top, path));
            }
        }
        for folder in found.bare.iter().filter(|folder| !before.bare.contains(*folder)) {
            let inner = folder.strip_prefix(top).unwrap_or(folder);
            let is_harmless = || {
                let is_old = before.all.contains(folder);
                let is_planted = before.is_in_submodule(folder) || (is_old && could_run(folder));
                Ok::<_, GitError>(!is_planted && self.is_ignored(inner)?)
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
    pub(in crate::git) fn is_own_link(&self, path: &Path) -> bool {
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
        let kept = kept.map_err(GitError::file(path))?;
        let path = path.strip_prefix(top).unwrap_or(path).to_owned();
        Ok(PlantedRepository { path, kept, link_to: None, is_index: false })
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

    /// The folders in which the other repositories of this checkout have submodules now: `git status` there enters them.
    fn find_entered(&self, top: &Path, before: &FoldersBefore) -> EnteredFolders {
        let mut entered = EnteredFolders::default();
        // The indexes of other worktrees of this repository are watched elsewhere.
        let modules =
            before.own_links.iter().filter(|link| before.submodules.iter().any(|it| link.starts_with(it)));
        for git_dir in before.git_dirs.iter().chain(modules) {
            let folder = git_dir.parent().unwrap_or(git_dir);
            match gitlinks_at(git_dir) {
                Some(paths) => {
                    if !paths.iter().all(|path| is_inner_path(path)) {
                        entered.forged.extend(index_of(git_dir));
                    }
                    let paths = paths.iter().filter(|path| is_inner_path(path));
                    let folders = paths.map(|path| folder.join(OsStr::from_bytes(path)));
                    // git does not follow links on the way to a submodule.
                    entered.folders.extend(folders.filter(|folder| find_link(top, folder).is_none()));
                }
                None if before.opaque.contains(git_dir) => entered.unknown.push(folder.to_owned()),
                None => entered.forged.extend(index_of(git_dir)),
            }
        }
        entered
    }

    /// Whether git ignores a folder. In a submodule, only that could tell.
    fn is_ignored(&self, folder: &Path) -> Result<bool, GitError> {
        let gitlinks = self.list_gitlinks()?;
        if gitlinks.iter().any(|path| folder.starts_with(OsStr::from_bytes(path))) {
            return Ok(false);
        }
        let command = self.git("check-ignore").dir(self.top()).args(["-q", "--"]);
        let ended = command.arg(folder).finish()?;
        match ended.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(GitError::Failed { command: "check-ignore".into(), complaint: ended.complaint() }),
        }
    }

    /// The repositories of a checkout in which a scan would take too long. If it has so many folders that not all of them
    /// are looked at, those that were there before, those in the commit and those that `git add` could add are.
    fn list_without_scan(&self, top: &Path, before: &FoldersBefore) -> Result<FoldersBefore, GitError> {
        let mut found = FoldersBefore::list(top);
        if !found.is_cut {
            return Ok(found);
        }
        let mut more: BTreeSet<PathBuf> = before.all.difference(&found.all).cloned().collect();
        more.extend(self.find_entered(top, before).folders);
        if let Some(commit) = self.head.commit {
            let command = self.git("ls-tree").args(["-r", "-d", "-z", "--name-only", "--full-tree"]);
            let folders = command.arg(commit.to_string()).paths()?;
            more.extend(folders.into_iter().map(|folder| top.join(folder)));
        }
        let command = self.git("ls-files").args(["-z", "--others", "--exclude-standard", "--full-name"]);
        let heads = command.args(["--", ":(top,icase,glob)**/HEAD"]).paths()?;
        more.extend(heads.into_iter().filter_map(|head| Some(top.join(head).parent()?.to_owned())));
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

    /// The folders below `top`, listed without a scan. Neither links nor git directories are entered.
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

    /// Whether a folder is that of a submodule, or in one.
    fn is_in_submodule(&self, folder: &Path) -> bool {
        self.submodules.iter().any(|submodule| folder.starts_with(submodule))
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

/// Folders that git enters because they are submodules of other repositories.
#[derive(Default)]
struct EnteredFolders {
    folders: BTreeSet<PathBuf>,
    /// Repositories whose submodules are unknown, because only git can read their index.
    unknown: Vec<PathBuf>,
    /// Index files with paths that git never writes, or that could be read before and no longer can.
    forged: Vec<PathBuf>,
}

impl EnteredFolders {
    fn contains(&self, folder: &Path) -> bool {
        self.folders.contains(folder) || self.unknown.iter().any(|unknown| folder.starts_with(unknown))
    }
}

/// The paths of submodules in the index of another repository, given its `.git`; `None` if they cannot be read. Its settings
/// say which format its ids have, and may be a child's, so any format will do.
fn gitlinks_at(git_dir: &Path) -> Option<Vec<Vec<u8>>> {
    // Builds may remove repositories that were there before.
    let Some(index) = index_of(git_dir) else { return Some(Vec::new()) };
    let mut formats = [ObjectFormat::Sha1, ObjectFormat::Sha256].into_iter();
    formats.find_map(|format| find_gitlinks(&index, format))
}

/// The index of another repository, given its `.git`; `None` if git finds no repository there.
fn index_of(git_dir: &Path) -> Option<PathBuf> {
    let git_dir = match safe_files::kind_of(git_dir)? {
        FileKind::Folder => git_dir.to_owned(),
        FileKind::Link => git_dir.canonicalize().ok()?,
        FileKind::File | FileKind::Special => find_git_dir(git_dir)?,
    };
    Some(git_dir.join("index"))
}

/// Whether the path of a submodule stays in its worktree. git writes no other path, but obeys it.
#[must_use]
pub fn is_inner_path(path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path)).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a repository has a submodule that is checked out, or that cannot be told.
fn has_inner_gitlink(folder: &Path, git_dir: &Path) -> bool {
    let is_there =
        |path: &Vec<u8>| folder.join(OsStr::from_bytes(path)).join(".git").symlink_metadata().is_ok();
    gitlinks_at(git_dir).is_none_or(|paths| paths.iter().any(is_there))
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
pub(in crate::git) fn looks_bare(folder: &Path) -> bool {
    let is_there = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    BARE.iter().any(|names| names.iter().all(is_there))
}

/// Whether git would run something that a git directory contains, or look into a submodule of it.
pub(in crate::git) fn could_run(git_dir: &Path) -> bool {
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
        || gitlinks_at(git_dir).is_none_or(|paths| !paths.is_empty())
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
pub(in crate::git) fn is_worktree_link(common_dir: &Path, path: &Path) -> bool {
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
pub(in crate::git) fn leads_into(link: &Path, git_dir: &Path) -> bool {
    find_git_dir(link).is_some_and(|target| target.starts_with(safe_files::resolved(git_dir)))
}

/// The folder that a `.git` file names, without links.
fn find_git_dir(link: &Path) -> Option<PathBuf> {
    let content = safe_files::read(link).ok()?;
    let named = content.strip_prefix(b"gitdir: ")?;
    link.parent()?.join(OsStr::from_bytes(named.trim_ascii_end())).canonicalize().ok()
}

/// Whether the git directory of a worktree leads to the repository that it is in. git writes this file after the folder.
pub(in crate::git) fn has_own_commondir(git_dir: &Path) -> bool {
    match safe_files::read(&git_dir.join("commondir")) {
        Ok(named) => named.trim_ascii_end() == b"../..",
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
