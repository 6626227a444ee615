//! What `git arborist state` costs beside the `git log` that people would use instead, on one history, in one
//! run, and beside `git status` in a small repository: `cargo bench --bench state`, or `-- --full` for a million commits. They are
//! measured in turns; printed are the best and the middle of each, and the ratios of the bests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

mod measure;

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use measure::{Times, run, table};

const STATE: &str = env!("CARGO_BIN_EXE_git-arborist-state");
const LOG: [&str; 4] = ["log", "--grep=task(main@", "--fixed-strings", "--format=%s%n%(trailers)"];

/// How often all of it is measured.
const ROUNDS: usize = 5;

/// How large a history is.
#[derive(Clone, Copy)]
struct Size {
    plain: usize,
    tasks: usize,
}

fn main() {
    let is_full = std::env::args().any(|arg| arg == "--full");
    let size =
        if is_full { Size { plain: 1_000_000, tasks: 2500 } } else { Size { plain: 100_000, tasks: 250 } };
    let folder = tempfile_folder();
    println!(
        "a history of {} commits, {} tasks of 4 commits each\n",
        size.plain + 4 * size.tasks + 1,
        size.tasks
    );
    with_run_start(&folder.join("run"), size);
    without_run_start(&folder.join("none"), size);
    for tasks in [100, 1000] {
        beside_status(&folder.join(tasks.to_string()), tasks);
    }
    fs::remove_dir_all(folder).unwrap();
}

fn tempfile_folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("arborist-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn with_run_start(repo: &Path, size: Size) {
    make(
        repo,
        size,
        "task(main@@run-start): run started\n\nArborist-Step: run-start\nArborist-Base: 0000000000000000000000000000000000000000\nArborist-Plan: none\nArborist-Session: s1\n",
    );
    let cache = repo.join(".git/arborist");
    let forget = || drop(fs::remove_dir_all(&cache));
    let [mut log, mut cold, mut absent, mut warm, mut grown] = [const { Times::new() }; 5];
    for _ in 0..ROUNDS {
        log.add(1, || run(git(repo).args(LOG)));
        absent.add(3, || {
            forget();
            run(&mut state(repo, &["T9999"]))
        });
        cold.add(3, || {
            forget();
            run(&mut state(repo, &[]))
        });
        warm.add(9, || run(&mut state(repo, &[])));
    }
    let mut clock = size.plain + 4 * size.tasks + 1;
    grown.add(3 * ROUNDS, || {
        import(repo, &tasks(clock, 1, "from refs/heads/main^0\n"));
        clock += 4;
        run(&mut state(repo, &[]))
    });
    table(
        "with a run-start",
        ("git log --grep", &log),
        &[
            ("state, without cache", &cold, "at most 1/20"),
            ("state T9999, without cache", &absent, "no more than all tasks"),
            ("state, with cache", &warm, "at most 1/200 at full size, under 10 ms at a tenth"),
            ("state, 4 new commits", &grown, ""),
        ],
    );
}

/// A run of so many tasks in a repository without any other history.
fn beside_status(repo: &Path, tasks: usize) {
    make(
        repo,
        Size { plain: 1, tasks },
        "task(main@@run-start): run started\n\nArborist-Step: run-start\nArborist-Base: 0000000000000000000000000000000000000000\nArborist-Plan: none\nArborist-Session: s1\n",
    );
    let [mut status, mut warm] = [const { Times::new() }; 2];
    run(&mut state(repo, &[]));
    for _ in 0..ROUNDS {
        status.add(9, || run(git(repo).arg("status")));
        warm.add(9, || run(&mut state(repo, &[])));
    }
    let asked = if tasks == 100 { "at most 3 times" } else { "at most 10 ms" };
    table(&format!("{tasks} tasks"), ("git status", &status), &[("state", &warm, asked)]);
}

fn without_run_start(repo: &Path, size: Size) {
    make(repo, size, "an ordinary commit\n");
    let [mut log, mut all] = [const { Times::new() }; 2];
    for _ in 0..ROUNDS {
        log.add(1, || run(git(repo).args(LOG)));
        all.add(1, || run(&mut state(repo, &[])));
    }
    table("without any run-start", ("git log --grep", &log), &[("state", &all, "at most 1.2 times")]);
}

fn git(repo: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repo);
    command
}

fn state(repo: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(STATE);
    command.current_dir(repo).args(args);
    command
}

fn make(repo: &Path, size: Size, start: &str) {
    run(Command::new("git").args(["init", "-q", "-b", "main"]).arg(repo));
    let mut stream = String::new();
    for n in 0..size.plain {
        push(
            &mut stream,
            n,
            "",
            &format!(
                "fix: change number {n} in the parser\n\nWhy it was needed, in a few words,\nand what it does.\n\nSigned-off-by: Ada <ada@example.com>\n"
            ),
        );
    }
    push(&mut stream, size.plain, "", start);
    stream.push_str(&tasks(size.plain + 1, size.tasks, ""));
    import(repo, &stream);
}

/// Four commits for each of so many tasks, as `git fast-import` reads them; `from` goes to the first.
fn tasks(clock: usize, count: usize, from: &str) -> String {
    let mut stream = String::new();
    for task in 0..count {
        let steps = [
            (
                "implement-pass",
                "Runner output (truncated to 2000 chars):\n> I changed the file.\n> All is well.\n\n",
                "Step: implement\nArborist-Result: pass\nArborist-Retry: 0",
            ),
            (
                "test-pass",
                "",
                "Step: test\nArborist-Test: pass\nArborist-Retry: 0\nArborist-Test-Runtime: 3.2",
            ),
            (
                "review-approved",
                "Review:\n> Looks right. APPROVED\n\n",
                "Step: review\nArborist-Review: approved\nArborist-Retry: 0",
            ),
            ("complete", "", "Step: complete\nArborist-Result: pass\nArborist-Report: spec/reports/r.json"),
        ];
        for (step, (status, body, trailers)) in steps.into_iter().enumerate() {
            let message = format!(
                "task(main@T{task:04}@{status}): {status} \"task {task}\"\n\n{body}Arborist-{trailers}\nArborist-Session: s1\n"
            );
            push(&mut stream, clock + 4 * task + step, if task + step == 0 { from } else { "" }, &message);
        }
    }
    stream
}

fn push(stream: &mut String, clock: usize, from: &str, message: &str) {
    let time = 1_600_000_000 + 60 * clock;
    let size = message.len();
    write!(
        stream,
        "commit refs/heads/main\ncommitter Ada <ada@example.com> {time} +0000\ndata {size}\n{message}\n{from}"
    )
    .unwrap();
}

fn import(repo: &Path, stream: &str) {
    let mut child = git(repo).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().expect("git");
    child.stdin.take().expect("a pipe").write_all(stream.as_bytes()).expect("a reader");
    assert!(child.wait().expect("an end").success());
}
