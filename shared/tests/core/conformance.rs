//! Fifty messages, and what each reader makes of them. `data/trailers.json` holds the messages (one character
//! a byte), what `git log` reads, what `git interpret-trailers --parse` reads where that differs, and what ours
//! does: `same`; `nothing`, as git log; or `stricter`, and why.

use std::process::Command;

use arborist_core::message::{MessageReading, read, read_as_git};
use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

struct Row {
    name: String,
    message: Vec<u8>,
    log: Vec<String>,
    parse: Vec<String>,
    ours: String,
}

fn rows() -> Vec<Row> {
    let data: Vec<Value> = serde_json::from_str(include_str!("../data/trailers.json")).unwrap();
    data.iter().map(row).collect()
}

fn row(data: &Value) -> Row {
    let lines = |key: &str| -> Option<Vec<String>> {
        Some(data[key].as_array()?.iter().map(|line| lossy(line.as_str().unwrap())).collect())
    };
    let is_reasoned = data["ours"] != "stricter" || data["why"].as_str().is_some_and(|why| !why.is_empty());
    assert!(is_reasoned, "a stricter row says why: {data}");
    let log = lines("log").unwrap();
    Row {
        name: format!("{} {}", data["case"], data["name"]),
        message: bytes(data["message"].as_str().unwrap()),
        parse: lines("parse").unwrap_or_else(|| log.clone()),
        log,
        ours: data["ours"].as_str().unwrap().to_owned(),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

fn lossy(text: &str) -> String {
    String::from_utf8_lossy(&bytes(text)).trim_end().to_owned()
}

fn shown(trailers: Vec<(String, String)>) -> Vec<String> {
    trailers.into_iter().map(|(key, value)| format!("{key}: {value}").trim_end().to_owned()).collect()
}

#[test]
fn the_table_has_fifty_cases() {
    assert_eq!(rows().len(), 50);
}

#[test]
fn other_messages_are_read_as_git_log_reads_them() {
    for row in rows() {
        assert_eq!(shown(read_as_git(&row.message)), row.log, "{}", row.name);
    }
}

/// The samples leave `Arborist-Report` out, which a `complete` needs; that fault is not what a row is about.
#[test]
fn task_commit_messages_are_read_as_the_table_expects() {
    for row in rows() {
        let faults = match read(&row.message) {
            MessageReading::WellFormed(_) => panic!("{}: no sample is complete", row.name),
            MessageReading::Foreign => None,
            MessageReading::Malformed(faults) => Some(
                faults.iter().filter(|fault| !fault.what.starts_with("'Arborist-Report' is missing")).count(),
            ),
        };
        let expected = match row.ours.as_str() {
            "same" => faults == Some(0),
            "nothing" => faults != Some(0) && row.log.is_empty(),
            "stricter" => faults > Some(0) && !row.log.is_empty(),
            other => panic!("{}: unknown verdict '{other}'", row.name),
        };
        assert!(expected, "{}: {} {faults:?}", row.name, row.ours);
    }
}

#[test]
fn the_table_matches_the_installed_git() {
    let repo = TestRepo::init();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    for row in rows() {
        let commit = repo.commit_object(&tree, &[], &row.message);
        let log = repo.git(["log", "-1", "--format=%(trailers:only,unfold)", &commit]);
        assert_eq!(lines(&log), row.log, "git log: {}", row.name);
        let mut parse: Command = repo.command("git", repo.root());
        let parsed = Run::of(parse.args(["interpret-trailers", "--parse"]), &row.message);
        assert_eq!(lines(&parsed), row.parse, "interpret-trailers: {}", row.name);
    }
}

fn lines(run: &Run) -> Vec<String> {
    run.stdout().lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}
