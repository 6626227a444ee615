//! `git arborist session diff`.

use arborist_core::{
    failure::{Exit, Failure},
    git::Change,
    message::visible_lines,
    name::Oid,
    session::Stored,
};
use clap::Args;

use super::{
    document::{DiffDocument, TreeDocument},
    open::{IdArgs, JsonArgs, Opened, open},
};
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    id: IdArgs,
    /// The turn to begin with; 0 is where the session began
    #[arg(value_name = "TURN")]
    from: u32,
    /// The turn to end with
    #[arg(value_name = "TURN")]
    to: u32,
    /// Only the paths, and how much of each
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &DiffArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let newest = opened.require(&args.id)?;
    let (from, to) = (commit_at(&opened, newest, args.from)?, commit_at(&opened, newest, args.to)?);
    let (patch, stat) = opened.repository.diff(from, to)?;
    if args.json.json {
        let changes =
            opened.repository.changes(opened.repository.tree_of(from)?, opened.repository.tree_of(to)?)?;
        return document::print(
            ui,
            &DiffDocument {
                session: newest.record.session.to_string(),
                from: TreeDocument { turn: args.from, commit: from.to_string() },
                to: TreeDocument { turn: args.to, commit: to.to_string() },
                files: changes.iter().map(Change::shown).collect(),
                patch,
            },
        );
    }
    let shown = if args.stat { stat } else { patch };
    let shown = if ui.is_terminal() { visible_lines(&shown) } else { shown };
    ui.out(&shown);
    Ok(Exit::Done)
}

/// The code as it stood when a turn ended: its own commit, or the last before it if it wrote nothing.
pub(super) fn commit_at(opened: &Opened, newest: &Stored, turn: u32) -> Result<Oid, Failure> {
    let archive = opened.archive();
    let stored = if turn == 0 { archive.start_of(newest)? } else { archive.turn(newest, turn)? };
    Ok(stored.record.context.head)
}
