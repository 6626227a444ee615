//! What real programs printed in a task of three writing turns, while the same is done as they did.

use crate::turn_scripts::turns;
use arborist_testkit::TestRepo;
use serde_json::Value;

const PROGRAMS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A repository whose agent does what a script does with the stream of a program.
fn repo(program: &str, change: impl Fn(String) -> String) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 the schema\n");
    repo.commit("a plan\n");
    agent(&repo, program, change);
    repo
}

fn agent(repo: &TestRepo, program: &str, change: impl Fn(String) -> String) {
    let stream =
        format!("{}/shared/tests/data/streams/{program}.implement.jsonl", env!("CARGO_MANIFEST_DIR"));
    crate::turn_scripts::agent(repo, program, &change(crate::turn_scripts::replay(program, &stream)));
}

/// The only session, and its turns.
fn session(repo: &TestRepo) -> (Value, Vec<Value>) {
    let json = |args: &[&str]| -> Value { serde_json::from_str(&repo.arborist(args).answer()).unwrap() };
    let session = json(&["session", "list", "--json"])["sessions"][0].clone();
    let turns = json(&["session", "turns", session["id"].as_str().unwrap(), "--json"]);
    (session, turns["turns"].as_array().unwrap().clone())
}

#[test]
fn recorded_streams_of_three_writing_turns_give_three_commits() {
    for program in PROGRAMS {
        let repo = repo(program, |script| script);
        repo.arborist(["gardener", "--model", "anthropic/m"]).succeeds();
        let commits = repo.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
        let commits: Vec<&str> = commits.lines().collect();
        assert_eq!(commits.len(), 3, "{program}: {:?}", turns(&repo));
        let changed = |commit: &str| repo.git(["show", "--format=", "--name-only", commit]).answer();
        let files = ["src/schema.sql", "docs/notes.md\nsrc/schema.sql", "src/seed.sql"];
        let (session, records) = session(&repo);
        for (commit, files) in commits.iter().zip(files) {
            assert_eq!(changed(commit), files, "{program}");
            let record = records.iter().find(|record| record["commit"] == *commit).unwrap();
            assert_eq!(record["files"].as_array().unwrap().len(), files.lines().count(), "{record}");
            let format = "--format=%(trailers:only,unfold)";
            let trailers = repo.git(["show", "-s", format, commit]).answer();
            let (model, provider) = (record["model"].as_str().unwrap(), record["provider"].as_str().unwrap());
            let expected = format!(
                "Arborist-Step: implement\nArborist-Retry: 0\nArborist-Model: {model}\nArborist-Provider: {provider}\n\
                 Arborist-Node: T001\nArborist-Pipeline: tasks\nArborist-Session: {}\nArborist-Turn: {}",
                session["id"].as_str().unwrap(),
                record["number"]
            );
            assert_eq!(trailers.trim(), expected, "{program}");
            assert!(model != "unknown" && provider != "unknown", "{program}: {trailers}");
        }
    }
}

#[test]
fn a_run_killed_during_a_turn_resumes_and_loses_nothing() {
    for program in PROGRAMS {
        let killed = |script: String| {
            let third = "3) echo 'insert into users values (1);' > src/seed.sql";
            assert!(script.contains(third));
            script.replace(third, "3) echo half > src/seed.sql; kill -9 $PPID; exit 1")
        };
        let repo = repo(program, killed);
        assert_ne!(repo.arborist(["gardener"]).code(), 0);
        let (crashed, before) = session(&repo);
        assert_eq!((&crashed["state"], &crashed["commits"]), (&"crashed".into(), &2.into()), "{program}");
        agent(&repo, program, |script| script);
        repo.arborist(["session", "resume", crashed["id"].as_str().unwrap()]).succeeds();
        let (resumed, after) = session(&repo);
        assert_eq!((&resumed["id"], &resumed["state"]), (&crashed["id"], &"complete".into()), "{program}");
        assert_eq!(after[..before.len()], before, "{program}: what was recorded stays");
        for commit in before.iter().filter_map(|turn| turn["commit"].as_str()) {
            repo.git(["merge-base", "--is-ancestor", commit, "main"]).succeeds();
        }
        let half = repo.git(["log", "--format=%s", "-S", "half", "main", "--", "src/seed.sql"]).answer();
        assert!(half.contains("T001@implement-fail"), "{program}: half a turn is in history: {half}");
        assert_eq!(repo.read("src/seed.sql"), "insert into users values (1);\n");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    }
}
