//! `git arborist session turn`: what an agent did in a turn is committed and recorded, both or neither.

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

fn repo() -> (TestRepo, String) {
    let repo = TestRepo::init();
    repo.write("kept", "1\n2\n3\n");
    repo.write("gone", "x\n");
    repo.commit("files\n");
    let id = repo.arborist(["session", "start", "--pipeline", "mine"]).answer();
    (repo, id)
}

/// Records a turn, and gives its commit, or `-`.
fn turn(repo: &TestRepo, id: &str, more: &[&str]) -> String {
    let args = ["session", "turn", "--session", id, "--node", "T1", "--model", "gpt-9"];
    repo.arborist(args.iter().chain(more)).answer()
}

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    let args = ["session"].iter().chain(args).chain(&["--json"]);
    serde_json::from_str(&repo.arborist(args).answer()).unwrap()
}

#[test]
fn a_turn_that_wrote_files_is_a_commit_with_author_and_trailers() {
    let (repo, id) = repo();
    repo.write("new file", "a\n");
    std::fs::remove_file(repo.path("gone")).unwrap();
    let commit =
        turn(&repo, &id, &["-m", "Add a file\n\nIt was missing.\nArborist-Turn: 9", "--runner", "codex"]);
    let shown = |format: &str| repo.git(["log", "-1", &format!("--format={format}"), &commit]).answer();
    assert_eq!(shown("%an <%ae>"), "T1 (gpt-9) <arborist@local>");
    assert_eq!(shown("%cn"), "Ada");
    assert_eq!(shown("%s"), "task(main@T1@turn): Add a file");
    let trailers = shown("%(trailers:only)");
    let expected = format!(
        "Arborist-Step: implement\nArborist-Retry: 0\nArborist-Model: gpt-9\nArborist-Provider: openai\n\
         Arborist-Node: T1\nArborist-Pipeline: mine\nArborist-Session: {id}\nArborist-Turn: 1"
    );
    assert_eq!(trailers.trim(), expected);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "the index knows of it");
    assert_eq!(repo.git(["show", "--name-status", "--format=", &commit]).answer(), "D\tgone\nA\tnew file");
    let told = &json(&repo, &["show", &id, "--turn", "1"])["turn"];
    assert_eq!(told["commit"], commit.as_str());
    assert_eq!(told["files"], serde_json::json!(["gone", "new file"]));
    assert_eq!((&told["model"], &told["provider"]), (&"gpt-9".into(), &"openai".into()));
    repo.arborist(["trailers", "check", &commit]).succeeds();
}

#[test]
fn files_from_commits_only_the_named_files_and_leaves_others_unchanged() {
    let (repo, id) = repo();
    repo.write("mine", "mine\n");
    repo.write("staged", "staged\n");
    repo.git(["add", "staged"]).succeeds();
    repo.write("dir/a", "a\n");
    repo.write("dir/b", "b\n");
    std::fs::remove_file(repo.path("gone")).unwrap();
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--files-from", "-"];
    let names = format!("gone\n{}\n", repo.path("dir").display());
    let commit = repo.arborist_with(args, names.as_bytes()).answer();
    assert_eq!(
        repo.git(["show", "--name-status", "--format=", &commit]).answer(),
        "A\tdir/a\nA\tdir/b\nD\tgone"
    );
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "A  staged\n?? mine");
    let said = repo.arborist_with(args, b"../elsewhere\0").exits(1);
    said.matches_snapshot();
}

#[test]
fn a_turn_that_wrote_nothing_is_recorded_without_a_commit() {
    let (repo, id) = repo();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    assert_eq!(turn(&repo, &id, &["--tokens-in", "100", "--tokens-out", "7", "--cost", "0.25"]), "-");
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), head);
    let told = json(&repo, &["show", &id, "--turn", "1"]);
    assert_eq!(told["turn"]["commit"], Value::Null);
    repo.write("a", "a\n");
    let commit = turn(&repo, &id, &["--tokens-in", "1000", "--agent-session", "abc"]);
    assert_eq!(turn(&repo, &id, &[]), "-");
    let list = &json(&repo, &["list"])["sessions"][0];
    assert_eq!((&list["turns"], &list["commits"]), (&3.into(), &1.into()));
    assert_eq!(
        (&list["tokens_in"], &list["tokens_out"], &list["cost"]),
        (&1100.into(), &7.into(), &0.25.into())
    );
    assert_eq!(list["head"], commit.as_str());
    repo.arborist(["session", "turns", &id]).succeeds().matches_snapshot();
    repo.arborist(["session", "show", &id, "--turn", "3"]).succeeds().matches_snapshot();
}

