//! The [`QueueBackend`] that works on a repository.

mod do_again;
mod fewer_tests;
mod guarded_refs;
mod land;
mod other_repos;
mod parked;
mod read_and_repair;
mod rejection;
mod resolution_review;
mod resolutions;
mod resolve_by_agent;
mod resolve_by_person;
mod run_gates;

pub(super) use other_repos::OtherTarget;
pub use other_repos::finish_landings;
pub(super) use parked::KNOWN_PARKINGS;
pub use resolve_by_person::{Handover, OtherFiles, opened_for};
pub use run_gates::GateResults;

use std::{collections::HashMap, path::Path};

use land::MergedTree;
use other_repos::{MergedElsewhere, OtherLanding, words_of_absent};
use read_and_repair::{KnownRun, Seen};
use run_gates::GateRecord;

use super::{
    EarlierLanding, Gate, GateVerdict, LandingStep, LogEntry, LoggedOutcome, Merged, Published, QueueBackend,
    QueueError, QueueEvent, QueueOptions, QueueView, RememberedResults, Resolution, Store, StoredTicket,
    Target, Ticket, TicketState, claim::HeldQueueClaim, store::OutcomeWritten,
};
use crate::{
    git::{Merge, Repository, Signing},
    name::{BranchName, Oid, RepoName, TaskId},
    pipeline::CommandCounts,
    process::Program,
    worktree::run_variables,
};

/// The queue of one run for one target, in a repository.
pub struct GitQueue<'a> {
    pub(super) repository: &'a Repository,
    pub(super) scope: &'a BranchName,
    pub(super) into: &'a BranchName,
    pub(super) claim: &'a HeldQueueClaim<'a>,
    pub(super) options: &'a QueueOptions,
    pub(super) on_event: &'a mut dyn FnMut(QueueEvent),
    pub(super) store: Store<'a>,
    pub(super) signing: Signing,
    pub(super) stored: HashMap<TaskId, StoredTicket>,
    pub(super) trees: HashMap<Oid, Oid>,
    /// The merges of this drain, and those that were found parked.
    pub(super) merges: HashMap<Oid, DrainMerge>,
    /// Results of gates in this drain, by tree and gate.
    pub(super) results: HashMap<(Oid, String), GateRecord>,
    /// How many gates were run for this drain.
    pub(super) gate_runs: usize,
    /// How many tests ran before, and the tip of the target that this is about.
    pub(super) counts_before: Option<(Option<Oid>, CommandCounts)>,
    /// Other repositories that were opened in this drain.
    pub(super) other_repos: HashMap<RepoName, Repository>,
    /// The last view, as long as nothing has changed since.
    pub(super) seen: Option<Seen>,
    /// The run as last read.
    pub(super) run: Option<KnownRun>,
}

/// What a drain knows about one of its merge commits.
#[derive(Debug, Clone)]
pub(super) struct DrainMerge {
    /// The commit that it is on top of.
    onto: Oid,
    task: TaskId,
    /// What it brings to other repositories; `None` once it has landed or is parked.
    landings: Option<Vec<OtherLanding>>,
    /// How many tests its gates ran.
    counted: CommandCounts,
    /// What the sandbox refused to its gates that passed.
    denials: Vec<String>,
}

impl DrainMerge {
    fn new(onto: Oid, task: TaskId, landings: Option<Vec<OtherLanding>>) -> Self {
        Self { onto, task, landings, counted: CommandCounts::default(), denials: Vec::new() }
    }
}

impl<'a> GitQueue<'a> {
    /// The merges of this drain from `commit` down to the target, each with its commit.
    fn merges_below(&self, commit: Oid) -> impl Iterator<Item = (Oid, &DrainMerge)> {
        let find = |at: Oid| self.merges.get(&at).map(|merge| (at, merge));
        std::iter::successors(find(commit), move |(_, merge)| find(merge.onto))
    }

    /// The same, without those that have landed or are parked.
    fn open_merges_below(&self, commit: Oid) -> impl Iterator<Item = &DrainMerge> {
        self.merges_below(commit).map(|(_, merge)| merge).take_while(|merge| merge.landings.is_some())
    }

