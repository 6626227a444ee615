//! Moves refs in transactions.

use crate::{
    git::{
        GitError, RefMove, Repository,
        command::without_prefix,
        locks::{find_obstacle, wait_for},
        objects::write::lines_of_moves,
        refs::ref_updater::{Reason, TransactionEnd},
    },
    name::{Oid, SAVED},
};

/// The refs that only arborist uses. All worktrees share them, and none checks one out.
const OWN_REFS: &str = "refs/arborist/";

/// The reflog message of moves that need no other one.
const DEFAULT_REASON: &str = "arborist";

/// The reflog message of a `HEAD` that is detached because its worktree is free.
pub(in crate::git) const FREED: &str = "arborist: free";

/// git's complaint about a ref that does not have the expected old value.
const OTHER_VALUE: &str = "but expected";

/// git's complaint about a reflog that it cannot write.
const NOT_APPENDED: &str = "unable to append to";

/// How many locks to wait for, one after the other, before a transaction fails.
const MAX_LOCKS: usize = 8;

impl Repository {
    /// Moves refs in one transaction: either all of them have the expected old values, or none is moved. git's files
    /// backend writes them one after the other, in this order, and deletes at the end: if git is killed, only the first
    /// ones may be moved. So put the ref that makes the others valid last. `why` is the reflog message.
    pub fn move_refs(&self, moves: &[RefMove<'_>], why: &str) -> Result<(), GitError> {
        self.note_written(moves);
        self.move_and_record(moves, || self.move_refs_unrecorded(moves, why))?;
        self.forget_written(moves);
        Ok(())
    }

    /// Like [`Self::move_refs`], but the table of owned refs is not updated.
    pub(in crate::git) fn move_refs_unrecorded(
        &self,
        moves: &[RefMove<'_>],
        why: &str,
    ) -> Result<(), GitError> {
        let lines = lines_of_moves(self.format, moves);
        let creates_reflog = moves.iter().any(|moved| needs_reflog(moved.name));
        let why = &Reason { message: why.to_owned(), creates_reflog };
        // No worktree checks these out, so no reflog of a `HEAD` has to be written.
        let are_ours = moves.iter().all(|moved| moved.name.starts_with(OWN_REFS));
        let writer = if are_ours { self.shared_ref_writer() } else { self.clone() };
        for _ in 0..MAX_LOCKS {
            self.clear_reflogs_of(moves.iter().map(|moved| moved.name));
            match writer.commit_transaction(&transaction(&lines), why)? {
                TransactionEnd::Committed => return Ok(()),
                TransactionEnd::Killed if self.have_moved(moves)? => return Ok(()),
                // The last try is with a new process.
                TransactionEnd::Killed => break,
                // A lock says nothing about the values of the refs. Try again when it is gone.
                TransactionEnd::Refused(complaint) => match find_obstacle(&complaint, self.top()) {
                    Some(lock) => wait_for(&lock)?,
                    // A link was planted after the last look. Landlock keeps git from writing through it.
                    None if complaint.contains(NOT_APPENDED) => {}
                    // `git pack-refs` at the same time can show an old value to git. A new process sees the new one.
                    None if complaint.contains(OTHER_VALUE) && self.are_unmoved(moves)? => {}
                    None => {
                        let complaint = without_prefix(&complaint);
                        return Err(GitError::Failed { command: "update-ref".into(), complaint });
                    }
                },
            }
        }
        let input = transaction(&lines).into_bytes();
        self.update_refs(why).stdout_with(&input).map(drop)
    }

    /// Moves refs for routine updates that need no particular reflog message.
    pub fn move_refs_with_default_reason(&self, moves: &[RefMove<'_>]) -> Result<(), GitError> {
        self.move_refs(moves, DEFAULT_REASON)
    }

    /// Detaches `HEAD`. Index and files stay as they are.
    pub fn detach(&self, commit: Oid) -> Result<(), GitError> {
        // A git that runs in the common directory has a name for `HEAD` of each linked worktree.
        let (writer, name) = match self.worktree_id() {
            Some(id) => (self.shared_ref_writer(), format!("worktrees/{id}/HEAD")),
            None => (self.clone(), "HEAD".to_owned()),
        };
        let moved = transaction(&format!("option no-deref\nupdate {name} {commit}\n"));
        self.clear_reflogs_of(std::iter::empty());
        // git creates this reflog by itself only from within the worktree.
        let why = Reason { message: FREED.to_owned(), creates_reflog: true };
        if matches!(writer.commit_transaction(&moved, &why)?, TransactionEnd::Committed) {
            return Ok(());
        }
        let command = self.change("update-ref").args(["--no-deref", "-m", FREED, "HEAD"]);
        command.arg(commit.to_string()).stdout().map(drop)
    }

    /// The repository for moving refs of which no worktree's `HEAD` keeps a record: as all worktrees share it, if git is
    /// as well confined there.
    fn shared_ref_writer(&self) -> Self {
        let shared = self.without_worktree();
        if shared.confines_refs() == self.confines_refs() { shared } else { self.clone() }
    }

    /// The name of the git directory of a linked worktree.
    fn worktree_id(&self) -> Option<&str> {
        let is_linked = self.git_dir.parent() == Some(&self.common_dir.join("worktrees"));
        self.git_dir.file_name().filter(|_| is_linked)?.to_str()
    }

    /// Whether every ref has its expected old value.
    fn are_unmoved(&self, moves: &[RefMove<'_>]) -> Result<bool, GitError> {
        for RefMove { name, old, .. } in moves {
            if self.find_ref(name)? != *old {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every ref has its new value.
    fn have_moved(&self, moves: &[RefMove<'_>]) -> Result<bool, GitError> {
        for RefMove { name, new, .. } in moves {
            if self.find_ref(name)? != *new {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether the reflog of a ref is used: the time of a save is in it, and earlier versions of saved files are. The other
/// refs of ours come and go several times for each task, and a reflog is a file and up to five folders.
fn needs_reflog(name: &str) -> bool {
    name.starts_with(SAVED) || (name.starts_with("refs/arborist/wip/") && name.ends_with("/tree"))
}

/// These commands as one transaction. git aborts it unless the last line arrives, so a part of it moves nothing if this
/// process is killed.
fn transaction(commands: &str) -> String {
    format!("start\n{commands}prepare\ncommit\n")
}
