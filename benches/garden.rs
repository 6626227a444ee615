//! What driving costs: a run of tasks beside its floor, the same agent processes and as many `git commit`s, both without
//! and both with a sandbox; what it costs in repositories with SHA-256 ids or tables of refs; and whether a task costs
//! more the longer the run is. `cargo bench --bench garden`; `-- --full` for 1,000 tasks.
//!
//! What the sandbox itself costs is measured by `cargo bench --bench sandbox`.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod run_home;

use std::{
    env, fs,
    ops::RangeInclusive,
    path::Path,
    time::{Duration, Instant},
};

use arborist_core::process::ConfinementBackend;
use run_home::RunHome;

const TASKS: usize = 100;
const ROUNDS: usize = 5;
const FORM_ROUNDS: usize = 3;
/// For each task: implement, test, review, complete.
const COMMITS: usize = 4;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = RunHome::new(folder.path());
    compare(&home, &Agents::Bare);
    if ConfinementBackend::Bwrap.works() {
        compare(&home, &Agents::InBubblewrap);
    } else {
        println!("skipped: bubblewrap does not work here");
    }
    formats(&home);
    growth(&home, if env::args().any(|arg| arg == "--full") { 1000 } else { 300 });
}

/// How agents are started.
enum Agents {
    Bare,
    InBubblewrap,
}

impl Agents {
    fn describe(&self) -> &'static str {
        match self {
            Self::Bare => "without a sandbox",
            Self::InBubblewrap => "with bubblewrap",
        }
    }

    fn sandbox_mode(&self) -> &'static str {
        match self {
            Self::Bare => "off",
            Self::InBubblewrap => "bwrap",
        }
    }

    /// What a shell writes before the command of an agent, for a checkout in `dir`.
    fn prefix(&self, dir: &Path) -> String {
        let dir = dir.display();
        match self {
            Self::Bare => String::new(),
            Self::InBubblewrap => format!(
                "bwrap --unshare-pid --unshare-ipc --new-session --die-with-parent --ro-bind / / --dev /dev \
                 --proc /proc --bind '{dir}' '{dir}' --ro-bind '{dir}/.git' '{dir}/.git' --"
            ),
        }
    }
}

/// A run beside its floor.
fn compare(home: &RunHome, agents: &Agents) {
    let mode = agents.sandbox_mode();
    let rounds: Vec<(Duration, Duration)> = (0..ROUNDS)
        .map(|round| {
            let dir = |name: &str| home.repository(&format!("{name}-{mode}-{round}"), TASKS);
            (floor(home, &dir("floor"), agents), home.run(&dir("run"), &["--sandbox", mode]))
        })
        .collect();
    println!("{TASKS} tasks {}, {ROUNDS} rounds taken in turn", agents.describe());
    println!("  {:<34} {:>8}  {:>8}", "", "best", "middle");
    let (floors, runs) = rounds.into_iter().unzip();
    let floors = shown("the same agents and git commits", floors);
    let runs = shown("git arborist gardener", runs);
    println!(
        "  {:<34} {:>8.2}  {:>8.2}  times (asked: at most 1.3)\n",
        "",
        runs.0 / floors.0,
        runs.1 / floors.1
    );
}

/// Prints the best and the middle of these, in seconds.
fn shown(name: &str, mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let (best, middle) = (times[0].as_secs_f64(), times[times.len() / 2].as_secs_f64());
    println!("  {name:<34} {best:>6.2} s  {middle:>6.2} s");
    (best, middle)
}

/// The same run in repositories that keep objects or refs in other forms, taken in turn.
fn formats(home: &RunHome) {
    const FORMS: [(&str, &[&str]); 3] = [
        ("SHA-1 ids, refs in files", &[]),
        ("SHA-256 ids", &["--object-format=sha256"]),
        ("refs in tables", &["--ref-format=reftable"]),
    ];
    let mut times = [const { Vec::new() }; FORMS.len()];
    for round in 0..FORM_ROUNDS {
        for (n, (_, options)) in FORMS.iter().enumerate() {
            let dir = home.repository_with(&format!("form-{n}-{round}"), TASKS, options);
            times[n].push(home.run(&dir, &[]));
        }
    }
    println!("{TASKS} tasks, {FORM_ROUNDS} rounds taken in turn");
    let mut usual = None;
    for ((name, _), times) in FORMS.iter().zip(times) {
        let (best, middle) = shown(name, times);
        let (usual_best, usual_middle) = *usual.get_or_insert((best, middle));
        println!(
            "  {:<34} {:>8.2}  {:>8.2}  times (asked: at most 2)",
            "",
            best / usual_best,
            middle / usual_middle
        );
    }
}

