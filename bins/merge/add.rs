//! Queues a finished task's branch as a ticket.

use std::collections::HashSet;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{GardenerError, find_lost_branches},
    git::Merge,
    history::{CommitSource, HandMerge, Run, RunScope, State},
    message::Status,
    name::{BranchName, Oid, TaskId},
    plan::{Plan, Task},
    process::{FileLock, shell_word},
    progress::{PlanMarks, Progress},
    queue::{LaterCommits, OtherRun, Priority, StoredTicket, Ticket, TicketState},
};
use clap::Args;

use super::{QueueScopeArgs, document, open::OpenQueue};
use crate::{active_work::ActiveWork, clock, entry::Outcome, scope, ui::Ui};

/// What is to be queued.
#[derive(Debug, Args)]
pub(crate) struct QueueAddArgs {
    /// Ids of the tasks to land, such as T001
    #[arg(value_name = "TASK", required = true)]
    pub(super) tasks: Vec<TaskId>,
    /// Land on this branch, the target [default: the branch of the run]
    #[arg(long, value_name = "BRANCH")]
    pub(super) into: Option<BranchName>,
    /// Priority from 0 (first) to 9 (last) [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::digit)]
    priority: Option<u8>,
    /// Accept tasks that are not complete, if they have a branch
    #[arg(long)]
    pub(super) force: bool,
}

/// The command with which tasks are queued, for hints that propose it again.
pub(super) struct Typed<'a> {
    /// `merge` or `merge add`.
    pub(super) verb: &'a str,
    /// Options of the landing, each with a space before it.
    pub(super) options: String,
}

/// The result of queueing a task.
pub(super) enum Added {
    /// It is queued now.
    Queued(Box<Ticket>),
    /// It was queued already.
    Known(Box<Ticket>),
    /// It has landed. If it was reset since, this is the landing from before.
    Landed(TaskId, Option<Oid>),
    /// It was done on the run's own branch.
    InPlace(TaskId, BranchName),
    /// A person merged it into this branch.
    MergedByHand(TaskId, BranchName, HandMerge),
}

impl Added {
    /// The task, if it was reset after it had landed.
    pub(super) fn find_reset(&self) -> Option<&TaskId> {
        if let Self::Landed(task, Some(_)) = self { Some(task) } else { None }
    }
}

/// Runs the verb.
pub(super) fn run(args: &QueueAddArgs, scope: &QueueScopeArgs, ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open_to_land(scope, ui)?;
    let added = enqueue(&site, args, &Typed { verb: "merge add", options: String::new() })?;
    if scope.json {
        return document::print_queue(&site, ui);
    }
    let run = site.scan(CommitSource::Cached)?;
    for added in &added {
        ui.line(&sentence(added));
        if let Added::Queued(ticket) | Added::Known(ticket) = added
            && ticket.is_incomplete(&run)
        {
            ui.hint(&hint_by_force(&site, ticket));
        }
    }
    Ok(Exit::Done)
}

/// The hint for a queued task that is not complete. A queue entry does not carry `--force`, because any process can write
/// one.
pub(super) fn hint_by_force(site: &OpenQueue, ticket: &Ticket) -> String {
    let task = &ticket.task;
    let run = site.command("run");
    format!(
        "{task} is not complete, so '{run}' does not land it; to land it anyway, run: {}",
        site.by_force(ticket)
    )
}

/// A sentence about the result.
pub(super) fn sentence(added: &Added) -> String {
    match added {
        Added::Queued(ticket) => format!("{} is queued for {}", ticket.task, ticket.into),
        Added::Known(ticket) => {
            let more = match &ticket.state {
                TicketState::Waiting => " and waiting",
                TicketState::Red { .. } => "; it failed a gate",
                TicketState::Parked { .. } => "; its landing is parked",
                TicketState::Withheld { .. } => "",
                TicketState::Lost | TicketState::LostElsewhere { .. } => "; its branch is lost",
                TicketState::Reverted(_) => "; it was merged and reverted",
                TicketState::Conflict { .. } => ", but has a conflict that you have to resolve",
            };
            format!("{} is already queued{more}", ticket.task)
        }
        Added::Landed(task, None) => format!("{task} has already landed"),
        Added::Landed(task, Some(commit)) => {
            format!("{task} has already landed, as {}, and was reset after that", commit.short())
        }
        Added::InPlace(task, branch) => {
            format!("{task} was done on {branch} itself, so there is nothing to land")
        }
        Added::MergedByHand(task, branch, hand_merge) => {
            let merge = hand_merge.merge.short();
            let more = hand_merge.taken_back_words().map(|words| format!("; {words}")).unwrap_or_default();
            format!("{task} was merged into {branch} by {merge}, so there is nothing to land{more}")
        }
    }
}

