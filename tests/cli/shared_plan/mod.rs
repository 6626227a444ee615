//! A plan that workers in several clones share through a bare repository.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStderr, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::{Run, Said, TestRepo};

/// Where claims on tasks are.
pub(crate) const CLAIMS: &str = "refs/arborist/claims/%work/main/tasks/";

/// Writes a file for each task, says where, and approves of everything.
pub(crate) const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) pwd >> "$ROOT/did-$ARBORIST_TASK"; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

/// Waits in the task that `held` names, in the clone that started it first, until `go` is there.
pub(crate) const HELD: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) pwd >> "$ROOT/did-$ARBORIST_TASK"
     if mkdir "$ROOT/held-$ARBORIST_TASK" 2>/dev/null; then
       until [ -e "$ROOT/go" ]; do sleep 0.05; done
     fi
     echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

/// The bare repository `origin.git` and clones of it.
pub(crate) struct SharedPlan {
    pub(crate) repo: TestRepo,
}

impl SharedPlan {
    /// A plan with this number of tasks that do not wait for each other, and this number of clones.
    pub(crate) fn new(tasks: usize, clones: usize, agent: &str) -> Self {
        let lines: String = (1..=tasks).map(|task| format!("- [ ] T{task:03} [P] do it\n")).collect();
        Self::of(&format!("## Phase 1: All\n\n{lines}"), clones, agent)
    }

    /// The same with this plan.
    pub(crate) fn of(plan: &str, clones: usize, agent: &str) -> Self {
        let file = if plan.starts_with('{') { "task-tree.json" } else { "tasks.md" };
        let repo = TestRepo::planned(file, plan, agent);
        repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
        let shared = Self { repo };
        for clone in 0..clones {
            let name = format!("clone{clone}");
            shared.repo.git_in(shared.repo.root(), ["clone", "-q", "origin.git", &name]).succeeds();
        }
        shared.set_ttl(60);
        shared
    }

    pub(crate) fn set_ttl(&self, seconds: u32) {
        self.repo.git(["config", "--global", "arborist.work.ttl", &seconds.to_string()]).succeeds();
    }

    pub(crate) fn clone(&self, number: usize) -> PathBuf {
        self.repo.root().join(format!("clone{number}"))
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.repo.root().join("origin.git")
    }

    /// Starts a worker in a clone.
    pub(crate) fn start(&self, number: usize, args: &[&str]) -> Child {
        let mut command = self.repo.command("git-arborist-work", &self.clone(number));
        let piped = command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        piped.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a worker in a clone whose output goes nowhere, so that no pipe of it can fill up.
    pub(crate) fn start_silent(&self, number: usize) -> Child {
        let mut command = self.repo.command("git-arborist-work", &self.clone(number));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs a worker in a clone to its end.
    pub(crate) fn work(&self, number: usize, args: &[&str]) -> Run {
        Run::of(self.repo.command("git-arborist-work", &self.clone(number)).args(args), b"")
    }

    pub(crate) fn at_origin<const N: usize>(&self, args: [&str; N]) -> String {
        self.repo.git_in(&self.origin(), args).answer()
    }

    /// How often the landing of each task is on the target at the remote, in the order of the tasks.
    pub(crate) fn landings(&self) -> Vec<String> {
        let log = self.at_origin(["log", "--first-parent", "--format=%s", "main"]);
        let task = |line: &str| Some(line.strip_prefix("task(main@")?.split_once("@merge)")?.0.to_owned());
        let mut tasks: Vec<String> = log.lines().filter_map(task).collect();
        tasks.sort();
        tasks
    }

    /// What is left of claims and branches of tasks at the remote.
    pub(crate) fn left(&self) -> String {
        let left = self.at_origin(["for-each-ref", "--format=%(refname)", CLAIMS, "refs/heads/arborist"]);
        left.replace('\n', " ")
    }

    /// Verifies everything in a new clone, after the command that the first try proposes.
    pub(crate) fn verify_in_fresh_clone(&self) -> Said {
        self.repo.git_in(self.repo.root(), ["clone", "-q", "origin.git", "fresh"]).succeeds();
        let fresh = self.repo.root().join("fresh");
        let unknown = self.repo.arborist_in(&fresh, ["verify", "--strict"]).exits(1).stderr();
        let hint = unknown.lines().find_map(|line| line.split_once("get it with: ")).expect("a hint").1;
        Run::of(self.repo.command("sh", &fresh).args(["-c", hint]), b"").succeeds();
        self.repo.arborist_in(&fresh, ["verify", "--strict"]).succeeds()
    }

    /// In which places a task was worked on.
    pub(crate) fn places(&self, task: &str) -> Vec<String> {
        let text = fs::read_to_string(self.repo.root().join(format!("did-{task}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn exists(&self, file: &str) -> bool {
        self.repo.root().join(file).exists()
    }

    pub(crate) fn touch(&self, file: &str) {
        fs::write(self.repo.root().join(file), "").unwrap();
    }

    /// Waits for something.
    pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{what} did not happen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Reads what a worker writes to standard error up to a line with these words. The pipe must stay open while it works.
pub(crate) fn read_until(child: &mut Child, words: &str) -> (String, BufReader<ChildStderr>) {
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(errors.read_line(&mut line).unwrap(), 0, "the worker ended without '{words}'");
    }
    (line, errors)
}

/// The exit code and everything that a worker said.
pub(crate) fn wait_for_output(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), said)
}

/// Sends a signal to a worker and everything that it has started.
pub(crate) fn signal(child: &Child, signal: &str) {
    let mut ids = vec![child.id().to_string()];
    let mut at = 0;
    while at < ids.len() {
        let children = format!("/proc/{0}/task/{0}/children", ids[at]);
        let text = fs::read_to_string(children).unwrap_or_default();
        ids.extend(text.split_whitespace().map(str::to_owned));
        at += 1;
    }
    // Some of them may have ended.
    let _ = std::process::Command::new("kill").arg(format!("-{signal}")).args(&ids).output().unwrap();
}
