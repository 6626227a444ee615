//! Checks parked landings. One counts only if this process parked it, or has run its gates: anyone who can write a ref
//! can park something. That it is built like a landing proves what it contains, but not that it passed its gates.

use std::{collections::BTreeSet, sync::LazyLock};

use super::{
    DrainMerge, GitQueue,
    rejection::{Rejection, reject},
    resolution_review::Resolved,
};
use crate::{
    git::{Merge, RawCommit, note_landing},
    history::Event,
    mutex::SharedSet,
    name::{Oid, TaskId},
    queue::{
        Gate, GateVerdict, QueueError, QueueEvent, RememberedResults, StoredTicket, TargetTip, Ticket,
        TicketState,
    },
};

/// The landings that this process has parked or checked.
pub(in crate::queue) static KNOWN_PARKINGS: LazyLock<SharedSet<Oid>> = LazyLock::new(SharedSet::default);

/// One of the parked landings.
struct ParkedLanding {
    ticket: Ticket,
    commit: Oid,
}

impl GitQueue<'_> {
    /// Discards a parked landing that cannot be trusted.
    pub(in crate::queue) fn check_parked(&mut self) -> Result<(), QueueError> {
        self.position().map(drop)
    }

    /// The position of the target.
    pub(super) fn position(&mut self) -> Result<TargetTip, QueueError> {
        let position = self.target().require()?;
        self.checked(position)
    }

    /// The position without its parked landing if that cannot be trusted. It is saved, and its tickets are merged
    /// again.
    pub(super) fn checked(&mut self, position: TargetTip) -> Result<TargetTip, QueueError> {
        let Some(parked) = position.parked.filter(|parked| !KNOWN_PARKINGS.has(parked)) else {
            return Ok(position);
        };
        let why = match self.test_parked(position.branch, parked) {
            Ok(()) => {
                KNOWN_PARKINGS.add(parked);
                return Ok(position);
            }
            Err(rejection) => rejection.reason()?,
        };
        let kept = self.target().clear_stale(&position.without_parked())?;
        let kept = kept.map_or_else(String::new, |under| format!("; it is kept as {under}"));
        let words = format!("the parked landing of '{}' is not used: {why}{kept}", self.into);
        (self.on_event)(QueueEvent::note(words));
        self.forget_view();
        // If another process parks something else at this moment, it is not trusted either.
        let position = self.target().require()?;
        Ok(if position.parked.is_some_and(|parked| KNOWN_PARKINGS.has(&parked)) {
            position
        } else {
            position.without_parked()
        })
    }

    /// Checks what is parked, and runs its gates. The drain does not count these runs.
    fn test_parked(&mut self, branch: Oid, parked: Oid) -> Result<(), Rejection> {
        let landings = self.parked_landings(branch, parked)?;
        let commits: Vec<Oid> = landings.iter().map(|landing| landing.commit).collect();
        let mut gates: Vec<Gate> = Vec::new();
        let mut before = branch;
        for ParkedLanding { ticket, commit } in landings {
            if let Err(rejection) = self.check_parked_tree(before, commit, &ticket) {
                return reject(format!("'{}' needs a review: {}", ticket.task, rejection.reason()?));
            }
            // What it brings to other repositories has landed there already.
            for gate in self.gates_for(&ticket, before, commit, &[])? {
                if !gates.contains(&gate) {
                    gates.push(gate);
                }
            }
            self.merges.insert(commit, DrainMerge::new(before, ticket.task, None));
            before = commit;
        }
        let counted = self.gate_runs;
        let verdict = self.run_gates(parked, &gates, RememberedResults::Any)?;
        self.gate_runs = counted;
        if let GateVerdict::Red(failing) | GateVerdict::Broken(failing) = verdict {
            return reject(format!("{}; log: {}", failing.why, failing.log));
        }
        commits.into_iter().for_each(note_landing);
        Ok(())
    }

    /// Checks the tree of a parked landing. If its task merges without conflicts, git's merge decides. Otherwise it
    /// contains a resolution, which is reviewed like one in a ticket.
    fn check_parked_tree(&mut self, before: Oid, commit: Oid, ticket: &Ticket) -> Result<(), Rejection> {
        let tree = self.repository.tree_of(commit)?;
        let merged = match self.repository.merge(before, ticket.source)? {
            Merge::Clean(merged) if merged == tree => return Ok(()),
            _ => self.check_resolution(before, ticket.source, tree)?,
        };
        self.review_unknown(&Resolved { ticket, commit, merged })
    }

    /// The landings between a target and what is parked for it, oldest first, each with its ticket.
    fn parked_landings(&mut self, branch: Oid, parked: Oid) -> Result<Vec<ParkedLanding>, Rejection> {
        let revisions = ["--first-parent".into(), parked.to_string(), format!("^{branch}")];
        let mut commits: Vec<RawCommit> =
            self.repository.stream_commits(&revisions)?.collect::<Result<_, _>>()?;
        commits.reverse();
        let mut stored = self.store.load(Some(self.scope))?;
        stored.retain(|stored| stored.ticket.into == *self.into);
        let mut landings = Vec::new();
        for commit in commits {
            match self.asked_for(&commit, &stored) {
                Some(ticket) => landings.push(ParkedLanding { ticket, commit: commit.id }),
                None => return reject(format!("no queue entry of this run asks for {}", commit.id.short())),
            }
        }
        let tasks: Vec<&TaskId> = landings.iter().map(|landing| &landing.ticket.task).collect();
        let names: BTreeSet<String> =
            tasks.into_iter().map(|task| self.scope.task_branch(task).to_ref()).collect();
        let branches = self.find_branches(&names)?;
        let known = self.run_at(branch, branches, &names)?;
        for ParkedLanding { ticket, .. } in &landings {
            let fresh = self.refresh(ticket, &known)?;
            let fresh = self.refreshed_elsewhere(fresh)?;
            let withheld = match &fresh.state {
                TicketState::Withheld { why } => Some(why.to_string()),
                _ => fresh.trouble(),
            };
            if let Some(why) = withheld {
                return reject(format!("'{}' may not land: {why}", ticket.task));
            }
            if fresh.source != ticket.source {
                return reject(format!("the branch of '{}' has grown since", ticket.task));
            }
        }
        self.run = Some(known);
        Ok(landings)
    }

    /// The ticket of exactly this landing.
    fn asked_for(&self, commit: &RawCommit, tickets: &[StoredTicket]) -> Option<Ticket> {
        let event = Event::of(commit).filter(|event| event.branch() == self.scope)?;
        let is_it = |stored: &&StoredTicket| {
            event.task() == Some(&stored.ticket.task) && event.trailers.source() == Some(stored.ticket.source)
        };
        tickets.iter().find(is_it).map(|stored| stored.ticket.clone())
    }
}
