//! Shows the queue: in order, with what each ticket waits for.

use std::collections::{BTreeSet, HashSet};

use arborist_core::{
    failure::{Exit, Failure},
    history::{CommitSource, Run, RunScope},
    message::{plain_line, plain_text},
    name::TaskId,
    queue::{
        LogEntry, LoggedOutcome, OtherRun, QueueClaim, StoredTicket, Target, Ticket, TicketState,
        advice_to_unpark, arrange, waits_for,
    },
};

use super::{
    QueueScopeArgs,
    document::{LogEntryDocument, MergeLogDocument, QueueDocument},
    open::OpenQueue,
    unqueued,
};
use crate::{
    clock,
    document::print,
    entry::Outcome,
    ui::{Fit, Table, Tone, Ui},
};

/// A ticket in its position.
pub(super) struct Listed {
    pub(super) ticket: Ticket,
    /// What it waits for, apart from its turn.
    pub(super) reason: Option<String>,
    /// What to do about a ticket of another run.
    advice: Option<String>,
}

/// All tickets of a run in their order; those that are set aside come last.
pub(super) fn load(site: &OpenQueue) -> Result<Vec<Listed>, Failure> {
    let mut stored = Vec::new();
    for one in site.store().load(Some(&site.scope.branch))? {
        if !is_brought_up(site, &one.ticket)? {
            stored.push(one);
        }
    }
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let run = site.scan(CommitSource::Cached)?;
    let elsewhere = site.other_branches(&run)?;
    for one in &mut stored {
        one.ticket.update_state(&site.repository, &run, elsewhere.as_ref())?;
    }
    let mut listed = listed(stored, &run.landed_tasks());
    for Listed { ticket, advice, .. } in &mut listed {
        *advice = find_advice(site, &run, ticket)?;
    }
    for Listed { ticket, reason, advice, .. } in &mut listed {
        if matches!(ticket.state, TicketState::Parked { .. }) {
            let obstacle = Target::new(&site.repository, &ticket.into).find_obstacle()?;
            *reason = Some(ticket.reason_parked(obstacle.as_ref()));
            *advice = Some(advice_to_unpark(&ticket.into, obstacle.as_ref(), &site.command("run")));
        }
    }
    Ok(listed)
}

/// Whether a parked landing is on its branch now: the user has updated the checkout, and the next `run` will close the
/// ticket.
fn is_brought_up(site: &OpenQueue, ticket: &Ticket) -> Result<bool, Failure> {
    let TicketState::Parked { commit } = ticket.state else {
        return Ok(false);
    };
    let branch = site.repository.find_branch(&ticket.into)?;
    Ok(branch.map(|branch| site.repository.is_ancestor(commit, branch)).transpose()?.unwrap_or(false))
}

/// Lists tickets.
fn listed(stored: Vec<StoredTicket>, landed: &HashSet<TaskId>) -> Vec<Listed> {
    let tickets: Vec<Ticket> = stored.into_iter().map(|stored| stored.ticket).collect();
    let is_open = |ticket: &Ticket| ticket.state == TicketState::Waiting;
    let line = arrange(&tickets, is_open, landed, clock::now());
    let mut listed: Vec<Listed> = Vec::new();
    let mut list = |ticket: &Ticket, reason| {
        listed.push(Listed { ticket: ticket.clone(), reason, advice: None });
    };
    for at in &line.ready {
        let ticket = &tickets[*at];
        list(ticket, ticket.reason().or(ticket.resolution()));
    }
    for (at, needs) in &line.waiting {
        list(&tickets[*at], Some(waits_for(needs, &tickets)));
    }
    for ticket in tickets.iter().filter(|ticket| !is_open(ticket)) {
        list(ticket, ticket.reason());
    }
    listed
}

/// What to do about a ticket that another run completed.
pub(super) fn find_advice(site: &OpenQueue, run: &Run, ticket: &Ticket) -> Result<Option<String>, Failure> {
    if !matches!(ticket.state, TicketState::Withheld { .. }) {
        return Ok(None);
    }
    Ok(OtherRun::find(&site.repository, ticket, run)?.map(|other| other.advice(ticket)))
}

/// `merge list`.
pub(super) fn list(args: &QueueScopeArgs, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    let (listed, claims) = (load(&site)?, site.claims()?);
    if args.json {
        return print(ui, &QueueDocument::new(&site, &listed, &claims));
    }
    // The rows are for scripts, too.
    if listed.is_empty() && claims.is_empty() {
        ui.note("nothing is queued");
    }
    show(&listed, Detail::None, ui);
    claims.iter().for_each(|claim| ui.line(&drain_line(claim)));
    Ok(Exit::Done)
}

