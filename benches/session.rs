//! Sessions beside git's own: what recording a turn costs, and how long a session of 10,000 turns is read.
//! `cargo bench --bench session`; `-- --small` for a repository of 2,000 files.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod grounds;
mod measure;

use std::{env, fmt::Write as _, fs, path::Path, time::Duration};

use grounds::Grounds;
use measure::{Times, run, table};
use serde_json::Value;

const ARBORIST: &str = env!("CARGO_BIN_EXE_git-arborist-session");
const ROUNDS: usize = 10;
const TURNS: u64 = 10_000;
const REF: &str = "refs/arborist/sessions/long";

fn main() {
    let files = if env::args().any(|arg| arg == "--small") { 2_000 } else { 50_000 };
    let bench = Bench(Grounds::new());
    bench.record(&bench.0.repository("large", files), files);
    bench.read(&bench.0.repository("small", 20));
}

struct Bench(Grounds);

impl Bench {
    /// A turn that changed one file, and one that changed none, beside `git status`.
    fn record(&self, dir: &Path, files: usize) {
        self.session(dir, &["start", "--id", "s"]);
        let turn = ["turn", "--session", "s", "--node", "T1", "--model", "m"];
        let (mut status, mut wrote, mut read) = (Times::new(), Times::new(), Times::new());
        for round in 0..ROUNDS {
            fs::write(dir.join("src/0/0/1.txt"), format!("round {round}\n")).expect("a file");
            status.add(1, || self.0.git(dir, &["status", "--porcelain"]));
            wrote.add(1, || self.session(dir, &turn));
            read.add(1, || self.session(dir, &turn));
        }
        let rows =
            [("session turn, one file", &wrote, "at most 3"), ("session turn, none", &read, "at most 3")];
        table(&format!("a turn among {files} files"), ("git status", &status), &rows);
    }

    /// What is asked of a long session, beside the walk over its records.
    fn read(&self, dir: &Path) {
        self.lengthen(dir);
        let (mut log, mut show, mut turn, mut list) =
            (Times::new(), Times::new(), Times::new(), Times::new());
        let (count, middle) = (format!("-n{TURNS}"), (TURNS / 2).to_string());
        for _ in 0..ROUNDS {
            log.add(1, || self.0.git(dir, &["log", "--first-parent", &count, "--format=%H %s", REF]));
            show.add(1, || self.session(dir, &["show", "long"]));
            turn.add(1, || self.session(dir, &["show", "long", "--turn", &middle]));
            list.add(1, || self.session(dir, &["list"]));
        }
        let rows = [
            ("session show", &show, "below 200 ms"),
            ("session show --turn", &turn, "below 200 ms"),
            ("session list", &list, "below 200 ms"),
        ];
        table(&format!("{TURNS} turns"), ("git log --first-parent", &log), &rows);
    }

    /// A session of one turn becomes one of many: its record again and again, with other numbers.
    fn lengthen(&self, dir: &Path) {
        self.session(dir, &["start", "--id", "long"]);
        self.session(dir, &["turn", "--session", "long", "--node", "T1", "--model", "m", "-m", "Add a file"]);
        let mut record: Value =
            serde_json::from_str(&self.answer(dir, &["log", "-1", "--format=%b", REF])).expect("a record");
        let (tip, head) = (self.answer(dir, &["rev-parse", REF]), self.answer(dir, &["rev-parse", "main"]));
        let mut stream = String::new();
        for number in 2..=TURNS {
            record["sequence"] = number.into();
            record["number"] = number.into();
            record["totals"]["turns"] = number.into();
            let message = format!("session long: turn {number} of T1\n\n{record}\n");
            let from = if number == 2 { format!("from {tip}\n") } else { String::new() };
            let _ = write!(
                stream,
                "commit {REF}\ncommitter A <a@b> {number} +0000\ndata {}\n{message}{from}merge {head}\ndeleteall\n",
                message.len()
            );
        }
        self.0.import(dir, &stream);
    }

    fn answer(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.0.command("git", dir).args(args).output().expect("git");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn session(&self, dir: &Path, args: &[&str]) -> Duration {
        run(self.0.command(ARBORIST, dir).args(args))
    }
}
