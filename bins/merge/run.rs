//! Drains the queue, once or repeatedly.

use std::{collections::HashSet, time::Duration};

use arborist_core::{
    agent::redact::Secrets,
    failure::{Exit, Explain, Failure},
    git::take_notices,
    history::{CommitSource, Run, State},
    message::{nearest, plain_text},
    name::{BranchName, TaskId},
    pipeline::{PipelineError, RecordedLists, RunnerFlags, RunnerTable, find_permit_mistake},
    process::{Cancel, FileLock, shell_word},
    progress::{PlanMarks, Progress},
    queue::{
        GET_BACK, Gate, LandingPolicy, Queue, QueueEvent, QueueOptions, QueueReport, StoredTicket, Ticket,
        TicketOutcome, TicketState,
    },
    run::{Continuation, lock_branch, require_given, test_approval},
    sandbox::Sandbox,
    session::{
        DraftRecord, Driver, RecordKind, RecordedOptions, SessionEnd, SessionError, SessionReader,
        SessionVerdict, SessionWriter,
    },
    settings::Origin,
    workspace::Workspace,
};
use clap::{Args, CommandFactory};

use super::{
    MergeArgs, QueueScopeArgs, add,
    document::RunDocument,
    open::OpenQueue,
    unqueued, withheld,
    words::{self, OutcomeReporter},
};
use crate::{approval, clock, document::print, entry::Outcome, gardening::watch_signals, ui::Ui};

/// The option that names the test command of a run.
const TEST_COMMAND: &str = "test-command";

/// How to land.
#[derive(Debug, Args)]
pub(crate) struct LandingArgs {
    #[command(flatten)]
    pub(super) scope: QueueScopeArgs,
    /// Approve commands and settings that come from the plan or from .arborist/. With 'merge resolve', also land
    /// changes that you made to files that had no conflict
    #[arg(long)]
    pub(super) yes: bool,
    /// Test landings with this command if no gates (checks before landing) are configured
    #[arg(long, value_name = "COMMAND")]
    test_command: Option<String>,
    /// Let agents that resolve conflicts change this path, although the setting 'protect' names it. --allow fewer-tests
    /// accepts a landing whose gates run fewer tests than before
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
    /// The sandbox of gates, set-up commands and agents: auto, landlock, bwrap or off [default: auto]
    #[arg(long, value_name = "MODE", value_parser = ["auto", "landlock", "bwrap", "off"])]
    sandbox: Option<String>,
    /// Which tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a number
    /// (at most that many)
    #[arg(long, value_name = "POLICY", default_value = "keep-clean")]
    policy: LandingPolicy,
    /// Print only the result
    #[arg(short, long)]
    pub(super) quiet: bool,
}

impl LandingArgs {
    /// The options as they are typed, each with a space before it, for a hint that repeats the command.
    fn typed(&self) -> String {
        let mut options = String::new();
        if let Some(command) = &self.test_command {
            options.push_str(&format!(" --test-command {}", shell_word(command)));
        }
        self.allow.iter().for_each(|path| options.push_str(&format!(" --allow {}", shell_word(path))));
        options.extend(self.sandbox.iter().map(|mode| format!(" --sandbox {mode}")));
        if self.policy != LandingPolicy::KeepClean {
            options.push_str(&format!(" --policy {}", self.policy));
        }
        options
    }
}

#[derive(Debug, Args)]
pub(super) struct QueueRunArgs {
    /// Land tasks that were queued for this branch [default: the branch of the run]
    #[arg(long, value_name = "BRANCH")]
    into: Option<BranchName>,
    /// Check for more tasks at this interval, until Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = crate::numbers::positive::<u64>)]
    watch: Option<u64>,
    #[command(flatten)]
    landing: LandingArgs,
}

/// A command of `merge` that lands tasks.
pub(super) struct LandingCall<'a> {
    pub(super) site: &'a OpenQueue,
    pub(super) cancel: &'a Cancel,
    pub(super) args: &'a LandingArgs,
}

