//! Going back to a turn, or forking at one: everything stands as it stood right after that turn.

use crate::{
    session_repo::json,
    turn_scripts::{agent, repo},
};
use arborist_testkit::TestRepo;
use serde_json::Value;

/// Two turns that write; what they write is new in every call.
const WORK: &str = r#"
opens
calls 1 "I add a"; echo "$ARBORIST_TASK $n" >> a; answers 1
calls 2 "I add b"; echo "$ARBORIST_TASK $n" >> b; answers 2
ends "done"
"#;

/// Rejects the first work on T001.
const JUDGE: &str = r#"prompt=$(cat)
echo asked >> "$HOME/asked"
case "$prompt" in *T001*) if [ ! -e "$HOME/seen" ]; then touch "$HOME/seen"; echo 'REJECTED: no foreign key'; exit; fi;; esac
echo APPROVED
"#;

/// Two tasks, of which the first needed two attempts; the session, and its turns.
fn worked() -> (TestRepo, String, Vec<Value>) {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more (after T001)\n");
    repo.commit("two tasks\n");
    crate::turn_scripts::judge(&repo, JUDGE);
    repo.arborist(["gardener"]).succeeds();
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let turns = json(&repo, &["session", "turns", &id, "--json"])["turns"].as_array().unwrap().clone();
    (repo, id, turns)
}

/// The number of a task's turn in a step of an attempt: the first or the last.
fn number(turns: &[Value], (node, step, attempt): (&str, &str, u32), is_last: bool) -> String {
    let is_it = |turn: &&Value| turn["node"] == node && turn["step"] == step && turn["attempt"] == attempt;
    let found = if is_last { turns.iter().rfind(is_it) } else { turns.iter().find(is_it) };
    found.unwrap()["number"].to_string()
}

/// What happened on a branch since a commit, oldest first.
fn since(repo: &TestRepo, base: &str, branch: &str) -> Vec<String> {
    let log = repo.git(["log", "--reverse", "--format=%s", &format!("{base}..{branch}")]).answer();
    let told =
        log.lines().filter_map(|line| Some(line.split_once(&format!("({branch}@"))?.1.split_once("): ")?.0));
    told.map(str::to_owned).filter(|line| !line.starts_with('@')).collect()
}

fn head(repo: &TestRepo) -> String {
    repo.git(["rev-parse", "main"]).answer()
}

fn count_reviews(repo: &TestRepo) -> usize {
    std::fs::read_to_string(repo.home().join("asked")).unwrap().lines().count()
}

#[test]
fn going_back_to_an_approved_review_continues_with_the_next_task() {
    let (repo, id, turns) = worked();
    let (before, calls) = (head(&repo), repo.calls());
    let turn = number(&turns, ("T001", "review", 1), true);
    let done = repo.git(["log", "-1", "--format=%H", "--grep=T001@complete)"]).answer();
    let said = repo.arborist(["session", "resume", &id, "--turn", &turn]).succeeds();
    said.matches_snapshot();
    assert_eq!(repo.calls(), calls + 1, "only T002 is done again");
    let told = since(&repo, &before, "main");
    assert_eq!(told.first().unwrap(), "T002@reset");
    assert!(told.iter().all(|line| line.starts_with("T002@")), "{told:#?}");
    assert_eq!(told.last().unwrap(), "T002@complete");
    let reset = repo.git(["log", "-1", "--format=%H", "--grep=@reset)"]).answer();
    let tree = |commit: &str| repo.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer();
    assert_eq!(tree(&reset), tree(&done), "as it was when T001 was complete");
    repo.arborist(["state", "--exit-code"]).succeeds();
    repo.arborist(["trailers", "check", &format!("{before}..main")]).succeeds();
}

#[test]
fn going_back_to_the_last_turn_of_the_session_leaves_nothing_to_do() {
    let (repo, id, turns) = worked();
    let (before, calls) = (head(&repo), repo.calls());
    let turn = turns.last().unwrap()["number"].to_string();
    let said = repo.arborist(["session", "resume", &id, "--turn", &turn]).succeeds();
    said.err(&format!("turn {turn} is the last one")).out("nothing is left to do");
    assert_eq!((head(&repo), repo.calls()), (before, calls));
    let state = &json(&repo, &["session", "list", "--json"])["sessions"][0]["state"];
    assert_eq!(state, "complete");
}

