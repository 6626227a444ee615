//! Symbolic links in a tree, and the names that a file has through them.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::{
    git::{GitError, Repository, TreeChange},
    mutex::MutexExt,
    name::Oid,
};

/// The mode of a link.
const LINK: u32 = 0o120_000;
/// How many links in a row are followed.
const MAX_LEVELS: usize = 4;
/// How many names of one file are looked at.
const MAX_NAMES: usize = 100;
/// How many files behind a link are looked at if the link itself has changed.
const MAX_BEHIND: usize = 10_000;
/// How many trees have their links cached.
const MAX_CACHED: usize = 16;

/// A link in a tree that leads to a path in the same tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrackedLink {
    path: Vec<u8>,
    /// From the top; empty for the top itself.
    target: Vec<u8>,
}

/// The links of one tree.
#[derive(Debug, Clone, Default)]
pub struct TrackedLinks(Arc<Vec<TrackedLink>>);

type LinkCache = HashMap<(PathBuf, Oid), TrackedLinks>;

impl Repository {
    /// The links in a tree that lead to a path inside of it.
    pub fn list_links_of(&self, tree: Oid) -> Result<TrackedLinks, GitError> {
        static LINKS: Mutex<Option<LinkCache>> = Mutex::new(None);
        let key = (self.common_dir.clone(), tree);
        let mut known = LINKS.hold();
        let known = known.get_or_insert_default();
        if let Some(links) = known.get(&key) {
            return Ok(links.clone());
        }
        let mut links = Vec::new();
        for (path, blob) in self.list_files_of_mode(tree, LINK)? {
            let target = self.find_blob(blob)?.unwrap_or_default();
            links.extend(target_of(&path, &target).map(|target| TrackedLink { path, target }));
        }
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        let links = TrackedLinks(Arc::new(links));
        known.insert(key, links.clone());
        Ok(links)
    }

    /// The names that a changed file has through links of the tree `from`, without its own path. If it is a link itself,
    /// the files behind it are included.
    pub fn linked_names(
        &self,
        from: Oid,
        links: &TrackedLinks,
        change: &TreeChange,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let mut own = BTreeSet::from([change.path.clone()]);
        if let Some(link) = links.0.iter().find(|link| link.path == change.path) {
            own.extend(self.files_behind(from, links, link)?);
        }
        let mut names = links.names_of(own);
        names.remove(&change.path);
        Ok(names)
    }

    /// The names of the files in the folder that a link leads to.
    fn files_behind(
        &self,
        tree: Oid,
        links: &TrackedLinks,
        link: &TrackedLink,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let folder = links.resolve(&link.target);
        let Some(found) = self.find_entry(tree, &folder)? else { return Ok(Vec::new()) };
        let Ok(files) = self.changes(self.empty_tree()?, found) else { return Ok(Vec::new()) };
        let names = files.iter().take(MAX_BEHIND).map(|file| joined(&link.path, &file.path));
        Ok(names.collect())
    }
}

impl TrackedLinks {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These names, and all others that they have through links.
    fn names_of(&self, mut names: BTreeSet<Vec<u8>>) -> BTreeSet<Vec<u8>> {
        let mut last = names.clone();
        let most = names.len() + MAX_NAMES;
        for _ in 0..MAX_LEVELS {
            let more = last.iter().flat_map(|name| self.0.iter().filter_map(|link| link.name_through(name)));
            let more: BTreeSet<Vec<u8>> = more.filter(|name| !names.contains(name)).collect();
            names.extend(more.iter().take(most.saturating_sub(names.len())).cloned());
            last = more;
        }
        names
    }

    /// The path without links.
    fn resolve(&self, path: &[u8]) -> Vec<u8> {
        let mut path = path.to_vec();
        for _ in 0..MAX_LEVELS {
            let through = |link: &TrackedLink| Some(joined(&link.target, rest_of(&link.path, &path)?));
            let Some(next) = self.0.iter().find_map(through) else { break };
            path = next;
        }
        path
    }
}

impl TrackedLink {
    /// The name of a file through this link.
    fn name_through(&self, name: &[u8]) -> Option<Vec<u8>> {
        if rest_of(&self.path, name).is_some() {
            return None;
        }
        rest_of(&self.target, name).map(|rest| joined(&self.path, rest))
    }
}

/// The part of a path below a folder, which is empty for the folder itself.
fn rest_of<'p>(folder: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    if folder.is_empty() {
        return Some(path);
    }
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"/") }
}

fn joined(folder: &[u8], rest: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = [folder, rest].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(b"/".as_slice())
}

/// Where a link leads, from the top; `None` if that is not inside.
fn target_of(path: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    names.pop();
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join(b"/".as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(list: &[(&str, &str)]) -> TrackedLinks {
        let link = |(path, target): &(&str, &str)| TrackedLink {
            path: path.as_bytes().to_vec(),
            target: target_of(path.as_bytes(), target.as_bytes()).unwrap(),
        };
        TrackedLinks(Arc::new(list.iter().map(link).collect()))
    }

    #[test]
    fn a_file_has_one_name_through_each_tracked_link() {
        let links = links(&[("tests", "spec"), ("a/b", "../tests"), ("loop", "."), ("other", "elsewhere")]);
        let names = links.names_of(BTreeSet::from([b"spec/x".to_vec()]));
        for name in ["spec/x", "tests/x", "a/b/x", "loop/tests/x"] {
            assert!(names.contains(name.as_bytes()), "{name}");
        }
        assert!(!names.iter().any(|name| name.starts_with(b"other")));
        assert_eq!(links.resolve(b"a/b/x"), b"spec/x");
    }

    #[test]
    fn links_out_of_the_repository_are_ignored() {
        assert_eq!(target_of(b"a/b", b"../c"), Some(b"c".to_vec()));
        assert_eq!(target_of(b"a", b"../c"), None);
        assert_eq!(target_of(b"a", b"/c"), None);
    }
}
