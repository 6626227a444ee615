//! Locks between processes, and what is left of an attempt whose driver was killed.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Barrier,
    thread,
    time::Duration,
};

use arborist_core::process::{Cancel, FileLock, LockError, OrphanLock, Program, Supervised};

const GRACE: Duration = Duration::from_secs(60);

/// This test program again, as another process that does what `role` says in `dir` and prints "ready".
fn start(role: &str, dir: &Path, script: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("locks::{role}"), "--ignored", "--nocapture"])
        .env("LOCKS_IN", dir)
        .env("LOCKS_SCRIPT", script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("ready")), "the other process is ready");
    child
}

/// Other tests start processes at any moment, and these have copies of our descriptors for a moment.
fn take_soon(path: &Path) -> Result<FileLock, LockError> {
    FileLock::take_within(path, "", GRACE, &Cancel::new())
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_one_of_two_processes_gets_a_lock_and_the_other_learns_its_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("locks/main");
    for _ in 0..50 {
        let barrier = Barrier::new(8);
        let won: Vec<_> = thread::scope(|scope| {
            let take = || {
                barrier.wait();
                FileLock::try_take(&path, "gardener on main")
            };
            let tries: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            tries.into_iter().map(|attempt| attempt.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|result| result.is_ok()).count(), 1);
    }
    let _held = FileLock::try_take(&path, "gardener on main").unwrap();
    let told = FileLock::try_take(&path, "").unwrap_err().to_string();
    let us = format!("is held by process {} on ", std::process::id());
    assert!(told.contains(&us) && told.contains(" (gardener on main) since 20"), "{told}");
}

#[test]
fn a_lock_ends_when_its_value_is_dropped_or_its_process_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main");
    drop(FileLock::try_take(&path, "").unwrap());
    let other = start("holder", dir.path(), "");
    let LockError::Held { holder, .. } = FileLock::try_take(&path, "").unwrap_err() else { panic!() };
    assert_eq!((holder.pid, holder.what.as_str()), (other.id(), "the other one"));
    kill(other);
    assert!(FileLock::try_take(&path, "").is_ok(), "what stands in the file decides nothing");
}

#[test]
fn children_do_not_inherit_a_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main");
    let lock = FileLock::try_take(&path, "").unwrap();
    let child = Program::new("sleep").arg("100").start().unwrap();
    drop(lock);
    assert!(FileLock::try_take(&path, "").is_ok());
    drop(child);
}

#[test]
fn a_lock_file_that_was_removed_or_replaced_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main");
    let first = FileLock::try_take(&path, "").unwrap();
    assert!(first.is_in_place());
    fs::remove_file(&path).unwrap();
    assert!(!first.is_in_place());
    let second = FileLock::try_take(&path, "").unwrap();
    assert!(second.is_in_place() && !first.is_in_place());
}

#[test]
fn a_lock_is_exclusive_although_its_file_is_removed_repeatedly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main");
    let done = Cancel::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.wait(Duration::from_micros(200)) {
                let _ = fs::remove_file(&path);
            }
        });
        for _ in 0..300 {
            if let Ok(lock) = FileLock::try_take(&path, "") {
                let other = FileLock::try_take(&path, "");
                assert!(other.is_err() || !lock.is_in_place());
            }
        }
        done.cancel();
    });
}

#[test]
fn a_lock_is_waited_for_up_to_the_given_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main");
    let cancel = Cancel::new();
    let take = |time| FileLock::take_within(&path, "", time, &cancel);
    let held = take(Duration::ZERO).unwrap();
    assert!(matches!(take(Duration::from_millis(50)), Err(LockError::Held { .. })));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| take(Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(50));
        drop(held);
        let held = waiter.join().unwrap().unwrap();
        cancel.cancel();
        assert!(matches!(take(Duration::from_secs(60)), Err(LockError::Held { .. })));
        drop(held);
    });
}

/// Kills a driver whose agent runs `script`, and looks at what a second driver finds.
fn ended_after_kill(script: &str) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let driver = start("driver", dir.path(), script);
    let run_path = dir.path().join("run");
    assert!(matches!(FileLock::try_take(&run_path, ""), Err(LockError::Held { .. })));
    kill(driver);

    let run = FileLock::try_take(&run_path, "the run's own lock died with its driver").unwrap();
    let path = dir.path().join("orphan_lock");
    let (orphan_lock, ended) = OrphanLock::take_over(&run, &path, GRACE).unwrap();
    let pulse = dir.path().join("pulse");
    let before = fs::read(&pulse).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read(&pulse).unwrap(), before, "nobody writes any more");
    drop(orphan_lock);
    let (_orphan_lock, nobody) = OrphanLock::take_over(&run, &path, GRACE).unwrap();
    assert!(nobody.is_empty(), "nothing is left to be ended");
    ended.len()
}

