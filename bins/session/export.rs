//! `git arborist session export`: a whole session, for other tools.

use arborist_core::{
    failure::{Exit, Failure},
    git::{AddedLines, Repository},
    name::Oid,
    session::{Record, Turn},
};
use clap::{Args, ValueEnum};

use super::{
    agent_trace,
    document::{ExportDocument, SessionDocument},
    git_ai,
    open::{IdArgs, open},
};
use crate::{document, entry::Outcome, ui::Ui};

/// How a session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON document with all records
    Json,
    /// The notes of git-ai 3.0: who wrote which line of each turn's commit
    GitAi,
    /// Agent Trace records, an object on each line
    AgentTrace,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    id: IdArgs,
    /// How it is told
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Json)]
    format: Format,
    /// Attach the notes of git-ai to the commits, under refs/notes/ai; a commit that has one keeps it
    #[arg(long)]
    write: bool,
}

/// A turn that wrote something, and what.
pub(super) struct Written<'a> {
    pub(super) session: &'a str,
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
    for stored in opened.archive().walk(newest)? {
        records.push(stored?.record);
    }
    records.reverse();
    if args.format == Format::Json {
        let session = SessionDocument::new(&opened, newest);
        return document::print(ui, &ExportDocument { session, records });
    }
    let repository = &opened.repository;
    let noted = if args.write { repository.list_noted(git_ai::NOTES)? } else { Default::default() };
    for turn in records.iter().filter_map(Record::turn) {
        let Some(commit) = turn.commit else {
            continue;
        };
        let lines = lines_of(repository, commit)?;
        let written = Written { session: newest.record.session.as_str(), turn, commit, lines };
        match args.format {
            Format::AgentTrace => ui.line(&agent_trace::record(&written).to_string()),
            _ if !args.write => ui.line(&format!("commit {commit}\n{}\n", git_ai::note(&written))),
            _ if noted.contains(&commit) => {
                ui.note(&format!("{} has a note already, which stays as it is", commit.short()));
            }
            _ => {
                repository.attach_note(git_ai::NOTES, commit, &git_ai::note(&written))?;
                ui.line(&format!("{commit}"));
            }
        }
    }
    Ok(Exit::Done)
}

/// What a commit brought, compared with its first parent.
fn lines_of(repository: &Repository, commit: Oid) -> Result<Vec<AddedLines>, Failure> {
    let parent = repository.load_commits(&[commit])?.first().and_then(|commit| commit.parents().next());
    let before = match parent {
        Some(parent) => parent,
        None => repository.empty_tree()?,
    };
    Ok(repository.added_lines(before, commit)?)
}
