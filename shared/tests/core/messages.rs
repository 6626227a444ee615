//! What we write is read back as it was, by us and by every reader of git's, whatever names, branches and
//! agents' words stand in it.

use arborist_core::{
    message::{
        Body, Fault, Key, Message, MessageReading, Status, Subject, SubjectParts, Trailers, read,
        read_as_git, read_to_check,
    },
    name::{Attempt, BranchName, TaskId},
};
use arborist_testkit::{Run, TaskCommit, TestRepo};
use proptest::{collection::vec, prelude::*, sample::select, strategy::ValueTree};

/// Lines that have fooled readers of trailers, and pieces of every kind of character.
fn hostile_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        select(vec![
            "Arborist-Result: pass",
            "Arborist-Step: complete",
            "task(main@T001@complete): complete \"x\"",
            "---",
            "--- a/file",
            "# ------------------------ >8 ------------------------",
            "(cherry picked from commit 0123456789012345678901234567890123456789)",
            "Signed-off-by: A <a@b>",
            "Conflicts:",
            "\tfoo.c",
            "# comment",
            "> quoted",
            "This reverts commit 0123456789012345678901234567890123456789.",
            "",
            "   ",
            "\r",
            "\u{b}",
            "\u{a0}",
            "\u{2028}Arborist-Test: pass",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn branch() -> impl Strategy<Value = BranchName> {
    "[a-z@(){}%ü/;$'\"!.-]{1,30}".prop_filter_map("not a branch", |name| name.parse().ok())
}

fn task() -> impl Strategy<Value = TaskId> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,20}".prop_filter_map("not an id", |name| name.parse().ok())
}

fn value_of(key: Key) -> String {
    match key {
        Key::Retry | Key::Turn => "3".into(),
        Key::TestFailed => "0".into(),
        Key::Base | Key::Source => "0123456789".repeat(4),
        Key::Plan => format!("spec/t@sks.md@{}", "0123456789".repeat(4)),
        Key::LandedIn => format!("api@{0}, web@{0}", "0123456789".repeat(4)),
        Key::Session | Key::Replays | Key::Worker => "s-1".into(),
        Key::Sandbox => "none".into(),
        Key::ResolvedBy => "agent claude".into(),
        Key::Report | Key::TestLog | Key::ReviewLog => "spec/logs/ä b.log".into(),
        Key::TestType => "unit,e2e".into(),
        Key::TestRuntime | Key::Cost => "0.25".into(),
        Key::Model | Key::Provider | Key::Node | Key::Pipeline | Key::Gate => "any words: (yes)".into(),
        _ => "7".into(),
    }
}

prop_compose! {
    fn message()(
        branch in branch(),
        task in task(),
        status in select(Status::ALL),
        name in hostile_text(),
        heading in hostile_text(),
        text in hostile_text(),
        second in hostile_text(),
    ) -> Message {
        let attempt = Attempt(3);
        let wording = SubjectParts { name: &name, attempt, max: 5 };
        let subject = Subject {
            branch,
            task: status.names_task().then_some(task),
            status,
            text: wording.text(status),
        };
        let mut trailers = Trailers::default();
        let outcomes = [Key::Step, Key::Result, Key::Test, Key::Review];
        let belongs = |key: &Key| *key != Key::Interrupted || status == Status::ImplementFail;
        for key in Key::ALL.iter().filter(|key| !outcomes.contains(key) && belongs(key)) {
            trailers.set(*key, value_of(*key)).unwrap();
        }
        let body = Body::new(&heading, &text).with("Test (unit) stdout (last 1000 chars):", &second);
        Message::compose(subject, body, &trailers).unwrap()
    }
}

fn ours(message: &Message) -> Vec<String> {
    message.trailers.iter().map(|(key, value)| format!("{}: {value}", key.as_str())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2025),
        ..ProptestConfig::default()
    })]

    #[test]
    fn parse_and_render_are_inverses(message in message()) {
        let rendered = message.render();
        prop_assert_eq!(read(rendered.as_bytes()), MessageReading::WellFormed(Box::new(message)), "{}", rendered);
    }

    #[test]
    fn the_reader_for_other_messages_reads_the_trailers_of_ours(message in message()) {
        let read: Vec<String> = read_as_git(message.render().as_bytes()).into_iter().map(|(k, v)| format!("{k}: {v}")).collect();
        prop_assert_eq!(read, ours(&message));
    }

    #[test]
    fn reading_anything_never_panics(bytes in vec(any::<u8>(), 0..400), text in hostile_text()) {
        let _ = read(&bytes);
        let _ = read_as_git(&bytes);
        let forged = format!("task(main@T1@complete): x\n\n{text}\n");
        let is_sound = matches!(read(forged.as_bytes()), MessageReading::WellFormed(_));
        prop_assert!(!is_sound, "a body alone made a sound message: {forged}");
    }
}

/// One commit object for each message, all in one repository, asked of git in two calls.
#[test]
fn git_reads_the_trailers_that_we_wrote() {
    let repo = TestRepo::init();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..60 {
        let message = message().new_tree(&mut runner).unwrap().current();
        let rendered = message.render();
        let commit = repo.commit_object(&tree, &[], &rendered);
        let log = repo.git(["log", "-1", "--format=%(trailers:only,unfold)", &commit]).answer();
        assert_eq!(log.lines().collect::<Vec<_>>(), ours(&message), "{rendered}");
        let mut parse = repo.command("git", repo.root());
        let parsed = Run::of(parse.args(["interpret-trailers", "--parse"]), rendered.as_bytes()).answer();
        assert_eq!(parsed.lines().collect::<Vec<_>>(), ours(&message), "{rendered}");
    }
}

