//! A note about the step that is running for a task, for other commands to show. It decides nothing, and is believed
//! only while the process that wrote it holds the run's lock.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    git::Repository,
    message::Step,
    name::{Attempt, BranchName, TaskId},
    process::FileLock,
    safe_files,
};

/// A running step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// The process of the driver.
    pub pid: u32,
    /// The step.
    pub step: Step,
    /// The attempt.
    pub attempt: Attempt,
    /// The runner or command that does it.
    pub by: String,
    /// When it began, in seconds since 1970.
    pub since: i64,
    /// The path of its log, relative to the top of the user's checkout.
    pub log: String,
}

impl StepStatus {
    /// Writes the note. Nothing depends on it, so errors are ignored.
    pub fn post(&self, repository: &Repository, run: &BranchName, task: &TaskId) {
        let path = place_of(repository, run, task);
        if let Ok(text) = serde_json::to_string(self) {
            let _ = safe_files::write(&path, text.as_bytes());
        }
    }

    /// Removes the note.
    pub fn remove(repository: &Repository, run: &BranchName, task: &TaskId) {
        let _ = safe_files::remove(&place_of(repository, run, task));
    }

    /// The note of a process that ended without removing it. The caller holds the run's lock, so no other process can
    /// be running the step now.
    #[must_use]
    pub fn find_left(repository: &Repository, run: &BranchName, task: &TaskId) -> Option<Self> {
        let text = safe_files::read_text(&place_of(repository, run, task)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The note of the process `pid` about a task.
    #[must_use]
    pub fn find(repository: &Repository, run: &BranchName, task: &TaskId, pid: u32) -> Option<Self> {
        let text = safe_files::read_text(&place_of(repository, run, task)).ok()?;
        serde_json::from_str::<Self>(&text).ok().filter(|status| status.pid == pid)
    }
}

impl StepStatus {
    /// Whether a run is working on this task now.
    #[must_use]
    pub fn is_active(repository: &Repository, task: &TaskId) -> bool {
        let runs = safe_files::list_kinds(&notes_of(repository)).unwrap_or_default();
        runs.iter().any(|run| {
            let note = safe_files::read_text(&run.path.join(task.as_str())).ok();
            let status = note.and_then(|text| serde_json::from_str::<Self>(&text).ok());
            let name = run.path.file_name().unwrap_or_default().to_string_lossy();
            let lock = repository.lock_folder().join(format!("run-{name}"));
            status.is_some_and(|status| {
                FileLock::find_holder(&lock).is_some_and(|holder| holder.pid == status.pid)
            })
        })
    }
}

/// The folder of all notes, with a folder for each run in it.
fn notes_of(repository: &Repository) -> PathBuf {
    repository.common_dir.join("arborist/doing")
}

fn place_of(repository: &Repository, run: &BranchName, task: &TaskId) -> PathBuf {
    notes_of(repository).join(run.component()).join(task.as_str())
}
