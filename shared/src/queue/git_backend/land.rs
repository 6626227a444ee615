//! Lands: writes merge commits, moves the target, and verifies the result.

use std::collections::{BTreeMap, HashSet};

use super::{
    DrainMerge, GitQueue,
    other_repos::{OtherLanding, OtherMoves},
    parked::KNOWN_PARKINGS,
    run_gates,
};
use crate::{
    coordination::{PublishedLanding, SharedLanding},
    git::note_landing,
    history::Run,
    message::{Body, Key, Message, Status, Subject, SubjectParts},
    mutex::MutexExt,
    name::{Attempt, Oid, TaskId},
    pipeline::KnownRed,
    queue::{
        Gate, LandingStep, LoggedOutcome, Published, QueueBackend, QueueError, TargetTip, Ticket,
        TicketState, delete_branch::delete_unused_branches, store::OutcomeWritten, target::MoveResult,
    },
};

/// The result of a merge that is not committed yet.
#[derive(Clone, Copy)]
pub(super) struct MergedTree {
    /// The commit that was merged into.
    pub(super) onto: Oid,
    /// The tree of the result.
    pub(super) tree: Oid,
}

impl GitQueue<'_> {
    /// Writes the commit that joins `onto` with a ticket's source. Its message names the gates that it has to pass, and
    /// those that failed before.
    pub(super) fn write_merge(
        &mut self,
        MergedTree { onto, tree }: MergedTree,
        ticket: &Ticket,
        landings: Vec<OtherLanding>,
        gates: &[Gate],
        red: &[Gate],
    ) -> Result<LandingStep, QueueError> {
        let gates: Vec<Gate> =
            gates.iter().filter(|gate| !red.iter().any(|red| red.is_same(gate))).cloned().collect();
        let message = self.message(ticket, &landings, &gates, red)?;
        let parents = [onto, ticket.source];
        let commit = self.repository.write_commit_with_parents(tree, &parents, &message, self.signing)?;
        self.trees.insert(commit, tree);
        self.merges.insert(commit, DrainMerge::new(onto, ticket.task.clone(), Some(landings)));
        Ok(LandingStep { ticket: ticket.clone(), commit, gates })
    }

    fn message(
        &self,
        ticket: &Ticket,
        landings: &[OtherLanding],
        gates: &[Gate],
        red: &[Gate],
    ) -> Result<String, QueueError> {
        let status = Status::Merge;
        let wording = SubjectParts { name: &ticket.name, attempt: Attempt(0), max: 0 };
        let subject = Subject {
            branch: ticket.scope.clone(),
            task: Some(ticket.task.clone()),
            status,
            text: wording.text(status),
        };
        // A gate that runs in several repositories is named once.
        let names = |gates: &[Gate]| -> Vec<String> {
            let mut known = HashSet::new();
            let new = gates.iter().filter(|gate| known.insert(&gate.name));
            new.map(|gate| gate.name.clone()).collect()
        };
        let gate = if gates.is_empty() { "none".to_owned() } else { names(gates).join(", ") };
        let body = match red {
            [] => Body::default(),
            red => Body::new("Gates that failed before:", &names(red).join("\n")),
        };
        let spent = ticket.paid.expense().map(|expense| expense.trailers());
        let mut trailers = spent.unwrap_or_default();
        let _ = trailers.set(Key::Source, ticket.source.to_string());
        let _ = trailers.set(Key::Gate, gate);
        if let Some(landed) = Self::landed_in(landings) {
            let _ = trailers.set(Key::LandedIn, landed.to_string());
        }
        if let Some(by) = ticket.resolver() {
            let _ = trailers.set(Key::ResolvedBy, by.trailer());
        }
        if let Some(remote_work) = &self.options.remote_work {
            let _ = trailers.set(Key::Worker, remote_work.worker().as_str());
        }
        if let Some(session) = &ticket.session {
            let _ = trailers.set(Key::Session, session.as_str());
        }
        let message = Message::compose(subject, body, &trailers)
            .map_err(|faults| QueueError::Malformed { task: ticket.task.clone(), faults })?;
        Ok(message.render())
    }

    /// The gates for a change from one commit to another. If a task works in several repositories, gates run in each
    /// that it has changed, and its own tests in the first that it names.
    pub(super) fn gates_for(
        &mut self,
        ticket: &Ticket,
        from: Oid,
        to: Oid,
        landings: &[OtherLanding],
    ) -> Result<Vec<Gate>, QueueError> {
        let (options, task) = (self.options, &ticket.task);
        let others = options.others_of(task);
        let mut of_repos = Vec::new();
        for section in &others {
            let landed = Self::landed_in(landings).and_then(|landed| landed.0.get(&section.name).copied());
            of_repos.extend(self.gates_in_other_repo(section, task, from, landed)?);
        }
        // The task's report lands here even if all of its work is in other repositories. It triggers no gate.
        let report = format!(":(exclude,glob){}/{task}_run_*.json", options.report_dir.trim_matches('/'));
        for gate in options.gates_in(None, task) {
            let is_asked = match (gate.when.as_deref(), others.as_slice()) {
                (None, []) => true,
                (Some(paths), []) => self.repository.touches(from, to, &[paths])?,
                (paths, _) => self.repository.touches(from, to, &[paths.unwrap_or("."), &report])?,
            };
            if is_asked {
                of_repos.push(gate);
            }
        }
        // Without configured gates, they are tests.
        let (mut gates, of_repos) =
            if options.gates.is_empty() { (Vec::new(), of_repos) } else { (of_repos, Vec::new()) };
        let phases = self.phases_of(ticket, from);
        let of_phases = phases.iter().filter_map(|phase| options.plan.phases.get(phase)).flatten();
        gates.extend(of_phases.map(|gate| options.placed(gate, None)));
        let tests = options.tests_of(task);
        // A resolution has not been reviewed, so a failure of the target does not excuse it.
        let is_own = |gate: &Gate| gate.own || ticket.resolved.is_some();
        let placed = tests.iter().map(|gate| options.placed(gate, options.tested_in(task)));
        let placed = placed.chain(of_repos);
        let known_red = if tests.is_empty() { KnownRed::default() } else { self.known_red(ticket, from)? };
        let known = |gate: &Gate| if gate.repo.is_none() { known_red.clone() } else { KnownRed::default() };
        gates.extend(placed.map(|gate| Gate { own: is_own(&gate), known_red: known(&gate), ..gate }));
        Ok(gates)
    }

    /// The phases whose own tests gate a landing on `from`: those that the ticket names, and those that it completes.
    /// The latter are computed, because anyone who can write a ref can remove a phase from a ticket.
    fn phases_of(&self, ticket: &Ticket, from: Oid) -> Vec<TaskId> {
        let mut landed = self.history().map(Run::landed_tasks).unwrap_or_default();
        landed.extend(self.merges_below(from).map(|(_, merge)| merge.task.clone()));
        let completed = self.options.phases_completed(&ticket.task, |leaf| landed.contains(leaf));
        let unnamed = completed.into_iter().filter(|phase| !ticket.phases.contains(phase));
        ticket.phases.iter().cloned().chain(unnamed).collect()
    }

    /// Moves the target and verifies it, or parks the landing.
    pub(super) fn publish(&mut self, base: Oid, steps: &[LandingStep]) -> Result<Published, QueueError> {
        let Some(last) = steps.last() else {
            return Ok(Published::Landed);
        };
        self.claim.require()?;
        // Read before the commits of others are looked at: one that appears after this makes `advance` fail, so nothing
        // lands on a commit that was not looked at. The check of a parked landing needs the last view until here.
        let position = self.position()?;
        self.take_in_others_commits()?;
        self.forget_view();
        if position.tip() != base {
            return Ok(Published::TargetChanged);
        }
        let merges: Vec<Oid> = steps.iter().map(|step| step.commit).collect();
        // No test may run in the session's worktrees of other repositories while these are updated. Taken before they are
        // checked: after the push below, the landing must not be refused there. Taken before all other mutexes.
        let _checkouts = self.options.memory.other_checkouts.hold();
        let moves = match self.plan_moves(&merges)? {
            OtherMoves::Ready(moves) => moves,
            OtherMoves::TargetChanged => return Ok(Published::TargetChanged),
            OtherMoves::Refused(why) => return Ok(Published::Refused(why)),
        };
        let tasks: Vec<TaskId> = steps.iter().map(|step| step.ticket.task.clone()).collect();
        let gate_results = self.list_gate_results(steps)?;
        let landing = PublishedLanding { base, tip: last.commit, tasks: &tasks, gate_results: &gate_results };
        let published = match &self.options.remote_work {
            Some(remote_work) => remote_work.land(&landing)?,
            None => SharedLanding::Done,
        };
        match published {
            SharedLanding::Done => {}
            SharedLanding::TargetChanged(to) => {
                self.target().follow(to)?;
                self.forget_view();
                return Ok(Published::TargetChanged);
            }
            SharedLanding::OtherWorkerLands => return Err(QueueError::LandedElsewhere(self.into.clone())),
        }
        // The moment of landing. If the process is killed after it, `repair_and_read` finds the merge
        // commits on the target, and does the rest.
        match self.target().advance(position.branch, last.commit)? {
            MoveResult::TargetChanged => Ok(Published::TargetChanged),
            MoveResult::Refused(parking) => {
                self.target().park(&position, last.commit)?;
                self.land_elsewhere(&moves)?;
                KNOWN_PARKINGS.add(last.commit);
                for step in steps {
                    note_landing(step.commit);
                    let state = TicketState::Parked { commit: step.commit };
                    self.set_state(&step.ticket, state)?;
                }
                Ok(Published::Parked(parking))
            }
            MoveResult::Done => {
                self.land_elsewhere(&moves)?;
                let position = self.prove(base, steps)?;
                let landed: Vec<(Ticket, Oid)> =
                    steps.iter().map(|step| (step.ticket.clone(), step.commit)).collect();
                self.close_all(&landed, LoggedOutcome::Landed, OutcomeWritten::New)?;
                self.target().clear_stale(&position)?;
                if self.options.merge.delete_branches {
                    delete_unused_branches(self.repository, steps)?;
                }
                Ok(Published::Landed)
            }
        }
    }

    /// The refs with the results of the gates of these steps. Several steps can be tested together: then the gates ran on
    /// the last of them.
    fn list_gate_results(&self, steps: &[LandingStep]) -> Result<Vec<(String, Oid)>, QueueError> {
        let trees: Vec<Oid> = steps.iter().filter_map(|step| self.trees.get(&step.commit).copied()).collect();
        let gates = steps.iter().flat_map(|step| &step.gates);
        let names = gates.flat_map(|gate| trees.iter().map(move |tree| run_gates::ref_of(gate, *tree)));
        let mut results = BTreeMap::new();
        for name in names {
            let found = self.repository.find_ref(&name)?;
            results.extend(found.map(|commit| (name, commit)));
        }
        Ok(results.into_iter().collect())
    }

    /// Verifies a landing: the branch is at the last step or after it, and every step joins the one before with its
    /// source and has the tree that was tested.
    fn prove(&mut self, base: Oid, steps: &[LandingStep]) -> Result<TargetTip, QueueError> {
        let commits: Vec<Oid> = steps.iter().map(|step| step.commit).collect();
        let last = commits.last().copied().unwrap_or(base);
        let unproved = |what: &str| QueueError::Unproved {
            into: self.into.clone(),
            commit: last,
            what: what.to_owned(),
        };
        let now = self.target().require()?;
        if now.branch != last && !self.repository.is_ancestor(last, now.branch)? {
            return Err(unproved("it is missing"));
        }
        let mut before = base;
        let found = self.repository.load_commits(&commits)?;
        if found.len() != steps.len() {
            return Err(unproved("it is incomplete"));
        }
        for (raw, step) in found.iter().zip(steps) {
            let parents: Vec<Oid> = raw.parents().collect();
            let tree = raw
                .header()
                .strip_prefix(b"tree ")
                .and_then(|rest| Oid::from_hex(rest.split(|b| *b == b'\n').next().unwrap_or_default()));
            if parents != [before, step.ticket.source] || tree != self.trees.get(&step.commit).copied() {
                return Err(unproved(&format!(
                    "the landed tree of '{}' is not the tested one",
                    step.ticket.task
                )));
            }
            before = step.commit;
        }
        self.add_landed(&now, base, last, &found);
        Ok(now)
    }
}
