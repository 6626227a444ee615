//! `git arborist session turn`: what an agent did in a turn is committed and recorded, both or neither.

use arborist_testkit::{Garden, Run};
use serde_json::Value;

fn garden() -> (Garden, String) {
    let garden = Garden::sprout();
    garden.write("kept", "1\n2\n3\n");
    garden.write("gone", "x\n");
    garden.commit("files\n");
    let id = garden.arborist(["session", "start", "--pipeline", "mine"]).answer();
    (garden, id)
}

/// Records a turn, and gives its commit, or `-`.
fn turn(garden: &Garden, id: &str, more: &[&str]) -> String {
    let args = ["session", "turn", "--session", id, "--node", "T1", "--model", "gpt-9"];
    garden.arborist(args.iter().chain(more)).answer()
}

fn json(garden: &Garden, args: &[&str]) -> Value {
    let args = ["session"].iter().chain(args).chain(&["--json"]);
    serde_json::from_str(&garden.arborist(args).answer()).unwrap()
}

#[test]
fn a_turn_that_wrote_files_is_a_commit_that_names_who_and_where() {
    let (garden, id) = garden();
    garden.write("new file", "a\n");
    std::fs::remove_file(garden.path("gone")).unwrap();
    let commit =
        turn(&garden, &id, &["-m", "Add a file\n\nIt was missing.\nArborist-Turn: 9", "--runner", "codex"]);
    let shown = |format: &str| garden.git(["log", "-1", &format!("--format={format}"), &commit]).answer();
    assert_eq!(shown("%an <%ae>"), "T1 (gpt-9) <arborist@local>");
    assert_eq!(shown("%cn"), "Ada");
    assert_eq!(shown("%s"), "task(main@T1@turn): Add a file");
    let trailers = shown("%(trailers:only)");
    let expected = format!(
        "Arborist-Step: implement\nArborist-Retry: 0\nArborist-Model: gpt-9\nArborist-Provider: openai\n\
         Arborist-Node: T1\nArborist-Pipeline: mine\nArborist-Session: {id}\nArborist-Turn: 1"
    );
    assert_eq!(trailers.trim(), expected);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "the index knows of it");
    assert_eq!(garden.git(["show", "--name-status", "--format=", &commit]).answer(), "D\tgone\nA\tnew file");
    let told = &json(&garden, &["show", &id, "--turn", "1"])["turn"];
    assert_eq!(told["commit"], commit.as_str());
    assert_eq!(told["files"], serde_json::json!(["gone", "new file"]));
    assert_eq!((&told["model"], &told["provider"]), (&"gpt-9".into(), &"openai".into()));
    garden.arborist(["trailers", "check", &commit]).succeeds();
}

#[test]
fn only_the_files_that_are_named_are_committed_and_the_rest_stays_as_it_was() {
    let (garden, id) = garden();
    garden.write("mine", "mine\n");
    garden.write("staged", "staged\n");
    garden.git(["add", "staged"]).succeeds();
    garden.write("dir/a", "a\n");
    garden.write("dir/b", "b\n");
    std::fs::remove_file(garden.path("gone")).unwrap();
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--files-from", "-"];
    let names = format!("gone\n{}\n", garden.path("dir").display());
    let commit = garden.arborist_with(args, names.as_bytes()).answer();
    assert_eq!(
        garden.git(["show", "--name-status", "--format=", &commit]).answer(),
        "A\tdir/a\nA\tdir/b\nD\tgone"
    );
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "A  staged\n?? mine");
    let said = garden.arborist_with(args, b"../elsewhere\0").exits(1);
    said.shows();
}

#[test]
fn a_turn_that_wrote_nothing_is_recorded_without_a_commit() {
    let (garden, id) = garden();
    let head = garden.git(["rev-parse", "HEAD"]).answer();
    assert_eq!(turn(&garden, &id, &["--tokens-in", "100", "--tokens-out", "7", "--cost", "0.25"]), "-");
    assert_eq!(garden.git(["rev-parse", "HEAD"]).answer(), head);
    let told = json(&garden, &["show", &id, "--turn", "1"]);
    assert_eq!(told["turn"]["commit"], Value::Null);
    garden.write("a", "a\n");
    let commit = turn(&garden, &id, &["--tokens-in", "1000", "--agent-session", "abc"]);
    assert_eq!(turn(&garden, &id, &[]), "-");
    let list = &json(&garden, &["list"])["sessions"][0];
    assert_eq!((&list["turns"], &list["commits"]), (&3.into(), &1.into()));
    assert_eq!(
        (&list["tokens_in"], &list["tokens_out"], &list["cost"]),
        (&1100.into(), &7.into(), &0.25.into())
    );
    assert_eq!(list["head"], commit.as_str());
    garden.arborist(["session", "turns", &id]).succeeds().shows();
    garden.arborist(["session", "show", &id, "--turn", "3"]).succeeds().shows();
}

