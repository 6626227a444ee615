//! Where children are born, and who of the living are ours.
//!
//! The lock of an attempt must reach its agent and nobody else, so while a descriptor is open for inheritance no other
//! child may be started: such a birth takes the door alone, all others share it. The same door keeps a look at the
//! system's processes from seeing a child that is born and not yet known.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    os::fd::OwnedFd,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Confinement, mark::RunMark, process_group::ProcessGroup};

static DOOR: RwLock<()> = RwLock::new(());
static KNOWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static FAMILIES: Mutex<BTreeMap<u32, ProcessGroup>> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, BTreeSet<u32>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn families() -> MutexGuard<'static, BTreeMap<u32, ProcessGroup>> {
    FAMILIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child that its owner waits for. It may be in a group of its own and end at once: whoever asks meanwhile whether
/// it is known waits until it is.
pub(super) fn spawn(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<Child> {
    let _shared = still();
    let mut known = known();
    let child = start(command, confinement)?;
    known.insert(child.id());
    Ok(child)
}

/// Starts a child in a group of its own that inherits `lock`.
pub(super) fn spawn_group(
    (command, confinement): (&mut Command, Option<&Confinement>),
    mark: &RunMark,
    lock: Option<&File>,
) -> io::Result<(Child, ProcessGroup)> {
    adopt_orphans();
    let _alone = DOOR.write().unwrap_or_else(PoisonError::into_inner);
    let _inherited = lock.map(inheritable).transpose()?;
    let child = start(command, confinement)?;
    let group = ProcessGroup::new(child.id(), mark.clone());
    known().insert(child.id());
    families().insert(child.id(), group.clone());
    Ok((child, group))
}

fn start(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<Child> {
    match confinement {
        Some(confinement) => confinement.apply(|| command.spawn()),
        None => command.spawn(),
    }
}

/// The owner has waited for this child.
pub(super) fn forget(pid: u32) {
    known().remove(&pid);
}

/// No process of this family is left, or none that could be ended.
pub(super) fn dissolve(leader: u32) {
    forget(leader);
    families().remove(&leader);
}

/// Whether this child has an owner who waits for it.
pub(super) fn is_known(pid: u32) -> bool {
    known().contains(&pid)
}

/// As long as this is held, no family begins.
pub(super) fn still() -> RwLockReadGuard<'static, ()> {
    DOOR.read().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all families at once.
pub(super) fn kill_families() {
    let families: Vec<ProcessGroup> = families().values().cloned().collect();
    families.iter().for_each(|group| group.kill(&group.living()));
}

/// Asks all other children to end that Ctrl-C did not reach: those in groups of their own.
pub(super) fn end_spared() {
    let groups: Vec<u32> = known().iter().copied().collect();
    let groups = groups.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    for group in groups {
        // One that shares our group has none of this name.
        let _ = kill_process_group(group, Signal::TERM);
    }
}

/// Shells use the first descriptors above the standard ones for themselves, so it takes one further up.
fn inheritable(lock: &File) -> io::Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(lock, 20)?;
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    Ok(copy)
}

/// From now on processes whose parent ended become our children instead of init's. Elsewhere than on Linux there is
/// no such thing, and only groups are followed.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });
    }
}
