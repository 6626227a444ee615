//! What runs still leave alive when they are killed: agents, tests and gates, known by the locks that they share.

use std::{fs, io, path::Path};

use super::{Active, survey::readable};
use crate::process::{FileLock, OrphanLock};

/// The names of the locks that processes without a driver hold, without their ends; and of those that could not be looked at.
#[derive(Debug, Default)]
pub(super) struct LeftRunning {
    held: Vec<String>,
    unknown: Vec<String>,
    /// Why the folder could not be read to its end, if it could not.
    unread: Option<String>,
}

/// Between the name of a run's lock and that of a lane. No branch can have this in its name.
const LANE: char = '~';

impl LeftRunning {
    /// Looks at all locks of a folder. Only one that is not there has none.
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

    /// Whether something of the run of this component is alive; an error if that cannot be told.
    pub(super) fn of_run(&self, run: &str) -> Result<Option<Active>, String> {
        self.among(|name| run_in(name) == Some(run))
    }

    /// The same for whatever run or gate.
    pub(super) fn any(&self) -> Result<Option<Active>, String> {
        self.among(|_| true)
    }

    fn among(&self, suits: impl Fn(&str) -> bool) -> Result<Option<Active>, String> {
        if let Some(name) = self.held.iter().find(|name| suits(name)) {
            let run = run_in(name).map(readable);
            return Ok(Some(Active::LeftRunning(run.unwrap_or_else(|| name.clone()))));
        }
        match (&self.unread, self.unknown.iter().find(|name| suits(name))) {
            (Some(why), _) => Err(format!("whether somebody is still at work: {why}")),
            (None, Some(name)) => Err(format!("whether somebody is still at work: {name}")),
            (None, None) => Ok(None),
        }
    }
}

/// The component of the run that a lock is of.
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
