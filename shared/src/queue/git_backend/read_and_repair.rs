//! Reads the queue from git, and repairs what a crash or a person left.

use std::collections::BTreeSet;

use super::GitQueue;
use crate::{
    git::{RawCommit, Ref},
    history::{Event, EventPosition, Run, RunScope, State},
    message::Status,
    name::{Oid, RepoName, TaskId},
    queue::{
        EarlierLanding, LoggedOutcome, Parking, QueueBackend, QueueError, QueueEvent, QueueView, RecentTries,
        StoredTicket, TargetTip, Ticket, TicketState, WithheldReason, accept_or_remove_others_commits,
        store::{OutcomeWritten, folder_of, read_tickets},
        target::MoveResult,
        ticket_facts::{TicketFacts, judge},
    },
    workspace::compare_with,
};

/// How many recent tries determine the size of batches.
const RECENT: usize = 50;
/// Up to this many branches are looked up one by one.
const FEW: usize = 32;

/// A consistent view of the queue.
pub(in crate::queue) struct Seen {
    pub(super) view: QueueView,
    pub(super) position: TargetTip,
}

/// A run, and the task branches that it was read with.
pub(in crate::queue) struct KnownRun {
    run: Run,
    branches: Vec<Ref>,
}

/// The refs of a queue.
struct Listing {
    tickets: Vec<StoredTicket>,
    /// The existing branches of the tasks that tickets mention.
    branches: Vec<Ref>,
    /// The names of these branches, whether they exist or not.
    names: BTreeSet<String>,
    position: TargetTip,
}

