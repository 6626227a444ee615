//! Signals to a driver: the first asks, the second ends.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use arborist_core::process::{Ending, Limits, Program, Supervised, interrupt};

/// How long an agent may take that is asked to end. No test waits for that long.
const GRACE: Duration = Duration::from_secs(120);

struct Driver {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Driver {
    /// This test program again, supervising `script`; ready once that has printed.
    fn start(dir: &Path, script: &str) -> Self {
        let test = std::env::current_exe().unwrap();
        let mut command = Command::new(test);
        command.args(["--exact", "interrupts::driver", "--ignored", "--nocapture"]);
        Self::launch(command, dir, script)
    }

    fn launch(mut command: Command, dir: &Path, script: &str) -> Self {
        let mut child =
            command.env("SCRIPT", script).current_dir(dir).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut driver = Self { child, lines };
        driver.await_line("started");
        driver
    }

    fn await_line(&mut self, wanted: &str) {
        assert!(self.prints(wanted), "'{wanted}' was printed");
    }

    /// Whether it prints this before it ends.
    fn prints(&mut self, wanted: &str) -> bool {
        self.lines.by_ref().map_while(Result::ok).any(|line| line.contains(wanted))
    }

    fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// In one breath, unless the machine is too busy for that.
    fn send_twice(&self, signal: &str) {
        let pid = self.child.id();
        let kills = format!("kill {signal} {pid}; kill {signal} {pid}");
        assert!(Command::new("sh").args(["-c", &kills]).status().unwrap().success());
    }

    fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

#[test]
fn the_first_signal_ends_the_run_gracefully() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        // Under nohup a hangup ends nothing.
        if signal == "-HUP" && ignores_hangups() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut driver = Driver::start(dir.path(), "echo; sleep 100");
        driver.send(signal);
        driver.await_line("was stopped with the run");
        assert_eq!(driver.code(), Some(code));
    }
}

/// A driver that has got one press twice, and is still alive. On a busy machine both may arrive too far apart from each other,
/// so there are several tries.
fn pressed_twice(dir: &Path) -> Driver {
    // It prints when it is ready to be asked, not before.
    let script =
        "trap 'echo asked' TERM INT; echo x >> pulse; echo; while :; do echo x >> pulse; sleep 0.02; done";
    for _ in 0..5 {
        let mut driver = Driver::start(dir, script);
        driver.send_twice("-INT");
        let is_asked = driver.prints("asked");
        thread::sleep(interrupt::REPEAT_WINDOW * 2);
        if is_asked && driver.child.try_wait().unwrap().is_none() {
            return driver;
        }
        assert_eq!(driver.code(), Some(130));
    }
    panic!("the echo is not a second wish");
}

#[test]
fn a_signal_that_arrives_twice_counts_once_and_a_second_one_ends_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let driver = pressed_twice(dir.path());
    let start = Instant::now();
    driver.send("-INT");
    assert_eq!(driver.code(), Some(130));
    assert!(start.elapsed() < GRACE / 2, "the grace was not waited for");
    let before = fs::read(dir.path().join("pulse")).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read(dir.path().join("pulse")).unwrap(), before, "the agent is gone");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hangup_is_ignored_under_nohup() {
    let dir = tempfile::tempdir().unwrap();
    let mut nohup = Command::new("sh");
    let test = std::env::current_exe().unwrap();
    nohup.args(["-c", "trap '' HUP; exec \"$0\" --exact interrupts::driver --ignored --nocapture"]).arg(test);
    let mut driver = Driver::launch(nohup, dir.path(), "echo; sleep 0.8; exit 9");
    driver.send("-HUP");
    driver.await_line("failed with exit code 9");
    assert_eq!(driver.code(), Some(0));
}

#[test]
#[ignore = "started by the tests above"]
fn driver() {
    let Ok(script) = std::env::var("SCRIPT") else { return };
    let cancel = interrupt::watch(|signal| std::process::exit(128 + signal)).unwrap();
    let limits = Limits { grace: GRACE, ..Limits::default() };
    let program = Program::new("sh").args(["-c", &script]);
    let outcome = Supervised::new(program).limits(limits).until(&cancel).run(|chunk| {
        println!("\nstarted {}", String::from_utf8_lossy(chunk.bytes));
    });
    println!("\nit {}", outcome.ending);
    assert_eq!(matches!(outcome.ending, Ending::Cancelled), cancel.signal().is_some());
    std::process::exit(cancel.signal().map_or(0, |signal| 128 + signal));
}
