//! Ctrl-C and its relatives while `git arborist garden` waits for an agent or a test.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::TestRepo;

/// Leaves half a file and its process id, then does not end unless `$ROOT/well` is there.
const SLEEPER: &str = r#"
case "$prompt" in
  "Review"*) [ -e "$ROOT/well" ] || { echo $$ > "$ROOT/pid"; sleep 600; }; echo APPROVED ;;
  *) echo half >> half.txt; [ -e "$ROOT/well" ] || { echo $$ > "$ROOT/pid"; sleep 600; }; echo done ;;
esac
"#;

/// A `garden` that waits for an agent.
struct Waiting<'a> {
    repo: &'a TestRepo,
    child: Child,
    agent: String,
}

impl<'a> Waiting<'a> {
    fn start(repo: &'a TestRepo, args: &[&str]) -> Self {
        let mut command = repo.command("git-arborist-garden", &repo.path(""));
        let child = command.args(args).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let file = repo.root().join("pid");
        let begun = Instant::now();
        let mut agent = String::new();
        while !agent.ends_with('\n') {
            assert!(begun.elapsed() < Duration::from_secs(180), "the agent was not called");
            std::thread::sleep(Duration::from_millis(10));
            agent = std::fs::read_to_string(&file).unwrap_or_default();
        }
        Self { repo, child, agent: agent.trim().to_owned() }
    }

    fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Whether it ends within half a second.
    fn ends_soon(&mut self) -> bool {
        (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.child.try_wait().unwrap().is_some()
        })
    }

    /// Its exit code and what it said; nothing of the agent lives any more.
    fn end(self) -> (i32, String) {
        let ended = self.child.wait_with_output().unwrap();
        let code = ended.status.code().unwrap_or_else(|| 1000 + ended.status.signal().unwrap_or(0));
        let state = || {
            let listed = Command::new("ps").args(["-o", "stat=", "-p", &self.agent]).output().unwrap();
            String::from_utf8_lossy(&listed.stdout).trim().to_owned()
        };
        let is_gone = |state: &str| state.is_empty() || state.starts_with('Z');
        // What was killed may take a moment to end.
        let begun = Instant::now();
        while !is_gone(&state()) && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_gone(&state()), "the agent was left alive: {}", state());
        std::fs::remove_file(self.repo.root().join("pid")).unwrap();
        std::fs::write(self.repo.root().join("well"), "").unwrap();
        (code, String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}

fn repo(agent: &str) -> TestRepo {
    TestRepo::planned(
        "task-tree.json",
        r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#,
        agent,
    )
}

#[test]
fn a_signal_ends_the_agent_keeps_its_work_and_sets_the_exit_code() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let repo = repo(SLEEPER);
        let waiting = Waiting::start(&repo, &[]);
        waiting.send(signal);
        let (ended, said) = waiting.end();
        assert_eq!(ended, code, "{said}");
        assert!(said.contains("T1 attempt 1 was interrupted and does not count: stopped by"), "{said}");
        assert!(said.contains("\nstopped\n") && said.contains("hint: run the same command again"), "{said}");
        assert_eq!(repo.git(["show", "HEAD:half.txt"]).answer(), "half", "what is known is committed");
        let told = repo.git(["log", "-1", "--format=%B"]).answer();
        assert!(
            told.contains("@T1@implement-fail") && told.contains("Arborist-Interrupted: stopped by "),
            "{told}"
        );
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
        repo.arborist(["state"]).succeeds().out("interrupted").never("the agent failed");
        let told = repo
            .arborist(["state", "T1"])
            .succeeds()
            .out("paused; attempt 1 was interrupted while implementing")
            .stdout();
        let log = told.lines().find_map(|line| line.trim().strip_prefix("agent log")).unwrap();
        assert!(repo.path(log.trim()).is_file(), "{told}");
        repo.arborist(["garden"]).succeeds();
        repo.arborist(["state", "T1"]).succeeds().out("complete, attempt 1").never("interrupted,");
    }
}

#[test]
fn a_running_task_is_shown_as_running_and_not_as_ready() {
    let repo = repo(SLEEPER);
    let waiting = Waiting::start(&repo, &[]);
    let pid = waiting.child.id();
    repo.arborist(["state"]).succeeds().out("1 running").out(&format!("process {pid}"));
    repo.arborist(["state"]).succeeds().out("implementing").out("attempt 1, robot, started ");
    let detail = repo.arborist(["state", "T1"]).succeeds();
    detail.out("implementing, attempt 1, robot, started ").out("spec/logs/T1_implement_");
    repo.arborist(["state", "--ready"]).succeeds().out("nothing is ready");
    let document =
        serde_json::from_str::<serde_json::Value>(&repo.arborist(["state", "--json"]).answer()).unwrap();
    assert_eq!((&document["running"]["pid"], &document["tasks"][0]["running"]), (&pid.into(), &true.into()));
    assert_eq!(document["tasks"][0]["ready"], false);
    let doing = &document["tasks"][0]["doing"];
    assert_eq!((&doing["step"], &doing["attempt"]), (&"implement".into(), &0.into()), "{doing}");
    waiting.send("-KILL");
    assert_eq!(waiting.child.wait_with_output().unwrap().status.signal(), Some(9));
    repo.arborist(["state"]).succeeds().never("a run is active").out("ready").out("interrupted");
    repo.arborist(["state", "T1"]).succeeds().out(", the last attempt was interrupted");
    std::fs::write(repo.root().join("well"), "").unwrap();
    repo.arborist(["garden"]).succeeds();
    repo.arborist(["state"]).succeeds().never("interrupted");
}

