//! The records of a session that works in several repositories tell what each turn did in each of them.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::town::Town;
use serde_json::{Value, json};

/// The newest commit in the other repository with this in its subject.
fn commit_there(town: &Town, subject: &str) -> String {
    let branch = town.session_branch("backend");
    town.git_in(
        &town.clone_of("backend"),
        ["log", "-1", "--format=%H", &format!("--grep={subject}"), &branch],
    )
    .answer()
}

#[test]
fn a_turn_names_its_commit_and_its_files_in_every_repository() {
    let (town, id) = Town::of_session();
    let there = |message: &str| town.turn(&id, message)["others"].clone();
    assert_eq!(there("Write here"), Value::Null, "nothing is said where there is nothing to say");
    let other = |subject: &str, files: &[&str]| json!([{"repository": "backend", "commit": commit_there(&town, subject), "files": files}]);
    let only = town.turn(&id, "Write there");
    assert_eq!((&only["commit"], &only["files"]), (&Value::Null, &json!([])));
    assert_eq!(only["others"], other("@turn): Write there", &["kept.txt", "there.txt"]));
    let both = town.turn(&id, "Write in both");
    assert_eq!((&both["files"], both["commit"].is_string()), (&json!(["here.txt"]), true));
    assert_eq!(both["others"], other("@turn): Write in both", &["there.txt"]));
    // What agents did that tell of no turns is in the commits of their steps.
    assert_eq!(there("Add T002.txt"), other("T002@implement-pass", &["T002.txt"]));
    let only = town.turn(&id, "Add T003.txt");
    assert_eq!(
        (&only["commit"], &only["others"]),
        (&Value::Null, &other("T003@implement-pass", &["T003.txt"]))
    );
    let shown = town.json(&["session", "show", &id, "--json"]);
    assert_eq!((&shown["session"]["turns"], &shown["session"]["commits"]), (&9.into(), &5.into()));
}

#[test]
fn a_turn_is_shown_with_all_that_it_changed() {
    let (town, id) = Town::of_session();
    let show = |message: &str, more: &[&str]| {
        let number = town.turn(&id, message)["number"].to_string();
        let args = ["session", "show", &id, "--turn", &number];
        town.arborist(args.iter().chain(more)).succeeds()
    };
    let only = commit_there(&town, "@turn): Write there");
    show("Write there", &["--patch"])
        .out(&format!("commit    {only} in backend"))
        .out("wrote     backend:there.txt")
        .out("\nin backend\ndiff --git a/kept.txt b/kept.txt\ndeleted")
        .never("none")
        .never("in repo");
    show("Write in both", &["--patch"]).shows();
    show("Write here", &["--patch"]).never("in repo").never("backend");
    let said: Value = serde_json::from_str(&show("Write there", &["--patch", "--json"]).stdout()).unwrap();
    assert_eq!((&said["patch"], &said["other_patches"][0]["repository"]), (&Value::Null, &"backend".into()));
    assert!(said["other_patches"][0]["patch"].as_str().unwrap().contains("+there 0"));
    town.arborist(["session", "turns", &id]).succeeds().out(&format!("  backend:{}  ", &only[..10]));
    // Elsewhere, the record is all that there is.
    fs::rename(town.clone_of("backend"), town.root().join("away")).unwrap();
    show("Write in both", &["--patch"]).shows().never("\nin backend\n");
    let number = town.turn(&id, "Write in both")["number"].to_string();
    town.arborist(["session", "diff", &id, "0", &number]).succeeds().shows();
}

