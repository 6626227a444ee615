//! Sessions that go on, or go back, where something is easily lost: reading turns, two crashes, files of every kind, lanes that
//! are gone, and branches with names that few people choose.

use std::fs;

use crate::{
    session_repo::{json, turns},
    turn_scripts::{agent, repo},
};
use arborist_testkit::TestRepo;
use serde_json::Value;

/// Looks, writes, looks, writes.
const WORK: &str = r#"
opens
calls 1 "Let me look"; reads 1
calls 2 "I add a"; echo a$n > a; answers 2
calls 3 "Let me look again"; reads 3
calls 4 "I add b"; echo b$n > b; answers 4
ends "done"
"#;

/// Notes what it finds, and adds a file.
const LOOKS: &str = r#"
ls -R -F . > "$ROOT/seen-$n"
opens
calls 1 "I add a file"; echo $n > new; answers 1
ends "done"
"#;

/// The only session: its id, and its state.
fn session(repo: &TestRepo) -> (String, String) {
    let list = json(repo, &["session", "list", "--json"]);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "{list:#}");
    let told = |key: &str| list["sessions"][0][key].as_str().unwrap().to_owned();
    (told("id"), told("state"))
}

/// The commits of turns, oldest first.
fn commits(turns: &[Value]) -> Vec<String> {
    turns.iter().filter_map(|turn| turn["commit"].as_str()).map(str::to_owned).collect()
}

fn tree(repo: &TestRepo, revision: &str) -> String {
    repo.git(["rev-parse", &format!("{revision}^{{tree}}")]).answer()
}

/// Goes back to a turn, and gives the commit that brought its tree back.
fn back_to(repo: &TestRepo, id: &str, turn: &str) -> String {
    let before = repo.git(["rev-parse", "main"]).answer();
    repo.arborist(["session", "resume", id, "--turn", turn]).succeeds();
    let resets = ["log", "--reverse", "--format=%H", "--grep=@reset)", &format!("{before}..main")];
    repo.git(resets).answer().lines().next().unwrap().to_owned()
}

/// Forks at a turn, and gives the branch of the new session.
fn fork_at(repo: &TestRepo, id: &str, turn: &str) -> String {
    let said = repo.arborist(["session", "replay", id, "--turn", turn]).succeeds().stdout();
    format!("arborist/tasks/{}", said.lines().next().unwrap())
}

#[test]
fn going_back_to_a_turn_without_changes_restores_the_last_commit_before_it() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let (id, _) = session(&repo);
    let all = turns(&repo, &id);
    let told: Vec<bool> = all.iter().take(4).map(|turn| turn["commit"].is_string()).collect();
    assert_eq!(told, [false, true, false, true], "{all:#?}");
    let [wrote_a, wrote_b] = [&all[1], &all[3]].map(|turn| turn["commit"].as_str().unwrap());
    let start = repo.git(["log", "-1", "--format=%H", "--grep=@run-start)"]).answer();

    let branch = fork_at(&repo, &id, "3");
    repo.git(["merge-base", "--is-ancestor", wrote_a, &branch]).succeeds();
    repo.git(["merge-base", "--is-ancestor", wrote_b, &branch]).exits(1);

    let calls = repo.calls();
    assert_eq!(tree(&repo, &back_to(&repo, &id, "3")), tree(&repo, wrote_a), "it has a, and not b");
    let prompt = repo.prompt(calls);
    assert!(prompt.contains("- Add a (a)\n") && prompt.contains("- looked around"), "{prompt}");
    assert!(!prompt.contains("Add b"), "what came later is not told: {prompt}");
    assert_eq!(tree(&repo, &back_to(&repo, &id, "1")), tree(&repo, &start), "nothing was written yet");
    repo.git(["merge-base", "--is-ancestor", wrote_b, "main"]).succeeds();
}

#[test]
fn a_paused_session_continues_at_its_last_checkpoint() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n");
    repo.commit("three tasks\n");
    repo.arborist(["gardener", "--until", "T002"]).succeeds();
    let (id, state) = session(&repo);
    assert_eq!(state, "paused");
    let shown = json(&repo, &["session", "show", &id, "--json"]);
    let snapshot = shown["checkpoint"]["snapshot"]["repo"].as_str().unwrap();
    repo.git(["switch", "-q", "-c", "elsewhere", "main~3"]).succeeds();
    let calls = repo.calls();
    repo.arborist(["session", "resume", &id]).succeeds();
    let next = repo.git(["log", "--reverse", "--format=%P %s", &format!("{snapshot}..main")]).answer();
    assert!(next.starts_with(&format!("{snapshot} task(main@T003@turn): Add a")), "{next}");
    assert_eq!(repo.calls(), calls + 1, "what was done is not done again");
    assert_eq!(repo.git(["branch", "--show-current"]).answer(), "elsewhere");
}

