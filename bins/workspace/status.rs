//! `git arborist workspace status`.

use arborist_core::{
    failure::Exit,
    git::shown_url,
    message::visible,
    workspace::{Present, Standing},
};
use clap::Args;

use super::{
    document::StatusDocument,
    open::{ChoiceArgs, open},
};
use crate::{
    document,
    entry::Outcome,
    ui::{Tone, Ui},
};

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
                (Standing { section, present: None }, Some(why))
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
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    for (row, (standing, _)) in rows.iter().zip(&standings) {
        let mut line = String::new();
        for (column, (cell, width)) in
            row.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0)
        {
            let pad = " ".repeat(width - cell.chars().count() + 2);
            let is_pushed = column == COLUMNS - 2;
            let cell = if is_pushed { ui.paint(tone(standing), cell) } else { cell.clone() };
            line.push_str(&format!("{cell}{pad}"));
        }
        ui.line(line.trim_end());
    }
    Ok(exit)
}

const COLUMNS: usize = 8;

/// Name, branch, head, base, distance, dirt, what is pushed, path.
fn cells((standing, error): &(Standing<'_>, Option<String>)) -> [String; COLUMNS] {
    let section = standing.section;
    let path = section.path.display().to_string();
    let Some(present) = &standing.present else {
        let gone = match (error, &section.remote) {
            (Some(_), _) => "unusable",
            (None, Some(_)) => "not cloned",
            (None, None) => "missing",
        };
        return [
            section.name.to_string(),
            gone.into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            visible(&path),
        ];
    };
    let branch = present.branch.as_ref().map_or_else(|| "(detached)".to_owned(), ToString::to_string);
    let short = |id: Option<arborist_core::name::Oid>| id.map(|id| id.short()).unwrap_or_default();
    let dirty = match present.dirty {
        0 => "clean".to_owned(),
        count => format!("{count} dirty"),
    };
    [
        section.name.to_string(),
        visible(&branch),
        short(present.head),
        present.base.map(|base| format!("from {}", base.short())).unwrap_or_default(),
        present.distance.map(|far| format!("+{} -{}", far.ahead, far.behind)).unwrap_or_default(),
        dirty,
        pushed(standing),
        visible(&path),
    ]
}

fn pushed(standing: &Standing<'_>) -> String {
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
fn ahead(standing: &Standing<'_>) -> Option<String> {
    let present = standing.present.as_ref().filter(|present| present.is_pushed() == Some(false))?;
    let (left, remote) = (present.remainder.as_ref()?, standing.section.remote.as_deref()?);
    let branch = left.branch.as_ref().map_or("HEAD", |branch| branch.as_str());
    Some(format!("{} is {} ahead of {}", visible(branch), left.commits, shown_url(remote)))
}

fn tone(standing: &Standing<'_>) -> Tone {
    match standing.present.as_ref().and_then(Present::is_pushed) {
        None => Tone::Dim,
        Some(true) => Tone::Good,
        Some(false) => Tone::Busy,
    }
}
