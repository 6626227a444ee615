//! Refs are moved many times for a task, and to start git costs more than to move them. So one git stays, and is told.

use std::io::BufRead;

use super::{GitError, RefMove, Repository, command::without_prefix, write::lines_of_moves};
use crate::process::Running;

/// What a move is called in reflogs.
const WHY: &str = "arborist";

impl Repository {
    /// Moves refs as [`Repository::move_refs`] does, by a git that stays.
    pub fn move_refs_again(&self, moves: &[RefMove<'_>]) -> Result<(), GitError> {
        let lines = format!("start\n{}prepare\ncommit\n", lines_of_moves(self.format, moves));
        let start = || self.change("update-ref").args(["--create-reflog", "-m", WHY, "--stdin"]).converse();
        let told = self.mover.ask(start, |running| {
            running.tell(lines.as_bytes()).ok()?;
            has_committed(running)
        })?;
        match told {
            Ok(()) => Ok(()),
            // It was ended before it could say anything: unless it had done it, another one is asked.
            Err(complaint) if complaint.is_empty() && self.have_moved(moves)? => Ok(()),
            Err(complaint) if complaint.is_empty() => self.move_refs(moves, WHY),
            Err(complaint) => {
                Err(GitError::Failed { command: "update-ref".into(), complaint: without_prefix(&complaint) })
            }
        }
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

/// It answers to each command. Without the last answer it is not known whether anything has moved.
fn has_committed(running: &mut Running) -> Option<()> {
    let output = running.output()?;
    let mut answer = String::new();
    loop {
        answer.clear();
        match output.read_line(&mut answer) {
            Ok(0) | Err(_) => return None,
            Ok(_) if answer.trim_end() == "commit: ok" => return Some(()),
            Ok(_) => {}
        }
    }
}
