//! To start git costs more than most of what it is asked. What is asked many times for a task is asked of one that stays.

use std::sync::{Arc, Mutex, PoisonError};

use super::GitError;
use crate::process::Running;

/// A git that stays, once it was needed. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Option<Running>>>);

impl Kept {
    /// Talks to it, and starts it first if there is none. One that gives no answer is ended; what it complained of is
    /// returned then, which is nothing if somebody else ended it.
    pub(super) fn ask<T>(
        &self,
        start: impl FnOnce() -> Result<Running, GitError>,
        talk: impl FnOnce(&mut Running) -> Option<T>,
    ) -> Result<Result<T, String>, GitError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match kept.take() {
            Some(running) => running,
            None => start()?,
        };
        if let Some(answer) = talk(&mut running) {
            *kept = Some(running);
            return Ok(Ok(answer));
        }
        Ok(Err(running.finish()?.complaint()))
    }
}

/// The gits of a repository that write and read its objects, each for one purpose.
#[derive(Debug, Clone, Default)]
pub(super) struct Clerks {
    /// Write blobs, trees and commits.
    pub(super) writers: [Kept; 3],
    /// Reads trees.
    pub(super) reader: Kept,
    /// Compares trees.
    pub(super) comparer: Kept,
}