fn drain_line(claim: &QueueClaim) -> String {
    let QueueClaim { into, holder, since, .. } = claim;
    plain_text(&format!("{holder} is landing on {into} (began {})", clock::ago(*since)))
}

/// How much is shown of each ticket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    None,
    All,
}

fn cells(listed: &Listed) -> [String; 6] {
    let Listed { ticket, reason, .. } = listed;
    let cells = [
        ticket.task.to_string(),
        ticket.state.word().to_owned(),
        ticket.source.short(),
        ticket.into.to_string(),
        clock::ago(ticket.added),
        reason.clone().unwrap_or_default(),
    ];
    cells.map(|cell| plain_line(&cell))
}

/// `merge status`.
pub(super) fn status(args: &QueueScopeArgs, task: Option<&TaskId>, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    let listed = load(&site)?;
    if let Some(task) = task
        && !listed.iter().any(|listed| listed.ticket.task == *task)
    {
        return show_outcome(&site, task, args, ui);
    }
    let wanted: Vec<Listed> =
        listed.into_iter().filter(|listed| task.is_none_or(|task| listed.ticket.task == *task)).collect();
    let (limit, claims) = (limit(&site, &wanted)?, site.claims()?);
    let is_late = |listed: &&Listed| clock::now() - listed.ticket.added > limit;
    let late = wanted.iter().filter(is_late).count();
    let mut steps = BTreeSet::new();
    if !wanted.is_empty() {
        let run = site.scan(CommitSource::Cached)?;
        // The process that is landing takes whatever can land.
        let is_landing = |listed: &&Listed| {
            let is_waiting = listed.ticket.state == TicketState::Waiting && listed.ticket.held.is_none();
            is_waiting && claims.iter().any(|claim| claim.into == listed.ticket.into)
        };
        let stuck = wanted.iter().filter(|listed| !is_landing(listed));
        steps.extend(stuck.filter_map(|listed| next_step(listed, &site, &run)));
    }
    if args.json {
        print(ui, &QueueDocument::new(&site, &wanted, &claims))?;
    } else {
        show(&wanted, if task.is_some() { Detail::All } else { Detail::None }, ui);
        if wanted.is_empty() {
            ui.line("nothing is queued");
        }
        claims.iter().for_each(|claim| ui.line(&drain_line(claim)));
        if late > 0 {
            ui.warn(&format!("{late} of them waited longer than {limit} s"));
        }
        steps.iter().for_each(|step| ui.hint(step));
        if task.is_none() {
            unqueued::report(&site, ui);
        }
    }
    let is_stuck = |listed: &Listed| {
        let is_withheld = matches!(listed.ticket.state, TicketState::Withheld { .. });
        let is_elsewhere = is_withheld && listed.ticket.into != site.scope.branch;
        let is_refused =
            matches!(listed.ticket.state, TicketState::Red { .. }) || listed.ticket.waits_for_all();
        is_refused || listed.advice.is_some() || is_elsewhere
    };
    Ok(if wanted.iter().any(needs_person) {
        Exit::Person
    } else if late > 0 || wanted.iter().any(is_stuck) {
        Exit::No
    } else {
        Exit::Done
    })
}

/// Whether a person is needed.
fn needs_person(listed: &Listed) -> bool {
    let is_tried = matches!(listed.ticket.state, TicketState::Waiting | TicketState::Withheld { .. });
    let is_held = is_tried && listed.ticket.held.is_some() && !listed.ticket.waits_for_all();
    is_held
        || matches!(
            listed.ticket.state,
            TicketState::Conflict { escalated: true, .. }
                | TicketState::Parked { .. }
                | TicketState::Lost
                | TicketState::LostElsewhere { .. }
                | TicketState::Reverted(_)
        )
}

/// What a person can do about a task that was queued for another branch than that of its run.
pub(super) fn ways_of_other_target(site: &OpenQueue, ticket: &Ticket) -> Result<Vec<String>, Failure> {
    let Ticket { task, into, scope, .. } = ticket;
    let there = RunScope { branch: scope.clone(), tip: site.repository.find_branch(into)? };
    let run = Run::scan(&site.repository, there, CommitSource::Cached)?;
    let may_land = !OtherRun::find(&site.repository, ticket, &run)?.is_some_and(|other| other.is_gone);
    let there = format!("to land it on '{into}', run: {}", site.command(&format!("run --into {into}")));
    let home = format!("to land it on '{scope}' instead, run: {}", site.command(task.as_str()));
    Ok(may_land.then_some(there).into_iter().chain([home]).collect())
}

