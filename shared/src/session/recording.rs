//! The calls that a session recorded, for a replay from one of its turns.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{RecordKind, SessionError, SessionPoint, SessionReader, StoredRecord, Turn, point::run_of};
use crate::{
    history::Event,
    message::{Status, Step},
    name::{Attempt, Oid, SessionId, TaskId},
};

/// The calls that were recorded after a turn of a session.
#[derive(Debug)]
pub struct Recording {
    /// The session.
    pub session: SessionId,
    /// Its newest record, from which all of its code is reachable.
    pub newest: Oid,
    /// The calls of each task, in order.
    pub calls: HashMap<TaskId, Vec<RecordedCall>>,
    /// The last commit with work of each task before that turn. What was taken back since, by `reset --drop` for example,
    /// is the difference to the task's next commit.
    pub work_before: HashMap<TaskId, Oid>,
}

/// One call of an agent.
#[derive(Debug)]
pub struct RecordedCall {
    /// The step that it was called for.
    pub step: Step,
    attempt: Attempt,
    /// Its turns.
    pub turns: Vec<RecordedTurn>,
    /// The event that ended it; `None` if it has no recorded end.
    pub end: Option<Event>,
    /// The commit that recorded its first interruption, if it was interrupted and continued: its work up to then was
    /// committed there, before its end.
    pub interrupted: Option<Oid>,
    /// The heads of the session's branches in other repositories at its end.
    pub beside: BTreeMap<String, Oid>,
}

/// One turn.
#[derive(Debug)]
pub struct RecordedTurn {
    /// The recorded turn.
    pub turn: Turn,
    /// The commit of its transcript.
    pub transcript: Oid,
}

/// The point at which a recording starts, and the commits before it.
struct Fork {
    turn: u32,
    before: HashSet<Oid>,
}

impl Fork {
    fn has_event(&self, event: &Event) -> bool {
        self.before.contains(&event.commit)
    }

    fn has_turn(&self, turn: &Turn, head: Oid) -> bool {
        turn.number <= self.turn && self.before.contains(&head)
    }
}

/// A turn that is being assigned to its call.
struct Found {
    turn: Turn,
    is_before: bool,
}

/// A call under construction.
struct Draft {
    step: Step,
    attempt: Attempt,
    turns: Vec<Found>,
    end: Option<Event>,
}

/// The calls of each task, and the heads in other repositories by the commits that ended steps.
#[derive(Default)]
struct Drafts {
    calls: HashMap<TaskId, Vec<Draft>>,
    snapshots: HashMap<Oid, BTreeMap<String, Oid>>,
}

impl SessionReader<'_> {
    /// The calls after a turn. Every turn among them must have a transcript.
    pub fn recording(&self, newest: &StoredRecord, turn: u32) -> Result<Recording, SessionError> {
        let session = &newest.record.session;
        let fork = self.fork(newest, turn)?;
        let Drafts { calls: mut drafts, mut snapshots } = self.drafts(newest, &fork)?;
        for task in run_of(self.repository, newest)?.tasks {
            let drafts = drafts.entry(task.id).or_default();
            end_all(drafts, task.events);
        }
        let transcripts = self.list_transcripts(session)?;
        let (mut calls, mut work_before) = (HashMap::new(), HashMap::new());
        let mut missing = Vec::new();
        for (task, drafts) in drafts {
            let last = drafts.iter().rev().find_map(|draft| draft.last_before(&fork));
            work_before.extend(last.map(|last| (task.clone(), last)));
            let later = drafts.into_iter().filter_map(|draft| draft.after(&fork));
            let mut find = |turn: Turn| {
                let transcript = transcripts.get(&turn.number).copied();
                missing.extend(transcript.is_none().then_some(turn.number));
                Some(RecordedTurn { turn, transcript: transcript? })
            };
            let later = later.map(|draft| RecordedCall {
                beside: draft.end.as_ref().and_then(|end| snapshots.remove(&end.commit)).unwrap_or_default(),
                step: draft.step,
                attempt: draft.attempt,
                interrupted: None,
                turns: draft.turns.into_iter().filter_map(|found| find(found.turn)).collect(),
                end: draft.end,
            });
            calls.insert(task, joined(later));
        }
        match missing.into_iter().min() {
            Some(number) => Err(SessionError::NoTranscript { session: session.clone(), number }),
            None => Ok(Recording { session: session.clone(), newest: newest.commit, calls, work_before }),
        }
    }

    fn fork(&self, newest: &StoredRecord, turn: u32) -> Result<Fork, SessionError> {
        let base = self.start_of(newest)?.record.context.head;
        let SessionPoint { head, tip, failed } = self.point(newest, turn)?;
        let mut before: HashSet<Oid> =
            self.repository.list_between(&[head, tip], &[base])?.into_iter().collect();
        failed.map(|failed| before.remove(&failed));
        before.insert(base);
        Ok(Fork { turn, before })
    }

    /// Groups the turns of each task into calls. The end of a step and a resume start another call.
    fn drafts(&self, newest: &StoredRecord, fork: &Fork) -> Result<Drafts, SessionError> {
        let mut records: Vec<StoredRecord> = self.walk(newest)?.collect::<Result<_, _>>()?;
        records.reverse();
        let Drafts { calls: mut drafts, mut snapshots } = Drafts::default();
        let mut open: HashSet<TaskId> = HashSet::new();
        for StoredRecord { record, .. } in records {
            let head = record.context.head;
            match record.kind {
                RecordKind::Resume(_) => {
                    for task in open.drain() {
                        drop_cut_review(drafts.get_mut(&task));
                    }
                }
                // A process that came to its end has cut off no review. The rejection of a last attempt has no checkpoint.
                RecordKind::End(_) => open.clear(),
                RecordKind::Checkpoint(checkpoint) => {
                    open.retain(|task| Some(task) != checkpoint.node.as_ref());
                    snapshots.insert(head, checkpoint.snapshot);
                }
                RecordKind::Turn(turn) => {
                    let Some(step) = Step::of_word(&turn.step) else { continue };
                    let of_task = drafts.entry(turn.node.clone()).or_default();
                    let kind = (step, turn.attempt);
                    let is_same = |last: &&mut Draft| (last.step, last.attempt) == kind;
                    let is_open = !open.insert(turn.node.clone());
                    let found = Found { is_before: fork.has_turn(&turn, head), turn };
                    match of_task.last_mut().filter(|last| is_open && is_same(last)) {
                        Some(last) => last.turns.push(found),
                        None => of_task.push(Draft {
                            step,
                            attempt: found.turn.attempt,
                            turns: vec![found],
                            end: None,
                        }),
                    }
                }
                _ => {}
            }
        }
        Ok(Drafts { calls: drafts, snapshots })
    }
}

