//! Saves unfinished work to a ref periodically while an agent works in a worktree, and restores it. The changes of each
//! turn are committed, but a turn can be long, and not every agent reports turns.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use super::{Pool, WorktreeError, WorktreeNote, WorktreeRemains, set_up::forget_set_up};
use crate::{
    event::EventKind,
    git::{GitError, NewCommit, PrivateIndex, RefMove, Repository, Signing, Stamp, TreeChange},
    message::{Status, Step},
    mutex::MutexExt,
    name::{BranchName, Oid, TaskId},
    process::{Cancel, within},
};

/// Reading a worktree takes seconds. If it takes longer, it hangs on something that an agent has put there.
const SAVE_TIMEOUT: Duration = Duration::from_secs(120);

/// Saves one worktree repeatedly. It has its own index and remembers what it saw: if nothing changed, nothing is read
/// or written again.
#[derive(Debug)]
pub struct Saver<'a> {
    repository: &'a Repository,
    index: PrivateIndex<'a>,
    name: String,
    task: TaskId,
    saved: Option<Saved>,
    seen: Option<(Stamp, Oid)>,
}

#[derive(Debug, Clone, Copy)]
struct Saved {
    tree: Oid,
    commit: Oid,
}

impl<'a> Saver<'a> {
    /// For a task that is worked on in the worktree of `repository`.
    pub fn new(repository: &'a Repository, run: &BranchName, task: &TaskId) -> Result<Self, GitError> {
        let name = ref_of(run, task);
        let saved = match repository.find_ref(&name)? {
            Some(commit) => Some(Saved { tree: repository.tree_of(commit)?, commit }),
            None => None,
        };
        let index = repository.private_index("saver")?;
        Ok(Self { repository, index, name, task: task.clone(), saved, seen: None })
    }

    /// Saves tracked and untracked files if they have changed; `None` if they have not. It gives up when `cancel` is
    /// cancelled.
    pub fn save(&mut self, cancel: &Cancel) -> Result<Option<Oid>, GitError> {
        // Only this part is interrupted: a git that is moving refs would leave its lock files.
        let tree = within(SAVE_TIMEOUT, cancel, || self.index.add_again(&mut self.seen))?;
        if self.saved.is_some_and(|saved| saved.tree == tree) {
            return Ok(None);
        }
        let parent = self.repository.require_commit("HEAD")?;
        if self.repository.tree_of(parent)? == tree {
            return Ok(None);
        }
        let message = format!("unfinished work on {}\n", self.task);
        let commit = self
            .repository
            .write_commit(NewCommit { tree, parent, message: &message, author: None }, Signing::No)?;
        let old = self.saved.map(|saved| saved.commit);
        self.repository
            .move_refs(&[RefMove { name: &self.name, new: Some(commit), old }], "arborist: save")?;
        self.saved = Some(Saved { tree, commit });
        Ok(Some(commit))
    }

    /// Deletes the saved work once it has been recorded.
    pub fn clear(&mut self) -> Result<(), GitError> {
        let Some(saved) = self.saved.take() else {
            return Ok(());
        };
        let moves = [RefMove { name: &self.name, new: None, old: Some(saved.commit) }];
        self.repository.move_refs(&moves, "arborist: written down")
    }
}

/// The ref of a task's unfinished work. Marks of attempts are next to it and end in a number.
fn ref_of(run: &BranchName, task: &TaskId) -> String {
    format!("refs/arborist/wip/{}/{task}/tree", run.component())
}

/// Restored work.
#[derive(Debug)]
pub struct RestoredWorktree {
    /// The commit that had it.
    pub from: Oid,
    /// The paths that were changed.
    pub changes: Vec<TreeChange>,
    /// Notes for the user.
    pub notes: Vec<WorktreeNote>,
}

impl Pool {
    /// Restores the files of a task's worktree from the last save. Branch and index stay, so that they are uncommitted
    /// changes. The current files are saved first.
    pub fn restore(&self, task: &TaskId) -> Result<RestoredWorktree, WorktreeError> {
        let name = ref_of(&self.run, task);
        let nothing = || WorktreeError::NothingSaved(task.clone());
        let from = self.repository.find_ref(&name)?.ok_or_else(nothing)?;
        let at = self.repository.require_commit(&format!("{from}^"))?;
        let lease = self.add(task, at)?;
        let lane = &lease.repository;
        let tip = lane.require_commit("HEAD")?;
        if tip != at {
            return Err(WorktreeError::SavedElsewhere { task: task.clone(), at, tip, name });
        }
        let (now, wanted) = (lane.snapshot()?, lane.tree_of(from)?);
        let changes = lane.changes(now, wanted)?;
        let mut notes = Vec::new();
        if !changes.is_empty() {
            notes.extend(self.save(lane, task.as_str())?);
            lane.private_index("restore")?.write_out(wanted)?;
        }
        Ok(RestoredWorktree { from, changes, notes })
    }
}

/// A saved worktree.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The commit that was checked out.
    pub head: Oid,
    /// The branch to check out, if any.
    pub branch: Option<BranchName>,
    /// The files.
    pub tree: Oid,
    /// The staged tree, if it differed from the commit.
    pub staged: Option<Oid>,
}

