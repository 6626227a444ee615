//! All processes of one supervised program: its group, and processes that left the group but have the mark, or none.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group,
        test_kill_process_group, waitid, waitpgid, waitpid,
    },
};

use super::{
    crash,
    mark::RunMark,
    occupants::is_of_this_driver,
    spawn,
    table::{self, Process},
};

/// How often the processes are listed if each list shows only processes that have ended.
const MAX_LOOKS: usize = 20;
/// How long the start of a program can take.
const START_TIME: Duration = Duration::from_secs(5);

/// The group of a supervised program, and its mark.
#[derive(Debug, Clone)]
pub(super) struct ProcessGroup {
    group: u32,
    mark: RunMark,
    /// Whether stray processes end with it.
    ends_strays: bool,
}

impl ProcessGroup {
    pub(super) const fn new(group: u32, mark: RunMark) -> Self {
        Self { group, mark, ends_strays: false }
    }

    /// The group of a program of a step, with which stray processes end.
    pub(super) const fn of_step(group: u32, mark: RunMark) -> Self {
        Self { group, mark, ends_strays: true }
    }

    pub(super) const fn mark(&self) -> &RunMark {
        &self.mark
    }

    /// Kills the group at once, and those of `members` that left it.
    pub(super) fn kill(&self, members: &[u32]) {
        crash::note_lost_child();
        if let Some(group) = number(self.group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        send(Signal::KILL, members);
    }

    /// The processes that are still alive. Ended ones that we adopted are reaped on the way.
    pub(super) fn living(&self) -> Vec<u32> {
        let group_lives = self.group_lives();
        if !group_lives && we_have_no_children() {
            return Vec::new();
        }
        // The table of known children is locked under this.
        let _still = spawn::hold_spawns();
        if !group_lives && all_children_are_known() {
            return Vec::new();
        }
        // A process that forks and ends was seen as ended, and its child was not seen. So an empty list counts only if
        // nothing has ended meanwhile.
        let mut reaped = Vec::new();
        for _ in 0..MAX_LOOKS {
            // What left the group is below us as well, because we adopt it. If the group is gone, only that is left.
            let table = if group_lives { table::descendants() } else { table::orphans(spawn::is_known) };
            reaped = reap_orphans(&table);
            if table.is_empty() && group_lives {
                return vec![self.group];
            }
            let alive = self.find_living(&table);
            if !alive.is_empty() || reaped.is_empty() {
                return alive;
            }
        }
        reaped
    }

    fn find_living(&self, table: &[Process]) -> Vec<u32> {
        let roots = table.iter().filter(|process| self.owns(process)).map(|process| process.pid).collect();
        let group = table::with_descendants(table, roots);
        let alive = |process: &&Process| !process.zombie && group.contains(&process.pid);
        table.iter().filter(alive).map(|process| process.pid).collect()
    }

    fn owns(&self, process: &Process) -> bool {
        if process.group == self.group {
            return true;
        }
        if !is_orphan(process) {
            return false;
        }
        let found = FoundEnvironment::of(process);
        let carries_mark = found.environment.as_ref().is_some_and(|environment| self.mark.is_in(environment));
        let is_own = carries_mark || (self.ends_strays && is_stray(process, found.environment.as_deref()));
        if found.is_stopped && !is_own {
            send(Signal::CONT, &[process.pid]);
        }
        is_own
    }

    fn group_lives(&self) -> bool {
        let Some(group) = number(self.group) else { return false };
        if !spawn::is_known(self.group) {
            while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
        }
        test_kill_process_group(group) != Err(Errno::SRCH)
    }
}

/// Whether this is a child that we did not start but adopted, because its parent ended.
pub(super) fn is_orphan(process: &Process) -> bool {
    process.parent == std::process::id()
        && number(process.group) != Some(rustix::process::getpgrp())
        && !spawn::is_known(process.pid)
}

/// Whether an adopted process has cleared its environment to outlive its step: everything that we start has a mark. It
/// ends with the first step that ends, because it is not known which one started it.
///
/// Left alone are processes of other steps, by their marks; daemons of our own git (credential cache, file system
/// monitor, maintenance, `gpg-agent`) and programs that we released, by the mark of the driver; programs that do not
/// let their environment be read, as `gpg-agent` and `ssh-agent` do; children that we had before the first step; and
/// everything if we are process 1, which adopts all orphans of a container.
fn is_stray(process: &Process, environment: Option<&[u8]>) -> bool {
    if std::process::id() == 1 || spawn::is_older(process) {
        return false;
    }
    match environment {
        Some(environment) => !is_of_this_driver(environment) && !spawn::has_mark(environment),
        // If it has ended, its children are not known.
        None => !table::is_alive(process.pid, &process.started),
    }
}

/// The environment of a process that we adopted.
struct FoundEnvironment {
    /// `None` if it may not be read.
    environment: Option<Vec<u8>>,
    /// Whether the process was stopped to read it.
    is_stopped: bool,
}

impl FoundEnvironment {
    /// It is empty for a moment while a program is being started, and then it has no mark either. The process is stopped
    /// meanwhile, and until it is ended, because it could fork and end. Children that we had before are not stopped.
    fn of(process: &Process) -> Self {
        let environment = table::environment(process.pid);
        let is_empty = environment.as_ref().is_some_and(Vec::is_empty);
        if !is_empty || process.zombie || std::process::id() == 1 || spawn::is_older(process) {
            return Self { environment, is_stopped: false };
        }
        send(Signal::STOP, &[process.pid]);
        Self { environment: environment_of_stopped(process.pid), is_stopped: true }
    }
}

/// The environment of a process that was told to stop. A program that is being started stops only when it has its
/// environment, and on a busy machine that may take a while.
fn environment_of_stopped(pid: u32) -> Option<Vec<u8>> {
    let end = Instant::now() + START_TIME;
    loop {
        thread::sleep(Duration::from_millis(5));
        let is_running = table::is_running(pid);
        let environment = table::environment(pid);
        let is_empty = environment.as_ref().is_some_and(Vec::is_empty);
        if !is_running || !is_empty || Instant::now() >= end {
            return environment;
        }
    }
}

/// Reaps processes that we adopted and that have ended. Returns them.
fn reap_orphans(table: &[Process]) -> Vec<u32> {
    let ended = table.iter().filter(|process| process.zombie && is_orphan(process));
    let reaped = ended.inspect(|process| {
        let _ = waitpid(number(process.pid), WaitOptions::NOHANG);
    });
    reaped.map(|process| process.pid).collect()
}

fn we_have_no_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::All, look).is_err_and(|error| error == Errno::CHILD)
}

