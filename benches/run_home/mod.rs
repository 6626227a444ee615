//! Where runs are measured: a home with an agent that does next to nothing, and repositories with plans.

#![allow(dead_code, reason = "each measurement uses what it needs")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const GARDENER: &str = env!("CARGO_BIN_EXE_git-arborist-gardener");

/// Writes one file after so many seconds, or approves at once.
const AGENT: &str = r#"read -r first
case "$first" in
  Review*) echo APPROVED ;;
  *) [ "$SPAN" = 0 ] || sleep "$SPAN"; set -- $first; echo "$first" > "${3%:}.txt"; echo done ;;
esac
cat > /dev/null
"#;

/// A home, and everything in it.
pub(crate) struct RunHome {
    home: PathBuf,
}

impl RunHome {
    /// In a folder that is there.
    pub(crate) fn new(home: &Path) -> Self {
        let home = Self { home: home.to_owned() };
        home.write_agent(Duration::ZERO);
        home
    }

    /// Makes the agent wait for so long.
    pub(crate) fn write_agent(&self, span: Duration) {
        let agent = self.agent();
        fs::write(&agent, format!("SPAN={}\n{AGENT}", span.as_secs())).expect("an agent");
        let config = format!("runner = \"sh\"\n[runners.sh]\ncommand = [\"sh\", \"{}\"]\n", agent.display());
        let folder = self.home.join(".config/git-arborist");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("config.toml"), config).expect("a configuration");
    }

    /// The script of the agent.
    pub(crate) fn agent(&self) -> PathBuf {
        self.home.join("agent.sh")
    }

    /// A repository with a plan of so many tasks that wait for nothing.
    pub(crate) fn repository(&self, name: &str, tasks: usize) -> PathBuf {
        self.repository_with(name, tasks, &[])
    }

    /// The same, made with these options of `git init`.
    pub(crate) fn repository_with(&self, name: &str, tasks: usize, options: &[&str]) -> PathBuf {
        let dir = self.home.join(name);
        self.git(&self.home, &[&["init", "-q", "-b", "main"], options, &[name]].concat());
        let plan: String = (1..=tasks).map(|n| format!("- [ ] T{n:04} [P] do thing {n}\n")).collect();
        fs::write(dir.join("tasks.md"), format!("## Phase 1: All\n\n{plan}")).expect("a plan");
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "-m", "plan"]);
        dir
    }

    /// How long a run takes.
    pub(crate) fn run(&self, dir: &Path, args: &[&str]) -> Duration {
        let mut command = self.command(GARDENER, dir);
        let start = Instant::now();
        let status = command.args(args).status().expect("the gardener");
        assert!(status.success(), "the gardener ended with {status}");
        start.elapsed()
    }

    /// Runs git.
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) {
        assert!(self.command("git", dir).args(args).status().expect("git").success(), "git {args:?}");
    }

    /// A program that finds this home and an author, and nothing else of ours.
    pub(crate) fn command(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        let path = env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.com");
        }
        command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}