#[test]
fn a_session_that_crashes_twice_loses_nothing() {
    let crash = |turn: u32, file: &str| {
        format!(
            "opens\ncalls 1 \"I add {file}\"; echo {file} > {file}; answers 1\n\
             calls 2 \"I write on\"; echo half{turn} > half{turn}; kill -9 $PPID; exit 1\n"
        )
    };
    let repo = repo("claude", &crash(1, "a"));
    repo.arborist(["gardener"]).exits(137);
    let (id, state) = session(&repo);
    assert_eq!(state, "crashed");
    let first = turns(&repo, &id);
    agent(&repo, "claude", &crash(2, "b"));
    repo.arborist(["session", "resume", &id]).exits(137);
    assert_eq!(session(&repo), (id.clone(), "crashed".to_owned()));
    let second = turns(&repo, &id);
    assert_eq!(second[..first.len()], first, "what was recorded stays");
    assert_eq!(commits(&second).len(), 2);
    agent(&repo, "claude", "opens\ncalls 1 \"I add c\"; echo c > c; answers 1\nends done\n");
    repo.arborist(["session", "resume", &id]).succeeds();
    assert_eq!(session(&repo), (id.clone(), "complete".to_owned()));
    let third = turns(&repo, &id);
    assert_eq!(third[..second.len()], second);
    for commit in commits(&third) {
        repo.git(["merge-base", "--is-ancestor", &commit, "main"]).succeeds();
    }
    let lost = repo.git(["ls-tree", "-r", "--name-only", "main"]).answer();
    for file in ["a", "b", "c", "half1", "half2"] {
        assert!(lost.lines().any(|name| name == file), "{file} in {lost}");
    }
    let prompt = repo.prompt(repo.calls() - 1);
    assert!(prompt.contains("- Add a (a)\n") && prompt.contains("- Add b (b)\n"), "{prompt}");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "nothing is unfinished");
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
}

#[test]
fn deletions_renames_and_modes_of_a_turn_are_restored() {
    let script = r#"
opens
calls 1 "I tidy up"; rm gone; mkdir -p deep; mv moved deep/renamed; chmod +x run.sh; ln -s run.sh link; answers 1
calls 2 "I undo it"; echo back > gone; rm -f link; chmod -x run.sh; echo more >> deep/renamed; answers 2
ends "done"
"#;
    let repo = repo("claude", script);
    for file in ["gone", "moved", "run.sh"] {
        repo.write(file, format!("{file}\n").repeat(20));
    }
    repo.commit("files\n");
    repo.arborist(["gardener"]).succeeds();
    let (id, _) = session(&repo);
    let first = commits(&turns(&repo, &id))[0].clone();
    let changed = repo.git(["show", "--format=", "--summary", "-M", &first]).answer();
    for line in [
        "delete mode 100644 gone",
        "rename moved => deep/renamed (100%)",
        "mode change 100644 => 100755 run.sh",
    ] {
        assert!(changed.contains(line), "{line} in {changed}");
    }
    assert!(changed.contains("create mode 120000 link"), "{changed}");
    let seen = |call: usize| fs::read_to_string(repo.root().join(format!("seen-{call}"))).unwrap();
    let is_back = |seen: &str| {
        let has = |name: &str| seen.lines().any(|line| line == name);
        has("run.sh*") && has("link@") && has("renamed") && !has("gone") && !has("moved")
    };
    agent(&repo, "claude", LOOKS);
    let calls = repo.calls();
    let branch = fork_at(&repo, &id, "1");
    assert!(is_back(&seen(calls)), "{}", seen(calls));
    repo.git(["merge-base", "--is-ancestor", &first, &branch]).succeeds();
    let calls = repo.calls();
    assert_eq!(tree(&repo, &back_to(&repo, &id, "1")), tree(&repo, &first));
    assert!(is_back(&seen(calls)), "{}", seen(calls));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn lanes_of_a_killed_session_are_created_again() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    let work = "opens\ncalls 1 \"I add a file\"; echo $n > $ARBORIST_TASK-a; answers 1\n";
    let crash = "[ $ARBORIST_TASK = T002 ] && kill -9 $PPID\nsleep 60\n";
    agent(&repo, "claude", &format!("{work}{crash}"));
    repo.arborist(["gardener", "--jobs", "2"]).exits(137);
    let (id, _) = session(&repo);
    let before = commits(&turns(&repo, &id));
    assert!(!before.is_empty());
    fs::remove_dir_all(repo.root().join("repo.arborist")).unwrap();
    agent(&repo, "claude", &format!("{work}ends done\n"));
    repo.arborist(["session", "resume", &id]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds();
    for commit in before {
        repo.git(["merge-base", "--is-ancestor", &commit, "main"]).succeeds();
    }
    assert_eq!(session(&repo), (id, "complete".to_owned()));
}

#[test]
fn merge_commits_of_a_session_name_their_source_task_and_session() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    agent(&repo, "claude", "opens\ncalls 1 \"I add\"; echo $n > $ARBORIST_TASK; answers 1\nends done\n");
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let (id, _) = session(&repo);
    let merges = repo.git(["log", "--merges", "--format=%H %P"]).answer();
    assert_eq!(merges.lines().count(), 2, "{merges}");
    for line in merges.lines() {
        let ids: Vec<&str> = line.split(' ').collect();
        let [merge, _, source] = ids.as_slice() else { panic!("{line}") };
        let task = repo.git(["log", "-1", "--format=%s", merge]).answer();
        let task =
            task.strip_prefix("task(main@").unwrap().split_once("@merge): land ").unwrap().0.to_owned();
        let trailers = repo.git(["log", "-1", "--format=%(trailers:only,unfold)", merge]).answer();
        let expected = format!(
            "Arborist-Step: merge\nArborist-Result: pass\nArborist-Source: {source}\nArborist-Gate: test\nArborist-Session: {id}"
        );
        assert_eq!(trailers.trim(), expected);
        let which = json(&repo, &["session", "which", merge, "--json"]);
        assert_eq!((&which["session"], &which["node"]), (&id.as_str().into(), &task.as_str().into()));
    }
    repo.arborist(["trailers", "check", "main"]).succeeds().matches_snapshot();
}

