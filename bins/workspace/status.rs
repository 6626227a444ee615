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
const HEAD: usize = 2;
const BASE: usize = 3;
const REMOTE: usize = 6;
const PATH: usize = 7;
const HEADINGS: [&str; COLUMNS] = ["repo", "branch", "head", "base", "ahead", "checkout", "remote", "path"];
/// Ends of branches differ.
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
    let mut standings = Vec::new();
    for section in opened.chosen(&args.choice)? {
        let standing = opened.workspace.standing(section, (&opened.cargo, opened.session.as_ref()));
        // One that cannot be used hides none of the others.
        standings.push(standing.map_or_else(
            |error| {
                let why = error.to_string();
                ui.fail(&error.into());
                (RepoStatus { section, present: None }, Some(why))
            },
            |standing| (standing, None),
        ));
    }
    let exit = if standings.iter().any(|(_, error)| error.is_some()) { Exit::No } else { Exit::Done };
    if args.json {
        document::print(ui, &StatusDocument::new(opened.session.as_ref(), &standings))?;
        return Ok(exit);
    }
    let rows: Vec<[String; COLUMNS]> = standings.iter().map(cells).collect();
    let tones: Vec<Tone> = standings.iter().map(|(standing, _)| tone(standing)).collect();
    Table::new(HEADINGS, FITS).show(ui, &rows, |row, column| (column == REMOTE).then_some(tones[row]));
    Ok(exit)
}

/// Name, branch, head, base, distance, dirt, what is pushed, path.
fn cells((standing, error): &(RepoStatus<'_>, Option<String>)) -> [String; COLUMNS] {
    let section = standing.section;
    let mut cells: [String; COLUMNS] = Default::default();
    cells[0] = section.name.to_string();
    cells[PATH] = visible(&seen_from_here(&section.path).display().to_string());
    let Some(present) = &standing.present else {
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
    cells[HEAD] = short(present.head);
    cells[BASE] = short(present.base);
    cells[4] = present.distance.map(|far| format!("+{} -{}", far.ahead, far.behind)).unwrap_or_default();
    cells[5] = match present.dirty {
        0 => "clean".to_owned(),
        count => format!("{count} dirty"),
    };
    cells[REMOTE] = pushed(standing);
    cells
}

fn pushed(standing: &RepoStatus<'_>) -> String {
    let present = standing.present.as_ref();
    match present.and_then(|present| Some((present.unpushed?, present.unpushed_refs?))) {
        None => "no remote".into(),
        Some((_, 0)) => ahead(standing).unwrap_or_else(|| "pushed".into()),
        Some((0, 1)) => "unpushed: 1 ref".into(),
        Some((0, refs)) => format!("unpushed: {refs} refs"),
        Some((commits, _)) => format!("unpushed by {commits}"),
    }
}

/// What the remote has not, though it has all of sessions.
fn ahead(standing: &RepoStatus<'_>) -> Option<String> {
    let present = standing.present.as_ref().filter(|present| present.is_pushed() == Some(false))?;
    let (left, remote) = (present.remainder.as_ref()?, standing.section.remote.as_deref()?);
    let branch = left.branch.as_ref().map_or("HEAD", |branch| branch.as_str());
    // A URL is too long for a table; which one it is, the configuration says.
    let remote = if remote.contains(['/', ':']) { "its remote".to_owned() } else { shown_url(remote) };
    Some(format!("{} is {} ahead of {remote}", visible(branch), left.commits))
}

fn tone(standing: &RepoStatus<'_>) -> Tone {
    match standing.present.as_ref().and_then(Present::is_pushed) {
        None => Tone::Dim,
        Some(true) => Tone::Good,
        Some(false) => Tone::Busy,
    }
}
