//! The user's checkout is theirs: what was not committed there stays as it is, and what an agent does to the repository itself
//! is caught.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use arborist_testkit::Garden;

const PLAN: &str = "- [ ] T001 create the schema\n- [ ] T002 add the form (depends on T001)\n";

/// Writes a file for each task and approves of everything.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt"; echo "wrote $ARBORIST_TASK.txt" ;;
esac
"#;

fn garden(agent: &str) -> Garden {
    Garden::planned("tasks.md", PLAN, agent)
}

#[test]
fn a_dirty_checkout_is_refused_or_left_exactly_as_it_is() {
    let garden = garden(WORKER);
    garden.write("begun", "mine");
    garden.write("staged", "mine too");
    garden.git(["add", "staged"]).succeeds();
    garden.arborist(["garden"]).exits(2).err("not committed: begun, staged").err("--allow-dirty");
    assert_eq!(garden.calls(), 0);
    garden.arborist(["garden", "--allow-dirty"]).succeeds();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "A  staged\n?? begun");
    let tracked = garden.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
    assert!(
        tracked.contains("T001.txt") && !tracked.contains("begun") && !tracked.contains("staged"),
        "{tracked}"
    );
}

/// Appends to three files that the user has changed, staged and deleted, and writes one of its own.
const MEDDLER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) for file in begun staged deleted; do echo agent >> $file; done; echo agent > own; [ ! -e "$ROOT/kill" ] || { rm "$ROOT/kill"; kill -9 $PPID; sleep 30; }; echo done ;;
esac
"#;

fn with_dirt(agent: &str) -> Garden {
    let garden = garden(agent);
    for file in ["begun", "staged", "deleted"] {
        garden.write(file, "theirs\n");
    }
    garden.commit("files\n");
    garden.write("begun", "mine\n");
    garden.write("staged", "mine too\n");
    garden.git(["add", "staged"]).succeeds();
    garden.write("staged", "theirs\n");
    std::fs::remove_file(garden.path("deleted")).unwrap();
    garden
}

fn expect_dirt(garden: &Garden) {
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), " M begun\n D deleted\nMM staged");
    assert_eq!((garden.read("begun"), garden.read("staged")), ("mine\n".into(), "theirs\n".into()));
    assert_eq!(garden.git(["show", ":staged"]).answer(), "mine too");
    assert_eq!(
        garden.git(["diff", "--name-only", "HEAD~2", "HEAD", "--", "begun", "staged", "deleted"]).answer(),
        ""
    );
}

#[test]
fn an_agent_that_touches_what_was_dirty_has_failed_and_nothing_of_it_is_lost() {
    let garden = with_dirt(MEDDLER);
    garden
        .arborist(["garden", "--allow-dirty", "--max-retries", "1"])
        .exits(1)
        .err("it changed what was not committed and not its own: begun, deleted, staged")
        .err("is kept in refs/arborist/saved/main/T001/0-");
    expect_dirt(&garden);
    assert_eq!(garden.git(["show", "HEAD:own"]).answer(), "agent", "what is its own is committed");
    let saved = garden.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(garden.git(["show", &format!("{saved}:begun")]).answer(), "mine\nagent");
    assert_eq!(garden.git(["show", &format!("{saved}^:begun")]).answer(), "mine");
}

#[test]
fn what_was_dirty_outlives_a_killed_run_that_touched_it() {
    let garden = with_dirt(&MEDDLER.replace("begun staged deleted", "begun"));
    std::fs::write(garden.root().join("kill"), "").unwrap();
    let run = garden.arborist(["garden", "--allow-dirty"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    garden.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).err("was interrupted");
    expect_dirt(&garden);
    let told = garden.git(["log", "--format=%b"]).answer();
    assert!(told.contains("it changed what was not committed and not its own: begun"), "{told}");
}

#[test]
fn an_agents_own_commits_are_folded_and_kept() {
    let garden =
        garden(&WORKER.replace("echo \"wrote", "git add -A; git commit -qm 'by the agent'; echo \"wrote"));
    garden.arborist(["gardener"]).succeeds();
    let log = garden.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("by the agent"), "{log}");
    assert_eq!(garden.read("T001.txt"), "T001\n");
    let saved =
        garden.git(["for-each-ref", "--format=%(refname) %(subject)", "refs/arborist/saved"]).answer();
    assert_eq!(saved.lines().filter(|line| line.contains("by the agent")).count(), 2, "{saved}");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn an_agent_that_touches_the_repository_itself_is_caught_and_undone() {
    for (deed, sentence) in [
        ("git switch -qc elsewhere", "it switched to another branch"),
        ("git config core.editor evil", "config was changed while it ran"),
        (
            "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            "the hook pre-commit was added while it ran",
        ),
        (
            "git init -q nested; git -C nested -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
            "a repository inside the repository",
        ),
        ("git checkout -q --detach; git branch -qD main", "it deleted or renamed the branch"),
    ] {
        let garden = garden(&WORKER.replace("echo \"wrote", &format!("{deed}; echo \"wrote")));
        let config = garden.read(".git/config");
        garden.arborist(["garden", "--max-retries", "1"]).exits(1).err(sentence);
        assert_eq!(garden.read(".git/config"), config);
        assert!(!garden.path(".git/hooks/pre-commit").exists());
        assert_eq!(garden.git(["symbolic-ref", "HEAD"]).answer(), "refs/heads/main", "{deed}");
        garden.arborist(["state"]).succeeds().out("1 failed");
    }
}

#[test]
fn a_pre_commit_hook_decides_on_an_agents_work() {
    let garden = garden(WORKER);
    garden.write_script(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ngit diff --cached --name-only HEAD; echo no tabs please; exit 1\n",
    );
    garden
        .arborist(["garden", "--max-retries", "1"])
        .exits(1)
        .err("the pre-commit hook refused it: no tabs please");
    let body = garden.git(["log", "-1", "--format=%b", "HEAD~1"]).answer();
    assert!(body.contains("> T001.txt\n> no tabs please"), "{body}");
    garden.arborist(["state", "T001"]).succeeds().out("no tabs please");
}
