//! `git arborist session resume` and `replay`: a session goes on where it rested, or again from one of its turns.

use std::{fs, path::PathBuf};

use crate::{
    session_repo::{can_resume, sessions},
    turn_scripts::{agent, repo},
};
use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

/// Two turns that write; what they write is new in every call.
const WORK: &str = r#"
opens
calls 1 "I add a"; echo a$n > a; answers 1
calls 2 "I add b"; echo b$n > b; answers 2
ends "done"
"#;

const FAILS: &str = "opens\ncalls 1 \"I add a\"; echo half > a; answers 1\nexit 1\n";

/// The only session, and its id.
fn session(repo: &TestRepo) -> (Value, String) {
    let all = sessions(repo);
    assert_eq!(all.len(), 1, "{all:#?}");
    (all[0].clone(), all[0]["id"].as_str().unwrap().to_owned())
}

fn subjects(repo: &TestRepo, branch: &str) -> String {
    repo.git(["log", "--format=%s", branch]).answer()
}

/// A session on `work` that failed, while the user is elsewhere with something that is not committed.
fn failed() -> (TestRepo, String) {
    let repo = repo("claude", FAILS);
    repo.git(["switch", "-q", "-c", "work"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let (session, id) = session(&repo);
    assert_eq!(session["state"], "failed");
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.write("mine", "not committed\n");
    agent(&repo, "claude", WORK);
    (repo, id)
}

#[test]
fn a_failed_session_is_resumed_on_its_branch_without_touching_the_checkout() {
    let (repo, id) = failed();
    let said = repo.arborist(["session", "resume", &id]).succeeds();
    said.err(&format!("continuing session '{id}' on 'work'"));
    assert!(!repo.path(&format!("../repo.arborist/session-{id}")).exists(), "'work' is given back");
    assert!(subjects(&repo, "work").starts_with("task(work@T001@complete)"));
    assert_eq!(repo.git(["branch", "--show-current"]).answer(), "main");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "?? mine");
    let (session, same) = session(&repo);
    assert_eq!((&session["state"], same), (&"complete".into(), id.clone()));
    repo.arborist(["session", "resume", &id]).exits(1).matches_snapshot();
}

#[test]
fn a_killed_session_continues_in_the_checkout_that_it_ran_in() {
    let repo = repo("claude", "opens\ncalls 1 \"I add a\"; echo a > a; answers 1\nkill -9 $PPID\nexit 1\n");
    let killed = repo.arborist(["gardener"]);
    assert_ne!(killed.code(), 0);
    let (session, id) = session(&repo);
    assert_eq!((&session["state"], &session["turns"]), (&"crashed".into(), &1.into()));
    agent(&repo, "claude", &format!("echo \"$1\" > \"$ROOT/continued\"\n{WORK}"));
    can_resume(&repo);
    repo.arborist(["session", "resume", &id[..4]]).succeeds();
    assert_eq!(repo.read("../continued"), "s-1\n", "its own conversation is continued");
    let prompt = repo.prompt(1);
    assert!(
        prompt.contains(
            "This work was started before and interrupted. Done so far (in the files, unless undone since):"
        ) && prompt.contains("- Add a (a)"),
        "{prompt}"
    );
    assert!(prompt.contains("  said: I add a\n  used: Bash: work"), "from the transcript: {prompt}");
    assert_eq!(sessions(&repo)[0]["state"], "complete");
    let subjects = subjects(&repo, "main");
    assert!(subjects.starts_with("task(main@T001@complete)"), "{subjects}");
    assert_eq!(subjects.matches("@turn)").count(), 3, "nothing is lost: {subjects}");
}

/// A run reads the cache too, so what it reads there must be what git has.
#[test]
fn a_manipulated_history_cache_does_not_change_what_a_run_does() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["state"]).succeeds();
    let (tip, calls) = (repo.git(["rev-parse", "main"]).answer(), repo.calls());
    let cache = repo.path(".git/arborist/cache/v1/main");
    let kept = fs::read_to_string(&cache).unwrap();
    let forged = kept.replace("task(main@T001@complete)", "task(main@T001@reset)   ");
    assert_ne!(forged, kept);
    let without_end: String = {
        let next = repo.git(["rev-parse", "main~1"]).answer();
        let end = kept.find(&format!("\n{next} ")).unwrap();
        format!("{tip}{}", &kept[end..])
    };
    for tampered in [forged, without_end, "junk".to_owned()] {
        fs::write(&cache, &tampered).unwrap();
        repo.arborist(["gardener"]).succeeds().matches_snapshot();
        assert_eq!((repo.git(["rev-parse", "main"]).answer(), repo.calls()), (tip.clone(), calls));
    }
}

