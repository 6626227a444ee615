//! Fast-forwards a checkout together with its branch. Files are written first, and the branch is moved last and by
//! name: if something else has been checked out meanwhile, no other branch is moved.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{
        BranchUse, GitCommand, GitError, HiddenMarks, RefMove, Repository, Worktree,
        command::without_prefix,
        worktrees::interrupted_updates::{Update, UpdateNote},
    },
    name::{BranchName, Oid},
    safe_files,
};

/// The result of a fast-forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FastForward {
    /// Checkout and branch are at the new commit.
    Done,
    /// It would overwrite something of the user, for this reason. Nothing changed.
    Refused(String),
    /// Meanwhile another branch was checked out, or the branch was moved. Nothing changed.
    BranchChanged,
}

/// Settings for a fast-forward: it must not change submodules.
const PINNED: [&str; 1] = ["submodule.recurse=false"];

/// Files that show that another operation is in progress.
const IN_PROGRESS: [&str; 3] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

impl Repository {
    /// Fast-forwards a branch, also where it is checked out in one of our worktrees, which is locked with this reason.
    /// The user's own checkout is left alone.
    pub fn fast_forward_branch(
        &self,
        branch: &BranchName,
        from: Oid,
        to: Oid,
        reason: &str,
    ) -> Result<FastForward, GitError> {
        match self.usage(branch, to)? {
            BranchUse::Free => {
                let name = branch.to_ref();
                let moved = RefMove { name: &name, new: Some(to), old: Some(from) };
                self.move_refs(&[moved], "arborist: brought forward")?;
                Ok(FastForward::Done)
            }
            BranchUse::Busy(why) => Ok(FastForward::Refused(why)),
            BranchUse::CheckedOut(place) => {
                let is_ours = |found: &Worktree| found.path == place && found.lock.as_deref() == Some(reason);
                if self.list_worktrees()?.iter().any(is_ours) {
                    return self.fast_forward(&place, branch, from, to);
                }
                Ok(FastForward::Refused("you have it checked out".into()))
            }
        }
    }

    /// The repository as seen from the worktree at `place`; `None` if git has no worktree there.
    pub(in crate::git) fn at_checkout(&self, place: &Path) -> Result<Option<Self>, GitError> {
        if self.worktree.as_deref() == Some(place) {
            return Ok(Some(Self { ignores_index_env: true, ..self.clone() }));
        }
        Ok(self
            .list_worktrees()?
            .iter()
            .find(|found| found.path == place)
            .and_then(|found| self.linked(found)))
    }

    /// Why a branch and its checkout cannot be fast-forwarded; `None` if they can. Nothing is changed.
    pub fn find_obstacle(&self, branch: &BranchName, from: Oid, to: Oid) -> Result<Option<String>, GitError> {
        let place = match self.usage(branch, to)? {
            BranchUse::Free => return Ok(None),
            BranchUse::Busy(why) => return Ok(Some(why)),
            BranchUse::CheckedOut(place) => place,
        };
        let Some(checkout_repository) = self.at_checkout(&place)? else {
            return Ok(Some("its checkout has just changed".into()));
        };
        let checkout = Checkout { repository: self, checkout_repository, place: &place, branch };
        checkout.prepare(from)?;
        match checkout.find_obstacle(&self.added(from, to)?)? {
            Some(why) => Ok(Some(why)),
            None => checkout.try_read_tree(from, to),
        }
    }

    /// Fast-forwards the checkout of `branch` at `place` and the branch itself, unless that would overwrite something
    /// changed, staged, untracked or ignored there.
    pub fn fast_forward(
        &self,
        place: &Path,
        branch: &BranchName,
        from: Oid,
        to: Oid,
    ) -> Result<FastForward, GitError> {
        let Some(checkout_repository) = self.at_checkout(place)? else {
            return Ok(FastForward::BranchChanged);
        };
        let checkout = Checkout { repository: self, checkout_repository, place, branch };
        if !checkout.is_on_branch()? {
            return Ok(FastForward::BranchChanged);
        }
        checkout.prepare(from)?;
        if let Some(why) = checkout.find_obstacle(&self.added(from, to)?)? {
            return Ok(FastForward::Refused(why));
        }
        let note = UpdateNote { name: self.update_ref_of(branch, place), to };
        self.begin_note(&note)?;
        let taken = checkout.update(from, to, &note);
        // If the update failed halfway, the note stays, so that it can be undone later.
        if let Ok((taken, NoteState::Over)) = &taken
            && *taken != FastForward::Done
        {
            self.end_note(&note)?;
        }
        taken.map(|(taken, _)| taken)
    }
}

