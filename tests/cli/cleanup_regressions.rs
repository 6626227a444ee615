//! What was once lost, or held up, by cleaning up: each of these tests shows that it is not any more.

use std::{fs, net::TcpListener, os::unix::fs::symlink, process::Stdio};

use crate::cleanup_repo::CleanupRepo;

const ALL: &[&str] = &["--older-than", "0", "--force"];

#[test]
fn each_staged_version_is_saved_even_if_the_files_in_the_worktree_are_the_same() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    for staged in ["staged-first", "staged-second"] {
        let path = repo.worktree("T1");
        fs::write(path.join("a.txt"), staged).unwrap();
        repo.git_in(&path, ["add", "a.txt"]).succeeds();
        fs::write(path.join("a.txt"), "final").unwrap();
        repo.cleanup(&[ALL, &["--only", "worktrees"]].concat()).succeeds();
        assert!(!path.exists());
    }
    let mut kept = Vec::new();
    for name in repo.refs("refs/arborist/saved") {
        assert_eq!(repo.git(["cat-file", "blob", &format!("{name}:a.txt")]).answer(), "final");
        kept.push(repo.git(["cat-file", "blob", &format!("{name}~1:a.txt")]).answer());
    }
    kept.sort();
    assert_eq!(kept, ["staged-first", "staged-second"]);
}

#[test]
fn work_is_saved_under_another_name_if_its_ref_points_to_another_commit() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t.txt", "t");
    repo.cleanup(ALL).succeeds();
    let saved = repo.refs("refs/arborist/saved");
    assert_eq!(saved.len(), 1);
    repo.git(["update-ref", &saved[0], "main"]).succeeds();
    repo.git(["update-ref", "refs/heads/arborist/task/main/T1", &tip]).succeeds();
    repo.cleanup(ALL).succeeds();
    assert!(!repo.has("T1"));
    let kept = repo.git(["for-each-ref", "--contains", &tip, "refs/arborist/saved"]).answer();
    assert!(kept.contains(&format!("{}-{tip}", saved[0])), "{kept}");
}

fn claim(repo: &CleanupRepo, text: &str) {
    let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
    let commit = repo.commit_object(&tree, &[], format!("claim\n\n{text}\n"));
    repo.git(["update-ref", "refs/arborist/claims/main", &commit]).succeeds();
}

#[test]
fn an_unreadable_claim_is_kept_with_all_tasks_of_its_target() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    repo.worktree("T1");
    claim(&repo, r#"{"version":2,"held":"by a newer one"}"#);
    repo.wait(3600);
    for (kind, name) in [("claim", "main"), ("branch", "main/T1"), ("worktree", "T1")] {
        let (verdict, why) = repo.verdict(ALL, kind, name);
        assert_eq!((&*verdict, &*why), ("keep", "not known: who has claimed 'main'"), "{kind}");
    }
    repo.cleanup(ALL).succeeds();
    assert!(repo.has("T1"));
    assert_eq!(repo.refs("refs/arborist/claims"), ["refs/arborist/claims/main"]);
}

#[test]
fn a_claim_of_a_living_process_is_kept_after_its_lease_ends() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    let ours = serde_json::to_string(&arborist_core::process::ProcessId::ours()).unwrap();
    claim(&repo, &format!(r#"{{"into":"main","holder":{ours},"since":1,"until":2}}"#));
    repo.wait(3600);
    for (kind, name) in [("claim", "main"), ("branch", "main/T1")] {
        assert_eq!(repo.verdict(ALL, kind, name).1, "a process is landing tasks of its run", "{kind}");
    }
    repo.cleanup(ALL).succeeds();
    assert_eq!(repo.refs("refs/arborist/claims"), ["refs/arborist/claims/main"]);
    let dead = r#"{"into":"main","holder":{"pid":1,"host":"elsewhere","started":"1","boot":"another"},"since":1,"until":2}"#;
    claim(&repo, dead);
    repo.cleanup(ALL).succeeds();
    assert_eq!(repo.refs("refs/arborist/claims"), [""; 0]);
    assert!(!repo.has("T1"));
}

#[test]
fn a_tracked_report_is_kept_for_every_spelling_of_the_report_folder() {
    let repo = CleanupRepo::new();
    let (tracked, loose) = ("T1_run_20250216T143022.json", "T2_run_20250216T143022.json");
    repo.write(&format!("spec/reports/{tracked}"), "{}");
    symlink("reports", repo.path("spec/link")).unwrap();
    repo.commit("a report\n");
    for folder in ["spec/link", "spec/./reports/", "spec/reports"] {
        repo.write(&format!("spec/reports/{loose}"), "{}");
        repo.age(10);
        repo.git(["config", "arborist.report-dir", folder]).succeeds();
        repo.cleanup(&[ALL, &["--only", "logs"]].concat()).succeeds();
        assert!(repo.path("spec/reports").join(tracked).exists(), "{folder}");
        assert!(!repo.path("spec/reports").join(loose).exists(), "{folder}");
    }
}

#[test]
fn commits_reachable_only_from_a_remote_tracking_branch_are_saved() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t.txt", "t");
    repo.git(["update-ref", "refs/remotes/origin/feature", &tip]).succeeds();
    let now = ["--older-than", "0"];
    repo.cleanup(&now).succeeds();
    assert!(!repo.has("T1"));
    let saved = repo.git(["for-each-ref", "--contains", &tip, "refs/arborist/saved"]).answer();
    assert!(!saved.is_empty(), "a fetch may take the other away");
    repo.branch("T2", "u.txt", "u");
    repo.land("T2");
    let report = repo.report(&now);
    let item = crate::cleanup_repo::find(&report, "branch", "main/T2");
    assert_eq!(item["saved"].as_array().map(Vec::len), Some(0), "what is here needs no saving: {item:#}");
}

/// A repository whose remote listens, and has a branch that has landed there as far as is known.
fn with_silent_remote() -> (CleanupRepo, TcpListener) {
    let repo = CleanupRepo::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/r.git", listener.local_addr().unwrap());
    repo.git(["remote", "add", "origin", &url]).succeeds();
    let tip = repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    repo.git(["update-ref", "refs/remotes/origin/main", "main"]).succeeds();
    repo.git(["update-ref", "refs/remotes/origin/arborist/task/main/T1", &tip]).succeeds();
    (repo, listener)
}

#[test]
fn cleanup_gives_up_on_a_remote_that_does_not_answer() {
    let (repo, _listener) = with_silent_remote();
    repo.git(["config", "arborist.timeouts.network", "1"]).succeeds();
    let said = repo.cleanup(&["--older-than", "0", "--remote"]).exits(1);
    said.matches_snapshot();
}

#[test]
fn cleanup_holds_no_lock_while_it_waits_for_a_remote() {
    let (repo, listener) = with_silent_remote();
    repo.git(["config", "arborist.timeouts.network", "600"]).succeeds();
    let mut command = repo.command("git-arborist-cleanup", &repo.path(""));
    command.args(["--older-than", "0", "--remote"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (connection, _) = listener.accept().unwrap();
    repo.cleanup(ALL).succeeds();
    repo.worktree("T2");
    drop((connection, listener));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
