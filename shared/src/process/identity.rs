//! Identifies a process of a machine uniquely, so that even after a crash one can tell whether it is still alive.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::table;

/// A unique process: process ids are reused, start and boot times are not. Displayed: "process 12 on host".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process id.
    pub pid: u32,
    /// The host name.
    pub host: String,
    /// When it started, in the system's own unit.
    started: String,
    /// The boot id of its machine; empty if the system has none.
    boot: String,
}

impl ProcessId {
    /// This process.
    #[must_use]
    pub fn ours() -> Self {
        let pid = std::process::id();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            pid,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            started: table::start_of(pid),
            boot: boot.trim().to_owned(),
        }
    }

    /// Identifies its machine until the next boot.
    #[must_use]
    pub fn machine(&self) -> String {
        format!("{} {}", self.host, self.boot)
    }

    /// Whether it was started on this machine since its last boot.
    #[must_use]
    pub fn is_of_this_machine(&self) -> bool {
        let ours = Self::ours();
        self.boot == ours.boot && (!self.boot.is_empty() || self.host == ours.host)
    }

    /// Whether it is alive on this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.is_of_this_machine() && table::is_alive(self.pid, &self.started)
    }
}

/// Whether there is a process with this id.
#[must_use]
pub fn is_process_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process that we may not send signals to exists, too.
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinguished_from_earlier_ones_and_other_machines() {
        let ours = ProcessId::ours();
        assert!(ours.is_here());
        assert!(
            !ProcessId { started: "never".into(), ..ours.clone() }.is_here(),
            "another of the same number"
        );
        let elsewhere = ProcessId { boot: "another".into(), ..ours };
        assert!(!elsewhere.is_of_this_machine() && !elsewhere.is_here());
    }
}