/// What a person can do about it.
fn next_step(listed: &Listed, site: &OpenQueue, run: &Run) -> Option<String> {
    let Ticket { task, into, state, .. } = &listed.ticket;
    if *into != site.scope.branch && matches!(state, TicketState::Waiting | TicketState::Withheld { .. }) {
        return ways_of_other_target(site, &listed.ticket).ok().map(|ways| ways.join("\n"));
    }
    match state {
        TicketState::Conflict { escalated: true, .. } => {
            Some(format!("resolve it with: {}", site.command(&format!("resolve {task}"))))
        }
        TicketState::Red { ran_fewer, .. } if listed.ticket.is_incomplete(run) => {
            let land = site.by_force(&listed.ticket);
            let accept = format!("or accept that fewer tests run: {land} --allow fewer-tests");
            let is_planned = site.plan(run).ok().flatten().is_some_and(|plan| plan.find(task).is_some());
            let again = || format!("or start it over: {}", site.start_over(run, task));
            let fix = format!(
                "to fix it, open its worktree: git arborist worktree add {task}{}\ncommit the fix there, then land it, although it is not complete: {land}",
                if is_planned { "" } else { " --unplanned" }
            );
            let ways = [Some(fix), ran_fewer.then_some(accept), is_planned.then(again)];
            Some(ways.into_iter().flatten().collect::<Vec<_>>().join("\n"))
        }
        TicketState::Red { with, .. } if !with.is_empty() => Some(format!(
            "to fix it, open its worktree and merge {into}: git arborist worktree add {task} && git arborist worktree run {task} -- git merge {into}\ncommit the fix there, then land it: {} && {}\nor start it over on top of what has landed: {}",
            site.command(&format!("retry {task}")),
            site.command("run"),
            site.start_over(run, task),
        )),
        TicketState::Red { .. } => Some(format!(
            "to fix it, open its worktree: git arborist worktree add {task}\ncommit the fix there, then land it: {} && {}\nor start it over: {}",
            site.command(&format!("retry {task}")),
            site.command("run"),
            site.start_over(run, task),
        )),
        TicketState::Lost | TicketState::LostElsewhere { .. } => {
            let drop = site.command(&format!("drop {task}"));
            listed.ticket.advice().map(|advice| format!("{advice}\nor remove it from the queue: {drop}"))
        }
        TicketState::Reverted(_) => listed.ticket.advice(),
        TicketState::Withheld { .. } | TicketState::Parked { .. } => listed.advice.clone(),
        TicketState::Waiting => {
            let held = listed.ticket.advice_while_held(|verb| site.command(verb));
            held.or_else(|| Some(format!("land what is waiting with: {}", site.command("run"))))
        }
        TicketState::Conflict { .. } => None,
    }
}

fn show(listed: &[Listed], detail: Detail, ui: &mut Ui) {
    let rows: Vec<[String; 6]> = listed.iter().map(cells).collect();
    let fits = [Fit::Id(20), Fit::Whole, Fit::Hash, Fit::Front(12), Fit::Whole, Fit::Below];
    let headings = ["task", "state", "commit", "into", "queued", "why"];
    let below = |at: usize| if detail == Detail::All { details(&listed[at]) } else { Vec::new() };
    let tone = |row: usize, column: usize| (column == 1).then(|| tone(&listed[row].ticket.state));
    Table::new(headings, fits).show_with(ui, &rows, tone, below);
}

fn tone(state: &TicketState) -> Tone {
    match state {
        TicketState::Waiting | TicketState::Parked { .. } => Tone::Busy,
        _ => Tone::Bad,
    }
}

fn details(listed: &Listed) -> Vec<String> {
    let mut lines = Vec::new();
    match &listed.ticket.state {
        TicketState::Conflict { conflicts, .. } => {
            for conflict in conflicts {
                lines.push(format!("  {}", plain_line(&conflict.message)));
                for (side, version) in [
                    ("base", &conflict.base),
                    (listed.ticket.into.as_str(), &conflict.ours),
                    (listed.ticket.task.as_str(), &conflict.theirs),
                ] {
                    let Some(version) = version else { continue };
                    let path = plain_line(&version.path);
                    lines.push(format!("    {side:<6} {} {} {path}", version.mode, version.id));
                }
            }
        }
        TicketState::Red { tail, .. } => {
            lines.extend(plain_text(tail).lines().map(|line| format!("  {line}")));
        }
        _ => {}
    }
    let tries = listed.ticket.tries.iter().enumerate();
    lines.extend(tries.map(|(n, tried)| format!("  attempt {}: {}", n + 1, plain_line(tried))));
    lines
}

