//! `git arborist session export`: exports a whole session for other tools: as JSON, as Agent Trace records, and as the notes of
//! git-ai.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    path::PathBuf,
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{AddedLines, Repository},
    message::visible,
    name::{Oid, SessionId, digest},
    session::{Record, SessionReader, Turn},
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    document::{ExportDocument, SessionDocument},
    open::{IdArgs, open},
    other_repos::OtherRepos,
    show::parent_of,
};
use crate::{
    document::{self, rfc3339},
    entry::Outcome,
    ui::Ui,
};

/// The export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON document with all records
    Json,
    /// The notes of git-ai 3.0: who wrote which line of each turn's commit
    GitAi,
    /// Agent Trace records, one object per line
    AgentTrace,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    id: IdArgs,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Json)]
    format: Format,
    /// Write the git-ai notes to refs/notes/ai; commits that have a note keep it
    #[arg(long)]
    write: bool,
}

/// A turn that changed something, with its changes.
pub(super) struct ExportedTurn<'a> {
    pub(super) session: &'a str,
    /// The name of the repository, if it is not the plan's.
    pub(super) repository: Option<&'a str>,
    pub(super) turn: &'a Turn,
    pub(super) commit: Oid,
    pub(super) lines: Vec<AddedLines>,
}

pub(super) fn run(args: &ExportArgs, ui: &mut Ui) -> Outcome {
    if args.write && args.format != Format::GitAi {
        return Err(Failure::new(Exit::Usage, "--write needs --format git-ai"));
    }
    let opened = open(ui)?;
    let newest = opened.require(&args.id)?;
    let mut records: Vec<Record> = Vec::new();
    for stored in opened.session_reader().walk(newest)? {
        records.push(stored?.record);
    }
    records.reverse();
    if args.format == Format::Json {
        let session = SessionDocument::new(&opened, newest);
        return document::print(ui, &ExportDocument { session, records });
    }
    let other_repos = OtherRepos::of(&opened);
    let mut exporter = TurnExporter { args, ui, noted: HashMap::new() };
    let session = &newest.record.session;
    for turn in records.iter().filter_map(Record::turn) {
        if let Some(commit) = turn.commit {
            exporter.export_turn(session, turn, None, &opened.repository, commit)?;
        }
        for other in &turn.others {
            if let Some(repository) = other_repos.find(other, exporter.ui)? {
                exporter.export_turn(session, turn, Some(&other.repository), repository, other.commit)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Writes commits in the format of another tool.
struct TurnExporter<'a> {
    args: &'a ExportArgs,
    ui: &'a mut Ui,
    /// The commits that have a note already, by repository.
    noted: HashMap<PathBuf, HashSet<Oid>>,
}

impl TurnExporter<'_> {
    fn export_turn(
        &mut self,
        session: &SessionId,
        turn: &Turn,
        name: Option<&str>,
        repository: &Repository,
        commit: Oid,
    ) -> Result<(), Failure> {
        if !SessionReader::is_proven(repository, commit, session, turn)? {
            let (number, commit) = (turn.number, commit.short());
            let words = format!("skipped turn {number}: its commit {commit} does not name this session");
            self.ui.warn(&words);
            return Ok(());
        }
        let lines = lines_of(repository, commit)?;
        let written = ExportedTurn { session: session.as_str(), repository: name, turn, commit, lines };
        let is_first = !self.args.write || self.notes(repository)?.insert(commit);
        match self.args.format {
            Format::AgentTrace => self.ui.line(&record(&written).to_string()),
            _ if !self.args.write => {
                let place =
                    written.repository.map(|name| format!(" in {}", visible(name))).unwrap_or_default();
                self.ui.line(&format!("commit {commit}{place}\n{}\n", note(&written)));
            }
            _ if !is_first => {
                self.ui.note(&format!("{} already has a note, which was not changed", commit.short()));
            }
            _ => {
                repository.attach_note(NOTES, commit, &note(&written))?;
                self.ui.line(&format!("{commit}"));
            }
        }
        Ok(())
    }

    /// The commits of a repository that have a note.
    fn notes(&mut self, repository: &Repository) -> Result<&mut HashSet<Oid>, Failure> {
        Ok(match self.noted.entry(repository.common_dir.clone()) {
            Entry::Occupied(noted) => noted.into_mut(),
            Entry::Vacant(none) => none.insert(repository.list_noted(NOTES)?),
        })
    }
}

/// The lines that a commit added, compared with its first parent.
fn lines_of(repository: &Repository, commit: Oid) -> Result<Vec<AddedLines>, Failure> {
    Ok(repository.added_lines(parent_of(repository, commit)?, commit)?)
}

/// The schema of the specification 0.1.0 accepts two components only.
const VERSION: &str = "0.1";
const LONGEST_MODEL: usize = 250;

/// The record of a turn's commit.
pub(super) fn record(written: &ExportedTurn<'_>) -> Value {
    let turn = written.turn;
    let contributor = json!({ "type": "ai", "model_id": model_of(&turn.provider, &turn.model) });
    let files: Vec<Value> = written
        .lines
        .iter()
        .map(|file| {
            let ranges: Vec<Value> = file
                .ranges
                .iter()
                .map(|(first, last)| json!({ "start_line": first, "end_line": last }))
                .collect();
            json!({
                "path": file.path,
                "conversations": [{ "contributor": contributor, "ranges": ranges }],
            })
        })
        .collect();
    json!({
        "version": VERSION,
        "id": uuid_of(written),
        "timestamp": rfc3339(turn.ended),
        "vcs": { "type": "git", "revision": written.commit.to_string() },
        "tool": { "name": "git-arborist", "version": env!("CARGO_PKG_VERSION") },
        "files": files,
        "metadata": {
            "git-arborist": {
                "session": written.session,
                "repository": written.repository,
                "node": turn.node.as_str(),
                "turn": turn.number,
                "runner": turn.runner,
                "agent_session": turn.agent_session,
            },
        },
    })
}

/// `provider/model`, as models.dev names them.
fn model_of(provider: &str, model: &str) -> String {
    let name = if model.contains('/') { model.to_owned() } else { format!("{provider}/{model}") };
    name.chars().take(LONGEST_MODEL).collect()
}

/// A stable id for a turn: a UUID of version 8, made from a digest.
fn uuid_of(written: &ExportedTurn<'_>) -> String {
    let hash = digest(format!("{} {} {}", written.session, written.turn.number, written.commit).as_bytes());
    format!("{}-{}-8{}-8{}-{}", &hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32])
}

/// The name of the notes ref, `refs/notes/ai`.
const NOTES: &str = "ai";

/// The note of a turn's commit.
pub(super) fn note(written: &ExportedTurn<'_>) -> String {
    let turn = written.turn;
    let conversation = turn.agent_session.as_deref().unwrap_or(written.session);
    let session = format!("s_{}", &digest(format!("{}:{conversation}", turn.runner).as_bytes())[..14]);
    let trace = &digest(format!("{}:{}", written.session, turn.number).as_bytes())[..14];
    let mut text = String::new();
    for file in &written.lines {
        let ranges: Vec<String> = file.ranges.iter().map(|range| range_of(*range)).collect();
        text.push_str(&format!("{}\n  {session}::t_{trace} {}\n", path_of(&file.path), ranges.join(",")));
    }
    let metadata = json!({
        "schema_version": "authorship/3.0.0",
        "base_commit_sha": written.commit.to_string(),
        "prompts": {},
        "sessions": {
            session: {
                "agent_id": { "tool": turn.runner, "id": conversation, "model": turn.model },
                "custom_attributes": {
                    "arborist-session": written.session,
                    "arborist-node": turn.node.as_str(),
                    "arborist-turn": turn.number.to_string(),
                },
            },
        },
    });
    format!("{text}---\n{metadata:#}")
}

fn range_of((first, last): (u64, u64)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Names with white space are quoted.
fn path_of(path: &str) -> String {
    if path.contains([' ', '\t', '\n']) { format!("\"{path}\"") } else { path.to_owned() }
}
