//! The merge queue. Finished tasks land one after the other, tested, without a checkout and without a daemon.
//!
//! Each [`Ticket`] is a ref, and the log of outcomes is another. Every drain rebuilds the queue from them, so a crash
//! loses nothing. [`arrange`] and [`Drain`] decide; [`GitQueue`] acts.

mod advice;
mod backend;
mod claim;
mod delete_branch;
mod drain;
mod error;
mod gate;
mod gate_results;
mod git_backend;
mod options;
mod other_branches;
mod policy;
mod reasons;
mod report;
mod resolver_prompt;
mod store;
mod target;
mod ticket;
mod ticket_facts;

pub(crate) use advice::fails_together;
pub use advice::{LandingCommand, describe_broken, describe_conflicts};
pub use backend::{
    EarlierLanding, LandingStep, Merged, Published, QueueBackend, QueueView, RecentTries, RememberedResults,
    Resolution,
};
pub use claim::{Claimant, QueueClaim};
pub use delete_branch::delete_landed;
pub use drain::{Drain, DrainRules, waits_for};
pub use error::{QueueError, UnparkableResolution};
pub use gate::{Failing, GATES, Gate, GateVerdict};
pub use gate_results::{StoredGateResult, load_gate_results};
pub use git_backend::{GateResults, GitQueue, Handover, OtherFiles, finish_landings, opened_for};
pub use options::{QueueMemory, QueueOptions, QueuePlan};
pub use other_branches::{LaterCommits, OtherBranches};
pub use policy::{LandingPolicy, QueueOrder, arrange};
pub use reasons::{GateFault, HoldReason, WithheldReason};
pub use report::{Parking, QueueEvent, QueueReport, TicketOutcome};
pub use resolver_prompt::{Brief, Resolver};
pub(crate) use store::queue_refs;
pub use store::{
    LOGS, LogEntry, LoggedOutcome, OutcomeWritten, Store, StoredTicket, TICKETS, take_unreadable_tickets,
};
pub use target::{
    ForeignCommits, GET_BACK, ParkingObstacle, Target, TargetTip, UnparkWay, accept_or_remove_others_commits,
    advice_to_commit_resolved, advice_to_unpark, words_on_unmerged,
};
pub use ticket::{OtherRun, Paid, Priority, ResolvedBy, Ticket, TicketState, bring_back};

use std::{collections::HashMap, sync::mpsc::channel, thread};

use claim::HeldQueueClaim;

use crate::{
    git::{Repository, Signing},
    name::{BranchName, TaskId},
    process::FileLock,
    session::{owned_by, owned_elsewhere},
    settings::Settings,
    workspace::RepoSection,
    worktree::{Pool, WorktreeError, WorktreeOptions},
};

/// The queue of one run for one target. While this exists, no other process drains it.
#[derive(Debug)]
pub struct Queue<'a> {
    repository: &'a Repository,
    scope: BranchName,
    into: BranchName,
    claim: HeldQueueClaim<'a>,
    _lock: FileLock,
}

impl<'a> Queue<'a> {
    /// Takes the lock of the target, and the claim on it.
    pub fn open(
        repository: &'a Repository,
        scope: BranchName,
        into: BranchName,
        clock: fn() -> i64,
    ) -> Result<Self, QueueError> {
        let lock =
            FileLock::try_take(&repository.landing_lock(&into), &format!("git arborist merge into {into}"))
                .map_err(|source| QueueError::Locked { into: into.clone(), source })?;
        // Without a dead process, an update may be in progress: a run that follows its branch holds only its own lock.
        if repository.remove_stale_locks(&lock)? {
            repository.undo_updates(&lock, &into)?;
        }
        let claim = HeldQueueClaim::take(repository, &into, clock)?;
        Ok(Self { repository, scope, into, claim, _lock: lock })
    }

    /// Lands what can land, and reports the outcome of every ticket.
    pub fn drain(
        &self,
        options: &QueueOptions,
        on_event: &mut dyn FnMut(QueueEvent),
    ) -> Result<QueueReport, QueueError> {
        thread::scope(|scope| {
            // The claim is renewed until the other end of the channel is dropped, also after an error.
            let (_at_work, end) = channel();
            scope.spawn(move || self.claim.renew_until_dropped(&end));
            self.drain_claimed(options, on_event)
        })
    }

    fn drain_claimed(
        &self,
        options: &QueueOptions,
        on_event: &mut dyn FnMut(QueueEvent),
    ) -> Result<QueueReport, QueueError> {
        // Gates and resolvers run code of the repository, even if no run is at work.
        self.repository.own_refs(&owned_by(&self.scope, options.worktrees.session.as_ref()))?;
        self.list_copied_files(options)?;
        let mut git_queue = self.git_queue(options, on_event)?;
        let parking = git_queue.land_parked()?;
        let mut report = Drain::new(&mut git_queue, options.rules.clone()).run()?;
        report.parking = report.parking.or(parking);
        if report.gate_runs > 0 {
            git_queue.forget_old_results()?;
        }
        Ok(report)
    }

