//! Undoes interrupted updates of a checkout. `read-tree -u` writes files one after the other and the index last, so a
//! kill or a full disk leaves files of the new commit that look like the user's own changes.
//!
//! Before an update, a note is written: a ref to the commit to which the checkout is updated. After a crash, the note
//! tells which paths the update was to write, and their content tells which of them it has written.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use crate::{
    git::{
        GitError, NewCommit, RefMove, Repository, Signing, TreeChange, files::snapshot::index_info,
        notices::report_saved_files,
    },
    name::{BranchName, ObjectKind, Oid},
    process::{FileLock, ProcessError},
    safe_files,
};

/// The note about one update.
#[derive(Debug)]
pub(in crate::git) struct UpdateNote {
    /// The ref.
    pub(in crate::git) name: String,
    /// The commit to which the checkout is updated.
    pub(in crate::git) to: Oid,
}

impl UpdateNote {
    /// Deletes the ref.
    pub(in crate::git) fn ended(&self) -> RefMove<'_> {
        RefMove { name: &self.name, new: None, old: Some(self.to) }
    }
}

impl Repository {
    /// The ref for updates of the checkout of `branch` at `place`. No task can have this name, so it cannot collide
    /// with its marks.
    pub(in crate::git) fn update_ref_of(&self, branch: &BranchName, place: &Path) -> String {
        let digest = Oid::of(ObjectKind::Blob, place.as_os_str().as_bytes(), self.format);
        format!("{}{}", update_refs_of(branch), digest.short())
    }

    /// Whether an update of a checkout of `branch` has begun and not ended. It may still be in progress.
    pub fn has_begun_update(&self, branch: &BranchName) -> Result<bool, GitError> {
        Ok(!self.list_refs(&[&update_refs_of(branch)])?.is_empty())
    }

    /// Undoes interrupted updates in the checkouts of `branch`. `_lock` keeps other processes from updating them.
    pub fn undo_updates(&self, _lock: &FileLock, branch: &BranchName) -> Result<(), GitError> {
        if !self.has_begun_update(branch)? {
            return Ok(());
        }
        let Some(tip) = self.find_branch(branch)? else { return Ok(()) };
        for place in self.checkouts_of(branch)? {
            self.undo_update(branch, &place, tip)?;
        }
        Ok(())
    }

    /// Undoes an interrupted update in one checkout. `tip` is the tip of the branch.
    pub(in crate::git) fn undo_update(
        &self,
        branch: &BranchName,
        place: &Path,
        tip: Oid,
    ) -> Result<(), GitError> {
        let name = self.update_ref_of(branch, place);
        let Some(to) = self.find_ref(&name)? else { return Ok(()) };
        if !self.is_own_note(&name, to) {
            return self.set_aside_note(&name, to);
        }
        // If the branch has moved, the update was complete, or the user has checked out something else.
        if to != tip && self.is_ancestor(tip, to)? {
            Update { here: Self::open_at(place)?, branch, from: tip, to }.undo()?;
        }
        self.move_refs_with_default_reason(&[UpdateNote { name, to }.ended()])
    }

    /// Writes the note of an update.
    pub(in crate::git) fn begin_note(&self, note: &UpdateNote) -> Result<(), GitError> {
        self.write_note(&note.name, note.to)
    }

    /// Deletes the note of an update, even if a child process has changed it.
    pub(in crate::git) fn end_note(&self, note: &UpdateNote) -> Result<(), GitError> {
        let Err(error) = self.move_refs_with_default_reason(&[note.ended()]) else { return Ok(()) };
        match self.find_ref(&note.name)? {
            None => Ok(()),
            Some(planted) if planted != note.to => self.set_aside_note(&note.name, planted),
            Some(_) => Err(error),
        }
    }

    /// Removes those of these files that contain only the beginning of their content in `to`: a git was killed while it
    /// wrote them. They are saved first. Only for files that were not in the checkout before.
    pub fn remove_half_written(
        &self,
        branch: &BranchName,
        from: Oid,
        to: Oid,
        files: &[TreeChange],
    ) -> Result<(), GitError> {
        let update = Update { here: self.clone(), branch, from, to };
        let begun: Vec<&TreeChange> =
            files.iter().filter(|file| update.is_begun(file).unwrap_or(false)).collect();
        update.save(&begun)?;
        for file in begun {
            let removed = safe_files::remove(&update.path_of(file));
            removed.map_err(|source| ProcessError { program: "git".into(), source })?;
        }
        Ok(())
    }
}

/// An update that did not finish.
pub(in crate::git) struct Update<'a> {
    pub(in crate::git) here: Repository,
    pub(in crate::git) branch: &'a BranchName,
    pub(in crate::git) from: Oid,
    pub(in crate::git) to: Oid,
}

