//! What landing costs beside `git merge` in a checkout, in a repository of 50,000 files: `cargo bench --bench merge`.
//! They are measured in turns; printed are the best and the middle of each, and the ratios of the bests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

mod measure;

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use measure::{Times, run, table};

const MERGE: &str = env!("CARGO_BIN_EXE_git-arborist-merge");
const FILES: usize = 50_000;
const BRANCHES: usize = 20;
const QUEUED: usize = 1_000;
const ROUNDS: usize = 5;

fn main() {
    let folder = std::env::temp_dir().join(format!("arborist-bench-merge-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let repo = folder.join("repo");
    make(&repo, FILES, BRANCHES);
    println!("{BRANCHES} branches into {FILES} files\n");
    let [mut merge, mut free, mut checked_out] = [const { Times::new() }; 3];
    for _ in 0..ROUNDS {
        merge.add(1, || merge_all(&repo));
        free.add(1, || land_all(&repo, "elsewhere"));
        checked_out.add(1, || land_all(&repo, "main"));
    }
    table(
        "landing 20 branches",
        ("git merge, 20 times", &merge),
        &[
            ("merge run, not checked out", &free, "at most 1/10"),
            ("merge run, checked out", &checked_out, "at most 1/5"),
        ],
    );
    let many = folder.join("many");
    make(&many, 10, QUEUED);
    queue(&many, QUEUED);
    let [mut refs, mut list] = [const { Times::new() }; 2];
    for _ in 0..ROUNDS {
        refs.add(3, || run(git(&many).args(["for-each-ref", "refs/arborist/queue"])));
        list.add(3, || run(Command::new(MERGE).current_dir(&many).arg("list")));
    }
    table("1,000 queued", ("git for-each-ref", &refs), &[("merge list", &list, "under 100 ms")]);
    fs::remove_dir_all(folder).unwrap();
}

fn git(repo: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repo).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
    command
}

fn branch(n: usize) -> String {
    format!("arborist/task/main/T{n}")
}

fn reset(repo: &Path, head: &str) {
    run(git(repo).args(["checkout", "-q", "-f", "-B", "main", "start"]));
    if head != "main" {
        run(git(repo).args(["checkout", "-q", "-B", head, "start"]));
    }
}

fn merge_all(repo: &Path) -> Duration {
    reset(repo, "main");
    (0..BRANCHES).map(|n| run(git(repo).args(["merge", "-q", "--no-ff", "--no-edit", &branch(n)]))).sum()
}

fn land_all(repo: &Path, head: &str) -> Duration {
    reset(repo, head);
    queue(repo, BRANCHES);
    run(Command::new(MERGE).current_dir(repo).args(["run", "-q", "--scope", "main"]))
}

fn queue(repo: &Path, count: usize) {
    let tasks = (0..count).map(|n| format!("T{n}"));
    run(Command::new(MERGE).current_dir(repo).args(["add", "--scope", "main"]).args(tasks));
}

/// A run on `main` with so many files, and a finished task on a branch for each of so many.
fn make(repo: &PathBuf, files: usize, tasks: usize) {
    run(Command::new("git").args(["init", "-q", "-b", "main"]).arg(repo));
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.com")] {
        run(git(repo).args(["config", key, value]));
    }
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
    let mut import = git(repo).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
    run(git(repo).args(["branch", "start", "main"]));
    run(git(repo).args(["checkout", "-q", "-f", "main"]));
}

fn commit(stream: &mut String, name: &str, message: &str) {
    let _ = write!(
        stream,
        "commit {name}\ncommitter Ada <ada@example.com> 1739716222 +0000\ndata {}\n{message}\n",
        message.len()
    );
}