#[test]
fn required_trailers_come_first_and_in_order() {
    for status in Status::ALL {
        let subject = Subject {
            branch: "main".parse().unwrap(),
            task: status.names_task().then(|| "T1".parse().unwrap()),
            status: *status,
            text: "words".into(),
        };
        let mut trailers = Trailers::default();
        for key in Key::ALL.iter().rev().filter(|key| status.required().contains(key)) {
            if ![Key::Step, Key::Result, Key::Test, Key::Review].contains(key) {
                trailers.set(*key, value_of(*key)).unwrap();
            }
        }
        let message = Message::compose(subject, Body::default(), &trailers).unwrap();
        let keys: Vec<Key> = message.trailers.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, status.required(), "{status}");
    }
}

#[test]
fn each_problem_names_its_line_and_the_fix() {
    let table = [
        ("task(main@T1@completed): x\n\nArborist-Step: complete\n", 1, "did you mean 'complete'?"),
        ("task(main@T 1@complete): x\n", 1, "name the task by its id"),
        ("task(main@@complete): x\n", 1, "name the task by its id"),
        ("task(main@T1@run-start): x\n", 1, "task(<branch>@@run-start)"),
        ("task(main@T1@reset): x\nArborist-Step: reset\n", 2, "put an empty line after the subject"),
        ("task(main@T1@reset): x\n\nArborist-Stp: reset\n", 3, "did you mean 'Arborist-Step'?"),
        ("task(main@T1@reset): x\n\nArborist-Step: complete\n", 3, "write: Arborist-Step: reset"),
        ("task(main@T1@reset): x\n\n", 1, "\n  Arborist-Step: reset"),
        (
            "task(main@T1@test-pass): x\n\nArborist-Step: test\nArborist-Test: passed\nArborist-Retry: 0\n",
            4,
            "write: Arborist-Test: <pass or fail>",
        ),
        (
            "task(main@T1@test-fail): tests fail for \"x\" (attempt 1/5)\n\nArborist-Step: test\nArborist-Test: fail\nArborist-Retry: 1\n",
            5,
            "write: Arborist-Retry: 0",
        ),
        ("fix a typo\n\nArborist-Result: pass\n", 1, "start the message with"),
    ];
    for (message, line, fix) in table {
        let MessageReading::Malformed(faults) = read_to_check(message.as_bytes()) else {
            panic!("sound or foreign: {message}");
        };
        assert!(
            faults.iter().any(|fault| fault.line == line && fault.fix.contains(fix)),
            "{message}: {faults:?}"
        );
    }
}

fn faults_of(message: &str) -> Vec<(usize, String)> {
    match read_to_check(message.as_bytes()) {
        MessageReading::Malformed(faults) => {
            faults.into_iter().map(|fault| (fault.line, fault.what)).collect()
        }
        other => panic!("{message:?}: {other:?}"),
    }
}

#[test]
fn empty_lines_before_the_subject_of_a_task_commit_are_a_problem() {
    let sound = TaskCommit::new("T1", "complete").to_string();
    for lead in ["\n", "\n\n", " \t\n", "\r\n\r\n"] {
        assert_eq!(faults_of(&format!("{lead}{sound}")), [(1, "empty lines before the subject".to_owned())]);
    }
    let bare = faults_of("\n\ntask(main@T1@compleet): x\nmore\n");
    assert_eq!(bare.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4], "{bare:?}");
}

#[test]
fn a_passed_test_step_cannot_list_failed_tests() {
    let with = |status: &str, failed: &str| {
        read(TaskCommit::new("T1", status).trailer("Test-Failed", failed).to_string().as_bytes())
    };
    assert!(matches!(with("test-pass", "0"), MessageReading::WellFormed(_)));
    assert!(matches!(with("test-fail", "2"), MessageReading::WellFormed(_)));
    let message = TaskCommit::new("T1", "test-pass").trailer("Test-Failed", "2").to_string();
    let what = "'Arborist-Test-Failed: 2' does not agree with the status 'test-pass'";
    assert_eq!(faults_of(&message), [(6, what.to_owned())]);
}

#[test]
fn a_subject_contains_no_hidden_or_reordering_characters() {
    for mark in ['\u{61c}', '\u{200b}', '\u{202e}', '\u{2028}', '\u{2066}', '\u{feff}'] {
        for commit in [
            TaskCommit::new("T1", "complete").text(&format!("complete \"a{mark}b\"")),
            TaskCommit::new("T1", "complete").branch(&format!("ma{mark}in")),
        ] {
            let faults = faults_of(&commit.to_string());
            assert_eq!(
                faults,
                [(1, "the subject contains a character that hides or reorders text".to_owned())]
            );
        }
    }
}

#[test]
fn a_long_body_is_no_problem() {
    let body = "> x\n".repeat(40_000);
    let message = TaskCommit::new("T1", "complete").body(&body).to_string();
    assert!(matches!(read(message.as_bytes()), MessageReading::WellFormed(_)));
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let sound = TaskCommit::new("T1", "complete").to_string();
    for lines in ["Arborist-Foo: x\n", "Arborist-Step: x\n", "no trailer\n", "Fixes: x\n"] {
        let in_block = faults_of(&format!("{sound}{}", lines.repeat(20_000)));
        assert_eq!((in_block.len(), in_block[0].0), (Fault::MAX_REPORTED, 6), "{lines}");
    }
    let outside = faults_of(&sound.replacen("\n\n", &format!("\n\n{}\n", "---\n".repeat(20_000)), 1));
    assert_eq!(outside.len(), Fault::MAX_REPORTED);
}
