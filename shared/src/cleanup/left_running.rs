//! Finds processes that killed runs left alive: agents, tests and gates, recognised by the orphan locks that they
//! inherit.

use std::{fs, io, path::Path};

use super::{Active, survey::readable};
use crate::process::{FileLock, OrphanLock};

/// The names of the orphan locks that are held, and of those that could not be read, without their suffix.
#[derive(Debug, Default)]
pub(super) struct LeftRunning {
    held: Vec<String>,
    unknown: Vec<String>,
    /// Why the directory of locks could not be read completely.
    unread: Option<String>,
}

/// Separates the name of a run's lock from that of a lane. No branch name can contain it.
const LANE: char = '~';

impl LeftRunning {
    /// Examines all locks in a directory. A missing directory has none.
    pub(super) fn find(locks: &Path) -> Self {
        let mut found = Self::default();
        let entries = match fs::read_dir(locks) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
            Err(error) => return Self { unread: Some(error.to_string()), ..found },
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Self { unread: Some(error.to_string()), ..found },
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(OrphanLock::SUFFIX) else { continue };
            match FileLock::look(&entry.path()) {
                Ok(None) => {}
                Ok(Some(_)) => found.held.push(name.to_owned()),
                Err(_) => found.unknown.push(name.to_owned()),
            }
        }
        found
    }

    /// Whether a process of this run is alive; an error if that cannot be determined.
    pub(super) fn of_run(&self, run: &str) -> Result<Option<Active>, String> {
        self.among(|name| run_in(name) == Some(run))
    }

    /// The same for any run or gate.
    pub(super) fn any(&self) -> Result<Option<Active>, String> {
        self.among(|_| true)
    }

    fn among(&self, suits: impl Fn(&str) -> bool) -> Result<Option<Active>, String> {
        if let Some(name) = self.held.iter().find(|name| suits(name)) {
            let run = run_in(name).map(readable);
            return Ok(Some(Active::LeftRunning(run.unwrap_or_else(|| name.clone()))));
        }
        match (&self.unread, self.unknown.iter().find(|name| suits(name))) {
            (Some(why), _) => Err(format!("whether a process is still working on it: {why}")),
            (None, Some(name)) => Err(format!("whether a process is still working on it: {name}")),
            (None, None) => Ok(None),
        }
    }
}

/// The component of the run that a lock belongs to.
fn run_in(name: &str) -> Option<&str> {
    let run = name.strip_prefix("run-")?;
    Some(run.split_once(LANE).map_or(run, |(run, _)| run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_of_one_run_only() {
        let names = ["run-main", "run-main~lane-2", "run-v1.2", "run-v1.lane-2", "worktree-gate-1-abc"];
        assert_eq!(names.map(run_in), [Some("main"), Some("main"), Some("v1.2"), Some("v1.lane-2"), None]);
    }
}
