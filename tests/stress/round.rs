//! One run that is killed a few times and then left to end.

use std::{
    cell::Cell,
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::TestRepo;

use crate::{Random, checks, tree};

/// How a run works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    InPlace,
    Lanes,
    SessionBranch,
    TwoRepositories,
    LanesInTwoRepositories,
}

pub(crate) const MODES: [Mode; 5] =
    [Mode::InPlace, Mode::Lanes, Mode::SessionBranch, Mode::TwoRepositories, Mode::LanesInTwoRepositories];

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::Lanes => "lanes",
            Self::SessionBranch => "session-branch",
            Self::TwoRepositories => "two-repositories",
            Self::LanesInTwoRepositories => "lanes-in-two-repositories",
        }
    }

    const fn args(self) -> &'static [&'static str] {
        match self {
            Self::InPlace => &["--allow-dirty"],
            Self::Lanes => &["--jobs", "2", "--allow-dirty"],
            Self::SessionBranch => &["--session-branch"],
            Self::TwoRepositories => &[],
            Self::LanesInTwoRepositories => &["--jobs", "2"],
        }
    }

    const fn plan(self) -> &'static str {
        match self {
            Self::TwoRepositories => {
                "- [ ] T001 [repo:backend] one\n- [ ] T002 two\n- [ ] T003 [repo:backend] three\n"
            }
            Self::LanesInTwoRepositories => {
                "- [ ] T001 [P] [repo:backend] one\n- [ ] T002 [P] two\n- [ ] T003 [P] [repo:backend] three\n"
            }
            Self::Lanes => "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 [P] three\n",
            _ => "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n",
        }
    }

    /// The repository that a task writes in.
    pub(crate) fn repository_of(self, task: &str) -> &'static str {
        if self.has_backend() && task != "T002" { "backend" } else { "repo" }
    }

    pub(crate) fn has_backend(self) -> bool {
        matches!(self, Self::TwoRepositories | Self::LanesInTwoRepositories)
    }
}

/// A task that was interrupted so often in a row stops the run.
const INTERRUPTIONS: usize = 3;
/// A run that has not ended by then hangs. It waits for locks, and other tests may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(180);

/// The tasks of every plan.
pub(crate) const TASKS: [&str; 3] = ["T001", "T002", "T003"];

/// Writes something else whenever it is called, in two turns where it tells of turns.
const AGENT: &str = r#"
case "$prompt" in "Review"*) echo APPROVED; exit ;; esac
task=$ARBORIST_TASK
if [ -n "$TURNS" ]; then
  echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
  say() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"Add part %s"},{"type":"tool_use","id":"t%s","name":"Bash","input":{}}]}}\n' $1 $1 $1; }
  answer() { printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' $1; sleep 0.03; }
  say 1; mkdir -p src; echo "part of $task, call $n" > "src/$task.part"; answer 1
  say 2; echo "work of $task, call $n" > "$task.txt"; answer 2
  printf '{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'
else
  mkdir -p src; echo "part of $task, call $n" > "src/$task.part"; echo "work of $task, call $n" > "$task.txt"; echo done
fi
"#;

/// A repository, a plan, an agent, and a user who has changed something.
pub(crate) struct Round {
    pub(crate) mode: Mode,
    pub(crate) repo: TestRepo,
    /// How often the run was killed.
    pub(crate) kills: usize,
    /// How long it took if it was not killed at all.
    pub(crate) whole: Option<Duration>,
    /// How often it was started.
    starts: Cell<usize>,
    random: Random,
}

impl Round {
    pub(crate) fn new(mode: Mode, seed: u64) -> Self {
        let mut random = Random(seed);
        let repo = TestRepo::init();
        repo.write("tasks.md", mode.plan());
        for file in ["staged.txt", "edited.txt", "both.txt"] {
            repo.write(file, "first\n");
        }
        repo.commit("files\n");
        let has_turns = random.below(2) == 0;
        let begin = if has_turns { "TURNS=1\n" } else { "TURNS=\n" };
        repo.agent(&format!("{begin}{AGENT}"));
        let root = repo.root().display();
        let events = if has_turns { "claude" } else { "text" };
        let config = format!(
            "runner = \"robot\"\ntest-command = \"true\"\n[steps.review]\nrunner = \"judge\"\n\
             [runners.robot]\ncommand = [\"sh\", \"{root}/agent.sh\"]\nevents = \"{events}\"\n\
             [runners.judge]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo APPROVED\"]\n"
        );
        fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
        if mode.has_backend() {
            add_backend(&repo);
        }
        Self { mode, repo, kills: 0, whole: None, starts: Cell::new(0), random }
    }

    /// How long the run takes if nobody kills it.
    pub(crate) fn measure(&self) -> Duration {
        self.change_as_user();
        let begun = Instant::now();
        let _ = self.start(&[]).wait();
        begun.elapsed()
    }

    /// Kills the run a few times, each within the time that it takes, lets it end, and looks at what it has left.
    pub(crate) fn run(&mut self, latest: Duration) -> Result<(), String> {
        self.change_as_user();
        let before = checks::work_of_user(&self.repo);
        for _ in 0..=self.random.below(3) {
            let delay = self.random.below(latest.as_micros().try_into().unwrap_or(u64::MAX));
            let delay = Duration::from_micros(delay);
            let begun = Instant::now();
            match self.start(&[]).kill_after(delay)? {
                Killed::Yes => self.kills += 1,
                // Everything is done: there is nothing left to interrupt.
                Killed::No => {
                    self.whole = (self.kills == 0).then(|| begun.elapsed());
                    break;
                }
            }
        }
        self.end()?;
        checks::all(self, &before)?;
        self.repeat()
    }

    /// Runs the same command until it ends. A task that was interrupted three times in a row stops the run, which goes on
    /// with `--retry-failed`. Nothing else is a reason to stop.
    fn end(&self) -> Result<(), String> {
        let ended = self.start(&[]).wait()?;
        match ended.code {
            0 => return Ok(()),
            2 if self.kills >= INTERRUPTIONS && checks::has_interruptions(self, INTERRUPTIONS)? => {}
            _ => return Err(ended.report()),
        }
        let again = self.start(&["--retry-failed"]).wait()?;
        if again.code == 0 { Ok(()) } else { Err(ended.report() + &again.report()) }
    }

    /// Once everything is done, the same command has nothing to do: nothing of the crashes comes up later.
    fn repeat(&self) -> Result<(), String> {
        let before = checks::branches(self);
        let ended = self.start(&[]).wait()?;
        if ended.code != 0 {
            return Err(format!("once more: {}", ended.report()));
        }
        let after = checks::branches(self);
        if before == after {
            Ok(())
        } else {
            Err(format!("a run with nothing to do moved\n{before}\nto\n{after}"))
        }
    }

    fn start(&self, more: &[&str]) -> Started {
        let count = self.starts.get() + 1;
        self.starts.set(count);
        let output = self.repo.root().join(format!("output-{count}.txt"));
        let file = fs::File::create(&output).unwrap();
        let mut command = self.command(more);
        let command = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Started { child: command.spawn().unwrap(), begun: Instant::now(), output }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.repo.command("git-arborist-gardener", &self.repo.path(""));
        command.args(self.mode.args()).args(more);
        command
    }

    /// Changes that the user has staged, has not staged, and both in one file.
    fn change_as_user(&self) {
        let repo = &self.repo;
        repo.write("staged.txt", "first\nstaged\n");
        repo.write("both.txt", "first\nstaged\n");
        repo.git(["add", "staged.txt", "both.txt"]).succeeds();
        repo.write("both.txt", "first\nstaged\nnot staged\n");
        repo.write("edited.txt", "first\nnot staged\n");
        repo.write("notes.txt", "untracked\n");
    }

    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.repo.root().join(name)
    }

    /// Keeps the folder for whoever looks for the reason.
    pub(crate) fn keep(self) -> PathBuf {
        let root = self.repo.root().to_owned();
        std::mem::forget(self.repo);
        root
    }
}

