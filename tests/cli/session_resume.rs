//! `git arborist session resume` and `replay`: a session goes on where it rested, or again from one of its turns.

use std::{fs, path::PathBuf};

use crate::turning::{agent, garden};
use arborist_testkit::{Garden, Run};
use serde_json::Value;

/// Two turns that write; what they write is new in every call.
const WORK: &str = r#"
opens
calls 1 "I add a"; echo a$n > a; answers 1
calls 2 "I add b"; echo b$n > b; answers 2
ends "done"
"#;

const FAILS: &str = "opens\ncalls 1 \"I add a\"; echo half > a; answers 1\nexit 1\n";

fn sessions(garden: &Garden) -> Vec<Value> {
    let list: Value = serde_json::from_str(&garden.arborist(["session", "list", "--json"]).answer()).unwrap();
    list["sessions"].as_array().unwrap().clone()
}

/// The only session, and its id.
fn session(garden: &Garden) -> (Value, String) {
    let all = sessions(garden);
    assert_eq!(all.len(), 1, "{all:#?}");
    (all[0].clone(), all[0]["id"].as_str().unwrap().to_owned())
}

/// From now on the agent can be told which of its conversations to continue.
fn can_resume(garden: &Garden) {
    let file = garden.home().join(".config/git-arborist/config.toml");
    let script = garden.root().join("agent.sh");
    let resume = format!("[runners.robot]\nresume = [\"sh\", \"{}\", \"{{session}}\"]\n", script.display());
    let config = fs::read_to_string(&file).unwrap().replace("[runners.robot]\n", &resume);
    fs::write(file, config).unwrap();
}

fn subjects(garden: &Garden, branch: &str) -> String {
    garden.git(["log", "--format=%s", branch]).answer()
}

/// A session on `work` that failed, while the user is elsewhere with something that is not committed.
fn failed() -> (Garden, String) {
    let garden = garden("claude", FAILS);
    garden.git(["switch", "-q", "-c", "work"]).succeeds();
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let (session, id) = session(&garden);
    assert_eq!(session["state"], "failed");
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.write("mine", "not committed\n");
    agent(&garden, "claude", WORK);
    (garden, id)
}

#[test]
fn a_failed_session_goes_on_on_its_branch_whatever_the_checkout_looks_like() {
    let (garden, id) = failed();
    let said = garden.arborist(["session", "resume", &id]).succeeds();
    said.err(&format!("session '{id}' goes on on 'work'"));
    assert!(!garden.path(&format!("../repo.arborist/session-{id}")).exists(), "'work' is given back");
    assert!(subjects(&garden, "work").starts_with("task(work@T001@complete)"));
    assert_eq!(garden.git(["branch", "--show-current"]).answer(), "main");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "?? mine");
    let (session, same) = session(&garden);
    assert_eq!((&session["state"], same), (&"complete".into(), id.clone()));
    garden.arborist(["session", "resume", &id]).exits(1).shows();
}

#[test]
fn a_session_that_was_killed_goes_on_in_the_checkout_that_it_ran_in() {
    let garden =
        garden("claude", "opens\ncalls 1 \"I add a\"; echo a > a; answers 1\nkill -9 $PPID\nexit 1\n");
    let killed = garden.arborist(["gardener"]);
    assert_ne!(killed.code(), 0);
    let (session, id) = session(&garden);
    assert_eq!((&session["state"], &session["turns"]), (&"crashed".into(), &1.into()));
    agent(&garden, "claude", &format!("echo \"$1\" > \"$ROOT/continued\"\n{WORK}"));
    can_resume(&garden);
    garden.arborist(["session", "resume", &id[..4]]).succeeds();
    assert_eq!(garden.read("../continued"), "s-1\n", "its own conversation is continued");
    let prompt = garden.prompt(1);
    assert!(prompt.contains("What was done so far") && prompt.contains("- Add a (a)"), "{prompt}");
    assert!(prompt.contains("  said: I add a\n  used: Bash: work"), "from the transcript: {prompt}");
    assert_eq!(sessions(&garden)[0]["state"], "complete");
    let subjects = subjects(&garden, "main");
    assert!(subjects.starts_with("task(main@T001@complete)"), "{subjects}");
    assert_eq!(subjects.matches("@turn)").count(), 3, "nothing is lost: {subjects}");
}