/// Whether we have adopted no process. A process that left its group and lost its parent becomes our child. So if there
/// is none, nothing is left of a program whose group is gone, and the other processes of the machine need not be read.
fn all_children_are_known() -> bool {
    // The list misses a child if another thread reaps an earlier one at the same time, so two lists must agree.
    let [first, second] = [table::adopted(), table::adopted()];
    first.is_some() && first == second && first.iter().flatten().all(|pid| spawn::is_known(*pid))
}

/// Sends a signal to each of `pids`. Processes that are already gone are ignored.
pub(super) fn send(signal: Signal, pids: &[u32]) {
    for pid in pids.iter().filter_map(|pid| number(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

pub(super) fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Asks processes to end. A stopped one has to continue for that.
pub(super) fn terminate(pids: &[u32]) {
    send(Signal::TERM, pids);
    send(Signal::CONT, pids);
}

/// Processes that are to be ended.
pub(super) trait Terminable {
    /// The processes that are still alive.
    fn living(&mut self) -> Vec<u32>;
    /// Asks these to end.
    fn terminate(&self, members: &[u32]) {
        terminate(members);
    }
    /// Kills all of them, including `members`.
    fn kill(&self, members: &[u32]);
    /// Waits, and serves whatever must be served meanwhile.
    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

/// How long killed processes may take to vanish before they count as survivors.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends TERM once (a second TERM means something else to some programs), KILL after `grace`, and waits until no
/// process is left. Returns those that could not be ended.
pub(super) fn clear(processes: &mut impl Terminable, grace: Duration) -> Vec<u32> {
    let begun = Instant::now();
    let kill_at = begun + grace;
    let mut signalled = BTreeSet::new();
    let mut killed = BTreeSet::new();
    loop {
        let living = processes.living();
        let now = Instant::now();
        if living.is_empty() || now > kill_at + KILL_TIMEOUT {
            return living;
        }
        if now >= kill_at {
            processes.kill(&living);
            // A process that forks and ends all the time escapes if we pause before we look for its child.
            if living.into_iter().filter(|pid| killed.insert(*pid)).count() > 0 {
                continue;
            }
        } else {
            let fresh: Vec<u32> = living.into_iter().filter(|pid| signalled.insert(*pid)).collect();
            processes.terminate(&fresh);
        }
        // Most processes end within milliseconds. The end of others goes unnoticed for a quarter of their time at most.
        processes.pause((begun.elapsed() / 4).clamp(Duration::from_millis(1), Duration::from_millis(50)));
    }
}
