//! Other repositories inside the user's checkout, such as an ignored clone. A program that an agent writes into the
//! configuration or the hooks of one would run as soon as the user calls git there.
//!
//! They may disappear or be made again: builds and tests do that. So a change of their configuration is undone only if
//! it could run something.

use std::path::{Path, PathBuf};

use super::surface::{self, WatchMode, WatchedItem};
use crate::{
    git::{Repository, find_module_dirs},
    safe_files,
};

/// Files in the git directory of such a repository, or of a submodule in it.
const INNER: [(&str, WatchMode); 4] = [
    ("config", WatchMode::InnerConfig),
    ("config.worktree", WatchMode::InnerConfig),
    ("commondir", WatchMode::InnerFile),
    ("hooks", WatchMode::InnerFolder),
];

/// Settings that run nothing and lead git to no other file that could. An empty list means every key of the section.
const HARMLESS: [(&str, &[&str]); 10] = [
    ("advice", &[]),
    ("branch", &["merge", "rebase", "remote"]),
    ("commit", &["gpgsign"]),
    (
        "core",
        &[
            "autocrlf",
            "bare",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("gc", &["auto"]),
    ("init", &["defaultbranch"]),
    ("remote", &["fetch", "tagopt", "url"]),
    ("submodule", &["active", "url"]),
    ("user", &["email", "name"]),
];

/// Watched items of the repositories that were inside of this checkout when the run began.
pub(super) fn items(repository: &Repository) -> Vec<WatchedItem> {
    repository.find_inner_git_dirs().into_iter().flat_map(|git_dir| of_repo(repository, git_dir)).collect()
}

fn of_repo(repository: &Repository, git_dir: PathBuf) -> Vec<WatchedItem> {
    let mut items = surface::items(&git_dir, &INNER);
    for module in find_module_dirs(&git_dir) {
        items.extend(surface::items(&module, &INNER));
    }
    if has_includes(&git_dir.join("config")) {
        let named = surface::named_by_module(repository, &git_dir).into_iter();
        let named = named.filter(|path| !path.starts_with(&git_dir));
        items.extend(named.map(|path| WatchedItem { path, watch_mode: WatchMode::InnerFile }));
    }
    items.push(WatchedItem { path: git_dir, watch_mode: WatchMode::InnerFile });
    items
}

/// Whether a configuration may include others. Asking git takes longer.
fn has_includes(config: &Path) -> bool {
    let text = safe_files::read(config).unwrap_or_default();
    String::from_utf8_lossy(&text).to_ascii_lowercase().contains("[include")
}

/// Whether a configuration contains only harmless settings. Everything that this simple reader does not understand
/// counts as harmful.
pub(super) fn runs_nothing(config: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(config) else { return false };
    let mut keys: Option<&[&str]> = None;
    text.split('\n').map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if line.starts_with('[') {
            keys = find_keys(line);
            return keys.is_some();
        }
        // A backslash could continue the line.
        let key = line.split('=').next().unwrap_or(line).trim().to_ascii_lowercase();
        let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_harmless = |keys: &[&str]| keys.is_empty() || keys.contains(&key.as_str());
        is_key && !line.contains('\\') && keys.is_some_and(is_harmless)
    })
}

/// The harmless keys of the section that a line such as `[core]` or `[remote "origin"]` begins.
fn find_keys(line: &str) -> Option<&'static [&'static str]> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (section, rest) = inner.split_once(' ').unwrap_or((inner, "\"\""));
    let name = rest.strip_prefix('"')?.strip_suffix('"')?;
    let section = section.to_ascii_lowercase();
    let is_plain = !name.contains(['"', '\\']);
    HARMLESS.iter().find(|(known, _)| *known == section && is_plain).map(|(_, keys)| *keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_clone_runs_nothing() {
        let clone =
            b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = /a b\n\
            \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a\"]\n\tremote = origin\n# end\n";
        assert!(runs_nothing(clone) && runs_nothing(b""));
    }

    #[test]
    fn what_could_run_something_is_found() {
        for text in [
            "[core]\n\tfsmonitor = x\n",
            "[core]\nbare = a \\\n\n[alias]\nx = y",
            "[core] fsmonitor = a]",
            "[remote \"a\"] vcs = \"b]",
            "[remote \"a\"]\nuploadpack = x",
            "[include]\npath = x",
            "[core \"a\"]\nhooksPath = x",
            "bare = true",
            "[submodule \"a\"]\nupdate = !x",
            "\u{feff}[core]\n",
        ] {
            assert!(!runs_nothing(text.as_bytes()), "{text}");
        }
    }
}
