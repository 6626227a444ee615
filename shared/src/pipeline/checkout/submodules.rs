//! Uncommitted changes inside submodules. The commit of an attempt cannot hold them, so an attempt that leaves any fails,
//! unless the user had made them before the first attempt.
//!
//! A failed attempt leaves its changes for the next one. To tell them from the user's, a file says what was there before the
//! first attempt and how the last attempt left it. If it is deleted, everything that is there counts as the user's.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    git::{GitError, Repository, SubmoduleChanges},
    message::visible,
    name::{Oid, digest},
    record::RunRecorder,
    safe_files,
};

/// The uncommitted changes in submodules before the agent came.
#[derive(Debug)]
pub(super) struct SubmodulesBefore {
    changes: SubmoduleChanges,
    /// Where the next attempt finds them; `None` in a lane, in which nothing is the user's.
    file: Option<PathBuf>,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LastAttempt {
    /// Digests of the user's changes, by the path of the submodule.
    before: BTreeMap<String, String>,
    /// The same for all changes when the last attempt ended; `None` while it is under way.
    after: Option<BTreeMap<String, String>>,
}

impl SubmodulesBefore {
    /// Looks at them before an attempt.
    pub(super) fn look(recorder: &RunRecorder<'_>) -> Result<Self, GitError> {
        let repository = recorder.repository();
        if recorder.branch() != recorder.run() {
            return Ok(Self { changes: SubmoduleChanges::new(), file: None });
        }
        let found = repository.submodule_changes(Some(recorder.tree()))?;
        let name = &digest(repository.git_dir.as_os_str().as_encoded_bytes())[..16];
        let file = repository.common_dir.join("arborist/submodules").join(name);
        let last: Option<LastAttempt> =
            safe_files::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let changes = match last {
            Some(last) => found
                .into_iter()
                .filter_map(|(path, now)| last.users_part(&path, now).map(|users| (path, users)))
                .collect(),
            None => found,
        };
        let inside = Self { changes, file: Some(file) };
        // Most repositories have no submodules, and need no file.
        if !repository.list_gitlinks()?.is_empty() {
            inside.write(None);
        }
        Ok(inside)
    }

    /// Names submodules in which the agent has changed something.
    pub(super) fn find_changed(
        &self,
        repository: &Repository,
        tree: Oid,
    ) -> Result<Option<String>, GitError> {
        let after = repository.submodule_changes(Some(tree))?;
        let is_changed = |path: &&Vec<u8>| after.get(*path) != self.changes.get(*path);
        let changed: Vec<String> =
            after.keys().filter(is_changed).map(|path| visible(&String::from_utf8_lossy(path))).collect();
        if self.file.as_ref().is_some_and(|file| safe_files::kind_of(file).is_some()) {
            self.write(Some(&after));
        }
        let words = || {
            format!("it changed files in a submodule, which are not committed here: {}", changed.join(", "))
        };
        Ok((!changed.is_empty()).then(words))
    }

    /// Writes the file for the next attempt. If that fails, the next attempt takes everything for the user's.
    fn write(&self, after: Option<&SubmoduleChanges>) {
        let Some(file) = &self.file else { return };
        let last = LastAttempt { before: by_name(&self.changes), after: after.map(by_name) };
        if let Ok(text) = serde_json::to_vec(&last) {
            let _ = file.parent().map(safe_files::make_folders);
            let _ = safe_files::write(file, &text);
        }
    }
}

impl LastAttempt {
    /// What the user had changed in a submodule. If it is as the last attempt left it, or that attempt was killed, the
    /// changes are not all the user's.
    fn users_part(&self, path: &[u8], now: String) -> Option<String> {
        let name = String::from_utf8_lossy(path).into_owned();
        let is_left = match &self.after {
            Some(after) => after.get(&name) == Some(&now),
            None => true,
        };
        if is_left { self.before.get(&name).cloned() } else { Some(now) }
    }
}

fn by_name(changes: &SubmoduleChanges) -> BTreeMap<String, String> {
    changes
        .iter()
        .map(|(path, digest)| (String::from_utf8_lossy(path).into_owned(), digest.clone()))
        .collect()
}
