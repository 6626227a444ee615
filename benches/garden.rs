//! What driving costs: a run of tasks beside its bare floor, the same agent processes and as many `git commit`s; and
//! whether a task costs more the longer the run is. `cargo bench --bench garden`; `-- --full` for 1,000 tasks.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod field;

use std::{
    env,
    path::Path,
    time::{Duration, Instant},
};

use field::Field;

const TASKS: usize = 100;
const ROUNDS: usize = 5;
/// For each task: implement, test, review, complete.
const COMMITS: usize = 4;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let field = Field::new(folder.path());
    let rounds: Vec<(Duration, Duration)> = (0..ROUNDS)
        .map(|round| {
            let bare = floor(&field, &field.repository(&format!("floor-{round}"), TASKS));
            (bare, field.garden(&field.repository(&format!("run-{round}"), TASKS), &[]))
        })
        .collect();
    println!("{TASKS} tasks, {ROUNDS} rounds taken in turn");
    println!("  {:<34} {:>8}  {:>8}", "", "best", "middle");
    let (floors, runs) = rounds.into_iter().unzip();
    let floors = shown("the same agents and git commits", floors);
    let runs = shown("git arborist gardener", runs);
    println!(
        "  {:<34} {:>8.2}  {:>8.2}  times (asked: at most 2.0)",
        "",
        runs.0 / floors.0,
        runs.1 / floors.1
    );
    growth(&field, if env::args().any(|arg| arg == "--full") { 1000 } else { 300 });
}

/// Prints the best and the middle of these, in seconds.
fn shown(name: &str, mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let (best, middle) = (times[0].as_secs_f64(), times[times.len() / 2].as_secs_f64());
    println!("  {name:<34} {best:>6.2} s  {middle:>6.2} s");
    (best, middle)
}

/// What nobody can do without.
fn floor(field: &Field, dir: &Path) -> Duration {
    let start = Instant::now();
    for n in 1..=TASKS {
        call_agent(field, dir, &format!("Implement task T{n:04}: do thing {n}"));
        call_agent(field, dir, "Review it");
        for step in 0..COMMITS {
            let message = format!("task T{n:04}, step {step}");
            field.git(dir, &["commit", "-q", "--allow-empty", "-m", &message]);
        }
    }
    start.elapsed()
}

fn call_agent(field: &Field, dir: &Path, prompt: &str) {
    let script = format!("printf '%s\\n' \"$1\" | sh '{}'", field.agent().display());
    let mut command = field.command("sh", dir);
    assert!(command.args(["-c", &script, "-", prompt]).status().expect("sh").success());
}

/// What a task costs beside its floor, in the first hundred tasks and in the last. The floor is taken in the same
/// repository right afterwards, since git itself takes longer where there are more files.
fn growth(field: &Field, tasks: usize) {
    let dir = field.repository("growth", tasks);
    let until = |task: usize| field.garden(&dir, &["--until", &format!("T{task:04}")]);
    println!("\na run of {tasks} tasks          with agents    their floor       overhead");
    let first = hundred("the first hundred", until(100), floor(field, &dir));
    field.git(&dir, &["checkout", "-q", "--", "."]);
    until(tasks - 100);
    let last = hundred("the last hundred", until(tasks), floor(field, &dir));
    println!("  {:<24} {:+.0} % (asked: under 20 % at 1,000)", "", (last / first - 1.0) * 100.0);
}

/// Prints a row, and gives the overhead in seconds.
fn hundred(name: &str, run: Duration, floor: Duration) -> f64 {
    let (run, floor) = (run.as_secs_f64(), floor.as_secs_f64());
    println!("  {name:<24} {run:>10.2} s {floor:>12.2} s {:>12.2} s", run - floor);
    run - floor
}
