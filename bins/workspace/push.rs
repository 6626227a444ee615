//! `git arborist workspace push`.

use arborist_core::{
    failure::Exit,
    git::{RemoteError, shown_url},
    message::visible,
    workspace::{PushResult, Remainder, RepoSection, WorkspaceError, abreast},
};

use super::{
    document::{PushDocument, PushedDocument},
    open::{ExchangeArgs, OpenWorkspace, open},
};
use crate::{document, entry::Outcome, ui::Ui};

pub(super) fn run(args: &ExchangeArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    opened.require_consent(&args.consent, ui)?;
    let sections = opened.chosen(&args.choice)?;
    let with_remote: Vec<&RepoSection> =
        sections.iter().copied().filter(|section| section.remote.is_some()).collect();
    if let ([], [section, ..]) = (with_remote.as_slice(), sections.as_slice()) {
        return Err(WorkspaceError::NowhereToPush { name: section.name.clone() }.into());
    }
    let mut told = Vec::new();
    let answers = abreast(&with_remote, |section| deliver(&opened, section));
    for (section, answer) in with_remote.into_iter().zip(answers) {
        let document = tell(section, answer, ui);
        if !args.json {
            show(&document, ui);
        }
        told.push(document);
    }
    let is_whole = told.iter().all(PushedDocument::is_whole);
    if args.json {
        document::print(ui, &PushDocument { repositories: told })?;
    }
    opened.require_unstopped()?;
    Ok(if is_whole { Exit::Done } else { Exit::No })
}

/// A repository or a remote that fails keeps nobody from the next one.
fn tell(
    section: &RepoSection,
    answer: Result<(PushResult, Remainder), WorkspaceError>,
    ui: &mut Ui,
) -> PushedDocument {
    let (delivery, left) = match answer {
        Ok(delivered) => delivered,
        Err(error) => {
            let why = error.to_string();
            match error {
                WorkspaceError::Remote(RemoteError::Unreached { trouble, .. }) => {
                    ui.warn(&format!("'{}' was not pushed: {why}", section.name));
                    trouble.hint().iter().for_each(|hint| ui.hint(hint));
                }
                error => ui.fail(&error.into()),
            }
            let remote = section.remote.as_deref().map(shown_url).unwrap_or_default();
            return PushedDocument::failed(section, remote, why);
        }
    };
    for row in &delivery.refused {
        ui.warn(&format!("'{}' refused {}: {}", section.name, visible(&row.name), row.reason()));
    }
    PushedDocument::new(section, &tidy(delivery), &left)
}

/// Where there is nothing to push, the remote is asked all the same: that it has everything is said of one that is there.
fn deliver(opened: &OpenWorkspace, section: &RepoSection) -> Result<(PushResult, Remainder), WorkspaceError> {
    let workspace = &opened.workspace;
    let repository = workspace.open(section)?.ok_or_else(|| WorkspaceError::absent(section))?;
    let delivery = workspace.deliver(&repository, section, &opened.cargo)?;
    if delivery.pushed.is_empty() && delivery.refused.is_empty() {
        workspace.hail(&repository, &delivery.remote)?;
    }
    let left = workspace.remainder(&repository, section, &opened.cargo)?;
    Ok((delivery, left))
}

fn tidy(delivery: PushResult) -> PushResult {
    PushResult { remote: shown_url(&delivery.remote), ..delivery }
}

fn show(document: &PushedDocument, ui: &mut Ui) {
    for line in document.lines() {
        ui.line(&line);
    }
}
