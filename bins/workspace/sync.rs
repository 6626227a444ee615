//! `git arborist workspace sync`.

use arborist_core::{
    failure::Exit,
    git::shown_url,
    message::visible,
    workspace::{FetchScope, RepoRequest, RepoSection, SyncOutcome, WorkspaceError, map_parallel},
};

use super::{
    document::{SyncDocument, SyncedDocument},
    open::{ExchangeArgs, OpenWorkspace, open},
};
use crate::{document, entry::Outcome, ui::Ui};

pub(super) fn run(args: &ExchangeArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    opened.require_consent(&args.consent, ui)?;
    let mut synced = Vec::new();
    let sections = opened.chosen(&args.choice)?;
    let answers = map_parallel(&sections, |section| sync(&opened, section));
    for (section, answer) in sections.into_iter().zip(answers) {
        let (supply, taken) = match answer {
            Ok(done) => done,
            Err(error) => {
                synced.push(SyncedDocument::failed(section, visible(&error.to_string())));
                ui.fail(&error.into());
                continue;
            }
        };
        if let SyncOutcome::Offline { why, trouble } = &supply {
            ui.warn(&format!("'{}' was not fetched: {}", section.name, visible(why)));
            trouble.hint().iter().for_each(|hint| ui.hint(hint));
        }
        if !args.json {
            ui.line(&match opened.workspace.is_configured {
                true => words(section, &supply),
                false => "nothing to fetch: no workspace is configured here".into(),
            });
            taken.iter().for_each(|name| ui.line(&format!("  took over {}", visible(name))));
        }
        synced.push(SyncedDocument::new(section, &supply, taken));
    }
    let is_well = synced.iter().all(SyncedDocument::is_well);
    if args.json {
        document::print(ui, &SyncDocument { repositories: synced })?;
    }
    opened.require_unstopped()?;
    Ok(if is_well { Exit::Done } else { Exit::No })
}

fn sync(opened: &OpenWorkspace, section: &RepoSection) -> Result<(SyncOutcome, Vec<String>), WorkspaceError> {
    let workspace = &opened.workspace;
    let here = workspace.locate(section)?;
    let (repository, supply) =
        workspace.get(&RepoRequest { section, here, wanted: FetchScope::Everything })?;
    let taken = workspace.adopt(&repository, section)?;
    Ok((supply, taken))
}

fn words(section: &RepoSection, supply: &SyncOutcome) -> String {
    let name = &section.name;
    match supply {
        SyncOutcome::Local => {
            format!("{name}: not fetched, because workspace.repos.{name}.remote is not set")
        }
        SyncOutcome::Cloned { remote } => format!("{name}: cloned from {}", shown_url(remote)),
        SyncOutcome::Fetched { remote } => format!("{name}: fetched from {}", shown_url(remote)),
        SyncOutcome::Offline { .. } => format!("{name}: offline"),
    }
}
