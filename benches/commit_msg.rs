//! What the commit-msg hook costs beside `git interpret-trailers --parse` on the same file, and beside commitlint
//! and gitlint where they are installed: `cargo bench --bench commit_msg`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

mod measure;

use std::{fs, path::Path, process::Command};

use measure::{Times, run, table};

const HOOKS: &str = env!("CARGO_BIN_EXE_git-arborist-hooks");
const FOREIGN: &str =
    "fix: a change in the parser\n\nWhy it was needed.\n\nSigned-off-by: Ada <ada@example.com>\n";
const OURS: &str = "task(main@T001@complete): complete \"x\"\n\nArborist-Step: complete\nArborist-Result: pass\nArborist-Report: spec/reports/r.json\n";

fn main() {
    let folder = std::env::temp_dir().join(format!("arborist-bench-msg-{}", std::process::id()));
    run(Command::new("git").args(["init", "-q"]).arg(&folder));
    for (title, text) in [("a foreign message", FOREIGN), ("one of ours", OURS)] {
        let file = folder.join("message");
        fs::write(&file, text).unwrap();
        compare(title, &folder, &file);
    }
    fs::remove_dir_all(folder).unwrap();
}

fn compare(title: &str, folder: &Path, file: &Path) {
    let file = file.to_str().unwrap();
    let time = |program: &str, args: &[&str]| time(folder, program, args);
    let base = time("git", &["interpret-trailers", "--parse", file]).expect("git");
    let hook = time(HOOKS, &["run", "commit-msg", file]).unwrap();
    let mut rows = vec![("the commit-msg hook", hook, "at most 3 times")];
    for (name, program, args) in
        [("commitlint", "commitlint", ["--edit", file]), ("gitlint", "gitlint", ["--msg-filename", file])]
    {
        match time(program, &args) {
            Some(found) => rows.push((name, found, "")),
            None => println!("({name} is not installed)"),
        }
    }
    let rows: Vec<_> = rows.iter().map(|(name, times, aim)| (*name, times, *aim)).collect();
    table(title, ("git interpret-trailers --parse", &base), &rows);
}

/// `None` if there is no such program.
fn time(folder: &Path, program: &str, args: &[&str]) -> Option<Times> {
    Command::new(program).arg("--version").output().ok()?;
    let mut times = Times::new();
    times.add(51, || run(Command::new(program).current_dir(folder).args(args)));
    Some(times)
}