#[test]
fn a_clone_that_has_only_the_records_can_resume() {
    let (repo, id) = failed();
    let clone: PathBuf = repo.path("../clone");
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", clone.to_str().unwrap()]).succeeds();
    let from = repo.path("");
    let fetch = ["fetch", "-q", from.to_str().unwrap(), "refs/arborist/*:refs/arborist/*"];
    repo.git_in(&clone, fetch).succeeds();
    let said = repo.arborist_in(&clone, ["session", "resume", &id]).succeeds();
    said.matches_snapshot();
    let log = repo.git_in(&clone, ["log", "--format=%s", "work"]).answer();
    assert!(log.starts_with("task(work@T001@complete)"), "{log}");
}

#[test]
fn going_back_to_a_turn_restores_its_tree_and_keeps_later_commits_in_history() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let (_, id) = session(&repo);
    let before = repo.git(["rev-parse", "HEAD"]).answer();
    let first = repo.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
    let first = first.lines().next().unwrap();
    repo.arborist(["session", "resume", &id, "--turn", "9"]).exits(1).matches_snapshot();
    repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds().matches_snapshot();
    repo.git(["merge-base", "--is-ancestor", &before, "HEAD"]).succeeds();
    let reset = repo.git(["log", "-1", "--format=%H", "--grep=@reset)"]).answer();
    let tree = |commit: &str| repo.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer();
    assert_eq!(tree(&reset), tree(first), "it has a, and not b");
    assert_eq!(repo.git(["log", "-1", "--format=%P", &reset]).answer(), before);
    assert!(subjects(&repo, "main").starts_with("task(main@T001@complete)"));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    let turns: Value =
        serde_json::from_str(&repo.arborist(["session", "turns", &id, "--json"]).answer()).unwrap();
    let numbers: Vec<u64> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no number twice");
}

#[test]
fn going_back_to_a_turn_does_not_overwrite_ignored_files() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let (_, id) = session(&repo);
    repo.git(["rm", "-q", "a"]).succeeds();
    repo.git(["commit", "-q", "-m", "a is generated"]).succeeds();
    let excluded = repo.read(".git/info/exclude");
    repo.write(".git/info/exclude", format!("{excluded}\n/a\n"));
    repo.write("a", "precious\n");
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    let said = repo.arborist(["session", "resume", &id, "--turn", "1"]).exits(2);
    said.matches_snapshot();
    assert_eq!((repo.read("a").as_str(), repo.git(["rev-parse", "HEAD"]).answer()), ("precious\n", head));
}

#[test]
fn a_changed_plan_is_not_written_through_a_link() {
    let (repo, id) = failed();
    repo.write("../outside", "outside\n");
    let place = repo.path("../link");
    repo.git(["worktree", "add", "-q", place.to_str().unwrap(), "work"]).succeeds();
    fs::remove_file(place.join("tasks.md")).unwrap();
    std::os::unix::fs::symlink(repo.path("../outside"), place.join("tasks.md")).unwrap();
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more\n");
    let said = repo.arborist(["session", "resume", &id, "--plan-changed"]);
    assert_ne!(said.code(), 0);
    assert_eq!(repo.read("../outside"), "outside\n");
}

#[test]
fn resume_shows_plan_changes_and_takes_them_only_with_plan_changed() {
    let (repo, id) = failed();
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more\n");
    repo.arborist(["session", "resume", &id])
        .exits(2)
        .err("the plan has changed")
        .err("+ T002 more")
        .err(&format!("session resume {id} --plan-changed"));
    repo.arborist(["session", "resume", &id, "--plan-changed"]).succeeds();
    let subjects = subjects(&repo, "work");
    assert!(subjects.contains("@plan): plan changed") && subjects.contains("T002@complete"), "{subjects}");
}

