//! Links, queues and devices in git directories. Git writes through a link that has the name of a log or of a ref, and
//! waits for ever at a queue, so those that a child process planted are gone before git is asked anything.
//!
//! Caches that git believes without a check are watched here, too: they answer what the parents of a commit are.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::surface;
use crate::{
    git,
    message::visible,
    safe_files::{self, ChangeStamp, FileKind, FolderEntry, StampedName},
};

/// What git reads and writes in a git directory, with everything below. What lies at its top is always looked at; other
/// folders there belong to other programs, or are watched by themselves.
const FOLDERS: [&str; 9] =
    ["logs", "refs", "reftable", "info", "branches", "remotes", "rebase-merge", "rebase-apply", "sequencer"];
/// Git's own watcher of files listens here.
const LISTENER: &str = "fsmonitor--daemon.ipc";

/// What is known of the git directories of a repository.
#[derive(Debug)]
pub(super) struct Links {
    common_dir: PathBuf,
    /// Those that are the user's.
    known: BTreeSet<PathBuf>,
    /// Folders of objects in which there was nothing new at that time.
    seen: HashMap<PathBuf, HashMap<OsString, ChangeStamp>>,
    caches: BTreeMap<PathBuf, ChangeStamp>,
    /// What was in the folder of objects at the last walk.
    objects: Vec<StampedName>,
}

/// What a walk found.
#[derive(Debug, Default)]
struct Found {
    odd: Vec<PathBuf>,
    /// Folders where git keeps a file, files where it keeps a folder, and files that are far too large.
    misplaced: Vec<PathBuf>,
    caches: BTreeMap<PathBuf, ChangeStamp>,
    /// The git directory that is looked at.
    git_dir: PathBuf,
}

impl Links {
    /// A child process begins. Links stay known from the first one on: one that could not be removed is never the user's.
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
        let Found { odd, misplaced, caches, .. } = links.walk();
        (links.known, links.caches) = (odd.into_iter().chain(misplaced).collect(), caches);
        links
    }

    /// What is in the folder of objects, as it was found when those that are new were removed.
    pub(super) fn objects(&self) -> &[StampedName] {
        &self.objects
    }

    /// Removes those that are new, and caches that are not as they were, and names them.
    pub(super) fn remove_new(&mut self) -> Vec<String> {
        let Found { odd, misplaced, caches, .. } = self.walk();
        let misplaced: Vec<PathBuf> =
            misplaced.into_iter().filter(|path| !self.known.contains(path)).collect();
        let moved: Vec<String> = misplaced.iter().map(|path| self.move_aside(path)).collect();
        let odd = odd.into_iter().filter(|path| !self.known.contains(path));
        let mut words: Vec<String> = odd
            .map(|path| self.remove(&path, "became a link, a queue or a device while it ran, and is removed"))
            .collect();
        for path in
            caches.iter().filter(|(path, stamp)| self.caches.get(*path) != Some(stamp)).map(|(path, _)| path)
        {
            words.push(self.remove(path, "was written while it ran, and is removed: git can make it again"));
        }
        self.caches.retain(|path, stamp| caches.get(path) == Some(stamp));
        words.extend(moved);
        words
    }

    /// Somebody's work may be in it.
    fn move_aside(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.common_dir).unwrap_or(path).to_string_lossy();
        let shown = visible(&shown);
        match git::move_aside(&self.common_dir, path) {
            Ok(kept) => format!(
                "{shown} became something that git does not keep there: it is kept in {}",
                kept.display()
            ),
            Err(error) => format!(
                "{shown} became something that git does not keep there, and could not be moved: {error}"
            ),
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

    /// Only the caches, which the user's own git may have written since the last child ended. To walk through everything
    /// costs a look at each folder of objects, and what is odd there is known since the first child.
    fn find_caches(&self) -> BTreeMap<PathBuf, ChangeStamp> {
        let mut found = Found::default();
        for git_dir in surface::modules(&self.common_dir).iter().chain([&self.common_dir]) {
            for folder in ["info", "pack"] {
                found.take_all(&git_dir.join("objects").join(folder));
            }
        }
        found.caches
    }

    fn walk(&mut self) -> Found {
        let mut found = Found::default();
        let mut open = vec![self.common_dir.clone()];
        while let Some(git_dir) = open.pop() {
            found.git_dir.clone_from(&git_dir);
            for folder in found.take(list(&git_dir)) {
                match folder.file_name().and_then(|name| name.to_str()) {
                    Some("objects") => self.walk_objects(&folder, &mut found),
                    Some("worktrees") => open.extend(found.take(list(&folder))),
                    Some("modules") => open.extend(surface::modules(&git_dir)),
                    Some(name) if FOLDERS.contains(&name) => found.take_all(&folder),
                    _ => {}
                }
            }
        }
        found.odd.sort();
        found.odd.dedup();
        found
    }

    /// Objects are many, so folders of them are only listed again once something in them has changed.
    fn walk_objects(&mut self, objects: &Path, found: &mut Found) {
        let seen = self.seen.entry(objects.to_owned()).or_default();
        let listed = safe_files::list_stamps(objects).unwrap_or_default();
        for (name, kind, stamp) in &listed {
            let is_listed_always = name == "info" || name == "pack";
            if *kind == FileKind::Folder && !is_listed_always && seen.get(name) == Some(stamp) {
                continue;
            }
            // This is asked before the look: what comes after the look must have another time.
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

impl Found {
    /// Takes in what is in a folder, and gives the folders in it.
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
                FileKind::Special if path.ends_with(LISTENER) => {}
                FileKind::Link | FileKind::Special => self.odd.push(path),
                FileKind::File if is_cache(&path) => {
                    self.caches.extend(stamp_of(&path).map(|stamp| (path, stamp)));
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

/// Whether git takes from here what commits and packs hold, without looking at them.
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

fn list(folder: &Path) -> Vec<FolderEntry> {
    safe_files::list_kinds(folder).unwrap_or_default()
}

fn stamp_of(path: &Path) -> Option<ChangeStamp> {
    path.symlink_metadata().ok().map(|found| ChangeStamp::of(&found))
}
