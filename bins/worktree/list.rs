//! `git arborist worktree list`.

use arborist_core::{failure::Exit, message::visible};
use clap::Args;

use super::{
    document::ListDocument,
    open::{WorktreeScopeArgs, open, warn_of_many_worktrees},
    rows::{self, ExtraRows, WorktreeRow},
};
use crate::{
    clock, document,
    entry::Outcome,
    ui::{Fit, Table, Tone, Ui, seen_from_here},
};

#[derive(Debug, Args)]
pub(super) struct WorktreeListArgs {
    /// Also count uncommitted paths and measure sizes
    #[arg(short, long)]
    long: bool,
    /// Also list branches of tasks without a worktree
    #[arg(short, long)]
    branches: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

pub(super) fn run(args: &WorktreeListArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let wanted = if args.branches { ExtraRows::Branches } else { ExtraRows::Worktrees };
    let mut rows = rows::collect(&opened, wanted)?;
    if args.long {
        rows.iter_mut().try_for_each(|row| row.lengthen(&opened.pool))?;
    }
    if args.json {
        return document::print(ui, &ListDocument::new(&opened, &rows));
    }
    if rows.is_empty() {
        ui.note("there are no worktrees of tasks");
    }
    show(ui, &rows);
    if rows.iter().any(|row| row.state == "broken") {
        ui.hint("to repair broken worktrees, run: git arborist worktree repair");
    }
    for row in &rows {
        if let Some(lost) = row.find_lost(&opened)? {
            ui.warn(&lost.message);
            lost.hints.iter().for_each(|hint| ui.hint(hint));
        }
    }
    warn_of_many_worktrees(&opened, ui);
    Ok(Exit::Done)
}

fn show(ui: &mut Ui, rows: &[WorktreeRow]) {
    let cells: Vec<[String; COLUMNS]> = rows.iter().map(cells).collect();
    Table::new(HEADINGS, FITS).show(ui, &cells, |row, column| (column == 1).then(|| tone(&rows[row])));
}

const COLUMNS: usize = 8;
const FITS: [Fit; COLUMNS] =
    [Fit::Id(24), Fit::Whole, Fit::Whole, Fit::Whole, Fit::Whole, Fit::End(12), Fit::Front(12), Fit::Below];
const HEADINGS: [&str; COLUMNS] = ["task", "state", "ahead", "active", "content", "holder", "branch", "path"];

fn cells(row: &WorktreeRow) -> [String; COLUMNS] {
    let text = |path: Option<String>| path.unwrap_or_default();
    let status = row.status.as_ref();
    let title = if row.task.is_some() { row.title() } else { format!("({})", row.title()) };
    let active = status.and_then(|status| status.active);
    let cells: [String; COLUMNS] = [
        title,
        row.word().to_owned(),
        text(row.distance.map(|far| format!("+{} -{}", far.ahead, far.behind))),
        text(active.map(clock::ago)),
        text(row.long.map(|long| format!("{} dirty, {}", long.dirty, megabytes(long.size)))),
        text(row.holder().map(ToString::to_string)),
        text(row.branch.as_ref().map(ToString::to_string)),
        text(status.map(|status| seen_from_here(&status.path).display().to_string())),
    ];
    cells.map(|cell| visible(&cell))
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

pub(super) fn tone(row: &WorktreeRow) -> Tone {
    match row.state {
        "complete" => Tone::Good,
        "failed" | "missing" | "broken" | "forked" | "reverted" | "lost" => Tone::Bad,
        "free" | "pending" | "session" => Tone::Dim,
        _ => Tone::Busy,
    }
}
