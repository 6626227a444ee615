//! What several jobs gain: tasks that only wait beside their ideal, and 200 tasks whose agent does next to nothing, with
//! `--jobs 2` beside one job in the checkout. `cargo bench --bench jobs`; `-- --idle` for the second alone.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod field;

use std::{env, time::Duration};

use field::Field;

const ROUNDS: usize = 5;
/// So many tasks that wait, for so long, by so many at once.
const SLEEPERS: usize = 8;
const SLEEP: Duration = Duration::from_secs(2);
const JOBS: usize = 4;
/// So many tasks that do nothing.
const TASKS: usize = 200;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let field = Field::new(folder.path());
    if !env::args().any(|arg| arg == "--idle") {
        waiting(&field);
    }
    idle(&field);
}

/// Tasks that only wait: the rest is what driving them costs.
fn waiting(field: &Field) {
    field.plant(SLEEP);
    let ideal = SLEEP.as_secs_f64() * (SLEEPERS / JOBS) as f64;
    let jobs = JOBS.to_string();
    let run =
        |round| field.garden(&field.repository(&format!("waiting-{round}"), SLEEPERS), &["--jobs", &jobs]);
    let took = (0..ROUNDS).map(run).min().unwrap_or_default().as_secs_f64();
    println!("{SLEEPERS} tasks of {} s, --jobs {JOBS}, best of {ROUNDS}", SLEEP.as_secs());
    println!("  {:<34} {ideal:>6.2} s", "ideal");
    println!(
        "  {:<34} {took:>6.2} s  {:.2} times (asked: at most 1.25)\n",
        "git arborist gardener",
        took / ideal
    );
}

/// Tasks that do nothing: two jobs pay for lanes and landings, and have nothing to gain but the second core. What is
/// compared is taken in turn, each in a repository of its own.
fn idle(field: &Field) {
    field.plant(Duration::ZERO);
    let ways: [(&str, &[&str]); 2] = [("one job, in the checkout", &[]), ("--jobs 2", &["--jobs", "2"])];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (n, (_, args)) in ways.iter().enumerate() {
            let dir = field.repository(&format!("idle-{round}-{n}"), TASKS);
            times[n].push(field.garden(&dir, args).as_secs_f64());
        }
    }
    println!("{TASKS} tasks that do nothing, {ROUNDS} rounds taken in turn");
    println!("  {:<34} {:>8}  {:>8}", "", "best", "middle");
    let [one, two] = [0, 1].map(|n| shown(ways[n].0, &mut times[n]));
    let ratio = (two.0 / one.0, two.1 / one.1);
    println!("  {:<34} {:>8.2}  {:>8.2}  times (asked: at most 1.0)", "", ratio.0, ratio.1);
}

/// Prints the best and the middle of these, in seconds.
fn shown(name: &str, times: &mut [f64]) -> (f64, f64) {
    times.sort_unstable_by(f64::total_cmp);
    let (best, middle) = (times[0], times[times.len() / 2]);
    println!("  {name:<34} {best:>6.2} s  {middle:>6.2} s");
    (best, middle)
}
