//! The streams of real agent programs, shortened, and everything that can happen to a stream.

use std::{fs, time::Duration};

use arborist_core::agent::{
    AgentEvent, CallOutcome, EventFormat, EventReader, FailureKind, LimitKind, ProcessEnd, RetryWait, Tally,
    Usage,
};
use proptest::{collection::vec, prelude::*, sample::select};

const PROGRAMS: [EventFormat; 4] =
    [EventFormat::Claude, EventFormat::Codex, EventFormat::Gemini, EventFormat::Opencode];

const DONE: &str = "Created the schema, a seed and notes.";

fn stream(name: &str) -> Vec<u8> {
    let file = format!("{}/tests/data/streams/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn read(format: EventFormat, bytes: &[u8]) -> Vec<AgentEvent> {
    let mut reader = EventReader::new(format);
    let mut events = reader.feed(bytes);
    events.extend(reader.finish());
    events
}

fn outcome(format: EventFormat, bytes: &[u8], end: &ProcessEnd) -> CallOutcome {
    let mut tally = Tally::new(format);
    read(format, bytes).iter().for_each(|event| tally.note(event));
    tally.conclude(end)
}

fn recorded(format: EventFormat, case: &str) -> Vec<u8> {
    stream(&format!("{format}.{case}"))
}

#[test]
fn every_stream_of_three_writing_turns_and_an_answer_has_four_turns() {
    for format in PROGRAMS {
        let events = read(format, &recorded(format, "implement"));
        let turns: Vec<String> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::TurnStarted { number } => Some(format!("+{number}")),
                AgentEvent::TurnEnded { number } => Some(format!("-{number}")),
                AgentEvent::ToolCall { .. } => Some("tool".into()),
                AgentEvent::Finished { .. } => Some("done".into()),
                _ => None,
            })
            .collect();
        let expected = ["+1", "tool", "-1", "+2", "tool", "-2", "+3", "tool", "-3", "+4", "-4", "done"];
        assert_eq!(turns, expected, "{format}");
        assert!(matches!(events[0], AgentEvent::SessionStarted { .. }), "{format}");
        assert!(!events.iter().any(|event| matches!(event, AgentEvent::Unread(_))), "{format}: {events:?}");
    }
}

#[test]
fn written_files_are_reported_when_a_tool_writes_them() {
    for format in PROGRAMS {
        let events = read(format, &recorded(format, "implement"));
        let files: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::FileWritten { path } => Some(path.trim_start_matches("/repo/")),
                _ => None,
            })
            .collect();
        let expected: &[&str] = match format {
            EventFormat::Codex => &["src/seed.sql"],
            _ => &["src/schema.sql", "src/seed.sql"],
        };
        assert_eq!(files, expected, "{format}");
    }
}

#[test]
fn a_success_contains_the_last_message_the_session_and_the_cost() {
    for format in PROGRAMS {
        let CallOutcome::Success { text, usage, session } =
            outcome(format, &recorded(format, "implement"), &ProcessEnd::Code(0))
        else {
            panic!("{format} failed");
        };
        let usage = usage.unwrap();
        assert_eq!((text.as_str(), usage.tokens_in, usage.tokens_out), (DONE, 400, 80), "{format}");
        assert!(session.is_some(), "{format}");
        let cost = match format {
            EventFormat::Claude => Some("0.0024"),
            EventFormat::Opencode => Some("0.0040"),
            _ => None,
        };
        assert_eq!(usage.cost.map(|cost| format!("{cost:.4}")).as_deref(), cost, "{format}");
    }
}

#[test]
fn a_review_ends_with_its_verdict_in_every_stream() {
    for format in PROGRAMS {
        let CallOutcome::Success { text, .. } =
            outcome(format, &recorded(format, "review"), &ProcessEnd::Code(0))
        else {
            panic!("{format} failed");
        };
        assert!(text.ends_with("\n\nREJECTED: not approved until the key is there."), "{format}: {text}");
    }
}

