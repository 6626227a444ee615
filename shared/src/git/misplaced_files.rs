//! Moves files and folders aside that have the wrong kind in a git directory: a folder instead of a lock or of
//! `packed-refs`, a file instead of `logs` or of a folder of objects, a ref of a hundred gigabytes. git creates none of
//! them, cannot work with them, and does not remove them. They are moved and not deleted, because they may contain
//! work.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::notices::report_moved;
use crate::safe_files::{self, FileKind};

/// Names that are files at the top of a git directory.
const FILES: [&str; 16] = [
    "HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
    "AUTO_MERGE", "config", "config.worktree", "commondir", "gitdir", "index", "locked", "packed-refs",
    "shallow",
];
/// Names that are folders there.
const FOLDERS: [&str; 8] = ["arborist", "hooks", "info", "logs", "modules", "objects", "refs", "worktrees"];
/// Folders below `refs`, and below `logs/refs`.
const REF_FOLDERS: [&str; 5] = ["arborist", "heads", "remotes", "replace", "tags"];
/// Files in `info`.
const INFO_FILES: [&str; 4] = ["attributes", "exclude", "grafts", "sparse-checkout"];
/// Folders in which a folder named like a lock file blocks git. Names of refs cannot end in `.lock`.
const LOCKED: [&str; 4] = ["info", "logs", "objects", "refs"];

/// No ref is longer.
const LONGEST_REF: u64 = 1 << 16;
/// git writes no files larger than this with more holes than content.
const MIN_SPARSE_SIZE: u64 = 1 << 26;

/// Whether git would never create something of this kind at `path`, which is relative to the git directory.
#[must_use]
pub fn is_misplaced(git_dir: &Path, path: &Path, kind: FileKind) -> bool {
    let names: Option<Vec<&str>> = path.iter().map(|name| name.to_str()).collect();
    let Some(names) = names else { return false };
    match kind {
        FileKind::Folder => is_folder_misplaced(git_dir, &names),
        FileKind::File if names == ["refs", "heads"] && is_reftable(git_dir) => false,
        FileKind::File => is_file_misplaced(&names) || is_too_large(git_dir, path, &names),
        // These are watched elsewhere.
        FileKind::Link | FileKind::Special => false,
    }
}

/// Whether refs are stored in a reftable. There git has a file `refs/heads` and an invalid `HEAD`, so that older
/// versions refuse to work.
fn is_reftable(git_dir: &Path) -> bool {
    safe_files::read(&git_dir.join("HEAD")).is_ok_and(|head| head == b"ref: refs/heads/.invalid\n")
}

fn is_folder_misplaced(git_dir: &Path, names: &[&str]) -> bool {
    let is_lock = names.last().is_some_and(|name| name.ends_with(".lock"));
    match names {
        [name] => FILES.contains(name) || is_lock,
        ["info", name] if INFO_FILES.contains(name) => true,
        ["logs", "HEAD"] => true,
        // A reflog has the same path as its ref. git removes empty folders itself, but no others.
        ["logs", "refs", .., _] => {
            let of_ref = names.iter().skip(1).fold(git_dir.to_owned(), |path, name| path.join(name));
            is_lock || safe_files::kind_of(&of_ref) == Some(FileKind::File)
        }
        [top, ..] => is_lock && LOCKED.contains(top),
        [] => false,
    }
}

fn is_file_misplaced(names: &[&str]) -> bool {
    match names {
        [name] => FOLDERS.contains(name),
        ["objects", "pack" | "info"] | ["logs", "refs"] => true,
        ["objects", name] => name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()),
        ["refs", name] | ["logs", "refs", name] => REF_FOLDERS.contains(name),
        _ => false,
    }
}

/// Whether a file that git reads as a whole (a ref, a reflog, an index) is too large.
fn is_too_large(git_dir: &Path, path: &Path, names: &[&str]) -> bool {
    // `HEAD` is not among them: without it there is no repository. It is restored by its own watch.
    let is_ref = names.first() == Some(&"refs");
    let is_read = matches!(names, ["index" | "packed-refs" | "shallow"] | ["logs", ..]);
    if !is_ref && !is_read {
        return false;
    }
    let found = git_dir.join(path).symlink_metadata();
    found.is_ok_and(|found| (is_ref && found.len() > LONGEST_REF) || is_sparse(&found))
}

