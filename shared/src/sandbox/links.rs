//! Resolves the links in the paths of folders that are granted to children.

use std::{
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::safe_files;

/// How many links a path may contain, as in the kernel.
const MAX_LINKS: usize = 40;

/// Folders that children may write to. A link in one of them may come from a child, and would open whatever it leads to.
#[derive(Debug, Default)]
pub(super) struct WritableFolders(Vec<PathBuf>);

impl WritableFolders {
    /// Each of them counts by its name, and by what it leads to now.
    pub(super) fn new(folders: impl Iterator<Item = PathBuf>) -> Self {
        Self(folders.flat_map(|folder| [safe_files::resolved(&folder), folder]).collect())
    }

    fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|folder| path.starts_with(folder))
    }

    /// Follows the links in `path` that the user made. `None` if there is a link that a child may have made. The end of the
    /// path may be missing.
    pub(super) fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut found = PathBuf::from("/");
        let mut rest = parts(path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.to_str() {
                Some("/") => found = PathBuf::from("/"),
                Some("..") => drop(found.pop()),
                _ => match fs::read_link(found.join(&part)) {
                    Ok(_) if self.contains(&found) || links == MAX_LINKS => return None,
                    Ok(target) => {
                        links += 1;
                        rest.extend(parts(&target));
                    }
                    Err(_) => found.push(part),
                },
            }
        }
        Some(found)
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_links_outside_of_writable_folders_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let path = |name: &str| real.join(name);
        for folder in ["home", "data/cache", "data/state", "shared"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        symlink("../data/cache", path("home/.cache")).unwrap();
        symlink(path("home"), path("data/cache/planted")).unwrap();
        symlink(path("data/cache/planted"), path("home/indirect")).unwrap();
        let writable = WritableFolders::new([path("home/.cache")].into_iter());
        let resolve = |name: &str| writable.resolve(&path(name));
        assert_eq!(resolve("home/.cache"), Some(path("data/cache")));
        assert_eq!(resolve("home/.cache/pip/new"), Some(path("data/cache/pip/new")));
        assert_eq!(resolve("home/.cache/planted"), None);
        assert_eq!(resolve("home/.cache/planted/.ssh"), None);
        assert_eq!(resolve("home/indirect"), None);
        assert_eq!(WritableFolders::default().resolve(&path("home/indirect")), Some(path("home")));
    }
}