    /// What a merge of this drain brings to other repositories.
    fn landings_of(&self, merge: Oid) -> &[OtherLanding] {
        self.merges.get(&merge).and_then(|merge| merge.landings.as_deref()).unwrap_or_default()
    }

    fn target(&self) -> Target<'a> {
        Target::new(self.repository, self.into)
    }

    /// Adds the environment variables of the run to a program that runs in the plan's repository, or in another.
    fn for_run(&self, program: Program, other: Option<&OtherTarget>, place: &Path) -> Program {
        let session = self.options.worktrees.session.as_ref();
        let variables = match other {
            Some(other) => run_variables(&other.name, &other.branch, session, place),
            None => {
                let name = self.options.worktrees.repo.clone().unwrap_or_else(|| self.repository.name());
                run_variables(&name, self.scope, session, place)
            }
        };
        variables.iter().fold(program, |program, (name, value)| program.env(name, value))
    }

    fn tree_of(&mut self, commit: Oid) -> Result<Oid, QueueError> {
        if let Some(tree) = self.trees.get(&commit) {
            return Ok(*tree);
        }
        let tree = self.repository.tree_of(commit)?;
        self.trees.insert(commit, tree);
        Ok(tree)
    }

    /// Discards the last view, because something is about to change. Until then, what other processes change in the queue is
    /// not noticed.
    fn forget_view(&mut self) {
        self.seen = None;
    }

    fn write(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        self.forget_view();
        let old = self.stored.get(&ticket.task);
        let written = self.store.write(&[(old, ticket.clone())])?;
        self.stored.extend(written.into_iter().map(|stored| (stored.ticket.task.clone(), stored)));
        Ok(())
    }

    /// Stores a ticket if it has changed.
    fn store_if_changed(&mut self, before: &Ticket, after: Ticket) -> Result<Ticket, QueueError> {
        if *before != after {
            self.write(&after)?;
        }
        Ok(after)
    }

    /// Closes landed tickets in one transaction.
    fn close_all(
        &mut self,
        landed: &[(Ticket, Oid)],
        outcome: LoggedOutcome,
        written: OutcomeWritten,
    ) -> Result<(), QueueError> {
        if landed.is_empty() {
            return Ok(());
        }
        self.forget_view();
        let time = (self.options.clock)();
        let entries: Vec<LogEntry> = landed
            .iter()
            .map(|(ticket, commit)| {
                let words = ticket.resolution().unwrap_or_default();
                let commit = (outcome == LoggedOutcome::Landed).then_some(*commit);
                LogEntry { words, ..LogEntry::new(ticket, outcome, commit, time) }
            })
            .collect();
        let mut closed = Vec::new();
        for (ticket, _) in landed {
            let is_same =
                self.stored.get(&ticket.task).is_some_and(|known| known.ticket.source == ticket.source);
            closed.extend(is_same.then(|| self.stored.remove(&ticket.task)).flatten());
        }
        self.store.log(self.into, &entries, &closed, written)?;
        let gone = landed.iter().filter(|_| outcome == LoggedOutcome::Landed);
        gone.clone().try_for_each(|(ticket, commit)| self.close_place(ticket, *commit))
    }
}

