//! Refs are moved in transactions.

use super::{
    GitError, RefMove, Repository,
    command::{checked, without_prefix},
    locks::{find_obstacle, wait_for},
    write::lines_of_moves,
};
use crate::name::Oid;

/// What a move is called in reflogs where nothing else is said.
const WHY: &str = "arborist";

/// A transaction meets at most so many locks, one after the other, before something else is wrong.
const LOCKS_PASSED: usize = 8;

impl Repository {
    /// Moves refs in one transaction: all of them are where we believe them to be, or none is moved. With git's files backend
    /// they move one after the other, in this order, and those that are deleted after all others: a kill may
    /// leave only the first few of them moved. Whoever gives several puts the one that counts behind those that it
    /// needs. Reflogs say why.
    pub fn move_refs(&self, moves: &[RefMove<'_>], why: &str) -> Result<(), GitError> {
        self.moving_owned(moves, || self.move_refs_freely(moves, why))
    }

    /// The same without a note for those who compare what is owned.
    pub(super) fn move_refs_freely(&self, moves: &[RefMove<'_>], why: &str) -> Result<(), GitError> {
        let lines = lines_of_moves(self.format, moves);
        for _ in 0..LOCKS_PASSED {
            match self.have_committed(&transaction(&lines), why)? {
                Ok(()) => return Ok(()),
                // It was ended before it could say anything: unless it had done it, another one is asked.
                Err(complaint) if complaint.is_empty() && self.have_moved(moves)? => return Ok(()),
                Err(complaint) if complaint.is_empty() => break,
                // A lock says nothing about where the refs are: the same is tried again behind it.
                Err(complaint) => match find_obstacle(&complaint, self.top()) {
                    Some(lock) => wait_for(&lock)?,
                    None => {
                        let complaint = without_prefix(&complaint);
                        return Err(GitError::Failed { command: "update-ref".into(), complaint });
                    }
                },
            }
        }
        let input = transaction(&lines).into_bytes();
        checked("update-ref", self.update_refs(why).finish_with(&input)?).map(drop)
    }

    /// The same for what happens all the time, and is no news to a reflog.
    pub fn move_refs_again(&self, moves: &[RefMove<'_>]) -> Result<(), GitError> {
        self.move_refs(moves, WHY)
    }

    /// Takes `HEAD` off its branch and leaves everything else as it is.
    pub fn detach(&self, commit: Oid) -> Result<(), GitError> {
        const WHY: &str = "arborist: free";
        let moved = transaction(&format!("option no-deref\nupdate HEAD {commit}\n"));
        if self.have_committed(&moved, WHY)?.is_ok() {
            return Ok(());
        }
        let command = self.change("update-ref").args(["--no-deref", "-m", WHY, "HEAD"]);
        command.arg(commit.to_string()).stdout().map(drop)
    }

    /// Whether every ref is where it was to be.
    fn have_moved(&self, moves: &[RefMove<'_>]) -> Result<bool, GitError> {
        for RefMove { name, new, .. } in moves {
            if self.find_ref(name)? != *new {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// These commands as one transaction. It is aborted unless its last line arrives, so that one of which only a part was
/// heard, because we were killed, moves nothing.
fn transaction(commands: &str) -> String {
    format!("start\n{commands}prepare\ncommit\n")
}
