//! No secret comes through, in whatever pieces it arrives, and everything else does.

use arborist_core::agent::redact::{REDACTED, Redactor, Secrets};
use proptest::{collection::vec, prelude::*, sample::select};

const PASSWORD: &str = "hunter2-\"quoted\"/slash";

fn secrets() -> Secrets {
    Secrets::of_environment([
        ("DB_PASSWORD", PASSWORD),
        ("my_api_key", "lowercase-name-counts"),
        ("SHORT_TOKEN", "abc1234"),
        ("HOME", "/home/somebody"),
        (
            "TLS_KEY",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEfirstline\nsecondline==\n-----END RSA PRIVATE KEY-----",
        ),
    ])
    .unwrap()
}

#[test]
fn secrets_are_removed_and_other_text_is_kept() {
    let jwt = "eyJhbGciOi.J9eyJzdWIi.x_y-z";
    let table = [
        (format!("password is {PASSWORD}."), "password is [redacted].".into()),
        (r#"{"p":"hunter2-\"quoted\"/slash"}"#.into(), r#"{"p":"[redacted]"}"#.into()),
        ("a lowercase-name-counts b".into(), "a [redacted] b".into()),
        ("abc1234 in /home/somebody".into(), String::new()),
        ("key sk-proj-Ab3dEf6hIj9lMn2pQr5t, next".into(), "key [redacted], next".into()),
        ("the task-implementation-of-some-long-thing".into(), String::new()),
        ("sk-short".into(), String::new()),
        (format!("ghp_{}", "a1B2".repeat(9)), REDACTED.into()),
        (format!("ghp_{}", "a1B2".repeat(40_000)), REDACTED.into()),
        ("AKIAIOSFODNN7EXAMPLE!".into(), "[redacted]!".into()),
        ("AKIA is a prefix".into(), String::new()),
        ("xoxb-123456789012-abcdef".into(), REDACTED.into()),
        (format!("Authorization: Bearer {jwt}\n"), "Authorization: Bearer [redacted]\n".into()),
        ("the bearer of bad news".into(), String::new()),
        (
            "x\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----\ny".into(),
            "x\n[redacted]\ny".into(),
        ),
        (
            r#"{"k":"-----BEGIN PRIVATE KEY-----\nMIIE+/=\n-----END PRIVATE KEY-----\n","type":"x"}"#.into(),
            r#"{"k":"[redacted]\n","type":"x"}"#.into(),
        ),
        ("-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----".into(), String::new()),
        (r#"{"s":"-----BEGIN PRIVATE KEY-----","t":1}"#.into(), r#"{"s":"[redacted]","t":1}"#.into()),
        ("MIIEfirstline and secondline==".into(), "[redacted] and [redacted]".into()),
    ];
    let secrets = secrets();
    for (text, expected) in table {
        let expected = if expected.is_empty() { text.clone() } else { expected };
        assert_eq!(Redactor::redact(&secrets, &text), expected, "{text:.200}");
    }
}

#[test]
fn complete_lines_are_passed_on_immediately() {
    let mut redactor = Redactor::new(&secrets());
    assert_eq!(redactor.feed(b"one\ntw"), b"one\n");
    assert_eq!(redactor.feed(b"o\n"), b"two\n");
    assert_eq!(redactor.finish(), b"");
}

#[test]
fn an_endless_line_is_not_buffered_completely() {
    let mut redactor = Redactor::new(&secrets());
    let mut shown = 0;
    for fed in 1..200 {
        shown += redactor.feed(&[b'x'; 10_000]).len();
        assert!(fed * 10_000 - shown <= 80_000, "{} bytes are held back", fed * 10_000 - shown);
    }
}

#[test]
fn a_secret_is_never_shown_by_debug() {
    assert!(!format!("{:?}", secrets()).contains("hunter2"));
    assert!(!format!("{:?}", Redactor::new(&secrets())).contains("hunter2"));
}

/// Secrets, beginnings of secrets, and what they stand between.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        select(vec![
            PASSWORD,
            "lowercase-name-counts",
            "hunter2-",
            "sk-",
            "ghp_",
            "Bearer ",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "-----"
        ])
        .prop_map(str::to_owned),
        "sk-[A-Za-z0-9]{18,24}",
        select(vec!["\n", " ", "\"", "a", "ü", "="]).prop_map(str::to_owned),
        select(vec![1_usize, 1000, 63_000]).prop_map(|length| "long line ".repeat(length / 10 + 1)),
    ];
    vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2025),
        ..ProptestConfig::default()
    })]

    #[test]
    fn redaction_does_not_depend_on_how_a_text_is_split(text in text(), sizes in vec(1_usize..5000, 1..20)) {
        let secrets = secrets();
        let mut redactor = Redactor::new(&secrets);
        let mut shown = Vec::new();
        let (mut rest, mut sizes) = (text.as_bytes(), sizes.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            shown.extend(redactor.feed(piece));
            rest = after;
        }
        shown.extend(redactor.finish());
        let whole = Redactor::redact(&secrets, &text);
        prop_assert!(!whole.contains(PASSWORD));
        prop_assert_eq!(String::from_utf8_lossy(&shown), whole);
    }

    #[test]
    fn the_redactor_accepts_any_bytes(bytes in vec(any::<u8>(), 0..400)) {
        let mut redactor = Redactor::new(&secrets());
        let _ = redactor.feed(&bytes);
        let _ = redactor.finish();
    }
}