/// What to land.
struct LandingRequest<'a> {
    /// Only these tasks, if any are named.
    tasks: &'a [TaskId],
    /// The target; the run's own branch if none is named.
    into: Option<&'a BranchName>,
    /// Tasks that may land although they are not complete.
    forced: &'a [TaskId],
}

/// `merge run`.
pub(super) fn run(args: &QueueRunArgs, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open_to_land(&args.landing.scope, ui)?;
    if let Some(into) = &args.into {
        site.require_target(into)?;
    }
    let cancel = watch_signals();
    let call = LandingCall { site: &site, cancel: &cancel, args: &args.landing };
    loop {
        let request = LandingRequest { tasks: &[], into: args.into.as_ref(), forced: &[] };
        let drained = call.drain(&request, ui);
        let (exit, seconds) = match (drained, args.watch) {
            (Err(failure), Some(seconds)) if failure.exit == Exit::Locked => {
                ui.warn(&format!("{}; the queue is checked again in {seconds} s", failure.message));
                (failure.exit, seconds)
            }
            (drained, Some(seconds)) => (call.conclude_run(&drained?, ui)?, seconds),
            (drained, None) => return call.conclude_run(&drained?, ui),
        };
        if cancel.wait(Duration::from_secs(seconds)) {
            return Ok(exit);
        }
    }
}

/// `merge TASK…`: queue and land now.
pub(super) fn land(add: &add::QueueAddArgs, args: &LandingArgs, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open_to_land(&args.scope, ui)?;
    let typed = add::Typed { verb: "merge", options: args.typed() };
    let added = add::enqueue(&site, add, &typed).map_err(|failure| match add.tasks.as_slice() {
        [one] if failure.exit == Exit::No => with_verb(failure, one),
        _ => failure,
    })?;
    let is_settled = |added: &add::Added| {
        matches!(added, add::Added::Landed(..) | add::Added::InPlace(..) | add::Added::MergedByHand(..))
    };
    let reset: Vec<&TaskId> = added.iter().filter_map(add::Added::find_reset).collect();
    if added.iter().all(is_settled) && !args.scope.json {
        added.iter().for_each(|added| ui.line(&add::sentence(added)));
        if !reset.is_empty() {
            let run = site.scan(CommitSource::Cached)?;
            reset.iter().for_each(|task| advise_unfinished(&site.continuation(&run), task, ui));
        }
        return Ok(Exit::Done);
    }
    for added in &added {
        if !args.quiet {
            ui.err(&format!("{}\n", add::sentence(added)));
        }
    }
    let forced: &[TaskId] = if add.force { &add.tasks } else { &[] };
    let unfinished = unfinished(&site, forced)?;
    let request = LandingRequest { tasks: &add.tasks, into: add.into.as_ref(), forced };
    let cancel = watch_signals();
    let call = LandingCall { site: &site, cancel: &cancel, args };
    let mut report = call.drain(&request, ui)?;
    report.outcomes.retain(|(ticket, _)| add.tasks.contains(&ticket.task));
    let exit = call.conclude(&report, ui)?;
    if unfinished.is_empty() {
        return Ok(exit);
    }
    let run = site.scan(CommitSource::Cached)?;
    let plan = site.plan(&run)?;
    let continuation = site.continuation(&run);
    for (ticket, outcome) in &report.outcomes {
        if unfinished.contains(&&ticket.task) && matches!(outcome, TicketOutcome::Landed { .. }) {
            let task = &ticket.task;
            if plan.as_ref().is_some_and(|plan| plan.find(task).is_none()) {
                ui.note(&format!("'{task}' is not in the plan, so nothing is left to do"));
                continue;
            }
            ui.warn(&format!(
                "'{task}' has landed, but it is not complete, because no review has approved it"
            ));
            advise_unfinished(&continuation, task, ui);
        }
    }
    reset.iter().for_each(|task| advise_unfinished(&continuation, task, ui));
    Ok(exit)
}

