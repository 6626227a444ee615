//! Lets an agent resolve a conflict in a scratch worktree. The result goes back into the queue, to be merged and tested
//! like everything else.

use std::time::Duration;

use super::{
    GitQueue,
    other_repos::MergedElsewhere,
    rejection::{Rejection, reject},
    resolution_review::Resolved,
    resolve_by_person::{UnfinishedMerge, place_of},
};
use crate::{
    agent::{CallOutcome, Request, RunnerKind},
    git::{Merge, MergeConflict, TreeChange, Version, WorktreeSnapshot},
    history::Event,
    message::{Status, visible},
    name::{Attempt, Oid, TaskId},
    pipeline::{AtLimit, Call, CallFacts, CallRecord, CallReply, Caller, Expense, PipelineError, Violations},
    queue::{
        QueueBackend, QueueError, QueueEvent, Resolution, ResolvedBy, Resolver, Ticket, TicketState,
        resolver_prompt::ConflictPrompt,
    },
    settings::OnConflict,
    worktree::{Pool, Scratch},
};

/// The names of the two calls for a conflict, in logs and for the sandbox.
const RESOLVE: &str = "resolve";
pub(super) const REVIEW: &str = "review";
/// How many landings are searched for those that changed a file.
const MAX_LANDINGS: usize = 50;

/// The records of the calls for one conflict.
pub(super) struct ResolverCalls {
    /// The call of the resolver.
    resolve: Option<CallRecord>,
    /// The call of the reviewer.
    review: Option<CallRecord>,
    pub(super) expense: Expense,
    /// The files that the resolver changed.
    files: Vec<String>,
}

impl ResolverCalls {
    pub(super) const fn new() -> Self {
        Self {
            resolve: None,
            review: None,
            expense: Expense { usage: None, time: Duration::ZERO },
            files: Vec::new(),
        }
    }
}

/// The work of agents on one conflict.
pub(super) struct AgentWork<'a> {
    pub(super) resolver: &'a Resolver,
    pub(super) calls: &'a mut ResolverCalls,
    pub(super) pool: Pool,
    /// The worktree that they work in.
    pub(super) scratch: Scratch,
}

impl AgentWork<'_> {
    /// Removes the worktree, except after an error: then it stays until it is used again.
    pub(super) fn end<T>(self, result: Result<T, Rejection>) -> Result<T, Rejection> {
        if !matches!(result, Err(Rejection::Error(_))) {
            self.pool.remove_scratch(&self.scratch)?;
        }
        result
    }
}

