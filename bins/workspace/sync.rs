//! `git arborist workspace sync`.

use arborist_core::{
    failure::Exit,
    git::shown_url,
    message::visible,
    workspace::{Section, Supply, Wanted},
};
use clap::Args;

use super::{
    document::{SyncDocument, SyncedDocument},
    open::{ChoiceArgs, ConsentArgs, open},
};
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub(super) fn run(args: &SyncArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    opened.require_consent(&args.consent)?;
    let mut synced = Vec::new();
    for section in opened.chosen(&args.choice)? {
        let (repository, supply) = opened.workspace.supply(section, Wanted::Everything)?;
        let taken = opened.workspace.adopt(&repository, section)?;
        if let Supply::Offline { why } = &supply {
            ui.warn(&format!("'{}' is as it was: {}", section.name, visible(why)));
        }
        if !args.json {
            ui.line(&words(section, &supply));
            taken.iter().for_each(|name| ui.line(&format!("  took over {}", visible(name))));
        }
        synced.push(SyncedDocument::new(section, &supply, taken));
    }
    let is_offline = synced.iter().any(SyncedDocument::is_offline);
    if args.json {
        document::print(ui, &SyncDocument { repositories: synced })?;
    }
    Ok(if is_offline { Exit::No } else { Exit::Done })
}

fn words(section: &Section, supply: &Supply) -> String {
    let name = &section.name;
    match supply {
        Supply::Local => format!("{name}: no remote"),
        Supply::Cloned { remote } => format!("{name}: cloned from {}", shown_url(remote)),
        Supply::Fetched { remote } => format!("{name}: fetched from {}", shown_url(remote)),
        Supply::Offline { .. } => format!("{name}: offline"),
    }
}