const PULSE: &str = "while :; do echo x >> pulse; sleep 0.02; done";

/// Whether an agent that runs `script` is found. Other tests may end it first: this process adopts it when its driver is
/// killed, and what it has adopted ends with any of its programs. So there are several tries.
fn is_found_after_kill(script: &str) -> bool {
    (0..10).any(|_| ended_after_kill(script) >= 1)
}

#[test]
fn after_a_driver_was_killed_its_agent_is_found_and_ended() {
    assert!(is_found_after_kill(PULSE));
}

#[cfg(target_os = "linux")]
#[test]
fn processes_that_left_their_group_closed_the_lock_or_lost_their_mark_are_found() {
    let shut =
        "for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done 2>/dev/null";
    let cases = [
        format!("(setsid sh -c '{PULSE}' &)"),
        format!("(setsid bash -c '{shut}; {PULSE}' &)"),
        format!("(setsid env -u ARBORIST_PROCESS sh -c '{PULSE}' &)"),
        format!("env -u ARBORIST_PROCESS bash -c '{shut}; {PULSE}' & wait"),
    ];
    for script in cases {
        assert!(is_found_after_kill(&script), "{script}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_only_reads_the_lock_file_is_not_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orphan_lock");
    let run = FileLock::try_take(&dir.path().join("run"), "").unwrap();
    drop(OrphanLock::take_over(&run, &path, GRACE).unwrap());
    let mut reader = Command::new("tail").arg("-f").arg(&path).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(200));
    let (_orphan_lock, ended) = OrphanLock::take_over(&run, &path, GRACE).unwrap();
    assert!(ended.is_empty() && reader.try_wait().unwrap().is_none());
    kill(reader);
}

#[test]
fn an_orphan_lock_is_reusable_and_inherited_only_by_its_own_agent() {
    let dir = tempfile::tempdir().unwrap();
    let run = FileLock::try_take(&dir.path().join("run"), "").unwrap();
    let paths = [dir.path().join("one"), dir.path().join("two")];
    let take = |path: &Path| OrphanLock::take_over(&run, path, GRACE).unwrap().0;
    let mut first = take(&paths[0]);
    for code in [1, 2] {
        let program = Program::new("sh").args(["-c", &format!("exit {code}")]);
        assert_eq!(
            Supervised::new(program).with_orphan_lock(&mut first).run(|_| {}).ending.code(),
            Some(code)
        );
    }
    thread::scope(|scope| {
        let quit = Cancel::new();
        let (mut second, until) = (take(&paths[1]), quit.clone());
        let other = scope.spawn(move || {
            let program = Program::new("sh").args(["-c", "echo; exec sleep 100"]);
            Supervised::new(program).until(&until).with_orphan_lock(&mut second).run(|_| {})
        });
        let bystander = Program::new("sleep").arg("100").start().unwrap();
        thread::sleep(Duration::from_millis(200));
        drop(first);
        assert!(take_soon(&paths[0]).is_ok(), "neither the other agent nor a bystander holds it");
        assert!(FileLock::try_take(&paths[1], "").is_err());
        quit.cancel();
        other.join().unwrap();
        drop(bystander);
    });
    assert!(take_soon(&paths[1]).is_ok());
}

#[test]
#[ignore = "started by the tests above"]
fn holder() {
    let Ok(dir) = std::env::var("LOCKS_IN") else { return };
    let _lock = FileLock::try_take(&Path::new(&dir).join("main"), "the other one").unwrap();
    println!("\nready");
    thread::sleep(Duration::from_secs(100));
}

#[test]
#[ignore = "started by the tests above"]
fn driver() {
    let Ok(dir) = std::env::var("LOCKS_IN") else { return };
    let dir = Path::new(&dir);
    let run = FileLock::try_take(&dir.join("run"), "the first").unwrap();
    let (mut orphan_lock, _) = OrphanLock::take_over(&run, &dir.join("orphan_lock"), GRACE).unwrap();
    let script = std::env::var("LOCKS_SCRIPT").unwrap() + "\nsleep 100";
    let agent = Program::new("sh").args(["-c", &script]).dir(dir);
    thread::scope(|scope| {
        scope.spawn(|| Supervised::new(agent).with_orphan_lock(&mut orphan_lock).run(|_| {}));
        let mut tries = 0..12_000;
        while !dir.join("pulse").exists() {
            thread::sleep(Duration::from_millis(10));
            tries.next().unwrap_or_else(|| std::process::exit(1));
        }
        println!("\nready");
    });
}
