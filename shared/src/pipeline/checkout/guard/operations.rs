//! Operations that the user has stopped in another worktree, such as a rebase: git obeys their files when the user
//! continues, and runs the `exec` lines among them. The user may continue at any time, so steps that are done are no
//! change.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    git::move_aside,
    safe_files::{self, FileKind},
};

/// The folders with the state of an operation.
const FOLDERS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// The remaining steps. git removes lines at the beginning.
const STEPS: [&str; 2] = ["rebase-merge/git-rebase-todo", "sequencer/todo"];
/// Files that stay the same until the operation ends, beside the patches of `git am`.
const FIXED: [&str; 12] = [
    "rebase-apply/head-name",
    "rebase-apply/onto",
    "rebase-apply/orig-head",
    "rebase-merge/autostash",
    "rebase-merge/gpg_sign_opt",
    "rebase-merge/head-name",
    "rebase-merge/onto",
    "rebase-merge/orig-head",
    "rebase-merge/strategy",
    "rebase-merge/strategy_opts",
    "sequencer/head",
    "sequencer/opts",
];
/// The message of the next commit.
const MESSAGE: &str = "MERGE_MSG";
/// If one of these changed, the user has continued.
const PROGRESS: [&str; 6] =
    ["HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge/done", "rebase-apply/next"];

/// The files of an operation in one of the user's checkouts.
#[derive(Debug)]
pub(super) struct StoppedOperation {
    common_dir: PathBuf,
    git_dir: PathBuf,
    before: OperationFiles,
}

#[derive(Debug)]
struct OperationFiles {
    /// Their contents, by their paths in the git directory.
    files: BTreeMap<String, Vec<u8>>,
    progress: Vec<Option<Vec<u8>>>,
    /// The inodes of the folders. A folder with another one belongs to another operation.
    folders: Vec<Option<u64>>,
}

impl OperationFiles {
    fn read(git_dir: &Path) -> Self {
        let content = |name: &str| safe_files::read(&git_dir.join(name)).ok();
        let mut files = BTreeMap::new();
        for folder in FOLDERS {
            for entry in safe_files::list_kinds(&git_dir.join(folder)).unwrap_or_default() {
                let name = entry.path.file_name().and_then(|name| name.to_str());
                if let Some(name) = name.filter(|_| entry.kind == FileKind::File) {
                    let name = format!("{folder}/{name}");
                    files.extend(content(&name).map(|content| (name, content)));
                }
            }
        }
        files.extend(content(MESSAGE).map(|content| (MESSAGE.to_owned(), content)));
        let inode = |folder: &str| git_dir.join(folder).symlink_metadata().ok().map(|found| found.ino());
        Self { files, progress: PROGRESS.map(content).to_vec(), folders: FOLDERS.map(inode).to_vec() }
    }
}

impl StoppedOperation {
    /// What is stopped now in the checkout with this git directory.
    pub(super) fn find(common_dir: &Path, git_dir: &Path) -> Self {
        let before = OperationFiles::read(git_dir);
        Self { common_dir: common_dir.to_owned(), git_dir: git_dir.to_owned(), before }
    }

    /// Restores what was changed other than by continuing or ending the operation, and returns messages about it.
    pub(super) fn restore(&self) -> Vec<String> {
        if self.before.files.is_empty() {
            return Vec::new();
        }
        let now = OperationFiles::read(&self.git_dir);
        let has_progress = now.progress != self.before.progress;
        let mut found = Vec::new();
        for (name, content) in &now.files {
            let before = self.before.files.get(name);
            let is_allowed = match before {
                Some(before) if before == content => true,
                Some(before) if STEPS.contains(&name.as_str()) => is_rest(content, before),
                None if name == MESSAGE => true,
                _ => has_progress && !is_fixed(name),
            };
            if is_allowed || self.is_new_folder(name) {
                continue;
            }
            found.push(self.restore_file(name, before));
        }
        found.extend(self.replaced(&now));
        found
    }

    /// Whether a file is in a folder that did not exist before, in which the user may have begun another operation.
    fn is_new_folder(&self, name: &str) -> bool {
        self.folders().any(|(folder, before, now)| name.starts_with(&format!("{folder}/")) && before != now)
    }

    /// The folders with their inodes before and now.
    fn folders(&self) -> impl Iterator<Item = (&'static str, Option<u64>, Option<u64>)> {
        let inode = |folder: &str| self.git_dir.join(folder).symlink_metadata().ok().map(|found| found.ino());
        FOLDERS
            .iter()
            .zip(&self.before.folders)
            .map(move |(folder, before)| (*folder, *before, inode(folder)))
    }

    /// Messages about folders that were replaced. They stay: the user may have begun another operation.
    fn replaced(&self, now: &OperationFiles) -> Vec<String> {
        let is_other = |folder: &str| {
            STEPS.iter().any(|steps| {
                let (before, now) = (self.before.files.get(*steps), now.files.get(*steps));
                steps.starts_with(folder)
                    && matches!((before, now), (Some(before), Some(now)) if !is_rest(now, before))
            })
        };
        let replaced = self.folders().filter(|(folder, before, now)| {
            before.is_some() && now.is_some() && before != now && is_other(folder)
        });
        replaced
            .map(|(folder, ..)| {
                format!(
                    "{} was replaced while an agent or a command ran; look at it before you continue that operation",
                    self.shown(folder)
                )
            })
            .collect()
    }

    fn restore_file(&self, name: &str, before: Option<&Vec<u8>>) -> String {
        let (path, shown) = (self.git_dir.join(name), self.shown(name));
        let restored = || -> io::Result<PathBuf> {
            let kept = move_aside(&self.common_dir, &path)?;
            if let Some(before) = before {
                safe_files::write_with_mode(&path, before, 0o644)?;
            }
            Ok(kept)
        };
        match restored() {
            Ok(kept) => format!(
                "{shown} was changed while an agent or a command ran, and was restored; the change is kept in {}",
                kept.display()
            ),
            Err(error) => {
                format!(
                    "{shown} was changed while an agent or a command ran, and could not be restored: {error}"
                )
            }
        }
    }

    fn shown(&self, name: &str) -> String {
        let path = self.git_dir.join(name);
        let in_git = path.strip_prefix(&self.common_dir).map(|inside| Path::new(".git").join(inside));
        in_git.as_deref().unwrap_or(&path).display().to_string()
    }
}

/// Whether a file stays the same until the operation ends.
fn is_fixed(name: &str) -> bool {
    let patch = name.strip_prefix("rebase-apply/");
    FIXED.contains(&name)
        || patch.is_some_and(|patch| patch.len() == 4 && patch.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the remaining steps are the last ones of those before.
fn is_rest(steps: &[u8], before: &[u8]) -> bool {
    let lines = |steps: &[u8]| -> Vec<Vec<u8>> {
        let lines = steps.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_vec());
        lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).collect()
    };
    lines(before).ends_with(&lines(steps))
}
