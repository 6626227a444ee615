//! What driving costs: a run of tasks beside its bare floor, the same agent processes and as many `git commit`s; and
//! whether a task costs more the longer the run is. `cargo bench --bench garden`; `-- --full` for 1,000 tasks.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const GARDENER: &str = env!("CARGO_BIN_EXE_git-arborist-gardener");
const TASKS: usize = 100;
const ROUNDS: usize = 3;
/// For each task: implement, test, review, complete.
const COMMITS: usize = 4;

/// Does nothing but write one file, or approve.
const AGENT: &str = r#"read -r first
case "$first" in
  Review*) echo APPROVED ;;
  *) set -- $first; echo "$first" > "${3%:}.txt"; echo done ;;
esac
cat > /dev/null
"#;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = Bench { home: folder.path().to_owned() };
    fs::write(bench.home.join("agent.sh"), AGENT).expect("an agent");
    let mut floors = Vec::new();
    let mut runs = Vec::new();
    for round in 0..ROUNDS {
        floors.push(bench.floor(&bench.repository(&format!("floor-{round}"), TASKS)));
        runs.push(bench.garden(&bench.repository(&format!("run-{round}"), TASKS), "T9999"));
    }
    let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    let (floor, run) = (best(&floors), best(&runs));
    println!("{TASKS} tasks, best of {ROUNDS} taken in turn");
    println!("  {:<40} {:>8.2} s", "the same agents and git commits", floor.as_secs_f64());
    let ratio = run.as_secs_f64() / floor.as_secs_f64();
    println!(
        "  {:<40} {:>8.2} s  {ratio:.2} times  (asked: at most 2.0)",
        "git arborist gardener",
        run.as_secs_f64()
    );
    bench.growth(if env::args().any(|arg| arg == "--full") { 1000 } else { 300 });
}

struct Bench {
    home: PathBuf,
}

impl Bench {
    /// A repository with a plan of so many tasks that wait for nothing.
    fn repository(&self, name: &str, tasks: usize) -> PathBuf {
        let dir = self.home.join(name);
        self.git(&self.home, &["init", "-q", "-b", "main", name]);
        let plan: String = (1..=tasks).map(|n| format!("- [ ] T{n:04} do thing {n}\n")).collect();
        fs::write(dir.join("tasks.md"), format!("## Phase 1: All\n\n{plan}")).expect("a plan");
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "-m", "plan"]);
        dir
    }

    fn command(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        let path = env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.com");
        }
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn git(&self, dir: &Path, args: &[&str]) {
        assert!(self.command("git", dir).args(args).status().expect("git").success(), "git {args:?}");
    }

    fn agent(&self, dir: &Path, prompt: &str) {
        let script = format!("printf '%s\\n' \"$1\" | sh '{}'", self.home.join("agent.sh").display());
        assert!(self.command("sh", dir).args(["-c", &script, "-", prompt]).status().expect("sh").success());
    }

    /// What nobody can do without.
    fn floor(&self, dir: &Path) -> Duration {
        let start = Instant::now();
        for n in 1..=TASKS {
            self.agent(dir, &format!("Implement task T{n:04}: do thing {n}"));
            self.agent(dir, "Review it");
            for step in 0..COMMITS {
                let message = format!("task T{n:04}, step {step}");
                self.git(dir, &["commit", "-q", "--allow-empty", "-m", &message]);
            }
        }
        start.elapsed()
    }

    /// A run up to a task.
    fn garden(&self, dir: &Path, until: &str) -> Duration {
        let agent = self.home.join("agent.sh");
        let config = format!("runner = \"sh\"\n[runners.sh]\ncommand = [\"sh\", \"{}\"]\n", agent.display());
        let folder = self.home.join(".config/git-arborist");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), config).expect("a configuration");
        let mut command = self.command(GARDENER, dir);
        if until != "T9999" {
            command.args(["--until", until]);
        }
        let start = Instant::now();
        let status = command.status().expect("the gardener");
        assert!(status.success(), "the gardener ended with {status}");
        start.elapsed()
    }

    /// The time of the first hundred tasks beside that of the last.
    fn growth(&self, tasks: usize) {
        let dir = self.repository("growth", tasks);
        let first = self.garden(&dir, "T0100");
        self.garden(&dir, &format!("T{:04}", tasks - 100));
        let last = self.garden(&dir, &format!("T{tasks:04}"));
        let growth = (last.as_secs_f64() / first.as_secs_f64() - 1.0) * 100.0;
        println!("\na run of {tasks} tasks");
        println!("  {:<40} {:>8.2} s", "the first hundred", first.as_secs_f64());
        println!(
            "  {:<40} {:>8.2} s  {growth:+.0} %  (asked: under 20 % at 1,000)",
            "the last hundred",
            last.as_secs_f64()
        );
    }
}
