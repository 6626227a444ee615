//! `trailers parse`: the trailers of one message.

use std::path::PathBuf;

use arborist_core::{
    failure::{Exit, Failure},
    message::{Fault, MessageReading, read, read_as_git},
};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::source::MessageSource;
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct ParseArgs {
    /// A revision, a file, or - for standard input (the default)
    #[arg(value_name = "REVISION|FILE")]
    source: Option<String>,
    /// Read the message from this file, whatever its name
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    file: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `trailers parse --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ParseDocument {
    /// Whether the message looks like that of a task.
    claims: bool,
    /// Whether it is valid, so that it counts.
    sound: bool,
    /// The trailers as git reads them with its built-in settings, in order.
    trailers: Vec<TrailerDocument>,
    /// The problems of a message that looks like that of a task but is not valid.
    faults: Vec<Fault>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TrailerDocument {
    key: String,
    value: String,
}

pub(super) fn run(args: &ParseArgs, ui: &mut Ui) -> Outcome {
    let message = match MessageSource::resolve(args.source.as_deref(), args.file.as_deref())? {
        MessageSource::Text { message, .. } => message,
        MessageSource::Commit(commit) => commit.message().to_vec(),
        MessageSource::Range { range, .. } => {
            return Err(Failure::new(
                Exit::Usage,
                format!(
                    "'{}' is a range, but this command parses a single message",
                    range.named.escape_debug()
                ),
            )
            .hint("use 'git arborist trailers log' for a range"));
        }
    };
    let document = read_document(&message);
    if args.json {
        return document::print(ui, &document);
    }
    for TrailerDocument { key, value } in &document.trailers {
        ui.line(&format!("{key}: {value}"));
    }
    if let MessageReading::Malformed(faults) = read(&message)
        && let Some(fault) = faults.first()
    {
        ui.warn(&format!("the message looks like a task commit, but is not valid: {fault}"));
        ui.hint("to see all problems, run: git arborist trailers check");
    }
    Ok(Exit::Done)
}

fn read_document(message: &[u8]) -> ParseDocument {
    let reading = read(message);
    ParseDocument {
        claims: reading != MessageReading::Foreign,
        sound: matches!(reading, MessageReading::WellFormed(_)),
        trailers: read_as_git(message)
            .into_iter()
            .map(|(key, value)| TrailerDocument { key, value })
            .collect(),
        faults: match reading {
            MessageReading::Malformed(faults) => faults,
            _ => Vec::new(),
        },
    }
}