/// A run that was started.
struct Started {
    child: Child,
    begun: Instant,
    output: PathBuf,
}

/// Whether a run was killed before it ended.
enum Killed {
    Yes,
    No,
}

/// A run that has ended by itself.
struct Ended {
    code: i32,
    output: String,
}

impl Ended {
    fn report(&self) -> String {
        format!("exit {}:\n{}\n", self.code, self.output)
    }
}

impl Started {
    /// Kills it after some time. If it ended before that, it must have succeeded: a run that fails once because another was
    /// killed is stuck too.
    fn kill_after(mut self, delay: Duration) -> Result<Killed, String> {
        while self.begun.elapsed() < delay {
            if let Some(status) = self.child.try_wait().unwrap() {
                return self.require_success(status);
            }
            std::thread::sleep(Duration::from_micros(500).min(delay.saturating_sub(self.begun.elapsed())));
        }
        let status = tree::kill(&mut self.child);
        // It may have ended while its processes were looked for.
        if status.signal() == Some(9) { Ok(Killed::Yes) } else { self.require_success(status) }
    }

    fn require_success(&self, status: ExitStatus) -> Result<Killed, String> {
        let ended = self.ended(status);
        if ended.code == 0 { Ok(Killed::No) } else { Err(ended.report()) }
    }

    fn ended(&self, status: ExitStatus) -> Ended {
        let output = fs::read_to_string(&self.output).unwrap_or_default();
        Ended { code: status.code().unwrap_or(-1), output }
    }

    /// Waits until it has ended.
    fn wait(mut self) -> Result<Ended, String> {
        while self.begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Ok(self.ended(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = tree::kill(&mut self.child);
        Err(format!("it did not end in {PATIENCE:?}: {}", self.ended(status).report()))
    }
}

fn add_backend(repo: &TestRepo) {
    let backend = repo.root().join("backend");
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", "backend"]).succeeds();
    fs::write(backend.join("kept.txt"), "kept\n").unwrap();
    repo.git_in(&backend, ["add", "-A"]).succeeds();
    repo.git_in(&backend, ["commit", "-q", "-m", "begin"]).succeeds();
    fs::write(Path::new(&backend).join("kept.txt"), "changed by the user\n").unwrap();
    let key = ["config", "--global", "arborist.workspace.repos.backend.path", "../backend"];
    repo.git(key).succeeds();
}