// A longer method only calls the one of the same name that stands in the file of its subject, such as `publish` in `land.rs`.
impl QueueBackend for GitQueue<'_> {
    fn repair_and_read(&mut self) -> Result<QueueView, QueueError> {
        if let Some(seen) = &self.seen {
            return Ok(seen.view.clone());
        }
        self.repair_and_read_uncached()
    }

    fn tip(&mut self) -> Result<Oid, QueueError> {
        match &self.seen {
            Some(seen) => Ok(seen.position.tip()),
            None => Ok(self.position()?.tip()),
        }
    }

    fn merge(&mut self, onto: Oid, ticket: &Ticket) -> Result<Merged, QueueError> {
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        let tree = match self.repository.merge(onto, theirs)? {
            Merge::Clean(tree) => tree,
            Merge::Conflicted(_, conflicts) => return Ok(Merged::Conflict(conflicts)),
        };
        if let Some(repo) = self.find_absent(&ticket.task) {
            return Ok(Merged::Refused(words_of_absent(&repo)));
        }
        let landings = match self.merge_elsewhere(onto, ticket)? {
            MergedElsewhere::Clean(landings) => landings,
            MergedElsewhere::Conflict(conflicts) => return Ok(Merged::Conflict(conflicts)),
        };
        if landings.is_empty() && tree == self.tree_of(onto)? {
            return Ok(Merged::NoChange);
        }
        let gates = self.gates_for(ticket, onto, tree, &landings)?;
        let step = self.write_merge(MergedTree { onto, tree }, ticket, landings, &gates, &[])?;
        Ok(Merged::Clean(Box::new(step)))
    }

    fn excuse(&mut self, onto: Oid, step: &LandingStep, red: &[Gate]) -> Result<LandingStep, QueueError> {
        let place = |gate: &Gate| match &gate.repo {
            Some(repo) => format!("{} in '{repo}'", gate.name),
            None => format!("{} on {}", gate.name, self.into),
        };
        let names: Vec<String> = red.iter().map(place).collect();
        let words = format!(
            "{} lands although these gates fail, because they also fail without it: {}",
            step.ticket.task,
            names.join(", ")
        );
        (self.on_event)(QueueEvent::note(words));
        let tree = self.tree_of(step.commit)?;
        let landings = self.landings_of(step.commit).to_vec();
        self.write_merge(MergedTree { onto, tree }, &step.ticket, landings, &step.gates, red)
    }

    fn run_gates(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        remembered: RememberedResults,
    ) -> Result<GateVerdict, QueueError> {
        self.run_gates(commit, gates, remembered)
    }

    fn take_gate_runs(&mut self) -> usize {
        std::mem::take(&mut self.gate_runs)
    }

    fn landings_since(&mut self, ticket: &Ticket) -> Result<Vec<EarlierLanding>, QueueError> {
        self.landings_since(ticket)
    }

    fn is_known_to_fail_on_target(&mut self, commit: Oid, gate: &Gate) -> Result<bool, QueueError> {
        self.is_known_to_fail_on_target(commit, gate)
    }

    fn record_tests(&mut self, steps: &[LandingStep]) -> Result<Vec<LandingStep>, QueueError> {
        self.record_tests(steps)
    }

    fn publish(&mut self, base: Oid, steps: &[LandingStep]) -> Result<Published, QueueError> {
        self.publish(base, steps)
    }

    fn set_state(&mut self, ticket: &Ticket, state: TicketState) -> Result<(), QueueError> {
        let ticket = Ticket { state, ..ticket.clone() };
        self.write(&ticket)?;
        let new = |outcome, commit| LogEntry::new(&ticket, outcome, commit, (self.options.clock)());
        let entry = match &ticket.state {
            TicketState::Red { gate, commit, log, .. } => {
                let words = format!("gate '{gate}' (log: {log})");
                LogEntry { words, ..new(LoggedOutcome::Red, Some(*commit)) }
            }
            TicketState::Conflict { conflicts, escalated, .. } => {
                let paths: Vec<&str> =
                    conflicts.iter().flat_map(|conflict| &conflict.paths).map(String::as_str).collect();
                let outcome = if *escalated { LoggedOutcome::Escalated } else { LoggedOutcome::Conflict };
                let words = match ticket.failed_resolution() {
                    Some(why) => format!("your resolution of {}: {why}", paths.join(", ")),
                    None => paths.join(", "),
                };
                LogEntry { words, ..new(outcome, None) }
            }
            _ => return Ok(()),
        };
        self.store.log(self.into, &[entry], &[], OutcomeWritten::New)
    }

    fn close(&mut self, ticket: &Ticket, outcome: LoggedOutcome) -> Result<(), QueueError> {
        self.close_all(&[(ticket.clone(), ticket.source)], outcome, OutcomeWritten::New)
    }

    fn keep_resolution(&mut self, ticket: &Ticket) -> Result<Option<String>, QueueError> {
        // If the worktree cannot be made, the commit of the resolution is saved, and the drain continues.
        self.open_resolution(ticket).or_else(|_| self.save_resolution(ticket))
    }

    fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError> {
        self.resolve(ticket)
    }

    fn report(&mut self, event: QueueEvent) {
        (self.on_event)(event);
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancel.is_cancelled()
    }

    fn now(&self) -> i64 {
        (self.options.clock)()
    }
}
