//! Cleaning up thousands of branches and hundreds of worktrees, beside `git branch -D` one by one.
//! `cargo bench --bench cleanup`; `-- --small` for a tenth of it.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

mod measure;

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use measure::{Times, run, table};

const CLEANUP: &str = env!("CARGO_BIN_EXE_git-arborist-cleanup");
const WORKTREE: &str = env!("CARGO_BIN_EXE_git-arborist-worktree");
const ROUNDS: usize = 5;
/// So many branches are deleted one by one to know what all would take.
const SAMPLE: usize = 200;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().canonicalize().expect("a folder");
    let part = if env::args().any(|arg| arg == "--small") { 10 } else { 1 };
    let bench = CleanupBench { home, branches: 10_000 / part, worktrees: 200 / part };
    bench.measure("all of them landed", Kind::Landed);
    bench.measure("none of them landed", Kind::Loose);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Landed,
    Loose,
}

struct CleanupBench {
    home: PathBuf,
    branches: usize,
    worktrees: usize,
}

impl CleanupBench {
    fn measure(&self, title: &str, kind: Kind) {
        let dir = self.repository(kind);
        let mut dry = Times::new();
        dry.add(ROUNDS, || self.cleanup(&dir, &["--dry-run"]));
        let (mut one_by_one, mut ours) = (Times::new(), Times::new());
        let all = u32::try_from(self.branches / SAMPLE).expect("a number");
        for _ in 0..ROUNDS {
            let copy = self.copy(&dir);
            let delete =
                |n| run(self.git(&copy).args(["branch", "-qD", &format!("arborist/task/main/B{n}")]));
            one_by_one.add(1, || (0..SAMPLE).map(delete).sum::<Duration>() * all);
            let copy = self.copy(&dir);
            let force: &[&str] = if kind == Kind::Loose { &["--force"] } else { &[] };
            ours.add(1, || self.cleanup(&copy, &[&["--only", "branches"], force].concat()));
            let left = self
                .git(&copy)
                .args(["for-each-ref", "--count=1", "refs/heads/arborist/task/main/B1"])
                .output();
            assert!(left.expect("refs").stdout.is_empty(), "they are gone");
        }
        let title = format!("{} branches, {}", self.branches, title);
        let aim = if kind == Kind::Loose { "each is saved first" } else { "at most 1/20" };
        let rows = [("cleanup --only branches", &ours, aim)];
        table(&title, (&format!("git branch -D (of {SAMPLE})"), &one_by_one), &rows);
        table("and the worktrees", ("cleanup --dry-run: under 2000 ms", &dry), &[]);
        let _ = fs::remove_dir_all(&dir);
    }

    /// A repository whose branches each have a commit of their own, packed as after a `git gc`.
    fn repository(&self, kind: Kind) -> PathBuf {
        let dir = self.home.join(format!("{kind:?}"));
        run(self.git(&self.home).args(["init", "-q", "-b", "main"]).arg(&dir));
        let who = "Ada <ada@example.com> 1700000000 +0000";
        let mut script = format!("commit refs/heads/main\nmark :1\ncommitter {who}\ndata 5\nbegin");
        script.push_str("\nM 100644 inline a.txt\ndata 2\na\n\n");
        for n in 0..self.branches {
            let mark = n + 2;
            let message = format!("task(main@B{n}@complete): complete \"B{n}\"");
            script.push_str(&format!(
                "commit refs/heads/arborist/task/main/B{n}\nmark :{mark}\ncommitter {who}\ndata {}\n{message}\nfrom :1\nM 100644 inline b/{n}.txt\ndata {}\n{n}\n\n",
                message.len(),
                n.to_string().len() + 1
            ));
        }
        if kind == Kind::Landed {
            for n in 0..self.branches {
                let onto = if n == 0 { "from :1\n" } else { "" };
                let branch = n + 2;
                script.push_str(&format!(
                    "commit refs/heads/main\ncommitter {who}\ndata 4\nland\n{onto}merge :{branch}\n"
                ));
            }
        }
        let mut import =
            self.git(&dir).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().expect("git");
        import.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("a script");
        import.wait().expect("an end");
        run(self.git(&dir).args(["reset", "-q", "--hard"]));
        for n in 0..self.worktrees {
            run(self.command(WORKTREE, &dir).args(["add", "--offline", &format!("W{n}")]));
        }
        run(self.git(&dir).args(["pack-refs", "--all"]));
        dir
    }

    /// The same repository, without its worktrees.
    fn copy(&self, dir: &Path) -> PathBuf {
        let copy = self.home.join("copy");
        let _ = fs::remove_dir_all(&copy);
        run(Command::new("cp").arg("-R").arg(dir).arg(&copy));
        let _ = fs::remove_dir_all(copy.join(".git/worktrees"));
        copy
    }

    fn cleanup(&self, dir: &Path, args: &[&str]) -> Duration {
        run(self.command(CLEANUP, dir).args(["--older-than", "0"]).args(args))
    }

    fn git(&self, dir: &Path) -> Command {
        self.command("git", dir)
    }

    fn command(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("ARBORIST_WORKTREE_MAX", "1000").env("ARBORIST_WORKTREE_MIN_FREE", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.com");
        }
        command
    }
}
