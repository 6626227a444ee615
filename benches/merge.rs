//! What landing costs beside `git merge` in a checkout, in a repository of 50,000 files: `cargo bench --bench merge`.
//! They are measured in turns; printed are the best and the middle of each, and the ratios of the bests.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

mod command_home;
mod measure;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use command_home::CommandHome;
use measure::{Times, run, table};

const MERGE: &str = env!("CARGO_BIN_EXE_git-arborist-merge");
const FILES: usize = 50_000;
const BRANCHES: usize = 20;
const QUEUED: usize = 1_000;
const ROUNDS: usize = 5;

fn main() {
    let bench = MergeBench(CommandHome::new());
    let repo = bench.make("repo", FILES, BRANCHES);
    println!("{BRANCHES} branches into {FILES} files\n");
    let [mut merge, mut free, mut checked_out] = [const { Times::new() }; 3];
    for _ in 0..ROUNDS {
        merge.add(1, || bench.merge_all(&repo));
        free.add(1, || bench.land_all(&repo, "elsewhere"));
        checked_out.add(1, || bench.land_all(&repo, "main"));
    }
    table(
        "landing 20 branches",
        ("git merge, 20 times", &merge),
        &[
            ("merge run, not checked out", &free, "at most 1/10"),
            ("merge run, checked out", &checked_out, "at most 1/5"),
        ],
    );
    let many = bench.make("many", 10, QUEUED);
    bench.queue(&many, QUEUED);
    let [mut refs, mut list] = [const { Times::new() }; 2];
    for _ in 0..ROUNDS {
        refs.add(3, || bench.0.git(&many, &["for-each-ref", "refs/arborist/queue"]));
        list.add(3, || run(bench.0.command(MERGE, &many).arg("list")));
    }
    table("1,000 queued", ("git for-each-ref", &refs), &[("merge list", &list, "under 100 ms")]);
}

struct MergeBench(CommandHome);

impl MergeBench {
    fn reset(&self, repo: &Path, head: &str) {
        self.0.git(repo, &["checkout", "-q", "-f", "-B", "main", "start"]);
        if head != "main" {
            self.0.git(repo, &["checkout", "-q", "-B", head, "start"]);
        }
    }

    fn merge_all(&self, repo: &Path) -> Duration {
        self.reset(repo, "main");
        (0..BRANCHES).map(|n| self.0.git(repo, &["merge", "-q", "--no-ff", "--no-edit", &branch(n)])).sum()
    }

    fn land_all(&self, repo: &Path, head: &str) -> Duration {
        self.reset(repo, head);
        self.queue(repo, BRANCHES);
        run(self.0.command(MERGE, repo).args(["run", "-q", "--scope", "main"]))
    }

    fn queue(&self, repo: &Path, count: usize) {
        let tasks = (0..count).map(|n| format!("T{n}"));
        run(self.0.command(MERGE, repo).args(["add", "--scope", "main"]).args(tasks));
    }

    /// A run on `main` with so many files, and a finished task on a branch for each of so many.
    fn make(&self, name: &str, files: usize, tasks: usize) -> PathBuf {
        let repo = self.0.init(name);
        self.0.import(&repo, &stream(files, tasks));
        self.0.git(&repo, &["branch", "start", "main"]);
        self.0.git(&repo, &["checkout", "-q", "-f", "main"]);
        repo
    }
}

fn branch(n: usize) -> String {
    format!("arborist/task/main/T{n}")
}

/// The commits of such a run.
fn stream(files: usize, tasks: usize) -> String {
    let mut stream = String::new();
    let start = "task(main@@run-start): run started\n\nArborist-Step: run-start\nArborist-Base: 0000000000000000000000000000000000000000\nArborist-Plan: none\nArborist-Session: s1\n";
    commit(&mut stream, "refs/heads/main", start);
    for n in 0..files {
        let _ = write!(
            stream,
            "M 644 inline d{}/e{}/f{n}.txt\ndata 8\nline {:03}\n",
            n % 100,
            n / 100 % 20,
            n % 1000
        );
    }
    for n in 0..tasks {
        let done = format!(
            "task(main@T{n}@complete): complete \"T{n}\"\n\nArborist-Step: complete\nArborist-Result: pass\nArborist-Report: spec/reports/T{n}.json\nArborist-Session: s1\n"
        );
        commit(&mut stream, &format!("refs/heads/{}", branch(n)), &done);
        let _ = write!(stream, "from refs/heads/main\nM 644 inline d{}/new{n}.txt\ndata 4\nnew\n\n", n % 100);
    }
    stream
}

fn commit(stream: &mut String, name: &str, message: &str) {
    let _ = write!(
        stream,
        "commit {name}\ncommitter Ada <ada@example.com> 1739716222 +0000\ndata {}\n{message}\n",
        message.len()
    );
}
