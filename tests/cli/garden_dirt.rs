//! The user's checkout is theirs: what was not committed there stays as it is, and what an agent does to the repository itself
//! is caught.

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
    garden.arborist(["garden"]).exits(2).shows();
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
    garden.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).shows();
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
    garden.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).shows();
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

/// Whoever commits while an agent is at work, it cannot be told who it was: so it is said.
#[test]
fn a_commit_that_was_made_meanwhile_is_named_with_the_ref_that_keeps_it() {
    for args in [&["gardener"][..], &["gardener", "--isolate"]] {
        let deed = "echo mine > mine.txt; git add mine.txt; git commit -qm 'user commit'; echo \"wrote";
        let garden = garden(&WORKER.replace("echo \"wrote", deed));
        let said = garden.arborist(args).succeeds();
        let said = said.shows();
        let said = said.stderr();
        let name = said.split("it is kept as ").nth(1).unwrap().lines().next().unwrap();
        assert!(name.starts_with("refs/arborist/saved/"), "{name}");
        assert_eq!(garden.git(["log", "-1", "--format=%s", name]).answer(), "user commit");
        let told = garden.git(["log", "--grep=@T001@implement-pass", "--format=%b"]).answer();
        assert!(told.contains("Folded in:\n> 1 commit made meanwhile ('user commit')"), "{told}");
        assert!(told.contains(name), "{told}");
        garden.arborist(["trailers", "check", "HEAD"]).succeeds();
    }
}

#[test]
fn what_a_killed_attempt_left_is_named_and_so_is_what_of_it_was_staged() {
    let kill =
        "[ -e \"$ROOT/killed\" ] || { touch \"$ROOT/killed\"; kill -9 $PPID; sleep 30; }; echo \"wrote";
    let garden = garden(&WORKER.replace("echo \"wrote", kill));
    assert_ne!(garden.arborist(["gardener"]).code(), 0);
    for file in ["a", "b", "c", "d", "e", "f"] {
        garden.write(file, "the user's\n");
    }
    garden.git(["add", "b"]).succeeds();
    garden.arborist(["gardener"]).succeeds().shows();
}

/// A repository in which nothing was committed cannot even be taken into a snapshot.
#[test]
fn a_repository_that_an_agent_plants_is_moved_aside_and_the_next_attempt_begins_without_it() {
    let commit = "git -C deep/sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
    for deed in [
        "true",
        commit,
        &format!("{commit}; git add -A"),
        &format!("{commit}; git add -A; git commit -qm all"),
    ] {
        for args in [&["gardener"][..], &["gardener", "--isolate"]] {
            let once = format!(
                "[ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; git init -q deep/sub; echo inner > deep/sub/file; {deed}; }}; echo \"wrote"
            );
            let garden = garden(&WORKER.replace("echo \"wrote", &once));
            let said = garden.arborist(args).succeeds().shows();
            let said = said.shows().stderr();
            let folder = said.split("that is kept in ").nth(1).unwrap().lines().next().unwrap();
            let file = std::path::Path::new(folder).join("deep/sub/file");
            assert_eq!(std::fs::read_to_string(file).unwrap(), "inner\n", "{deed}");
            assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{deed}");
            let log = garden.git(["log", "--format=%s"]).answer();
            assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{deed}: {log}");
            assert!(!garden.git(["ls-tree", "-r", "HEAD"]).answer().contains("deep"), "{deed}");
        }
    }
}

#[test]
fn a_repository_of_the_users_own_in_the_checkout_stays_where_it_is() {
    for deed in ["true", "git -C mine -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"] {
        let garden = garden(&WORKER.replace("APPROVED", "APPROVED; git init -q of-the-reviewer"));
        garden.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
        garden.git(["init", "-q", "mine"]).succeeds();
        garden.write("mine/file", "mine\n");
        assert!(
            std::process::Command::new("sh")
                .args(["-c", deed])
                .current_dir(garden.path(""))
                .status()
                .unwrap()
                .success()
        );
        garden.arborist(["garden", "--allow-dirty"]).exits(2).shows();
        assert_eq!(garden.read("mine/file"), "mine\n", "{deed}");
        assert_eq!(garden.git(["status", "--porcelain"]).answer(), "?? mine/", "{deed}");
        assert_eq!(garden.read("T001.txt"), "T001\n", "nobody has rejected it");
    }
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
        garden.arborist(["state"]).succeeds().shows();
    }
}

#[test]
fn a_pre_commit_hook_decides_on_an_agents_work() {
    let garden = garden(WORKER);
    garden.write_script(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ngit diff --cached --name-only HEAD; echo no tabs please; exit 1\n",
    );
    garden.arborist(["garden", "--max-retries", "1"]).exits(1).shows();
    let body = garden.git(["log", "-1", "--format=%b", "HEAD~1"]).answer();
    assert!(body.contains("> T001.txt\n> no tabs please"), "{body}");
    garden.arborist(["state", "T001"]).succeeds().shows();
}
