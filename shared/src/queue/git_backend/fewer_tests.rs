//! Compares how many tests the gates of a landing ran with how many ran before: a landing must not pass its gates because
//! tests were removed or skipped, by a task or in the resolution of a conflict. The merge commit records the numbers, so
//! that the next landing is compared with them, on whichever machine it is made.

use super::{GitQueue, run_gates::Answer};
use crate::{
    git::GitError,
    history::{DENIED, Event},
    message::{self, Body, Message, MessageReading, Status},
    name::{Oid, TaskId},
    pipeline::{CommandCounts, TestTally, find_count_key, has_permission, permission_advice},
    queue::{Gate, LandingStep, QueueError, RememberedResults, Ticket, TicketState},
};

/// The merges that a gate tests together.
struct TestedMerges {
    /// Their tasks.
    tasks: Vec<TaskId>,
    /// The target below them.
    base: Oid,
}

impl GitQueue<'_> {
    /// Why a gate that passed on a commit does not count, because fewer tests ran than before.
    pub(super) fn find_fewer_tests(
        &mut self,
        gate: &Gate,
        gates: &[Gate],
        commit: Oid,
        tally: TestTally,
    ) -> Result<Option<String>, QueueError> {
        let Some(key) = self.count_key(gate) else { return Ok(None) };
        if let Some(merge) = self.merges.get_mut(&commit) {
            merge.counted.set(&key, tally);
        }
        let Some(merges) = self.find_tested_merges(commit) else { return Ok(None) };
        if self.allows_fewer(self.find_phase(gate), &merges.tasks) {
            return Ok(None);
        }
        let before = self.counts_before()?;
        let known_fall = before.describe_decrease(&key, tally);
        // If nothing is recorded yet, only the target can tell what ran before.
        let is_first = !before.has(&key) && !tally.is_unknown();
        let fall = if known_fall.is_some() || is_first {
            self.compare_with_base(gate, &key, &merges, known_fall.clone(), tally)?
        } else {
            None
        };
        let is_empty_phase = || self.find_empty_phase(gate, gates, commit, &before);
        let fall = if known_fall.is_some() { fall } else { fall.or_else(is_empty_phase) };
        let place = match (self.find_phase(gate), merges.tasks.as_slice()) {
            (None, [task]) => task.to_string(),
            (None, _) => "the task".to_owned(),
            (Some(_), _) => "a task of the phase".to_owned(),
        };
        Ok(fall.map(|fall| format!("{fall}; {}", permission_advice(&place))))
    }

    /// Runs a gate without the merges that it tested. Others may have removed the tests: then they are missing there, too.
    fn compare_with_base(
        &mut self,
        gate: &Gate,
        key: &str,
        merges: &TestedMerges,
        fall: Option<String>,
        now: TestTally,
    ) -> Result<Option<String>, QueueError> {
        let base = self.find_counted_base(gate, merges)?;
        let Some(record) = self.result_of(gate, base, RememberedResults::Any)? else { return Ok(fall) };
        if record.answer != Answer::Green && record.tally.is_unknown() {
            return Ok(fall);
        }
        let mut at_base = CommandCounts::default();
        at_base.set(key, record.tally);
        Ok(at_base.describe_decrease(key, now))
    }

    /// The name under which the tests of a gate are recorded.
    fn count_key(&self, gate: &Gate) -> Option<String> {
        find_count_key(&gate.command, gate.repo.as_ref(), &self.options.secrets)
    }

    /// The merges of this drain up to a commit that have not landed yet.
    fn find_tested_merges(&self, commit: Oid) -> Option<TestedMerges> {
        let base = self.open_merges_below(commit).last()?.onto;
        let tasks = self.open_merges_below(commit).map(|merge| merge.task.clone()).collect();
        Some(TestedMerges { tasks, base })
    }

    /// How many tests each command ran before, according to the run's history.
    fn counts_before(&mut self) -> Result<CommandCounts, GitError> {
        let Some(run) = self.history() else { return Ok(CommandCounts::default()) };
        let tip = run.scope.tip;
        if let Some((_, known)) = self.counts_before.as_ref().filter(|(at, _)| *at == tip) {
            return Ok(known.clone());
        }
        let before = CommandCounts::before(self.repository, run, None)?;
        self.counts_before = Some((tip, before.clone()));
        Ok(before)
    }

    /// The phase whose own tests a gate runs.
    fn find_phase(&self, gate: &Gate) -> Option<&TaskId> {
        Some(gate).filter(|gate| gate.own && gate.is_test).and_then(|gate| self.find_phase_named(&gate.name))
    }

    fn find_phase_named(&self, gate: &str) -> Option<&TaskId> {
        let is_its = |other: &Gate| other.name == gate;
        self.options.plan.phases.iter().find(|(_, gates)| gates.iter().any(is_its)).map(|(phase, _)| phase)
    }

    /// Whether a gate that a ticket failed ran fewer tests, and that is allowed now.
    pub(super) fn is_now_allowed(&self, ticket: &Ticket) -> bool {
        match &ticket.state {
            TicketState::Red { gate, ran_fewer: true, .. } => {
                self.allows_fewer(self.find_phase_named(gate), std::slice::from_ref(&ticket.task))
            }
            _ => false,
        }
    }

    /// The tasks of a phase.
    fn leaves_of(&self, phase: &TaskId) -> &[TaskId] {
        self.options.plan.leaves.get(phase).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether these tasks, or those of the phase that is tested, may leave fewer tests. A task that passed its test step
    /// because that was allowed may land, too.
    fn allows_fewer(&self, phase: Option<&TaskId>, tasks: &[TaskId]) -> bool {
        let leaves = phase.map(|phase| self.leaves_of(phase)).unwrap_or_default();
        let is_allowed = |task: &TaskId| {
            let allowed = self.options.plan.allowed.get(task).map(Vec::as_slice).unwrap_or_default();
            let history = self.history().and_then(|run| run.find(task));
            self.options.protection.allows_fewer_tests(allowed) || history.is_some_and(has_permission)
        };
        self.options.allow_fewer || tasks.iter().chain(leaves).any(is_allowed)
    }

    /// Where the tests of a gate are counted for comparison: on the target, or for the tests of a phase, before the first
    /// task of it landed. In other repositories only the current target is known.
    fn find_counted_base(&self, gate: &Gate, merges: &TestedMerges) -> Result<Oid, GitError> {
        let phase = self.find_phase(gate).filter(|_| gate.repo.is_none());
        let Some((phase, run)) = phase.zip(self.history()) else { return Ok(merges.base) };
        let landed = self.leaves_of(phase).iter().filter_map(|task| run.find(task));
        let landed = landed.flat_map(|history| &history.events);
        let mut first: Option<&Event> = None;
        for event in landed.filter(|event| event.status() == Status::Merge) {
            // Several tasks may have landed in the same second.
            let is_earlier = match first {
                Some(first) if first.time == event.time => {
                    self.repository.is_ancestor(event.commit, first.commit)?
                }
                Some(first) => event.time < first.time,
                None => true,
            };
            first = if is_earlier { Some(event) } else { first };
        }
        let first: Vec<Oid> = first.iter().map(|event| event.commit).collect();
        let commit = self.repository.load_commits(&first)?.pop();
        Ok(commit.and_then(|commit| commit.parents().next()).unwrap_or(merges.base))
    }

    /// Why the tests of a phase have tested nothing, once the last of its gates has run.
    fn find_empty_phase(
        &self,
        gate: &Gate,
        gates: &[Gate],
        commit: Oid,
        before: &CommandCounts,
    ) -> Option<String> {
        let phase = self.find_phase(gate)?;
        let own: Vec<&Gate> = gates.iter().filter(|gate| self.find_phase(gate) == Some(phase)).collect();
        if own.last().is_none_or(|last| !last.is_same(gate)) {
            return None;
        }
        let keys: Vec<String> = own.iter().filter_map(|gate| self.count_key(gate)).collect();
        let sum = self.merges.get(&commit)?.counted.sum_of(&keys);
        before.find_nothing_tested(&keys, sum)
    }

    /// Writes the last of these merges again, with the numbers of its tests and with what the sandbox refused to its gates. Its
    /// tree and its parents are those that were tested.
    pub(super) fn record_tests(&mut self, steps: &[LandingStep]) -> Result<Vec<LandingStep>, QueueError> {
        let mut steps = steps.to_vec();
        let Some(last) = steps.last_mut() else { return Ok(steps) };
        let Some(merge) = self.merges.get(&last.commit).cloned() else { return Ok(steps) };
        let counted = merge.counted.clone().without_uncounted(&self.counts_before()?).quoted();
        let notes = match merge.denials.as_slice() {
            [] => counted,
            denials => counted.with(DENIED, &denials.join("\n")),
        };
        let Some(raw) = self.repository.load_commits(&[last.commit])?.pop() else { return Ok(steps) };
        let MessageReading::WellFormed(message) = message::read(raw.message()) else { return Ok(steps) };
        if notes == Body::default() {
            return Ok(steps);
        }
        let body = Body::parse(&message.body).followed_by(notes);
        let message = Message::compose(message.subject.clone(), body, &message.trailers)
            .map_err(|faults| QueueError::Malformed { task: last.ticket.task.clone(), faults })?;
        let tree = self.tree_of(last.commit)?;
        let parents: Vec<Oid> = raw.parents().collect();
        let commit =
            self.repository.write_commit_with_parents(tree, &parents, &message.render(), self.signing)?;
        self.trees.insert(commit, tree);
        self.merges.insert(commit, merge);
        last.commit = commit;
        Ok(steps)
    }
}
