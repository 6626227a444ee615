//! The holder of a lock, as written into the lock file: for error messages, and as evidence of a driver that died.
//! Whether a lock is held is decided by the kernel alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ProcessId, table};

/// What `git arborist merge` holds the lock of a run for.
pub(super) const MERGE: &str = "git arborist merge";

/// The holder of a lock, according to the lock file. Displayed: "held by process 12 on host (what) since …".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The host name.
    pub host: String,
    /// When it took the lock, in UTC.
    pub since: String,
    /// What it holds the lock for.
    pub what: String,
    /// The process, identified uniquely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<ProcessId>,
    /// When the earliest holder that died started, if nothing has recovered from it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead: Option<String>,
    /// The mark of the processes that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<String>,
    /// The leader of the process group that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<Leader>,
}

/// The first process of a group. Its start time tells it from a later process with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leader {
    pub(super) pid: u32,
    pub(super) started: String,
}

impl Holder {
    /// This process as a holder.
    pub(super) fn us(what: &str) -> Self {
        Self {
            pid: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            since: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            what: what.to_owned(),
            process: Some(ProcessId::ours()),
            ..Self::default()
        }
    }

    /// Whether its process is running on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.is_of_this_machine() && process.is_here())
    }

    /// A hint: how to stop its process.
    #[must_use]
    pub fn advice_to_stop(&self) -> String {
        match self.is_here() {
            true => format!("wait until that process ends, or stop it with: kill -INT {}", self.pid),
            false => "wait until that process ends, or stop it".to_owned(),
        }
    }

    /// The process: "process 12 on host, since …".
    #[must_use]
    pub fn process_words(&self) -> String {
        if self.pid == 0 {
            return "another process".to_owned();
        }
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        let parts = [(" on ", shown(&self.host)), (", since ", shown(&self.since))];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let parts: String = parts.map(|(before, text)| format!("{before}{text}")).collect();
        format!("process {}{parts}", self.pid)
    }

    /// Whether it is `git arborist merge`, which lands tasks without a run.
    #[must_use]
    pub fn is_landing(&self) -> bool {
        self.what == MERGE
    }

    /// Whether its process was on this machine and has died, or is dying.
    pub(super) fn is_gone(&self) -> bool {
        let was_here = |process: &ProcessId| {
            process.is_of_this_machine() && (!process.is_here() || table::is_being_killed(self.pid))
        };
        self.process.as_ref().is_some_and(was_here)
    }

    /// Reads the content of a lock file; an empty holder if it cannot be parsed.
    pub(super) fn read(content: &[u8]) -> Self {
        serde_json::from_slice(content).unwrap_or_default()
    }

    /// The line for a lock file.
    pub(super) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return f.write_str("held by another process");
        }
        write!(f, "held by process {}", self.pid)?;
        for (before, text, after) in
            [(" on ", &self.host, ""), (" (", &self.what, ")"), (" since ", &self.since, "")]
        {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
            if !shown.is_empty() {
                write!(f, "{before}{shown}{after}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_holder_is_read_back_and_shown_without_control_characters() {
        let us = Holder::us("gardener on main");
        assert_eq!(Holder::read(us.line().as_bytes()), us);
        let other = Holder {
            pid: 12,
            host: "oak".into(),
            what: "a\u{1b}[2Jb".into(),
            since: "2025-02-16T14:30:22Z".into(),
            ..Holder::default()
        };
        assert_eq!(other.to_string(), "held by process 12 on oak (a[2Jb) since 2025-02-16T14:30:22Z");
        for content in ["", "{", "[]", "{\"pid\":-1}"] {
            assert_eq!(Holder::read(content.as_bytes()).to_string(), "held by another process");
        }
    }
}
