//! `git arborist session show` and `turns`.

use arborist_core::{
    failure::{Exit, Failure},
    git::Repository,
    message::{visible, visible_lines},
    name::Oid,
    session::{
        Checkpoint, RecordKind, RecordedOptions, Resumed, SessionEnd, SessionError, SessionPause,
        SessionStart, StoredRecord, Turn, UNKNOWN, Utterance,
    },
};
use clap::Args;

use super::{
    document::{
        OtherPatchDocument, ResumedDocument, SessionDocument, SessionShowDocument, TurnDocument,
        TurnsDocument,
    },
    open::{IdArgs, JsonArgs, OpenSessions, WorkerArgs, open},
    other_repos::OtherRepos,
    words::{TURN_HEADINGS, cost_of, plan_of, resumed_cells, table, tokens_of, tone_of, turn_cells},
};
use crate::{
    clock, document,
    entry::Outcome,
    logs::print_utterance,
    ui::{Tone, Ui},
};

#[derive(Debug, Args)]
pub(super) struct SessionShowArgs {
    #[command(flatten)]
    id: IdArgs,
    #[command(flatten)]
    worker: WorkerArgs,
    /// Show only this turn, in detail
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u32>)]
    turn: Option<u32>,
    /// Also show the diff of its commits
    #[arg(long, requires = "turn")]
    patch: bool,
    /// Also show its transcript: the prompt, the agent's words, tool calls and their output
    #[arg(long, requires = "turn")]
    transcript: bool,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Args)]
pub(super) struct TurnsArgs {
    #[command(flatten)]
    id: IdArgs,
    #[command(flatten)]
    worker: WorkerArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &SessionShowArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let newest = &args.worker.newest(&opened, &args.id)?;
    if let Some(number) = args.turn {
        return show_turn(args, &opened, newest, number, ui);
    }
    let session_reader = opened.session_reader();
    let (first, checkpoint) = (session_reader.start_of(newest)?, session_reader.checkpoint_of(newest)?);
    let (start, asked) = (start_in(&first)?, session_reader.recorded_options_of(newest)?);
    if args.json.json {
        let session = SessionDocument::new(&opened, newest);
        return document::print(
            ui,
            &SessionShowDocument::new(session, newest, start, asked, checkpoint.as_ref()),
        );
    }
    show(ui, &opened, newest, start, &asked, checkpoint.as_ref());
    Ok(Exit::Done)
}

/// The start of a session, from its first record.
pub(super) fn start_in(first: &StoredRecord) -> Result<&SessionStart, Failure> {
    match &first.record.kind {
        RecordKind::Start(start) => Ok(start),
        other => {
            let words = format!("session '{}' starts with '{}'", first.record.session, other.kind());
            Err(Failure::new(Exit::Fatal, words))
        }
    }
}

fn show(
    ui: &mut Ui,
    opened: &OpenSessions,
    newest: &StoredRecord,
    start: &SessionStart,
    asked: &RecordedOptions,
    checkpoint: Option<&StoredRecord>,
) {
    let record = &newest.record;
    let state = opened.state_of(newest);
    let id = ui.paint(Tone::Strong, record.session.as_str());
    ui.line(&format!("{id}  {}", ui.paint(tone_of(state), state.as_str())));
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            ui.line(&format!("  {name:<10} {}", visible(&value)));
        }
    };
    field("why", why(&record.kind));
    field("plan", plan_of(record.context.plan.as_deref()));
    field("branch", record.context.branch.to_string());
    field("base", start.repositories.first().map(|first| first.base.short()).unwrap_or_default());
    field("pipeline", record.context.pipeline.clone());
    field("started", clock::ago(record.context.started));
    field("last seen", clock::ago(record.time));
    field("turns", format!("{}, {} with a commit", record.totals.turns, record.totals.commits));
    field("tokens", tokens_of(record.totals));
    field("cost", cost_of(record.totals.cost));
    field("commit", record.context.head.short());
    field("checkpoint", checkpoint.map(checkpoint_words).unwrap_or_default());
    if let Some(fork) = &start.forked_from {
        field(
            "forked from",
            format!("turn {} of {}{}", fork.turn, fork.session, if start.offline { ", offline" } else { "" }),
        );
    }
    for (name, value) in &asked.options {
        field("option", format!("{name} = {value}"));
    }
    for name in &asked.withheld {
        field("option", format!("{name}, which is not recorded because it contains a secret"));
    }
    for repository in start.repositories.iter().skip(1) {
        let words = format!("{} on {} from {}", repository.name, repository.branch, repository.base.short());
        field("also", words);
    }
}

