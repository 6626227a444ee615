//! Real agent programs, as installed from npm, driven through a plan against a scripted model on loopback. Where a
//! program is not on `PATH` its tests say so and do nothing.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod model;
mod program;
mod server;
mod tools;
mod turns;
mod two_repos;
mod wire;

use std::{
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{Run, TestRepo, is_installed};

use model::{Act, Model, Step, Trouble};
use program::{Agent, CLAUDE, CODEX, GEMINI, OPENCODE};
use tempfile::TempDir;

const PLAN: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form", "depends_on": ["T001"]},
    "T003": {"id": "T003", "name": "Write the guide", "depends_on": ["T002"]}
  },
  "root_ids": ["T001", "T002", "T003"]
}
"#;

const TASKS: [&str; 3] = ["T001", "T002", "T003"];

/// The programs are heavy: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A repository with a plan of three tasks, and a program that speaks with a scripted model.
struct Scene {
    repo: TestRepo,
    model: Arc<Model>,
    agent: Agent,
    url: String,
    /// Codex refuses to keep programs of its own below the folder for temporary files, in which everything else is.
    codex_home: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// `None`, said aloud, where the program is not installed.
    fn set(agent: Agent, troubles: Vec<Trouble>) -> Option<Self> {
        Self::with(agent, Model::new(troubles))
    }