#[test]
fn limits_and_wrong_keys_are_distinguished() {
    let until = RetryWait::until_second(1_794_710_000);
    let seconds = |seconds| RetryWait::For(Duration::from_secs(seconds));
    let limited = [
        ("claude.limited", LimitKind::Limit, RetryWait::Unknown),
        ("claude.window", LimitKind::Limit, until),
        ("claude.overloaded", LimitKind::Overload, RetryWait::Unknown),
        ("codex.limited", LimitKind::Limit, RetryWait::Unknown),
        ("codex.overloaded", LimitKind::Overload, RetryWait::Unknown),
        ("gemini.limited", LimitKind::Limit, seconds(34)),
        ("opencode.limited", LimitKind::Limit, seconds(1)),
    ];
    for (name, expected, wait) in limited {
        let format = name.split('.').next().unwrap().parse().unwrap();
        let CallOutcome::Limited { kind, until, .. } = outcome(format, &stream(name), &ProcessEnd::Code(1))
        else {
            panic!("{name} is not limited");
        };
        assert_eq!((kind, until), (expected, wait), "{name}");
    }
    for format in PROGRAMS {
        let found = outcome(format, &recorded(format, "badkey"), &ProcessEnd::Code(145));
        assert!(matches!(&found, CallOutcome::Failed { kind: FailureKind::Auth, .. }), "{format}: {found:?}");
    }
}

#[test]
fn gemini_reports_its_status_by_exit_code() {
    let quota = stream("gemini.quota");
    let found = |bytes: &[u8], code| match outcome(EventFormat::Gemini, bytes, &ProcessEnd::Code(code)) {
        CallOutcome::Limited { kind, .. } => Ok(kind),
        CallOutcome::Failed { kind, .. } => Err(kind),
        other => panic!("{code}: {other:?}"),
    };
    let begun = quota.iter().position(|byte| *byte == b'\n').unwrap();
    for bytes in [&quota[..], &quota[..begun]] {
        assert_eq!(found(bytes, 173), Ok(LimitKind::Limit), "429");
        assert_eq!(found(bytes, 247), Ok(LimitKind::Overload), "503");
        assert_eq!(found(bytes, 145), Err(FailureKind::Auth), "401");
        assert_eq!(found(bytes, 41), Err(FailureKind::Auth), "no key");
        for code in [1, 42, 53, 130, 137, 143] {
            assert_eq!(found(bytes, code), Err(FailureKind::Other), "{code}");
        }
    }
}

