//! What the sandbox costs: the time that each backend adds to a process that does nothing.
//! `cargo bench --bench sandbox`.
//!
//! Other work on the machine only ever adds time. So both the median and the quietest tenth are printed, and the limit of
//! ten milliseconds is held against the latter.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

use std::{
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use arborist_core::{
    process::{ConfinementBackend, Program, Supervised},
    sandbox::{Sandbox, SandboxedChild},
    settings::Settings,
};

const ROUNDS: usize = 300;
const LIMIT: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().canonicalize().expect("a folder");
    fs::create_dir(place.join(".git")).expect("a folder");
    let works = |backend: &ConfinementBackend| {
        if !backend.works() {
            println!("skipped: {} does not work here", backend.as_str());
        }
        backend.works()
    };
    let backends: Vec<ConfinementBackend> =
        ConfinementBackend::of_system().iter().copied().filter(works).collect();
    println!("{ROUNDS} runs each, taken in turn");
    let is_quick = backends.iter().all(|backend| measure(*backend, &place) <= LIMIT);
    if is_quick { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The time that a backend adds in the quietest tenth.
fn measure(backend: ConfinementBackend, place: &Path) -> Duration {
    let (mut alone, mut confined) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        alone.push(time(None, place));
        confined.push(time(Some(backend), place));
    }
    alone.sort_unstable();
    confined.sort_unstable();
    println!("\n{}:", backend.as_str());
    compare("median", alone[ROUNDS / 2], confined[ROUNDS / 2]);
    compare("quietest tenth", alone[ROUNDS / 10], confined[ROUNDS / 10])
}

/// Runs `true` as a test command is run, with the folders that the settings grant by default.
fn time(backend: Option<ConfinementBackend>, place: &Path) -> Duration {
    let sandbox = Sandbox::new(&Settings::default());
    let child = SandboxedChild { step: "test", places: vec![place.to_owned()], ..SandboxedChild::default() };
    let start = Instant::now();
    let confinement = backend.and_then(|backend| Some(sandbox.confine(&child)?.enforced_by(backend)));
    let ended = Supervised::new(Program::located("true").dir(place).confined_if(confinement)).run(|_| {});
    let taken = start.elapsed();
    assert!(ended.ending.is_success(), "{}: {}", ended.ending, ended.stderr.text);
    taken
}

/// Prints both times as milliseconds and ratio, and returns their difference.
fn compare(what: &str, alone: Duration, confined: Duration) -> Duration {
    let added = confined.saturating_sub(alone);
    let [shown_alone, shown_confined, shown_added] =
        [alone, confined, added].map(|time| format!("{:.3} ms", time.as_secs_f64() * 1000.0));
    let ratio = confined.as_secs_f64() / alone.as_secs_f64();
    println!(
        "  {what:<15} alone {shown_alone}, confined {shown_confined}: added {shown_added}, {ratio:.2} times"
    );
    added
}
