//! Scripts in a worktree that git or a reviewer runs. A task must not change them: git runs them outside of the sandbox,
//! and a reviewer judges the task.
//!
//! A script is found by the words of a command. A word names a file from the top of the worktree or from a folder that
//! another word of the same command names (`cd ci && sh clean.sh`). Of an absolute path, and of one that begins with a
//! variable, the longest end that exists in the worktree counts (`$PWD/ci/clean.sh`).

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use super::around::expanded;
use crate::{
    git::plain_path,
    process::is_in_checkout,
    safe_files::{self, FileKind},
};

/// How many folders of one command are searched.
const MAX_FOLDERS: usize = 8;
/// How many links a path may lead through, as in Linux.
const MAX_LINKS: usize = 40;

/// The words of commands that git or a reviewer runs.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct CommandWords {
    words: Vec<BTreeSet<String>>,
    /// Files and folders in which the programs look for settings, if they run in the checkout of a task.
    pub(super) settings: BTreeSet<&'static str>,
}

/// Where a path in a worktree leads.
struct Trail {
    /// The links on the way.
    links: Vec<PathBuf>,
    /// The path without links; `None` if it is outside of the worktree.
    end: Option<PathBuf>,
}

impl CommandWords {
    /// Adds the parts of one command. A program without a slash is found on `PATH`, so that it is no file of a worktree.
    pub(in crate::pipeline) fn add<'t>(&mut self, parts: impl Iterator<Item = &'t str>) {
        let words: Vec<&str> = parts.flat_map(words_of).collect();
        let program = words.first().filter(|program| !program.contains('/'));
        let files = words.iter().filter(|word| Some(*word) != program);
        let words: BTreeSet<String> = files.map(|word| (*word).to_owned()).collect();
        if !words.is_empty() && !self.words.contains(&words) {
            self.words.push(words);
        }
    }

    /// The files in the worktree `top` that the words name, and links that lead to them. Files that do not exist are
    /// included if a command names them by a relative path.
    pub(in crate::pipeline) fn files_in(&self, top: &Path) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        for words in &self.words {
            let folders = folders_in(top, words);
            for word in words.iter().filter(|word| !word.starts_with('-')) {
                found.extend(files_of(top, &folders, word));
            }
        }
        found
    }

    /// The files below `top`, a checkout of the user, that the words name by their full path.
    pub(super) fn full_paths_in(&self, top: &Path) -> BTreeSet<PathBuf> {
        let words = self.words.iter().flatten().map(Path::new).filter(|word| word.is_absolute());
        let real = |word: &Path| safe_files::resolved(&plain_path(word));
        let is_inside = |path: &PathBuf| {
            let inner = path.strip_prefix(top);
            inner.is_ok_and(|inner| inner != Path::new("") && !inner.starts_with(".git"))
        };
        words.map(real).filter(is_inside).filter(|path| is_file(path)).collect()
    }
}

/// What the path `path` below `top` leads to: links, and the file itself.
pub(super) fn trail_of(top: &Path, path: &Path) -> Vec<PathBuf> {
    let Trail { links, end } = follow(top, path);
    links.into_iter().chain(end).collect()
}

/// The words of a command that could be paths: what is between spaces, between quotation marks, and all of it.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "'\"();|&<>=`{}[],\\!".contains(c);
    let words = text.split(is_between).chain(text.split(['\'', '"'])).chain([text]);
    words.map(str::trim).filter(|word| !word.is_empty() && *word != "." && *word != "/")
}

/// The folders that a command may change to: the top, and those that its words name.
fn folders_in(top: &Path, words: &BTreeSet<String>) -> Vec<PathBuf> {
    let mut folders = vec![top.to_owned()];
    // The second round finds folders in those of the first.
    for _ in 0..2 {
        for folder in folders.clone() {
            for end in words.iter().flat_map(|word| ends_of(word)) {
                let found = follow(top, &plain_path(&folder.join(end))).end;
                let found = found.filter(|path| safe_files::kind_of(path) == Some(FileKind::Folder));
                let new = found.filter(|path| !folders.contains(path) && folders.len() < MAX_FOLDERS);
                folders.extend(new);
            }
        }
    }
    folders
}

/// The files that a word names.
fn files_of(top: &Path, folders: &[PathBuf], word: &str) -> BTreeSet<PathBuf> {
    let in_folders = |end: &PathBuf| {
        let paths = folders.iter().map(|folder| plain_path(&folder.join(end)));
        let trails = paths.map(|path| follow(top, &path));
        let there = trails.filter(|trail| trail.end.as_deref().map_or(!trail.links.is_empty(), is_file));
        there.flat_map(|trail| trail.links.into_iter().chain(trail.end)).collect::<BTreeSet<PathBuf>>()
    };
    let ends = ends_of(word);
    let found = ends.iter().map(in_folders).find(|found| !found.is_empty());
    let is_relative = Path::new(word).is_relative() && !word.starts_with(['$', '~', '%']);
    let missing = || ends.first().filter(|_| is_relative).map(|end| follow(top, &top.join(end)));
    found.unwrap_or_else(|| {
        let missing = missing().and_then(|trail| trail.end);
        missing.filter(|path| safe_files::kind_of(path).is_none()).into_iter().collect()
    })
}

/// The paths from a folder that a word may mean, the longest first.
fn ends_of(word: &str) -> Vec<PathBuf> {
    let path = &expanded(word);
    let is_plain = path.is_relative() && !word.contains(['$', '~', '%']);
    if is_plain {
        return vec![path.to_owned()];
    }
    // This is another file, whatever the worktree contains.
    if path.is_absolute() && safe_files::kind_of(path).is_some() && !is_in_checkout(path) {
        return Vec::new();
    }
    let names: Vec<Component<'_>> =
        path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    (0..names.len()).map(|from| names[from..].iter().collect()).collect()
}

fn is_file(path: &Path) -> bool {
    matches!(safe_files::kind_of(path), Some(FileKind::File | FileKind::Link))
}

/// Follows all links of a path below `top`.
fn follow(top: &Path, path: &Path) -> Trail {
    let reversed = |path: &Path| {
        let mut names: Vec<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
        names.reverse();
        names
    };
    let mut links = Vec::new();
    let Ok(inner) = path.strip_prefix(top) else { return Trail { links, end: None } };
    if inner.starts_with(".git") {
        return Trail { links, end: None };
    }
    let (mut at, mut open) = (top.to_owned(), reversed(inner));
    while let Some(name) = open.pop() {
        let next = plain_path(&at.join(name));
        let target = std::fs::read_link(&next).ok();
        let Some(target) = target else {
            at = next;
            continue;
        };
        links.push(next);
        if target.is_absolute() {
            let Ok(inner) = target.strip_prefix(top) else { return Trail { links, end: None } };
            at = top.to_owned();
            open.extend(reversed(inner));
        } else {
            open.extend(reversed(&target));
        }
        if links.len() > MAX_LINKS {
            return Trail { links, end: None };
        }
    }
    let is_inside = at != top && at.starts_with(top);
    Trail { links, end: Some(at).filter(|_| is_inside) }
}