/// Whether a file is large and consists mostly of holes.
pub(super) fn is_sparse(found: &Metadata) -> bool {
    found.is_file() && has_holes(found.len(), found.blocks().saturating_mul(512))
}

/// Like [`is_sparse`], for a file of this size that takes `stored` bytes on disk.
pub(super) fn has_holes(size: u64, stored: u64) -> bool {
    size > MIN_SPARSE_SIZE && stored < size / 2
}

/// Like [`move_aside`], with a report at the end of the command. Returns whether it was moved.
pub(super) fn move_and_report(git_dir: &Path, path: &Path) -> bool {
    let Ok(to) = move_aside(git_dir, path) else { return false };
    report_moved(path, &to);
    true
}

/// Moves something in a git directory aside, and returns its new path.
pub fn move_aside(git_dir: &Path, path: &Path) -> std::io::Result<PathBuf> {
    let unused = unused_path(git_dir);
    safe_files::rename(path, &unused).map(|()| unused)
}

/// Copies a file from anywhere to a git directory, and returns the path of the copy.
pub fn copy_aside(git_dir: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let unused = unused_path(git_dir);
    safe_files::copy(file, &unused).map(|_| unused)
}

/// An unused path in a git directory for something that is moved aside.
pub(super) fn unused_path(git_dir: &Path) -> PathBuf {
    let mut paths = (1u32..).map(|number| git_dir.join(format!("replaced.{number}")));
    let unused = paths.find(|path| path.symlink_metadata().is_err());
    unused.unwrap_or_else(|| git_dir.join("replaced"))
}

/// Misplaced names at the top of a repository, and in folders where they would keep git from starting. The watches of
/// child processes look everywhere.
pub(super) fn find_obstacles(common_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "objects", "refs", "logs", "logs/refs", "info"] {
        for entry in safe_files::list_kinds(&common_dir.join(folder)).unwrap_or_default() {
            let path = entry.path.strip_prefix(common_dir).unwrap_or(&entry.path);
            if is_misplaced(common_dir, path, entry.kind) {
                found.push(entry.path.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_git_creates_are_never_misplaced() {
        let folder = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let program = crate::process::Program::new("git").args(args).dir(folder.path());
            let program = program.env("HOME", folder.path()).env("GIT_CONFIG_NOSYSTEM", "1");
            let program = ["AUTHOR", "COMMITTER"].iter().fold(program, |program, who| {
                program.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b")
            });
            assert!(program.finish().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q", "-b", "main", "."]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&["branch", "a/b/c"]);
        git(&["branch", "-d", "-q", "a/b/c"]);
        git(&["branch", "a"]);
        git(&["worktree", "add", "-q", "lane", "a"]);
        git(&["gc", "-q"]);
        let git_dir = folder.path().join(".git");
        let mut open = vec![git_dir.clone()];
        while let Some(next) = open.pop() {
            for entry in safe_files::list_kinds(&next).unwrap() {
                let path = entry.path.strip_prefix(&git_dir).unwrap();
                assert!(!is_misplaced(&git_dir, path, entry.kind), "{}", path.display());
                open.extend((entry.kind == FileKind::Folder).then_some(entry.path));
            }
        }
    }

    #[test]
    fn files_and_folders_of_the_wrong_kind_are_misplaced() {
        let nowhere = Path::new("/nowhere");
        for folder in ["index.lock", "packed-refs", "refs/heads/main.lock", "logs/HEAD", "info/exclude"] {
            assert!(is_misplaced(nowhere, Path::new(folder), FileKind::Folder), "{folder}");
        }
        for file in ["logs", "objects/0a", "objects/pack", "refs/heads", "worktrees", "logs/refs"] {
            assert!(is_misplaced(nowhere, Path::new(file), FileKind::File), "{file}");
        }
        for folder in ["lfs", "logs/refs/heads", "refs/heads/a", "annex/x.lock"] {
            assert!(!is_misplaced(nowhere, Path::new(folder), FileKind::Folder), "{folder}");
        }
    }
}
