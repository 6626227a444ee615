//! The records of a session that works in several repositories tell what each turn did in each of them.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::test_workspace::TestWorkspace;
use serde_json::{Value, json};

/// The newest commit in the other repository with this in its subject.
fn newest_backend_commit(workspace: &TestWorkspace, subject: &str) -> String {
    let branch = workspace.session_branch("backend");
    workspace
        .git_in(
            &workspace.clone_of("backend"),
            ["log", "-1", "--format=%H", &format!("--grep={subject}"), &branch],
        )
        .answer()
}

#[test]
fn a_turn_record_names_commit_and_files_in_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let there = |message: &str| workspace.turn(&id, message)["others"].clone();
    assert_eq!(there("Write here"), Value::Null, "nothing is said where there is nothing to say");
    let other = |subject: &str, files: &[&str]| json!([{"repository": "backend", "commit": newest_backend_commit(&workspace, subject), "files": files}]);
    let only = workspace.turn(&id, "Write there");
    assert_eq!((&only["commit"], &only["files"]), (&Value::Null, &json!([])));
    assert_eq!(only["others"], other("@turn): Write there", &["kept.txt", "there.txt"]));
    let both = workspace.turn(&id, "Write in both");
    assert_eq!((&both["files"], both["commit"].is_string()), (&json!(["here.txt"]), true));
    assert_eq!(both["others"], other("@turn): Write in both", &["there.txt"]));
    // What agents did that tell of no turns is in the commits of their steps.
    assert_eq!(there("Add T002.txt"), other("T002@implement-pass", &["T002.txt"]));
    let only = workspace.turn(&id, "Add T003.txt");
    assert_eq!(
        (&only["commit"], &only["others"]),
        (&Value::Null, &other("T003@implement-pass", &["T003.txt"]))
    );
    let shown = workspace.json(&["session", "show", &id, "--json"]);
    assert_eq!((&shown["session"]["turns"], &shown["session"]["commits"]), (&9.into(), &5.into()));
}

#[test]
fn session_show_lists_the_changes_of_a_turn_in_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let show = |message: &str, more: &[&str]| {
        let number = workspace.turn(&id, message)["number"].to_string();
        let args = ["session", "show", &id, "--turn", &number];
        workspace.arborist(args.iter().chain(more)).succeeds()
    };
    let only = newest_backend_commit(&workspace, "@turn): Write there");
    show("Write there", &["--patch"])
        .out(&format!("commit    {only} in backend"))
        .out("wrote     backend:there.txt")
        .out("\nin backend\ndiff --git a/kept.txt b/kept.txt\ndeleted")
        .never("none")
        .never("in repo");
    show("Write in both", &["--patch"]).matches_snapshot();
    show("Write here", &["--patch"]).never("in repo").never("backend");
    let said: Value = serde_json::from_str(&show("Write there", &["--patch", "--json"]).stdout()).unwrap();
    assert_eq!((&said["patch"], &said["other_patches"][0]["repository"]), (&Value::Null, &"backend".into()));
    assert!(said["other_patches"][0]["patch"].as_str().unwrap().contains("+there 0"));
    workspace.arborist(["session", "turns", &id]).succeeds().out(&format!("  backend:{}  ", &only[..10]));
    // Elsewhere, the record is all that there is.
    fs::rename(workspace.clone_of("backend"), workspace.root().join("away")).unwrap();
    show("Write in both", &["--patch"]).matches_snapshot().never("\nin backend\n");
    let number = workspace.turn(&id, "Write in both")["number"].to_string();
    workspace.arborist(["session", "diff", &id, "0", &number]).succeeds().matches_snapshot();
}

#[test]
fn session_diff_shows_the_changes_in_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let number = |message: &str| workspace.turn(&id, message)["number"].to_string();
    let (here, there, both) = (number("Write here"), number("Write there"), number("Write in both"));
    let diff = |from: &str, to: &str, more: &[&str]| {
        let args = ["session", "diff", &id, from, to];
        workspace.arborist(args.iter().chain(more)).succeeds()
    };
    let said = diff(&here, &there, &[]).never("/here.txt").matches_snapshot();
    assert!(said.stdout().starts_with("in backend\ndiff --git a/kept.txt"), "{}", said.stdout());
    let said = diff(&there, &both, &[]).matches_snapshot().never("kept.txt");
    assert!(said.stdout().starts_with("in repo\ndiff --git a/here.txt"), "{}", said.stdout());
    diff("0", &here, &[]).never("backend").never("in repo");
    diff(&both, &here, &["--stat"]).matches_snapshot();
    diff(&both, &number("Add T003.txt"), &[]).matches_snapshot();
    let told: Value = serde_json::from_str(&diff(&here, &there, &["--json"]).stdout()).unwrap();
    assert_eq!(told["files"], json!([]));
    assert_eq!(told["others"][0]["files"], json!(["kept.txt", "there.txt"]));
    assert_eq!(told["others"][0]["to"], newest_backend_commit(&workspace, "@turn): Write there"));
}

