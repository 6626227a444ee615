//! `git arborist trailers`: parse, check, log.

use std::time::{Duration, Instant};

use arborist_testkit::{Run, TaskCommit, TestRepo};
use serde_json::Value;

fn valid_message() -> TaskCommit {
    TaskCommit::new("T1", "complete").body("Completed after 1 attempt(s).\n> Arborist-Result: fail\n")
}

#[test]
fn parse_prints_the_same_as_git_interpret_trailers_for_valid_messages() {
    let repo = TestRepo::init();
    for status in ["implement-pass", "test-fail", "review-rejected", "complete", "failed", "merge", "reset"] {
        let message = TaskCommit::new("T1", status).to_string();
        let mut git = repo.command("git", &repo.path(""));
        let theirs = Run::of(git.args(["interpret-trailers", "--parse"]), message.as_bytes()).answer();
        assert_eq!(repo.arborist_with(["trailers", "parse"], message.as_bytes()).answer(), theirs);
        repo.commit(&message);
        assert_eq!(repo.arborist(["trailers", "parse", "HEAD"]).answer(), theirs);
        repo.write("message", &message);
        assert_eq!(repo.arborist(["trailers", "parse", "message"]).answer(), theirs);
        assert_eq!(repo.arborist(["trailers", "parse", "--file", "message"]).answer(), theirs);
        std::fs::remove_file(repo.path("message")).unwrap();
    }
}

#[test]
fn parse_reads_other_messages_as_git_log_does_despite_git_settings() {
    let repo = TestRepo::init();
    repo.commit("fix it\n\nbody\n---\nmore\n\nSigned-off-by: A <a@b>\nFixes: #1\n");
    repo.git(["config", "trailer.separators", "="]).succeeds();
    repo.git(["config", "core.commentChar", "S"]).succeeds();
    assert_eq!(repo.arborist(["trailers", "parse", "HEAD"]).answer(), "Signed-off-by: A <a@b>\nFixes: #1");
}

#[test]
fn parse_as_json_says_whether_a_message_is_valid() {
    let repo = TestRepo::init();
    let parse = |message: &str| -> Value {
        serde_json::from_str(
            &repo.arborist_with(["trailers", "parse", "--json", "-"], message.as_bytes()).answer(),
        )
        .unwrap()
    };
    let document = parse(&valid_message().to_string());
    assert_eq!((&document["claims"], &document["sound"]), (&true.into(), &true.into()));
    assert_eq!(document["trailers"][1]["key"], "Arborist-Result");
    let document = parse(&valid_message().trailer("Result", "passed").to_string());
    assert_eq!((&document["claims"], &document["sound"]), (&true.into(), &false.into()));
    assert_eq!(document["faults"][0]["line"], 7);
    assert_eq!(parse("fix it\n")["claims"], false);
}

#[test]
fn parse_warns_of_a_message_with_our_trailers_that_is_no_valid_task_commit() {
    let repo = TestRepo::init();
    let forged = "fix it\n\nArborist-Step: complete\nArborist-Result: pass\n";
    repo.arborist_with(["trailers", "parse"], forged.as_bytes()).succeeds().matches_snapshot();
}

#[test]
fn check_reports_commit_line_problem_and_fix() {
    let repo = TestRepo::init();
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    repo.commit(valid_message().to_string());
    repo.commit("an ordinary commit\n");
    let bad = repo.commit(valid_message().trailer("Result", "passed").to_string());
    let range = format!("{base}..");
    let said = repo.arborist(["trailers", "check", &range]).exits(1);
    said.out(&format!("{}:7: 'passed' is not a valid value of Arborist-Result", &bad[..10]))
        .out("    | Arborist-Result: passed")
        .out("    = write: Arborist-Result: <pass or fail>")
        .err("3 messages checked, 1 task commit valid, 1 not valid");
    repo.arborist(["trailers", "check", "HEAD~2..HEAD~1"]).succeeds().silent().matches_snapshot();
    repo.arborist(["trailers", "check", "-q", "HEAD~1"]).succeeds().silent().never("checked");
    repo.arborist(["trailers", "check", "HEAD"]).exits(1);
}

#[test]
fn check_takes_a_file_or_standard_input_also_outside_of_a_repository() {
    let repo = TestRepo::init();
    std::fs::write(repo.root().join("message"), valid_message().to_string()).unwrap();
    repo.arborist_in(repo.root(), ["trailers", "check", "message"]).succeeds();
    repo.arborist_with(["trailers", "check"], b"\n").exits(129).matches_snapshot();
    repo.arborist_with(["trailers", "check", "-"], b"x\n\nArborist-Step: complete\n")
        .exits(1)
        .matches_snapshot();
    repo.arborist_in(repo.root(), ["trailers", "check", "nothing"]).exits(128).matches_snapshot();
    repo.arborist(["trailers", "check", "nothing"]).exits(128).matches_snapshot();
    repo.write("main", "a file with the branch's name");
    repo.arborist(["trailers", "check", "main"]).exits(129).matches_snapshot();
}

