//! `git arborist workspace status`.

use arborist_core::{
    failure::Exit,
    git::shown_url,
    message::visible,
    name::Oid,
    workspace::{Present, RepoStatus},
};
use clap::Args;

use super::{
    document::StatusDocument,
    open::{ChoiceArgs, open},
};
use crate::{
    document,
    entry::Outcome,
    ui::{Fit, Table, Tone, Ui, seen_from_here},
};

const COLUMNS: usize = 8;
const BRANCH: usize = 1;
const HEAD_CELL: usize = 2;
const BASE: usize = 3;
const REMOTE: usize = 6;
const PATH: usize = 7;
const HEADINGS: [&str; COLUMNS] = ["repo", "branch", "head", "base", "ahead", "checkout", "remote", "path"];
/// Branch names differ at their ends.
const FITS: [Fit; COLUMNS] =
    [Fit::Whole, Fit::Front(12), Fit::Hash, Fit::Hash, Fit::Whole, Fit::Whole, Fit::Whole, Fit::Below];

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
}

pub(super) fn run(args: &StatusArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let mut statuses = Vec::new();
    for section in opened.chosen(&args.choice)? {
        let status = opened.workspace.status(section, &opened.push_set, opened.session.as_ref());
        // A repository that cannot be used does not hide the others.
        statuses.push(status.map_or_else(
            |error| {
                let why = error.to_string();
                ui.fail(&error.into());
                (RepoStatus { section, present: None }, Some(why))
            },
            |status| (status, None),
        ));
    }
    let exit = if statuses.iter().any(|(_, error)| error.is_some()) { Exit::No } else { Exit::Done };
    if args.json {
        document::print(ui, &StatusDocument::new(opened.session.as_ref(), &statuses))?;
        return Ok(exit);
    }
    let rows: Vec<[String; COLUMNS]> = statuses.iter().map(cells).collect();
    let tones: Vec<Tone> = statuses.iter().map(|(status, _)| tone(status)).collect();
    Table::new(HEADINGS, FITS).show(ui, &rows, |row, column| (column == REMOTE).then_some(tones[row]));
    Ok(exit)
}

/// Name, branch, head, base, distance, dirt, what is pushed, path.
fn cells((status, error): &(RepoStatus<'_>, Option<String>)) -> [String; COLUMNS] {
    let section = status.section;
    let mut cells: [String; COLUMNS] = Default::default();
    cells[0] = section.name.to_string();
    cells[PATH] = visible(&seen_from_here(&section.path).display().to_string());
    let Some(present) = &status.present else {
        let gone = match (error, &section.remote) {
            (Some(_), _) => "unusable",
            (None, Some(_)) => "not cloned",
            (None, None) => "missing",
        };
        cells[BRANCH] = gone.to_owned();
        return cells;
    };
    let branch = present.branch.as_ref().map_or_else(|| "(detached)".to_owned(), ToString::to_string);
    let short = |id: Option<Oid>| id.map(|id| id.short()).unwrap_or_default();
    cells[BRANCH] = visible(&branch);
    cells[HEAD_CELL] = short(present.head);
    cells[BASE] = short(present.base);
    cells[4] = present.distance.map(|far| format!("+{} -{}", far.ahead, far.behind)).unwrap_or_default();
    cells[5] = match present.dirty {
        0 => "clean".to_owned(),
        count => format!("{count} dirty"),
    };
    cells[REMOTE] = pushed(status);
    cells
}

fn pushed(status: &RepoStatus<'_>) -> String {
    let present = status.present.as_ref();
    match present.and_then(|present| Some((present.unpushed?, present.unpushed_refs?))) {
        None => "not configured".into(),
        Some((_, 0)) => ahead(status).unwrap_or_else(|| "pushed".into()),
        Some((0, 1)) => "unpushed: 1 ref".into(),
        Some((0, refs)) => format!("unpushed: {refs} refs"),
        Some((commits, _)) => format!("unpushed by {commits}"),
    }
}

/// Unpushed work outside of sessions, if everything of sessions is pushed.
fn ahead(status: &RepoStatus<'_>) -> Option<String> {
    let present = status.present.as_ref().filter(|present| present.is_pushed() == Some(false))?;
    let (left, remote) = (present.unpushed_checkout.as_ref()?, status.section.remote.as_deref()?);
    let branch = left.branch.as_ref().map_or("HEAD", |branch| branch.as_str());
    // A URL is too long for a table.
    let remote = if remote.contains(['/', ':']) { "its remote".to_owned() } else { shown_url(remote) };
    Some(format!("{} is {} ahead of {remote}", visible(branch), left.commits))
}

fn tone(status: &RepoStatus<'_>) -> Tone {
    match status.present.as_ref().and_then(Present::is_pushed) {
        None => Tone::Dim,
        Some(true) => Tone::Good,
        Some(false) => Tone::Busy,
    }
}
