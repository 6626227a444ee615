//! Lets a person resolve a conflict: opens a worktree with the conflict in it, then lands the result.
//!
//! Both are one command. A ticket is a ref that any process of the user can write, so a later command could not
//! distinguish a person's resolution from a forged one, and would have it reviewed.

use arborist_core::{
    failure::{Exit, Failure},
    message::{plain_line, visible},
    name::TaskId,
    queue::{Handover, OtherFiles, Queue, QueueEvent, QueueReport, StoredTicket, Ticket, TicketOutcome},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    ResolveArgs,
    document::RunDocument,
    open::OpenQueue,
    run::{LandingCall, end_session_after, lock_run, report_notices},
    words::OutcomeReporter,
};
use crate::{clock, document::print, entry::Outcome, gardening::watch_signals, ui::Ui};

/// Where a conflict is resolved.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResolveDocument {
    /// The task.
    pub task: String,
    /// `opened`, `unfinished`, `other-files` or `taken`.
    pub state: String,
    /// The worktree with the conflict; null when the resolution was queued.
    pub path: Option<String>,
    /// The files there that are not resolved yet.
    pub unresolved: Vec<String>,
    /// The files there that were changed although they are not in conflict, if `--yes` is needed to land them.
    pub other_files: Vec<String>,
    /// The result of its landing; null if it has not landed yet.
    pub landing: Option<RunDocument>,
}

/// Opens the conflict of a task, or takes the resolution back and lands it.
pub(super) fn run(args: &ResolveArgs, ui: &mut Ui) -> Outcome {
    let (task, landing) = (&args.task, &args.landing);
    let site = OpenQueue::open_to_land(&landing.scope, ui)?;
    let Some(StoredTicket { ticket, .. }) = site.store().find(&site.scope.branch, task)? else {
        return Err(site.not_queued("resolve", task));
    };
    require_target(&site, args, &ticket)?;
    let cancel = watch_signals();
    let call = LandingCall { site: &site, cancel: &cancel, args: landing };
    let mut options = call.options(ui)?;
    options.rules.only = vec![task.clone()];
    // A run that is at work lands it itself. It cannot know who made the resolution, so it needs a reviewer.
    let run_lock = match lock_run(&site) {
        Err(failure) if options.resolver.is_none() => return Err(failure),
        taken => taken.ok(),
    };
    let queue = Queue::open(&site.repository, site.scope.branch.clone(), ticket.into, clock::now)?;
    let mut reporter = OutcomeReporter::new(&site, landing.quiet);
    let mut report_event = |event: QueueEvent| reporter.report(&event, ui);
    // A run that is at work accepts only changes to conflicting files.
    let other_files =
        if landing.yes && run_lock.is_some() { OtherFiles::Approved } else { OtherFiles::Listed };
    let handover = queue
        .hand_over(task, other_files, &options, &mut report_event)
        .map_err(|error| site.explain(error, &into_option(args)))?;
    if let Handover::OtherFiles(path, others) = &handover
        && !landing.scope.json
    {
        ui.line(&path.display().to_string());
        warn_of_other_files(args, &site, run_lock.is_some(), others, ui);
        return Ok(Exit::No);
    }
    if handover != Handover::Taken || run_lock.is_none() {
        return say(task, &handover, &site, args, ui);
    }
    let report = queue.drain(&options, &mut report_event);
    report_notices(ui);
    let mut report = report?;
    end_session_after(&site, &report)?;
    // Other tickets that were set aside say nothing about this one.
    report.outcomes.retain(|(ticket, _)| ticket.task == *task);
    if !landing.scope.json {
        report_removed_folder(&site, ui);
        report_new_conflict(&site, &report, ui);
        return call.conclude(&report, ui);
    }
    let landed = Some(RunDocument::new(&site, &report));
    print(ui, &ResolveDocument { landing: landed, ..document(task, &handover) })?;
    Ok(call.exit_after(&report))
}

/// Refuses another target than the run's own branch, unless the command line names it: anyone who can write a ref can
/// write a ticket.
fn require_target(site: &OpenQueue, args: &ResolveArgs, ticket: &Ticket) -> Result<(), Failure> {
    let Ticket { task, into, .. } = ticket;
    if args.into.as_ref().unwrap_or(&site.scope.branch) == into {
        return Ok(());
    }
    let command = site.command(&format!("resolve {task} --into {into}"));
    Err(Failure::new(
        Exit::No,
        format!("'{task}' is queued for '{into}', which is not the branch that you named"),
    )
    .hint(format!("to resolve it there, run: {command}")))
}