#[test]
fn session_which_finds_a_commit_of_any_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let (turn, step) = (
        newest_backend_commit(&workspace, "@turn): Write there"),
        newest_backend_commit(&workspace, "T003@implement-pass"),
    );
    let backend = workspace.clone_of("backend");
    let house = backend.with_file_name("backend.arborist").join(format!("session-{id}"));
    for (message, commit, model) in
        [("Write there", &turn, "claude-sonnet-5"), ("Add T003", &step, "unknown")]
    {
        let number = workspace.turn(&id, message)["number"].to_string();
        let words = [format!("session {id}\n"), format!("turn {number}\n"), format!("model {model}\n")];
        for dir in [&backend, &house] {
            let said =
                workspace.arborist_in(dir, ["session", "which", commit]).succeeds().never("repository");
            words.iter().fold(said, |said, word| said.out(word)).never("warning");
        }
        let said = workspace.arborist(["session", "which", commit]).succeeds().matches_snapshot();
        words.iter().fold(said, |said, word| said.out(word)).never("warning");
    }
    let told: Value =
        serde_json::from_str(&workspace.arborist(["session", "which", &turn, "--json"]).answer()).unwrap();
    assert_eq!((&told["repository"], &told["proven"]), (&"backend".into(), &true.into()));
    workspace.arborist(["session", "which", "nothing"]).exits(1).matches_snapshot();
    // Where nobody knows of the plan, the commit's own word is all that there is.
    let copy = workspace.root().join("copy");
    workspace
        .git_in(
            workspace.root(),
            ["clone", "-q", "backend", "copy", "--branch", &workspace.session_branch("backend")],
        )
        .succeeds();
    workspace
        .arborist_in(&copy, ["session", "which", &turn])
        .exits(1)
        .out(&format!("session {id}"))
        .err("trailers say; the record of the session is not in this repository\n")
        .err(
            "hint: if the session is one of a workspace, run this command in the repository with its plan\n",
        );
}

#[test]
fn session_export_contains_commits_of_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let commit = newest_backend_commit(&workspace, "@turn): Write there");
    let export = ["session", "export", &id, "--format"];
    let said = workspace.arborist(export.iter().chain(&["agent-trace"])).succeeds().stdout();
    let traces: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trace = traces.iter().find(|trace| trace["vcs"]["revision"] == commit.as_str()).unwrap();
    assert_eq!(trace["metadata"]["git-arborist"]["repository"], "backend");
    assert_eq!(trace["files"][0]["path"], "there.txt");
    assert_eq!(traces.len(), 7);
    workspace
        .arborist(export.iter().chain(&["git-ai"]))
        .succeeds()
        .out(&format!("commit {commit} in backend\nthere.txt\n"));
    workspace.arborist(export.iter().chain(&["git-ai", "--write"])).succeeds().out(&commit);
    let backend = workspace.clone_of("backend");
    let note = workspace.git_in(&backend, ["notes", "--ref=ai", "show", &commit]).answer();
    assert!(note.contains("authorship/3.0.0") && note.contains("there.txt"), "{note}");
    workspace.arborist(export.iter().chain(&["git-ai", "--write"])).succeeds().matches_snapshot();
}