/// A run reads the cache too, so what it reads there must be what git has.
#[test]
fn a_cache_that_was_tampered_with_leads_no_run_astray() {
    let garden = garden("claude", WORK);
    garden.arborist(["gardener"]).succeeds();
    garden.arborist(["state"]).succeeds();
    let (tip, calls) = (garden.git(["rev-parse", "main"]).answer(), garden.calls());
    let cache = garden.path(".git/arborist/cache/v1/main");
    let kept = fs::read_to_string(&cache).unwrap();
    let forged = kept.replace("task(main@T001@complete)", "task(main@T001@reset)   ");
    assert_ne!(forged, kept);
    let without_end: String = {
        let next = garden.git(["rev-parse", "main~1"]).answer();
        let end = kept.find(&format!("\n{next} ")).unwrap();
        format!("{tip}{}", &kept[end..])
    };
    for tampered in [forged, without_end, "junk".to_owned()] {
        fs::write(&cache, &tampered).unwrap();
        garden.arborist(["gardener"]).succeeds().shows();
        assert_eq!((garden.git(["rev-parse", "main"]).answer(), garden.calls()), (tip.clone(), calls));
    }
}

#[test]
fn a_clone_that_has_only_the_records_can_resume() {
    let (garden, id) = failed();
    let clone: PathBuf = garden.path("../clone");
    garden.git_in(garden.root(), ["init", "-q", "-b", "main", clone.to_str().unwrap()]).succeeds();
    let from = garden.path("");
    let fetch = ["fetch", "-q", from.to_str().unwrap(), "refs/arborist/*:refs/arborist/*"];
    garden.git_in(&clone, fetch).succeeds();
    let said = garden.arborist_in(&clone, ["session", "resume", &id]).succeeds();
    said.shows();
    let log = garden.git_in(&clone, ["log", "--format=%s", "work"]).answer();
    assert!(log.starts_with("task(work@T001@complete)"), "{log}");
}

#[test]
fn going_back_to_a_turn_brings_its_tree_back_and_keeps_what_came_later_in_history() {
    let garden = garden("claude", WORK);
    garden.arborist(["gardener"]).succeeds();
    let (_, id) = session(&garden);
    let before = garden.git(["rev-parse", "HEAD"]).answer();
    let first = garden.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
    let first = first.lines().next().unwrap();
    garden.arborist(["session", "resume", &id, "--turn", "9"]).exits(1).shows();
    garden.arborist(["session", "resume", &id, "--turn", "1"]).succeeds().shows();
    garden.git(["merge-base", "--is-ancestor", &before, "HEAD"]).succeeds();
    let reset = garden.git(["log", "-1", "--format=%H", "--grep=@reset)"]).answer();
    let tree = |commit: &str| garden.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer();
    assert_eq!(tree(&reset), tree(first), "it has a, and not b");
    assert_eq!(garden.git(["log", "-1", "--format=%P", &reset]).answer(), before);
    assert!(subjects(&garden, "main").starts_with("task(main@T001@complete)"));
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
    let turns: Value =
        serde_json::from_str(&garden.arborist(["session", "turns", &id, "--json"]).answer()).unwrap();
    let numbers: Vec<u64> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no number twice");
}

#[test]
fn going_back_overwrites_no_file_that_git_ignores() {
    let garden = garden("claude", WORK);
    garden.arborist(["gardener"]).succeeds();
    let (_, id) = session(&garden);
    garden.git(["rm", "-q", "a"]).succeeds();
    garden.git(["commit", "-q", "-m", "a is generated"]).succeeds();
    let excluded = garden.read(".git/info/exclude");
    garden.write(".git/info/exclude", format!("{excluded}\n/a\n"));
    garden.write("a", "precious\n");
    let head = garden.git(["rev-parse", "HEAD"]).answer();
    let said = garden.arborist(["session", "resume", &id, "--turn", "1"]).exits(2);
    said.shows();
    assert_eq!((garden.read("a").as_str(), garden.git(["rev-parse", "HEAD"]).answer()), ("precious\n", head));
}

#[test]
fn a_changed_plan_is_not_written_through_a_link() {
    let (garden, id) = failed();
    garden.write("../outside", "outside\n");
    let place = garden.path("../link");
    garden.git(["worktree", "add", "-q", place.to_str().unwrap(), "work"]).succeeds();
    fs::remove_file(place.join("tasks.md")).unwrap();
    std::os::unix::fs::symlink(garden.path("../outside"), place.join("tasks.md")).unwrap();
    garden.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more\n");
    let said = garden.arborist(["session", "resume", &id, "--plan-changed"]);
    assert_ne!(said.code(), 0);
    assert_eq!(garden.read("../outside"), "outside\n");
}

#[test]
fn a_plan_that_has_changed_since_is_shown_and_taken_only_when_asked_to() {
    let (garden, id) = failed();
    garden.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more\n");
    garden
        .arborist(["session", "resume", &id])
        .exits(2)
        .err("the plan has changed")
        .err("+ T002 more")
        .err(&format!("session resume {id} --plan-changed"));
    garden.arborist(["session", "resume", &id, "--plan-changed"]).succeeds();
    let subjects = subjects(&garden, "work");
    assert!(subjects.contains("@plan): plan changed") && subjects.contains("T002@complete"), "{subjects}");
}