/// What nobody can do without.
fn floor(home: &RunHome, dir: &Path, agents: &Agents) -> Duration {
    let start = Instant::now();
    for n in 1..=TASKS {
        call_agent(home, dir, (agents, &format!("Implement task T{n:04}: do thing {n}")));
        call_agent(home, dir, (agents, "Review it"));
        for step in 0..COMMITS {
            let message = format!("task T{n:04}, step {step}");
            home.git(dir, &["commit", "-q", "--allow-empty", "-m", &message]);
        }
    }
    start.elapsed()
}

fn call_agent(home: &RunHome, dir: &Path, (agents, prompt): (&Agents, &str)) {
    let prefix = agents.prefix(dir);
    let script = format!("printf '%s\\n' \"$1\" | {prefix} sh '{}'", home.agent().display());
    let mut command = home.command("sh", dir);
    assert!(command.args(["-c", &script, "-", prompt]).status().expect("sh").success());
}

/// What a task costs beside git itself, in the first hundred tasks and in the last. git takes longer where there are more
/// files, so in another repository of the same size it commits the same ones.
fn growth(home: &RunHome, tasks: usize) {
    let (dir, other) = (home.repository("growth", tasks), home.repository("growth-floor", tasks));
    for dir in [&dir, &other] {
        // git would tidy up in the background now and then, in the time and with the lock of whoever runs next.
        home.git(dir, &["config", "gc.auto", "0"]);
    }
    let until = |task: usize| home.run(&dir, &["--until", &format!("T{task:04}")]);
    println!(
        "\n  {:<24} {:>12} {:>24} {:>8}",
        format!("a run of {tasks} tasks"),
        "gardener",
        "the same by git",
        "times"
    );
    let first = hundred("the first hundred", until(100), by_git(home, &other, 1..=100));
    until(tasks - 100);
    write_task_files(&other, 101..=tasks - 100);
    home.git(&other, &["add", "-A"]);
    home.git(&other, &["commit", "-q", "-m", "what lies between"]);
    let last = hundred("the last hundred", until(tasks), by_git(home, &other, tasks - 99..=tasks));
    println!("  {:<24} {:+.0} % (asked: under 20 % at 1,000)", "", (last / first - 1.0) * 100.0);
}

/// The same agents, and the same files in as many commits.
fn by_git(home: &RunHome, dir: &Path, tasks: RangeInclusive<usize>) -> Duration {
    let start = Instant::now();
    let commit = |what: &str| home.git(dir, &["commit", "-q", "--allow-empty", "-m", what]);
    for n in tasks {
        call_agent(home, dir, (&Agents::Bare, &format!("Implement task T{n:04}: do thing {n}")));
        home.git(dir, &["add", "-A"]);
        commit("implemented");
        commit("tested");
        call_agent(home, dir, (&Agents::Bare, "Review it"));
        commit("reviewed");
        report(dir, n);
        home.git(dir, &["add", "-A"]);
        commit("complete");
    }
    start.elapsed()
}

/// What a run leaves of these tasks, file by file.
fn write_task_files(dir: &Path, tasks: RangeInclusive<usize>) {
    for n in tasks {
        fs::write(dir.join(format!("T{n:04}.txt")), format!("Implement task T{n:04}: do thing {n}\n"))
            .expect("a file");
        report(dir, n);
    }
}

fn report(dir: &Path, n: usize) {
    let folder = dir.join("spec/reports");
    fs::create_dir_all(&folder).expect("a folder");
    let text = format!("{{ \"task_id\": \"T{n:04}\", \"result\": \"pass\", \"retries\": 0 }}\n");
    fs::write(folder.join(format!("T{n:04}_run.json")), text).expect("a report");
}

/// Prints a row, and gives how many times as long the gardener took.
fn hundred(name: &str, run: Duration, floor: Duration) -> f64 {
    let (run, floor) = (run.as_secs_f64(), floor.as_secs_f64());
    println!("  {name:<24} {run:>10.2} s {floor:>22.2} s {:>8.2}", run / floor);
    run / floor
}