#[test]
fn check_accepts_arbitrary_bytes() {
    let repo = TestRepo::init();
    let nul = [valid_message().to_string().as_bytes(), b"\0Arborist-Result: fail\n"].concat();
    repo.arborist_with(["trailers", "check"], &nul).exits(1).matches_snapshot();
    let latin = [b"caf\xe9\n\n".as_slice(), valid_message().to_string().as_bytes()].concat();
    repo.arborist_with(["trailers", "check"], &latin).exits(1).matches_snapshot();
    let crlf = valid_message().to_string().replace('\n', "\r\n");
    repo.arborist_with(["trailers", "check"], crlf.as_bytes()).succeeds();
    let long = valid_message().body(&"> x\n".repeat(1_250_000)).to_string();
    repo.arborist_with(["trailers", "check"], long.as_bytes()).succeeds();
    let escape = "task(main@T1@complete): \u{1b}[2Jx\n\nArborist-Step: complete\n";
    repo.arborist_with(["trailers", "check"], escape.as_bytes()).exits(1).never("\u{1b}");
}

#[test]
fn log_filters_by_task_step_result_session_and_date() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "implement-pass");
    repo.task("T10", "implement-pass");
    repo.commit(TaskCommit::new("T1", "test-fail").trailer("Session", "s1").to_string());
    repo.wait(86_400 * 30);
    repo.commit("an ordinary commit\n\nArborist-Result: pass\n");
    repo.commit(TaskCommit::new("T1", "complete").to_string());
    let log = |args: &[&str]| repo.arborist(["trailers", "log"].iter().chain(args)).answer();
    assert_eq!(log(&[]).lines().count(), 5);
    assert_eq!(log(&["--task", "T1"]).lines().count(), 3);
    assert_eq!(log(&["--step", "implement"]).lines().count(), 2);
    assert_eq!(log(&["--result", "fail"]).lines().count(), 1);
    assert_eq!(log(&["--session", "s1"]).lines().count(), 2);
    assert_eq!(log(&["--since", "1 week ago"]).lines().count(), 1);
    assert_eq!(log(&["-n", "2"]).lines().count(), 2);
    assert_eq!(log(&["HEAD~3..HEAD~2"]).lines().count(), 1);
    assert!(log(&["--task", "T1", "--step", "test"]).contains("4w T1 test-fail #1  \"T1 does it\""));
    let document: Value = serde_json::from_str(&log(&["--json", "--task", "T1"])).unwrap();
    assert_eq!(document["commits"][0]["status"], "complete");
    assert_eq!(document["commits"][1]["trailers"]["Arborist-Test"], "fail");
}

#[test]
fn wrong_arguments_are_refused_with_129() {
    let repo = TestRepo::init();
    repo.arborist(["trailers", "log", "--step", "bake"]).exits(129).matches_snapshot();
    repo.arborist(["trailers", "log", "--task", "a b"]).exits(129).matches_snapshot();
    repo.arborist(["trailers", "log", "--result", "good"]).exits(129).matches_snapshot();
    repo.arborist(["trailers", "log", "no-such-branch"]).exits(128).matches_snapshot();
    repo.arborist(["trailers", "log", "--", "--output=x"]).exits(128).matches_snapshot();
    repo.arborist(["trailers", "parse", "HEAD~1..HEAD"]).exits(128);
    repo.arborist(["trailers"]).exits(129).matches_snapshot();
    repo.arborist(["trailers", "prase"]).exits(129).matches_snapshot();
}

#[test]
fn a_range_with_three_dots_is_a_symmetric_difference() {
    let repo = TestRepo::init();
    repo.git(["checkout", "-q", "-b", "side"]).succeeds();
    repo.commit(TaskCommit::new("T1", "complete").to_string());
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo.commit(TaskCommit::new("T2", "complete").to_string());
    repo.commit(TaskCommit::new("T3", "complete").to_string());
    for (range, count) in [
        ("side...main", 3),
        ("main...side", 3),
        ("side..main", 2),
        ("main..side", 1),
        ("side..", 2),
        ("side...", 3),
        ("..side", 1),
        ("...side", 3),
        ("..", 0),
    ] {
        let log = repo.arborist(["trailers", "log", range]).answer();
        assert_eq!(log.lines().count(), count, "{range}: {log}");
        let sound = if count == 1 { "1 task commit".into() } else { format!("{count} task commits") };
        repo.arborist(["trailers", "check", range]).succeeds().err(&format!("{sound} among them"));
    }
    repo.arborist(["trailers", "log", "side....main"]).exits(128).matches_snapshot();
}

