//! What more workers gain, with agents that only wait and no gate: 1, 2, 4, 8 and 16 workers in clones of one bare
//! repository behind `git daemon`, each with its share of the tasks. Prints the throughput, how much of the ideal that is, and
//! how many pushes a task costs. `cargo bench --bench work`; `-- --tasks N --seconds N` for other tasks for each worker,
//! `-- --most N` for at most N workers.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod run_home;

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use run_home::RunHome;

const WORKER: &str = env!("CARGO_BIN_EXE_git-arborist-work");
/// How many workers there are in each round.
const WORKERS: [usize; 5] = [1, 2, 4, 8, 16];
/// How many tasks there are for each worker, and how long each waits.
const TASKS: usize = 8;
const SECONDS: usize = 20;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tasks, seconds) = (option("--tasks", TASKS), option("--seconds", SECONDS));
    let home = RunHome::new(folder.path());
    home.write_agent(Duration::from_secs(seconds as u64));
    let (mut daemon, port) = serve(&home, folder.path());
    println!("agents that wait {seconds} s, {tasks} tasks for each worker, no gate");
    println!(
        "  {:>7}  {:>6}  {:>8}  {:>12}  {:>9}  {:>15}",
        "workers", "tasks", "time", "tasks/minute", "of ideal", "pushes for a task"
    );
    let mut alone = None;
    let most = option("--most", usize::MAX);
    for workers in WORKERS.into_iter().filter(|workers| *workers <= most) {
        let count = workers * tasks;
        let (took, pushes) = measure(&home, folder.path(), (workers, count, port));
        let rate = count as f64 / took.as_secs_f64() * 60.0;
        let ideal = *alone.get_or_insert(rate) * workers as f64;
        println!(
            "  {workers:>7}  {count:>6}  {:>6.1} s  {rate:>12.1}  {:>7.0} %  {:>15.2}",
            took.as_secs_f64(),
            rate / ideal * 100.0,
            pushes as f64 / count as f64
        );
    }
    println!(
        "  (asked: at least 90 % for 16 workers; at most 4 pushes for a task, fewer than 2 if many land together)"
    );
    let _ = daemon.kill();
    let _ = daemon.wait();
}

/// How long so many workers take for a plan, and how many pushes they make.
fn measure(home: &RunHome, root: &Path, (workers, tasks, port): (usize, usize, u16)) -> (Duration, usize) {
    let name = format!("plan-{workers}");
    home.repository(&name, tasks);
    let bare = format!("{name}.git");
    home.git(root, &["clone", "-q", "--bare", &name, &bare]);
    let hook = root.join(&bare).join("hooks/post-receive");
    fs::write(&hook, "#!/bin/sh\necho x >> pushes\n").expect("a hook");
    home.git(root, &["-C", &bare, "config", "daemon.receivepack", "true"]);
    assert!(home.command("chmod", root).arg("+x").arg(&hook).status().expect("chmod").success());
    let url = format!("git://127.0.0.1:{port}/{bare}");
    for worker in 0..workers {
        home.git(root, &["clone", "-q", &url, &format!("{name}-{worker}")]);
    }
    let start = Instant::now();
    let start_worker =
        |worker| home.command(WORKER, &root.join(format!("{name}-{worker}"))).spawn().expect("a worker");
    let started: Vec<Child> = (0..workers).map(start_worker).collect();
    for mut worker in started {
        let status = worker.wait().expect("a worker");
        assert!(status.success(), "a worker ended with {status}");
    }
    let took = start.elapsed();
    let pushes = fs::read_to_string(root.join(&bare).join("pushes")).unwrap_or_default().lines().count();
    (took, pushes)
}

/// Serves the bare repositories of a folder on loopback.
fn serve(home: &RunHome, root: &Path) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port").port();
    let path = home.command("git", root).arg("--exec-path").stdout(std::process::Stdio::piped()).output();
    let path = String::from_utf8(path.expect("git").stdout).expect("a path");
    let mut command = home.command(&format!("{}/git-daemon", path.trim()), root);
    command.args(["--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1"]);
    let daemon = command.args([&format!("--port={port}"), "--base-path=."]).spawn().expect("git daemon");
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    (daemon, port)
}

/// The number after an option.
fn option(name: &str, default: usize) -> usize {
    let mut args = env::args().skip_while(|arg| arg != name);
    args.nth(1).and_then(|value| value.parse().ok()).unwrap_or(default)
}
