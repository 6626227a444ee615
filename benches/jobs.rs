//! What several jobs gain: tasks that only wait beside their ideal, and tasks that do nothing beside one job at a time.
//! `cargo bench --bench jobs`; `-- --full` for 200 tasks.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod field;

use std::{env, time::Duration};

use field::Field;

const ROUNDS: usize = 3;
/// So many tasks that wait, for so long, by so many at once.
const SLEEPERS: usize = 8;
const SLEEP: Duration = Duration::from_secs(2);
const JOBS: usize = 4;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let field = Field::new(folder.path());
    waiting(&field);
    idle(&field, if env::args().any(|arg| arg == "--full") { 200 } else { 60 });
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
        "  {:<34} {took:>6.2} s  {:.2} times (asked: at most 1.25)",
        "git arborist gardener",
        took / ideal
    );
}

/// Tasks that do nothing: here lanes and landings are all that there is. What is compared is taken in turn.
fn idle(field: &Field, tasks: usize) {
    field.plant(Duration::ZERO);
    let ways: [(&str, &[&str]); 3] = [
        ("one job, in the checkout", &[]),
        ("one job, in a lane", &["--isolate"]),
        ("two jobs", &["--jobs", "2"]),
    ];
    let mut best = [Duration::MAX; 3];
    for round in 0..ROUNDS {
        for (n, (_, args)) in ways.iter().enumerate() {
            let took = field.garden(&field.repository(&format!("idle-{round}-{n}"), tasks), args);
            best[n] = best[n].min(took);
        }
    }
    println!("\n{tasks} tasks that do nothing, best of {ROUNDS} taken in turn");
    for ((name, _), took) in ways.iter().zip(best) {
        let ratio = took.as_secs_f64() / best[0].as_secs_f64();
        println!("  {name:<34} {:>6.2} s  {ratio:.2} times", took.as_secs_f64());
    }
    println!("  (asked: two jobs are no slower than one)");
}
