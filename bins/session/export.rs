//! `git arborist session export`: exports a whole session for other tools.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    path::PathBuf,
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{AddedLines, Repository},
    message::visible,
    name::{Oid, SessionId},
    session::{Record, SessionReader, Turn},
};
use clap::{Args, ValueEnum};

use super::{
    agent_trace,
    document::{ExportDocument, SessionDocument},
    elsewhere::Elsewhere,
    git_ai,
    open::{IdArgs, open},
};
use crate::{document, entry::Outcome, ui::Ui};

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
    let elsewhere = Elsewhere::of(&opened);
    let mut told = Telling { args, ui, noted: HashMap::new() };
    let session = &newest.record.session;
    for turn in records.iter().filter_map(Record::turn) {
        if let Some(commit) = turn.commit {
            told.tell((session, turn), (None, &opened.repository), commit)?;
        }
        for other in &turn.others {
            if let Some(repository) = elsewhere.find(other, told.ui)? {
                told.tell((session, turn), (Some(&other.repository), repository), other.commit)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Writes commits in the format of another tool.
struct Telling<'a> {
    args: &'a ExportArgs,
    ui: &'a mut Ui,
    /// The commits that have a note already, by repository.
    noted: HashMap<PathBuf, HashSet<Oid>>,
}

impl Telling<'_> {
    fn tell(
        &mut self,
        (session, turn): (&SessionId, &Turn),
        (name, repository): (Option<&str>, &Repository),
        commit: Oid,
    ) -> Result<(), Failure> {
        if !SessionReader::is_proven(repository, commit, (session, turn))? {
            let (number, commit) = (turn.number, commit.short());
            let words = format!("skipped turn {number}: its commit {commit} does not name this session");
            self.ui.warn(&words);
            return Ok(());
        }
        let lines = lines_of(repository, commit)?;
        let written = ExportedTurn { session: session.as_str(), repository: name, turn, commit, lines };
        let is_first = !self.args.write || self.notes(repository)?.insert(commit);
        match self.args.format {
            Format::AgentTrace => self.ui.line(&agent_trace::record(&written).to_string()),
            _ if !self.args.write => {
                let place =
                    written.repository.map(|name| format!(" in {}", visible(name))).unwrap_or_default();
                self.ui.line(&format!("commit {commit}{place}\n{}\n", git_ai::note(&written)));
            }
            _ if !is_first => {
                self.ui.note(&format!("{} already has a note, which was not changed", commit.short()));
            }
            _ => {
                repository.attach_note(git_ai::NOTES, commit, &git_ai::note(&written))?;
                self.ui.line(&format!("{commit}"));
            }
        }
        Ok(())
    }

    /// The commits of a repository that have a note.
    fn notes(&mut self, repository: &Repository) -> Result<&mut HashSet<Oid>, Failure> {
        Ok(match self.noted.entry(repository.common_dir.clone()) {
            Entry::Occupied(noted) => noted.into_mut(),
            Entry::Vacant(none) => none.insert(repository.list_noted(git_ai::NOTES)?),
        })
    }
}

/// The lines that a commit added, compared with its first parent.
fn lines_of(repository: &Repository, commit: Oid) -> Result<Vec<AddedLines>, Failure> {
    let parent = repository.load_commits(&[commit])?.first().and_then(|commit| commit.parents().next());
    let before = match parent {
        Some(parent) => parent,
        None => repository.empty_tree()?,
    };
    Ok(repository.added_lines(before, commit)?)
}
