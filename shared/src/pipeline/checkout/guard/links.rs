//! Finds symbolic links, named pipes and devices in git directories. Git writes through a link that has the name of a
//! ref or log, and waits forever for a named pipe, so those that a child planted are removed before any git command
//! runs. Git also writes through a hard link where it does not replace a file but appends to it, so those are replaced
//! by copies.
//!
//! Caches that git trusts without a check, such as the commit graph, are watched here, too: they can lie about the
//! parents of a commit.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use crate::{
    git::{self, find_module_dirs},
    message::visible,
    safe_files::{self, ChangeStamp, FileKind, FolderEntry, StampedName},
};

/// Folders that git reads and writes in a git directory, searched with everything below. The top of a git directory is
/// always searched; other folders there belong to other programs or are watched elsewhere.
const FOLDERS: [&str; 9] =
    ["logs", "refs", "reftable", "info", "branches", "remotes", "rebase-merge", "rebase-apply", "sequencer"];
/// The socket of git's file system monitor, which is legitimate.
const FSMONITOR_SOCKET: &str = "fsmonitor--daemon.ipc";

/// What is known about the git directories of a repository.
#[derive(Debug)]
pub(super) struct Links {
    common_dir: PathBuf,
    /// Links and special files that belong to the user.
    known: BTreeSet<PathBuf>,
    /// Object folders in which nothing was odd, with their stamps at that time.
    seen: HashMap<PathBuf, HashMap<OsString, ChangeStamp>>,
    caches: BTreeMap<PathBuf, ChangeStamp>,
    /// The entries of the object folder at the last walk.
    objects: Vec<StampedName>,
}

/// The result of a walk.
#[derive(Debug, Default)]
struct LinkScan {
    odd: Vec<PathBuf>,
    /// Folders where git keeps a file, files where it keeps a folder, and files that are far too large.
    misplaced: Vec<PathBuf>,
    /// Files that git writes in place, and that have another name elsewhere.
    hard_links: Vec<PathBuf>,
    caches: BTreeMap<PathBuf, ChangeStamp>,
    /// The git directory that is searched now.
    git_dir: PathBuf,
}

impl Links {
    /// A child begins. Links are known from the first child on, so that one that could not be removed never becomes the
    /// user's.
    pub(super) fn begin(common_dir: &Path, before: Option<Self>) -> Self {
        if let Some(mut before) = before.filter(|before| before.common_dir == common_dir) {
            before.caches = before.find_caches();
            return before;
        }
        let mut links = Self {
            common_dir: common_dir.to_owned(),
            known: BTreeSet::new(),
            seen: HashMap::new(),
            caches: BTreeMap::new(),
            objects: Vec::new(),
        };
        let LinkScan { odd, misplaced, hard_links, caches, .. } = links.walk();
        (links.known, links.caches) = (odd.into_iter().chain(misplaced).collect(), caches);
        // A copy of the repository that was made with `cp -l` shares such files. They are separated now, because later
        // it would not be known who linked them.
        hard_links.iter().for_each(|path| drop(safe_files::separate(path)));
        links.known.extend(hard_links.into_iter().filter(|path| safe_files::is_hard_link(path)));
        links
    }

    /// The entries of the object folder, as found by the last [`Self::remove_new`].
    pub(super) fn objects(&self) -> &[StampedName] {
        &self.objects
    }

    /// Removes new links and special files, and returns messages about them. Changed caches are removed, too.
    pub(super) fn remove_new(&mut self) -> Vec<String> {
        let LinkScan { odd, misplaced, hard_links, caches, .. } = self.walk();
        let misplaced: Vec<PathBuf> =
            misplaced.into_iter().filter(|path| !self.known.contains(path)).collect();
        let moved: Vec<String> = misplaced.iter().map(|path| self.move_aside(path)).collect();
        let odd = odd.into_iter().filter(|path| !self.known.contains(path));
        let mut words: Vec<String> = odd
            .map(|path| {
                self.remove(
                    &path,
                    "was replaced by a link, a FIFO or a device while an agent or a command ran, and is removed",
                )
            })
            .collect();
        let hard_links = hard_links.iter().filter(|path| !self.known.contains(*path));
        words.extend(hard_links.map(|path| self.separate(path)));
        // The user's git may have written it just as well: `git maintenance` does so every hour. It can create it again.
        for (path, _) in caches.iter().filter(|(path, stamp)| self.caches.get(*path) != Some(stamp)) {
            if safe_files::remove(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                words.push(self.move_aside(path));
            }
        }
        self.caches.retain(|path, stamp| caches.get(path) == Some(stamp));
        words.extend(moved);
        words
    }

