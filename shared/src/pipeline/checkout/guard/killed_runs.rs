//! Records the guarded files outside of the repository. An agent that kills the driver keeps the hooks and settings that it
//! planted just before. So the next run compares the files with the record, and names those that have changed.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::{
    restore_watched_files::{FileState, PathStates, RunningChildren, WatchedCopy},
    scripts::CommandWords,
    watched_files::{self, WatchMode},
};
use crate::{
    git::{Repository, find_state_folder, remove_at_end},
    mutex::MutexExt,
    name::digest,
    process::is_process_alive,
    safe_files,
};

/// The folder of the records in our state folder.
const FOLDER: &str = "guarded";

/// The files by their paths, each with a digest of its content and mode.
type FileDigests = BTreeMap<PathBuf, String>;

/// Writes the record of this process for a repository. It is removed when the process ends. Without a state folder there is
/// no record, and the next run finds nothing.
pub(super) fn record(common_dir: &Path, states: &PathStates) {
    // The states instead of their digests: this is called for every child, and hashing all files took longer than comparing.
    static WRITTEN: Mutex<BTreeMap<PathBuf, PathStates>> = Mutex::new(BTreeMap::new());
    let Some(folder) = find_state_folder() else { return };
    let file = folder.join(FOLDER).join(format!("{}-{}", std::process::id(), repository_key(common_dir)));
    let mut written = WRITTEN.hold();
    if written.get(&file) == Some(states) {
        return;
    }
    let mut text = Vec::new();
    for (path, digest) in &digests_of(states) {
        text.extend([digest.as_bytes(), b" ", path.as_os_str().as_bytes(), b"\0"].concat());
    }
    if safe_files::write_with_mode(&file, &text, 0o600).is_ok()
        && written.insert(file.clone(), states.clone()).is_none()
    {
        remove_at_end(file);
    }
}

/// The guarded files of a repository that have changed since a killed run recorded them. The records of killed runs are
/// removed, so that the files are named once. Call this before the first child process.
#[must_use]
pub fn find_changed_since_kill(repository: &Repository) -> Vec<PathBuf> {
    let Some(folder) = find_state_folder() else { return Vec::new() };
    let key = repository_key(&repository.common_dir);
    let is_of_killed = |file: &Path| {
        let name = file.file_name().and_then(OsStr::to_str).and_then(|name| name.split_once('-'));
        name.is_some_and(|(pid, of)| of == key && pid.parse().is_ok_and(|pid: u32| !is_process_alive(pid)))
    };
    let entries = safe_files::list(&folder.join(FOLDER)).unwrap_or_default().into_iter();
    let records: Vec<PathBuf> = entries.map(|entry| entry.path).filter(|path| is_of_killed(path)).collect();
    if records.is_empty() {
        return Vec::new();
    }
    let common_dir = &repository.common_dir;
    let items = watched_files::shared(repository, &CommandWords::default());
    let now = WatchedCopy::take(items, vec![common_dir.clone()], common_dir.clone(), RunningChildren::None);
    let now = digests_of(now.states());
    let mut changed = Vec::new();
    for record in records {
        let text = safe_files::read(&record).unwrap_or_default();
        let before: FileDigests = text.split(|byte| *byte == 0).filter_map(parse_line).collect();
        let paths = before.keys().chain(now.keys()).filter(|path| before.get(*path) != now.get(*path));
        changed.extend(paths.cloned());
        let _ = safe_files::remove(&record);
    }
    changed.sort();
    changed.dedup();
    changed
}

fn repository_key(common_dir: &Path) -> String {
    digest(common_dir.as_os_str().as_bytes())[..16].to_owned()
}

fn parse_line(line: &[u8]) -> Option<(PathBuf, String)> {
    let (digest, path) = line.split_at_checked(line.iter().position(|byte| *byte == b' ')?)?;
    Some((PathBuf::from(OsStr::from_bytes(&path[1..])), String::from_utf8(digest.to_vec()).ok()?))
}

/// Digests of the files that nothing but the user changes. A file that does not exist has none.
fn digests_of(states: &PathStates) -> FileDigests {
    let content = |state: &FileState| match state {
        FileState::Nothing | FileState::Folder => None,
        FileState::File { bytes, mode } => Some(digest(&[bytes, &mode.to_be_bytes()[..]].concat())),
        FileState::Link(target) => Some(digest(target.as_os_str().as_bytes())),
        other => Some(digest(format!("{other:?}").as_bytes())),
    };
    let files = states.iter().filter(|(_, (watch_mode, _))| *watch_mode == WatchMode::Whole);
    files.filter_map(|(path, (_, state))| Some((path.clone(), content(state)?))).collect()
}