#[test]
fn text_about_limits_is_not_taken_for_a_limit() {
    let words = "rate limit exceeded: 429 Too Many Requests, overloaded, invalid api key";
    let table = [
        (
            EventFormat::Claude,
            format!(
                r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"{words}"}}]}}}}
{{"type":"result","subtype":"error_during_execution","is_error":true,"result":"{words}"}}"#
            ),
        ),
        (EventFormat::Codex, format!(r#"{{"type":"turn.failed","error":{{"message":"{words}"}}}}"#)),
        (
            EventFormat::Gemini,
            format!(r#"{{"type":"result","status":"error","error":{{"message":"{words}"}}}}"#),
        ),
        (
            EventFormat::Opencode,
            format!(r#"{{"type":"error","error":{{"name":"X","data":{{"message":"{words}"}}}}}}"#),
        ),
    ];
    for (format, text) in table {
        let found = outcome(format, text.as_bytes(), &ProcessEnd::Code(1));
        assert!(
            matches!(&found, CallOutcome::Failed { kind: FailureKind::Other, .. }),
            "{format}: {found:?}"
        );
    }
}

#[test]
fn a_zero_exit_code_alone_is_no_success() {
    let failed = |format: EventFormat, bytes: &[u8], end: &ProcessEnd| match outcome(format, bytes, end) {
        CallOutcome::Failed { message, .. } => message,
        other => panic!("{format}: {other:?}"),
    };
    for format in PROGRAMS {
        let whole = recorded(format, "implement");
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        for cut in [0, last + 1, last + 20] {
            assert_eq!(
                failed(format, &whole[..cut], &ProcessEnd::Code(0)),
                "the agent ended without a result",
                "{format} {cut}"
            );
        }
        let message = failed(format, &whole[..last], &ProcessEnd::Signal(9));
        assert_eq!(message, "the agent was ended by signal 9 without a result");
        assert_eq!(
            failed(format, &whole, &ProcessEnd::Code(3)),
            "the agent reported success, but the agent exited with code 3"
        );
        let hung = outcome(format, &whole, &ProcessEnd::Stopped("no output for 300 s".into()));
        assert!(matches!(hung, CallOutcome::Success { .. }), "{format} hung behind its result");
        let truncated = outcome(format, &whole[..whole.len() - 1], &ProcessEnd::Code(0));
        assert!(matches!(truncated, CallOutcome::Success { .. }), "{format} without its last line end");
    }
}

#[test]
fn a_plain_text_runner_fails_by_its_exit_code_only() {
    let text = b"thinking\r\nError: 429\nAPPROVED";
    let CallOutcome::Success { text: words, usage, session } =
        outcome(EventFormat::Text, text, &ProcessEnd::Code(0))
    else {
        panic!("failed");
    };
    assert_eq!((words.as_str(), usage, session), ("thinking\nError: 429\nAPPROVED", None, None));
    let found = outcome(EventFormat::Text, text, &ProcessEnd::Code(2));
    assert!(
        matches!(found, CallOutcome::Failed { kind: FailureKind::Other, ref message, .. } if message == "the agent exited with code 2")
    );
}

#[test]
fn a_second_result_fails_the_call() {
    for format in PROGRAMS {
        let (good, bad) = (recorded(format, "implement"), recorded(format, "badkey"));
        for two in [[good.clone(), bad], [good.clone(), good]] {
            let found = outcome(format, &two.concat(), &ProcessEnd::Code(0));
            assert!(matches!(found, CallOutcome::Failed { .. }), "{format}: {found:?}");
        }
    }
}

#[test]
fn a_result_does_not_count_for_work_that_began_after_it() {
    for format in PROGRAMS {
        let whole = recorded(format, "implement");
        let again = [&whole[..], &whole[..whole.len() / 2]].concat();
        let found = outcome(format, &again, &ProcessEnd::Stopped("timed out after 600 s".into()));
        let message = "the agent timed out after 600 s without a result";
        assert!(
            matches!(&found, CallOutcome::Failed { message: why, .. } if why == message),
            "{format}: {found:?}"
        );
    }
}

#[test]
fn a_stream_that_hangs_after_a_limit_counts_as_limited() {
    let whole = stream("claude.limited");
    let head = whole.split_inclusive(|byte| *byte == b'\n').take(2).collect::<Vec<_>>().concat();
    let found = outcome(EventFormat::Claude, &head, &ProcessEnd::Stopped("no output for 300 s".into()));
    assert!(matches!(found, CallOutcome::Limited { kind: LimitKind::Limit, .. }), "{found:?}");
}

#[test]
fn noise_between_events_is_kept_and_changes_nothing() {
    for format in PROGRAMS {
        let mut noisy = Vec::new();
        for line in recorded(format, "implement").split_inclusive(|byte| *byte == b'\n') {
            noisy.extend_from_slice(b"(node:1) Warning: odd\n\n\xff\xfe\n{\"type\":\"news\"}\n{broken\n");
            noisy.extend_from_slice(line);
        }
        let (noise, events): (Vec<_>, Vec<_>) =
            read(format, &noisy).into_iter().partition(|event| matches!(event, AgentEvent::Unread(_)));
        assert_eq!(events, read(format, &recorded(format, "implement")), "{format}");
        assert!(noise.contains(&AgentEvent::Unread("(node:1) Warning: odd".into())), "{format}");
        assert!(noise.contains(&AgentEvent::Unread("{\"type\":\"news\"}".into())), "{format}");
    }
}

#[test]
fn a_sub_agent_belongs_to_the_turn_that_called_it() {
    let text = r#"
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"look\naround"}}]}}
{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"a"}}]}}
{"type":"user","parent_tool_use_id":"t1","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
    let expected = [
        AgentEvent::TurnStarted { number: 1 },
        AgentEvent::ToolCall { name: "Task".into(), summary: "look".into() },
        AgentEvent::ToolCall { name: "Write".into(), summary: "a".into() },
        AgentEvent::FileWritten { path: "a".into() },
        AgentEvent::TurnEnded { number: 1 },
    ];
    assert_eq!(read(EventFormat::Claude, text.as_bytes()), expected);
}