#[test]
fn going_back_into_an_attempt_keeps_earlier_attempts_and_their_reviews() {
    let (repo, id, turns) = worked();
    let (before, calls) = (head(&repo), repo.calls());
    let spent = |key: &str| {
        let format = format!("--format=%(trailers:key=Arborist-{key},valueonly)");
        repo.git(["log", &format, &format!("{before}..main")]).answer().split_whitespace().count()
    };
    let turn = number(&turns, ("T001", "implement", 1), false);
    repo.arborist(["session", "resume", &id, "--turn", &turn]).succeeds().matches_snapshot();
    assert_eq!(repo.calls(), calls + 2);
    assert!(repo.prompt(calls).contains("no foreign key"), "{}", repo.prompt(calls));
    let told = since(&repo, &before, "main");
    assert_eq!(
        told[..7],
        [
            "T001@reset",
            "T001@implement-pass",
            "T001@test-pass",
            "T001@review-rejected",
            "T002@reset",
            "T001@turn",
            "T001@turn"
        ]
    );
    let retries = repo.git([
        "log",
        "-1",
        "--format=%(trailers:key=Arborist-Retry,valueonly)",
        "--grep=T001@review-approved)",
    ]);
    assert_eq!(retries.answer().trim(), "1", "the attempt that it was in goes on");
    assert_eq!(spent("Tokens-In"), 2, "what was spent before is not counted again");
    repo.arborist(["trailers", "check", &format!("{before}..main")]).succeeds();
}

#[test]
fn going_back_to_the_last_implementing_turn_only_tests_and_reviews_it() {
    let (repo, id, turns) = worked();
    let (before, calls, reviews) = (head(&repo), repo.calls(), count_reviews(&repo));
    let turn = number(&turns, ("T002", "implement", 0), true);
    repo.arborist(["session", "resume", &id, "--turn", &turn]).succeeds().matches_snapshot();
    assert_eq!((repo.calls(), count_reviews(&repo)), (calls, reviews + 1), "the work is not done again");
    let told = since(&repo, &before, "main");
    let expected =
        ["T002@reset", "T002@implement-pass", "T002@test-pass", "T002@review-approved", "T002@complete"];
    assert_eq!(told, expected);
}

#[test]
fn resuming_at_a_turn_of_a_killed_attempt_continues_that_attempt() {
    let killed = "opens\ncalls 1 \"I add a\"; echo a > a; answers 1\nkill -9 $PPID\nexit 1\n";
    let repo = repo("claude", killed);
    repo.arborist(["gardener", "--max-retries", "1"]).exits(137);
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    agent(&repo, "claude", WORK);
    repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    let told = repo.git(["log", "--format=%s"]).answer();
    assert!(!told.contains("implement-fail"), "{told}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_replay_begins_with_the_task_states_of_its_turn() {
    let (repo, id, turns) = worked();
    let replay = |turn: &str| {
        let said = repo.arborist(["session", "replay", &id, "--turn", turn]).succeeds();
        let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
        let start = repo.git(["log", "-1", "--format=%H", "--grep=@@run-start)", &branch]).answer();
        since(&repo, &start, &branch)
    };
    let calls = repo.calls();
    let told = replay(&number(&turns, ("T001", "review", 1), true));
    let done = |task: &str| {
        let steps = ["implement-pass", "test-pass", "review-approved", "complete"];
        steps.map(|step| format!("{task}@{step}")).to_vec()
    };
    assert_eq!((&told[..4], told[4].as_str()), (&done("T001")[..], "T002@turn"), "{told:#?}");
    assert_eq!(repo.calls(), calls + 1);
    let told = replay(&number(&turns, ("T001", "implement", 1), false));
    let before = ["T001@implement-pass", "T001@test-pass", "T001@review-rejected", "T001@turn"];
    assert_eq!(told[..4], before);
    assert!(repo.prompt(calls + 1).contains("no foreign key"));
    let told = replay(turns.last().unwrap()["number"].to_string().as_str());
    assert_eq!(told, [done("T001"), done("T002")].concat());
    assert_eq!(repo.calls(), calls + 3);
}

#[test]
fn going_back_keeps_a_failed_task_failed_unless_retry_failed_is_given() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 [P] the work\n- [ ] T002 [P] more\n");
    repo.commit("two tasks\n");
    crate::turn_scripts::judge(
        &repo,
        "case \"$(cat)\" in *\"the work\"*) echo REJECTED: no;; *) echo APPROVED;; esac\n",
    );
    repo.arborist(["gardener", "--keep-going", "--max-retries", "1"]).exits(1);
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let turns = json(&repo, &["session", "turns", &id, "--json"])["turns"].as_array().unwrap().clone();
    let (turn, calls) = (number(&turns, ("T002", "implement", 0), false), repo.calls());
    for verb in ["resume", "replay"] {
        let said = repo.arborist(["session", verb, &id, "--turn", &turn]).exits(1);
        said.matches_snapshot();
    }
    assert_eq!(repo.calls(), calls + 2);
    crate::turn_scripts::judge(&repo, "echo APPROVED\n");
    repo.arborist(["session", "resume", &id, "--turn", &turn, "--", "--retry-failed"]).succeeds();
}

