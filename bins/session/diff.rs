//! `git arborist session diff`.

use arborist_core::{
    failure::{Exit, Failure},
    git::TreeChange,
    name::Oid,
    session::StoredRecord,
};
use clap::Args;

use super::{
    document::{DiffDocument, OtherDiffDocument, TurnTreeDocument},
    open::{IdArgs, JsonArgs, OpenSessions, open},
    other_repos,
    show::{print_patch, start_in},
};
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    id: IdArgs,
    /// The first turn; 0 is the start of the session
    #[arg(value_name = "TURN", value_parser = crate::numbers::whole::<u32>)]
    from: u32,
    /// The last turn
    #[arg(value_name = "TURN", value_parser = crate::numbers::whole::<u32>)]
    to: u32,
    /// Only the paths, with the number of changed lines
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
    let others = differing(&opened, newest, ((args.from, from), (args.to, to)), ui)?;
    if args.json.json {
        let changes =
            opened.repository.changes(opened.repository.tree_of(from)?, opened.repository.tree_of(to)?)?;
        return document::print(
            ui,
            &DiffDocument {
                session: newest.record.session.to_string(),
                from: TurnTreeDocument { turn: args.from, commit: from.to_string() },
                to: TurnTreeDocument { turn: args.to, commit: to.to_string() },
                files: changes.iter().map(TreeChange::shown).collect(),
                patch,
                others: others.into_iter().map(|(other, _)| other).collect(),
            },
        );
    }
    let first = opened.session_reader().start_of(newest)?;
    let here = start_in(&first)?.repositories.first().map(|first| first.name.as_str());
    let mut is_first = patch.is_empty();
    if !is_first {
        print_patch(ui, here.filter(|_| !others.is_empty()), if args.stat { stat } else { patch });
    }
    for (other, stat) in others {
        if !std::mem::take(&mut is_first) {
            ui.line("");
        }
        print_patch(ui, Some(&other.repository), if args.stat { stat } else { other.patch });
    }
    Ok(Exit::Done)
}

/// The differences in other repositories, as a document and in words.
fn differing(
    opened: &OpenSessions,
    newest: &StoredRecord,
    (from, to): ((u32, Oid), (u32, Oid)),
    ui: &mut Ui,
) -> Result<Vec<(OtherDiffDocument, String)>, Failure> {
    let (before, missing) = other_repos::seen_at(opened, newest, from.0, from.1)?;
    let (after, _) = other_repos::seen_at(opened, newest, to.0, to.1)?;
    for name in missing {
        ui.warn(&format!("the repository '{name}' is not here, so its changes are not shown"));
    }
    let mut found = Vec::new();
    for other in after {
        let Some(before) = before.iter().find(|before| before.name() == other.name()) else {
            continue;
        };
        let (repository, from, to) = (&other.repository, before.point, other.point);
        let changes = repository.changes(repository.tree_of(from)?, repository.tree_of(to)?)?;
        if changes.is_empty() {
            continue;
        }
        let (patch, stat) = repository.diff(from, to)?;
        let document = OtherDiffDocument {
            repository: other.name().to_string(),
            from: from.to_string(),
            to: to.to_string(),
            files: changes.iter().map(TreeChange::shown).collect(),
            patch,
        };
        found.push((document, stat));
    }
    Ok(found)
}

/// The code at the end of a turn: its own commit, or the last one before it if it changed nothing.
pub(super) fn commit_at(opened: &OpenSessions, newest: &StoredRecord, turn: u32) -> Result<Oid, Failure> {
    let session_reader = opened.session_reader();
    let stored =
        if turn == 0 { session_reader.start_of(newest)? } else { session_reader.turn(newest, turn)? };
    Ok(stored.record.context.head)
}
