//! Lists the processes of this machine: from `/proc` on Linux, elsewhere with `ps`.

use std::{collections::BTreeSet, path::Path};

use super::mark::RunMark;

pub(super) use system::{
    all, count_processes, environment, is_being_killed, is_running, shares_lock, waits_at_named_pipe,
};

/// A snapshot of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// It has ended and was not reaped yet.
    pub(super) zombie: bool,
    /// When it started, in the system's own unit. Together with the pid it identifies a process uniquely.
    pub(super) started: String,
}

/// When process `pid` started; empty if that is unknown.
pub(super) fn start_of(pid: u32) -> String {
    system::one(pid).map(|process| process.started).unwrap_or_default()
}

/// Whether process `pid` exists and started at this time.
pub(super) fn is_alive(pid: u32, started: &str) -> bool {
    system::one(pid).is_some_and(|process| !process.zombie && process.started == started)
}

/// The children of this process; `None` if the system does not tell.
pub(super) fn children() -> Option<BTreeSet<u32>> {
    system::children(std::process::id())
}

/// The children that this process has adopted, and others; `None` if the system does not tell. The kernel gives adopted ones
/// to the main thread, so that the lists of all other threads need not be read.
pub(super) fn adopted() -> Option<BTreeSet<u32>> {
    system::adopted(std::process::id())
}

/// All processes below this one; if the system does not list them, all visible processes.
pub(super) fn descendants() -> Vec<Process> {
    list_steadily(|| with_listed_children(children()?))
}

/// The children that this process has adopted, apart from those that `is_known` knows, and all processes below them.
pub(super) fn orphans(is_known: impl Fn(u32) -> bool) -> Vec<Process> {
    list_steadily(|| with_listed_children(adopted()?.into_iter().filter(|pid| !is_known(*pid)).collect()))
}

/// A process may fork and end while the lists are read, and then its child is in none of them. So the lists are read
/// again until nothing has changed.
fn list_steadily(list: impl Fn() -> Option<BTreeSet<u32>>) -> Vec<Process> {
    const TRIES: usize = 5;
    let mut before = list();
    for _ in 0..TRIES {
        let Some(found) = before else { break };
        let again = list();
        if again.as_ref() == Some(&found) {
            return found.into_iter().filter_map(system::one).collect();
        }
        before = again;
    }
    all()
}

fn with_listed_children(mut found: BTreeSet<u32>) -> Option<BTreeSet<u32>> {
    let mut unread: Vec<u32> = found.iter().copied().collect();
    while let Some(pid) = unread.pop() {
        // A process that has ended meanwhile has no list.
        let children = system::children(pid).unwrap_or_default();
        unread.extend(children.into_iter().filter(|child| found.insert(*child)));
    }
    Some(found)
}

/// Whether process `pid` has the mark in its environment. No if it may not be read.
pub(super) fn carries(pid: u32, mark: &RunMark) -> bool {
    system::environment(pid).is_some_and(|environment| mark.is_in(&environment))
}

/// Whether process `pid` belongs to a program that this process started. No if it may not be read.
pub(super) fn carries_ours(pid: u32) -> bool {
    system::environment(pid).is_some_and(|environment| RunMark::is_ours_in(&environment))
}

/// `roots` with all their descendants.
pub(super) fn with_descendants(table: &[Process], roots: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut found = roots;
    loop {
        let size = found.len();
        let children =
            table.iter().filter(|process| found.contains(&process.parent)).map(|process| process.pid);
        let children: Vec<u32> = children.collect();
        found.extend(children);
        if found.len() == size {
            return found;
        }
    }
}

/// `pid` with all its ancestors.
pub(super) fn with_ancestors(table: &[Process], pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
        next = table.iter().find(|process| process.pid == pid).map(|process| process.parent);
    }
    found
}

/// The visible ancestors of `pid`, nearest first.
pub(super) fn ancestors(pid: u32) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut next = system::one(pid).map(|process| process.parent);
    while let Some(pid) = next.filter(|pid| *pid > 1 && !found.contains(pid)) {
        found.push(pid);
        next = system::one(pid).map(|process| process.parent);
    }
    found
}

/// Whether process `pid` is one of our programs, by its name.
pub(super) fn is_driver(pid: u32) -> bool {
    system::name(pid).is_some_and(|name| name.contains("git-arborist"))
}

/// Whether this process has a lock file of a run open, in any repository.
pub(super) fn has_open_lock() -> bool {
    system::open_files().iter().any(|file| file.to_string_lossy().contains("/arborist/locks/"))
}