#[test]
fn commit_and_turn_lead_to_each_other() {
    let (garden, id) = garden();
    garden.write("kept", "1\n2 and more\n3\n");
    let first = turn(&garden, &id, &[]);
    garden.write("b", "b\n");
    let second = turn(&garden, &id, &[]);
    for (commit, number) in [(&first, 1), (&second, 2)] {
        let which = json(&garden, &["which", commit]);
        assert_eq!((&which["session"], &which["node"]), (&id.as_str().into(), &"T1".into()));
        assert_eq!((&which["turn"], &which["proven"]), (&number.into(), &true.into()));
        let shown = json(&garden, &["show", &id, "--turn", &number.to_string(), "--patch"]);
        assert_eq!(shown["turn"]["commit"], commit.as_str());
        assert!(shown["patch"].as_str().unwrap().starts_with("diff --git"), "{shown:#}");
    }
    garden.arborist(["session", "show", &id, "--turn", "1", "--patch"]).succeeds().shows();
    garden.git(["switch", "-q", "-c", "elsewhere", "HEAD~2"]).succeeds();
    garden.git(["cherry-pick", &second]).succeeds();
    garden.arborist(["session", "which", "HEAD"]).exits(1).shows();
}

#[test]
fn what_differs_between_two_turns_is_shown() {
    let (garden, id) = garden();
    garden.write("a", "a\n");
    turn(&garden, &id, &[]);
    turn(&garden, &id, &[]);
    garden.write("b", "b\n");
    turn(&garden, &id, &[]);
    let files = |from: &str, to: &str| json(&garden, &["diff", &id, from, to])["files"].to_string();
    assert_eq!(files("0", "3"), r#"["a","b"]"#);
    assert_eq!(files("1", "2"), "[]", "a turn that wrote nothing has the tree of the last that did");
    assert_eq!(files("2", "3"), r#"["b"]"#);
    garden.arborist(["session", "diff", &id, "1", "3"]).succeeds().shows().never("+++ b/a");
    garden.arborist(["session", "diff", &id, "0", "3", "--stat"]).succeeds().shows();
    garden.arborist(["session", "diff", &id, "1", "9"]).exits(1).shows();
}

#[test]
fn the_number_of_a_turn_must_be_the_next() {
    let (garden, id) = garden();
    assert_eq!(turn(&garden, &id, &["--turn", "1"]), "-");
    let again = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--turn", "1"];
    garden.arborist(again).exits(1).shows();
    garden.git(["switch", "-q", "-c", "other"]).succeeds();
    garden.arborist(&again[..8]).exits(2).shows();
}

#[test]
fn what_the_user_had_changed_before_stays_out_of_every_turn() {
    let garden = Garden::sprout();
    garden.write("b", "b\n");
    garden.commit("files\n");
    garden.write("b", "my change\n");
    garden.write("mine.txt", "mine\n");
    garden.git(["add", "mine.txt"]).succeeds();
    let id = garden.arborist(["session", "start"]).answer();
    garden.write("a", "a\n");
    let commit = turn(&garden, &id, &[]);
    assert_eq!(garden.git(["show", "--name-only", "--format=", &commit]).answer(), "a");
    assert_eq!(garden.git(["status", "--porcelain"]).stdout(), " M b\nA  mine.txt\n");
    garden.write("b", "my change, and the agent's\n");
    assert_eq!(turn(&garden, &id, &[]), "-");
    let shown = garden.arborist(["session", "show", &id, "--turn", "2"]).succeeds();
    shown.shows().never("it wrote nothing");
    garden.git(["commit", "-q", "-a", "-m", "mine"]).succeeds();
    garden.write("b", "the agent's alone\n");
    let commit = turn(&garden, &id, &[]);
    assert_eq!(
        garden.git(["show", "--name-only", "--format=", &commit]).answer(),
        "b",
        "it is committed now"
    );
    garden.arborist(["session", "end", "--session", &id]).succeeds();
    assert_eq!(garden.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

/// What is staged and does not lie in the worktree is seen only in the index.
#[test]
fn what_is_staged_alone_stays_staged() {
    let (garden, id) = garden();
    garden.write("kept", "staged\n");
    garden.git(["add", "kept"]).succeeds();
    garden.write("kept", "1\n2\n3\n");
    garden.write("a", "a\n");
    let commit = turn(&garden, &id, &[]);
    assert_eq!(garden.git(["show", "--name-only", "--format=", &commit]).answer(), "a");
    assert_eq!(garden.git(["status", "--porcelain"]).stdout(), "MM kept\n");
    garden.git(["reset", "-q"]).succeeds();
    for n in 1..=2 {
        garden.write("a", format!("again {n}\n"));
        turn(&garden, &id, &[]);
        let raw = garden.git(["diff-index", "HEAD"]).answer();
        assert_eq!(raw, "", "the index knows of what was committed, without being refreshed");
    }
}

#[test]
fn a_turn_is_refused_while_the_user_is_in_the_middle_of_a_merge() {
    let (garden, id) = garden();
    garden.git(["switch", "-q", "-c", "theirs"]).succeeds();
    garden.write("kept", "theirs\n");
    garden.commit("theirs\n");
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.write("kept", "ours\n");
    garden.commit("ours\n");
    garden.git(["merge", "theirs"]).exits(1);
    let state = || {
        let index = garden.git(["ls-files", "-s"]).answer();
        (index, garden.git(["rev-parse", "HEAD"]).answer(), garden.read("kept"))
    };
    let before = state();
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m"];
    garden.arborist(args).exits(2).shows();
    std::fs::remove_file(garden.path(".git/MERGE_HEAD")).unwrap();
    garden.arborist(args).exits(2).shows();
    assert_eq!(state(), before, "the conflict is as it was");
    assert_eq!(json(&garden, &["list"])["sessions"][0]["turns"], 0);
}

#[test]
fn a_named_path_that_cannot_be_committed_is_refused_by_name() {
    let (garden, id) = garden();
    garden.write(".gitignore", ".env\n");
    garden.write(".env", "secret\n");
    garden.write("a", "a\n");
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m", "--files-from", "-"];
    for (path, why) in
        [("nowhere", "it does not exist"), (".env", "git ignores it"), (".git/config", "belongs to git")]
    {
        let said = garden.arborist_with(args, format!("a\n{path}\n").as_bytes()).exits(1);
        said.err(&format!("'{path}' cannot be committed")).err(why);
    }
    assert_eq!(json(&garden, &["list"])["sessions"][0]["turns"], 0, "nothing is recorded");
    assert_eq!(garden.arborist_with(args, b"kept\n").answer(), "-", "what has not changed may be named");
}

#[test]
fn turns_that_end_at_the_same_time_wait_for_each_other() {
    let (garden, id) = garden();
    garden.write("a", "a\n");
    let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "m"];
    let commands = [0; 3].map(|_| {
        let mut command = garden.command("git", &garden.path(""));
        command.arg("arborist").args(args);
        command
    });
    std::thread::scope(|scope| {
        for mut command in commands {
            scope.spawn(move || Run::of(&mut command, b"").succeeds());
        }
    });
    let list = &json(&garden, &["list"])["sessions"][0];
    assert_eq!((&list["turns"], &list["commits"]), (&3.into(), &1.into()));
    garden.arborist(["session", "start", "--id", &id]).exits(1).shows();
}

#[test]
fn values_that_mean_nothing_are_refused_with_those_that_do() {
    let garden = Garden::sprout();
    garden.arborist(["session", "start", "--id", "s1"]).succeeds();
    let turn = ["session", "turn", "--session", "s1", "--node", "T1", "--model", "m"];
    for cost in ["NaN", "-1", "inf"] {
        let cost = format!("--cost={cost}");
        garden.arborist(turn.iter().copied().chain([cost.as_str()])).exits(129).shows();
    }
    let checkpoint = ["session", "checkpoint", "--session", "s1"];
    let with = |more: &[&'static str]| garden.arborist(checkpoint.iter().chain(more));
    with(&["--step", "sleep"]).exits(129).shows();
    with(&["--status", "fine"]).exits(129).shows();
    with(&["--step", "test", "--status", "fail"]).succeeds();
}

#[test]
fn what_a_driver_writes_down_is_told_as_json() {
    let garden = Garden::sprout();
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&garden.arborist(["session"].iter().chain(args)).answer()).unwrap()
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
    let newest = garden.git(["rev-parse", &format!("refs/arborist/sessions/{id}")]).answer();
    assert_eq!((&ended["commit"], &ended["record"]["result"]), (&newest.into(), &"complete".into()));
}
