//! What is done for a task at this moment, for whoever looks: a note beside the locks. It decides nothing, and is believed
//! only while the process that wrote it holds the run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    git::Repository,
    name::{Attempt, BranchName, TaskId},
    safe_files,
};

/// A step that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// The process that drives it.
    pub pid: u32,
    /// The step.
    pub step: String,
    /// The attempt.
    pub attempt: Attempt,
    /// Who does it: a runner, or a command.
    pub by: String,
    /// Since when: seconds since 1970.
    pub since: i64,
    /// Where its output goes, from the top of the user's checkout.
    pub log: String,
}

impl StepStatus {
    /// Puts it up. Whoever cannot read it knows less, so nothing depends on that.
    pub fn post(&self, repository: &Repository, run: &BranchName, task: &TaskId) {
        let path = place_of(repository, run, task);
        if let Ok(text) = serde_json::to_string(self) {
            let _ = safe_files::write(&path, text.as_bytes());
        }
    }

    /// Takes it away.
    pub fn remove(repository: &Repository, run: &BranchName, task: &TaskId) {
        let _ = safe_files::remove(&place_of(repository, run, task));
    }

    /// What a process that is gone was doing for a task when it ended. The caller holds the run, so nobody else can be
    /// doing it now; a process that ends in order removes its note.
    #[must_use]
    pub fn find_left(repository: &Repository, run: &BranchName, task: &TaskId) -> Option<Self> {
        let text = safe_files::read_text(&place_of(repository, run, task)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// What the process `pid` does for a task, if it has said so.
    #[must_use]
    pub fn find(repository: &Repository, run: &BranchName, task: &TaskId, pid: u32) -> Option<Self> {
        let text = safe_files::read_text(&place_of(repository, run, task)).ok()?;
        serde_json::from_str::<Self>(&text).ok().filter(|status| status.pid == pid)
    }
}

fn place_of(repository: &Repository, run: &BranchName, task: &TaskId) -> PathBuf {
    repository.common_dir.join("arborist/doing").join(run.component()).join(task.as_str())
}