#[test]
fn a_replay_is_a_new_session_on_a_new_branch_and_leaves_the_old_one_alone() {
    let garden = garden("claude", WORK);
    garden.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more (after T001)\n");
    garden.commit("two tasks\n");
    garden.arborist(["gardener"]).succeeds();
    let (_, id) = session(&garden);
    let turns: Value =
        serde_json::from_str(&garden.arborist(["session", "turns", &id, "--json"]).answer()).unwrap();
    let of_second = turns["turns"].as_array().unwrap().iter().find(|turn| turn["node"] == "T002").unwrap();
    let (number, commit) = (of_second["number"].to_string(), of_second["commit"].as_str().unwrap());
    let refs = || {
        let names = ["refs/heads/main", "refs/arborist/sessions", "refs/arborist/transcripts"];
        let all = garden.git(["for-each-ref"].iter().chain(&names)).answer();
        all.lines()
            .filter(|line| line.contains(&id) || line.ends_with("/main"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (before, calls) = (refs(), garden.calls());
    let new = garden.arborist(["session", "replay", &id, "--turn", &number]).succeeds().stdout();
    let new = new.lines().next().unwrap();
    assert_eq!(refs(), before, "the original is as it was");
    let branch = format!("arborist/tasks/{new}");
    let subjects = subjects(&garden, &branch);
    assert!(subjects.starts_with(&format!("task({branch}@T002@complete)")), "{subjects}");
    assert_eq!(garden.calls(), calls + 1, "what was complete is not done again");
    assert!(garden.prompt(calls).contains("What was done so far"), "{}", garden.prompt(calls));
    garden.git(["merge-base", "--is-ancestor", commit, &branch]).succeeds();
    let shown: Value =
        serde_json::from_str(&garden.arborist(["session", "show", new, "--json"]).answer()).unwrap();
    assert_eq!(shown["forked_from"]["session"], id.as_str());
    assert_eq!(shown["forked_from"]["turn"].to_string(), number);
    assert_eq!(shown["session"]["state"], "complete");
    assert_eq!(garden.git(["branch", "--show-current"]).answer(), "main");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn what_cannot_be_gone_on_with_is_said() {
    let garden = garden("claude", WORK);
    let other = garden.arborist(["session", "start"]).answer();
    garden.arborist(["session", "resume", &other]).exits(1).shows();
    garden.arborist(["session", "replay", &other, "--turn", "1"]).exits(1).shows();
    garden.arborist(["session", "resume", "zz"]).exits(1).shows();
    let run: Run = garden.arborist(["gardener"]);
    let _ = run.succeeds();
    let id = sessions(&garden).into_iter().find(|session| session["driver"] == "run").unwrap()["id"].clone();
    garden.git(["switch", "-q", "-c", "aside"]).succeeds();
    garden.git(["branch", "-f", "main", "main~3"]).succeeds();
    fs::write(garden.path("x"), "x").unwrap();
    let main = garden.git(["commit-tree", "main^{tree}", "-p", "main", "-m", "elsewhere"]).answer();
    garden.git(["branch", "-f", "main", &main]).succeeds();
    let id = id.as_str().unwrap();
    garden.arborist(["session", "resume", id, "--turn", "1"]).exits(2).shows();
}

#[test]
fn what_a_killed_run_left_running_is_ended_before_a_turn_comes_back() {
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    garden.commit("a plan\n");
    // It would write as soon as it sees that the files are put back.
    let late = "case \"$prompt\" in \"Review\"*) echo APPROVED; exit;; esac\n\
        if [ $ARBORIST_TASK = T002 ] && [ ! -e \"$ROOT/killed\" ]; then touch \"$ROOT/killed\"; kill -9 $PPID; \
        i=0; until git log -1 --format=%s | grep -q reset || [ $i -gt 900 ]; do i=$((i+1)); sleep 0.02; done; \
        echo late > late; exit; fi\necho $n > $ARBORIST_TASK.txt; echo done";
    garden.agent(late);
    garden.arborist(["gardener"]).exits(137);
    let (_, id) = session(&garden);
    let said = garden.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    let told = said.stderr();
    let (ended, rest) = told.split_once("ended what a crashed run had left running").unwrap();
    assert!(!ended.contains("is back") && rest.contains("the tree of turn 1 is back"), "{told}");
    assert!(!garden.path("late").exists());
    assert_eq!(garden.git(["log", "--format=%s", "--", "late"]).answer(), "");
}