#[test]
fn what_differs_between_turns_is_told_for_every_repository() {
    let (town, id) = Town::of_session();
    let number = |message: &str| town.turn(&id, message)["number"].to_string();
    let (here, there, both) = (number("Write here"), number("Write there"), number("Write in both"));
    let diff = |from: &str, to: &str, more: &[&str]| {
        let args = ["session", "diff", &id, from, to];
        town.arborist(args.iter().chain(more)).succeeds()
    };
    let said = diff(&here, &there, &[]).never("/here.txt").shows();
    assert!(said.stdout().starts_with("in backend\ndiff --git a/kept.txt"), "{}", said.stdout());
    let said = diff(&there, &both, &[]).shows().never("kept.txt");
    assert!(said.stdout().starts_with("in repo\ndiff --git a/here.txt"), "{}", said.stdout());
    diff("0", &here, &[]).never("backend").never("in repo");
    diff(&both, &here, &["--stat"]).shows();
    diff(&both, &number("Add T003.txt"), &[]).shows();
    let told: Value = serde_json::from_str(&diff(&here, &there, &["--json"]).stdout()).unwrap();
    assert_eq!(told["files"], json!([]));
    assert_eq!(told["others"][0]["files"], json!(["kept.txt", "there.txt"]));
    assert_eq!(told["others"][0]["to"], commit_there(&town, "@turn): Write there"));
}

#[test]
fn a_commit_is_asked_about_in_any_repository() {
    let (town, id) = Town::of_session();
    let (turn, step) =
        (commit_there(&town, "@turn): Write there"), commit_there(&town, "T003@implement-pass"));
    let backend = town.clone_of("backend");
    let house = backend.with_file_name("backend.arborist").join(format!("session-{id}"));
    for (message, commit, model) in
        [("Write there", &turn, "claude-sonnet-5"), ("Add T003", &step, "unknown")]
    {
        let number = town.turn(&id, message)["number"].to_string();
        let words = [format!("session {id}\n"), format!("turn {number}\n"), format!("model {model}\n")];
        for dir in [&backend, &house] {
            let said = town.arborist_in(dir, ["session", "which", commit]).succeeds().never("repository");
            words.iter().fold(said, |said, word| said.out(word)).never("warning");
        }
        let said = town.arborist(["session", "which", commit]).succeeds().shows();
        words.iter().fold(said, |said, word| said.out(word)).never("warning");
    }
    let told: Value =
        serde_json::from_str(&town.arborist(["session", "which", &turn, "--json"]).answer()).unwrap();
    assert_eq!((&told["repository"], &told["proven"]), (&"backend".into(), &true.into()));
    town.arborist(["session", "which", "nothing"]).exits(128).shows();
    // Where nobody knows of the plan, the commit's own word is all that there is.
    let copy = town.root().join("copy");
    town.git_in(town.root(), ["clone", "-q", "backend", "copy", "--branch", &town.session_branch("backend")])
        .succeeds();
    town.arborist_in(&copy, ["session", "which", &turn])
        .exits(1)
        .out(&format!("session {id}"))
        .err("if its plan is in another repository, ask there");
}

#[test]
fn other_tools_are_told_of_the_commits_in_every_repository() {
    let (town, id) = Town::of_session();
    let commit = commit_there(&town, "@turn): Write there");
    let export = ["session", "export", &id, "--format"];
    let said = town.arborist(export.iter().chain(&["agent-trace"])).succeeds().stdout();
    let traces: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trace = traces.iter().find(|trace| trace["vcs"]["revision"] == commit.as_str()).unwrap();
    assert_eq!(trace["metadata"]["git-arborist"]["repository"], "backend");
    assert_eq!(trace["files"][0]["path"], "there.txt");
    assert_eq!(traces.len(), 7);
    town.arborist(export.iter().chain(&["git-ai"]))
        .succeeds()
        .out(&format!("commit {commit} in backend\nthere.txt\n"));
    town.arborist(export.iter().chain(&["git-ai", "--write"])).succeeds().out(&commit);
    let backend = town.clone_of("backend");
    let note = town.git_in(&backend, ["notes", "--ref=ai", "show", &commit]).answer();
    assert!(note.contains("authorship/3.0.0") && note.contains("there.txt"), "{note}");
    town.arborist(export.iter().chain(&["git-ai", "--write"])).succeeds().shows();
}

