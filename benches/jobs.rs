//! What several jobs gain: tasks that only wait beside their ideal, in a small repository and in one of 2,000 files with cold and
//! with warm lanes; and 200 tasks whose agent does next to nothing, with `--jobs 2` beside one job in the checkout.
//! `cargo bench --bench jobs`; `-- --lanes` or `-- --idle` for one of these alone.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod run_home;

use std::{
    env, fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use run_home::RunHome;

const ROUNDS: usize = 5;
/// So many tasks that wait, for so long, by so many at once.
const SLEEPERS: usize = 8;
const SLEEP: Duration = Duration::from_secs(2);
const JOBS: usize = 4;
/// So many tasks that do nothing.
const TASKS: usize = 200;
/// So many tasks that wait, by so many at once, among so many files in so many folders.
const LANE_TASKS: usize = 64;
const LANE_SLEEP: Duration = Duration::from_secs(5);
const LANES: usize = 32;
const FOLDERS: usize = 40;
const FILES: usize = 50;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = RunHome::new(folder.path());
    let [only_lanes, only_idle] = ["--lanes", "--idle"].map(|name| env::args().any(|arg| arg == name));
    if !only_lanes && !only_idle {
        waiting(&home);
    }
    if !only_idle {
        lanes(&home);
    }
    if !only_lanes {
        idle(&home);
    }
}

/// Many lanes of a larger repository: those of the first run have to be made, those of the second are there.
fn lanes(home: &RunHome) {
    home.write_agent(LANE_SLEEP);
    let ideal = LANE_SLEEP.as_secs_f64() * (LANE_TASKS / LANES) as f64;
    let [dir, other] = ["lanes", "lanes-floor"].map(|name| {
        let dir = home.repository(name, 2 * LANE_TASKS);
        write_files(&dir);
        home.git(&dir, &["add", "-A"]);
        home.git(&dir, &["commit", "-q", "-m", "files"]);
        dir
    });
    let floor = ideal + add_worktrees(home, &other);
    let jobs = LANES.to_string();
    let middle = format!("T{LANE_TASKS:04}");
    let run = |args: &[&str]| home.run(&dir, &[&["--jobs", &jobs], args].concat()).as_secs_f64();
    let (cold, warm) = (run(&["--until", &middle]), run(&[]));
    println!("{LANE_TASKS} tasks of {} s, --jobs {LANES}, {} files", LANE_SLEEP.as_secs(), FOLDERS * FILES);
    println!("  {:<34} {ideal:>6.2} s", "ideal");
    println!("  {:<34} {floor:>6.2} s", "ideal, and git worktree add");
    println!("  {:<34} {cold:>6.2} s  {:.2} times (asked: at most 1.2)", "cold lanes", cold / floor);
    println!("  {:<34} {warm:>6.2} s  {:.2} times (asked: at most 1.15)\n", "warm lanes", warm / ideal);
}

fn write_files(dir: &Path) {
    for folder in 0..FOLDERS {
        let place = dir.join(format!("src/d{folder}"));
        fs::create_dir_all(&place).expect("a folder");
        for file in 0..FILES {
            fs::write(place.join(format!("f{file}.txt")), format!("file {folder} {file}\n")).expect("a file");
        }
    }
}

/// How many seconds git takes to make as many worktrees, two at a time.
fn add_worktrees(home: &RunHome, dir: &Path) -> f64 {
    let start = Instant::now();
    let add = |lane: usize| {
        let place = format!("{}.{lane}", dir.display());
        home.git(dir, &["worktree", "add", "-q", "--detach", &place]);
    };
    thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (half..LANES).step_by(2).for_each(add));
        }
    });
    start.elapsed().as_secs_f64()
}

/// Tasks that only wait: the rest is what driving them costs.
fn waiting(home: &RunHome) {
    home.write_agent(SLEEP);
    let ideal = SLEEP.as_secs_f64() * (SLEEPERS / JOBS) as f64;
    let jobs = JOBS.to_string();
    let run = |round| home.run(&home.repository(&format!("waiting-{round}"), SLEEPERS), &["--jobs", &jobs]);
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
fn idle(home: &RunHome) {
    home.write_agent(Duration::ZERO);
    let ways: [(&str, &[&str]); 2] = [("one job, in the checkout", &[]), ("--jobs 2", &["--jobs", "2"])];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (n, (_, args)) in ways.iter().enumerate() {
            let dir = home.repository(&format!("idle-{round}-{n}"), TASKS);
            times[n].push(home.run(&dir, args).as_secs_f64());
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
