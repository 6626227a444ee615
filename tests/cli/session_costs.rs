//! What sessions have spent: told by turns, told at the end of a call, or not spent at all.

use std::fs;

use crate::{session_repo::sessions, turn_scripts::repo};
use arborist_testkit::TestRepo;
use serde_json::Value;

/// Two turns that tell their tokens, and an end that tells the cost and all tokens.
const WORK: &str = r#"
opens
calls 1 "I add a"; echo a$n > a; answers 1
calls 2 "I add b"; echo b$n > b; answers 2
echo '{"type":"assistant","message":{"id":"last","content":[{"type":"text","text":"done"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.25,"usage":{"input_tokens":30,"output_tokens":7}}'
"#;

/// What the only session came to, by its newest record: tokens and cost.
fn spent(repo: &TestRepo) -> (u64, u64, Option<f64>) {
    let all = sessions(repo);
    assert_eq!(all.len(), 1, "{all:#?}");
    (all[0]["tokens_in"].as_u64().unwrap(), all[0]["tokens_out"].as_u64().unwrap(), all[0]["cost"].as_f64())
}

/// The sum of a trailer over a branch.
fn sum_of(repo: &TestRepo, key: &str, branch: &str) -> Option<f64> {
    let format = format!("--format=%(trailers:key=Arborist-{key},valueonly)");
    let told = repo.git(["log", &format, branch]).answer();
    let values: Vec<f64> = told.split_whitespace().map(|value| value.parse().unwrap()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[test]
fn usage_reported_at_the_end_of_a_call_is_counted_once() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(spent(&repo), (30, 7, Some(0.25)), "the turns have told 20 and 4 of it");
    let id = sessions(&repo)[0]["id"].as_str().unwrap().to_owned();
    repo.arborist(["session", "list"]).succeeds().matches_snapshot();
    repo.arborist(["session", "show", &id]).succeeds().matches_snapshot();
    let export: Value = serde_json::from_str(&repo.arborist(["session", "export", &id]).answer()).unwrap();
    let told: Vec<&Value> = export["records"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| !record["beside_turns"].is_null())
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["kind"], &told[0]["status"]), (&"checkpoint".into(), &"implement-pass".into()));
    assert_eq!(
        told[0]["beside_turns"],
        serde_json::json!({"tokens": {"read": 10, "written": 3}, "cost": 0.25})
    );
}

#[test]
fn session_totals_equal_the_sums_in_its_commits_for_every_program() {
    for program in ["claude", "codex", "gemini", "opencode"] {
        let repo = crate::turn_scripts::recorded(program);
        let (read, written, cost) = spent(&repo);
        let sum = |key: &str| sum_of(&repo, key, "main");
        assert_eq!(
            (Some(read as f64), Some(written as f64)),
            (sum("Tokens-In"), sum("Tokens-Out")),
            "{program}"
        );
        assert!(read > 0, "{program}");
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(
            match (cost, sum("Cost")) {
                (Some(told), Some(committed)) => close(told, committed),
                (told, committed) => told == committed,
            },
            "{program}: {cost:?}"
        );
    }
}

#[test]
fn the_cost_of_a_rejected_review_is_counted() {
    let repo = repo("claude", WORK);
    let judge = r#"if [ ! -e "$HOME/seen" ]; then touch "$HOME/seen"
echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"REJECTED: no"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"REJECTED: no","total_cost_usd":0.5}'
else echo '{"type":"result","subtype":"success","is_error":false,"result":"APPROVED","total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":1}}'; fi
"#;
    crate::turn_scripts::judge(&repo, judge);
    let file = repo.home().join(".config/git-arborist/config.toml");
    let config = fs::read_to_string(&file).unwrap() + "events = \"claude\"\n";
    fs::write(&file, config).unwrap();
    repo.arborist(["gardener"]).succeeds();
    let (_, _, cost) = spent(&repo);
    assert_eq!(cost, sum_of(&repo, "Cost", "main"));
}

