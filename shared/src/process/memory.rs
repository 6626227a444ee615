//! Keeps other processes of the user out of the memory of a driver.

/// Makes the memory and the open files of this process unreadable for other processes of the same user, unless they
/// have the capability `SYS_PTRACE`. Programs that it starts are not affected. Only Linux supports this.
///
/// A command that a step of another run started is left alone: that run finds its processes by their environment.
pub fn protect_memory() {
    #[cfg(target_os = "linux")]
    if std::env::var_os(super::mark::VARIABLE).is_none() {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