/// Why a session is in its state, if that was recorded.
fn why(kind: &RecordKind) -> String {
    match kind {
        RecordKind::Pause(SessionPause { why }) => why.clone(),
        RecordKind::End(SessionEnd { words, .. }) => words.clone(),
        _ => String::new(),
    }
}

fn checkpoint_words(stored: &StoredRecord) -> String {
    let RecordKind::Checkpoint(Checkpoint { node, status, .. }) = &stored.record.kind else {
        return String::new();
    };
    let node = node.as_ref().map(|node| format!("{node} ")).unwrap_or_default();
    format!("{node}{status}, {}", clock::ago(stored.record.time))
}

fn show_turn(
    args: &SessionShowArgs,
    opened: &OpenSessions,
    newest: &StoredRecord,
    number: u32,
    ui: &mut Ui,
) -> Outcome {
    let stored = opened.session_reader().turn(newest, number)?;
    let Some(turn) = stored.record.turn() else {
        return Err(Failure::new(Exit::Fatal, "the record of the turn is not valid"));
    };
    let patch = match turn.commit.filter(|_| args.patch) {
        Some(commit) => Some(patch_of(&opened.repository, commit)?),
        None => None,
    };
    let other_patches = if args.patch { OtherRepos::of(opened).patches(turn, ui)? } else { Vec::new() };
    let transcript = args.transcript.then(|| transcript_of(opened, newest, number)).transpose()?;
    if args.json.json {
        let turn = turn.clone();
        let (session, record) = (stored.record.session.to_string(), stored.commit.to_string());
        return document::print(
            ui,
            &TurnDocument { session, record, turn, patch, other_patches, transcript },
        );
    }
    let first = opened.session_reader().start_of(newest)?;
    let here = start_in(&first)?.repositories.first().map(|first| first.name.as_str());
    let here = here.filter(|_| !turn.others.is_empty());
    print_turn(ui, &stored, turn, here);
    if let Some(transcript) = transcript {
        ui.line("");
        transcript.iter().for_each(|utterance| print_utterance(ui, utterance));
    }
    if let Some(patch) = patch {
        ui.line("");
        print_patch(ui, here, patch);
    }
    for OtherPatchDocument { repository, patch } in other_patches {
        ui.line("");
        print_patch(ui, Some(&repository), patch);
    }
    Ok(Exit::Done)
}

/// The transcript of a turn, as text.
fn transcript_of(
    opened: &OpenSessions,
    newest: &StoredRecord,
    number: u32,
) -> Result<Vec<Utterance>, Failure> {
    let (session_reader, session) = (opened.session_reader(), &newest.record.session);
    match session_reader.list_transcripts(session)?.get(&number) {
        Some(commit) => Ok(session_reader.load_transcript(session, *commit)?.readable()),
        None => Err(SessionError::NoTranscript { session: session.clone(), number }.into()),
    }
}

/// A patch, with the name of its repository where there are several.
pub(super) fn print_patch(ui: &mut Ui, repository: Option<&str>, patch: String) {
    if let Some(name) = repository {
        ui.line(&ui.paint(Tone::Strong, &format!("in {}", visible(name))));
    }
    let shown = if ui.is_terminal() { visible_lines(&patch) } else { patch };
    ui.out(&shown);
}