    fn with(agent: Agent, model: Model) -> Option<Self> {
        if !is_installed(agent.name) {
            eprintln!("skipped: {} is not on PATH (npm install {})", agent.name, agent.package);
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Inside of its own sandbox, codex sees an empty /dev/shm.
        arborist_testkit::use_disk();
        let repo = TestRepo::init();
        repo.write("task-tree.json", PLAN);
        repo.commit("a plan\n");
        let model = Arc::new(model);
        let port = server::serve(Arc::clone(&model), repo.path(""));
        let url = format!("http://127.0.0.1:{port}");
        let codex_home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        agent.configure(&repo, codex_home.path(), &url);
        let limits =
            format!("[timeouts]\nsilence = {}\nrunner = {}\n", agent.silence, 2 * agent.silence + 10);
        program::write(&repo, ".config/git-arborist/config.toml", &limits);
        Some(Self { repo, model, agent, url, codex_home, _turn: turn })
    }

    fn gardener(&self) -> Run {
        self.gardener_with(&[])
    }

    fn gardener_with(&self, args: &[&str]) -> Run {
        Run::of(self.command("git").arg("arborist").args(self.gardener_words()).args(args), b"")
    }

    fn gardener_words(&self) -> [&'static str; 5] {
        ["gardener", "--runner", self.agent.name, "--model", self.agent.model]
    }

    /// A program that finds the scripted model.
    fn command(&self, program: &str) -> Command {
        let mut command = self.repo.command(program, &self.repo.path(""));
        // Real programs work in the sandbox that users get.
        command.env("ARBORIST_SANDBOX", "auto");
        command.env("CODEX_HOME", self.codex_home.path());
        self.agent.point(&mut command, &self.url);
        command
    }

    /// What `git arborist state` says of a task.
    fn expect_state(&self, task: &str, words: &str) {
        self.repo.arborist(["state", task]).succeeds().out(words);
    }

    /// What holds after every run that ended well.
    fn expect_a_finished_plan(&self) {
        self.repo.arborist(["state", "--exit-code"]).succeeds();
        self.repo.arborist(["trailers", "check", "main~13.."]).succeeds().err("all valid");
        assert_eq!(self.repo.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
    }
}

fn finishes_a_plan(agent: Agent) {
    finishes_a_plan_with(agent, &[]);
}

fn finishes_a_plan_with(agent: Agent, args: &[&str]) {
    let Some(scene) = Scene::set(agent, Vec::new()) else {
        return;
    };
    scene.gardener_with(args).succeeds().out("3 completed (T001, T002, T003)");
    scene.expect_a_finished_plan();
    for task in TASKS {
        assert_eq!(scene.repo.read(&format!("{task}.txt")), format!("{task}\nmore\n"));
        assert_eq!(scene.model.calls(Step::Implement, task).len(), 1, "{task}");
        let review = scene.model.calls(Step::Review, task).concat();
        assert!(review.contains(&format!("+{task}\n+more\n")), "the reviewer sees the change: {review}");
    }
    let said = scene.repo.git(["log", "--format=%B", "--grep=T003@implement-pass"]).answer();
    assert!(said.contains("Wrote T003.txt.") && said.contains("Arborist-Tokens-In: "), "{said}");
}

/// The first review of T001 rejects, T002 meets a limit, and nobody answers the first call for T003.
fn recovers(agent: Agent) {
    let rejection = "The word approved means nothing here.\n\nREJECTED: no foreign key";
    let trouble = |step, task, act, times| Trouble { step, task, act, times };
    let troubles = vec![
        trouble(Step::Review, "T001", Act::Say(rejection.into()), 1),
        trouble(Step::Implement, "T002", Act::Refuse, agent.requests),
        trouble(Step::Implement, "T003", Act::Hang, 1),
    ];
    let silence = agent.silence;
    let Some(scene) = Scene::set(agent, troubles) else {
        return;
    };
    scene
        .gardener()
        .succeeds()
        .out("3 completed (T001, T002, T003)")
        .err("review rejected: no foreign key")
        .err("again (no attempt is used up)")
        .err(&format!("wrote nothing for {silence} s"));
    scene.expect_a_finished_plan();
    scene.expect_state("T001", "complete, attempt 2");
    scene.expect_state("T002", "complete, attempt 1");
    scene.expect_state("T003", "complete, attempt 2");
    let retry = scene.model.calls(Step::Implement, "T001").pop().unwrap();
    assert!(retry.contains("REJECTED: no foreign key"), "the retry is told why: {retry}");
}

#[test]
fn claude_finishes_a_plan() {
    finishes_a_plan(CLAUDE);
}

#[test]
fn claude_recovers_from_a_rejected_review_a_limit_and_a_hang() {
    recovers(CLAUDE);
}

#[test]
fn codex_finishes_a_plan() {
    finishes_a_plan(CODEX);
}

#[test]
fn codex_finishes_a_plan_in_each_of_our_sandboxes() {
    for backend in [ConfinementBackend::Bwrap, ConfinementBackend::Landlock] {
        if backend.works() {
            finishes_a_plan_with(CODEX, &["--sandbox", backend.as_str()]);
        }
    }
}

#[test]
fn the_sandbox_of_codex_works_inside_bubblewrap() {
    // Our sandbox hides the key, and that of codex closes a cache that ours leaves open.
    let probe = r#"
cat "$HOME/.ssh/id" > TASK.txt
touch "$HOME/.npm/probe" && echo open >> TASK.txt || echo closed >> TASK.txt
"#;
    for (backend, told) in [(ConfinementBackend::Bwrap, "closed"), (ConfinementBackend::Landlock, "open")] {
        if !backend.works() || (backend == ConfinementBackend::Bwrap && !backend.can_nest()) {
            eprintln!("skipped: {} does not work here", backend.as_str());
            continue;
        }
        let Some(scene) = Scene::with(CODEX, Model::acting(vec![Act::Shell(probe.into())])) else { return };
        program::write(&scene.repo, ".ssh/id", "secret");
        program::write(&scene.repo, ".npm/file", "");
        scene.gardener_with(&["--only", "T001", "--sandbox", backend.as_str()]).succeeds();
        assert_eq!(scene.repo.read("T001.txt"), format!("{told}\n"), "{}", backend.as_str());
    }
}

#[test]
fn codex_recovers_from_a_rejected_review_a_limit_and_a_hang() {
    recovers(CODEX);
}

#[test]
fn opencode_finishes_a_plan() {
    finishes_a_plan(OPENCODE);
}

#[test]
fn opencode_recovers_from_a_rejected_review_a_limit_and_a_hang() {
    recovers(OPENCODE);
}

#[test]
fn gemini_finishes_a_plan() {
    finishes_a_plan(GEMINI);
}

#[test]
fn gemini_recovers_from_a_rejected_review_a_limit_and_a_hang() {
    recovers(GEMINI);
}
