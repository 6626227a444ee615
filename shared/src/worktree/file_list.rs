//! A list of untracked files, as they were when no child process could have written them.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use crate::safe_files::{self, Facts, FileKind};

/// Files, links and directories by their paths from the top of a worktree.
#[derive(Debug, Clone, Default)]
pub(super) struct FileList(BTreeMap<PathBuf, Facts>);

impl FileList {
    /// Lists these paths and everything below them. Links are not followed.
    pub(super) fn scan(top: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut open = Vec::new();
        for path in paths {
            // Git marks directories by a trailing slash.
            let path: PathBuf = path.components().collect();
            let Some(facts) = safe_files::look_at(&top.join(&path)) else { continue };
            if facts.kind == FileKind::Folder {
                open.push(path.clone());
            }
            found.insert(path, facts);
        }
        while let Some(folder) = open.pop() {
            safe_files::visit_facts(&top.join(&folder), |name, facts| {
                let path = folder.join(name);
                if facts.kind == FileKind::Folder {
                    open.push(path.clone());
                }
                found.insert(path, *facts);
                Some(())
            })?;
        }
        Ok(Self(found))
    }

    /// Whether one of them was changed so recently that another change might leave no trace.
    pub(super) fn is_fresh(&self) -> bool {
        self.0.values().any(|facts| facts.kind != FileKind::Folder && facts.stamp.is_fresh())
    }

    /// The entries at a path and below it, directories before their content.
    pub(super) fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Facts)> {
        let rest = self.0.range(path.to_owned()..).take_while(move |(found, _)| found.starts_with(path));
        rest.map(|(path, facts)| (path.as_path(), facts))
    }

    /// All entries, directories before their content.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Facts)> {
        self.0.iter().map(|(path, facts)| (path.as_path(), facts))
    }

    /// Whether the list has this path in this state.
    pub(super) fn has(&self, path: &Path, facts: &Facts) -> bool {
        self.0.get(path).is_some_and(|known| is_same(known, facts))
    }
}

/// Whether a file has not been written since. Directories are always the same, because their content is listed itself.
pub(super) fn is_same(before: &Facts, now: &Facts) -> bool {
    before.kind == now.kind && (now.kind == FileKind::Folder || before.stamp == now.stamp)
}
