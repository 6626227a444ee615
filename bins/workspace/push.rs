//! `git arborist workspace push`.

use arborist_core::{
    failure::{Exit, Failure},
    git::{RemoteError, shown_url},
    message::visible,
    workspace::{Delivery, Section, WorkspaceError},
};
use clap::Args;

use super::{
    document::{PushDocument, PushedDocument},
    open::{ChoiceArgs, ConsentArgs, Opened, open},
};
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub(super) fn run(args: &PushArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    opened.require_consent(&args.consent)?;
    let sections = opened.chosen(&args.choice)?;
    let with_remote: Vec<&Section> =
        sections.iter().copied().filter(|section| section.remote.is_some()).collect();
    if let ([], [section, ..]) = (with_remote.as_slice(), sections.as_slice()) {
        return Err(WorkspaceError::NowhereToPush { name: section.name.clone() }.into());
    }
    let mut told = Vec::new();
    for section in with_remote {
        let document = push(&opened, section, ui)?;
        if !args.json {
            show(&document, ui);
        }
        told.push(document);
    }
    let is_whole = told.iter().all(PushedDocument::is_whole);
    if args.json {
        document::print(ui, &PushDocument { repositories: told })?;
    }
    Ok(if is_whole { Exit::Done } else { Exit::No })
}

/// A remote that cannot be reached keeps nobody from the next one.
fn push(opened: &Opened, section: &Section, ui: &mut Ui) -> Result<PushedDocument, Failure> {
    let Some(repository) = opened.workspace.open(section)? else {
        return Err(WorkspaceError::Missing { name: section.name.clone(), path: section.path.clone() }.into());
    };
    let delivery = match opened.workspace.deliver(&repository, section, &opened.cargo) {
        Ok(delivery) => delivery,
        Err(WorkspaceError::Remote(error @ RemoteError::Unreached { .. })) => {
            ui.warn(&format!("'{}' was not pushed: {error}", section.name));
            let remote = section.remote.as_deref().map(shown_url).unwrap_or_default();
            return Ok(PushedDocument::failed(section, remote, error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    for row in &delivery.refused {
        let why = row.refused.as_deref().unwrap_or_default();
        ui.warn(&format!("'{}' refused {}: {why}", section.name, visible(&row.name)));
    }
    Ok(PushedDocument::new(section, &tidy(delivery)))
}

fn tidy(delivery: Delivery) -> Delivery {
    Delivery { remote: shown_url(&delivery.remote), ..delivery }
}

fn show(document: &PushedDocument, ui: &mut Ui) {
    for line in document.lines() {
        ui.line(&line);
    }
}