#[test]
fn a_tool_that_failed_wrote_nothing() {
    let text = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Edit","input":{"file_path":"a"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true}]}}"#;
    let events = read(EventFormat::Claude, text.as_bytes());
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::FileWritten { .. })), "{events:?}");
}

#[test]
fn lines_of_any_length_are_read_with_bounded_memory() {
    let mut reader = EventReader::new(EventFormat::Text);
    let longest = (0..200).flat_map(|_| reader.feed(&[b'x'; 100_000])).map(|event| match event {
        AgentEvent::Text(text) => text.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(longest.max(), Some(64 * 1024));
    let mut reader = EventReader::new(EventFormat::Claude);
    let mut events = reader.feed(b"{\"type\":\"result\",\"result\":\"");
    for _ in 0..200 {
        events.extend(reader.feed(&[b'x'; 100_000]));
    }
    events.extend(reader.feed(b"\"}\n{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"ok\"}\n"));
    let expected =
        [AgentEvent::Unread("[a line of 20000029 bytes]".into()), AgentEvent::Finished { text: "ok".into() }];
    assert_eq!(events, expected);
}

/// Streams as they are, with lines that are broken, swapped, repeated or foreign.
fn hostile_stream() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<Vec<u8>> = PROGRAMS
        .iter()
        .flat_map(|format| ["implement", "badkey"].map(|case| recorded(*format, case)))
        .flat_map(|text| text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    let line = prop_oneof![
        4 => select(lines.clone()),
        1 => (select(lines), any::<proptest::sample::Index>()).prop_map(|(line, at)| line[..at.index(line.len())].to_vec()),
        1 => vec(any::<u8>(), 0..40),
        1 => select(vec![&b"\n"[..], b"\r\n", b"{}\n", b"  {\"type\":7}\n", b"\xc3", b"[]\n", b"null\n"]).prop_map(<[u8]>::to_vec),
    ];
    vec(line, 0..25).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2025),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_outcome_does_not_depend_on_how_a_stream_is_split(
        bytes in hostile_stream(),
        format in select(EventFormat::ALL),
        sizes in vec(1_usize..50, 1..20),
    ) {
        let mut reader = EventReader::new(format);
        let mut events = Vec::new();
        let (mut rest, mut sizes) = (bytes.as_slice(), sizes.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            events.extend(reader.feed(piece));
            rest = after;
        }
        events.extend(reader.finish());
        prop_assert_eq!(events, read(format, &bytes));
    }

    #[test]
    fn any_bytes_lead_to_an_outcome(bytes in vec(any::<u8>(), 0..400), format in select(EventFormat::ALL)) {
        let found = outcome(format, &bytes, &ProcessEnd::Code(0));
        let is_success = matches!(found, CallOutcome::Success { .. });
        prop_assert_eq!(is_success, format == EventFormat::Text);
    }

    #[test]
    fn turns_are_numbered_and_never_overlap(bytes in hostile_stream(), format in select(&PROGRAMS[..])) {
        let (mut last, mut open) = (0, None);
        for event in read(format, &bytes) {
            match event {
                AgentEvent::TurnStarted { number } => {
                    prop_assert_eq!((number, open), (last + 1, None));
                    (last, open) = (number, Some(number));
                }
                AgentEvent::TurnEnded { number } => {
                    prop_assert_eq!(open.take(), Some(number));
                }
                _ => {}
            }
        }
        prop_assert_eq!(open, None);
    }
}

#[test]
fn adding_usages_keeps_an_unknown_cost_unknown() {
    let known = Usage { tokens_in: 1, tokens_out: 2, cost: Some(0.5) };
    assert_eq!(Usage::default().plus(Usage::default()).cost, None);
    assert_eq!(Usage::default().plus(known), known);
    assert_eq!(known.plus(known), Usage { tokens_in: 2, tokens_out: 4, cost: Some(1.0) });
}