/// Whether the note about an update is still needed to undo it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoteState {
    /// The update is complete or undone.
    Over,
    /// Files may be left that have to be undone.
    Needed,
}

/// A checkout of a branch.
struct Checkout<'a> {
    repository: &'a Repository,
    /// The repository as seen from that checkout. Its location is not read from files in the checkout, which could be
    /// forged.
    checkout_repository: Repository,
    place: &'a Path,
    branch: &'a BranchName,
}

impl Checkout<'_> {
    fn git(&self, name: &str) -> GitCommand {
        self.checkout_repository.pin(GitCommand::reading(name, self.place))
    }

    fn change(&self, name: &str) -> GitCommand {
        self.checkout_repository.pin_changing(GitCommand::changing(name, self.place, &PINNED)).shielded()
    }

    /// Undoes an interrupted update, and verifies the index: git overwrites files of the user that the index calls
    /// unchanged.
    fn prepare(&self, from: Oid) -> Result<(), GitError> {
        self.repository.undo_update(self.branch, self.place, from)?;
        self.checkout_repository.make_index_known(HiddenMarks::Kept)
    }

    /// git refuses to update files that were only touched, until their stat data in the index is refreshed.
    fn refresh(&self) -> Result<(), GitError> {
        let refresh = self.change("update-index").args(["-q", "--refresh"]);
        self.checkout_repository.write_index(|index| index.of(refresh).finish())?;
        Ok(())
    }

    /// git's reason why it would not update index and files.
    fn try_read_tree(&self, from: Oid, to: Oid) -> Result<Option<String>, GitError> {
        self.refresh()?;
        let command = self.git("read-tree").args(["-n", "-m", "-u", &from.to_string(), &to.to_string()]);
        let ended = command.finish()?;
        let git_reason = without_prefix(&ended.complaint());
        Ok((!ended.status.success()).then(|| git_reason.lines().next().unwrap_or_default().to_owned()))
    }

    /// Updates files, index and branch from one commit to another, or leaves them as they were.
    fn update(&self, from: Oid, to: Oid, note: &UpdateNote) -> Result<(FastForward, NoteState), GitError> {
        if self.read_tree(from, to)?.is_err() {
            self.refresh()?;
            if let Err(why) = self.read_tree(from, to)? {
                return Ok((FastForward::Refused(why), self.undo(from, to)));
            }
        }
        let swapped = if self.is_on_branch()? { self.swap(from, to, note) } else { Ok(false) };
        if let Ok(true) = swapped {
            return Ok((FastForward::Done, NoteState::Over));
        }
        match self.read_tree(to, from)? {
            Ok(()) => swapped.map(|_| (FastForward::BranchChanged, NoteState::Over)),
            Err(why) => Ok((FastForward::Refused(why), NoteState::Needed)),
        }
    }

    /// Undoes an update that stopped halfway, for example because the disk is full.
    fn undo(&self, from: Oid, to: Oid) -> NoteState {
        let undo = |here| Update { here, branch: self.branch, from, to }.undo();
        match Repository::open_at(self.place).and_then(undo) {
            Ok(()) => NoteState::Over,
            Err(_) => NoteState::Needed,
        }
    }

    fn is_on_branch(&self) -> Result<bool, GitError> {
        let here = self.is_here().then(|| self.repository.read_head_file(&self.repository.git_dir));
        if let Some(branch) = here.flatten().and_then(|head| head.branch) {
            return Ok(branch == *self.branch);
        }
        let head = self.git("symbolic-ref").args(["--quiet", "HEAD"]).answer()?.unwrap_or_default();
        Ok(head.strip_suffix(b"\n") == Some(self.branch.to_ref().as_bytes()))
    }

    /// Updates index and files from one commit to another, or returns git's reason why not.
    fn read_tree(&self, from: Oid, to: Oid) -> Result<Result<(), String>, GitError> {
        let command = self.change("read-tree").args(["-m", "-u", &from.to_string(), &to.to_string()]);
        // If a written file differs from its object, the note stays, and the next command undoes the update.
        let ended = self.checkout_repository.write_checkout(None, |index| index.of(command).finish())?;
        if ended.status.success() {
            return Ok(Ok(()));
        }
        let git_reason = without_prefix(&ended.complaint());
        Ok(Err(git_reason.lines().next().unwrap_or_default().to_owned()))
    }

    /// Whether it is the checkout that this process was started in, for which ref updaters are open.
    fn is_here(&self) -> bool {
        self.repository.worktree.as_deref() == Some(self.place)
    }

    /// Moves the branch if it has its old value, and deletes the note about the update.
    fn swap(&self, from: Oid, to: Oid, note: &UpdateNote) -> Result<bool, GitError> {
        if self.is_here() {
            let name = self.branch.to_ref();
            let land = RefMove { name: &name, new: Some(to), old: Some(from) };
            return match self.repository.move_refs(&[land, note.ended()], "arborist: land") {
                // A lock says nothing about the value of the branch.
                Err(error) if error.is_lock() => Err(error),
                moved => Ok(moved.is_ok()),
            };
        }
        let name = self.branch.to_ref();
        let command =
            self.change("update-ref").args(["--no-deref", "--create-reflog", "-m", "arborist: land"]);
        let command = command.args([name.clone(), to.to_string(), from.to_string()]);
        let land = [RefMove { name: &name, new: Some(to), old: Some(from) }];
        match self.repository.move_and_record(&land, || command.stdout().map(drop)) {
            Err(error) if error.is_lock() => Err(error),
            Err(_) => Ok(false),
            Ok(()) => self.repository.end_note(note).map(|()| true),
        }
    }

    fn find_operation(&self) -> Result<Option<&'static str>, GitError> {
        // In the files backend these are files; a reftable contains some of them.
        let checkout_repository = &self.checkout_repository;
        if checkout_repository.has_files_backend {
            let is_there =
                |name: &&str| safe_files::kind_of(&checkout_repository.git_dir.join(name)).is_some();
            return Ok(IN_PROGRESS.into_iter().find(is_there));
        }
        for name in IN_PROGRESS {
            let is_there = if self.is_here() {
                self.repository.find_commit(name)?.is_some()
            } else {
                self.git("rev-parse").args(["--quiet", "--verify", name]).finish()?.status.success()
            };
            if is_there {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Obstacles that git itself would overwrite: an unfinished merge, and ignored files at the paths of new ones.
    fn find_obstacle(&self, added: &[Vec<u8>]) -> Result<Option<String>, GitError> {
        if let Some(name) = self.find_operation()? {
            return Ok(Some(format!("another operation is not finished ({name} exists)")));
        }
        let mut existing = Vec::new();
        added
            .iter()
            .for_each(|path| find_existing(self.place, Path::new(OsStr::from_bytes(path)), &mut existing));
        if existing.is_empty() {
            return Ok(None);
        }
        let listed = self.git("ls-files").args(["-z", "--cached"]).stdout()?;
        let known: HashSet<&[u8]> = listed.split(|b| *b == 0).collect();
        let overwritten = existing.iter().find(|path| !known.contains(path.as_os_str().as_bytes()));
        Ok(overwritten.map(|path| format!("'{}' would be overwritten", path.display())))
    }
}

/// The existing files at `path`: the path itself, files below it, or a file where the path needs a folder.
fn find_existing(top: &Path, path: &Path, existing: &mut Vec<PathBuf>) {
    let is_file = |path: &Path| top.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    if let Some(file) = folders.chain([path]).find(|path| is_file(path)) {
        existing.push(file.to_owned());
        return;
    }
    for entry in fs::read_dir(top.join(path)).into_iter().flatten().flatten() {
        find_existing(top, &path.join(entry.file_name()), existing);
    }
}