impl GitQueue<'_> {
    /// Lets the resolver try, or withdraws the ticket so that the task is done again.
    pub(super) fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError> {
        let ticket = self.merge_again(ticket)?;
        let TicketState::Conflict { onto, .. } = ticket.state else {
            return Ok(Resolution::Resolved);
        };
        // A person's resolution of an earlier conflict is not thrown away with the work.
        let has_persons_work = ticket.resolved.is_some() && ticket.has_persons_work;
        if self.options.merge.on_conflict == OnConflict::Reimplement && !has_persons_work {
            return self.withdraw(ticket);
        }
        // Agents resolve conflicts in the plan's repository only.
        if self.find_conflict_elsewhere(&ticket, onto)?.is_some() {
            return Ok(Resolution::Left(Box::new(ticket)));
        }
        let Some(resolver) = self.options.resolver.as_ref().filter(|resolver| resolver.assists) else {
            if let Some(why) = &self.options.no_resolver {
                let words = format!("you must resolve the conflict of {}, because {why}", ticket.task);
                (self.on_event)(QueueEvent::note(words));
            }
            return Ok(Resolution::Left(Box::new(ticket)));
        };
        let task = &ticket.task;
        let words =
            format!("an agent is resolving the conflict of {task} (attempt {})", ticket.tries.len() + 1);
        (self.on_event)(QueueEvent::Progress { task: Some(task.clone()), words });
        let mut tried = ticket.clone();
        tried.tries.push("it was interrupted".into());
        self.write(&tried)?;
        let mut calls = ResolverCalls::new();
        let result = self.call_resolver(&ticket, onto, resolver, &mut calls);
        tried.paid = ticket.paid.and(calls.expense);
        self.record_calls(&ticket, calls, &result);
        let last = tried.tries.last_mut();
        match result {
            Ok(commit) => {
                last.into_iter()
                    .for_each(|last| *last = format!("resolved by {}", resolver.step_runner.name));
                let agent = ResolvedBy::Agent(resolver.step_runner.name.clone());
                let resolved_by = Some(tried.resolved_too(agent));
                let state = TicketState::Waiting;
                let resolved = Some(commit);
                self.write(&Ticket { resolved, resolved_by, has_persons_work, state, ..tried })?;
                Ok(Resolution::Resolved)
            }
            Err(Rejection::Because(why)) => {
                last.into_iter().for_each(|last| last.clone_from(&why));
                self.write(&tried)?;
                Ok(Resolution::Failed)
            }
            // A try that the user interrupts does not count.
            Err(Rejection::Error(error)) => {
                if self.is_cancelled() {
                    self.write(&Ticket { paid: tried.paid, ..ticket })?;
                }
                Err(error)
            }
        }
    }

    /// Merges again if something has landed since the conflict was found. It may have changed the conflict, or settled
    /// it; then the ticket waits again.
    fn merge_again(&mut self, ticket: &Ticket) -> Result<Ticket, QueueError> {
        let onto = self.tip()?;
        if matches!(ticket.state, TicketState::Conflict { onto: known, .. } if known == onto) {
            return Ok(ticket.clone());
        }
        let state = match self.repository.merge(onto, ticket.resolved.unwrap_or(ticket.source))? {
            Merge::Clean(_) => match self.merge_elsewhere(onto, ticket)? {
                MergedElsewhere::Clean(_) => TicketState::Waiting,
                MergedElsewhere::Conflict(conflicts) => {
                    TicketState::Conflict { onto, conflicts, escalated: false }
                }
            },
            Merge::Conflicted(_, conflicts) => TicketState::Conflict { onto, conflicts, escalated: false },
        };
        self.store_if_changed(ticket, Ticket { state, ..ticket.clone() })
    }

    /// The commit of the resolution.
    fn call_resolver(
        &mut self,
        ticket: &Ticket,
        onto: Oid,
        resolver: &Resolver,
        calls: &mut ResolverCalls,
    ) -> Result<Oid, Rejection> {
        let pool = self.pool()?;
        let Some(scratch) = pool.take_scratch(&place_of("agent", &ticket.task), onto)? else {
            return reject("its worktree is in use");
        };
        let mut work = AgentWork { resolver, calls, pool, scratch };
        let result = self.resolve_in_worktree(&mut work, ticket, onto);
        work.end(result)
    }

    fn resolve_in_worktree(
        &mut self,
        work: &mut AgentWork<'_>,
        ticket: &Ticket,
        onto: Oid,
    ) -> Result<Oid, Rejection> {
        let place = work.scratch.repository.clone();
        work.pool.refresh(&work.scratch, onto, &[])?;
        place.begin_merge(ticket.resolved.unwrap_or(ticket.source))?;
        let before = place.snapshot()?;
        let called = match self.call_watched(work, ticket, onto) {
            Err(Rejection::Error(error)) => return Err(error.into()),
            called => called,
        };
        let after = place.take_snapshot()?;
        let changes = place.changes(before, after.tree)?;
        // Recorded with the call, also if it failed.
        work.calls.files = changes.iter().map(TreeChange::shown).collect();
        called?;
        require_files(&after, &changes)?;
        let commit = self.take(&UnfinishedMerge { ticket, place: &place, onto }, Some(before))?;
        self.check_and_review(work, ticket, onto, commit)?;
        Ok(commit)
    }

    /// Accepts a resolution only if it changes just conflicting files, no protected ones, and a reviewer approves it.
    fn check_and_review(
        &mut self,
        work: &mut AgentWork<'_>,
        ticket: &Ticket,
        onto: Oid,
        commit: Oid,
    ) -> Result<(), Rejection> {
        let (tree, base) = (self.repository.tree_of(commit)?, self.repository.tree_of(onto)?);
        if !self.repository.is_proven(base, tree)? {
            return reject("it stored other content under the object id of a file");
        }
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        let merged = self.check_resolution(onto, theirs, tree)?;
        let allowed = self.options.plan.allowed.get(&ticket.task).map(Vec::as_slice).unwrap_or_default();
        let protected = self.options.protection.find_changes(self.repository, (base, tree), allowed)?;
        if let Some(refusal) = protected.refusal() {
            return reject(refusal);
        }
        self.review_resolution(work, &Resolved { ticket, commit, merged })?;
        self.options.memory.resolutions.add(commit);
        Ok(())
    }

    /// Calls the resolver, and undoes changes that it must not make. Commits that it made are saved.
    fn call_watched(
        &mut self,
        work: &mut AgentWork<'_>,
        ticket: &Ticket,
        onto: Oid,
    ) -> Result<(), Rejection> {
        let prompt = self.prompt(ticket, onto)?;
        let guarded = self.guarded_refs(ticket)?;
        let watch = self.options.config_guard.watch(&work.scratch.repository);
        let reply = self.call(work, &ticket.task, &prompt, RESOLVE);
        let mut violations = watch.restore_after_child();
        violations.extend(self.restore_refs(ticket, &guarded)?);
        if let Some(own) = work.scratch.repository.find_commit("HEAD")?.filter(|head| *head != onto) {
            self.save(ticket, own)?;
        }
        let name = &work.resolver.step_runner.name;
        let reply = self.reply_or_note(reply, name, &violations)?;
        if let Some(violation) = violations.in_one_line() {
            return reject(violation);
        }
        match reply.outcome {
            CallOutcome::Success { .. } => Ok(()),
            CallOutcome::Failed { message, .. } => reject(format!("{name} failed: {message}")),
            CallOutcome::Limited { .. } => reject(format!("{name} is at its limit")),
        }
    }

    /// Returns the reply. If there is none, a note names what the agent did without permission.
    pub(super) fn reply_or_note(
        &mut self,
        reply: Result<CallReply, QueueError>,
        runner: &str,
        violations: &Violations,
    ) -> Result<CallReply, QueueError> {
        if let (Err(_), Some(violation)) = (&reply, violations.in_one_line()) {
            let words = format!("{runner} was interrupted: {violation}");
            (self.on_event)(QueueEvent::note(words));
        }
        reply
    }

    /// Calls an agent for a conflict: the resolver or the reviewer.
    pub(super) fn call(
        &mut self,
        work: &mut AgentWork<'_>,
        task: &TaskId,
        prompt: &str,
        step: &str,
    ) -> Result<CallReply, QueueError> {
        let AgentWork { resolver, calls, scratch, .. } = work;
        let step_runner = if step == REVIEW { &resolver.reviewer } else { &resolver.step_runner };
        let log = self.repository.top().join(self.new_log(step)?);
        let RunnerKind::Program(runner) = &step_runner.runner else {
            let message = format!("the runner '{}' cannot resolve conflicts", step_runner.name);
            return Err(QueueError::Resolver(message));
        };
        let model = step_runner.model.as_deref();
        let dir = scratch.path.clone();
        let confinement =
            self.options.worktrees.sandbox.confine(&step_runner.sandboxed(step, vec![dir.clone()]));
        let mut record =
            CallRecord::of(step_runner, prompt, self.options.transcripts, (self.options.clock)());
        let mut caller = Caller {
            runner: &step_runner.name,
            limits: resolver.limits,
            backoff: resolver.backoff,
            secrets: &self.options.secrets,
            cancel: &self.options.cancel,
            orphan_lock: Some(&mut scratch.orphan_lock),
            on_event: &mut |_| {},
            observer: Some(&mut record),
            expense: Expense::default(),
            confinement,
            prior_usage: None,
        };
        let request = Request { prompt, model, dir: &dir, session: None, prompt_file: None, tools: None };
        let reply = caller.call(AtLimit::Wait, || {
            let call = Call::of_runner(runner, request, &log)?;
            let program = self.for_run(call.program, None, &dir).env("ARBORIST_TASK", task.as_str());
            Ok(Call { program, ..call })
        });
        calls.expense.add(caller.expense.usage, caller.expense.time);
        match step {
            REVIEW => calls.review = Some(record),
            _ => calls.resolve = Some(record),
        }
        if self.options.cancel.is_cancelled() {
            return Err(PipelineError::stopped(&self.options.cancel).into());
        }
        Ok(reply?)
    }

    /// Writes the calls into the session's records, like those of any step.
    fn record_calls(&mut self, ticket: &Ticket, calls: ResolverCalls, result: &Result<Oid, Rejection>) {
        let Some(session) = ticket.session.as_ref().or(self.options.worktrees.session.as_ref()) else {
            return;
        };
        let not_committed = match result {
            Ok(_) => "it is queued again, to be merged and tested".to_owned(),
            Err(Rejection::Because(why)) => why.clone(),
            Err(Rejection::Error(_)) => "it was interrupted".to_owned(),
        };
        let mut facts = CallFacts {
            node: &ticket.task,
            step: "resolve",
            attempt: Attempt(u32::try_from(ticket.tries.len()).unwrap_or(u32::MAX)),
            about: ticket.source,
            expense: calls.expense,
            files: calls.files,
            not_committed: Some(not_committed),
            interrupted: matches!(result, Err(Rejection::Error(_))),
        };
        let (options, now) = (self.options, self.now());
        for (step, record) in [("resolve", calls.resolve), ("review", calls.review)] {
            let Some(record) = record else { continue };
            facts.step = step;
            let kept = record.keep(self.repository, session, &facts, &options.secrets, now);
            if let Err(error) = kept {
                let words = format!("the call for {} could not be recorded: {error}", ticket.task);
                (self.on_event)(QueueEvent::note(words));
            }
            // The expense of both calls is recorded with the first.
            (facts.expense, facts.files) = (Expense::default(), Vec::new());
        }
    }

    fn prompt(&self, ticket: &Ticket, onto: Oid) -> Result<String, QueueError> {
        let TicketState::Conflict { conflicts, .. } = &ticket.state else {
            return Ok(String::new());
        };
        let text = |version: &Version| {
            let bytes = self.repository.find_blob(version.id).ok().flatten()?;
            String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
        };
        let others = self.tasks_touching(ticket, onto, conflicts)?;
        Ok(ConflictPrompt { ticket, briefs: &self.options.plan.briefs, others, conflicts, text: &text }
            .prompt())
    }

    /// The tasks whose landings changed the conflicting files.
    fn tasks_touching(
        &self,
        ticket: &Ticket,
        onto: Oid,
        conflicts: &[MergeConflict],
    ) -> Result<Vec<TaskId>, QueueError> {
        let revisions =
            ["--first-parent".to_owned(), "--merges".into(), onto.to_string(), format!("^{}", ticket.source)];
        let paths: Vec<&String> = conflicts.iter().flat_map(|conflict| &conflict.paths).collect();
        let mut tasks = Vec::new();
        for commit in self.repository.stream_commits(&revisions)?.take(MAX_LANDINGS) {
            let commit = self.repository.exact(commit?)?;
            let event = Event::of(&commit).filter(|event| event.status() == Status::Merge);
            let (Some(event), Some(before)) = (event, commit.parents().next()) else { continue };
            for path in &paths {
                if self.repository.touches(before, commit.id, &[&format!(":(top,literal){path}")])? {
                    tasks.extend(event.task().cloned());
                    break;
                }
            }
        }
        Ok(tasks)
    }

    pub(super) fn pool(&self) -> Result<Pool, QueueError> {
        Ok(Pool::open(self.repository, self.scope, self.options.worktrees.clone())?)
    }
}

/// Refuses a repository in the worktree and files that git cannot add: no commit contains them, so that nobody could
/// review or test them.
fn require_files(after: &WorktreeSnapshot, changes: &[TreeChange]) -> Result<(), Rejection> {
    let new_repository = changes.iter().find(|change| change.is_gitlink() && !change.was_gitlink());
    let left_out = after.left_out.first().map(|path| visible(&String::from_utf8_lossy(path)));
    if let Some(path) = new_repository.map(TreeChange::shown).or(left_out) {
        return reject(format!("it left a repository or a folder that git cannot add: {path}"));
    }
    match after.unreadable.first() {
        Some(found) => reject(format!("it left a file that git cannot add: {}", found.why)),
        None => Ok(()),
    }
}