impl GitQueue<'_> {
    /// Reads the queue again, closes what has landed, and updates tickets to their branches and tasks.
    pub(super) fn repair_and_read_uncached(&mut self) -> Result<QueueView, QueueError> {
        let Listing { tickets, branches, names, position } = self.list()?;
        let own = tickets.into_iter().map(|stored| (stored.ticket.task.clone(), stored));
        self.stored = own.collect();
        let known = self.run_at(position.tip(), branches, &names)?;
        let mut view = QueueView {
            tip: Some(position.tip()),
            landed: known.run.landed_tasks(),
            recent: self.recent_tries()?,
            is_gated: self.options.is_gated(),
            ..QueueView::default()
        };
        let tickets: Vec<Ticket> = self.stored.values().map(|stored| stored.ticket.clone()).collect();
        for ticket in tickets {
            view.is_gated |= !ticket.phases.is_empty();
            let landing = landing_of(&known.run, &ticket);
            if let Some(commit) = landing {
                self.finish_landing(commit)?;
            }
            match landing {
                Some(commit) if self.is_parked(commit, &position)? => {
                    let parked = Ticket { state: TicketState::Parked { commit }, ..ticket.clone() };
                    view.tickets.push(self.store_if_changed(&ticket, parked)?);
                }
                Some(commit) => view.done.push((ticket, commit)),
                None => {
                    let fresh = self.refresh(&ticket, &known)?;
                    self.save_outdated_resolution(&ticket, &fresh)?;
                    let fresh = self.discard_untrusted_resolution(fresh, position.tip())?;
                    let fresh = match &fresh.state {
                        TicketState::Withheld { .. } | TicketState::Lost | TicketState::Reverted(_) => fresh,
                        _ => self.refreshed_elsewhere(fresh)?,
                    };
                    view.tickets.push(self.store_if_changed(&ticket, fresh)?);
                }
            }
        }
        self.run = Some(known);
        view.tickets.sort_by(|a, b| a.task.cmp(&b.task));
        self.close_all(&view.done, LoggedOutcome::Landed, OutcomeWritten::Perhaps)?;
        // Report landed tickets once only.
        self.seen = Some(Seen { view: QueueView { done: Vec::new(), ..view.clone() }, position });
        Ok(view)
    }

    /// The run as last read.
    pub(super) fn history(&self) -> Option<&Run> {
        self.run.as_ref().map(|known| &known.run)
    }

    /// Lists tickets, the target and its landing ref with one git command; then the branches of the tasks that tickets
    /// mention. All other task branches are ignored: there are ever more of them, and they do not affect what may land.
    fn list(&mut self) -> Result<Listing, QueueError> {
        let folder = folder_of(self.scope);
        let names = [&folder, &self.into.to_ref(), &self.into.landing_ref()];
        let notes = self.repository.start_listing_notes(&names.map(String::as_str))?.finish()?;
        let (tickets, others): (Vec<_>, Vec<_>) =
            notes.into_iter().partition(|(found, _)| found.name.starts_with(&folder));
        let refs: Vec<Ref> = others.into_iter().map(|(found, _)| found).collect();
        let position = self.target().find_among(&refs)?;
        let position = position.ok_or_else(|| QueueError::NoTarget(self.into.clone()))?;
        let position = self.checked(position)?;
        self.take_in_others_commits()?;
        let mut tickets = read_tickets(tickets);
        tickets.retain(|stored| stored.ticket.into == *self.into);
        let spoken_of =
            tickets.iter().flat_map(|stored| stored.ticket.needs.iter().chain([&stored.ticket.task]));
        let tasks: BTreeSet<&TaskId> = spoken_of.chain(&self.options.rules.only).collect();
        let names: BTreeSet<String> =
            tasks.into_iter().map(|task| self.scope.task_branch(task).to_ref()).collect();
        let branches = self.find_branches(&names)?;
        Ok(Listing { tickets, branches, names, position })
    }

    /// Accepts commits of others on the target, and reports them. Forged ones are removed.
    pub(super) fn take_in_others_commits(&mut self) -> Result<(), QueueError> {
        let session = self.options.worktrees.session.as_ref();
        for found in accept_or_remove_others_commits(self.repository, (self.into, self.scope), session)? {
            (self.on_event)(QueueEvent::Foreign(found));
        }
        Ok(())
    }

    pub(super) fn find_branches(&self, names: &BTreeSet<String>) -> Result<Vec<Ref>, QueueError> {
        if names.len() > FEW {
            return Ok(self.repository.list_refs(&[&self.scope.task_refs()])?);
        }
        let mut branches = Vec::new();
        for name in names {
            let target = self.repository.find_ref(name)?;
            branches.extend(target.map(|target| Ref { name: name.clone(), target }));
        }
        Ok(branches)
    }

    /// The state of the run at `tip`. It is read again only if the tip or a branch has moved.
    pub(super) fn run_at(
        &mut self,
        tip: Oid,
        branches: Vec<Ref>,
        names: &BTreeSet<String>,
    ) -> Result<KnownRun, QueueError> {
        let before = self.run.take();
        if let Some(known) = &before
            && known.run.scope.tip == Some(tip)
            && branches.iter().all(|branch| known.branches.contains(branch))
            && known.branches.iter().all(|branch| !names.contains(&branch.name) || branches.contains(branch))
            && let Some(known) = before
        {
            return Ok(known);
        }
        let scope = RunScope { branch: self.scope.clone(), tip: Some(tip) };
        let mut run =
            Run::scan_again(self.repository, scope, branches.clone(), &self.options.memory.commits)?;
        // Once in each drain: what is taken back there meanwhile is found by the next one.
        if let Some(before) = before {
            keep_reverted(&before.run, &mut run);
            return Ok(KnownRun { run, branches });
        }
        let names: BTreeSet<RepoName> = self.options.plan.task_repos.values().flatten().cloned().collect();
        for name in names {
            if let Some(target) = self.find_target(&name) {
                compare_with(&target.repository, (&name, (target.branch, target.head)), &mut run)?;
            }
        }
        Ok(KnownRun { run, branches })
    }

    /// Adds the commits that have just landed to the known run, unless something else has come to the target.
    pub(super) fn add_landed(&mut self, now: &TargetTip, base: Oid, last: Oid, commits: &[RawCommit]) {
        let Some(known) = self.run.as_mut().filter(|known| known.run.scope.tip == Some(base)) else {
            return;
        };
        if now.branch == last && now.parked.is_none() {
            commits.iter().filter_map(Event::of).for_each(|event| known.run.grow(event, EventPosition::Run));
            known.run.scope.tip = Some(last);
        }
    }

    /// Moves the branch to the landing parked for it, if its checkout permits it now.
    pub(in crate::queue) fn land_parked(&mut self) -> Result<Option<Parking>, QueueError> {
        let position = self.target().require()?;
        if let Some(under) = self.target().clear_stale(&position)? {
            let is_parked = |stored: &StoredTicket| {
                stored.ticket.into == *self.into && matches!(stored.ticket.state, TicketState::Parked { .. })
            };
            let words = match self.store.load(Some(self.scope))?.iter().any(is_parked) {
                true => format!(
                    "the parked tasks are merged and tested again, because '{}' has moved (the old landing is saved as {under})",
                    self.into
                ),
                false => format!(
                    "{} is removed, because no task of this run is parked (it is saved as {under})",
                    self.into.landing_ref()
                ),
            };
            (self.on_event)(QueueEvent::note(words));
        }
        let position = self.checked(position)?;
        let Some(parked) = position.parked else {
            return Ok(None);
        };
        match self.target().advance(position.branch, parked)? {
            MoveResult::Refused(parking) => Ok(Some(parking)),
            MoveResult::Done | MoveResult::TargetChanged => Ok(None),
        }
    }

    /// The ticket with its current state: its branch may have grown, or its task may no longer be complete.
    pub(super) fn refresh(&self, ticket: &Ticket, known: &KnownRun) -> Result<Ticket, QueueError> {
        let branch = self.scope.task_branch(&ticket.task).to_ref();
        let tip = known.branches.iter().find(|found| found.name == branch).map(|found| found.target);
        let facts = self.find_facts(ticket, known, tip)?;
        let may_land = facts.trouble.is_none() && facts.withheld.is_none();
        let fresh = Ticket { state: judge(&ticket.state, facts), ..ticket.clone() };
        let Some(source) = tip.filter(|tip| may_land && *tip != ticket.source) else { return Ok(fresh) };
        Ok(Ticket { source, held: None, tries: Vec::new(), resolved: None, has_persons_work: false, ..fresh })
    }

    /// Saves a person's resolution that [`Self::refresh`] has taken out of a ticket.
    pub(super) fn save_outdated_resolution(&self, before: &Ticket, after: &Ticket) -> Result<(), QueueError> {
        match before.resolved.filter(|_| before.has_persons_work && after.source != before.source) {
            Some(resolved) => self.save(before, resolved).map(drop),
            None => Ok(()),
        }
    }

    /// What this drain knows about a ticket, whose branch is at `tip`.
    fn find_facts(
        &self,
        ticket: &Ticket,
        known: &KnownRun,
        tip: Option<Oid>,
    ) -> Result<TicketFacts, QueueError> {
        let trouble = ticket.find_trouble(self.repository, &known.run, tip)?;
        let withheld = match trouble {
            Some(_) => None,
            None => self.find_withheld(ticket, known, tip)?,
        };
        Ok(TicketFacts {
            trouble,
            withheld,
            has_failed_by_force: ticket.has_failed_by_force(&known.run, tip),
            is_tried_again: tip.is_some_and(|tip| tip != ticket.source) || self.is_now_allowed(ticket),
        })
    }

    /// Why a ticket must not land, also if its task is complete.
    fn find_withheld(
        &self,
        ticket: &Ticket,
        known: &KnownRun,
        tip: Option<Oid>,
    ) -> Result<Option<WithheldReason>, QueueError> {
        // The flag in the ticket proves nothing, because agents can write tickets. Only the command line can force a landing.
        let is_forced = self.options.forced.contains(&ticket.task);
        Ok(match ticket.find_withheld(self.repository, &known.run, tip)? {
            Some(why) if !is_forced || why == WithheldReason::Rewritten => Some(why),
            _ if self.options.memory.distrusted.has(&ticket.task) => Some(WithheldReason::Unrecorded),
            _ => self.find_unapproved_tests(ticket, known),
        })
    }

    /// Withholds a ticket that names, or needs, tests that are not among the approved ones.
    fn find_unapproved_tests(&self, ticket: &Ticket, known: &KnownRun) -> Option<WithheldReason> {
        let phases = &self.options.plan.phases;
        if let Some(unknown) = ticket.phases.iter().find(|phase| !phases.contains_key(*phase)) {
            return Some(WithheldReason::UnknownTests { phase: unknown.clone() });
        }
        let landed = known.run.landed_tasks();
        let is_done = |leaf: &TaskId| landed.contains(leaf) || self.stored.contains_key(leaf);
        let completed = self.options.phases_completed(&ticket.task, is_done);
        let phase = completed.into_iter().find(|phase| !phases.contains_key(phase))?;
        Some(WithheldReason::UnapprovedTests { phase })
    }

    fn is_parked(&self, commit: Oid, position: &TargetTip) -> Result<bool, QueueError> {
        Ok(position.parked.is_some() && !self.repository.is_ancestor(commit, position.branch)?)
    }

    fn recent_tries(&self) -> Result<RecentTries, QueueError> {
        if self.options.gates.is_empty() {
            return Ok(RecentTries::default());
        }
        let log = self.store.load_log(self.into, RECENT)?;
        let tries = log.iter().filter(|entry| entry.outcome.is_try()).take(RECENT);
        let reds = tries.clone().filter(|entry| entry.outcome == LoggedOutcome::Red);
        Ok(RecentTries { tries: tries.clone().count(), reds: reds.count() })
    }
}

