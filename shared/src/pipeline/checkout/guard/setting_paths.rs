//! The paths of files that settings name, as git resolves them.

use std::path::{Path, PathBuf};

use crate::git::{Config, Repository};

/// Settings that name a file which can hide something or run a program.
const FILES: [&str; 2] = ["core.attributesfile", "core.excludesfile"];

/// The configuration files, and the files that settings in them name. The second list has those whose path begins at the top of
/// a worktree: git reads relative paths from there, except for those of included files.
pub(super) fn named_files(config: &Config, repository: &Repository) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let dir = &repository.dir;
    let (mut files, mut in_worktrees) = (Vec::new(), Vec::new());
    for entry in config.section("") {
        let origin = entry.origin.strip_prefix("file:").map(|file| dir.join(file));
        let base = origin.as_deref().and_then(Path::parent).unwrap_or(dir);
        let is_include = entry.key.starts_with("include") && entry.key.ends_with(".path");
        if let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty()) {
            if is_include {
                files.push(base.join(expanded_by_git(repository, value)));
            } else if FILES.contains(&entry.key.as_str()) {
                let path = expanded_by_git(repository, value);
                if path.is_absolute() { files.push(path) } else { in_worktrees.push(path) }
            }
        }
        files.extend(origin);
    }
    (files, in_worktrees)
}

/// The path that git makes of the value of a setting. Only git knows the home directories of other users and its own folder.
pub(super) fn expanded_by_git(repository: &Repository, value: &str) -> PathBuf {
    let is_known = value.starts_with("~/") || !value.starts_with(['~', '%']);
    let ask = || Config::expand_path(repository, value).ok();
    (!is_known).then(ask).flatten().unwrap_or_else(|| expanded(value))
}

pub(super) fn expanded(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}
