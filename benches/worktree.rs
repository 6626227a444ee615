//! Worktrees beside git's own: a lane from the pool and back, a long list, and what saving unfinished work costs.
//! `cargo bench --bench worktree`; `-- --small` for a repository of 2,000 files.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod command_home;
mod measure;

use std::{env, fs, path::Path, time::Duration};

use command_home::CommandHome;
use measure::{Times, run, table};

const ARBORIST: &str = env!("CARGO_BIN_EXE_git-arborist-worktree");
const ROUNDS: usize = 5;
const LISTED: usize = 200;

fn main() {
    let files = if env::args().any(|arg| arg == "--small") { 2_000 } else { 50_000 };
    let bench = WorktreeBench(CommandHome::new());
    let large = bench.0.repository("large", files);
    bench.lease(&large, files);
    bench.save(&large);
    bench.list(&bench.0.repository("small", 20));
}

struct WorktreeBench(CommandHome);

impl WorktreeBench {
    /// A lane that is taken and given back, beside a worktree that is added and removed.
    fn lease(&self, dir: &Path, files: usize) {
        let place = self.0.home().join("by-git");
        let place = place.to_str().expect("a path");
        self.arborist(dir, &["add", "--lane", "T0"]);
        self.arborist(dir, &["recycle", "T0"]);
        let (mut git, mut ours) = (Times::new(), Times::new());
        for round in 0..ROUNDS {
            let branch = format!("b{round}");
            git.add(1, || {
                self.0.git(dir, &["worktree", "add", "-q", "-b", &branch, place])
                    + self.0.git(dir, &["worktree", "remove", place])
            });
            for n in 0..10 {
                fs::write(dir.join(format!("src/0/0/{n}.txt")), format!("round {round}\n")).expect("a file");
            }
            self.0.git(dir, &["commit", "-qam", "the run goes on"]);
            let task = format!("T{}", round + 1);
            ours.add(1, || {
                self.arborist(dir, &["add", "--lane", &task]) + self.arborist(dir, &["recycle", &task])
            });
        }
        let title = format!("a worktree of {files} files");
        table(
            &title,
            ("git worktree add, remove", &git),
            &[("worktree add --lane, recycle", &ours, "at most 1/10")],
        );
    }

    /// Saving when a file has changed and when none has, beside `git status`.
    fn save(&self, dir: &Path) {
        self.arborist(dir, &["add", "--lane", "T0"]);
        let lane = self.0.home().join("large.arborist/lane-1");
        let (mut status, mut changed, mut idle) = (Times::new(), Times::new(), Times::new());
        for round in 0..ROUNDS {
            status.add(1, || self.0.git(&lane, &["status", "--porcelain"]));
            fs::write(lane.join("src/0/0/1.txt"), format!("round {round}\n")).expect("a file");
            changed.add(1, || self.arborist(dir, &["run", "T0", "--", "true"]));
            idle.add(1, || self.arborist(dir, &["run", "T0", "--", "true"]));
        }
        let rows = [
            ("run, and one file changed", &changed, "at most 3"),
            ("run, and nothing changed", &idle, "at most 3"),
        ];
        table("saving unfinished work", ("git status", &status), &rows);
    }

    fn list(&self, dir: &Path) {
        for n in 0..LISTED {
            self.arborist(dir, &["add", &format!("T{n}")]);
        }
        let (mut git, mut ours) = (Times::new(), Times::new());
        for _ in 0..ROUNDS * 4 {
            git.add(1, || self.0.git(dir, &["worktree", "list"]));
            ours.add(1, || self.arborist(dir, &["list"]));
        }
        let title = format!("{LISTED} worktrees");
        table(&title, ("git worktree list", &git), &[("worktree list", &ours, "at most 3")]);
    }

    fn arborist(&self, dir: &Path, args: &[&str]) -> Duration {
        let mut command = self.0.command(ARBORIST, dir);
        command.env("ARBORIST_WORKTREE_MAX", "1000").env("ARBORIST_WORKTREE_MIN_FREE", "0");
        run(command.args(args))
    }
}