/// Queues all of them, or none.
pub(super) fn enqueue(
    site: &OpenQueue,
    args: &QueueAddArgs,
    typed: &Typed<'_>,
) -> Result<Vec<Added>, Failure> {
    let run = site.scan(CommitSource::Fresh)?;
    let plan = site.plan(&run)?;
    let into = args.into.clone().unwrap_or_else(|| site.scope.branch.clone());
    site.require_target(&into)?;
    let known = site.store().load(Some(&site.scope.branch))?;
    let ticket_maker = TicketMaker { site, args, typed, run: &run, plan: plan.as_ref(), into };
    let mut added = Vec::new();
    let mut writes: Vec<(Option<&StoredTicket>, Ticket)> = Vec::new();
    for task in unique(&args.tasks) {
        let old = known.iter().find(|stored| stored.ticket.task == *task);
        let one = ticket_maker.enqueue(task, old.map(|old| &old.ticket))?;
        if let Added::Queued(ticket) = &one {
            writes.push((old, Ticket::clone(ticket)));
        }
        added.push(one);
    }
    site.store().write(&writes)?;
    Ok(added)
}

fn commits(count: u64) -> String {
    if count == 1 { "1 commit".to_owned() } else { format!("{count} commits") }
}

/// Removes duplicates.
pub(super) fn unique(tasks: &[TaskId]) -> Vec<&TaskId> {
    let mut seen = HashSet::new();
    tasks.iter().filter(|task| seen.insert(*task)).collect()
}

/// Creates tickets.
struct TicketMaker<'a> {
    site: &'a OpenQueue,
    args: &'a QueueAddArgs,
    typed: &'a Typed<'a>,
    run: &'a Run,
    plan: Option<&'a Plan>,
    into: BranchName,
}