/// What can be done about a task whose work has landed and that does not count as done.
fn advise_unfinished(continuation: &Continuation<'_>, task: &TaskId, ui: &mut Ui) {
    continuation.accept_by_plan(&[task]).iter().for_each(|hint| ui.hint(hint));
    ui.hint(&format!("or let an agent do it: {}", continuation.run_task(task)));
}

/// The tasks that are not complete. Landing them by force does not change that.
fn unfinished<'a>(site: &OpenQueue, tasks: &'a [TaskId]) -> Result<Vec<&'a TaskId>, Failure> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let run = site.scan(CommitSource::Cached)?;
    let is_complete = |task: &TaskId| run.state_of(task) == State::Complete;
    Ok(tasks.iter().filter(|task| !is_complete(task)).collect())
}

/// Adds a suggestion if the name of an unknown task may be a mistyped verb.
fn with_verb(failure: Failure, word: &TaskId) -> Failure {
    let verbs = MergeArgs::command();
    let names: Vec<&str> = verbs.get_subcommands().map(clap::Command::get_name).collect();
    match nearest(word.as_str(), names) {
        Some(meant) => Failure::new(failure.exit, failure.message)
            .hint(format!("did you mean 'git arborist merge {meant}'?")),
        None => failure,
    }
}

impl LandingCall<'_> {
    /// Drains the queue of the target: the run's own branch, or the one that the command line names. Tickets do not choose
    /// it, because anyone who can write a ref can write a ticket. A run in the checkout of its branch must not be
    /// disturbed.
    fn drain(&self, request: &LandingRequest<'_>, ui: &mut Ui) -> Result<QueueReport, Failure> {
        let Self { site, args, .. } = *self;
        let scope = &site.scope.branch;
        let _lock = lock_run(site)?;
        let target = request.into.unwrap_or(scope);
        let is_wanted =
            |stored: &StoredTicket| request.tasks.is_empty() || request.tasks.contains(&stored.ticket.task);
        let tickets = site.store().load(Some(scope))?.into_iter().filter(is_wanted);
        let (here, elsewhere): (Vec<StoredTicket>, Vec<StoredTicket>) =
            tickets.partition(|stored| stored.ticket.into == *target);
        let mut options = self.options(ui)?;
        options.rules.policy = args.policy;
        options.rules.only = request.tasks.to_vec();
        options.forced = request.forced.iter().cloned().collect();
        let mut all = QueueReport::default();
        if request.into.is_none() {
            all.outcomes = withheld::withhold(site, &elsewhere, ui)?;
        }
        if !here.is_empty() {
            let queue = Queue::open(&site.repository, scope.clone(), target.clone(), clock::now)?;
            let mut reporter = OutcomeReporter::new(site, args.quiet);
            let report = queue.drain(&options, &mut |event| {
                let is_open = matches!(&event, QueueEvent::Settled { outcome, .. }
                    if matches!(**outcome, TicketOutcome::Conflict { escalated: false, .. }));
                // It is escalated soon, and reported then.
                if !(is_open && options.leaves_conflicts()) {
                    reporter.report(&event, ui);
                }
            });
            report_notices(ui);
            let report = report?;
            let is_open = |outcome: &TicketOutcome| {
                options.leaves_conflicts()
                    && matches!(outcome, TicketOutcome::Conflict { escalated: false, .. })
            };
            // The drain ended before it escalated these.
            for (ticket, outcome) in report.outcomes.iter().filter(|(_, outcome)| is_open(outcome)) {
                if !args.quiet && !reporter.has_settled(&ticket.task) {
                    ui.err(&format!("{}\n", words::sentence(ticket, outcome)));
                }
            }
            let is_old = |(ticket, outcome): &&(Ticket, TicketOutcome)| {
                matches!(outcome, TicketOutcome::Conflict { escalated: true, .. })
                    && !reporter.has_settled(&ticket.task)
            };
            // Nothing was reported about conflicts that were known before.
            for (ticket, _) in report.outcomes.iter().filter(is_old).filter(|_| !args.quiet) {
                let task = &ticket.task;
                let command = site.command(&format!("resolve {task}"));
                ui.hint(&format!("resolve the conflict of {task} with: {command}"));
            }
            withheld::report(site, &report, ui)?;
            all.join(report);
        }
        end_session_after(site, &all)?;
        Ok(all)
    }

    /// The options of this run, after the user has approved all commands.
    pub(super) fn options(&self, ui: &mut Ui) -> Result<QueueOptions, Failure> {
        let Self { site, cancel, args } = *self;
        let (run, unrecorded) = site.scan_with_unrecorded(CommitSource::Fresh)?;
        site.refuse_changed_settings(&run)?;
        let secrets = Secrets::of_environment(std::env::vars_os())?;
        let mut settings = site.settings(&run)?;
        if let Some(mode) = &args.sandbox {
            settings.set_sandbox_mode(mode)?;
        }
        let workspace = Workspace::load(&site.repository, &settings, cancel)?;
        let sandbox = Sandbox::new(&settings);
        let runners = RunnerTable::new(&RunnerFlags::default(), &settings);
        let uses = runners.list_sandbox_uses();
        sandbox.require_supported(&uses)?;
        let git_dirs = [site.repository.git_dir.as_path(), &site.repository.common_dir];
        sandbox.require_closed(&workspace.paths(), &git_dirs, &uses)?;
        let mut options = QueueOptions::new(&runners, secrets, cancel, clock::now)?;
        let recorded = find_recorded_options(site, &run)?;
        if let Some(command) = args.test_command.as_ref().or_else(|| given_before(site, &recorded)) {
            options = options.with_test_command(Some(command), Origin::User);
        }
        if let Some(mistake) = args.allow.iter().find_map(|path| find_permit_mistake(path)) {
            return Err(Failure::new(Exit::No, format!("'--allow': {mistake}")));
        }
        options.protection = options.protection.with_allowed(&args.allow);
        if let Some(start) = &run.start
            && let Some(recorded) = RecordedLists::of_run(&site.repository, start)?.last()
        {
            options.protection = options.protection.with_recorded(recorded);
        }
        options.worktrees.repo = Some(workspace.main().name.clone());
        options.worktrees.session = run.start.as_ref().map(|start| start.session.clone());
        options.sections.clone_from(&workspace.sections);
        if let Some(plan) = site.plan(&run)? {
            options = options.with_plan(&plan, &workspace.sections);
        }
        unrecorded.into_iter().for_each(|task| options.memory.distrusted.add(task));
        let tickets = site.store().load(Some(&site.scope.branch))?;
        // Tickets are read again when they land. Phases that they name only then were not approved, and are not run.
        let named = phases_of(&options, &tickets, &run);
        options.plan.phases.retain(|phase, _| named.contains(phase));
        let mut own: Vec<Gate> = options.plan.phases.values().flatten().cloned().collect();
        own.extend(tickets.iter().flat_map(|stored| options.tests_of(&stored.ticket.task)));
        warn_of_untested(site, &recorded, &options, &tickets, ui)?;
        let mut commands = options.commands_to_approve();
        let foreign = own.iter().filter(|gate| gate.foreign);
        commands.extend(foreign.map(|gate| format!("test: {}", gate.command)));
        if !options.plan.task_repos.is_empty() {
            commands.extend(workspace.required_approvals());
        }
        if own.iter().chain(&options.gates).any(|gate| options.is_tool(gate)) {
            commands.extend(workspace.required_approvals());
            commands.extend(workspace.tool_commands_to_approve());
        }
        approval::require(&site.repository, &commands, approval::consent(args.yes), ui)?;
        Ok(options)
    }

    /// Like [`Self::conclude`], for a drain of all tickets: finished tasks that are not queued are reported as well.
    fn conclude_run(&self, report: &QueueReport, ui: &mut Ui) -> Outcome {
        let exit = self.conclude(report, ui)?;
        if !self.args.scope.json && !report.is_stopped {
            unqueued::report(self.site, ui);
        }
        Ok(exit)
    }

    /// Prints the result of a drain, and what a person can do about it.
    pub(super) fn conclude(&self, report: &QueueReport, ui: &mut Ui) -> Outcome {
        let Self { site, args, .. } = *self;
        if args.scope.json {
            print(ui, &RunDocument::new(site, report))?;
        } else {
            ui.line(&words::summary(report));
        }
        if let Some(parking) = &report.parking {
            ui.warn(&plain_text(&format!(
                "a landing is parked (merged, but the checkout is not updated): {}",
                parking.why
            )));
            let run = site.command("run");
            if let Some(advice) =
                parking.obstacle.as_ref().and_then(|obstacle| obstacle.advice_to_finish(&run))
            {
                advice.lines().for_each(|line| ui.hint(line));
            } else {
                ui.hint(&format!("to land it, run: {}", parking.way.command()));
            }
            if parking.way.get_back().is_some() {
                ui.hint(GET_BACK);
                ui.hint(&format!("or commit your changes, then run: {run}"));
            }
        }
        for (ticket, outcome) in &report.outcomes {
            if let Some(trouble) = ticket.trouble() {
                ui.warn(&plain_text(&format!("'{}' is {}: {trouble}", ticket.task, ticket.state.as_str())));
            }
            ticket.advice().iter().for_each(|advice| ui.hint(advice));
            if matches!((&ticket.state, outcome), (TicketState::Red { .. }, TicketOutcome::Waiting { .. })) {
                let is_incomplete = ticket.is_incomplete(&site.scan(CommitSource::Cached)?);
                let again = match is_incomplete {
                    true => site.by_force(ticket),
                    false => site.command(&format!("retry {}", ticket.task)),
                };
                ui.hint(&format!("{} failed a gate; after a fix, run: {again}", ticket.task));
            }
        }
        Ok(self.exit_after(report))
    }

    /// The exit code after a drain.
    pub(super) fn exit_after(&self, report: &QueueReport) -> Exit {
        if report.is_stopped { PipelineError::stopped(self.cancel).exit() } else { exit_of(report) }
    }
}