impl Pool {
    /// The path for a worktree of this name.
    #[must_use]
    pub fn path_for(&self, name: &str) -> PathBuf {
        let name = if super::paths::is_lane(name) { format!("restored-{name}") } else { name.to_owned() };
        self.places.base.join(name)
    }

    /// Creates a worktree at `path`, which must not exist, with the saved files as uncommitted changes.
    pub fn revive(&self, path: &Path, saved: &Remembered) -> Result<PathBuf, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let worktrees = self.repository.list_worktrees()?;
        let places = self.places.prepared(&self.repository, &worktrees)?;
        let path = match path.strip_prefix(&self.places.base) {
            Ok(rest) => places.base.join(rest),
            Err(_) => path.to_owned(),
        };
        if path.symlink_metadata().is_ok() {
            return Err(WorktreeError::Occupied(path));
        }
        let lane = self.linked(&self.make_at(&path, saved.head, super::REASON)?)?;
        lane.check_out_commit(saved.head)?;
        lane.private_index("revive")?.write_out(saved.tree)?;
        if let Some(staged) = saved.staged {
            lane.stage_tree(staged)?;
        }
        if let Some(branch) = &saved.branch {
            lane.attach(branch)?;
        }
        Ok(path)
    }

    /// The ignored files of a worktree that match one of `patterns`.
    pub fn find_ignored(
        &self,
        place: &WorktreeRemains,
        patterns: &[String],
    ) -> Result<Vec<PathBuf>, WorktreeError> {
        let Some(lane) = self.look_into(place).filter(|_| !place.is_missing && !patterns.is_empty()) else {
            return Ok(Vec::new());
        };
        let (ignored, _) = lane.split_ignored(lane.find_untracked(patterns)?)?;
        Ok(ignored.iter().map(|path| place.path.join(path)).collect())
    }

    /// Called when caches of a worktree were deleted, so that it is set up again before its next use.
    pub fn forget_caches(&self, place: &WorktreeRemains) {
        if let Some(lane) = self.look_into(place) {
            forget_set_up(&lane);
        }
    }
}

/// A message to the thread that saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// An agent starts to work.
    Begun,
    /// Its work has been recorded.
    Written,
}

impl Sign {
    /// The message for an event, if there is one.
    fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::StepBegins { step: Step::Implement, .. } => Some(Self::Begun),
            EventKind::Recorded { status: Status::ImplementPass | Status::ImplementFail, .. } => {
                Some(Self::Written)
            }
            _ => None,
        }
    }
}

/// The sending side.
pub struct Signals {
    sender: Sender<Sign>,
    /// Cancels the save in progress. Replaced for each agent.
    over: Arc<Mutex<Cancel>>,
}

/// The receiving side.
pub struct SaveSignals {
    receiver: Receiver<Sign>,
    over: Arc<Mutex<Cancel>>,
}

impl SaveSignals {
    /// Cancels a save that starts now.
    fn cancel(&self) -> Cancel {
        self.over.hold().clone()
    }
}

impl Signals {
    /// Creates both sides.
    pub fn new() -> (Self, SaveSignals) {
        let (sender, receiver) = channel();
        let over = Arc::new(Mutex::new(Cancel::new()));
        (Self { sender, over: Arc::clone(&over) }, SaveSignals { receiver, over })
    }

    /// Sends the message for an event.
    pub fn give(&self, kind: &EventKind) {
        let Some(sign) = Sign::of(kind) else { return };
        match sign {
            Sign::Begun => *self.over.hold() = Cancel::new(),
            Sign::Written => self.stop_saving(),
        }
        // Sending fails only when the work is at its end.
        let _ = self.sender.send(sign);
    }

    /// A save that hangs on something that the agent left must not delay the run.
    fn stop_saving(&self) {
        self.over.hold().cancel();
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.stop_saving();
    }
}

/// Whose work is saved, and how often.
pub struct Saving<'a> {
    /// The worktree.
    pub repository: &'a Repository,
    /// The branch of the run.
    pub run: &'a BranchName,
    /// The task.
    pub task: &'a TaskId,
    /// How often.
    pub every: Duration,
}

impl Saving<'_> {
    /// Saves until the sender is gone. A failed save is retried the next time.
    pub fn run(&self, signs: &SaveSignals) {
        let mut saver = None;
        let mut is_at_work = false;
        loop {
            match signs.receiver.recv_timeout(self.every) {
                Ok(Sign::Begun) => is_at_work = true,
                Ok(Sign::Written) => {
                    is_at_work = false;
                    if let Some(Err(_)) = saver.as_mut().map(Saver::clear) {
                        saver = None;
                    }
                }
                Err(RecvTimeoutError::Timeout) if is_at_work => self.save(&mut saver, &signs.cancel()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn save<'s>(&'s self, saver: &mut Option<Saver<'s>>, cancel: &Cancel) {
        if saver.is_none() {
            *saver = Saver::new(self.repository, self.run, self.task).ok();
        }
        if let Some(Err(_)) = saver.as_mut().map(|saver| saver.save(cancel)) {
            *saver = None;
        }
    }
}
