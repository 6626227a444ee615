//! `git arborist session hook`: records the turns of an interactive agent. Errors are only logged, so that the agent
//! continues as if there were no hook.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::Repository,
    name::{BranchName, Oid, SessionId, digest},
    process::FileLock,
    run::refuse_here_in_step,
    safe_files,
    session::{RecordKind, Resumed, SessionEnd, SessionVerdict, SessionWriter},
};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::Value;

use super::{
    commit_turn::{Amid, SessionMark, TurnScope, commit_turn, lock},
    external_driver::{append, place, session_start},
    turn::ReportedTurn,
};
use crate::{clock, document::rfc3339, entry::Outcome};

/// How many bytes are read from standard input, and from the end of the agent's own transcript.
const MOST_INPUT: u64 = 8 << 20;
const MOST_TRANSCRIPT: u64 = 256 << 10;
/// The maximal size of the log.
const MOST_LOG: u64 = 64 << 10;

/// A variable that agents of a run have in their environment. The run records their turns already.
const DRIVEN: &str = "ARBORIST_TASK";

/// An agent program that is used interactively.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
}

#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The agent, which reports events as JSON on standard input
    #[arg(value_enum, value_name = "AGENT")]
    agent: Agent,
}

/// The input that Claude Code gives to its hooks, as far as we need it.
#[derive(Debug, Deserialize)]
struct Event {
    session_id: String,
    hook_event_name: String,
    #[serde(default)]
    transcript_path: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    last_assistant_message: Option<String>,
}

pub(super) fn run(args: &HookArgs) -> Outcome {
    let Agent::Claude = args.agent;
    if std::env::var_os(DRIVEN).is_some() || refuse_here_in_step().is_err() {
        return Ok(Exit::Done);
    }
    let mut input = Vec::new();
    let _ = std::io::stdin().lock().take(MOST_INPUT).read_to_end(&mut input);
    let Ok(event) = serde_json::from_slice::<Event>(&input) else {
        return Ok(Exit::Done);
    };
    let dir = if event.cwd.is_empty() { Path::new(".") } else { Path::new(&event.cwd) };
    let Ok(repository) = Repository::discover_from(dir) else {
        return Ok(Exit::Done);
    };
    if let Err(failure) = hear(&repository, &event) {
        log(&repository, &event.hook_event_name, &failure);
    }
    Ok(Exit::Done)
}

fn hear(repository: &Repository, event: &Event) -> Result<(), Failure> {
    let (branch, head) = place(repository)?;
    let seed = format!("claude:{}:{branch}", event.session_id);
    let session: SessionId = digest(seed.as_bytes())[..8].parse().context("no id for the session")?;
    let mark = SessionMark::new(&branch, &session);
    match event.hook_event_name.as_str() {
        // Changes that exist when the user submits a prompt are the user's.
        "UserPromptSubmit" => {
            session_writer(repository, &session, branch, head)?;
            mark.set(repository, repository.snapshot()?, head)
        }
        "PostToolUse" | "Stop" if mark.find(repository)?.is_some() => {
            // An agent may call tools in parallel, and then its hooks run in parallel too.
            let lock = lock(repository)?;
            take_turn(&lock, &Repository::discover_from(repository.top())?, event, &session)
        }
        "SessionEnd" => {
            let Some(session_writer) = SessionWriter::find(repository, &session)? else {
                return Ok(());
            };
            let end = SessionEnd { result: SessionVerdict::Complete, words: String::new() };
            append(&session_writer, &RecordKind::End(end), head)?;
            mark.take_away(repository)
        }
        _ => Ok(()),
    }
}

/// Records what the agent has done since the last turn. A tool call without changes is not a turn, nor is an end
/// without a message.
fn take_turn(
    lock: &FileLock,
    repository: &Repository,
    event: &Event,
    session: &SessionId,
) -> Result<(), Failure> {
    let (branch, head) = place(repository)?;
    let is_stop = event.hook_event_name == "Stop";
    let reported_turn = reported_turn(event, is_stop);
    let has_words = is_stop && reported_turn.message.is_some();
    let before = SessionMark::new(&branch, session).find(repository)?;
    match before {
        Some(before) if has_words || before.tree != repository.snapshot()? => {}
        _ => return Ok(()),
    }
    let session_writer = session_writer(repository, session, branch, head)?;
    commit_turn(lock, repository, &session_writer, &reported_turn, &TurnScope::Since, Amid::Recorded)
}

/// The writer of the session, which is started if it does not exist.
fn session_writer(
    repository: &Repository,
    session: &SessionId,
    branch: BranchName,
    head: Oid,
) -> Result<SessionWriter, Failure> {
    if let Some(session_writer) = SessionWriter::find(repository, session)? {
        if let RecordKind::End(_) = session_writer.newest().record.kind {
            append(
                &session_writer,
                &RecordKind::Resume(Resumed { turn: None, commit: head, asked: None }),
                head,
            )?;
        }
        return Ok(session_writer);
    }
    let start = session_start(repository, branch, head, "claude");
    Ok(SessionWriter::begin(repository, session.clone(), start, clock::now())?)
}

fn reported_turn(event: &Event, is_stop: bool) -> ReportedTurn {
    let (model, said) = read_end(Path::new(&event.transcript_path));
    let words = event.last_assistant_message.clone().filter(|_| is_stop).or(said);
    ReportedTurn {
        node: interactive(),
        model: model.unwrap_or_default(),
        provider: None,
        runner: Some("claude".into()),
        // The agent's message is not a subject line. The subject is made from the change.
        message: words.map(|words| format!("\n{words}")),
        tokens_in: None,
        tokens_out: None,
        cost: None,
        agent_session: Some(event.session_id.clone()),
    }
}

fn interactive() -> arborist_core::name::TaskId {
    "interactive".parse().unwrap_or_else(|_| unreachable!("letters are a task id"))
}

/// The model and the last message of the agent, from the end of its own transcript.
fn read_end(path: &Path) -> (Option<String>, Option<String>) {
    let bytes = safe_files::read_tail(&safe_files::resolved(path), MOST_TRANSCRIPT).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let (mut model, mut said) = (None, None);
    for message in messages.map(|mut line| line["message"].take()) {
        if message["role"] != "assistant" {
            continue;
        }
        model = model.or_else(|| message["model"].as_str().map(str::to_owned));
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let text = parts.iter().rev().find_map(|part| part["text"].as_str().map(str::to_owned));
        said = said.or(text);
        if model.is_some() && said.is_some() {
            break;
        }
    }
    (model, said)
}

/// Logs why nothing was recorded.
fn log(repository: &Repository, event: &str, failure: &Failure) {
    let file = repository.common_dir.join("arborist/session-hook.log");
    if fs::metadata(&file).is_ok_and(|found| found.len() > MOST_LOG) {
        let _ = safe_files::remove(&file);
    }
    if let Ok(mut file) = safe_files::open_log(&file) {
        let words = failure.message.replace('\n', " ");
        let _ = writeln!(file, "{} {event}: {words}", rfc3339(clock::now()));
    }
}