    /// Determines which untracked files worktrees get, in all repositories in which gates run, before the first gate
    /// runs. From then on these repositories are watched, unless a run watches them already.
    fn list_copied_files(&self, options: &QueueOptions) -> Result<(), QueueError> {
        if options.memory.files_settled.set(()).is_err() {
            return Ok(());
        }
        match Pool::open(self.repository, &self.scope, options.worktrees.clone()) {
            // Without a checkout there is nothing to copy.
            Ok(_) | Err(WorktreeError::Bare) => {}
            Err(error) => return Err(error.into()),
        }
        for section in options.sections.iter().filter(|section| !section.is_main) {
            if let Ok(repository) = Repository::open_at(&section.path) {
                let other = WorktreeOptions::new(&Settings::default(), &options.cancel);
                let _ = Pool::open(&repository, &self.scope, other);
                self.watch_other(options, section, &repository)?;
            }
        }
        Ok(())
    }

    /// Starts watching a repository of the workspace. A gate can write to all of them, whichever it runs in.
    fn watch_other(
        &self,
        options: &QueueOptions,
        section: &RepoSection,
        repository: &Repository,
    ) -> Result<(), QueueError> {
        let guard = &options.config_guard;
        if guard.find_repository(section.name.as_str()).is_some() {
            return Ok(());
        }
        if let Some(session) = &options.worktrees.session
            && let Ok(Some((branch, _))) = section.find_session_branch(repository, session)
        {
            repository.own_refs(&owned_elsewhere(&branch, session))?;
        }
        guard.add(section.name.as_str(), repository);
        if let Some(main) = options.sections.iter().find(|section| section.is_main) {
            guard.add(main.name.as_str(), self.repository);
        }
        Ok(())
    }

    /// Checks a landing that another process parked for the target, before anything is built upon it. Does nothing if
    /// nothing is parked.
    pub fn check_parked(
        &self,
        options: &QueueOptions,
        on_event: &mut dyn FnMut(QueueEvent),
    ) -> Result<(), QueueError> {
        self.repository.own_refs(&owned_by(&self.scope, options.worktrees.session.as_ref()))?;
        self.list_copied_files(options)?;
        self.git_queue(options, on_event)?.check_parked()
    }

    /// Opens the conflict of a task in a worktree for a person, or takes their resolution back into the queue.
    pub fn hand_over(
        &self,
        task: &TaskId,
        other_files: OtherFiles,
        options: &QueueOptions,
        on_event: &mut dyn FnMut(QueueEvent),
    ) -> Result<Handover, QueueError> {
        let mut git_queue = self.git_queue(options, on_event)?;
        let view = git_queue.repair_and_read()?;
        let ticket = view.tickets.into_iter().find(|ticket| ticket.task == *task);
        let ticket = ticket.ok_or_else(|| QueueError::NotQueued { task: task.clone() })?;
        let TicketState::Conflict { onto, .. } = ticket.state else {
            let state = match &ticket.state {
                TicketState::Red { .. } => "its gate failed".to_owned(),
                state => format!("it is {}", state.word()),
            };
            let command = ticket.state.command();
            return Err(QueueError::NoConflict { task: task.clone(), state, command });
        };
        if let Some(target) = git_queue.find_conflict_elsewhere(&ticket, onto)? {
            return Err(git_queue.conflict_elsewhere(task, &target)?);
        }
        git_queue.hand_over(&ticket, other_files)
    }

    fn signing(&self, options: &QueueOptions) -> Result<Signing, QueueError> {
        if let Some(signing) = options.memory.signing.get() {
            return Ok(*signing);
        }
        let signing = self.repository.signing()?;
        Ok(*options.memory.signing.get_or_init(|| signing))
    }

    fn git_queue<'b>(
        &'b self,
        options: &'b QueueOptions,
        on_event: &'b mut dyn FnMut(QueueEvent),
    ) -> Result<GitQueue<'b>, QueueError> {
        Ok(GitQueue {
            repository: self.repository,
            scope: &self.scope,
            into: &self.into,
            claim: &self.claim,
            options,
            on_event,
            store: Store::new(self.repository),
            signing: self.signing(options)?,
            stored: HashMap::new(),
            trees: HashMap::new(),
            merges: HashMap::new(),
            results: HashMap::new(),
            gate_runs: 0,
            counts_before: None,
            other_repos: HashMap::new(),
            seen: None,
            run: None,
        })
    }
}
