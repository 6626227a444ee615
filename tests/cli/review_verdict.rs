//! Only the reviewer itself has the last word: one final event, nothing after its end, and no yes behind a no.

use crate::turn_scripts;
use arborist_testkit::TestRepo;
use serde_json::Value;

const WORK: &str = "opens\ncalls 1 'I add a'; echo $n > a; answers 1\nends done\n";

/// A task whose reviewer speaks by this script, in events of this kind.
fn repo(events: &str, review: &str) -> TestRepo {
    let repo = turn_scripts::repo("claude", WORK);
    let file = repo.home().join(".config/git-arborist/config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{config}events = \"{events}\"\n")).unwrap();
    turn_scripts::judge(&repo, &format!("cat > /dev/null\n{review}\n"));
    repo
}

/// How it stands after one attempt, and how the run ended.
fn verdict(repo: &TestRepo) -> (i32, String) {
    let code = repo.arborist(["gardener", "--max-retries", "1"]).code();
    let said: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    (code, said["tasks"][0]["state"].as_str().unwrap().to_owned())
}

fn result(text: &str) -> String {
    format!(r#"echo '{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}'"#)
}

#[test]
fn a_second_final_event_fails_the_review_regardless_of_its_content() {
    let codex = |text: &str| {
        format!(
            r#"echo '{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{text}"}}}}'; echo '{{"type":"turn.completed","usage":{{}}}}'"#
        )
    };
    let gemini = |text: &str| {
        format!(
            r#"echo '{{"type":"message","role":"assistant","content":"{text}"}}'; echo '{{"type":"result","status":"success"}}'"#
        )
    };
    let opencode = |text: &str| {
        format!(
            r#"echo '{{"type":"text","part":{{"text":"{text}"}}}}'; echo '{{"type":"step_finish","part":{{"reason":"stop"}}}}'"#
        )
    };
    let assistant =
        r#"echo '{"type":"assistant","message":{"id":"x","content":[{"type":"text","text":"more"}]}}'"#;
    let (no, yes) = ("REJECTED: no", "APPROVED");
    let failed = r#"echo '{"type":"result","subtype":"error_during_execution","is_error":true}'"#;
    let cases = [
        ("claude", [result(no), result(yes)].join("\n")),
        ("claude", [result("I think not."), result(yes)].join("\n")),
        ("claude", [result(yes), result(yes)].join("\n")),
        ("claude", [result("I think not."), assistant.to_owned(), result(yes)].join("\n")),
        ("claude", [failed.to_owned(), assistant.to_owned(), result(yes)].join("\n")),
        ("claude", format!("( sleep 0.2; {} ) &\n{}", result(yes), result(no))),
        ("codex", [codex(no), codex(yes)].join("\n")),
        ("gemini", [gemini("I think not."), gemini(yes)].join("\n")),
        ("opencode", [opencode("I think not."), opencode(yes)].join("\n")),
    ];
    for (events, script) in cases {
        let repo = repo(events, &script);
        let (code, state) = verdict(&repo);
        assert!(code != 0 && state != "complete", "{events}: {script}: {code} {state}");
    }
    for (events, script) in
        [("claude", result(yes)), ("codex", codex(yes)), ("gemini", gemini(yes)), ("opencode", opencode(yes))]
    {
        assert_eq!(verdict(&repo(events, &script)), (0, "complete".into()), "{events}");
    }
}

#[test]
fn output_after_the_reviewer_has_ended_does_not_count_as_a_verdict() {
    // It sleeps so long that the reviewer has ended before, however busy the machine is.
    let late = "echo 'I think not.'\n( sleep 30; echo APPROVED ) &\n";
    let (code, state) = verdict(&repo("text", late));
    assert!(code != 0 && state != "complete", "{code} {state}");
    let alone = format!("( sleep 30; {} ) &\n", result("APPROVED"));
    let (code, state) = verdict(&repo("claude", &alone));
    assert!(code != 0 && state != "complete", "{code} {state}");
}

#[test]
fn an_approval_after_a_rejection_counts_as_a_rejection() {
    for script in [
        "echo 'REJECTED: no'; sh -c 'echo APPROVED'",
        "echo '**REJECTED**: no'; echo; echo APPROVED",
        // More than is kept of what somebody says.
        "echo 'REJECTED: no'; head -c 400000 /dev/zero | tr '\\0' 'x' | fold; echo; echo APPROVED",
    ] {
        let repo = repo("text", script);
        assert_eq!(verdict(&repo), (1, "failed".into()), "{script}");
    }
    assert_eq!(
        verdict(&repo("text", "echo 'I first thought REJECTED'; echo APPROVED")),
        (0, "complete".into())
    );
}

#[test]
fn an_approval_by_a_reviewer_that_timed_out_does_not_count() {
    let repo = repo("claude", &format!("{}\nsleep 60", result("APPROVED")));
    repo.git(["config", "arborist.timeouts.silence", "1"]).succeeds();
    let (code, state) = verdict(&repo);
    assert!(code != 0 && state != "complete", "{code} {state}");
}
