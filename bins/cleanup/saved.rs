//! `git arborist cleanup saved`.

use arborist_core::{cleanup::list_saved, failure::Exit, message::visible};
use clap::Args;

use super::{document::SavedDocument, open::open, show::table};
use crate::{clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct SavedArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SavedArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let saved = list_saved(&opened.repository)?;
    if args.json {
        return document::print(ui, &SavedDocument::new(&saved));
    }
    if saved.is_empty() {
        ui.line("Nothing is saved.");
    }
    let row = |one: &arborist_core::cleanup::SavedWork| {
        [
            one.part.as_str().to_owned(),
            visible(&one.name),
            visible(&one.subject),
            String::new(),
            one.time.map(clock::age).unwrap_or_default(),
        ]
    };
    let rows: Vec<[String; 5]> = saved.iter().map(row).collect();
    table(ui, "", &rows);
    Ok(Exit::Done)
}
