//! Bringing a checkout forward with its branch. Files come first and the branch last, by its name: whatever is checked
//! out there by then, no other branch is ever moved.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    BranchUse, GitCommand, GitError, HiddenMarks, RefMove, Repository, Worktree,
    command::without_prefix,
    interrupted::{Update, UpdateNote},
};
use crate::{
    name::{BranchName, Oid},
    safe_files,
};

/// What came of a fast-forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The checkout and its branch are there.
    Done,
    /// It would touch what is not ours, for this reason; nothing changed.
    Refused(String),
    /// Another branch is checked out there by now, or the branch was moved; nothing changed.
    Overtaken,
}

/// What a fast-forward must not do besides: reach into submodules.
const PINNED: [&str; 1] = ["submodule.recurse=false"];

/// What tells that somebody is in the midst of something else.
const GOING_ON: [&str; 3] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

impl Repository {
    /// Brings a branch from one commit to another that follows it, also where it is checked out in a worktree of ours, which
    /// is one that is locked with this reason. The user's own checkout is left alone.
    pub fn bring_forward(
        &self,
        branch: &BranchName,
        (from, to): (Oid, Oid),
        reason: &str,
    ) -> Result<Taken, GitError> {
        match self.usage(branch, to)? {
            BranchUse::Free => {
                let name = branch.to_ref();
                let moved = RefMove { name: &name, new: Some(to), old: Some(from) };
                self.move_refs(&[moved], "arborist: brought forward")?;
                Ok(Taken::Done)
            }
            BranchUse::Busy(why) => Ok(Taken::Refused(why)),
            BranchUse::CheckedOut(place) => {
                let is_ours = |found: &Worktree| found.path == place && found.lock.as_deref() == Some(reason);
                if self.list_worktrees()?.iter().any(is_ours) {
                    return self.fast_forward(&place, branch, (from, to));
                }
                Ok(Taken::Refused("it is checked out, and that checkout is yours".into()))
            }
        }
    }

    /// The repository as it is seen from the worktree at `place`; `None` if git knows of none there.
    fn at_checkout(&self, place: &Path) -> Result<Option<Self>, GitError> {
        if self.worktree.as_deref() == Some(place) {
            return Ok(Some(Self { is_pinned: true, ..self.clone() }));
        }
        Ok(self
            .list_worktrees()?
            .iter()
            .find(|found| found.path == place)
            .and_then(|found| self.linked(found)))
    }

    /// Brings the checkout of `branch` at `place` and the branch itself from one commit to another, unless that would
    /// touch what is changed, staged, untracked or ignored there.
    pub fn fast_forward(
        &self,
        place: &Path,
        branch: &BranchName,
        (from, to): (Oid, Oid),
    ) -> Result<Taken, GitError> {
        let Some(home) = self.at_checkout(place)? else {
            return Ok(Taken::Overtaken);
        };
        let checkout = Checkout { repository: self, home, place, branch };
        if !checkout.is_on_branch()? {
            return Ok(Taken::Overtaken);
        }
        self.undo_update(branch, place, from)?;
        // git writes over a file of the user's that it believes to be unchanged.
        checkout.home.settle_index(HiddenMarks::Kept)?;
        if let Some(why) = checkout.find_obstacle(&self.added(from, to)?)? {
            return Ok(Taken::Refused(why));
        }
        let note = UpdateNote { name: self.update_ref_of(branch, place), to };
        self.begin_note(&note)?;
        let taken = checkout.update(from, to, &note);
        // Where the update failed in the middle, the note stays for whoever undoes it.
        if let Ok((taken, NoteIs::Over)) = &taken
            && *taken != Taken::Done
        {
            self.end_note(&note)?;
        }
        taken.map(|(taken, _)| taken)
    }
}

/// Whether an update has left anything to be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoteIs {
    /// It has not.
    Over,
    /// It may have.
    Needed,
}

/// Somebody's checkout of a branch.
struct Checkout<'a> {
    repository: &'a Repository,
    /// The same repository as it is seen from there. What stands in the checkout is not asked where that is.
    home: Repository,
    place: &'a Path,
    branch: &'a BranchName,
}

