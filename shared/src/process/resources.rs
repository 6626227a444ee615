//! Limits how many processes a child may run, and how large its files may become.
//!
//! A shell sets the limits (`ulimit`) and then becomes the program. They cannot be set here: they belong to the whole
//! process, so for a moment they would also limit the driver and children that are started meanwhile. If they were set
//! after the start, the program could start others before.

use std::{io, process::Command};

use rustix::process::{Resource, getrlimit, getuid};

use super::{Program, mounts::wrap_with, table};

/// Sets the size of files in blocks and the number of processes, each if it is not empty. `-u` is the option of bash,
/// `-p` that of dash.
const SCRIPT: &str = r#"
[ -z "$1" ] || ulimit -f "$1" || exit 126
[ -z "$2" ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2" || exit 126
shift 2
exec "$@"
"#;

/// The unit of `ulimit -f`, in bytes.
const BLOCK: u64 = 512;

/// What a child may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// How many processes and threads it may have at once.
    pub processes: Option<u64>,
    /// How large its files may become, in megabytes.
    pub file_size: Option<u64>,
}

impl ResourceLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.processes.is_none() && self.file_size.is_none()
    }

    /// The largest size of a file in bytes, rounded up to the unit of the limit.
    #[must_use]
    pub fn file_bytes(self) -> Option<u64> {
        self.file_size
            .map(|megabytes| megabytes.saturating_mul(1_000_000).div_ceil(BLOCK).saturating_mul(BLOCK))
    }

    /// The command that runs `command` with these limits. Its streams and its process group must be set afterwards.
    pub(super) fn wrap(self, command: &Command, has_namespace: bool) -> io::Result<Option<Command>> {
        if self.is_none() {
            return Ok(None);
        }
        let blocks = self.file_bytes().map(|bytes| allowed(Resource::Fsize, bytes).div_ceil(BLOCK));
        let processes =
            self.processes.map(|most| allowed(Resource::Nproc, most.saturating_add(others(has_namespace))));
        let word = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let options = ["-c", SCRIPT, "sh", &word(blocks), &word(processes)].map(Into::into).to_vec();
        wrap_with(&Program::locate("sh"), command, |_| options).map(Some)
    }
}

/// A limit that may be set. Only root can raise one that is in force.
fn allowed(resource: Resource, wanted: u64) -> u64 {
    getrlimit(resource).maximum.map_or(wanted, |most| most.min(wanted))
}

/// How many processes the system counts that are not the child's. It counts all processes of the user, but since Linux
/// 5.14 separately in each user namespace, and bubblewrap has one process in its own.
fn others(has_namespace: bool) -> u64 {
    if has_namespace && !getuid().is_root() && counts_in_namespaces() {
        1
    } else {
        table::count_processes(getuid().as_raw())
    }
}

fn counts_in_namespaces() -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    cfg!(target_os = "linux") && (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 14)
}