#[test]
fn sessions_work_on_branches_with_unusual_names() {
    for branch in ["feature/größe/ñandú", "a@b(c)x'y\"z"] {
        let repo = repo("claude", "opens\ncalls 1 \"I add a\"; echo half > a; answers 1\nexit 1\n");
        repo.git(["switch", "-q", "-c", branch]).succeeds();
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
        let (id, state) = session(&repo);
        assert_eq!(state, "failed", "{branch}");
        repo.git(["switch", "-q", "main"]).succeeds();
        agent(&repo, "claude", LOOKS);
        repo.arborist(["session", "resume", &id]).succeeds().err(&format!("on '{branch}'"));
        let tip = repo.git(["log", "-1", "--format=%H %s", branch]).answer();
        assert!(tip.ends_with(&format!("task({branch}@T001@complete): complete \"the work\"")), "{tip}");
        let which = json(&repo, &["session", "which", branch, "--json"]);
        assert_eq!(which["session"], id.as_str(), "{branch}");
        assert_eq!(json(&repo, &["session", "show", &id, "--json"])["session"]["branch"], branch);
        repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    }
}

#[test]
fn a_session_branch_name_never_looks_like_an_option_to_git() {
    let repo = repo("claude", WORK);
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    for prefix in ["-bot/", "bot..x/", "bot x/", "bot/.x/"] {
        repo.git(["config", "arborist.workspace.repos.app.branch-prefix", prefix]).succeeds();
        let said = repo.arborist(["gardener"]).exits(1);
        said.matches_snapshot();
        assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).answer(), "main", "{prefix}");
    }
    repo.git(["config", "--unset", "arborist.workspace.repos.app.branch-prefix"]).succeeds();
    repo.git(["mv", "tasks.md", "./-Größe & mehr.md"]).succeeds();
    repo.git(["commit", "-q", "-m", "another name"]).succeeds();
    repo.arborist(["gardener", "--tree=./-Größe & mehr.md"]).succeeds();
    let (id, _) = session(&repo);
    let branch = json(&repo, &["session", "show", &id, "--json"])["session"]["branch"].clone();
    let branch = branch.as_str().unwrap();
    assert!(branch.starts_with("arborist/") && !branch.contains("/-"), "{branch}");
    repo.git(["check-ref-format", "--branch", branch]).succeeds();
    repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
}
