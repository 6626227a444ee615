//! `git arborist worktree show` and `path`.

use arborist_core::{
    failure::{Exit, Failure},
    message::visible,
    name::TaskId,
    worktree::WorktreeError,
};
use clap::Args;

use super::{
    add::plan_here,
    document::RowDocument,
    list::{megabytes, tone},
    open::{OpenWorktrees, WorktreeScopeArgs, open},
    rows::{self, ExtraRows, WorktreeRow},
};
use crate::{
    clock, document,
    entry::Outcome,
    scope::hint_nearest,
    ui::{Tone, Ui},
};

#[derive(Debug, Args)]
pub(super) struct WorktreeShowArgs {
    /// The task, or the name of a lane
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// The task, or the name of a lane
    #[arg(value_name = "TASK")]
    task: TaskId,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

pub(super) fn run(args: &WorktreeShowArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let absent = || absent(&opened, &args.task);
    let found = opened.pool.find(&args.task)?.ok_or_else(absent)?;
    let rows = rows::collect(&opened, ExtraRows::Worktrees)?;
    let is_it = |row: &WorktreeRow| row.status.as_ref().is_some_and(|status| status.path == found.path);
    let mut row = rows.into_iter().find(is_it).ok_or_else(absent)?;
    row.lengthen(&opened.pool)?;
    if args.json {
        return document::print(ui, &RowDocument::new(&row));
    }
    show(ui, &row);
    if found.is_broken {
        return Err(WorktreeError::Broken(args.task.to_string(), found.path).into());
    }
    row.find_lost(&opened)?.map_or(Ok(Exit::Done), Err)
}

pub(super) fn run_path(args: &PathArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let name = || args.task.to_string();
    let found = opened.pool.find(&args.task)?.ok_or_else(|| absent(&opened, &args.task))?;
    if found.is_missing {
        return Err(WorktreeError::Missing(name(), found.path).into());
    }
    if found.is_broken {
        return Err(WorktreeError::Broken(name(), found.path).into());
    }
    ui.line(&found.path.display().to_string());
    Ok(Exit::Done)
}

/// The error for a task without a worktree. A name that the plan does not have is probably mistyped.
pub(super) fn absent(opened: &OpenWorktrees, task: &TaskId) -> Failure {
    let failure = WorktreeError::Absent(task.to_string());
    if plan_here(opened).is_none_or(|(_, plan)| plan.find(task).is_some()) {
        return failure.into();
    }
    let rows = rows::collect(opened, ExtraRows::Worktrees).unwrap_or_default();
    let titles: Vec<String> = rows.iter().map(WorktreeRow::title).collect();
    let all = "see all worktrees with: git arborist worktree list";
    Failure::new(Exit::No, failure.to_string()).hint(hint_nearest(
        task.as_str(),
        titles.iter().map(String::as_str),
        all,
    ))
}

fn uncommitted(count: usize) -> String {
    match count {
        0 => "none".to_owned(),
        1 => "1 uncommitted file".to_owned(),
        count => format!("{count} uncommitted files"),
    }
}

fn show(ui: &mut Ui, row: &WorktreeRow) {
    ui.line(&format!(
        "{}  {}",
        ui.paint(Tone::Strong, &visible(&row.title())),
        ui.paint(tone(row), row.word())
    ));
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            ui.line(&format!("  {name:<9} {}", visible(&value)));
        }
    };
    let status = row.status.as_ref();
    field("path", status.map(|status| status.path.display().to_string()));
    field("branch", row.branch.as_ref().map(ToString::to_string));
    field("commit", row.head.map(|head| head.short()));
    let run = row.run.as_ref().map(ToString::to_string).unwrap_or_default();
    field("distance", row.distance.map(|far| format!("{} ahead of {run}, {} behind", far.ahead, far.behind)));
    field("changes", row.long.map(|long| uncommitted(long.dirty)));
    field("size", row.long.map(|long| megabytes(long.size)));
    field("active", status.and_then(|status| status.active).map(clock::ago));
    field("holder", row.holder().map(ToString::to_string));
}
