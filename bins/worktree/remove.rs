//! `git arborist worktree remove`, `recycle`, `prune` and `repair`.

use arborist_core::{
    failure::Exit,
    name::TaskId,
    process::shell_word,
    worktree::{UncommittedPolicy, WorktreeNote},
};
use clap::Args;

use super::{
    open::{WorktreeScopeArgs, open},
    rows::shown,
};
use crate::{entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// The tasks, or the names of lanes and of worktrees of sessions
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    /// Remove it even if it has uncommitted files; they are saved under a ref first
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct RecycleArgs {
    /// The tasks, or the names of lanes
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

pub(super) fn run(args: &RemoveArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let unsaved = if args.force { UncommittedPolicy::Saved } else { UncommittedPolicy::Refused };
    for task in &args.tasks {
        let (removed, notes) = opened.pool.remove(task, unsaved)?;
        for note in &notes {
            ui.note(&note.to_string());
            if let WorktreeNote::Saved { under, .. } | WorktreeNote::SavedCommits { under, .. } = note {
                let name = under.trim_start_matches("refs/arborist/saved/");
                let command = format!("git arborist cleanup restore {}", shell_word(name));
                ui.hint(&format!("to get this back, run: {command}"));
            }
        }
        let kept = removed.branch.map(|branch| format!("; '{branch}' is kept")).unwrap_or_default();
        ui.line(&format!("removed {}{kept}", shown(&removed.path)));
    }
    Ok(Exit::Done)
}

pub(super) fn run_recycle(args: &RecycleArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    for task in &args.tasks {
        let removed = opened.pool.recycle(task)?;
        ui.line(&format!("{} is free", shown(&removed.path)));
    }
    Ok(Exit::Done)
}

pub(super) fn run_repair(scope: &WorktreeScopeArgs, ui: &mut Ui) -> Outcome {
    let opened = open(scope, ui)?;
    let done = opened.pool.repair()?;
    if !done.said.is_empty() {
        ui.line(&done.said);
    }
    for path in &done.repaired {
        ui.line(&format!("repaired {}", shown(path)));
    }
    for path in &done.broken {
        ui.warn(&format!("{} is still broken", shown(path)));
        ui.hint(&opened.pool.advice_for_broken(path));
    }
    Ok(if done.broken.is_empty() { Exit::Done } else { Exit::No })
}

pub(super) fn run_prune(scope: &WorktreeScopeArgs, ui: &mut Ui) -> Outcome {
    let opened = open(scope, ui)?;
    let (forgotten, notes) = opened.pool.prune()?;
    notes.iter().for_each(|note| ui.note(&note.to_string()));
    for path in forgotten {
        ui.line(&format!("forgot {}", shown(&path)));
    }
    Ok(Exit::Done)
}
