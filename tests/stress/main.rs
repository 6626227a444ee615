//! Kills of the whole process tree at random moments: driver, agents and gits at once, as when a container stops or the power
//! fails. The same command is run again until it ends; then every task is done once, no file is lost, no lock is left, and
//! what the user has changed and staged is as it was.
//!
//! `STRESS_KILLS=2000 STRESS_SEED=7 cargo test --test stress` sets how many kills there are and where the random numbers begin.
//! `STRESS_MODE=lanes` runs one mode alone, `STRESS_THREADS=2` sets how many runs there are at once. A failure names its
//! seed, and its folder is kept.

#![allow(clippy::unwrap_used, reason = "a test may stop where it is")]

mod checks;
mod round;
mod tree;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use round::{MODES, Mode, Round};

/// So many kills in `cargo test`: about half a minute.
const SHORT: usize = 20;
/// Where the random numbers begin if nothing else is asked for.
const SEED: u64 = 17;

/// Numbers that look random and are the same for the same seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// What a mode came to.
#[derive(Debug, Default)]
struct Count {
    kills: usize,
    runs: usize,
    failed: usize,
}

impl Count {
    fn add(&mut self, kills: usize, has_failed: bool) {
        self.kills += kills;
        self.runs += 1;
        self.failed += usize::from(has_failed);
    }
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

fn modes() -> Vec<Mode> {
    let asked = std::env::var("STRESS_MODE").ok();
    let is_asked = |mode: &Mode| asked.as_deref().is_none_or(|asked| asked == mode.name());
    MODES.into_iter().filter(is_asked).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_whose_process_tree_is_killed_repeatedly_still_completes_correctly() {
    let kills = number("STRESS_KILLS").unwrap_or(SHORT);
    let seed: u64 = number("STRESS_SEED").unwrap_or(SEED);
    let (modes, begun) = (modes(), Instant::now());
    assert!(!modes.is_empty(), "STRESS_MODE names none of {:?}", MODES.map(Mode::name));
    let (done, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // How long a run takes that nobody kills, in each mode: the machine may be fast or busy.
    let latest: [OnceLock<Mutex<Duration>>; MODES.len()] = Default::default();
    let counts = Mutex::new(BTreeMap::<&str, Count>::new());
    let failures = Mutex::new(Vec::new());
    let work = || {
        while done.load(Ordering::SeqCst) < kills {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let mode = modes[number % modes.len()];
            let seed = seed.wrapping_add(number as u64);
            let latest = latest[mode as usize].get_or_init(|| Mutex::new(Round::new(mode, seed).measure()));
            let mut round = Round::new(mode, seed);
            let within = *latest.lock().unwrap();
            let result = round.run(within);
            // It was faster than the kill: the next ones are killed earlier.
            if let Some(whole) = round.whole {
                *latest.lock().unwrap() = whole;
            }
            done.fetch_add(round.kills, Ordering::SeqCst);
            counts.lock().unwrap().entry(mode.name()).or_default().add(round.kills, result.is_err());
            if let Err(why) = result {
                let place = round.keep();
                let words =
                    format!("mode {}, STRESS_SEED={seed}, in {}: {why}", mode.name(), place.display());
                eprintln!("{words}");
                failures.lock().unwrap().push(words);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..number("STRESS_THREADS").unwrap_or(3) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().unwrap();
    let (rounds, kills) = (next.into_inner(), done.into_inner());
    for (mode, Count { kills, runs, failed }) in counts.into_inner().unwrap() {
        eprintln!("{mode}: {kills} kills in {runs} runs, {failed} failed");
    }
    eprintln!("{kills} kills in {rounds} runs, {} failed, {:?}", failures.len(), begun.elapsed());
    assert!(failures.is_empty(), "{} of {rounds} runs failed:\n{}", failures.len(), failures.join("\n"));
}