impl Update<'_> {
    /// Undoes what it has written. Files with any other content stay. Everything that is replaced or removed is saved
    /// first, because a forged note can claim an update that never happened.
    pub(in crate::git) fn undo(&self) -> Result<(), GitError> {
        let [before, after] = [self.here.tree_of(self.from)?, self.here.tree_of(self.to)?];
        let changes = self.here.changes(before, after)?;
        let changes: Vec<TreeChange> =
            changes.into_iter().filter(|change| !change.concerns_gitlink()).collect();
        if self.is_index_of(&changes)? {
            // The index is written last, so all files are there: git itself reverts the update, and protects the user's
            // changes.
            self.save(&changes.iter().collect::<Vec<_>>())?;
            let ended = self.here.update_to_tree(self.to, self.from, &["submodule.recurse=false"])?;
            return ended.map_err(|complaint| GitError::Failed { command: "read-tree".into(), complaint });
        }
        let done = self.list_done(&changes)?;
        let begun: Vec<&TreeChange> = changes
            .iter()
            .filter(|change| !done.contains(&change.path) && self.is_begun(change).unwrap_or(false))
            .collect();
        // If git refuses, it has written nothing. Then nothing is undone, and a missing file was removed by the user.
        let has_written = |change: &TreeChange| change.after.is_some() && done.contains(&change.path);
        if begun.is_empty() && !changes.iter().any(has_written) {
            return Ok(());
        }
        let is_touched = |change: &TreeChange| {
            done.contains(&change.path)
                || begun.iter().any(|begun| begun.path == change.path)
                || (change.before.is_some() && self.path_of(change).symlink_metadata().is_err())
        };
        let touched: Vec<TreeChange> = changes.iter().filter(|change| is_touched(change)).cloned().collect();
        self.save(&touched.iter().collect::<Vec<_>>())?;
        self.here.restore_paths(before, &touched)?;
        self.remove_empty_folders(&touched);
        self.here.change("update-index").args(["-q", "--refresh"]).finish().map(drop)
    }

    fn path_of(&self, change: &TreeChange) -> PathBuf {
        self.here.top().join(OsStr::from_bytes(&change.path))
    }

    /// Whether the index has all of the changes.
    fn is_index_of(&self, changes: &[TreeChange]) -> Result<bool, GitError> {
        let others: HashSet<Vec<u8>> = self.here.staged_since(self.to)?.into_iter().collect();
        Ok(!changes.is_empty() && changes.iter().all(|change| !others.contains(&change.path)))
    }

    /// The paths whose files match the new commit. git compares them, because of filters, modes and links.
    fn list_done(&self, changes: &[TreeChange]) -> Result<HashSet<Vec<u8>>, GitError> {
        let written: Vec<TreeChange> =
            changes.iter().filter(|change| change.after.is_some()).cloned().collect();
        let index = self.here.private_index("update")?;
        index.git("read-tree").arg("--empty").stdout()?;
        let command = index.git("update-index").args(["-z", "--index-info"]);
        command.stdout_with(&index_info(&written, self.here.format))?;
        index.git("update-index").args(["-q", "--refresh"]).finish()?;
        // Only the commit of a submodule is updated, so files in it are not compared.
        let command = index.git("diff-files").args(["--name-only", "-z", "--no-renames"]);
        let printed = command.arg("--ignore-submodules=dirty").stdout()?;
        let others: HashSet<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let is_gone =
            |change: &TreeChange| change.after.is_none() && self.path_of(change).symlink_metadata().is_err();
        let is_done = |change: &&TreeChange| {
            is_gone(change) || (change.after.is_some() && !others.contains(change.path.as_slice()))
        };
        Ok(changes.iter().filter(is_done).map(|change| change.path.clone()).collect())
    }

    /// Whether a file contains exactly a beginning of its new content. git writes files from the beginning, under their
    /// final names.
    fn is_begun(&self, change: &TreeChange) -> Result<bool, GitError> {
        let Some((_, id)) = change.after else { return Ok(false) };
        let path = self.path_of(change);
        let Ok(found) = path.symlink_metadata() else { return Ok(false) };
        if !found.is_file() {
            return Ok(false);
        }
        let whole = self.here.find_blob(id)?.unwrap_or_default();
        let is_shorter = usize::try_from(found.len()).is_ok_and(|size| size < whole.len());
        Ok(is_shorter && safe_files::read(&path).is_ok_and(|part| whole.starts_with(&part)))
    }

    /// Saves those of these files that exist under a ref before they are overwritten. Fails if one cannot be read, so
    /// that it is not overwritten.
    fn save(&self, files: &[&TreeChange]) -> Result<(), GitError> {
        let mut kept = Vec::new();
        for change in files {
            let read = read_entry(&self.path_of(change));
            let found = read.map_err(|source| ProcessError { program: "git".into(), source })?;
            let Some((mode, content)) = found else { continue };
            let blob = self.here.write_blob(&content)?;
            kept.push(TreeChange { after: Some((mode, blob)), ..(*change).clone() });
        }
        if kept.is_empty() {
            return Ok(());
        }
        let tree = self.here.tree_with(self.here.tree_of(self.from)?, &kept)?;
        let message = "files that an interrupted landing had written, or begun to write\n";
        let new = NewCommit { tree, parent: self.from, message, author: None };
        let commit = self.here.write_commit(new, Signing::No)?;
        let name = self.branch.saved_landing_ref(commit);
        // It is there already if the same files were saved within the same second.
        self.here.save_commit(&name, commit)?;
        report_saved_files(&name);
        Ok(())
    }

    /// Removes empty folders that the update has created for its files.
    fn remove_empty_folders(&self, touched: &[TreeChange]) {
        for change in touched.iter().filter(|change| change.before.is_none()) {
            let path = PathBuf::from(OsStr::from_bytes(&change.path));
            let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
            for folder in folders {
                if safe_files::remove_folder(&self.here.top().join(folder)).is_err() {
                    break;
                }
            }
        }
    }
}

/// The prefix of the refs for updates of checkouts of `branch`.
fn update_refs_of(branch: &BranchName) -> String {
    format!("refs/arborist/wip/{}/@checkout/", branch.component())
}

/// Mode and content of a file or a link, `None` if there is neither.
fn read_entry(path: &Path) -> std::io::Result<Option<(u32, Vec<u8>)>> {
    let Ok(found) = path.symlink_metadata() else { return Ok(None) };
    if found.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some((0o120_000, target.as_os_str().as_bytes().to_vec())));
    }
    if !found.is_file() {
        return Ok(None);
    }
    let is_program = found.permissions().mode() & 0o111 != 0;
    Ok(Some((if is_program { 0o100_755 } else { 0o100_644 }, safe_files::read(path)?)))
}