/// Shows the outcome of a task that is no longer in the queue.
fn show_outcome(site: &OpenQueue, task: &TaskId, args: &QueueScopeArgs, ui: &mut Ui) -> Outcome {
    let entry = match site.store().find(&site.scope.branch, task)? {
        Some(StoredTicket {
            ticket: ticket @ Ticket { state: TicketState::Parked { commit }, .. }, ..
        }) => {
            let words = ticket.resolution().unwrap_or_default();
            Some(LogEntry {
                words,
                ..LogEntry::new(&ticket, LoggedOutcome::Landed, Some(commit), ticket.added)
            })
        }
        _ => entries(site, None)?.into_iter().find(|entry| entry.task == *task),
    };
    let entry = entry.ok_or_else(|| site.not_queued("status", task))?;
    if args.json {
        let entries = vec![LogEntryDocument::from(&entry)];
        return print(ui, &MergeLogDocument { entries });
    }
    match entry.outcome {
        LoggedOutcome::NotChosen => {
            let ago = clock::ago(entry.time);
            ui.line(&format!(
                "{task} was not chosen: by the policy of the run, other tasks landed instead ({ago})"
            ));
            ui.hint(&format!("to land it too, run: {}", site.command(task.as_str())));
        }
        _ => ui.line(&log_line(&entry)),
    }
    if entry.outcome == LoggedOutcome::Dropped {
        let LogEntry { scope, task, source, time, .. } = entry;
        site.queued_again(&[Ticket::new(scope, task, source, time)])?.iter().for_each(|hint| ui.hint(hint));
    }
    Ok(Exit::Done)
}

fn limit(site: &OpenQueue, listed: &[Listed]) -> Result<i64, Failure> {
    if listed.is_empty() {
        return Ok(0);
    }
    let settings = site.settings(&site.scan(CommitSource::Cached)?)?;
    Ok(i64::try_from(settings.merge.wait_limit.as_secs()).unwrap_or(i64::MAX))
}

/// The log of this run's tickets, newest first; all of it, or at most `most` entries.
pub(super) fn entries(site: &OpenQueue, most: Option<usize>) -> Result<Vec<LogEntry>, Failure> {
    let mut entries = site.store().load_logs(&site.scope.branch, most)?;
    entries.truncate(most.unwrap_or(usize::MAX));
    Ok(entries)
}

/// `merge log`.
pub(super) fn log(args: &QueueScopeArgs, most: usize, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    let entries = entries(&site, Some(most))?;
    if args.json {
        let entries = entries.iter().map(LogEntryDocument::from).collect();
        return print(ui, &MergeLogDocument { entries });
    }
    if entries.is_empty() {
        ui.note(match site.store().load(Some(&site.scope.branch))?.len() {
            0 => "nothing has been queued yet",
            _ => "no queued task has an outcome yet; see the queue with: git arborist merge status",
        });
    }
    let cells = |entry: &LogEntry| {
        let commit = entry.commit.map(|commit| commit.short()).unwrap_or_default();
        let when = clock::ago(entry.time);
        let cells = [entry.task.to_string(), outcome_word(entry).to_owned(), commit, when, more_words(entry)];
        cells.map(|cell| plain_line(&cell))
    };
    let rows: Vec<[String; 5]> = entries.iter().map(cells).collect();
    let fits = [Fit::Id(20), Fit::Whole, Fit::Hash, Fit::Whole, Fit::Below];
    Table::new(["task", "outcome", "commit", "when", "more"], fits).show(ui, &rows, |_, _| None);
    Ok(Exit::Done)
}

/// The outcome for people, in the words of `merge status`. Records and JSON tell a conflict that an agent may resolve
/// from one that needs a person.
fn outcome_word(entry: &LogEntry) -> &'static str {
    match entry.outcome {
        LoggedOutcome::Escalated => "conflict",
        LoggedOutcome::Red => "gate failed",
        outcome => outcome.as_str(),
    }
}

fn more_words(entry: &LogEntry) -> String {
    match entry.outcome {
        LoggedOutcome::Escalated => format!("{}; you must resolve it", entry.words),
        _ => entry.words.clone(),
    }
}

fn log_line(entry: &LogEntry) -> String {
    let commit = entry.commit.map(|commit| format!(" {}", commit.short())).unwrap_or_default();
    let words = more_words(entry);
    let words = if words.is_empty() { words } else { format!(": {words}") };
    let line = format!("{} {} {}{commit}{words}", clock::ago(entry.time), entry.task, outcome_word(entry));
    plain_line(&line)
}
