//! Nothing outside of an enclosure, and nothing of git's in it, is read or written, whatever lies in it.

use std::{
    fs,
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};

use arborist_core::safe_files::{Enclosure, EnclosureError, InnerPath, WriteOutcome};
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

const SECRET: &str = "only for those outside";

/// A folder with a repository in it, and a secret beside it.
fn enclosure_with_secret() -> (TempDir, Enclosure) {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), SECRET).unwrap();
    let top = outside.path().join("top");
    fs::create_dir_all(top.join(".git/hooks")).unwrap();
    fs::write(top.join(".git/config"), SECRET).unwrap();
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::write(top.join("a/b/file"), "inside").unwrap();
    let enclosure = Enclosure::open(&top).unwrap();
    (outside, enclosure)
}

fn read(enclosure: &Enclosure, path: &str) -> Result<String, EnclosureError> {
    let mut text = String::new();
    enclosure.read(&path.parse()?)?.read_to_string(&mut text).unwrap();
    Ok(text)
}

fn write(enclosure: &Enclosure, path: &str, text: &str) -> Result<WriteOutcome, EnclosureError> {
    enclosure.write(&path.parse::<InnerPath>()?, text.as_bytes())
}

#[test]
fn files_are_read_and_written_and_missing_folders_created() {
    let (outside, enclosure) = enclosure_with_secret();
    assert_eq!(read(&enclosure, "a/b/file").unwrap(), "inside");
    assert_eq!(write(&enclosure, "new/deep/er", "x").unwrap(), WriteOutcome::Created);
    assert_eq!(write(&enclosure, "a/b/file", "y").unwrap(), WriteOutcome::Replaced);
    assert_eq!(fs::read_to_string(outside.path().join("top/new/deep/er")).unwrap(), "x");
    assert_eq!(read(&enclosure, "./a//b/file").unwrap(), "y");
    assert_eq!(read(&enclosure, "a/none").unwrap_err().to_string(), "'a/none' does not exist");
    assert_eq!(read(&enclosure, "none/none").unwrap_err().to_string(), "'none/none' does not exist");
    assert!(read(&enclosure, "a").unwrap_err().to_string().contains("is a folder"));
    assert!(read(&enclosure, "a/b/file/x").unwrap_err().to_string().contains("', which is not a folder"));
    assert!(write(&enclosure, "a", "x").unwrap_err().to_string().contains("is a folder"));
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let (outside, enclosure) = enclosure_with_secret();
    let top = outside.path().join("top");
    symlink("../secret", top.join("file-link")).unwrap();
    symlink("..", top.join("folder-link")).unwrap();
    symlink(".git", top.join("git-link")).unwrap();
    symlink("a/b/file", top.join("inner-link")).unwrap();
    symlink("nowhere", top.join("dead-link")).unwrap();
    for path in ["file-link", "folder-link/secret", "git-link/config", "inner-link", "dead-link"] {
        let error = read(&enclosure, path).unwrap_err().to_string();
        assert!(error.contains("through the link"), "{path}: {error}");
        let error = write(&enclosure, path, "x").unwrap_err().to_string();
        assert!(error.contains("through the link"), "{path}: {error}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), SECRET);
    assert!(top.join("file-link").is_symlink() && !top.join("nowhere").exists());
}

#[test]
fn a_folder_that_is_replaced_by_a_link_is_not_followed() {
    let (outside, enclosure) = enclosure_with_secret();
    let top = outside.path().join("top");
    fs::create_dir(outside.path().join("elsewhere")).unwrap();
    fs::rename(top.join("a"), top.join("was-a")).unwrap();
    symlink("../elsewhere", top.join("a")).unwrap();
    write(&enclosure, "a/b/file", "x").unwrap_err();
    assert_eq!(fs::read_dir(outside.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn links_that_are_swapped_during_reads_and_writes_are_not_followed() {
    let (outside, enclosure) = enclosure_with_secret();
    let top = outside.path().join("top");
    fs::create_dir(outside.path().join("elsewhere")).unwrap();
    fs::write(outside.path().join("elsewhere/file"), SECRET).unwrap();
    symlink("../elsewhere", top.join("link")).unwrap();
    fs::create_dir(top.join("plain")).unwrap();
    fs::write(top.join("plain/file"), "inside").unwrap();
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            for _ in 0..5_000 {
                renameat_with(CWD, top.join("link"), CWD, top.join("plain"), RenameFlags::EXCHANGE).unwrap();
            }
        });
        while !swapper.is_finished() {
            assert_ne!(read(&enclosure, "plain/file").unwrap_or_default(), SECRET);
            let _ = write(&enclosure, "plain/file", "inside");
        }
    });
    assert_eq!(fs::read_to_string(outside.path().join("elsewhere/file")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(outside.path().join("elsewhere")).unwrap().count(), 1);
}

#[test]
fn writing_a_hard_link_does_not_change_the_file_outside() {
    let (outside, enclosure) = enclosure_with_secret();
    fs::hard_link(outside.path().join("secret"), outside.path().join("top/shared")).unwrap();
    write(&enclosure, "shared", "mine").unwrap();
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), SECRET);
    assert_eq!(read(&enclosure, "shared").unwrap(), "mine");
}