#[test]
fn a_missing_end_of_a_range_is_reported_with_a_suggestion() {
    let repo = TestRepo::init();
    for verb in ["log", "check"] {
        repo.arborist(["trailers", verb, "HEAD~20.."]).exits(128).err("'HEAD~20' names no commit").err(
            "hint: the history of 'HEAD' is shorter; its first commit: git rev-list --max-parents=0 HEAD",
        );
        for range in ["origin/main..HEAD", "HEAD...origin/main", "origin/main~2.."] {
            repo.arborist(["trailers", verb, range]).exits(128).matches_snapshot();
        }
    }
    repo.arborist(["trailers", "log", "nowhere"]).exits(128).matches_snapshot();
    let empty = TestRepo::with_options(&[]);
    empty.arborist(["trailers", "log"]).exits(128).matches_snapshot();
}

#[test]
fn parse_repeats_a_range_as_it_was_typed() {
    let repo = TestRepo::init();
    repo.commit("more\n");
    repo.arborist(["trailers", "parse", "HEAD~1..HEAD"]).exits(129).matches_snapshot();
}

#[test]
fn a_task_subject_below_empty_lines_does_not_count_and_is_reported_by_check() {
    let repo = TestRepo::init();
    repo.commit(format!("\n\n{}", valid_message()));
    assert!(repo.git(["log", "-1", "--format=%s"]).answer().starts_with("task(main@T1@complete): "));
    for source in ["HEAD", "HEAD~1.."] {
        repo.arborist(["trailers", "check", source]).exits(1).matches_snapshot();
    }
    repo.arborist(["trailers", "log"]).succeeds().silent();
    repo.arborist(["trailers", "parse", "HEAD"]).succeeds().matches_snapshot();
}

#[test]
fn a_long_message_that_is_wrong_in_every_line_is_checked_quickly() {
    let repo = TestRepo::init();
    let message = format!("x\n\n{}", "Arborist-Foo: x\n".repeat(320_000));
    repo.commit(&message);
    let begun = Instant::now();
    repo.arborist(["trailers", "parse", "HEAD"]).succeeds().err("is not valid");
    let said = repo.arborist_with(["trailers", "check"], message.as_bytes()).exits(1);
    said.out("standard input: and many more");
    repo.arborist(["state"]).succeeds();
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
}

#[test]
fn help_and_errors_spell_usage_as_git_does_and_no_command_has_a_version_of_its_own() {
    let repo = TestRepo::init();
    for verb in ["state", "trailers", "hooks", "install-assets"] {
        repo.arborist([verb, "-h"]).succeeds().matches_snapshot().never("Usage:");
        repo.arborist([verb, "--help"]).succeeds().matches_snapshot().never("Usage:");
        repo.arborist([verb, "--frobnicate"]).exits(129).matches_snapshot().never("Usage:");
        repo.arborist([verb, "--version"]).exits(129).matches_snapshot();
    }
    repo.arborist(["hooks"]).exits(129).matches_snapshot().never("Usage:");
    repo.arborist(["hooks", "uninstall", "-h"]).succeeds().matches_snapshot().never("commit-msg and");
}

#[test]
fn check_file_accepts_a_dash_for_standard_input() {
    let message = valid_message().to_string();
    let repo = TestRepo::init();
    repo.arborist_with(["trailers", "check", "--file", "-"], message.as_bytes()).succeeds();
}

#[test]
fn a_time_that_git_does_not_understand_is_an_error() {
    let repo = TestRepo::init();
    for date in ["never", "yesturday", ""] {
        repo.arborist(["trailers", "log", "--since", date]).exits(129).err("it must be a date");
    }
    for date in ["yesterday", "2 weeks ago", "2026-01-31", "last monday", "noon"] {
        repo.arborist(["trailers", "log", "--since", date]).succeeds();
    }
}

#[test]
fn adding_the_lines_that_check_proposes_makes_a_message_valid() {
    let repo = TestRepo::init();
    let subject = "task(main@T1@complete): done";
    let said = repo.arborist_with(["trailers", "check"], subject.as_bytes()).exits(1).stdout();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| line.starts_with("Arborist-")).collect();
    assert_eq!(lines.len(), 3, "{said}");
    let lines = lines.join("\n").replace("<a path relative to the top of the repository, with '/'>", "r.md");
    let message = format!("{subject}\n\n{lines}\n");
    repo.arborist_with(["trailers", "check"], message.as_bytes()).succeeds();
}
