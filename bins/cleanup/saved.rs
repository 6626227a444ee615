//! `git arborist cleanup saved`.

use arborist_core::{cleanup::list_saved, failure::Exit, message::visible};
use clap::Args;

use super::{document::SavedDocument, open::open};
use crate::{
    clock, document,
    entry::Outcome,
    ui::{Fit, Table, Ui},
};

#[derive(Debug, Args)]
pub(super) struct SavedArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SavedArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let saved = list_saved(&opened.repository, clock::now())?;
    if args.json {
        return document::print(ui, &SavedDocument::new(&saved));
    }
    if saved.is_empty() {
        ui.line("Nothing is saved.");
    }
    let row = |one: &arborist_core::cleanup::SavedWork| {
        [
            one.part.as_str().to_owned(),
            one.time.map(clock::age).unwrap_or_default(),
            visible(&one.subject),
            visible(&one.name),
        ]
    };
    let rows: Vec<[String; 4]> = saved.iter().map(row).collect();
    let fits = [Fit::Whole, Fit::Number, Fit::End(20), Fit::Below];
    Table::new(["what", "age", "from", "name"], fits).show(ui, &rows, |_, _| None);
    if !saved.is_empty() {
        ui.hint("to restore one, run: git arborist cleanup restore NAME");
    }
    Ok(Exit::Done)
}
