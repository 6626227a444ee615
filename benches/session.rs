//! Sessions beside git's own: what recording a turn costs, and how long a session of 10,000 turns is read, and until it goes on.
//! `cargo bench --bench session`; `-- --small` for a repository of 2,000 files.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod command_home;
mod measure;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use command_home::CommandHome;
use measure::{Times, run, table};
use serde_json::Value;

const ARBORIST: &str = env!("CARGO_BIN_EXE_git-arborist-session");
const GARDENER: &str = env!("CARGO_BIN_EXE_git-arborist-gardener");
const ROUNDS: usize = 10;
const TURNS: u64 = 10_000;
const REF: &str = "refs/arborist/sessions/long";

fn main() {
    let files = if env::args().any(|arg| arg == "--small") { 2_000 } else { 50_000 };
    let bench = SessionBench(CommandHome::new());
    bench.record(&bench.0.repository("large", files), files);
    bench.read(&bench.0.repository("small", 20));
    bench.resume(&Run::new(&bench, "short"), &Run::new(&bench, "long"));
}

struct SessionBench(CommandHome);

impl SessionBench {
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

    /// A run that is done and did not say so goes on, finds that, and ends: one of two turns, and one of many, each of which is
    /// a commit and a record.
    fn resume(&self, short: &Run, long: &Run) {
        long.lengthen(self);
        let (mut few, mut many) = (Times::new(), Times::new());
        let (short, long) = (short.at_rest(self), long.at_rest(self));
        for _ in 0..ROUNDS {
            few.add(1, || short.resume(self));
            many.add(1, || long.resume(self));
        }
        let rows = [("session resume", &many, "below 200 ms, with the run's own end")];
        table(&format!("{TURNS} turns, gone on with"), ("session resume, 2 turns", &few), &rows);
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

    fn is_record(&self, dir: &Path, commit: &str) -> bool {
        self.answer(dir, &["log", "-1", "--format=%s", commit]).starts_with("session ")
    }

    fn record_of(&self, dir: &Path, commit: &str) -> Value {
        serde_json::from_str(&self.answer(dir, &["log", "-1", "--format=%b", commit])).expect("a record")
    }

    fn answer(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.0.command("git", dir).args(args).output().expect("git");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn session(&self, dir: &Path, args: &[&str]) -> Duration {
        run(self.0.command(ARBORIST, dir).args(args))
    }
}

/// A run of one task that is complete.
struct Run {
    dir: PathBuf,
    session: String,
}

/// The same before it said so.
struct AtRest<'a> {
    run: &'a Run,
    name: String,
    newest: String,
}

impl Run {
    fn new(bench: &SessionBench, name: &str) -> Self {
        let dir = bench.0.repository(name, 20);
        fs::write(dir.join("tasks.md"), "- [ ] T1 add a file\n").expect("a plan");
        bench.0.git(&dir, &["add", "tasks.md"]);
        bench.0.git(&dir, &["commit", "-qm", "a plan"]);
        bench.0.git(&dir, &["config", "arborist.runner", "demo"]);
        run(bench.0.command(GARDENER, &dir).arg("--quiet"));
        let session =
            bench.answer(&dir, &["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]);
        assert!(!session.is_empty(), "a session");
        Self { dir, session }
    }

    fn name(&self) -> String {
        format!("refs/arborist/sessions/{}", self.session)
    }

    fn at_rest<'a>(&'a self, bench: &SessionBench) -> AtRest<'a> {
        let name = self.name();
        let newest = bench.answer(&self.dir, &["rev-parse", &format!("{name}^")]);
        let rest = AtRest { run: self, name, newest };
        rest.resume(bench);
        let ended = bench.answer(&self.dir, &["log", "-1", "--format=%s", &rest.name]);
        assert!(ended.ends_with(": end"), "it went on and ended: {ended}");
        rest
    }

    /// Puts many turns behind the start of the run, and their records behind that of the session.
    fn lengthen(&self, bench: &SessionBench) {
        let (dir, session, name) = (&self.dir, &self.session, self.name());
        let list = |from: &str| {
            let all = bench.answer(dir, &["rev-list", "--first-parent", "--reverse", from]);
            all.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let is_own =
            |commit: &String| bench.answer(dir, &["log", "-1", "--format=%s", commit]).contains("@T1@");
        let commits = list("main");
        let at = commits.iter().position(is_own).expect("the task");
        let mut stream = String::new();
        for number in 1..=TURNS {
            let from = if number == 1 { format!("from {}\n", commits[at - 1]) } else { String::new() };
            let message = format!(
                "task(main@T1@turn): Add a file\n\nArborist-Step: implement\nArborist-Retry: 0\nArborist-Model: m\n\
                 Arborist-Provider: p\nArborist-Node: T1\nArborist-Pipeline: tasks\nArborist-Session: {session}\n\
                 Arborist-Turn: {number}\n"
            );
            commit(&mut stream, "refs/heads/main", &message, &from);
        }
        for later in &commits[at..] {
            let message = bench.answer(dir, &["log", "-1", "--format=%B", later]) + "\n";
            let tree = bench.answer(dir, &["rev-parse", &format!("{later}^{{tree}}")]);
            commit(&mut stream, "refs/heads/main", &message, &format!("M 040000 {tree} \n"));
        }
        bench.0.import(dir, &stream);
        let head = bench.answer(dir, &["rev-parse", "main"]);
        let records = list(&name);
        let own: Vec<&String> = records.iter().filter(|record| bench.is_record(dir, record)).collect();
        let mut stream = String::new();
        let turn = bench.record_of(dir, own[1]);
        for number in 1..=TURNS {
            let mut record = turn.clone();
            record["number"] = number.into();
            let subject = format!("session {session}: turn {number} of T1");
            let from = if number == 1 { format!("from {}\n", own[0]) } else { String::new() };
            add(&mut stream, &name, (&subject, record), (number, number), &format!("{from}merge {head}\n"));
        }
        for (at, later) in own[1..].iter().enumerate() {
            let mut record = bench.record_of(dir, later);
            record["context"]["head"] = head.clone().into();
            record["context"]["tip"] = head.clone().into();
            let subject = bench.answer(dir, &["log", "-1", "--format=%s", later]);
            let sequence = TURNS + 1 + at as u64;
            add(&mut stream, &name, (&subject, record), (sequence, TURNS), &format!("merge {head}\n"));
        }
        bench.0.import(dir, &stream);
    }
}

impl AtRest<'_> {
    fn resume(&self, bench: &SessionBench) -> Duration {
        bench.0.git(&self.run.dir, &["update-ref", &self.name, &self.newest]);
        bench.session(&self.run.dir, &["resume", &self.run.session])
    }
}

/// A record with its place in the chain.
fn add(
    stream: &mut String,
    name: &str,
    (subject, mut record): (&str, Value),
    (sequence, turns): (u64, u64),
    more: &str,
) {
    record["sequence"] = sequence.into();
    record["totals"]["turns"] = turns.into();
    commit(stream, name, &format!("{subject}\n\n{record}\n"), &format!("{more}deleteall\n"));
}

fn commit(stream: &mut String, name: &str, message: &str, more: &str) {
    let length = message.len();
    let _ = write!(
        stream,
        "commit {name}\ncommitter Ada <ada@example.com> 1 +0000\ndata {length}\n{message}{more}"
    );
}