#[test]
fn session_export_contains_only_commits_that_name_their_session_themselves() {
    let (workspace, id) = TestWorkspace::of_session();
    let backend = workspace.clone_of("backend");
    let theirs = workspace.git_in(&backend, ["rev-parse", "main"]).answer();
    let mine = workspace.git(["rev-parse", "main"]).answer();
    let there = newest_backend_commit(&workspace, "@turn): Write there");
    // Twice the same, one of a person in each repository, and one of another turn.
    workspace.forge(&id, |record| match record["number"].as_u64() {
        Some(1) => record["commit"] = json!(mine),
        Some(3) => {
            let other = |commit: &str| json!({"repository": "backend", "commit": commit, "files": []});
            record["others"] = json!([other(&there), other(&theirs), other(&there)]);
        }
        Some(4) => record["others"][0]["commit"] = json!(there),
        _ => {}
    });
    let export = ["session", "export", &id, "--format", "git-ai", "--write"];
    let said = workspace.arborist(export).succeeds();
    let said = said.matches_snapshot();
    said.err("does not name this session").err("already has a note, which was not changed").out(&there);
    let notes = |place: &Path| workspace.git_in(place, ["notes", "--ref=ai", "list"]).answer();
    assert!(!notes(&backend).contains(&theirs) && notes(&backend).contains(&there));
    assert!(!notes(&workspace.path("")).contains(&mine));
}

#[test]
fn a_turn_that_changed_only_another_repository_is_pushed_at_once() {
    let workspace = TestWorkspace::of_turns();
    workspace.set("backend", "remote", workspace.remote_of("backend").to_str().unwrap());
    workspace.set("backend", "push", "on_checkpoint");
    let waits =
        "pushed() { git --git-dir=\"$ROOT/backend.git\" log --all --format=%s | grep -c 'Write there'; }
        tries=0; while [ \"$(pushed)\" = 0 ] && [ $tries -lt 6000 ]; do sleep 0.02; tries=$((tries+1)); done
        pushed > \"$ROOT/seen\"\n";
    fs::write(workspace.root().join("before-last.sh"), waits).unwrap();
    workspace.arborist(["gardener"]).succeeds();
    assert_eq!(fs::read_to_string(workspace.root().join("seen")).unwrap(), "1\n");
}

#[test]
fn records_without_other_repositories_are_still_read() {
    let (workspace, id) = TestWorkspace::of_session();
    // What an older version wrote: the same without the word.
    workspace.remove_others_from_records(&id);
    let only = newest_backend_commit(&workspace, "@turn): Write there");
    assert!(workspace.turns(&id).iter().all(|turn| turn["others"].is_null()));
    workspace.arborist(["session", "show", &id, "--turn", "3", "--patch"]).succeeds().matches_snapshot();
    workspace.arborist(["session", "which", &only]).exits(1).matches_snapshot();
}

#[test]
fn the_message_model_sees_changes_in_another_repository() {
    let workspace = TestWorkspace::of_turns();
    // It does not wait for its turns: they wait for their messages. It writes only there.
    let agent = fs::read_to_string(workspace.root().join("agent.sh")).unwrap().replace("-lt 600", "-lt 5");
    let lines = agent.lines().filter(|line| !line.starts_with("calls 2") && !line.starts_with("calls 4"));
    fs::write(workspace.root().join("agent.sh"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    let writer = "cat >> \"$HOME/asked\"; echo 'Introduce a file elsewhere'\n";
    fs::write(workspace.root().join("writer.sh"), writer).unwrap();
    let file = workspace.home().join(".config/git-arborist/config.toml");
    let more = format!(
        "[steps.commit-message]\nrunner = \"writer\"\n[runners.writer]\ncommand = [\"sh\", \"{}/writer.sh\"]\n",
        workspace.root().display()
    );
    fs::write(&file, fs::read_to_string(&file).unwrap() + &more).unwrap();
    workspace.arborist(["gardener"]).succeeds();
    assert!(!newest_backend_commit(&workspace, "@turn): Introduce a file elsewhere").is_empty());
    assert!(fs::read_to_string(workspace.home().join("asked")).unwrap().contains("+there 0"));
}

#[test]
fn a_link_in_place_of_the_cached_plan_location_is_replaced() {
    let (workspace, id) = TestWorkspace::of_session();
    let commit = newest_backend_commit(&workspace, "@turn): Write there");
    let folder = workspace.clone_of("backend").join(".git/arborist/cache/plans");
    let word = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let precious = workspace.root().join("precious");
    fs::write(&precious, "theirs").unwrap();
    fs::remove_file(&word).unwrap();
    symlink(&precious, &word).unwrap();
    workspace.arborist(["reset", "T003", "--scope", &workspace.session_branch("repo")]).succeeds();
    workspace.arborist(["gardener"]).succeeds();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
    assert!(fs::symlink_metadata(&word).unwrap().is_file());
    let said = workspace.arborist_in(&workspace.clone_of("backend"), ["session", "which", &commit]);
    said.succeeds().out(&format!("session {id}"));
}
