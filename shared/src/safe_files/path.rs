//! Paths inside of an [`Enclosure`](super::Enclosure): plain names only, and none that belongs to git.

use std::{fmt, str::FromStr};

use super::folder::EnclosureError;

/// The longest path, in bytes.
const LONGEST_PATH: usize = 4096;

/// Code points that some file systems ignore when they compare names.
const IGNORED: [std::ops::RangeInclusive<char>; 4] =
    ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];

/// A path to a file below the top, as a list of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath {
    folders: Vec<String>,
    leaf: String,
}

impl InnerPath {
    /// The folders of the file.
    pub(super) fn folders(&self) -> &[String] {
        &self.folders
    }

    /// The name of the file.
    pub(super) fn leaf(&self) -> &str {
        &self.leaf
    }

    /// Whether it is this folder or below it. Names that differ only in case may be the same.
    pub(super) fn is_below(&self, folder: &Self) -> bool {
        let names = |path: &Self| -> Vec<String> { path.names().map(str::to_lowercase).collect() };
        names(self).starts_with(&names(folder))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(String::as_str).chain([self.leaf.as_str()])
    }
}

impl FromStr for InnerPath {
    type Err = EnclosureError;

    fn from_str(path: &str) -> Result<Self, EnclosureError> {
        let refused = |why: &'static str| EnclosureError::new(path, why);
        if path.starts_with('/') {
            return Err(refused("is an absolute path, but must be relative to the top of the repository"));
        }
        if path.contains('\0') || path.len() > LONGEST_PATH {
            return Err(refused("is not a path"));
        }
        if path.ends_with('/') {
            return Err(refused("names a folder, not a file"));
        }
        let mut folders = Vec::new();
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if name == ".." {
                return Err(refused("leads out of the repository"));
            }
            if is_gits(name) {
                return Err(refused("belongs to git itself"));
            }
            folders.push(name.to_owned());
        }
        let leaf = folders.pop().ok_or_else(|| refused("names no file"))?;
        Ok(Self { folders, leaf })
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join("/"))
    }
}

/// Whether some file system treats this name as `.git`.
fn is_gits(name: &str) -> bool {
    let is_seen = |c: &char| !IGNORED.iter().any(|range| range.contains(c));
    let folded: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    folded == ".git" || folded == "git~1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_inside_the_enclosure_are_accepted() {
        let table = [("a", "a"), ("a/b.rs", "a/b.rs"), ("./a//b", "a/b"), (".github/x.yml", ".github/x.yml")];
        for (given, path) in table {
            assert_eq!(given.parse::<InnerPath>().unwrap().to_string(), path);
        }
        let refused = [
            "",
            ".",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a/..",
            "a/",
            "a\0b",
            ".git",
            ".git/config",
            "sub/.git/hooks/x",
            ".GIT/config",
            ".g\u{200c}it/config",
            "git~1/config",
            "\u{feff}.git",
        ];
        for given in refused {
            assert!(given.parse::<InnerPath>().is_err(), "{given:?}");
        }
        assert!("x".repeat(5000).parse::<InnerPath>().is_err());
    }

    #[test]
    fn is_below_ignores_upper_and_lower_case() {
        let path = |text: &str| text.parse::<InnerPath>().unwrap();
        assert!(path("Hooks/pre-commit").is_below(&path("hooks")));
        assert!(path("hooks").is_below(&path("hooks")));
        assert!(!path("hooks2/x").is_below(&path("hooks")));
    }
}