#[test]
fn records_of_older_versions_are_read() {
    let repo = TestRepo::init();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    let record = format!(
        r#"{{"session":"old1","sequence":0,"time":"2026-01-01T00:00:00Z","totals":{{"turns":0,"commits":0,"tokens_in":0,"tokens_out":0,"cost":null}},"context":{{"started":"2026-01-01T00:00:00Z","branch":"main","plan":null,"pipeline":"mine","driver":"other","forked_from":null,"head":"{head}","tip":"{head}","start":null,"checkpoint":null}},"kind":"start","repositories":[{{"name":"repo","branch":"main","base":"{head}"}}],"plan":null,"pipeline":"mine","driver":"other","options":{{}},"forked_from":null}}"#
    );
    let empty = repo.git(["hash-object", "-t", "tree", "-w", "/dev/null"]).answer();
    let commit = repo.commit_object(&empty, &[head], format!("session old1: start\n\n{record}\n"));
    repo.git(["update-ref", "refs/arborist/sessions/old1", &commit]).succeeds();
    repo.arborist(["session", "list"]).succeeds().matches_snapshot().never("cannot be read");
    repo.arborist(["session", "end", "--session", "old1"]).succeeds();
    repo.arborist(["session", "show", "old1"]).succeeds().matches_snapshot();
}

/// Nobody can be called from now on.
fn make_runners_unavailable(repo: &TestRepo, test: &str) {
    let config = format!(
        "runner = \"robot\"\ntest-command = \"{test}\"\n[runners.robot]\ncommand = [\"nobody-is-called-so\"]\n"
    );
    fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
}

#[test]
fn an_offline_replay_reports_that_it_costs_nothing() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let id = sessions(&repo)[0]["id"].as_str().unwrap().to_owned();
    make_runners_unavailable(&repo, "true");
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
    said.matches_snapshot().never("tokens").never("$0.25");
    let played = sessions(&repo).into_iter().find(|session| session["id"] != id.as_str()).unwrap();
    assert_eq!((&played["tokens_in"], &played["cost"]), (&0.into(), &Value::Null));
    assert_eq!((&played["offline"], &played["state"]), (&true.into(), &"complete".into()));
    let branch = played["branch"].as_str().unwrap();
    assert_eq!(sum_of(&repo, "Cost", &format!("main..{branch}")), None);
    repo.arborist(["session", "show", played["id"].as_str().unwrap()])
        .succeeds()
        .out(&format!("turn 0 of {id}, offline"));
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline", "--json"]).succeeds();
    let lines: Vec<Value> = said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = &lines.last().unwrap()["summary"];
    assert_eq!((&last["offline"], &last["spent"]["cost"]), (&true.into(), &Value::Null));
    assert!(lines.iter().all(|line| line["spent"]["tokens_in"].as_u64().unwrap_or(0) == 0), "{lines:#?}");
}

#[test]
fn a_killed_offline_replay_cannot_be_resumed_with_real_agents() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let id = sessions(&repo)[0]["id"].as_str().unwrap().to_owned();
    let (config, calls) = (repo.home().join(".config/git-arborist/config.toml"), repo.calls());
    let before = fs::read_to_string(&config).unwrap();
    make_runners_unavailable(&repo, "kill -9 $PPID; sleep 60");
    repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).exits(137);
    let played = sessions(&repo).into_iter().find(|session| session["id"] != id.as_str()).unwrap();
    let new = played["id"].as_str().unwrap();
    fs::write(&config, before).unwrap();
    let house = repo.path(&format!("../repo.arborist/session-{new}"));
    let refused = [
        repo.arborist(["session", "resume", new]),
        repo.arborist_in(&house, ["gardener"]),
        repo.arborist(["session", "resume", new, "--turn", "1"]),
    ];
    for said in refused {
        said.exits(1)
            .err("is an offline replay, which calls no model")
            .err(&format!("session replay {id} --turn 0 --offline"))
            .err(&format!("session replay {new} --turn 3"));
    }
    repo.arborist(["session", "resume"]).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), calls);
    repo.arborist(["session", "replay", new, "--turn", "3"]).succeeds();
}