#[test]
fn a_replay_is_a_new_session_on_a_new_branch_and_leaves_the_original_unchanged() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more (after T001)\n");
    repo.commit("two tasks\n");
    repo.arborist(["gardener"]).succeeds();
    let (_, id) = session(&repo);
    let turns: Value =
        serde_json::from_str(&repo.arborist(["session", "turns", &id, "--json"]).answer()).unwrap();
    let of_second = turns["turns"].as_array().unwrap().iter().find(|turn| turn["node"] == "T002").unwrap();
    let (number, commit) = (of_second["number"].to_string(), of_second["commit"].as_str().unwrap());
    let refs = || {
        let names = ["refs/heads/main", "refs/arborist/sessions", "refs/arborist/transcripts"];
        let all = repo.git(["for-each-ref"].iter().chain(&names)).answer();
        all.lines()
            .filter(|line| line.contains(&id) || line.ends_with("/main"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (before, calls) = (refs(), repo.calls());
    let new = repo.arborist(["session", "replay", &id, "--turn", &number]).succeeds().stdout();
    let new = new.lines().next().unwrap();
    assert_eq!(refs(), before, "the original is as it was");
    let branch = format!("arborist/tasks/{new}");
    let subjects = subjects(&repo, &branch);
    assert!(subjects.starts_with(&format!("task({branch}@T002@complete)")), "{subjects}");
    assert_eq!(repo.calls(), calls + 1, "what was complete is not done again");
    assert!(
        repo.prompt(calls).contains(
            "This work was started before and interrupted. Done so far (in the files, unless undone since):"
        ),
        "{}",
        repo.prompt(calls)
    );
    repo.git(["merge-base", "--is-ancestor", commit, &branch]).succeeds();
    let shown: Value =
        serde_json::from_str(&repo.arborist(["session", "show", new, "--json"]).answer()).unwrap();
    assert_eq!(shown["forked_from"]["session"], id.as_str());
    assert_eq!(shown["forked_from"]["turn"].to_string(), number);
    assert_eq!(shown["session"]["state"], "complete");
    assert_eq!(repo.git(["branch", "--show-current"]).answer(), "main");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn resume_explains_why_a_session_cannot_be_continued() {
    let repo = repo("claude", WORK);
    let other = repo.arborist(["session", "start"]).answer();
    repo.arborist(["session", "resume", &other]).exits(1).matches_snapshot();
    repo.arborist(["session", "replay", &other, "--turn", "1"]).exits(1).matches_snapshot();
    repo.arborist(["session", "resume", "zz"]).exits(1).matches_snapshot();
    let run: Run = repo.arborist(["gardener"]);
    let _ = run.succeeds();
    let id = sessions(&repo).into_iter().find(|session| session["driver"] == "run").unwrap()["id"].clone();
    repo.git(["switch", "-q", "-c", "aside"]).succeeds();
    repo.git(["branch", "-f", "main", "main~3"]).succeeds();
    fs::write(repo.path("x"), "x").unwrap();
    let main = repo.git(["commit-tree", "main^{tree}", "-p", "main", "-m", "elsewhere"]).answer();
    repo.git(["branch", "-f", "main", &main]).succeeds();
    let id = id.as_str().unwrap();
    repo.arborist(["session", "resume", id, "--turn", "1"]).exits(2).matches_snapshot();
}

#[test]
fn processes_of_a_killed_run_are_ended_before_a_turn_is_restored() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    repo.commit("a plan\n");
    // It would write as soon as it sees that the files are put back.
    let late = "case \"$prompt\" in \"Review\"*) echo APPROVED; exit;; esac\n\
        if [ $ARBORIST_TASK = T002 ] && [ ! -e \"$ROOT/killed\" ]; then touch \"$ROOT/killed\"; kill -9 $PPID; \
        i=0; until git log -1 --format=%s | grep -q reset || [ $i -gt 900 ]; do i=$((i+1)); sleep 0.02; done; \
        echo late > late; exit; fi\necho $n > $ARBORIST_TASK.txt; echo done";
    repo.agent(late);
    repo.arborist(["gardener"]).exits(137);
    let (_, id) = session(&repo);
    let said = repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    let told = said.stderr();
    let (ended, rest) = told.split_once("ended processes that a crashed run had left").unwrap();
    assert!(
        !ended.contains("restored the files")
            && rest.contains("restored the files as they were after turn 1"),
        "{told}"
    );
    assert!(!repo.path("late").exists());
    assert_eq!(repo.git(["log", "--format=%s", "--", "late"]).answer(), "");
}

#[test]
fn a_complete_session_whose_branch_a_newer_one_uses_can_only_be_replayed() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let (_, id) = session(&repo);
    repo.wait(1);
    repo.arborist(["gardener", "--new-run"]).succeeds();
    let said = repo.arborist(["session", "resume", &id]).exits(2);
    said.err("is newer and uses 'main' now").err(&format!("git arborist session replay {id} --turn 1"));
    repo.arborist(["session", "resume", &id, "--turn", "99"]).exits(1).err("has no turn 99");
}