impl Checkout<'_> {
    fn git(&self, name: &str) -> GitCommand {
        self.home.pin(GitCommand::reading(name, self.place))
    }

    fn change(&self, name: &str) -> GitCommand {
        self.home.pin_changing(GitCommand::changing(name, self.place, &PINNED)).shielded()
    }

    /// Brings files, index and branch from one commit to another, or leaves them as they were.
    fn update(&self, from: Oid, to: Oid, note: &UpdateNote) -> Result<(Taken, NoteIs), GitError> {
        if self.bring(from, to)?.is_err() {
            // A file that was only touched stands in the way until git has looked at it again.
            let refresh = self.change("update-index").args(["-q", "--refresh"]);
            self.home.write_index(|index| index.of(refresh).finish())?;
            if let Err(why) = self.bring(from, to)? {
                return Ok((Taken::Refused(why), self.take_back(from, to)));
            }
        }
        let swapped = if self.is_on_branch()? { self.swap(from, to, note) } else { Ok(false) };
        if let Ok(true) = swapped {
            return Ok((Taken::Done, NoteIs::Over));
        }
        match self.bring(to, from)? {
            Ok(()) => swapped.map(|_| (Taken::Overtaken, NoteIs::Over)),
            Err(why) => Ok((Taken::Refused(why), NoteIs::Needed)),
        }
    }

    /// A full disk stops git in the middle of its files.
    fn take_back(&self, from: Oid, to: Oid) -> NoteIs {
        let undo = |here| Update { here, branch: self.branch, from, to }.undo();
        match Repository::open_at(self.place).and_then(undo) {
            Ok(()) => NoteIs::Over,
            Err(_) => NoteIs::Needed,
        }
    }

    fn is_on_branch(&self) -> Result<bool, GitError> {
        let here = self.is_here().then(|| self.repository.glance_at_head(&self.repository.git_dir));
        if let Some(branch) = here.flatten().and_then(|head| head.branch) {
            return Ok(branch == *self.branch);
        }
        let head = self.git("symbolic-ref").args(["--quiet", "HEAD"]).answer()?.unwrap_or_default();
        Ok(head.strip_suffix(b"\n") == Some(self.branch.to_ref().as_bytes()))
    }

    /// Brings index and files from one commit to another, or gives git's reason why not.
    fn bring(&self, from: Oid, to: Oid) -> Result<Result<(), String>, GitError> {
        let command = self.change("read-tree").args(["-m", "-u", &from.to_string(), &to.to_string()]);
        // Where a file is not what its object says, the note of the update stays, and the next command takes it back.
        let ended = self.home.write_checkout(None, |index| index.of(command).finish())?;
        if ended.status.success() {
            return Ok(Ok(()));
        }
        let said = without_prefix(&ended.complaint());
        Ok(Err(said.lines().next().unwrap_or_default().to_owned()))
    }

    /// Whether it is the checkout that we were started in: there a git stays that can be asked.
    fn is_here(&self) -> bool {
        self.repository.worktree.as_deref() == Some(self.place)
    }

    /// Moves the branch, if it is where it was. The note of the update goes with it.
    fn swap(&self, from: Oid, to: Oid, note: &UpdateNote) -> Result<bool, GitError> {
        if self.is_here() {
            let name = self.branch.to_ref();
            let land = RefMove { name: &name, new: Some(to), old: Some(from) };
            return match self.repository.move_refs(&[land, note.ended()], "arborist: land") {
                // A lock file says nothing about where the branch is.
                Err(error) if error.is_lock() => Err(error),
                moved => Ok(moved.is_ok()),
            };
        }
        let name = self.branch.to_ref();
        let command =
            self.change("update-ref").args(["--no-deref", "--create-reflog", "-m", "arborist: land"]);
        let command = command.args([name.clone(), to.to_string(), from.to_string()]);
        let land = [RefMove { name: &name, new: Some(to), old: Some(from) }];
        match self.repository.moving_owned(&land, || command.stdout().map(drop)) {
            Err(error) if error.is_lock() => Err(error),
            Err(_) => Ok(false),
            Ok(()) => self.repository.end_note(note).map(|()| true),
        }
    }

    fn find_going_on(&self) -> Result<Option<&'static str>, GitError> {
        // Where refs are files, so are these; tables of refs hold some of them.
        let home = &self.home;
        if home.keeps_loose_refs {
            let is_there = |name: &&str| safe_files::kind_of(&home.git_dir.join(name)).is_some();
            return Ok(GOING_ON.into_iter().find(is_there));
        }
        for name in GOING_ON {
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

    /// What git itself would go over: an unfinished merge, and ignored files where new ones are to be.
    fn find_obstacle(&self, added: &[Vec<u8>]) -> Result<Option<String>, GitError> {
        if let Some(name) = self.find_going_on()? {
            return Ok(Some(format!("{name} is there: something else is not finished")));
        }
        let mut lying = Vec::new();
        added.iter().for_each(|path| find_lying(self.place, Path::new(OsStr::from_bytes(path)), &mut lying));
        if lying.is_empty() {
            return Ok(None);
        }
        let listed = self.git("ls-files").args(["-z", "--cached"]).stdout()?;
        let known: HashSet<&[u8]> = listed.split(|b| *b == 0).collect();
        let foreign = lying.iter().find(|path| !known.contains(path.as_os_str().as_bytes()));
        Ok(foreign.map(|path| format!("'{}' would be overwritten", path.display())))
    }
}

/// The files that lie where `path` is to be: at it, below it, or where a folder on the way to it must be.
fn find_lying(top: &Path, path: &Path, lying: &mut Vec<PathBuf>) {
    let is_file = |path: &Path| top.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    if let Some(file) = folders.chain([path]).find(|path| is_file(path)) {
        lying.push(file.to_owned());
        return;
    }
    for entry in fs::read_dir(top.join(path)).into_iter().flatten().flatten() {
        find_lying(top, &path.join(entry.file_name()), lying);
    }
}