/// Reports refs of the user that were deleted or moved while gates and resolvers ran, and where they are saved.
pub(super) fn report_notices(ui: &mut Ui) {
    take_notices().iter().for_each(|words| ui.warn(&plain_text(words)));
}

/// Takes the run's lock, so that no run works in the checkout of its branch meanwhile.
pub(super) fn lock_run(site: &OpenQueue) -> Result<FileLock, Failure> {
    lock_branch(&site.repository, &site.scope.branch, "git arborist merge", None)
}

/// Ends the session if its last task has just landed.
pub(super) fn end_session_after(site: &OpenQueue, report: &QueueReport) -> Result<(), Failure> {
    let has_landed =
        report.outcomes.iter().any(|(_, outcome)| matches!(outcome, TicketOutcome::Landed { .. }));
    if report.parking.is_none() && has_landed { end_session(site) } else { Ok(()) }
}

/// Ends a paused session whose tasks have all landed.
fn end_session(site: &OpenQueue) -> Result<(), Failure> {
    let run = site.scan(CommitSource::Fresh)?;
    let (Some(start), Some(plan)) = (&run.start, site.plan(&run)?) else { return Ok(()) };
    let progress = Progress::new(Some(&plan), &run, PlanMarks::Count);
    if !progress.is_done() {
        return Ok(());
    }
    let Some(session_writer) = SessionWriter::find(&site.repository, &start.session)? else { return Ok(()) };
    let newest = session_writer.newest().record;
    if !matches!(newest.kind, RecordKind::Pause(_)) || newest.context.driver != Driver::Run {
        return Ok(());
    }
    let total = progress.share().total;
    let words = format!("{total} of {total} tasks are done");
    let end = RecordKind::End(SessionEnd { result: SessionVerdict::Complete, words });
    let tip = site.repository.require_commit(&site.scope.branch.to_ref())?;
    session_writer.append(clock::now(), |_| Ok::<_, SessionError>(DraftRecord::at(tip, end.clone())))?;
    Ok(())
}