    /// Moves a file or folder instead of removing it, because it may contain work.
    fn move_aside(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.common_dir).unwrap_or(path).to_string_lossy();
        let shown = visible(&shown);
        match git::move_aside(&self.common_dir, path) {
            Ok(kept) => {
                format!("{shown} was replaced by something unexpected: it is kept in {}", kept.display())
            }
            Err(error) => {
                format!("{shown} was replaced by something unexpected, and could not be moved: {error}")
            }
        }
    }

    fn separate(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.common_dir).unwrap_or(path).to_string_lossy();
        let what = format!("{} became a hard link while an agent or a command ran", visible(&shown));
        match safe_files::separate(path) {
            Ok(()) => format!("{what}, and is replaced by a copy"),
            Err(_) => format!("{what}; {}", self.move_aside(path)),
        }
    }

    fn remove(&self, path: &Path, what: &str) -> String {
        let shown = path.strip_prefix(&self.common_dir).unwrap_or(path).to_string_lossy();
        let shown = visible(&shown);
        match safe_files::remove(path) {
            Ok(()) => format!("{shown} {what}"),
            Err(error) => format!("{shown} {what}, but that failed: {error}"),
        }
    }

    /// Finds only the caches, which the user's own git may have written since the last child ended. A full walk would
    /// list every object folder, and anything odd there is known since the first child.
    fn find_caches(&self) -> BTreeMap<PathBuf, ChangeStamp> {
        let mut found = LinkScan::default();
        for git_dir in find_module_dirs(&self.common_dir).iter().chain([&self.common_dir]) {
            for folder in ["info", "pack"] {
                found.take_all(&git_dir.join("objects").join(folder));
            }
        }
        found.caches
    }

    fn walk(&mut self) -> LinkScan {
        let mut found = LinkScan::default();
        let mut open = vec![self.common_dir.clone()];
        while let Some(git_dir) = open.pop() {
            found.git_dir.clone_from(&git_dir);
            for folder in found.take(list(&git_dir)) {
                match folder.file_name().and_then(|name| name.to_str()) {
                    Some("objects") => self.walk_objects(&folder, &mut found),
                    Some("worktrees") => open.extend(found.take(list(&folder))),
                    Some("modules") => open.extend(find_module_dirs(&git_dir)),
                    Some(name) if FOLDERS.contains(&name) => found.take_all(&folder),
                    _ => {}
                }
            }
        }
        found.odd.sort();
        found.odd.dedup();
        found
    }

    /// There are many objects, so their folders are listed again only if they have changed.
    fn walk_objects(&mut self, objects: &Path, found: &mut LinkScan) {
        let seen = self.seen.entry(objects.to_owned()).or_default();
        let listed = safe_files::list_stamps(objects).unwrap_or_default();
        for (name, kind, stamp) in &listed {
            let is_listed_always = name == "info" || name == "pack";
            if *kind == FileKind::Folder && !is_listed_always && seen.get(name) == Some(stamp) {
                continue;
            }
            // Asked before the folder is read, so that anything written later has another time.
            let is_fresh = stamp.is_fresh();
            for folder in found.take(vec![FolderEntry { path: objects.join(name), kind: *kind }]) {
                let before = found.odd.len();
                if is_listed_always {
                    found.take_all(&folder);
                    continue;
                }
                found.take(list(&folder));
                seen.remove(name);
                if found.odd.len() == before && !is_fresh {
                    seen.insert(name.clone(), *stamp);
                }
            }
        }
        if objects.parent() == Some(&self.common_dir) {
            self.objects = listed;
        }
    }
}

impl LinkScan {
    /// Adds the entries of a folder, and returns the folders among them.
    fn take(&mut self, entries: Vec<FolderEntry>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for FolderEntry { path, kind } in entries {
            let inner = path.strip_prefix(&self.git_dir).unwrap_or(&path);
            if git::is_misplaced(&self.git_dir, inner, kind) {
                self.misplaced.push(path);
                continue;
            }
            match kind {
                FileKind::Folder => folders.push(path),
                FileKind::Special if path.ends_with(FSMONITOR_SOCKET) => {}
                FileKind::Link | FileKind::Special => self.odd.push(path),
                FileKind::File if is_cache(&path) => {
                    self.caches.extend(ChangeStamp::at(&path).map(|stamp| (path, stamp)));
                }
                FileKind::File if is_written_in_place(inner) && safe_files::is_hard_link(&path) => {
                    self.hard_links.push(path);
                }
                FileKind::File => {}
            }
        }
        folders
    }

    fn take_all(&mut self, folder: &Path) {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            open.extend(self.take(list(&folder)));
        }
    }
}

/// Whether git trusts this file about the content of commits or packs.
fn is_cache(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let folder =
        path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy()).unwrap_or_default();
    match &*folder {
        "info" => name == "commit-graph",
        "commit-graphs" => !name.ends_with(".lock"),
        "pack" => name.starts_with("multi-pack-index") && !name.ends_with(".lock"),
        "multi-pack-index.d" => !name.ends_with(".lock"),
        _ => false,
    }
}

/// Whether git appends to this file or overwrites it, instead of replacing it by a new one. `path` is relative to the
/// git directory.
fn is_written_in_place(path: &Path) -> bool {
    let names: Option<Vec<&str>> = path.iter().map(|name| name.to_str()).collect();
    match names.unwrap_or_default()[..] {
        ["logs" | "rebase-merge" | "rebase-apply" | "sequencer", ..] => true,
        // FETCH_HEAD, COMMIT_EDITMSG, MERGE_MSG, BISECT_LOG and others; the rest is of linked worktrees.
        [name] => {
            name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                || ["commondir", "gitdir", "locked"].contains(&name)
        }
        _ => false,
    }
}

fn list(folder: &Path) -> Vec<FolderEntry> {
    safe_files::list_kinds(folder).unwrap_or_default()
}