#[test]
fn a_signal_uses_up_no_attempt_if_the_agent_has_changed_nothing() {
    let repo = repo(&SLEEPER.replace("echo half >> half.txt;", ""));
    let waiting = Waiting::start(&repo, &[]);
    waiting.send("-INT");
    assert_eq!(waiting.end().0, 130);
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
    repo.arborist(["garden"]).succeeds();
    repo.arborist(["state", "T1"]).succeeds().out("complete, attempt 1");
}

#[test]
fn a_reviewer_ended_by_a_signal_does_not_reject_the_work() {
    let repo = repo(&SLEEPER.replace("half.txt; [ -e", "half.txt; true || [ -e"));
    let waiting = Waiting::start(&repo, &[]);
    waiting.send("-TERM");
    assert_eq!(waiting.end().0, 143);
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(log.contains("test-pass") && !log.contains("@review"), "{log}");
    repo.arborist(["garden"]).succeeds();
    assert_eq!(repo.calls(), 3, "the work is not done again");
}

#[test]
fn a_test_ended_by_a_signal_does_not_count_as_failed() {
    let repo = repo(
        "[ -e \"$ROOT/well\" ] || : ; case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > x.txt ;; esac",
    );
    let root = repo.root().display().to_string();
    let in_step = "git log -1 --format=%s | grep -q implement-pass || exit 0";
    let test = format!("{in_step}; [ -e '{root}/well' ] || {{ echo $$ > '{root}/pid'; sleep 600; }}");
    let waiting = Waiting::start(&repo, &["--test-command", &test]);
    waiting.send("-INT");
    assert_eq!(waiting.end().0, 130);
    assert!(!repo.git(["log", "--format=%s"]).answer().contains("@test-"));
    repo.arborist(["garden", "--test-command", &test]).succeeds();
    repo.arborist(["state", "T1"]).succeeds().out("complete, attempt 1");
}

/// A repository whose run was ended by a second signal, and its agent with it, which does not end when it is asked to. `None` if
/// it was ended in order: on a busy machine the agent's time may be over before the second signal arrives.
fn ended_at_once() -> Option<TestRepo> {
    let stubborn = format!("trap '' TERM INT\n{}", SLEEPER.replace("sleep 600", "while :; do sleep 1; done"));
    let repo = repo(&stubborn);
    let mut waiting = Waiting::start(&repo, &[]);
    waiting.send("-INT");
    // One that follows too soon is the same wish, and a busy run hears of both at the same time.
    while !waiting.ends_soon() {
        waiting.send("-INT");
    }
    let (code, said) = waiting.end();
    assert_eq!(code, 130, "{said}");
    (!said.contains("\nstopped\n")).then_some(repo)
}

#[test]
fn a_second_signal_ends_everything_at_once_and_the_next_run_recovers() {
    let repo = (0..3).find_map(|_| ended_at_once()).expect("nobody is asked politely any more");
    repo.arborist(["garden"]).succeeds().err("was interrupted");
    assert_eq!(repo.read("half.txt"), "half\nhalf\n");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_reviewer_that_failed_after_an_interrupted_review_is_named_as_the_reason() {
    let repo = repo(
        "case \"$prompt\" in\n\
         \"Review\"*) [ -e \"$ROOT/fails\" ] && { echo oops >&2; exit 1; }\n\
         [ -e \"$ROOT/good\" ] || { echo $$ > \"$ROOT/pid\"; sleep 600; }; echo APPROVED ;;\n\
         *) echo x > x.txt ;;\nesac",
    );
    let waiting = Waiting::start(&repo, &[]);
    waiting.send("-INT");
    let (_, said) = waiting.end();
    assert!(said.contains("attempt 1 was interrupted and does not count"), "{said}");
    std::fs::write(repo.root().join("fails"), "").unwrap();
    repo.arborist(["garden"]).exits(2).err("the reviewer of 'T1' failed");
    repo.arborist(["state", "T1"])
        .succeeds()
        .out("paused; tests passed, the review is next")
        .out("the last call of the reviewer ended without a result: oops")
        .out("  review log")
        .never("interrupted while reviewing");
    std::fs::remove_file(repo.root().join("fails")).unwrap();
    std::fs::write(repo.root().join("good"), "").unwrap();
    repo.arborist(["garden"]).succeeds().out("1 of 1 done, 1 attempt in");
}

#[test]
fn an_interrupted_review_is_named_as_the_reason_as_long_as_no_call_follows() {
    let repo = repo(
        "case \"$prompt\" in\n\
         \"Review\"*) echo $$ > \"$ROOT/pid\"; sleep 600 ;;\n\
         *) echo x > x.txt ;;\nesac",
    );
    // The clock of the kit is behind that of the logs.
    repo.wait(10 * 365 * 24 * 3600);
    let waiting = Waiting::start(&repo, &[]);
    waiting.send("-INT");
    waiting.end();
    let said = repo.arborist(["state", "T1"]).succeeds();
    said.out("attempt 1 was interrupted while reviewing").out("stopped by").never("ended without a result");
}
