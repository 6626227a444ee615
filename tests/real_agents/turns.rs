//! Real programs make a commit and a record for each turn, and one that was killed in mid-turn loses nothing.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use arborist_testkit::Run;
use serde_json::Value;

use crate::{
    Scene,
    model::{Act, Model},
    program::{Agent, CLAUDE, CODEX, GEMINI, OPENCODE},
};

/// A file that is written, a command that changes it and makes another, and a third file.
fn three_turns() -> Vec<Act> {
    let write = |path: &str| Act::Write { path: path.into(), text: "TASK\n".into() };
    vec![
        write("TASK-1.txt"),
        Act::Shell("echo more >> TASK-1.txt; echo two >> TASK-2.txt".into()),
        write("TASK-3.txt"),
    ]
}

impl Scene {
    fn turns(&self) -> Vec<Value> {
        let list = self.repo.arborist(["session", "turns", &self.session(), "--json"]).answer();
        let list: Value = serde_json::from_str(&list).unwrap();
        list["turns"].as_array().unwrap().clone()
    }

    fn session(&self) -> String {
        let list = self.repo.arborist(["session", "list", "--json"]).answer();
        let list: Value = serde_json::from_str(&list).unwrap();
        list["sessions"][0]["id"].as_str().unwrap().to_owned()
    }

    fn show(&self, format: &str, commit: &str) -> String {
        self.repo.git(["show", "-s", &format!("--format={format}"), commit]).answer()
    }
}

fn commits_three_turns(agent: Agent) {
    let Some(scene) = Scene::with(agent, Model::pacing(three_turns())) else {
        return;
    };
    scene.gardener_with(&["--only", "T001"]).succeeds().out("1 completed (T001)");
    let log = scene.repo.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
    let commits: Vec<&str> = log.lines().collect();
    let changed = |commit: &&str| scene.repo.git(["show", "--format=", "--name-only", *commit]).answer();
    let files: Vec<String> = commits.iter().map(changed).collect();
    assert_eq!(files, ["T001-1.txt", "T001-1.txt\nT001-2.txt", "T001-3.txt"]);
    let turns = scene.turns();
    for (commit, file) in commits.iter().zip(&files) {
        let turn = turns.iter().find(|turn| turn["commit"] == *commit).unwrap();
        let (number, session) = (turn["number"].to_string(), scene.session());
        let word = |name: &str| turn[name].as_str().unwrap().to_owned();
        let trailers = [
            ("Model", word("model")),
            ("Provider", word("provider")),
            ("Node", "T001".into()),
            ("Pipeline", "task-tree".into()),
            ("Session", session),
            ("Turn", number),
        ];
        for (name, value) in trailers {
            assert_ne!(value, "unknown", "{name}");
            assert_eq!(
                scene.show(&format!("%(trailers:key=Arborist-{name},valueonly)"), commit).trim(),
                value
            );
        }
        let written: Vec<&str> = turn["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(written.join("\n"), *file);
        assert!(!turn["tools"].as_array().unwrap().is_empty() && turn["agent_session"].is_string(), "{turn}");
        let author = format!("T001 ({}) <arborist@local>", word("model"));
        assert_eq!(scene.show("%an <%ae>", commit), author);
    }
    scene.repo.arborist(["trailers", "check", "main"]).succeeds().err("all valid");
    assert_eq!(scene.repo.git(["status", "--porcelain"]).answer(), "");
    plays_again(&scene, &commits);
}

/// What the program printed is enough to do the same once more, without it and without a model.
fn plays_again(scene: &Scene, commits: &[&str]) {
    let heard = scene.model.conversations_about("T001");
    let (id, only) = (scene.session(), ["--", "--only", "T001"]);
    let replay = ["session", "replay", &id, "--turn", "0", "--offline"];
    let said = scene.repo.arborist(replay.iter().chain(&only)).succeeds().out("1 completed (T001)");
    assert_eq!(scene.model.conversations_about("T001"), heard, "nobody is asked");
    let branch = format!("arborist/task-tree/{}", said.stdout().lines().next().unwrap());
    let own = format!("task({branch}@.*@turn)");
    let played = scene.repo.git(["log", "--reverse", "--format=%T", "--grep", &own, &branch]).answer();
    let trees: Vec<String> = commits.iter().map(|commit| scene.show("%T", commit)).collect();
    assert_eq!(played.lines().collect::<Vec<_>>(), trees);
}

/// The second turn has written half of what it wants to when the run is killed, with no time to say anything.
fn resumes_after_being_killed(agent: Agent) {
    let half = Act::Shell("echo half > TASK-2.txt; sleep 600".into());
    let Some(scene) = Scene::with(agent, Model::pacing(three_turns()).but_once(1, half)) else {
        return;
    };
    let mut driver = scene.command(env!("CARGO_BIN_EXE_git-arborist-gardener"));
    let words = scene.gardener_words();
    driver.args(&words[1..]).args(["--only", "T001"]).stdin(Stdio::null());
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !scene.repo.path("T001-2.txt").exists() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    driver.kill().unwrap();
    driver.wait().unwrap();
    let id = scene.session();
    let first = scene.turns().into_iter().find(|turn| turn["commit"].is_string()).unwrap();
    let resume = ["arborist", "session", "resume", &id, "--", "--only", "T001"];
    Run::of(scene.command("git").args(resume), b"").succeeds().out("1 completed (T001)");
    scene.expect_state("T001", "complete");
    let repo = &scene.repo;
    repo.git(["merge-base", "--is-ancestor", first["commit"].as_str().unwrap(), "main"]).succeeds();
    let patches = repo.git(["log", "-p", "--format=", "main", "--", "T001-2.txt"]).answer();
    assert!(patches.contains("+half"), "what the turn had written is in history: {patches}");
    for file in ["T001-1.txt", "T001-2.txt", "T001-3.txt"] {
        assert!(repo.path(file).exists(), "{file}");
    }
    let mut numbers: Vec<u64> = scene.turns().iter().filter_map(|turn| turn["number"].as_u64()).collect();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "no number twice");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.arborist(["trailers", "check", "main"]).succeeds().err("all valid");
}

#[test]
fn claude_commits_three_turns() {
    commits_three_turns(CLAUDE);
}

#[test]
fn codex_commits_three_turns() {
    commits_three_turns(CODEX);
}

#[test]
fn opencode_commits_three_turns() {
    commits_three_turns(OPENCODE);
}

#[test]
fn gemini_commits_three_turns() {
    commits_three_turns(GEMINI);
}

#[test]
fn claude_resumes_after_being_killed_during_a_turn() {
    resumes_after_being_killed(CLAUDE);
}

#[test]
fn codex_resumes_after_being_killed_during_a_turn() {
    resumes_after_being_killed(CODEX);
}

#[test]
fn opencode_resumes_after_being_killed_during_a_turn() {
    resumes_after_being_killed(OPENCODE);
}

#[test]
fn gemini_resumes_after_being_killed_during_a_turn() {
    resumes_after_being_killed(GEMINI);
}
