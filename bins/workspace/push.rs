//! `git arborist workspace push`.

use arborist_core::{
    failure::Exit,
    git::{RemoteError, shown_url},
    message::visible,
    workspace::{PushResult, RepoSection, UnpushedCheckout, Workspace, WorkspaceError, map_parallel},
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
        let repository = opened.workspace.open(section)?.ok_or_else(|| WorkspaceError::absent(section))?;
        return Err(Workspace::no_push_remote(&repository, section)?.into());
    }
    let mut reported = Vec::new();
    let answers = map_parallel(&with_remote, |section| push_section(&opened, section));
    for (section, answer) in with_remote.into_iter().zip(answers) {
        let document = report(section, answer, ui);
        if !args.json {
            show(&document, ui);
        }
        reported.push(document);
    }
    let is_whole = reported.iter().all(PushedDocument::is_whole);
    if args.json {
        document::print(ui, &PushDocument { repositories: reported })?;
    }
    opened.require_unstopped()?;
    Ok(if is_whole { Exit::Done } else { Exit::No })
}

/// Reports one push. A failure does not prevent the others.
fn report(
    section: &RepoSection,
    answer: Result<(PushResult, UnpushedCheckout), WorkspaceError>,
    ui: &mut Ui,
) -> PushedDocument {
    let (result, left) = match answer {
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
    for row in &result.refused {
        ui.warn(&format!("'{}' refused {}: {}", section.name, visible(&row.name), row.reason()));
    }
    PushedDocument::new(section, &tidy(result), &left)
}

/// Pushes a repository. The remote is contacted even if there is nothing to push, so that "up to date" is known to be
/// true.
fn push_section(
    opened: &OpenWorkspace,
    section: &RepoSection,
) -> Result<(PushResult, UnpushedCheckout), WorkspaceError> {
    let workspace = &opened.workspace;
    let repository = workspace.open(section)?.ok_or_else(|| WorkspaceError::absent(section))?;
    let result = workspace.push_missing(&repository, section, &opened.push_set)?;
    if result.pushed.is_empty() && result.refused.is_empty() {
        workspace.check_reachable(&repository, &result.remote)?;
    }
    let left = workspace.unpushed_checkout(&repository, section, &opened.push_set)?;
    Ok((result, left))
}

fn tidy(result: PushResult) -> PushResult {
    PushResult { remote: shown_url(&result.remote), ..result }
}

fn show(document: &PushedDocument, ui: &mut Ui) {
    for line in document.lines() {
        ui.line(&line);
    }
}
