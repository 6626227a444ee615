//! What `git arborist session list` and `turns` look like for a person.

use crate::turn_scripts::repo;
use arborist_testkit::{Terminal, TestRepo, WORKER};

#[test]
fn session_list_has_headings_and_fits_the_terminal() {
    let repo =
        TestRepo::planned("specs/a long way/to the plan of this/tasks.md", "- [ ] T001 do a\n", WORKER);
    let plan = "specs/a long way/to the plan of this/tasks.md";
    repo.arborist(["gardener", "--session-branch", "--tree", plan]).succeeds();
    let listed = repo.arborist(["session", "list"]).succeeds().stdout();
    let lines: Vec<&str> = listed.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(
        words,
        ["session", "state", "turns", "last", "active", "branch", "plan"],
        "tokens nobody told are left out"
    );
    assert!(lines[1].contains(plan) && lines[1].contains("complete  2 "), "{listed}");
    let column = |word: &str, line: &str| line.find(word).unwrap();
    assert_eq!(column("branch", lines[0]), column("arborist/", lines[1]));
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "session", "list"]);
    let (code, screen, _) = Terminal::start(command, 80).ends();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("complete") && screen.contains('…'), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    let id = lines[1].split_whitespace().next().unwrap();
    let turns = repo.arborist(["session", "turns", id]).succeeds().stdout();
    assert!(turns.starts_with("turn  task  step "), "{turns}");
    assert!(!turns.contains("unknown"), "{turns}");
    repo.arborist(["session", "show", id, "--turn", "1"]).succeeds().matches_snapshot().never("unknown");
}

#[test]
fn interrupted_turns_are_marked() {
    let stops = "opens\ncalls 1 \"I add a\"; echo a > a; answers 1\ncalls 2 \"I add b\"; echo b > b; kill -INT $PPID; sleep 60\n";
    let streaming = repo("claude", stops);
    let plain =
        TestRepo::planned("tasks.md", "- [ ] T001 do a\n", "echo half > half; kill -INT $PPID; sleep 60\n");
    for (repo, last) in [(streaming, "2"), (plain, "1")] {
        repo.arborist(["gardener"]).exits(130);
        let listed = repo.arborist(["session", "list", "--json"]).answer();
        let list: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
        let turns = repo.arborist(["session", "turns", &id]).succeeds().stdout();
        let marked: Vec<&str> = turns.lines().filter(|line| line.contains("(interrupted)")).collect();
        assert_eq!(marked.len(), 1, "{turns}");
        assert!(marked[0].starts_with(last), "{turns}");
        repo.arborist(["session", "show", &id, "--turn", last]).succeeds().matches_snapshot();
    }
}

#[test]
fn the_list_of_turns_shows_verdicts_attempts_and_resumed_turns() {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 do a\n",
        "case \"$prompt\" in Review*) [ -e again ] || { echo 'REJECTED: too short'; exit; }; echo APPROVED ;; \
         *) [ ! -e a ] || echo more > again; echo a > a ;; esac\n",
    );
    repo.arborist(["gardener"]).succeeds();
    let id = repo.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
    let turns = || repo.arborist(["session", "turns", &id]).succeeds().stdout();
    let told = turns();
    let reviews: Vec<&str> = told.lines().filter(|line| line.contains("review #")).collect();
    assert!(reviews[0].contains("review #1") && reviews[0].contains("REJECTED: too short"), "{told}");
    assert!(reviews[1].contains("review #2") && reviews[1].contains("APPROVED"), "{told}");
    assert!(told.contains("implement #2"), "{told}");
    assert!(!told.contains("went back"), "{told}");
    repo.arborist(["session", "show", &id, "--turn", "2"]).succeeds().matches_snapshot();
    repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    let told = turns();
    let back = told.lines().position(|line| line.contains("resumed") && line.contains("went back to turn 1"));
    assert_eq!(back, Some(5), "{told}");
    let json = repo.arborist(["session", "turns", &id, "--json"]).answer();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["resumed"], serde_json::json!([{"turn": 1, "after": 4}]));
}

#[test]
fn session_list_in_a_clone_without_records_says_how_to_fetch_them() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.arborist(["session", "list"]).succeeds().silent().matches_snapshot().never("git fetch");
    repo.arborist(["gardener"]).succeeds();
    let (from, clone) = (repo.path(""), repo.path("../clone"));
    repo.git_in(repo.root(), ["clone", "-q", from.to_str().unwrap(), clone.to_str().unwrap()]).succeeds();
    let said = repo.arborist_in(&clone, ["session", "list"]).succeeds().silent();
    said.matches_snapshot();
    repo.git_in(&clone, ["fetch", "-q", "origin", "refs/arborist/*:refs/arborist/*"]).succeeds();
    repo.arborist_in(&clone, ["session", "list"]).succeeds().matches_snapshot();
}

#[test]
fn sessions_of_the_same_second_are_listed_newest_first() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    let mut begun: Vec<String> = Vec::new();
    for number in 0..4 {
        repo.arborist(["gardener", "--new-run", "--report-dir", &format!("report-{number}")]).succeeds();
        let all =
            repo.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
        let new = all.lines().find(|id| !begun.iter().any(|known| known == id)).unwrap().to_owned();
        begun.insert(0, new);
    }
    let listed = repo.arborist(["session", "list"]).succeeds().stdout();
    let listed: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed, begun);
}
