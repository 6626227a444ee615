//! Changes inside submodules: uncommitted ones, and commits. The commit of an attempt records neither, so an attempt that
//! leaves any fails, unless the user had made them before the first attempt.
//!
//! A failed attempt leaves its changes for the next one. To tell them from the user's, a file says what was there before the
//! first attempt and how the last attempt left it. If it is deleted, everything that is there counts as the user's.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    git::{GitError, Repository, SubmoduleChanges, TreeChange},
    message::visible,
    name::{Oid, digest},
    process::shell_word,
    record::RunRecorder,
    safe_files,
};

/// Submodules that are at another commit than the one which is recorded here.
#[derive(Debug)]
pub(super) struct MovedSubmodules(BTreeMap<Vec<u8>, MovedSubmodule>);

#[derive(Debug)]
struct MovedSubmodule {
    recorded: Oid,
    now: Oid,
}

impl MovedSubmodules {
    /// Finds them among the changes between the commit and the worktree.
    pub(super) fn among(changes: &[TreeChange]) -> Self {
        let find = |change: &TreeChange| {
            let ((_, recorded), (_, now)) = (change.before?, change.after?);
            let is_submodule = change.was_gitlink() && change.is_gitlink();
            is_submodule.then(|| (change.path.clone(), MovedSubmodule { recorded, now }))
        };
        Self(changes.iter().filter_map(find).collect())
    }

    /// Whether the change is at the path of such a submodule.
    pub(super) fn has(&self, change: &TreeChange) -> bool {
        self.0.contains_key(&change.path)
    }

    /// The digests of the changes in submodules, with the commits that these are at.
    fn added_to(&self, mut changes: SubmoduleChanges) -> SubmoduleChanges {
        for (path, moved) in &self.0 {
            changes.entry(path.clone()).or_default().push_str(&moved.suffix());
        }
        changes
    }
}

impl MovedSubmodule {
    /// What distinguishes the digest of a submodule at this commit.
    fn suffix(&self) -> String {
        format!(" at {}", self.now)
    }

    fn describe(&self, who: &str, shown: &str) -> String {
        let Self { recorded, now } = self;
        format!(
            "{who} committed or checked out another commit in a submodule: '{shown}' is at {now}, which is not recorded here; \
             restore it with: git -C '{shown}' checkout {recorded}"
        )
    }
}

/// The changes in submodules before the agent came.
#[derive(Debug)]
pub(super) struct SubmodulesBefore {
    /// The user's changes.
    changes: SubmoduleChanges,
    /// All changes, also those that an earlier attempt left.
    found: SubmoduleChanges,
    /// Where the next attempt finds them; `None` in a lane, in which nothing is the user's.
    file: Option<PathBuf>,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LastAttempt {
    /// Digests of the user's changes, by the path of the submodule.
    before: BTreeMap<String, String>,
    /// Digests of all changes when the last attempt ended, by the path of the submodule; `None` while it is under way.
    after: Option<BTreeMap<String, String>>,
}

impl SubmodulesBefore {
    /// Looks at them before an attempt. `worktree` is the tree of the worktree.
    pub(super) fn look(recorder: &RunRecorder<'_>, worktree: Oid) -> Result<Self, GitError> {
        let repository = recorder.repository();
        let moved = if worktree == recorder.tree() {
            Vec::new()
        } else {
            repository.changes(recorder.tree(), worktree)?
        };
        let found = repository.submodule_changes(Some(recorder.tree()))?;
        let found = MovedSubmodules::among(&moved).added_to(found);
        if !recorder.is_on_run_branch() {
            return Ok(Self { changes: SubmoduleChanges::new(), found, file: None });
        }
        let file = file_of(repository);
        let changes = match LastAttempt::load(&file) {
            Some(last) => found
                .iter()
                .filter_map(|(path, now)| Some((path.clone(), last.users_part(path, now)?)))
                .collect(),
            None => found.clone(),
        };
        let inside = Self { changes, found, file: Some(file) };
        // Most repositories have no submodules, and need no file.
        if !repository.list_gitlinks()?.is_empty() {
            inside.write(None);
        }
        Ok(inside)
    }