/// What tells of no turns is one turn, whose commit is the failed end of its step.
#[test]
fn going_back_to_a_turn_of_the_last_failed_attempt_tries_the_task_again() {
    for verb in ["resume", "replay"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 the work\n", "echo half > half; exit 1");
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
        let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].clone();
        let id = id.as_str().unwrap();
        let work =
            "case \"$prompt\" in \"Review\"*) echo REJECTED: no;; *) echo whole >> half; echo done;; esac";
        repo.agent(work);
        repo.wait(5);
        let said = repo.arborist(["session", verb, id, "--turn", "1"]).exits(1);
        said.matches_snapshot();
        assert_eq!(repo.calls(), 3, "{verb}: it works on, and is judged");
        let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].clone();
        let (id, calls) = (id.as_str().unwrap(), repo.calls());
        repo.agent(&work.replace("REJECTED: no", "APPROVED"));
        let turns = json(&repo, &["session", "turns", id, "--json"])["turns"].as_array().unwrap().clone();
        let turn = number(&turns, ("T001", "review", 0), true);
        repo.arborist(["session", verb, id, "--turn", &turn]).succeeds().matches_snapshot();
        assert_eq!(repo.calls(), calls + 1, "{verb}: it is judged again, and not done again");
    }
}

#[test]
fn a_replay_from_the_start_keeps_configuration_that_was_untracked_at_the_start() {
    let repo = repo("claude", WORK);
    repo.write(".arborist/config.toml", "report-dir = \"elsewhere\"\n");
    repo.arborist(["gardener"]).succeeds();
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let said = repo.arborist(["session", "replay", &id, "--turn", "0"]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    let files = repo.git(["ls-tree", "-r", "--name-only", &branch]).answer();
    assert!(files.contains(".arborist/config.toml") && files.contains("elsewhere/"), "{files}");
    repo.arborist(["state", "--exit-code", "--scope", &branch]).succeeds();
}

#[test]
fn going_back_to_a_turn_restores_its_plan() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 the work\n");
    repo.commit("one task\n");
    repo.arborist(["gardener"]).succeeds();
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more\n");
    repo.commit("two tasks\n");
    repo.arborist(["gardener", "--accept-changes"]).succeeds();
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    assert_eq!(repo.read("tasks.md"), "- [ ] T001 the work\n");
    let state = json(&repo, &["state", "--json"]);
    let planned = state["tasks"].as_array().unwrap().iter().filter(|task| task["planned"] == true);
    assert_eq!(planned.count(), 1, "{state}");
    assert_eq!(state["summary"]["complete"], 1, "{state}");
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn a_changed_configuration_is_accepted_with_the_option_that_the_hint_names() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more (after T001)\n");
    repo.write(".arborist/config.toml", "report-dir = \"one\"\n");
    repo.commit("two tasks\n");
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.write(".arborist/config.toml", "report-dir = \"two\"\n");
    repo.commit("another folder\n");
    let id = json(&repo, &["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    repo.arborist(["session", "resume", &id]).exits(2).err("--accept-changes");
    repo.arborist(["session", "resume", &id, "--accept-changes"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds();
}
