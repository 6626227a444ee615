//! Refs of ours that a crash damaged: they are left out with a warning that names them, and every command goes on from
//! history.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use arborist_testkit::TestRepo;

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
fn a_damaged_record_is_left_out_with_a_warning_and_the_run_goes_on_from_history() {
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
fn a_damaged_record_of_another_session_stops_no_run() {
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
fn a_damaged_ticket_stops_no_landing() {
    for damage in DAMAGES {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
        repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
        repo.arborist(["gardener", "--isolate"]).exits(1);
        let name = "refs/arborist/queue/tickets/main/T001";
        damage(&repo, name);
        repo.arborist(["merge", "run"]).succeeds().out("1 landed (T002)").err(name);
        repo.arborist(["state"]).succeeds();
    }
}
