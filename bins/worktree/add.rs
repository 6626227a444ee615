//! `git arborist worktree add`.

use std::thread;

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, UncommittedPath},
    history::{CommitSource, Run},
    name::{Oid, TaskId},
    plan::{Plan, configured_plan_path, find_plans},
    safe_files,
    worktree::{BaseReason, BranchBase, Lease, LeaseStart, WorktreeError},
};
use clap::Args;

use super::open::{OpenWorktrees, WorktreeScopeArgs, open_until, warn_of_many_worktrees};
use crate::{approval, entry::Outcome, gardening::watch_signals, scope, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct WorktreeAddArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// Where the branch of the task starts [default: the run's branch]
    #[arg(long, value_name = "REVISION")]
    base: Option<String>,
    /// Use a lane (a reusable worktree of the run), preferably a free one
    #[arg(long)]
    lane: bool,
    /// Accept a name that is not in the plan. Without a plan, any name is accepted
    #[arg(long)]
    unplanned: bool,
    /// Do not fetch from the remote of the run's branch
    #[arg(long)]
    offline: bool,
    /// Do not warn about uncommitted changes in the checkout
    #[arg(long)]
    allow_dirty: bool,
    /// Approve commands and settings that come from .arborist/
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

pub(super) fn run(args: &WorktreeAddArgs, ui: &mut Ui) -> Outcome {
    let opened = open_until(&args.scope, ui, &watch_signals())?;
    opened.repository.refuse_branch_in_the_way(&opened.scope.branch)?;
    refuse_unknown(args, &opened)?;
    approval::require(
        &opened.repository,
        &opened.options.commands_to_approve(),
        approval::consent(args.yes),
        ui,
    )?;
    let base = base(args, &opened, ui)?;
    let (lease, changed_paths) = thread::scope(|scope| {
        let changed_paths = scope.spawn(|| find_dirt(args, &opened));
        let pool = &opened.pool;
        let lease = if args.lane { pool.lease(&args.task, base) } else { pool.add(&args.task, base) };
        (lease, changed_paths.join())
    });
    let lease = lease?;
    if let Ok(Some(words)) = changed_paths {
        ui.warn(&words);
    }
    print_lease(&lease, &opened, ui)?;
    warn_of_many_worktrees(&opened, ui);
    ui.line(&lease.path.display().to_string());
    drop(lease);
    Ok(Exit::Done)
}

/// Refuses a name that is neither in the plan nor in history and has no branch: it is probably mistyped. Without a
/// plan, any name is accepted.
fn refuse_unknown(args: &WorktreeAddArgs, opened: &OpenWorktrees) -> Result<(), Failure> {
    let task = &args.task;
    let branch = opened.scope.branch.task_branch(task);
    if args.unplanned || opened.repository.find_branch(&branch)?.is_some() {
        return Ok(());
    }
    let Some((path, plan)) = plan_here(opened).filter(|(_, plan)| plan.find(task).is_none()) else {
        return Ok(());
    };
    // Reading history is slow, so it is read only if the name would be refused.
    let run = Run::scan(&opened.repository, opened.scope.clone(), CommitSource::Cached)?;
    let frozen = Plan::read_frozen(&opened.repository, run.frozen_plan())?.and_then(Result::ok);
    if run.find(task).is_some() || frozen.is_some_and(|plan| plan.find(task).is_some()) {
        return Ok(());
    }
    let failure = Failure::new(Exit::No, format!("there is no task '{task}' in the plan '{path}'"));
    let all_the_same = "for a task that is not in the plan, use --unplanned";
    let scope = scope::option(&opened.repository, &opened.scope.branch);
    let all = format!("see all tasks with: git arborist state{scope}");
    let hint = scope::hint_nearest(task.as_str(), plan.leaves().map(|leaf| leaf.id.as_str()), all);
    Err(failure.hint(format!("{hint}\n{all_the_same}")))
}

/// The plan in the checkout, if it can be read.
pub(super) fn plan_here(opened: &OpenWorktrees) -> Option<(String, Plan)> {
    let top = opened.repository.worktree.as_ref()?;
    let mut plans = find_plans(top, Some(&opened.scope.branch));
    let named = configured_plan_path(&opened.repository, &opened.settings);
    let path = named.or_else(|| if plans.len() == 1 { plans.pop() } else { None })?;
    let plan = Plan::read(&path, &safe_files::read_beneath(top, &path).ok()?).ok()?;
    Some((path, plan))
}

/// Where a new branch starts. An existing branch with another base is an error.
fn base(args: &WorktreeAddArgs, opened: &OpenWorktrees, ui: &mut Ui) -> Result<Oid, Failure> {
    let tip = opened.require_tip()?;
    let branch = opened.scope.branch.task_branch(&args.task);
    let known = opened.repository.find_branch(&branch)?;
    let Some(revision) = &args.base else {
        if args.offline {
            return Ok(tip);
        }
        let base = opened.pool.find_base(tip)?;
        report_base(&base, opened, ui);
        return Ok(base.commit);
    };
    let base = opened.repository.find_commit(revision)?.ok_or_else(|| {
        let words = GitError::Unknown(revision.clone(), "commit").to_string();
        Failure::new(Exit::No, words).hint("see the branches with: git branch -a")
    })?;
    if let Some(known) = known
        && !opened.repository.is_ancestor(base, known)?
        && !opened.repository.is_ancestor(known, base)?
    {
        return Err(WorktreeError::OtherBase { branch, base }.into());
    }
    Ok(base)
}

/// Reports where a task starts, if that is not simply the run's branch.
pub(super) fn report_base(base: &BranchBase, opened: &OpenWorktrees, ui: &mut Ui) {
    let (run, at) = (&opened.scope.branch, base.commit.short());
    match &base.reason {
        BaseReason::Local | BaseReason::Current => {}
        BaseReason::Fetched { from, more } => {
            ui.note(&format!("'{run}' is {more} behind '{from}', so the task starts from '{from}', at {at}"));
        }
        BaseReason::Diverged { from } => {
            ui.warn(&format!("'{run}' and '{from}' have diverged; the task starts from '{run}', at {at}"));
        }
        BaseReason::Offline { remote, why } => {
            ui.warn(&format!("offline: '{remote}' could not be reached ({why})"));
            ui.warn(&format!("the task starts from '{run}', at {at}, which may be behind the remote"));
        }
    }
}

/// Uncommitted files that the worktree will lack. `None` if the checkout cannot be read.
fn find_dirt(args: &WorktreeAddArgs, opened: &OpenWorktrees) -> Option<String> {
    if args.allow_dirty || opened.settings.general.allow_dirty {
        return None;
    }
    let changed_paths =
        opened.repository.changed_paths().ok().filter(|changed_paths| !changed_paths.is_empty())?;
    let shown: Vec<String> = changed_paths.iter().take(5).map(UncommittedPath::shown).collect();
    let more = if changed_paths.len() > shown.len() { ", …" } else { "" };
    Some(format!(
        "these files are not in the worktree, because they are not committed: {}{more}",
        shown.join(", ")
    ))
}

fn print_lease(lease: &Lease, opened: &OpenWorktrees, ui: &mut Ui) -> Result<(), Failure> {
    let branch = &lease.branch;
    let at = lease.repository.head.commit.map(|commit| commit.short()).unwrap_or_default();
    let words = match lease.start {
        LeaseStart::Fresh => format!("created branch '{branch}' at {at}"),
        LeaseStart::Reused { from } if Some(from) == lease.repository.head.commit => {
            format!("using the existing branch '{branch}' at {at}")
        }
        LeaseStart::Reused { .. } => {
            format!("moved branch '{branch}' forward to {at} (it had no commits of its own)")
        }
        LeaseStart::Continued { tip } => {
            let distance = opened.repository.distance(tip, opened.require_tip()?)?;
            format!(
                "using the existing branch '{branch}' at {at} ({} ahead of '{}', {} behind)",
                distance.ahead, opened.scope.branch, distance.behind
            )
        }
        LeaseStart::Adopted => format!("'{}' already has a worktree, at {at}", lease.task),
    };
    ui.err(&format!("{words}\n"));
    lease.notes.iter().for_each(|note| ui.note(&note.to_string()));
    Ok(())
}