    /// Describes what the agent, or that of an earlier attempt, has changed in submodules. `moved` are those that are at
    /// another commit now.
    pub(super) fn find_changed(
        &self,
        repository: &Repository,
        tree: Oid,
        moved: &MovedSubmodules,
    ) -> Result<Vec<String>, GitError> {
        let after = moved.added_to(repository.submodule_changes(Some(tree))?);
        let is_changed = |path: &&Vec<u8>| after.get(*path) != self.changes.get(*path);
        let mut words = Vec::new();
        for path in after.keys().filter(is_changed) {
            let shown = visible(&String::from_utf8_lossy(path));
            let who = if after.get(path) == self.found.get(path) { "an earlier attempt" } else { "it" };
            words.push(match moved.0.get(path).filter(|moved| !self.was_at(path, moved)) {
                Some(moved) => moved.describe(who, &shown),
                None => {
                    let at = shell_word(&shown);
                    format!(
                        "{who} changed files in the submodule '{shown}', which are not committed here; to undo it: git -C {at} restore . && git -C {at} clean -fd"
                    )
                }
            });
        }
        if self.file.as_ref().is_some_and(|file| safe_files::kind_of(file).is_some()) {
            self.write(Some(&after));
        }
        Ok(words)
    }

    /// Whether the submodule was already at that commit.
    fn was_at(&self, path: &[u8], moved: &MovedSubmodule) -> bool {
        self.changes.get(path).is_some_and(|digest| digest.ends_with(&moved.suffix()))
    }

    fn write(&self, after: Option<&SubmoduleChanges>) {
        let Some(file) = &self.file else { return };
        LastAttempt { before: by_name(&self.changes), after: after.map(by_name) }.write(file);
    }
}

/// The submodules of a checkout before a test. New files do not count: as in the checkout itself, tests may write them.
#[derive(Debug)]
pub(super) struct TestedSubmodules(SubmoduleChanges);

impl TestedSubmodules {
    pub(super) fn read(repository: &Repository, tree: Oid) -> Result<Self, GitError> {
        repository.tracked_in_submodules(Some(tree)).map(Self)
    }

    /// Describes the submodules that the test changed. They are left as they are, and the next attempt does not take
    /// these changes for the user's.
    pub(super) fn find_changed(&self, recorder: &RunRecorder<'_>) -> Result<Option<String>, GitError> {
        let after = recorder.repository().tracked_in_submodules(Some(recorder.tree()))?;
        let is_changed = |path: &&Vec<u8>| after.get(*path) != self.0.get(*path);
        let all: BTreeSet<&Vec<u8>> = self.0.keys().chain(after.keys()).collect();
        let changed: Vec<String> =
            all.into_iter().filter(is_changed).map(|path| visible(&String::from_utf8_lossy(path))).collect();
        if changed.is_empty() {
            return Ok(None);
        }
        note_after_test(recorder)?;
        Ok(Some(format!(
            "the tests changed files or checked out another commit in a submodule, which is not committed here: {}",
            changed.join(", ")
        )))
    }
}

/// Makes the next attempt compare with what the test left. In a lane nothing is the user's, and there is no file.
fn note_after_test(recorder: &RunRecorder<'_>) -> Result<(), GitError> {
    let repository = recorder.repository();
    let file = file_of(repository);
    if !recorder.is_on_run_branch() {
        return Ok(());
    }
    let Some(last) = LastAttempt::load(&file) else { return Ok(()) };
    let now = repository.take_snapshot()?.tree;
    let moved = MovedSubmodules::among(&repository.changes(recorder.tree(), now)?);
    let found = moved.added_to(repository.submodule_changes(Some(recorder.tree()))?);
    LastAttempt { after: Some(by_name(&found)), ..last }.write(&file);
    Ok(())
}

/// The file that says how the last attempt left the submodules of a checkout.
fn file_of(repository: &Repository) -> PathBuf {
    let name = &digest(repository.git_dir.as_os_str().as_encoded_bytes())[..16];
    repository.common_dir.join("arborist/submodules").join(name)
}

impl LastAttempt {
    fn load(file: &Path) -> Option<Self> {
        safe_files::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
    }

    /// Writes the file for the next attempt. If that fails, the next attempt takes everything for the user's.
    fn write(&self, file: &Path) {
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = file.parent().map(safe_files::make_folders);
            let _ = safe_files::write(file, &text);
        }
    }

    /// What the user had changed in a submodule. If it is as the last attempt left it, or that attempt was killed, the
    /// changes are not all the user's.
    fn users_part(&self, path: &[u8], now: &str) -> Option<String> {
        let name = String::from_utf8_lossy(path).into_owned();
        let is_left = match &self.after {
            Some(after) => after.get(&name).is_some_and(|after| after == now),
            None => true,
        };
        if is_left { self.before.get(&name).cloned() } else { Some(now.to_owned()) }
    }
}

fn by_name(changes: &SubmoduleChanges) -> BTreeMap<String, String> {
    changes
        .iter()
        .map(|(path, digest)| (String::from_utf8_lossy(path).into_owned(), digest.clone()))
        .collect()
}
