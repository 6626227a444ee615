//! Refs are moved many times for a task, and to start git costs more than to move them. So one git stays, and is told.

use std::{
    io::BufRead,
    sync::{Arc, Mutex, PoisonError},
};

use super::{GitError, RefMove, Repository, command::without_prefix, write::lines_of_moves};
use crate::process::Running;

/// The git that moves refs of one worktree, once it was needed. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct RefMover(Arc<Mutex<Option<Running>>>);

/// What a move is called in reflogs.
const WHY: &str = "arborist";

impl Repository {
    /// Moves refs as [`Repository::move_refs`] does, by a git that stays.
    pub fn move_refs_again(&self, moves: &[RefMove<'_>]) -> Result<(), GitError> {
        let mut mover = self.mover.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match mover.take() {
            Some(running) => running,
            None => self.start_mover()?,
        };
        let lines = lines_of_moves(self.format, moves);
        if running.tell(format!("start\n{lines}prepare\ncommit\n").as_bytes()).is_ok()
            && has_committed(&mut running)
        {
            *mover = Some(running);
            return Ok(());
        }
        let complaint = running.finish()?.complaint();
        if complaint.is_empty() {
            // It was ended before it could say anything: another one is asked.
            return self.move_refs(moves, WHY);
        }
        Err(GitError::Failed { command: "update-ref".into(), complaint: without_prefix(&complaint) })
    }

    fn start_mover(&self) -> Result<Running, GitError> {
        self.change("update-ref").args(["--create-reflog", "-m", WHY, "--stdin"]).converse()
    }
}

/// It answers to each command; without the last answer nothing has moved.
fn has_committed(running: &mut Running) -> bool {
    let Some(output) = running.output() else {
        return false;
    };
    let mut answer = String::new();
    loop {
        answer.clear();
        match output.read_line(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(_) if answer.trim_end() == "commit: ok" => return true,
            Ok(_) => {}
        }
    }
}