#[test]
fn a_commit_can_be_found_by_its_turn_and_a_turn_by_its_commit() {
    let (repo, id) = repo();
    repo.write("kept", "1\n2 and more\n3\n");
    let first = turn(&repo, &id, &[]);
    repo.write("b", "b\n");
    let second = turn(&repo, &id, &[]);
    for (commit, number) in [(&first, 1), (&second, 2)] {
        let which = json(&repo, &["which", commit]);
        assert_eq!((&which["session"], &which["node"]), (&id.as_str().into(), &"T1".into()));
        assert_eq!((&which["turn"], &which["proven"]), (&number.into(), &true.into()));
        let shown = json(&repo, &["show", &id, "--turn", &number.to_string(), "--patch"]);
        assert_eq!(shown["turn"]["commit"], commit.as_str());
        assert!(shown["patch"].as_str().unwrap().starts_with("diff --git"), "{shown:#}");
    }
    repo.arborist(["session", "show", &id, "--turn", "1", "--patch"]).succeeds().matches_snapshot();
    repo.git(["switch", "-q", "-c", "elsewhere", "HEAD~2"]).succeeds();
    repo.git(["cherry-pick", &second]).succeeds();
    repo.arborist(["session", "which", "HEAD"]).exits(1).matches_snapshot();
}