/// The merge commit of a ticket on the target, if it has landed. A crash may have left the ticket open.
pub(super) fn landing_of(run: &Run, ticket: &Ticket) -> Option<Oid> {
    run.find(&ticket.task)?.find_landing(ticket.source)
}

/// Keeps what is known about tasks that were taken back in another repository.
fn keep_reverted(before: &Run, run: &mut Run) {
    for history in &mut run.tasks {
        let reverted = before.find(&history.id).and_then(|known| known.reverted.clone());
        if let Some(reverted) = reverted.filter(|reverted| reverted.place.is_some()) {
            history.state.state = State::Reverted;
            history.reverted = Some(reverted);
        }
    }
}

// The tasks that landed while another one was worked on: only these can be why it fails a gate on the target and passes it
// on its own branch.

/// How many of the newest landings are compared.
const MAX_LANDINGS: usize = 64;

impl GitQueue<'_> {
    /// The landings on the target that the source of a ticket does not contain, oldest first.
    pub(super) fn landings_since(&mut self, ticket: &Ticket) -> Result<Vec<EarlierLanding>, QueueError> {
        let tip = self.tip()?;
        let line = ["--first-parent".into(), tip.to_string(), format!("^{}", ticket.source)];
        let mut found = Vec::new();
        for commit in self.repository.stream_commits(&line)? {
            found.extend(self.earlier_landing(&commit?).filter(|found| !ticket.needs.contains(&found.task)));
            if found.len() == MAX_LANDINGS {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    fn earlier_landing(&self, commit: &RawCommit) -> Option<EarlierLanding> {
        let event = Event::of(commit).filter(|event| event.branch() == self.scope)?;
        let task = event.task().filter(|_| event.status() == Status::Merge)?.clone();
        Some(EarlierLanding { task, before: commit.parents().next()? })
    }
}
