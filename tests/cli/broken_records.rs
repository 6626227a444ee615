//! Refs of ours that a crash damaged: they are left out with a warning that names them, and every command goes on from
//! history.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use arborist_testkit::{TestRepo, pairs};

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p'); echo "$task" > "$task.txt" ;;
esac
"#;

/// How the newest record of a session is damaged.
const DAMAGES: [fn(&TestRepo, &str); 3] = [corrupt_object, zero_ref, replace_by_garbage];

fn corrupt_object(repo: &TestRepo, name: &str) {
    let id = repo.git(["rev-parse", name]).answer();
    let file = repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(file, "no object").unwrap();
}

fn zero_ref(repo: &TestRepo, name: &str) {
    fs::write(repo.path(&format!(".git/{name}")), [0; 41]).unwrap();
}

fn replace_by_garbage(repo: &TestRepo, name: &str) {
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let garbage = repo.commit_object(&tree, &[], "no record\n\nat all\n");
    repo.git(["update-ref", name, &garbage]).succeeds();
}

/// The refs of sessions.
fn sessions(repo: &TestRepo) -> Vec<String> {
    let folder = PathBuf::from("refs/arborist/sessions");
    let names = fs::read_dir(repo.path(".git").join(&folder)).unwrap();
    names.map(|name| folder.join(name.unwrap().file_name()).display().to_string()).collect()
}

#[test]
fn a_damaged_session_record_is_skipped_with_a_warning_and_the_run_continues_from_history() {
    for damage in DAMAGES {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
        repo.arborist(["gardener", "--only", "T001"]).succeeds();
        let name = sessions(&repo).pop().unwrap();
        damage(&repo, &name);
        repo.arborist(["session", "list"]).succeeds().err(&name);
        repo.arborist(["state"]).succeeds().out("1 of 2 done");
        let calls = repo.calls();
        repo.arborist(["gardener"]).succeeds().err(&name).out("1 completed");
        assert_eq!(repo.calls(), calls + 2, "the first task is not done again");
        repo.arborist(["state", "--exit-code"]).succeeds().never(&name);
        repo.arborist(["session", "list"]).succeeds().never(&name).out("complete");
    }
}

#[test]
fn a_damaged_record_of_another_session_does_not_stop_a_run() {
    for damage in DAMAGES {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
        repo.arborist(["gardener", "--session-branch"]).succeeds();
        let name = sessions(&repo).pop().unwrap();
        damage(&repo, &name);
        repo.arborist(["garden", "T001"]).succeeds();
        repo.arborist(["session", "list"]).succeeds().err(&name).out("complete");
    }
}

#[test]
fn a_session_with_a_damaged_record_is_continued_from_its_branch_with_a_new_record() {
    for damage in DAMAGES {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
        repo.arborist(["gardener", "--session-branch", "--only", "T001"]).succeeds();
        let name = sessions(&repo).pop().unwrap();
        let session = name.rsplit('/').next().unwrap().to_owned();
        damage(&repo, &name);
        let calls = repo.calls();
        let words = format!("session '{session}' is damaged: its record '{name}' could not be read");
        repo.arborist(["session", "list"])
            .succeeds()
            .out(&session)
            .out("damaged")
            .err("gardener --session-branch");
        for verb in [&["resume", &session][..], &["resume"], &["show", &session[..6]]] {
            repo.arborist(["session"].iter().chain(verb))
                .exits(2)
                .err(&words)
                .err("gardener --session-branch");
        }
        assert_eq!(repo.calls(), calls);
        // The branch says what was done.
        let said = repo.arborist(["gardener", "--session-branch"]).succeeds();
        said.err(&name).err(&format!("continuing session '{session}'")).out("1 completed (T002)");
        assert_eq!((repo.calls(), sessions(&repo).len()), (calls + 2, 1));
        repo.arborist(["gardener", "--session-branch"]).succeeds().never(&name);
        repo.arborist(["session", "list"]).succeeds().never("damaged").out("complete");
        repo.arborist(["session", "show", &session]).succeeds();
    }
}

#[test]
fn a_damaged_session_is_listed_in_json_with_the_reason() {
    for damage in DAMAGES {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
        repo.arborist(["gardener"]).succeeds();
        let listed = || -> serde_json::Value {
            serde_json::from_str(&repo.arborist(["session", "list", "--json"]).succeeds().stdout()).unwrap()
        };
        assert_eq!(listed()["damaged"], serde_json::json!([]));
        let name = sessions(&repo).pop().unwrap();
        damage(&repo, &name);
        let found = listed();
        assert_eq!(found["sessions"], serde_json::json!([]));
        assert_eq!(found["damaged"].as_array().unwrap().len(), 1, "{found}");
        let damaged = &found["damaged"][0];
        assert_eq!(damaged["id"], name.rsplit('/').next().unwrap());
        assert_eq!(damaged["record"], name);
        assert!(!damaged["damaged"].as_str().unwrap().is_empty(), "{found}");
    }
}

#[test]
fn a_new_run_is_not_stopped_by_the_damaged_record_of_an_earlier_session() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    zero_ref(&repo, &sessions(&repo).pop().unwrap());
    repo.wait(60);
    repo.arborist(["gardener", "--session-branch", "--new-run"]).succeeds();
    repo.arborist(["gardener", "--session-branch"]).succeeds().err("continuing session");
}

