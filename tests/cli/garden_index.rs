//! The user's index is theirs: what they stage while an agent is at work stays staged.

use arborist_testkit::{Garden, Run};

const PLAN: &str = "- [ ] T001 create the schema\n";

/// A garden with a file `kept`, and an agent that does this.
fn garden(deed: &str) -> Garden {
    let agent = format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {deed} ;; esac");
    let garden = Garden::planned("tasks.md", PLAN, &agent);
    garden.write("kept", "old\n");
    garden.commit("a file\n");
    garden
}

/// Stages this text under this name, in the index of the checkout.
const STAGE: &str = r#"stage() { env -u GIT_INDEX_FILE -u GIT_DIR -u GIT_COMMON_DIR -u GIT_WORK_TREE git update-index --add --cacheinfo "100644,$(echo "$1" | git hash-object -w --stdin),$2"; }"#;

#[test]
fn what_is_staged_while_an_agent_works_stays_staged() {
    let garden = garden(&format!("{STAGE}; stage mine kept; echo own > own"));
    garden.arborist(["garden"]).succeeds();
    assert_eq!(garden.git(["show", "HEAD:own"]).answer(), "own");
    assert_eq!(garden.git(["show", ":kept"]).answer(), "mine");
    assert_eq!(garden.git(["show", "HEAD:kept"]).answer(), "old");
    assert_eq!(garden.read("kept"), "old\n");
}

#[test]
fn what_is_staged_while_an_attempt_is_written_down_stays_staged() {
    let garden = garden("echo own > own");
    let root = garden.root().display().to_string();
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\n{STAGE}\n\
         case \" $* \" in *\" add -A \"*) ;; *) exec git \"$@\" ;; esac\n\
         git \"$@\" || exit\n[ -e '{root}/own.done' ] || [ ! -e own ] || {{ : > '{root}/own.done'; stage mine between; }}\n"
    );
    garden.plant("git", &script);
    Run::of(&mut garden.command("git-arborist-garden", &garden.path("")), b"").succeeds();
    assert!(garden.root().join("own.done").exists(), "something was staged");
    assert_eq!(garden.git(["show", "HEAD:own"]).answer(), "own");
    assert_eq!(garden.git(["show", ":between"]).answer(), "mine");
    assert_eq!(garden.git(["diff", "--cached", "--name-only"]).answer(), "between");
}

#[test]
fn where_nobody_else_stages_anything_the_index_is_clean_and_nothing_is_left_beside_it() {
    let garden = garden("echo own > own; rm kept");
    garden.arborist(["garden"]).succeeds();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
    let left = std::fs::read_dir(garden.path(".git")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().ends_with(".lock")));
    garden.git(["fsck", "--strict"]).succeeds();
}
