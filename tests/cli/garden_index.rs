//! The user's index is theirs: what they stage while an agent is at work stays staged.

use arborist_testkit::{Run, TestRepo};

const PLAN: &str = "- [ ] T001 create the schema\n";

/// A repository with a file `kept`, and an agent that does this.
fn repo(deed: &str) -> TestRepo {
    let agent = format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {deed} ;; esac");
    let repo = TestRepo::planned("tasks.md", PLAN, &agent);
    repo.write("kept", "old\n");
    repo.commit("a file\n");
    repo
}

/// Stages this text under this name, in the index of the checkout.
const STAGE: &str = r#"stage() { env -u GIT_INDEX_FILE -u GIT_DIR -u GIT_COMMON_DIR -u GIT_WORK_TREE git update-index --add --cacheinfo "100644,$(echo "$1" | git hash-object -w --stdin),$2"; }"#;

#[test]
fn changes_staged_while_an_agent_works_stay_staged() {
    let repo = repo(&format!("{STAGE}; stage mine kept; echo own > own"));
    repo.arborist(["garden"]).succeeds();
    assert_eq!(repo.git(["show", "HEAD:own"]).answer(), "own");
    assert_eq!(repo.git(["show", ":kept"]).answer(), "mine");
    assert_eq!(repo.git(["show", "HEAD:kept"]).answer(), "old");
    assert_eq!(repo.read("kept"), "old\n");
}

#[test]
fn changes_staged_while_an_attempt_is_recorded_stay_staged() {
    let repo = repo("echo own > own");
    let root = repo.root().display().to_string();
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\n{STAGE}\n\
         case \" $* \" in *\" add -A \"*) ;; *) exec git \"$@\" ;; esac\n\
         git \"$@\" || exit\n[ -e '{root}/own.done' ] || [ ! -e own ] || {{ : > '{root}/own.done'; stage mine between; }}\n"
    );
    repo.plant("git", &script);
    Run::of(&mut repo.command("git-arborist-garden", &repo.path("")), b"").succeeds();
    assert!(repo.root().join("own.done").exists(), "something was staged");
    assert_eq!(repo.git(["show", "HEAD:own"]).answer(), "own");
    assert_eq!(repo.git(["show", ":between"]).answer(), "mine");
    assert_eq!(repo.git(["diff", "--cached", "--name-only"]).answer(), "between");
}

#[test]
fn the_index_is_clean_after_a_run_and_no_lock_file_is_left() {
    let repo = repo("echo own > own; rm kept");
    repo.arborist(["garden"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    let left = std::fs::read_dir(repo.path(".git")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().ends_with(".lock")));
    repo.git(["fsck", "--strict"]).succeeds();
}
