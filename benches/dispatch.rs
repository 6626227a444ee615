//! What the dispatcher costs: the time that `git-arborist VERB` adds to a verb that does nothing, its size, and
//! what it carries. `cargo bench --bench dispatch`.
//!
//! Other work on the machine only ever adds time, and it adds more to two programs than to one. So both the median
//! and the quietest tenth are printed, and the limit of a millisecond is held against the latter.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

const DISPATCHER: &str = env!("CARGO_BIN_EXE_git-arborist");
const ROUNDS: usize = 1500;
const LIMIT: Duration = Duration::from_millis(1);
/// Names that stand in a program which carries such a library.
const UNWANTED: [&str; 4] = ["libgit2", "gix-", "clap_builder", "serde_json"];

/// A verb that does nothing, and where it is found.
struct Case {
    what: &'static str,
    name: &'static str,
    path: OsString,
}

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    let [near, far] = write_cases(folder.path());
    println!("{ROUNDS} runs each, taken in turn");
    let added = [near, far].map(|case| case.measure(folder.path()));
    let is_quick = added.iter().all(|added| *added < LIMIT);
    if is_lean() && is_quick { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The dispatcher with a verb beside it, and another behind many folders; both are `true`.
fn write_cases(folder: &Path) -> [Case; 2] {
    let nothing = ["/usr/bin/true", "/bin/true"].iter().find(|file| Path::new(file).exists());
    let nothing = nothing.expect("a program that does nothing");
    let dirs: Vec<PathBuf> = (1..=20).map(|n| folder.join(n.to_string())).collect();
    dirs.iter().for_each(|dir| fs::create_dir(dir).expect("a folder"));
    fs::copy(DISPATCHER, folder.join("git-arborist")).expect("a copy");
    fs::copy(nothing, folder.join("git-arborist-near")).expect("a copy");
    fs::copy(nothing, dirs[19].join("git-arborist-far")).expect("a copy");
    let path = env::join_paths(&dirs).expect("a PATH");
    [
        Case { what: "a verb beside the dispatcher", name: "near", path: path.clone() },
        Case { what: "a verb in the last of 20 folders on PATH", name: "far", path },
    ]
}

impl Case {
    /// The time that the dispatcher adds in the quietest tenth.
    fn measure(&self, folder: &Path) -> Duration {
        let mut alone = Vec::with_capacity(ROUNDS);
        let mut dispatched = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            alone.push(time(&mut Command::new(folder.join("git-arborist-near"))));
            let mut dispatcher = Command::new(folder.join("git-arborist"));
            dispatched.push(time(dispatcher.arg(self.name).env("PATH", &self.path)));
        }
        alone.sort_unstable();
        dispatched.sort_unstable();
        println!("\n{}:", self.what);
        compare("median", alone[ROUNDS / 2], dispatched[ROUNDS / 2]);
        compare("quietest tenth", alone[ROUNDS / 10], dispatched[ROUNDS / 10])
    }
}

/// Prints both times as milliseconds and ratio, and gives their difference.
fn compare(what: &str, alone: Duration, dispatched: Duration) -> Duration {
    let added = dispatched.saturating_sub(alone);
    let [shown_alone, shown_dispatched, shown_added] =
        [alone, dispatched, added].map(|time| format!("{:.3} ms", time.as_secs_f64() * 1000.0));
    let ratio = dispatched.as_secs_f64() / alone.as_secs_f64();
    println!(
        "  {what:<15} alone {shown_alone}, dispatched {shown_dispatched}: added {shown_added}, {ratio:.2} times"
    );
    added
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("a program that starts");
    let taken = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    taken
}

/// Prints the size of the dispatcher and what it carries; whether it carries only what it needs.
fn is_lean() -> bool {
    let program = fs::read(DISPATCHER).expect("the dispatcher");
    let has = |name: &&&str| program.windows(name.len()).any(|window| window == name.as_bytes());
    let carried: Vec<&str> = UNWANTED.iter().filter(has).copied().collect();
    println!("\nsize {:.2} MB", program.len() as f64 / 1e6);
    match carried.as_slice() {
        [] => println!("carries no git library and no parser"),
        _ => println!("carries {}", carried.join(", ")),
    }
    carried.is_empty()
}