fn say(task: &TaskId, handover: &Handover, site: &OpenQueue, args: &ResolveArgs, ui: &mut Ui) -> Outcome {
    if args.landing.scope.json {
        print(ui, &document(task, handover))?;
    } else {
        print_handover(task, handover, site, ui);
    }
    let is_open = matches!(handover, Handover::Unfinished(..) | Handover::OtherFiles(..));
    Ok(if is_open { Exit::No } else { Exit::Done })
}

fn document(task: &TaskId, handover: &Handover) -> ResolveDocument {
    let (state, path) = match handover {
        Handover::Opened(path) => ("opened", Some(path)),
        Handover::Unfinished(path, _) => ("unfinished", Some(path)),
        Handover::OtherFiles(path, _) => ("other-files", Some(path)),
        Handover::Taken => ("taken", None),
    };
    let unresolved = if let Handover::Unfinished(_, left) = handover { left.clone() } else { Vec::new() };
    let other_files =
        if let Handover::OtherFiles(_, others) = handover { others.clone() } else { Vec::new() };
    ResolveDocument {
        task: task.to_string(),
        state: state.to_owned(),
        path: path.map(|path| path.display().to_string()),
        unresolved,
        other_files,
        landing: None,
    }
}

fn print_handover(task: &TaskId, handover: &Handover, site: &OpenQueue, ui: &mut Ui) {
    match handover {
        Handover::Opened(path) => {
            ui.line(&path.display().to_string());
            ui.hint(&format!(
                "to resolve the conflict of {task}, edit the files in that worktree; for deleted or binary files, run 'git add' or 'git rm'"
            ));
            ui.hint(&format!("then run: {}", site.command(&format!("resolve {task}"))));
        }
        Handover::Unfinished(path, left) => {
            ui.line(&path.display().to_string());
            ui.warn(&plain_line(&format!("not resolved yet: {}", left.join(", "))));
            ui.hint("remove the conflict markers there, then run the same command again; for deleted or binary files, run 'git add' or 'git rm'");
        }
        // Reported before, with a hint.
        Handover::OtherFiles(..) => {}
        Handover::Taken => {
            ui.line(&format!("{task} is in the queue again"));
            ui.hint("a run is active: it lets a reviewer check the resolution, and then lands it");
            report_removed_folder(site, ui);
        }
    }
}

/// Reports changed files that do not conflict. The person may have had to change them, or another program did: only
/// they know.
fn warn_of_other_files(args: &ResolveArgs, site: &OpenQueue, may_land: bool, others: &[String], ui: &mut Ui) {
    let words = format!("these files were changed, but had no conflict: {}", others.join(", "));
    ui.warn(&plain_line(&words));
    let into = into_option(args);
    let command = site.command(&format!("resolve {}{into} --yes", args.task));
    let when = if may_land { "" } else { "when the run has ended, " };
    ui.hint(&format!("undo these changes (delete new files), or {when}land them too with: {command}"));
}

/// The option for the target as it was typed, with a space before it, or empty.
fn into_option(args: &ResolveArgs) -> String {
    args.into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default()
}

/// Reports that the resolution was taken, but conflicts with what was committed to the target meanwhile.
fn report_new_conflict(site: &OpenQueue, report: &QueueReport, ui: &mut Ui) {
    for (Ticket { task, into, resolved, .. }, outcome) in &report.outcomes {
        if matches!(outcome, TicketOutcome::Conflict { .. }) && resolved.is_some() {
            ui.warn(&format!(
                "'{into}' has changed since you opened this conflict, and your resolution conflicts with that; it is kept"
            ));
            let command = site.command(&format!("resolve {task}"));
            ui.hint(&format!("open the new conflict with: {command}"));
        }
    }
}

/// Reports that the worktree of the conflict was removed, if the user's shell is in it.
fn report_removed_folder(site: &OpenQueue, ui: &mut Ui) {
    if site.is_in_conflict {
        let main = visible(&site.repository.dir.to_string_lossy());
        ui.hint(&format!("this folder was removed; go back with: cd '{main}'"));
    }
}