#[test]
fn session_diff_shows_the_changes_between_two_turns() {
    let (repo, id) = repo();
    repo.write("a", "a\n");
    turn(&repo, &id, &[]);
    turn(&repo, &id, &[]);
    repo.write("b", "b\n");
    turn(&repo, &id, &[]);
    let files = |from: &str, to: &str| json(&repo, &["diff", &id, from, to])["files"].to_string();
    assert_eq!(files("0", "3"), r#"["a","b"]"#);
    assert_eq!(files("1", "2"), "[]", "a turn that wrote nothing has the tree of the last that did");
    assert_eq!(files("2", "3"), r#"["b"]"#);
    repo.arborist(["session", "diff", &id, "1", "3"]).succeeds().matches_snapshot().never("+++ b/a");
    repo.arborist(["session", "diff", &id, "0", "3", "--stat"]).succeeds().matches_snapshot();
    repo.arborist(["session", "diff", &id, "1", "9"]).exits(1).matches_snapshot();
}

#[test]
fn the_number_of_a_turn_must_be_the_next() {
    let (repo, id) = repo();
    assert_eq!(turn(&repo, &id, &["--turn", "1"]), "-");
    let again = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--turn", "1"];
    repo.arborist(again).exits(1).matches_snapshot();
    repo.git(["switch", "-q", "-c", "other"]).succeeds();
    repo.arborist(&again[..8]).exits(2).matches_snapshot();
}

#[test]
fn changes_of_the_user_before_the_session_are_part_of_no_turn() {
    let repo = TestRepo::init();
    repo.write("b", "b\n");
    repo.commit("files\n");
    repo.write("b", "my change\n");
    repo.write("mine.txt", "mine\n");
    repo.git(["add", "mine.txt"]).succeeds();
    let id = repo.arborist(["session", "start"]).answer();
    repo.write("a", "a\n");
    let commit = turn(&repo, &id, &[]);
    assert_eq!(repo.git(["show", "--name-only", "--format=", &commit]).answer(), "a");
    assert_eq!(repo.git(["status", "--porcelain"]).stdout(), " M b\nA  mine.txt\n");
    repo.write("b", "my change, and the agent's\n");
    assert_eq!(turn(&repo, &id, &[]), "-");
    let shown = repo.arborist(["session", "show", &id, "--turn", "2"]).succeeds();
    shown.matches_snapshot().never("it wrote nothing");
    repo.git(["commit", "-q", "-a", "-m", "mine"]).succeeds();
    repo.write("b", "the agent's alone\n");
    let commit = turn(&repo, &id, &[]);
    assert_eq!(repo.git(["show", "--name-only", "--format=", &commit]).answer(), "b", "it is committed now");
    repo.arborist(["session", "end", "--session", &id]).succeeds();
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

/// What is staged and does not lie in the worktree is seen only in the index.
#[test]
fn content_that_is_only_staged_stays_staged() {
    let (repo, id) = repo();
    repo.write("kept", "staged\n");
    repo.git(["add", "kept"]).succeeds();
    repo.write("kept", "1\n2\n3\n");
    repo.write("a", "a\n");
    let commit = turn(&repo, &id, &[]);
    assert_eq!(repo.git(["show", "--name-only", "--format=", &commit]).answer(), "a");
    assert_eq!(repo.git(["status", "--porcelain"]).stdout(), "MM kept\n");
    repo.git(["reset", "-q"]).succeeds();
    for n in 1..=2 {
        repo.write("a", format!("again {n}\n"));
        turn(&repo, &id, &[]);
        let raw = repo.git(["diff-index", "HEAD"]).answer();
        assert_eq!(raw, "", "the index knows of what was committed, without being refreshed");
    }
}

#[test]
fn a_turn_is_refused_during_a_merge_of_the_user() {
    let (repo, id) = repo();
    repo.git(["switch", "-q", "-c", "theirs"]).succeeds();
    repo.write("kept", "theirs\n");
    repo.commit("theirs\n");
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.write("kept", "ours\n");
    repo.commit("ours\n");
    repo.git(["merge", "theirs"]).exits(1);
    let state = || {
        let index = repo.git(["ls-files", "-s"]).answer();
        (index, repo.git(["rev-parse", "HEAD"]).answer(), repo.read("kept"))
    };
    let before = state();
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m"];
    repo.arborist(args).exits(2).matches_snapshot();
    std::fs::remove_file(repo.path(".git/MERGE_HEAD")).unwrap();
    repo.arborist(args).exits(2).matches_snapshot();
    assert_eq!(state(), before, "the conflict is as it was");
    assert_eq!(json(&repo, &["list"])["sessions"][0]["turns"], 0);
}

#[test]
fn a_named_path_that_cannot_be_committed_is_refused_and_reported() {
    let (repo, id) = repo();
    repo.write(".gitignore", ".env\n");
    repo.write(".env", "secret\n");
    repo.write("a", "a\n");
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--files-from", "-"];
    for (path, why) in
        [("nowhere", "it does not exist"), (".env", "git ignores it"), (".git/config", "belongs to git")]
    {
        let said = repo.arborist_with(args, format!("a\n{path}\n").as_bytes()).exits(1);
        said.err(&format!("'{path}' cannot be committed")).err(why);
    }
    assert_eq!(json(&repo, &["list"])["sessions"][0]["turns"], 0, "nothing is recorded");
    assert_eq!(repo.arborist_with(args, b"kept\n").answer(), "-", "what has not changed may be named");
}

#[test]
fn turns_that_end_at_the_same_time_wait_for_each_other() {
    let (repo, id) = repo();
    repo.write("a", "a\n");
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m"];
    let commands = [0; 3].map(|_| {
        let mut command = repo.command("git", &repo.path(""));
        command.arg("arborist").args(args);
        command
    });
    std::thread::scope(|scope| {
        for mut command in commands {
            scope.spawn(move || Run::of(&mut command, b"").succeeds());
        }
    });
    let list = &json(&repo, &["list"])["sessions"][0];
    assert_eq!((&list["turns"], &list["commits"]), (&3.into(), &1.into()));
    repo.arborist(["session", "start", "--id", &id]).exits(1).matches_snapshot();
}

#[test]
fn invalid_option_values_are_refused_with_a_list_of_valid_ones() {
    let repo = TestRepo::init();
    repo.arborist(["session", "start", "--id", "s1"]).succeeds();
    let turn = ["session", "turn", "--session", "s1", "--node", "T1", "--model", "m"];
    for cost in ["NaN", "-1", "inf"] {
        let cost = format!("--cost={cost}");
        repo.arborist(turn.iter().copied().chain([cost.as_str()])).exits(129).matches_snapshot();
    }
    let checkpoint = ["session", "checkpoint", "--session", "s1"];
    let with = |more: &[&'static str]| repo.arborist(checkpoint.iter().chain(more));
    with(&["--step", "sleep"]).exits(129).matches_snapshot();
    with(&["--status", "fine"]).exits(129).matches_snapshot();
    with(&["--step", "test", "--status", "fail"]).succeeds();
}

#[test]
fn records_written_by_an_external_driver_are_printed_as_json() {
    let repo = TestRepo::init();
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&repo.arborist(["session"].iter().chain(args)).answer()).unwrap()
    };
    let started = json(&["start", "--json"]);
    let id = started["record"]["session"].as_str().unwrap();
    assert_eq!(started["record"]["kind"], "start");
    let checkpoint = json(&["checkpoint", "--session", id, "--json"]);
    assert_eq!(
        (&checkpoint["record"]["kind"], &checkpoint["record"]["step"]),
        (&"checkpoint".into(), &"implement".into())
    );
    let ended = json(&["end", "--session", id, "--json"]);
    let newest = repo.git(["rev-parse", &format!("refs/arborist/sessions/{id}")]).answer();
    assert_eq!((&ended["commit"], &ended["record"]["result"]), (&newest.into(), &"complete".into()));
}