/// Drops a review that was interrupted: it has no verdict.
fn drop_cut_review(drafts: Option<&mut Vec<Draft>>) {
    if let Some(drafts) = drafts {
        drafts.pop_if(|last| last.step == Step::Review);
    }
}

/// Assigns the events that ended steps to calls. An event without a matching call becomes a call without turns.
fn end_all(drafts: &mut Vec<Draft>, events: Vec<Event>) {
    let (mut next, mut passed) = (0, None);
    for event in events {
        let status = event.status();
        let step = if event.is_interruption() { interrupted_step(&event, passed) } else { status.step() };
        passed = matches!(status, Status::ImplementPass | Status::TestPass)
            .then_some((status, event.attempt()))
            .or(passed.filter(|_| event.is_interruption()));
        let is_end = matches!(step, Step::Implement | Step::Review) && status != Status::Turn;
        let Some(attempt) = event.attempt().filter(|_| is_end) else {
            continue;
        };
        let is_its = |draft: &Draft| (draft.step, draft.attempt) == (step, attempt);
        match drafts[next..].iter().position(is_its) {
            Some(at) => next += at,
            None => drafts.insert(next, Draft { step, attempt, turns: Vec::new(), end: None }),
        }
        drafts[next].end = Some(event);
        next += 1;
    }
}

/// The step that was interrupted. All steps record interruptions with the same status, so the last passed step decides.
fn interrupted_step(event: &Event, passed: Option<(Status, Option<Attempt>)>) -> Step {
    match passed.filter(|(_, attempt)| *attempt == event.attempt()) {
        Some((Status::TestPass, _)) => Step::Review,
        Some(_) => Step::Test,
        None => Step::Implement,
    }
}

impl Draft {
    /// The last commit of an implement step before the fork.
    fn last_before(&self, fork: &Fork) -> Option<Oid> {
        if self.step != Step::Implement {
            return None;
        }
        let end = self.end.as_ref().filter(|end| fork.has_event(end)).map(|end| end.commit);
        let turns = self.turns.iter().rev().filter(|found| found.is_before);
        end.or_else(|| turns.filter_map(|found| found.turn.commit).next())
    }

    /// The part of the call after the fork, if there is any. A review has one verdict, so it is kept as a whole.
    fn after(mut self, fork: &Fork) -> Option<Self> {
        if self.end.as_ref().is_some_and(|end| fork.has_event(end)) {
            return None;
        }
        let is_begun = self.turns.iter().any(|found| !found.is_before);
        if self.end.is_none() && !is_begun {
            return None;
        }
        if self.step == Step::Implement {
            self.turns.retain(|found| !found.is_before);
        }
        Some(self)
    }
}

/// Joins the parts of a step that was interrupted and continued in the same attempt: for a replay, that is one call.
fn joined(calls: impl Iterator<Item = RecordedCall>) -> Vec<RecordedCall> {
    let mut joined: Vec<RecordedCall> = Vec::new();
    for call in calls {
        match joined.last_mut() {
            Some(last) if last.is_stopped() && (last.step, last.attempt) == (call.step, call.attempt) => {
                last.turns.extend(call.turns);
                last.interrupted = last.interrupted.or(last.end.as_ref().map(|end| end.commit));
                (last.end, last.beside) = (call.end, call.beside);
            }
            _ => joined.push(call),
        }
    }
    joined
}

impl RecordedCall {
    fn is_stopped(&self) -> bool {
        self.end.as_ref().is_none_or(Event::is_interruption)
    }
}