/// The phases whose tests may gate queued tickets: those that tickets name, and those that are complete once all of
/// them have landed.
fn phases_of(options: &QueueOptions, tickets: &[StoredTicket], run: &Run) -> HashSet<TaskId> {
    let is_done =
        |task: &TaskId| tickets.iter().any(|other| other.ticket.task == *task) || run.has_landed(task);
    let completed = |stored: &StoredTicket| options.phases_completed(&stored.ticket.task, is_done);
    tickets.iter().flat_map(|stored| [stored.ticket.phases.clone(), completed(stored)].concat()).collect()
}

/// The recorded options of the run.
fn find_recorded_options(site: &OpenQueue, run: &Run) -> Result<RecordedOptions, Failure> {
    let session_reader = SessionReader::new(&site.repository);
    let newest = run.start.as_ref().map(|start| session_reader.newest(&start.session)).transpose()?.flatten();
    Ok(newest.map(|newest| session_reader.recorded_options_of(&newest)).transpose()?.unwrap_or_default())
}

/// The recorded test command, if the user gave it in this repository: any process can write the record of a session.
fn given_before<'a>(site: &OpenQueue, recorded: &'a RecordedOptions) -> Option<&'a String> {
    let is_given = |command: &&String| {
        require_given(&site.repository, Some(&test_approval(&site.repository, command))).is_ok()
    };
    recorded.options.get(TEST_COMMAND).filter(is_given)
}