fn remove_object(repo: &TestRepo, name: &str) {
    let id = repo.git(["rev-parse", name]).answer();
    fs::remove_file(repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
}

/// A repository in which T002 has landed, and the branch of T001 has two commits of its own.
fn with_two_branches() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener", "--isolate"]).succeeds();
    repo.git(["checkout", "-q", "-b", "arborist/task/main/T001"]).succeeds();
    for text in ["one", "two"] {
        repo.write("work.txt", text);
        repo.commit("task(main@T001@implement-pass): implement one\n");
    }
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo
}

#[test]
fn cleanup_reports_a_damaged_ref_and_cleans_up_the_rest() {
    let kinds: [fn(&TestRepo, &str); 2] = [corrupt_object, remove_object];
    // Records, the log of the queue, a branch, and objects that the branch needs.
    let damaged = [
        ("arborist/sessions", ""),
        ("arborist/transcripts", ""),
        ("arborist/queue", ""),
        ("T001", ""),
        ("T001", "^"),
        ("T001", "^{tree}"),
    ];
    for ((name, object), damage) in pairs(&damaged, &kinds) {
        let repo = with_two_branches();
        let refs = repo.git(["for-each-ref", "--format=%(refname)"]).answer();
        let name = refs.lines().find(|found| found.contains(name)).unwrap();
        damage(&repo, &format!("{name}{object}"));
        for args in [&["cleanup", "--older-than", "0", "--dry-run"][..], &["cleanup", "--older-than", "0"]] {
            repo.arborist(args).exits(1).err(name).out("main/T002");
        }
        assert!(repo.path(&format!(".git/{name}")).exists(), "{name}{object} is gone");
        let landed = repo.git(["rev-parse", "-q", "--verify", "arborist/task/main/T002"]);
        assert_ne!(landed.code(), 0, "{name}{object}: the rest is cleaned up");
        repo.arborist(["cleanup", "saved"]).succeeds();
    }
}

/// Two tasks that are complete and wait in the queue.
fn queued() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    repo
}

#[test]
fn a_damaged_ticket_does_not_stop_other_landings() {
    for damage in DAMAGES {
        let (repo, name) = (queued(), "refs/arborist/queue/tickets/main/T001");
        damage(&repo, name);
        repo.arborist(["merge", "run"]).succeeds().out("1 landed (T002)").err(name);
        repo.arborist(["state"]).succeeds();
    }
}

#[test]
fn a_damaged_ticket_is_saved_and_replaced_when_its_task_is_queued_again() {
    for damage in DAMAGES {
        let (repo, name) = (queued(), "refs/arborist/queue/tickets/main/T001");
        damage(&repo, name);
        let garbage = repo.git(["rev-parse", "-q", "--verify", name]);
        let garbage = (garbage.code() == 0).then(|| garbage.stdout().trim().to_owned());
        let readable = garbage.filter(|id| repo.git(["cat-file", "commit", id]).code() == 0);
        repo.git(["config", "arborist.merge.auto", "true"]).succeeds();
        repo.wait(60);
        let said = repo.arborist(["gardener", "--isolate"]).succeeds().err(name).never("update-ref -d");
        assert!(repo.git(["log", "--format=%s", "main"]).answer().contains("@T001@merge)"));
        if let Some(id) = readable {
            let saved = format!("refs/arborist/saved/main/T001/ticket-{}", &id[..10]);
            assert!(said.stderr().contains(&saved), "{}", said.stderr());
            assert_eq!(repo.git(["rev-parse", &saved]).answer(), id);
        }
    }
}

#[test]
fn broken_refs_of_any_kind_are_reported_and_do_not_stop_a_run_in_lanes() {
    let names = [
        "refs/heads/mine",
        "refs/tags/v1",
        "refs/arborist/queue/tickets/main/T009",
        "refs/arborist/transcripts/old",
        "refs/arborist/saved/x/y",
    ];
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).succeeds();
    for name in names {
        let file = repo.path(&format!(".git/{name}"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, []).unwrap();
    }
    // A branch whose commit cannot be read is the same to git.
    let lost = repo.git(["commit-tree", "-m", "lost", "HEAD^{tree}"]).answer();
    repo.git(["branch", "lost", &lost]).succeeds();
    corrupt_object(&repo, "refs/heads/lost");
    let said = repo.arborist(["gardener", "--isolate"]).succeeds().out("1 completed (T002)");
    for name in names.into_iter().chain(["refs/heads/lost"]) {
        assert!(said.stderr().contains(&format!("warning: '{name}' could not be read")), "{}", said.stderr());
    }
}

#[test]
fn a_broken_ref_of_the_user_is_reported_once_by_a_run_in_the_checkout() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    for (name, content) in [("refs/heads/mine", vec![b'0'; 40]), ("refs/tags/v1", vec![0; 41])] {
        let file = repo.path(&format!(".git/{name}"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let said = repo.arborist(["gardener"]).succeeds();
    for name in ["refs/heads/mine", "refs/tags/v1"] {
        let words = format!("warning: '{name}' could not be read");
        assert_eq!(said.stderr().matches(&words).count(), 1, "{}", said.stderr());
    }
}

#[test]
fn an_empty_session_record_is_not_taken_for_a_change_by_the_test_command() {
    for options in [&[][..], &["--isolate"], &["--session-branch"]] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
        let run = |more: &[&str]| {
            let all = ["gardener", "--test-command"].iter().chain(more).chain(options);
            repo.arborist(all.copied().collect::<Vec<_>>())
        };
        run(&["true", "--only", "T001"]).succeeds();
        let name = sessions(&repo).pop().unwrap();
        fs::write(repo.path(&format!(".git/{name}")), []).unwrap();
        run(&["test 1 = 1"])
            .succeeds()
            .err(&name)
            .never("was created while an agent or a command ran")
            .out("1 completed (T002)");
    }
}
