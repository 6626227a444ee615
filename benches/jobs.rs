//! What several jobs gain: tasks that only wait beside their ideal, and tasks that do nothing beside one job at a time.
//! `cargo bench --bench jobs`; `-- --full` for 200 tasks.

#![allow(clippy::expect_used, reason = "a measurement that cannot be set up must stop")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const GARDENER: &str = env!("CARGO_BIN_EXE_git-arborist-gardener");
const ROUNDS: usize = 3;
/// So many tasks that wait, for so long, by so many at once.
const SLEEPERS: usize = 8;
const SLEEP: Duration = Duration::from_secs(2);
const JOBS: usize = 4;

/// Waits for as long as it is told, then writes one file, or approves at once.
const AGENT: &str = r#"read -r first
case "$first" in
  Review*) echo APPROVED ;;
  *) sleep "$SPAN"; set -- $first; echo "$first" > "${3%:}.txt"; echo done ;;
esac
cat > /dev/null
"#;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = Bench { home: folder.path().to_owned() };
    bench.waiting();
    bench.idle(if env::args().any(|arg| arg == "--full") { 200 } else { 60 });
}

struct Bench {
    home: PathBuf,
}

impl Bench {
    /// Tasks that only wait: the rest is what driving them costs.
    fn waiting(&self) {
        self.plant(SLEEP);
        let ideal = SLEEP * u32::try_from(SLEEPERS / JOBS).unwrap_or(1);
        let jobs = JOBS.to_string();
        let took = self.best("waiting", SLEEPERS, &["--jobs", &jobs]);
        let ratio = took.as_secs_f64() / ideal.as_secs_f64();
        println!("{SLEEPERS} tasks of {} s, --jobs {JOBS}, best of {ROUNDS}", SLEEP.as_secs());
        println!("  {:<40} {:>8.2} s", "ideal", ideal.as_secs_f64());
        println!(
            "  {:<40} {:>8.2} s  {ratio:.2} times  (asked: at most 1.25)",
            "git arborist gardener",
            took.as_secs_f64()
        );
    }

    /// Tasks that do nothing: here lanes and landings are all that there is.
    fn idle(&self, tasks: usize) {
        self.plant(Duration::ZERO);
        println!("\n{tasks} tasks that do nothing, best of {ROUNDS}");
        let one = self.best("one", tasks, &[]);
        println!("  {:<40} {:>8.2} s", "one job, in the checkout", one.as_secs_f64());
        let ways = [("one job, in a lane", vec!["--isolate"]), ("two jobs", vec!["--jobs", "2"])];
        for (name, args) in ways {
            let took = self.best(&name.replace(' ', "-"), tasks, &args);
            let ratio = took.as_secs_f64() / one.as_secs_f64();
            println!("  {name:<40} {:>8.2} s  {ratio:.2} times", took.as_secs_f64());
        }
        println!("  (asked: two jobs are no slower than one)");
    }

    /// The agent that waits for so long.
    fn plant(&self, span: Duration) {
        let agent = self.home.join("agent.sh");
        fs::write(&agent, format!("SPAN={}\n{AGENT}", span.as_secs())).expect("an agent");
        let config = format!("runner = \"sh\"\n[runners.sh]\ncommand = [\"sh\", \"{}\"]\n", agent.display());
        let folder = self.home.join(".config/git-arborist");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), config).expect("a configuration");
    }

    fn best(&self, name: &str, tasks: usize, args: &[&str]) -> Duration {
        let rounds = (0..ROUNDS).map(|round| self.run(&format!("{name}-{round}"), tasks, args));
        rounds.min().unwrap_or_default()
    }

    fn run(&self, name: &str, tasks: usize, args: &[&str]) -> Duration {
        let dir = self.repository(name, tasks);
        let start = Instant::now();
        let status = self.command(GARDENER, &dir).args(args).status().expect("the gardener");
        assert!(status.success(), "the gardener ended with {status}");
        start.elapsed()
    }

    /// A repository with a plan of so many tasks that wait for nothing.
    fn repository(&self, name: &str, tasks: usize) -> PathBuf {
        let dir = self.home.join(name);
        self.git(&self.home, &["init", "-q", "-b", "main", name]);
        let plan: String = (1..=tasks).map(|n| format!("- [ ] T{n:04} [P] do thing {n}\n")).collect();
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
}
