//! A process and everything below it, killed at one stroke.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process};

/// Kills a process with all of its descendants. Each is stopped before its children are looked for, so that none is born
/// meanwhile; then all are killed. Gives how the process itself ended.
pub(crate) fn kill(child: &mut Child) -> ExitStatus {
    let mut found = BTreeSet::from([child.id()]);
    send(child.id(), Signal::STOP);
    loop {
        let new: Vec<u32> = children_of(&found).into_iter().filter(|pid| !found.contains(pid)).collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            send(pid, Signal::STOP);
            found.insert(pid);
        }
    }
    found.iter().for_each(|pid| send(*pid, Signal::KILL));
    child.wait().unwrap()
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn children_of(parents: &BTreeSet<u32>) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| parent_of(*pid).is_some_and(|parent| parents.contains(&parent))).collect()
}

/// The name of the program stands in brackets and may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(1)?.parse().ok()
}