/// `here` is the name of the plan's repository, if the turn changed others.
fn print_turn(ui: &mut Ui, stored: &StoredRecord, turn: &Turn, here: Option<&str>) {
    let title = format!("turn {} of {}", turn.number, stored.record.session);
    ui.line(&ui.paint(Tone::Strong, &title));
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            ui.line(&format!("  {name:<9} {}", visible(&value)));
        }
    };
    let [_, node, _, model, _, tokens, cost, _] = turn_cells(turn);
    match (turn.commit, here) {
        (Some(commit), Some(here)) => field("commit", format!("{commit} in {here}")),
        (Some(commit), None) => field("commit", commit.to_string()),
        (None, Some(_)) => {}
        (None, None) if turn.not_committed.is_some() => field("commit", "none".into()),
        (None, None) => field("commit", "none: it wrote nothing".into()),
    }
    for other in &turn.others {
        field("commit", format!("{} in {}", other.commit, other.repository));
    }
    field("not committed", turn.not_committed.clone().unwrap_or_default());
    field("task", node);
    field("step", format!("{}, attempt {}", turn.step, turn.attempt.ordinal()));
    field("model", model);
    field("provider", known(&turn.provider));
    field("runner", turn.runner.clone());
    field("tokens", tokens);
    field("cost", cost);
    field("took", clock::duration(turn.ended.saturating_sub(turn.started)));
    let how = if turn.interrupted { ", interrupted" } else { "" };
    field("ended", clock::ago(turn.ended) + how);
    field("said", turn.said.clone().unwrap_or_default());
    field("its own session", turn.agent_session.clone().unwrap_or_default());
    for path in turn.paths() {
        field("wrote", path);
    }
    for tool in &turn.tools {
        field("tool", format!("{} {}", tool.name, tool.summary));
    }
    if let Some(message) = &turn.message {
        ui.line("");
        for line in message.lines() {
            ui.line(format!("  {}", visible(line)).trim_end());
        }
    }
}

/// A value, or nothing if it is unknown.
fn known(value: &str) -> String {
    if value == UNKNOWN { "-".to_owned() } else { value.to_owned() }
}

/// The changes of a commit, compared with its first parent.
pub(super) fn patch_of(repository: &Repository, commit: Oid) -> Result<String, Failure> {
    Ok(repository.diff(parent_of(repository, commit)?, commit)?.0)
}

/// The first parent of a commit, or the empty tree.
pub(super) fn parent_of(repository: &Repository, commit: Oid) -> Result<Oid, Failure> {
    let parent = repository.load_commits(&[commit])?.first().and_then(|commit| commit.parents().next());
    Ok(match parent {
        Some(parent) => parent,
        None => repository.empty_tree()?,
    })
}

pub(super) fn turns(args: &TurnsArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let newest = &args.worker.newest(&opened, &args.id)?;
    let (mut turns, mut rows, mut resumed) = (Vec::new(), Vec::new(), Vec::new());
    for stored in opened.session_reader().walk(newest)? {
        let StoredRecord { record, .. } = stored?;
        match record.kind {
            RecordKind::Turn(turn) => {
                rows.push(turn_cells(&turn));
                turns.push(turn);
            }
            RecordKind::Resume(Resumed { turn: Some(turn), .. }) => {
                rows.push(resumed_cells(turn));
                resumed.push(ResumedDocument { turn, after: record.totals.turns });
            }
            _ => {}
        }
    }
    turns.reverse();
    rows.reverse();
    resumed.reverse();
    if args.json.json {
        let session = newest.record.session.to_string();
        return document::print(ui, &TurnsDocument { session, turns, resumed });
    }
    table(ui, TURN_HEADINGS, &rows, |_, column| (column == 4).then_some(Tone::Busy));
    Ok(Exit::Done)
}
