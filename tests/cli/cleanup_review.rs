//! What was once lost, or held up, by cleaning up: each of these tests shows that it is not any more.

use std::{fs, net::TcpListener, os::unix::fs::symlink, process::Stdio};

use crate::compost::Compost;

const ALL: &[&str] = &["--older-than", "0", "--force"];

#[test]
fn what_is_staged_is_saved_each_time_though_the_files_are_the_same() {
    let compost = Compost::new();
    compost.branch("T1", "t.txt", "t");
    compost.land("T1");
    for staged in ["staged-first", "staged-second"] {
        let path = compost.worktree("T1");
        fs::write(path.join("a.txt"), staged).unwrap();
        compost.git_in(&path, ["add", "a.txt"]).succeeds();
        fs::write(path.join("a.txt"), "final").unwrap();
        compost.cleanup(&[ALL, &["--only", "worktrees"]].concat()).succeeds();
        assert!(!path.exists());
    }
    let mut kept = Vec::new();
    for name in compost.refs("refs/arborist/saved") {
        assert_eq!(compost.git(["cat-file", "blob", &format!("{name}:a.txt")]).answer(), "final");
        kept.push(compost.git(["cat-file", "blob", &format!("{name}~1:a.txt")]).answer());
    }
    kept.sort();
    assert_eq!(kept, ["staged-first", "staged-second"]);
}

#[test]
fn a_name_of_saved_work_that_leads_elsewhere_saves_nothing() {
    let compost = Compost::new();
    let tip = compost.branch("T1", "t.txt", "t");
    compost.cleanup(ALL).succeeds();
    let saved = compost.refs("refs/arborist/saved");
    assert_eq!(saved.len(), 1);
    compost.git(["update-ref", &saved[0], "main"]).succeeds();
    compost.git(["update-ref", "refs/heads/arborist/task/main/T1", &tip]).succeeds();
    compost.cleanup(ALL).succeeds();
    assert!(!compost.has("T1"));
    let kept = compost.git(["for-each-ref", "--contains", &tip, "refs/arborist/saved"]).answer();
    assert!(kept.contains(&format!("{}-{tip}", saved[0])), "{kept}");
}

fn claim(compost: &Compost, text: &str) {
    let tree = compost.git(["rev-parse", "main^{tree}"]).answer();
    let commit = compost.commit_object(&tree, &[], format!("claim\n\n{text}\n"));
    compost.git(["update-ref", "refs/arborist/claims/main", &commit]).succeeds();
}

#[test]
fn a_claim_that_cannot_be_read_keeps_itself_and_the_tasks_of_its_target() {
    let compost = Compost::new();
    compost.branch("T1", "t.txt", "t");
    compost.land("T1");
    compost.worktree("T1");
    claim(&compost, r#"{"version":2,"held":"by a newer one"}"#);
    compost.wait(3600);
    for (kind, name) in [("claim", "main"), ("branch", "main/T1"), ("worktree", "T1")] {
        let (verdict, why) = compost.verdict(ALL, kind, name);
        assert_eq!((&*verdict, &*why), ("keep", "cannot be told: who has claimed 'main'"), "{kind}");
    }
    compost.cleanup(ALL).succeeds();
    assert!(compost.has("T1"));
    assert_eq!(compost.refs("refs/arborist/claims"), ["refs/arborist/claims/main"]);
}

#[test]
fn a_claim_of_a_process_that_lives_stays_though_its_lease_is_over() {
    let compost = Compost::new();
    compost.branch("T1", "t.txt", "t");
    compost.land("T1");
    let ours = serde_json::to_string(&arborist_core::process::ProcessId::ours()).unwrap();
    claim(&compost, &format!(r#"{{"into":"main","holder":{ours},"since":1,"until":2}}"#));
    compost.wait(3600);
    for (kind, name) in [("claim", "main"), ("branch", "main/T1")] {
        assert_eq!(compost.verdict(ALL, kind, name).1, "its task is claimed", "{kind}");
    }
    compost.cleanup(ALL).succeeds();
    assert_eq!(compost.refs("refs/arborist/claims"), ["refs/arborist/claims/main"]);
    let dead = r#"{"into":"main","holder":{"pid":1,"host":"elsewhere","started":"1","boot":"another"},"since":1,"until":2}"#;
    claim(&compost, dead);
    compost.cleanup(ALL).succeeds();
    assert_eq!(compost.refs("refs/arborist/claims"), [""; 0]);
    assert!(!compost.has("T1"));
}

#[test]
fn a_report_that_is_tracked_stays_whatever_its_folder_is_called() {
    let compost = Compost::new();
    let (tracked, loose) = ("T1_run_20250216T143022.json", "T2_run_20250216T143022.json");
    compost.write(&format!("spec/reports/{tracked}"), "{}");
    symlink("reports", compost.path("spec/link")).unwrap();
    compost.commit("a report\n");
    for folder in ["spec/../spec/reports", "spec/link", "spec/./reports/", "spec/reports"] {
        compost.write(&format!("spec/reports/{loose}"), "{}");
        compost.age(10);
        compost.git(["config", "arborist.report-dir", folder]).succeeds();
        compost.cleanup(&[ALL, &["--only", "logs"]].concat()).succeeds();
        assert!(compost.path("spec/reports").join(tracked).exists(), "{folder}");
        assert!(!compost.path("spec/reports").join(loose).exists(), "{folder}");
    }
}

#[test]
fn what_only_a_remembered_branch_of_a_remote_leads_to_is_saved() {
    let compost = Compost::new();
    let tip = compost.branch("T1", "t.txt", "t");
    compost.git(["update-ref", "refs/remotes/origin/feature", &tip]).succeeds();
    let now = ["--older-than", "0"];
    compost.cleanup(&now).succeeds();
    assert!(!compost.has("T1"));
    let saved = compost.git(["for-each-ref", "--contains", &tip, "refs/arborist/saved"]).answer();
    assert!(!saved.is_empty(), "a fetch may take the other away");
    compost.branch("T2", "u.txt", "u");
    compost.land("T2");
    let report = compost.report(&now);
    let item = crate::compost::find(&report, "branch", "main/T2");
    assert_eq!(item["saved"].as_array().map(Vec::len), Some(0), "what is here needs no saving: {item:#}");
}

/// A repository whose remote listens, and has a branch that has landed there as far as is known.
fn with_silent_remote() -> (Compost, TcpListener) {
    let compost = Compost::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/r.git", listener.local_addr().unwrap());
    compost.git(["remote", "add", "origin", &url]).succeeds();
    let tip = compost.branch("T1", "t.txt", "t");
    compost.land("T1");
    compost.git(["update-ref", "refs/remotes/origin/main", "main"]).succeeds();
    compost.git(["update-ref", "refs/remotes/origin/arborist/task/main/T1", &tip]).succeeds();
    (compost, listener)
}

#[test]
fn a_remote_that_says_nothing_is_given_up() {
    let (compost, _listener) = with_silent_remote();
    compost.git(["config", "arborist.timeouts.network", "1"]).succeeds();
    let said = compost.cleanup(&["--older-than", "0", "--remote"]).exits(1);
    said.shows();
}

#[test]
fn while_a_remote_is_asked_no_lock_is_held() {
    let (compost, listener) = with_silent_remote();
    compost.git(["config", "arborist.timeouts.network", "600"]).succeeds();
    let mut command = compost.command("git-arborist-cleanup", &compost.path(""));
    command.args(["--older-than", "0", "--remote"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (connection, _) = listener.accept().unwrap();
    compost.cleanup(ALL).succeeds();
    compost.worktree("T2");
    drop((connection, listener));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