#[test]
fn other_tools_are_told_only_of_commits_that_say_themselves_whose_they_are() {
    let (town, id) = Town::of_session();
    let backend = town.clone_of("backend");
    let theirs = town.git_in(&backend, ["rev-parse", "main"]).answer();
    let mine = town.git(["rev-parse", "main"]).answer();
    let there = commit_there(&town, "@turn): Write there");
    // Twice the same, one of a person in each repository, and one of another turn.
    town.forge(&id, |record| match record["number"].as_u64() {
        Some(1) => record["commit"] = json!(mine),
        Some(3) => {
            let other = |commit: &str| json!({"repository": "backend", "commit": commit, "files": []});
            record["others"] = json!([other(&there), other(&theirs), other(&there)]);
        }
        Some(4) => record["others"][0]["commit"] = json!(there),
        _ => {}
    });
    let export = ["session", "export", &id, "--format", "git-ai", "--write"];
    let said = town.arborist(export).succeeds();
    let said = said.shows();
    said.err("which does not say so itself: it is left out").err("has a note already").out(&there);
    let notes = |place: &Path| town.git_in(place, ["notes", "--ref=ai", "list"]).answer();
    assert!(!notes(&backend).contains(&theirs) && notes(&backend).contains(&there));
    assert!(!notes(&town.path("")).contains(&mine));
}

#[test]
fn a_turn_that_changed_only_another_repository_is_pushed_at_once() {
    let town = Town::of_turns();
    town.set("backend", "remote", town.remote_of("backend").to_str().unwrap());
    town.set("backend", "push", "on_checkpoint");
    let waits =
        "pushed() { git --git-dir=\"$ROOT/backend.git\" log --all --format=%s | grep -c 'Write there'; }
        tries=0; while [ \"$(pushed)\" = 0 ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done
        pushed > \"$ROOT/seen\"\n";
    fs::write(town.root().join("before-last.sh"), waits).unwrap();
    town.arborist(["gardener"]).succeeds();
    assert_eq!(fs::read_to_string(town.root().join("seen")).unwrap(), "1\n");
}

#[test]
fn a_record_that_names_no_other_repository_is_read_as_before() {
    let (town, id) = Town::of_session();
    // What an older version wrote: the same without the word.
    town.forget_others(&id);
    let only = commit_there(&town, "@turn): Write there");
    assert!(town.turns(&id).iter().all(|turn| turn["others"].is_null()));
    town.arborist(["session", "show", &id, "--turn", "3", "--patch"]).succeeds().shows();
    town.arborist(["session", "which", &only]).exits(1).shows();
}

#[test]
fn a_model_that_is_asked_for_a_message_sees_what_changed_in_another_repository() {
    let town = Town::of_turns();
    // It does not wait for its turns: they wait for their messages. It writes only there.
    let agent = fs::read_to_string(town.root().join("agent.sh")).unwrap().replace("-lt 600", "-lt 5");
    let lines = agent.lines().filter(|line| !line.starts_with("calls 2") && !line.starts_with("calls 4"));
    fs::write(town.root().join("agent.sh"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    let scribe = "cat >> \"$HOME/asked\"; echo 'Introduce a file elsewhere'\n";
    fs::write(town.root().join("scribe.sh"), scribe).unwrap();
    let file = town.home().join(".config/git-arborist/config.toml");
    let more = format!(
        "[steps.commit-message]\nrunner = \"scribe\"\n[runners.scribe]\ncommand = [\"sh\", \"{}/scribe.sh\"]\n",
        town.root().display()
    );
    fs::write(&file, fs::read_to_string(&file).unwrap() + &more).unwrap();
    town.arborist(["gardener"]).succeeds();
    assert!(!commit_there(&town, "@turn): Introduce a file elsewhere").is_empty());
    assert!(fs::read_to_string(town.home().join("asked")).unwrap().contains("+there 0"));
}

#[test]
fn the_word_where_a_plan_is_takes_the_place_of_a_link() {
    let (town, id) = Town::of_session();
    let commit = commit_there(&town, "@turn): Write there");
    let folder = town.clone_of("backend").join(".git/arborist/cache/plans");
    let word = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let precious = town.root().join("precious");
    fs::write(&precious, "theirs").unwrap();
    fs::remove_file(&word).unwrap();
    symlink(&precious, &word).unwrap();
    town.arborist(["reset", "T003", "--scope", &town.session_branch("repo")]).succeeds();
    town.arborist(["gardener"]).succeeds();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
    assert!(fs::symlink_metadata(&word).unwrap().is_file());
    let said = town.arborist_in(&town.clone_of("backend"), ["session", "which", &commit]);
    said.succeeds().out(&format!("session {id}"));
}