#[test]
fn named_pipes_do_not_block() {
    let (outside, enclosure) = enclosure_with_secret();
    let queue = outside.path().join("top/queue");
    let made = std::process::Command::new("mkfifo").arg(&queue).status().unwrap();
    assert!(made.success());
    assert!(read(&enclosure, "queue").unwrap_err().to_string().contains("not a regular file"));
    assert!(write(&enclosure, "queue", "x").unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn writing_keeps_the_file_mode_and_leaves_no_temporary_files() {
    let (outside, enclosure) = enclosure_with_secret();
    let top = outside.path().join("top");
    let script = top.join("run");
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    write(&enclosure, "run", "new").unwrap();
    assert_eq!(script.metadata().unwrap().mode() & 0o7777, 0o751);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(write(&enclosure, "run", "newer").unwrap_err().to_string().contains("read-only"));
    let names: Vec<_> = fs::read_dir(&top).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn a_hook_folder_can_be_excluded() {
    let (outside, enclosure) = enclosure_with_secret();
    fs::create_dir(outside.path().join("top/.husky")).unwrap();
    fs::write(outside.path().join("top/.husky/pre-commit"), "x").unwrap();
    assert_eq!(read(&enclosure, ".husky/pre-commit").unwrap(), "x");
    let enclosure = enclosure.without(".husky".parse().unwrap());
    assert!(read(&enclosure, ".husky/pre-commit").unwrap_err().to_string().contains("hooks"));
    assert!(write(&enclosure, ".HUSKY/pre-push", "x").unwrap_err().to_string().contains("hooks"));
}

/// Everything outside of what may be written, as paths and contents.
fn files_outside_of(root: &Path) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let inner = path.strip_prefix(root).unwrap().display().to_string();
            let is_inside = inner.starts_with("top/") && !inner.starts_with("top/.git");
            if path.is_dir() && !path.is_symlink() {
                open.push(path.clone());
            }
            if !is_inside {
                found.push((inner, fs::read_to_string(&path).ok()));
            }
        }
    }
    found.sort();
    found
}

fn name() -> impl Strategy<Value = String> {
    let known = [
        "a", "b", "file", "link", "up", "git", "x", "..", ".", "", ".git", ".GIT", "config", "secret",
        "hooks",
    ];
    prop_oneof![9 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_path_reaches_files_outside_of_an_enclosure(names in prop::collection::vec(name(), 1..6), is_absolute in prop::bool::ANY) {
        let (outside, enclosure) = enclosure_with_secret();
        let top = outside.path().join("top");
        symlink("..", top.join("up")).unwrap();
        symlink("../secret", top.join("a/link")).unwrap();
        symlink("../.git", top.join("a/git")).unwrap();
        let before = files_outside_of(outside.path());
        let path = names.join("/");
        let path = if is_absolute { format!("{}/{path}", top.display()) } else { path };
        prop_assert_ne!(read(&enclosure, &path).unwrap_or_default(), SECRET);
        let _ = write(&enclosure, &path, "changed");
        prop_assert_eq!(files_outside_of(outside.path()), before, "{}", path);
    }
}
