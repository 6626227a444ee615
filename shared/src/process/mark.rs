//! A mark in the environment of every process of a supervised program.
//!
//! A process can leave its group and its session, but few clear their environment. The mark of a run inside a run
//! begins with the mark of the outer one, so that the outer run finds what an inner one left behind.

use std::{
    env, fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::table;

/// The variable with the mark.
pub(super) const VARIABLE: &str = "ARBORIST_PROCESS";

/// The mark of one supervised program, unique on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunMark(String);

impl RunMark {
    /// A new mark.
    pub(super) fn fresh() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let pid = std::process::id();
        let own = format!("{pid}.{}.{}", table::start_of(pid), COUNT.fetch_add(1, Ordering::Relaxed));
        match env::var(VARIABLE) {
            Ok(outer) => Self(format!("{outer}/{own}")),
            Err(_) => Self(own),
        }
    }

    /// Parses a recorded mark.
    pub(super) fn written(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '/';
        (text.contains('.') && text.chars().all(fits)).then(|| Self(text.to_owned()))
    }

    /// Whether the driver that created it is alive.
    pub(super) fn is_of_the_living(&self) -> bool {
        let own = self.0.rsplit('/').next().unwrap_or_default();
        let parts: Vec<&str> = own.split('.').collect();
        let [pid, started, _] = parts[..] else { return false };
        pid.parse().is_ok_and(|pid| table::is_alive(pid, started))
    }

    /// Whether this environment has a mark that this process created, or one of a run inside.
    pub(super) fn is_ours_in(environment: &[u8]) -> bool {
        let pid = std::process::id();
        let own = format!("{pid}.{}.", table::start_of(pid));
        marks_in(environment)
            .any(|mark| mark.split(|byte| *byte == b'/').any(|one| one.starts_with(own.as_bytes())))
    }

    /// The drivers that our own environment names, the outermost first.
    pub(super) fn drivers_in_environment() -> impl Iterator<Item = u32> {
        let text = env::var(VARIABLE).unwrap_or_default();
        let pids: Vec<u32> = text.split('/').filter_map(|one| one.split('.').next()?.parse().ok()).collect();
        pids.into_iter()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this environment (`NAME=value`, separated by NUL) has the mark, or one of a run inside.
    pub(super) fn is_in(&self, environment: &[u8]) -> bool {
        let mut rests = marks_in(environment).filter_map(|mark| mark.strip_prefix(self.0.as_bytes()));
        rests.any(|rest| rest.is_empty() || rest[0] == b'/')
    }
}

fn marks_in(environment: &[u8]) -> impl Iterator<Item = &[u8]> {
    let entries = environment.split(|byte| *byte == 0);
    entries.filter_map(|entry| entry.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))
}

impl fmt::Display for RunMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the memory and the open files of this process unreadable for other processes of the same user, unless they
/// have the capability `SYS_PTRACE`. Programs that it starts are not affected. Only Linux supports this.
///
/// A command that a step of another run started is left alone: that run finds its processes by their environment.
pub fn protect_memory() {
    #[cfg(target_os = "linux")]
    if std::env::var_os(VARIABLE).is_none() {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_mark_is_found_exactly_or_as_the_prefix_of_an_inner_one() {
        let mark = RunMark::written("12.34.5").unwrap();
        assert!(mark.is_in(b"A=1\0ARBORIST_PROCESS=12.34.5\0"));
        assert!(mark.is_in(b"ARBORIST_PROCESS=12.34.5/99.1.0\0B=2"));
        assert!(!mark.is_in(b"ARBORIST_PROCESS=12.34.56\0"));
        assert!(!mark.is_in(b"X_ARBORIST_PROCESS=12.34.5\0"));
        assert!(!mark.is_in(b""));
        assert!(RunMark::written("").is_none() && RunMark::written("a b.").is_none());
        assert_ne!(RunMark::fresh(), RunMark::fresh());
    }
}