/// Whether this process has a lock file in this folder open that was removed.
pub(super) fn has_removed_lock(folder: &Path) -> bool {
    system::open_files()
        .iter()
        .any(|file| file.starts_with(folder) && file.to_string_lossy().ends_with(" (deleted)"))
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::BTreeSet,
        fs::{self, Metadata},
        io::{ErrorKind, Read},
        os::unix::fs::MetadataExt,
        path::PathBuf,
    };

    use super::Process;

    /// Whether a process is opening a named pipe whose other end is not open. No if the system does not tell.
    pub(in crate::process) fn waits_at_named_pipe(pid: u32) -> bool {
        let place = fs::read_to_string(format!("/proc/{pid}/wchan"));
        place.is_ok_and(|place| place.trim() == "wait_for_partner")
    }

    /// Whether process `pid` exists, has not ended and is not stopped.
    pub(in crate::process) fn is_running(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rfind(')').and_then(|end| stat.get(end + 1..)).unwrap_or_default();
        rest.trim_start().starts_with(['R', 'S', 'D'])
    }

    /// Whether process `pid` was killed and has not ended yet. It still holds its locks.
    pub(in crate::process) fn is_being_killed(pid: u32) -> bool {
        const SIGKILL: u64 = 1 << 8;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = status.lines().filter_map(|line| {
            let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
        pending.fold(0, |all, mask| all | mask) & SIGKILL != 0
    }

    pub(super) fn open_files() -> Vec<PathBuf> {
        let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
    }

    pub(super) fn name(pid: u32) -> Option<String> {
        fs::read_to_string(format!("/proc/{pid}/comm")).ok()
    }

    /// All visible processes; empty if the system does not tell.
    pub(in crate::process) fn all() -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        names.filter_map(one).collect()
    }

    pub(super) fn one(pid: u32) -> Option<Process> {
        // One read gives everything. A second read for the end of the file would double the cost for each process.
        let mut stat = [0; 1024];
        let read = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
        parse(pid, &String::from_utf8_lossy(&stat[..read]))
    }

    /// Each thread lists the children that it started; adopted ones are listed by the main thread.
    pub(super) fn children(pid: u32) -> Option<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            match fs::read_to_string(thread.path().join("children")) {
                Ok(listed) => {
                    found.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
                }
                // A thread that has ended meanwhile. If no thread has a list, the main thread has none either.
                Err(_) if thread.file_name() != *pid.to_string() => {}
                Err(_) => return None,
            }
        }
        Some(found)
    }

    pub(super) fn adopted(pid: u32) -> Option<BTreeSet<u32>> {
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        Some(listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Fields are counted after the last bracket: the program's name is in brackets and may contain anything.
    pub(super) fn parse(pid: u32, stat: &str) -> Option<Process> {
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            zombie: matches!(*fields.first()?, "Z" | "X"),
            started: (*fields.get(19)?).to_owned(),
        })
    }

    /// The number of processes of a user, as the system counts them for its limit: threads count, too.
    pub(in crate::process) fn count_processes(user: u32) -> u64 {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
        let statuses = pids.filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
        statuses.filter_map(|status| count_threads(&status, user)).sum()
    }

    /// The number of threads of a process, if it is one of this user.
    pub(super) fn count_threads(status: &str, user: u32) -> Option<u64> {
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        (field("Uid:")? == u64::from(user)).then(|| field("Threads:").unwrap_or(1))
    }

    /// The environment with which process `pid` was started; `None` if it may not be read.
    pub(in crate::process) fn environment(pid: u32) -> Option<Vec<u8>> {
        fs::read(format!("/proc/{pid}/environ")).ok()
    }

    /// Whether process `pid` shares the lock on `file`. The kernel lists for each descriptor the locks of its open
    /// file; another open of the same file has none.
    pub(in crate::process) fn shares_lock(pid: u32, file: &Metadata) -> bool {
        let entries = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(entries) => entries,
            Err(error) => return error.kind() == ErrorKind::PermissionDenied && took_lock(pid, file.ino()),
        };
        entries.flatten().any(|entry| {
            let same = fs::metadata(entry.path())
                .is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()));
            let info = || format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
            same && fs::read_to_string(info()).is_ok_and(|info| info.contains("FLOCK"))
        })
    }

    /// Whether a process whose descriptors are not readable, such as another driver, took the lock on this file itself.
    pub(super) fn took_lock(pid: u32, inode: u64) -> bool {
        // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF". The device is not compared: on some file systems it is not
        // the one that `stat` reports.
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "FLOCK", _, _, holder, file, ..] = fields[..] else { return false };
            holder.parse() == Ok(pid)
                && file.rsplit(':').next().is_some_and(|found| found.parse() == Ok(inode))
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{collections::BTreeSet, fs::Metadata, path::PathBuf, process::Command};

    use super::Process;

    pub(in crate::process) fn waits_at_named_pipe(_pid: u32) -> bool {
        false
    }

    pub(in crate::process) fn is_running(_pid: u32) -> bool {
        false
    }

    pub(in crate::process) fn is_being_killed(_pid: u32) -> bool {
        false
    }

    pub(super) fn adopted(_pid: u32) -> Option<BTreeSet<u32>> {
        None
    }

    pub(super) fn children(_pid: u32) -> Option<BTreeSet<u32>> {
        None
    }

    pub(super) fn open_files() -> Vec<PathBuf> {
        Vec::new()
    }

    pub(super) fn name(pid: u32) -> Option<String> {
        let output = Command::new("ps").args(["-p", &pid.to_string(), "-o", "comm="]).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(in crate::process) fn all() -> Vec<Process> {
        ask(&["-A"])
    }

    pub(super) fn one(pid: u32) -> Option<Process> {
        ask(&["-p", &pid.to_string()]).pop()
    }

    fn ask(which: &[&str]) -> Vec<Process> {
        let mut ps = Command::new("ps");
        ps.args(which).args(["-o", "pid=,ppid=,pgid=,state=,lstart="]).env("LC_ALL", "C");
        let Ok(output) = ps.output() else { return Vec::new() };
        String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect()
    }

    fn parse(line: &str) -> Option<Process> {
        let mut fields = line.split_ascii_whitespace();
        Some(Process {
            pid: fields.next()?.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            zombie: fields.next()?.starts_with('Z'),
            started: fields.flat_map(str::chars).filter(char::is_ascii_alphanumeric).collect(),
        })
    }

    pub(in crate::process) fn count_processes(user: u32) -> u64 {
        let listed = Command::new("ps").args(["-U", &user.to_string(), "-o", "pid="]).output();
        listed.map_or(0, |listed| listed.stdout.split(|byte| *byte == b'\n').count() as u64)
    }

    pub(in crate::process) fn environment(_pid: u32) -> Option<Vec<u8>> {
        None
    }

    pub(in crate::process) fn shares_lock(_pid: u32, _file: &Metadata) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::Stdio,
    };

    use rustix::process::Signal;

    use super::*;

    #[test]
    fn a_process_entry_is_parsed_with_any_program_name() {
        let stat = "7 (a) Z 1 (b) S 3 4 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 8899 1 1";
        let process = system::parse(7, stat).unwrap();
        let want = Process { pid: 7, parent: 3, group: 4, zombie: false, started: "8899".into() };
        assert_eq!(process, want);
    }

    #[test]
    fn child_processes_are_found_whichever_thread_started_them() {
        let start = || std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut all = [start(), std::thread::spawn(start).join().unwrap()];
        // The list misses a child if another test reaps an earlier one at the same time.
        let are_found = |found: &BTreeSet<u32>| all.iter().all(|child| found.contains(&child.id()));
        assert!((0..100).any(|_| are_found(&children().unwrap())));
        for child in &mut all {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let found = children().unwrap();
        assert!(all.iter().all(|child| !found.contains(&child.id())));
    }

    #[test]
    fn descendants_of_child_processes_are_found() {
        let mut shell = std::process::Command::new("sh");
        let mut child =
            shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let below: u32 = line.trim().parse().unwrap();
        let is_it = |process: &Process| process.pid == below && process.parent == child.id();
        assert!((0..100).any(|_| descendants().iter().any(is_it)));
        super::super::process_group::send(Signal::KILL, &[below]);
        child.wait().unwrap();
    }

    #[test]
    fn a_lock_is_found_without_reading_the_descriptors_of_its_holder() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        assert!(!system::took_lock(std::process::id(), inode));
        file.as_file().lock().unwrap();
        assert!(system::took_lock(std::process::id(), inode) && !system::took_lock(1, inode));
    }

    #[test]
    fn threads_of_one_user_are_counted() {
        let status = "Name:\tUid: 7\nUid:\t1000\t0\t0\t0\nThreads:\t3\n";
        let count = |user| system::count_threads(status, user);
        assert_eq!((count(1000), count(0)), (Some(3), None));
    }

    #[test]
    fn the_process_table_contains_this_process() {
        let us = std::process::id();
        assert!(all().iter().any(|process| process.pid == us && process.started == start_of(us)));
    }
}
