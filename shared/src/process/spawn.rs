//! Starts all child processes, and knows which processes are ours.
//!
//! The lock of an attempt must be inherited by its agent and by no other child. So while its descriptor is inheritable,
//! no other child may be started: such a start takes `SPAWN_LOCK` exclusively, all others share it. The same lock keeps a
//! listing of the system's processes from seeing a child that was started but is not registered yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{DirEntry, File},
    io,
    os::fd::OwnedFd,
    process::{Child, Command},
    sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group};

use super::{
    Confinement, OrphanLock,
    mark::RunMark,
    process_group::ProcessGroup,
    table::{self, Process},
};

use crate::mutex::MutexExt;

static SPAWN_LOCK: RwLock<()> = RwLock::new(());
static CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static GROUPS: Mutex<BTreeMap<u32, ProcessGroup>> = Mutex::new(BTreeMap::new());
/// The children that this process had before it adopted any, by process id and start.
static OLDER_CHILDREN: OnceLock<BTreeSet<(u32, String)>> = OnceLock::new();

/// Starts a child that its owner waits for. Even if it ends at once, [`is_known`] waits until it is registered.
pub(super) fn spawn(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<Child> {
    let _shared = hold_spawns();
    // Under SPAWN_LOCK, and held while the child starts: it is registered before it can be reaped.
    let mut known = CHILDREN.hold();
    let child = start(command, confinement)?;
    known.insert(child.id());
    Ok(child)
}

/// Starts a child in a separate process group that inherits `lock`.
pub(super) fn spawn_group(
    command: &mut Command,
    confinement: Option<&Confinement>,
    mark: &RunMark,
    lock: Option<&File>,
) -> io::Result<(Child, ProcessGroup)> {
    adopt_orphans();
    disable_core_dumps();
    let _alone = stop_spawns();
    keep_inherited();
    let _inherited = lock.map(inheritable).transpose()?;
    let child = start(command, confinement)?;
    let group = ProcessGroup::of_step(child.id(), mark.clone());
    CHILDREN.hold().insert(child.id());
    GROUPS.hold().insert(child.id(), group.clone());
    Ok((child, group))
}

fn start(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<Child> {
    match confinement {
        Some(confinement) => confinement.apply(|| command.spawn()),
        None => command.spawn(),
    }
}

/// The owner has reaped this child.
pub(super) fn forget(pid: u32) {
    CHILDREN.hold().remove(&pid);
}

/// No process of this group is left, or none that could be ended.
pub(super) fn forget_group(leader: u32) {
    forget(leader);
    GROUPS.hold().remove(&leader);
}

/// Whether this child has an owner who waits for it.
pub(super) fn is_known(pid: u32) -> bool {
    CHILDREN.hold().contains(&pid)
}

/// Whether this environment has the mark of a running group, or of a run inside of it.
pub(super) fn has_mark(environment: &[u8]) -> bool {
    GROUPS.hold().values().any(|group| group.mark().is_in(environment))
}

/// Whether this child existed before we began to adopt processes.
pub(super) fn is_older(process: &Process) -> bool {
    let older = OLDER_CHILDREN.get();
    older.is_some_and(|older| older.contains(&(process.pid, process.started.clone())))
}

/// While this is held, no group begins.
pub(super) fn hold_spawns() -> RwLockReadGuard<'static, ()> {
    SPAWN_LOCK.read().unwrap_or_else(PoisonError::into_inner)
}

/// While this is held, no child is started.
pub(super) fn stop_spawns() -> RwLockWriteGuard<'static, ()> {
    SPAWN_LOCK.write().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all groups at once.
pub(super) fn kill_groups() {
    let groups: Vec<ProcessGroup> = GROUPS.hold().values().cloned().collect();
    groups.iter().for_each(|group| group.kill(&group.living()));
}

/// Sends TERM to all other children that Ctrl-C did not reach because they have separate process groups.
pub(super) fn terminate_shielded() {
    let groups: Vec<u32> = CHILDREN.hold().iter().copied().collect();
    let groups = groups.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    for group in groups {
        // A child that shares our group has no group with its id.
        let _ = kill_process_group(group, Signal::TERM);
    }
}

/// Keeps the descriptors that this process inherited from its children. Through one of a folder they could leave the
/// namespaces of bubblewrap. Only the locks of attempts are passed on: if this process is part of an attempt, so are
/// its children. All descriptors that we open ourselves are closed in children anyway.
fn keep_inherited() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let entries = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
        let is_lock = |entry: &DirEntry| {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            target.to_string_lossy().ends_with(OrphanLock::SUFFIX)
        };
        let locks = entries.filter(is_lock).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        close_fds::set_fds_cloexec_threadsafe(3, &locks.collect::<Vec<i32>>());
    });
}

/// Keeps children from writing their memory to a file when they crash: it may hold keys, and the file would be committed.
/// Children inherit the limit, and only root can raise it again.
fn disable_core_dumps() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(Resource::Core, none);
    });
}

/// Shells use the lowest descriptors above the standard ones for themselves, so a higher one is taken.
fn inheritable(lock: &File) -> io::Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(lock, 20)?;
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    Ok(copy)
}

/// Makes this process adopt processes whose parent ended, instead of init. Only Linux supports this; elsewhere only
/// process groups are followed.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        OLDER_CHILDREN.get_or_init(|| {
            let children = table::children().unwrap_or_default();
            let older = children.into_iter().map(|pid| (pid, table::start_of(pid))).collect();
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            older
        });
    }
}
