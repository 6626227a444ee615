//! `git arborist worktree sync`.

use arborist_core::{
    failure::{Exit, Failure},
    git::{MergeConflict, Network},
    message::visible,
    name::{Oid, TaskId},
    process::Cancel,
    worktree::{BaseReason, SyncCooldown, Synced},
};
use clap::Args;

use super::{
    add,
    open::{OpenWorktrees, WorktreeScopeArgs, open},
};
use crate::{clock, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    /// Do not fetch from the remote of the run's branch
    #[arg(long)]
    offline: bool,
    /// Sync even if the last sync was less than worktree.sync-cooldown seconds ago
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

pub(super) fn run(args: &SyncArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let tip = opened.require_tip()?;
    let mut from = tip;
    if !args.offline {
        let base = opened.pool.find_base(tip)?;
        if let BaseReason::Offline { remote, why } = &base.reason {
            ui.note(&format!("nothing was synced, because '{remote}' could not be reached ({why})"));
            ui.hint("to sync without the remote, use --offline");
            return Ok(Exit::Done);
        }
        add::report_base(&base, &opened, ui);
        from = base.commit;
    }
    let mut exit = Exit::Done;
    let span = opened.settings.worktree.sync_cooldown;
    let cooldown = SyncCooldown { span, now: clock::now() };
    for task in &args.tasks {
        if !sync(task, from, (!args.now).then_some(cooldown), &opened, ui)? {
            exit = Exit::Person;
        }
    }
    Ok(exit)
}

/// Whether the task's branch has everything now.
fn sync(
    task: &TaskId,
    from: Oid,
    cooldown: Option<SyncCooldown>,
    opened: &OpenWorktrees,
    ui: &mut Ui,
) -> Result<bool, Failure> {
    let run = &opened.scope.branch;
    if let Some(known) = opened.repository.find_branch(&run.task_branch(task))? {
        let network = Network { silence: opened.settings.network_silence(), cancel: Cancel::new() };
        let deepened = opened.repository.join_histories(known, from, &network)?;
        deepened.iter().for_each(|deepened| ui.note(&deepened.to_string()));
    }
    match opened.pool.sync(task, from, cooldown)? {
        Synced::Current => ui.line(&format!("{task} is up to date with {run}")),
        Synced::Merged(commit) => {
            let merge = if commit == from { String::new() } else { format!(" (merge {})", commit.short()) };
            ui.line(&format!("{task} is now based on {run} at {}{merge}", from.short()));
        }
        Synced::TooSoon(last) => {
            ui.note(&format!("nothing was done, because {task} was synced {}", clock::ago(last)));
            ui.hint(&format!("to sync it again now, run: git arborist worktree sync --now {task}"));
        }
        Synced::Conflicted(conflicts) => {
            let lines: Vec<String> = conflicts.iter().map(line_of).collect();
            let failure = Failure::new(
                Exit::Person,
                format!("'{task}' and '{run}' conflict; nothing was changed:\n{}", lines.join("\n")),
            );
            ui.fail(&failure.hint(format!("merge by hand in: git arborist worktree path {task}")));
            return Ok(false);
        }
        Synced::InTheWay(paths) => {
            let failure = Failure::new(
                Exit::Person,
                format!(
                    "uncommitted changes of '{task}' would be overwritten; nothing was changed:\n  {}",
                    paths.join("\n  ")
                ),
            );
            ui.fail(&failure.hint("commit them first"));
            return Ok(false);
        }
    }
    Ok(true)
}

fn line_of(conflict: &MergeConflict) -> String {
    format!("  {}: {}", conflict.kind.as_str(), visible(&conflict.paths.join(", ")))
}