impl TicketMaker<'_> {
    fn enqueue(&self, task: &TaskId, old: Option<&Ticket>) -> Result<Added, Failure> {
        let history = self.run.find(task);
        let state = self.run.state_of(task);
        let is_own = self.into == self.site.scope.branch;
        if let Some(reverted) = history.and_then(|history| history.reverted.as_ref()).filter(|_| is_own) {
            let words = format!("'{task}' was {}", reverted.words());
            return Err(Failure::new(Exit::Person, words).hint(reverted.advice(task)));
        }
        if let Some(history) = history.filter(|history| is_own && history.is_landed)
            && state == State::Complete
        {
            // A parked landing is not on the target yet, so the target lacks the commits of the branch.
            if let Some(old) = old.filter(|old| matches!(old.state, TicketState::Parked { .. }))
                && old.into == self.into
                && self.site.repository.find_branch(&old.branch())? == Some(old.source)
            {
                return Ok(Added::Known(Box::new(old.clone())));
            }
            self.refuse_later_commits(task)?;
            self.refuse_later_commits_elsewhere(task)?;
            let is_merged = history.last().is_some_and(|event| event.status() == Status::Merge);
            let (task, branch) = (task.clone(), self.into.clone());
            return Ok(match &history.merged_by_hand {
                _ if is_merged => Added::Landed(task, None),
                Some(hand_merge) => Added::MergedByHand(task, branch, hand_merge.clone()),
                None => Added::InPlace(task, branch),
            });
        }
        if state != State::Complete {
            self.refuse_at_work(task)?;
        }
        let branch = self.site.scope.branch.task_branch(task);
        let source = self.site.repository.find_branch(&branch)?.ok_or_else(|| {
            if let Some(old) = old {
                let lost = Ticket { state: TicketState::Lost, ..old.clone() };
                let why = lost.trouble().unwrap_or_default();
                let failure = Failure::new(Exit::Person, format!("'{task}' is lost: {why}"));
                return failure.hint(lost.advice().unwrap_or_default());
            }
            self.without_branch(task)
        })?;
        // The branch of a task that was reset may still be the one that landed before.
        let landed = history.filter(|_| is_own).and_then(|history| history.find_landing(source));
        if state != State::Complete && !self.args.force {
            return Err(self.incomplete(task, state, landed));
        }
        if let Some(landed) = landed.filter(|_| state != State::Complete) {
            return Ok(Added::Landed(task.clone(), Some(landed)));
        }
        let priority = self.args.priority.map_or(Priority::USUAL, Priority);
        if let Some(old) = old
            && old.source == source
            && old.into == self.into
            && self.args.priority.is_none_or(|_| priority == old.priority)
        {
            // What failed a gate is tried again: 'merge retry' would only queue it, and 'merge run' does not land it.
            let is_tried_again = self.args.force
                && state != State::Complete
                && match old.state {
                    TicketState::Red { .. } => true,
                    TicketState::Waiting | TicketState::Withheld { .. } => !old.forced,
                    _ => false,
                };
            if is_tried_again {
                let state = TicketState::Waiting;
                let again = Ticket { state, forced: true, tries: Vec::new(), ..old.clone() };
                return Ok(Added::Queued(Box::new(again)));
            }
            return Ok(Added::Known(Box::new(old.clone())));
        }
        let ticket = self.ticket(task, source, priority);
        if !is_own && !self.args.force {
            self.refuse_unrelated_target(&ticket)?;
        }
        Ok(Added::Queued(Box::new(ticket)))
    }

    /// Whether the run has started the task, or its plan has it.
    fn is_known(&self, task: &TaskId) -> bool {
        self.run.find(task).is_some() || self.plan.is_some_and(|plan| plan.find(task).is_some())
    }

    /// Refuses a task that is not complete while a run is active. The run may be working on it, and lands it itself.
    fn refuse_at_work(&self, task: &TaskId) -> Result<(), Failure> {
        let (repository, branch) = (&self.site.repository, &self.site.scope.branch);
        let Err(source) = FileLock::require_free(&repository.run_lock(branch)) else {
            return Ok(());
        };
        if source.is_landing() {
            return Ok(());
        }
        let words = match ActiveWork::find(repository, branch, &[]).step_of(task) {
            Some(state) => format!("the run of '{branch}' is working on '{task}' ({state})"),
            None if !self.is_known(task) => return Ok(()),
            None => format!("'{task}' is not complete, and a run of '{branch}' is active"),
        };
        let hint = format!("wait until the run ends, then see the task with: git arborist state {task}");
        Err(Failure::new(Exit::Locked, words).hint(hint))
    }

    /// Refuses a target that does not have the commit from which the task started: the landing would bring the run along.
    fn refuse_unrelated_target(&self, ticket: &Ticket) -> Result<(), Failure> {
        let Ticket { task, into, scope, .. } = ticket;
        let repository = &self.site.repository;
        let there = RunScope { branch: scope.clone(), tip: repository.find_branch(into)? };
        let run = Run::scan(repository, there, CommitSource::Cached)?;
        let Some(other) = OtherRun::find(repository, ticket, &run)?.filter(|other| other.is_gone) else {
            return Ok(());
        };
        let base = other.base.short();
        let words =
            format!("'{task}' cannot land on '{into}', which lacks the commit that it started from ({base})");
        Err(Failure::new(Exit::No, words)
            .hint(format!("to land it on '{scope}', run: {}", self.site.command(task.as_str())))
            .hint(format!("or merge '{scope}' into '{into}' first: git switch {into} && git merge {scope}")))
    }

    /// The error for a task that is not complete. If its branch has landed before, it cannot be queued by force either.
    fn incomplete(&self, task: &TaskId, state: State, landed: Option<Oid>) -> Failure {
        let option = self.site.scope_option();
        let see = format!("see why with: git arborist state {task}{option}");
        let is_reset = self.run.find(task).is_some_and(|history| history.state.commit.is_some());
        // No run can do it.
        let is_unplanned = self.is_unplanned(task);
        let (why, next) = match state {
            State::Pending if is_unplanned && !is_reset => {
                (format!("'{task}' is not in the plan, so no run completes it"), None)
            }
            State::Pending => {
                let did = if is_reset { "has been reset and has not run again" } else { "has not run yet" };
                let first = || (format!("'{task}' {did}"), self.run_first(task, ""));
                let (words, next) = self.find_waiting(task).unwrap_or_else(first);
                (words, Some(next).filter(|_| !is_unplanned))
            }
            State::Failed => (format!("'{task}' has failed, so it cannot land"), Some(see)),
            _ => (format!("'{task}' is not complete, so it cannot land"), Some(see)),
        };
        let mut failure = Failure::new(Exit::No, why);
        failure.hints.extend(next);
        if landed.is_none() && !self.has_changes(task) && is_unplanned && !is_reset {
            let open = format!("git arborist worktree add --unplanned {task}{option}");
            return failure
                .hint(format!("it has no changes; to commit some, open its worktree: {open}"))
                .hint(format!("then land it: {}", self.by_force()));
        }
        if landed.is_some() || !self.has_changes(task) {
            return failure;
        }
        let or = if failure.hints.is_empty() { "" } else { "or " };
        let land = if self.typed.verb == "merge add" { "queue" } else { "land" };
        failure.hint(format!(
            "{or}{land} it although it is not complete, if the gates pass: {}",
            self.by_force()
        ))
    }

    /// Whether the plan lacks a task: the frozen one, or before the first run the one in this checkout.
    fn is_unplanned(&self, task: &TaskId) -> bool {
        match self.plan {
            Some(plan) => plan.find(task).is_none(),
            None if self.run.start.is_some() => false,
            None => self
                .site
                .settings(self.run)
                .is_ok_and(|settings| scope::not_in_plan(&self.site.repository, &settings, task).is_some()),
        }
    }

    /// Whether the branch of a task has changes that the target lacks. If that cannot be read, it may have some.
    fn has_changes(&self, task: &TaskId) -> bool {
        let repository = &self.site.repository;
        let adds = |source: Oid, into: Oid| -> Option<bool> {
            let merged = repository.merge(into, source).ok()?;
            Some(merged != Merge::Clean(repository.tree_of(into).ok()?))
        };
        let find = |branch: &BranchName| repository.find_branch(branch).ok().flatten();
        let source = find(&self.site.scope.branch.task_branch(task));
        source.zip(find(&self.into)).and_then(|(source, into)| adds(source, into)).unwrap_or(true)
    }

    /// The same command with `--force`.
    fn by_force(&self) -> String {
        let tasks: Vec<&str> = unique(&self.args.tasks).into_iter().map(TaskId::as_str).collect();
        let into = self.args.into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default();
        let priority = self.args.priority.map(|number| format!(" --priority {number}")).unwrap_or_default();
        let Typed { verb, options } = self.typed;
        let scope = self.site.scope_option();
        format!("git arborist {verb} {}{into}{priority}{options} --force{scope}", tasks.join(" "))
    }

    /// The error for a task without a branch: it is lost, it has not run in a worktree, or its name is wrong.
    fn without_branch(&self, task: &TaskId) -> Failure {
        let lost = find_lost_branches(&self.site.repository, &self.site.scope.branch).unwrap_or_default();
        if let Some(lost) = lost.into_iter().find(|lost| lost.task == *task) {
            return GardenerError::Lost(lost).into();
        }
        if self.is_known(task) {
            let state = self.run.state_of(task);
            if state == State::Complete {
                return self.without_own_branch(task);
            }
            let has_failed = state == State::Failed;
            let retry = if has_failed { " --retry-failed" } else { "" };
            let words = format!("'{task}' has not run in its own worktree, so there is nothing to land");
            let (why, hint) =
                self.find_waiting(task).unwrap_or_else(|| (words.clone(), self.run_first(task, retry)));
            let words = if self.args.force { words } else { why };
            return Failure::new(Exit::No, words).hint(hint);
        }
        if self.run.start.is_none() {
            let settings = self.site.settings(self.run).ok();
            let unknown =
                settings.and_then(|settings| scope::not_in_plan(&self.site.repository, &settings, task));
            if let Some(unknown) = unknown {
                return unknown;
            }
            let words = format!("'{task}' has not run yet, because '{}' has no run", self.run.scope.branch);
            let has_it = |other: &&BranchName| {
                matches!(self.site.repository.find_branch(&other.task_branch(task)), Ok(Some(_)))
            };
            if let Some(other) = self.run.others.iter().find(has_it) {
                let verb = self.typed.verb;
                let hint = format!("the run of '{other}' has it: git arborist {verb} {task} --scope {other}");
                return Failure::new(Exit::No, words).hint(hint);
            }
            return Failure::new(Exit::No, words).hint(self.site.hint_without_run(self.run, task));
        }
        if let Some(failure) = scope::added_later(&self.site.repository, self.run, task) {
            return failure;
        }
        let settings = self.site.settings(self.run).ok();
        if settings.is_some_and(|settings| {
            scope::is_of_another_plan(&self.site.repository, &settings, self.run, task)
        }) {
            let words = format!("'{task}' has not run yet, so there is nothing to land");
            return Failure::new(Exit::No, words).hint(format!("run it with: git arborist garden {task}"));
        }
        let failure = Failure::new(Exit::No, format!("there is no task '{task}'"));
        let planned = self.plan.into_iter().flat_map(Plan::leaves).map(|leaf| leaf.id.as_str());
        let known = planned.chain(self.run.tasks.iter().map(|history| history.id.as_str()));
        let all = format!("see all tasks with: git arborist state{}", self.site.scope_option());
        failure.hint(scope::hint_nearest(task.as_str(), known, all))
    }

    /// The error for a complete task that was done on the run's own branch.
    fn without_own_branch(&self, task: &TaskId) -> Failure {
        let (own, into) = (&self.site.scope.branch, &self.into);
        let words =
            format!("'{task}' was done on '{own}' itself, so it has no branch that could land on '{into}'");
        Failure::new(Exit::No, words)
            .hint(format!("merge '{own}' into '{into}': git switch {into} && git merge {own}"))
    }

    /// The hint for a task that has to run before it can land.
    fn run_first(&self, task: &TaskId, options: &str) -> String {
        format!("run it first: {}", self.site.continuation(self.run).run_in_lane(task, options))
    }

    /// The error and the hint for a task that has not run because it waits for others, which have to run before.
    fn find_waiting(&self, task: &TaskId) -> Option<(String, String)> {
        let progress = Progress::new(Some(self.plan?), self.run, PlanMarks::Count);
        let state = progress.find(task).filter(|state| !state.waits_for.is_empty())?;
        let error = GardenerError::not_ready(task, &state.waits_for, &progress);
        let has_failed = matches!(error, GardenerError::NotReady { has_failed: true, .. });
        let (what, retry) = match has_failed {
            true => ("try failed tasks again and run all others in order", " --retry-failed"),
            false => ("run all tasks in order", ""),
        };
        let next = self.site.continuation(self.run).continue_run(retry);
        Some((error.to_string(), format!("to {what}: {next}")))
    }

    /// Refuses a landed task whose branch has commits that its target does not have: no test and no reviewer saw them.
    fn refuse_later_commits(&self, task: &TaskId) -> Result<(), Failure> {
        let (repository, branch) = (&self.site.repository, self.site.scope.branch.task_branch(task));
        let (Some(tip), Some(target)) =
            (repository.find_branch(&branch)?, repository.find_branch(&self.into)?)
        else {
            return Ok(());
        };
        let later = repository.distance(tip, target)?.ahead;
        if later == 0 {
            return Ok(());
        }
        let commits = commits(later);
        let words = format!(
            "'{task}' is already done on the target, and '{branch}' has {commits} that '{}' lacks",
            self.into
        );
        Err(Failure::new(Exit::No, words)
            .hint(format!("see what is on it: git log {}..{branch}", self.into))
            .hint(format!("or start it over: {}", self.site.start_over(self.run, task))))
    }

    /// Refuses a task that has landed if its branches in other repositories have later commits.
    fn refuse_later_commits_elsewhere(&self, task: &TaskId) -> Result<(), Failure> {
        let elsewhere = self.site.other_branches(self.run)?;
        let later = elsewhere.map(|elsewhere| elsewhere.find_later_commits(task)).transpose()?.flatten();
        let Some(LaterCommits { repo, branch, target, place, count }) = later else { return Ok(()) };
        let commits = commits(count);
        let words =
            format!("'{task}' is already done, and '{branch}' in {repo} has {commits} that '{target}' lacks");
        let place = shell_word(&place.to_string_lossy());
        Err(Failure::new(Exit::No, words)
            .hint(format!("to merge that branch: git -C {place} merge {branch}"))
            .hint(format!("or start it over: {}", self.site.start_over(self.run, task))))
    }

    fn ticket(&self, task: &TaskId, source: Oid, priority: Priority) -> Ticket {
        let now = clock::now();
        let history = self.run.find(task);
        let planned = self.plan.and_then(|plan| plan.find(task)).map(|task| task.name.as_str());
        let name = planned.or_else(|| history.and_then(|history| history.name()));
        Ticket {
            name: name.unwrap_or(task.as_str()).to_owned(),
            into: self.into.clone(),
            session: self.run.start.as_ref().map(|start| start.session.clone()),
            priority,
            finished: history.and_then(|history| history.last()).map_or(now, |event| event.time),
            needs: self.needs(task),
            forced: self.args.force,
            ..Ticket::new(self.site.scope.branch.clone(), task.clone(), source, now)
        }
    }

    /// The dependencies of a task that have not landed yet.
    fn needs(&self, task: &TaskId) -> Vec<TaskId> {
        let Some(plan) = self.plan else {
            return Vec::new();
        };
        let progress = Progress::new(Some(plan), self.run, PlanMarks::Count);
        let is_there = |task: &Task| {
            let state = progress.find(&task.id);
            state.is_none_or(|state| state.state == State::Skipped || state.is_landed())
        };
        plan.readiness(is_there).leaves_waited_for(task)
    }
}