/// Warns about landings without a gate.
fn warn_of_untested(
    site: &OpenQueue,
    recorded: &RecordedOptions,
    options: &QueueOptions,
    tickets: &[StoredTicket],
    ui: &mut Ui,
) -> Result<(), Failure> {
    let has_test = |stored: &StoredTicket| {
        !stored.ticket.phases.is_empty() || !options.tests_of(&stored.ticket.task).is_empty()
    };
    if !options.gates.is_empty() || tickets.iter().all(has_test) {
        return Ok(());
    }
    let is_withheld = recorded.withheld.iter().any(|withheld| withheld == TEST_COMMAND);
    if is_withheld || recorded.options.contains_key(TEST_COMMAND) {
        let words =
            "the test command of this run was given on the command line; to land its tasks, give it again";
        return Err(Failure::new(Exit::No, words).hint(format!(
            "{} --test-command <command>, or set test-command in .arborist/config.toml",
            site.command("run")
        )));
    }
    ui.warn("landings are not tested, because there is no gate and no test command");
    ui.hint("give one with --test-command, or set test-command in .arborist/config.toml");
    Ok(())
}

fn exit_of(report: &QueueReport) -> Exit {
    let needs_person = |outcome: &TicketOutcome| {
        matches!(
            outcome,
            TicketOutcome::Conflict { escalated: true, .. }
                | TicketOutcome::Parked { .. }
                | TicketOutcome::Blocked { .. }
                | TicketOutcome::Broken { .. }
                | TicketOutcome::FailsOnTarget { .. }
                | TicketOutcome::Lost
                | TicketOutcome::Reverted(_)
        )
    };
    let is_settled = |outcome: &TicketOutcome| {
        matches!(
            outcome,
            TicketOutcome::Landed { .. } | TicketOutcome::NoChange | TicketOutcome::NotChosen { .. }
        )
    };
    if report.parking.is_some() || report.outcomes.iter().any(|(_, outcome)| needs_person(outcome)) {
        Exit::Person
    } else if report.outcomes.iter().all(|(_, outcome)| is_settled(outcome)) {
        Exit::Done
    } else {
        Exit::No
    }
}
