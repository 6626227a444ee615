//! Compares the records of a session and of the queue with history.

use std::collections::{HashMap, HashSet};

use super::{Verifier, VerifyCheck, VerifyError};
use crate::{
    coordination::worker_records,
    history::{Event, Run},
    message::{Key, Status},
    name::{Oid, SessionId, TaskId},
    queue::{LOGS, LoggedOutcome, Store},
    session::{RecordKind, SESSIONS, SessionReader, SessionVerdict, StoredRecord, ref_of},
};

/// How many entries of a target's log are read.
const LOG_ENTRIES: usize = 10_000;

/// What the records of a session say.
#[derive(Default)]
struct RecordedSteps {
    /// The commits of turns, by number. Each worker of a shared plan numbers its own turns.
    turns: HashMap<u32, Vec<Oid>>,
    /// The last recorded status of each task, in each chain of records.
    statuses: HashMap<TaskId, Vec<String>>,
}

/// How much of a run records are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// Everything since its start.
    Whole,
    /// Everything from its start to this commit. It may have been continued in another clone.
    Until(Oid),
    /// Perhaps only a part.
    Partial,
}

impl Verifier<'_> {
    pub(super) fn check_records(&mut self, run: &Run) -> Result<(), VerifyError> {
        let Some(start) = &run.start else { return Ok(()) };
        match run.is_shared() {
            true => self.check_worker_records(run, &start.session)?,
            false => self.check_session(run, &start.session)?,
        }
        self.check_log(run)
    }

    fn check_session(&mut self, run: &Run, session: &SessionId) -> Result<(), VerifyError> {
        let Some(newest) = SessionReader::new(self.repository).newest(session)? else {
            self.lack_records(session, &ref_of(session), SESSIONS);
            return Ok(());
        };
        if let Some(is_complete) = self.check_place(run, &newest)? {
            let coverage = self.find_coverage(run, &newest)?;
            let recorded = self.read_records(&[newest])?;
            self.compare_turns(run, session, &recorded);
            if is_complete {
                self.compare_statuses(run, session, &recorded, coverage)?;
            }
        }
        Ok(())
    }

    /// A damaged chain of records starts over, at a commit after the start of the run. A replay repeats commits of another
    /// session.
    fn find_coverage(&self, run: &Run, newest: &StoredRecord) -> Result<Coverage, VerifyError> {
        let RecordKind::Start(begun) = SessionReader::new(self.repository).start_of(newest)?.record.kind
        else {
            return Ok(Coverage::Partial);
        };
        let (Some(start), Some(first)) = (&run.start, begun.repositories.first()) else {
            return Ok(Coverage::Partial);
        };
        let is_replay = begun.forked_from.is_some() || start.replays.is_some();
        let is_known = self.repository.find_commits(&[first.base])?.first().copied().flatten().is_some();
        let is_whole = !is_replay && is_known && !self.repository.is_ancestor(start.commit, first.base)?;
        let is_over =
            matches!(&newest.record.kind, RecordKind::End(end) if end.result == SessionVerdict::Complete);
        Ok(match (is_whole, is_over) {
            (false, _) => Coverage::Partial,
            (true, true) => Coverage::Whole,
            (true, false) => Coverage::Until(newest.record.context.tip),
        })
    }

    /// Compares the run with the records that each worker of a shared plan has published. Where they end says nothing: a worker may
    /// have worked on a task that another one took over.
    fn check_worker_records(&mut self, run: &Run, session: &SessionId) -> Result<(), VerifyError> {
        let prefix = worker_records(&run.scope.branch);
        let reader = SessionReader::new(self.repository);
        let found = self.repository.list_refs(&[&prefix])?;
        // A worker that did not join this run has the records of an earlier one there.
        let mut chains: Vec<StoredRecord> =
            found.iter().filter_map(|found| reader.load(found.target, session).ok()).collect();
        if chains.is_empty() {
            self.lack_records(session, &prefix, &prefix);
            return Ok(());
        }
        // The run may have been continued on one machine.
        chains.extend(reader.newest(session)?);
        self.records_used.extend(chains.iter().map(|newest| newest.commit));
        let recorded = self.read_records(&chains)?;
        self.compare_turns(run, session, &recorded);
        self.compare_statuses(run, session, &recorded, Coverage::Partial)
    }

    fn lack_records(&mut self, session: &SessionId, name: &str, refs: &str) {
        let why = format!("the records of session '{session}' are not in this clone ({name})");
        self.result.missing(VerifyCheck::Records, refs, why);
    }

    /// Verifies where records end. Returns whether everything that they record is in the range; `None` if they are not
    /// about this history.
    fn check_place(&mut self, run: &Run, newest: &StoredRecord) -> Result<Option<bool>, VerifyError> {
        self.records_used.insert(newest.commit);
        let (session, context) = (&newest.record.session, &newest.record.context);
        let at = Some(newest.commit);
        if context.branch != run.scope.branch {
            let words = format!(
                "the records of session '{session}' are about branch '{}', not '{}'",
                context.branch, run.scope.branch
            );
            self.result.problem(VerifyCheck::Records, None, at, words);
            return Ok(None);
        }
        for head in [context.head, context.tip] {
            if self.repository.find_commits(&[head])?.first().copied().flatten().is_none() {
                let words = format!("session '{session}' ended at {}, which does not exist", head.short());
                self.result.problem(VerifyCheck::Records, None, at, words);
                return Ok(None);
            }
        }
        let to = self.range.to;
        let is_complete = self.repository.is_ancestor(context.tip, to)?;
        if !is_complete && !self.repository.is_ancestor(to, context.tip)? && !self.is_fork(run, newest)? {
            let words =
                format!("session '{session}' ended at {}, which is not in this history", context.tip.short());
            self.result.problem(VerifyCheck::Records, None, at, words);
            return Ok(None);
        }
        Ok(Some(is_complete))
    }

    /// Whether the range branched off before the session ended: some branch still has the end, and everything of the session
    /// that is in the range led to it. Not if the session's own branch has the range and no longer has the end: then it was
    /// reset.
    fn is_fork(&self, run: &Run, newest: &StoredRecord) -> Result<bool, VerifyError> {
        let (session, end) = (&newest.record.session, newest.record.context.tip);
        if self.range.session.as_ref() == Some(session) {
            return Ok(false);
        }
        let own = &newest.record.context.branch;
        let mut is_kept = false;
        for branch in self.repository.list_refs(&["refs/heads/", "refs/remotes/"])? {
            let name = branch.name.strip_prefix("refs/remotes/").and_then(|name| name.split_once('/'));
            let is_own = branch.name == own.to_ref() || name.is_some_and(|(_, name)| name == own.as_str());
            if (is_kept && !is_own) || self.repository.is_ancestor(end, branch.target)? {
                is_kept = true;
            } else if is_own && self.repository.is_ancestor(self.range.to, branch.target)? {
                return Ok(false);
            }
        }
        let events = run.tasks.iter().flat_map(|task| &task.events);
        for event in events.filter(|event| event.session().is_none_or(|named| named == *session)) {
            if !is_kept || !self.repository.is_ancestor(event.commit, end)? {
                return Ok(false);
            }
        }
        Ok(is_kept)
    }

    fn read_records(&self, chains: &[StoredRecord]) -> Result<RecordedSteps, VerifyError> {
        let mut recorded = RecordedSteps::default();
        for newest in chains {
            let mut seen = HashSet::new();
            for stored in SessionReader::new(self.repository).walk(newest)? {
                match stored?.record.kind {
                    RecordKind::Turn(turn) => {
                        recorded.turns.entry(turn.number).or_default().extend(turn.commit);
                    }
                    RecordKind::Checkpoint(checkpoint) => {
                        if let Some(task) = checkpoint.node.filter(|task| seen.insert(task.clone())) {
                            recorded.statuses.entry(task).or_default().push(checkpoint.status);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(recorded)
    }

    /// Every commit of a turn must be the one that the record of this turn names.
    fn compare_turns(&mut self, run: &Run, session: &SessionId, recorded: &RecordedSteps) {
        let events = run.tasks.iter().flat_map(|task| &task.events);
        let is_turn = |event: &&Event| {
            event.status() == Status::Turn && event.session().is_none_or(|named| named == *session)
        };
        let turns: Vec<&Event> =
            events.filter(is_turn).filter(|event| self.within.contains(&event.commit)).collect();
        for event in turns {
            let number = event.count(Key::Turn).and_then(|number| u32::try_from(number).ok());
            let known: &[Oid] =
                number.and_then(|number| recorded.turns.get(&number)).map_or(&[], Vec::as_slice);
            if known.contains(&event.commit) {
                continue;
            }
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            let words = match known.first() {
                Some(other) => {
                    format!("the record of turn {number} of session '{session}' names {}", other.short())
                }
                None => format!("session '{session}' has no record of a commit of turn {number}"),
            };
            self.result.problem(VerifyCheck::Records, event.task(), Some(event.commit), words);
        }
    }

    /// The last record about a task that is complete in history must say so. Records of a part of the run may lack tasks.
    fn compare_statuses(
        &mut self,
        run: &Run,
        session: &SessionId,
        recorded: &RecordedSteps,
        coverage: Coverage,
    ) -> Result<(), VerifyError> {
        let settled = [Status::Complete.as_str(), Status::Merge.as_str()];
        for verified in self.result.tasks.clone() {
            if verified.branch != run.scope.branch || verified.session.as_ref() != Some(session) {
                continue;
            }
            let (check, task) = (VerifyCheck::Records, Some(&verified.task));
            let statuses = recorded.statuses.get(&verified.task).map_or(&[][..], Vec::as_slice);
            let is_covered = match coverage {
                Coverage::Whole => true,
                Coverage::Until(tip) => self.repository.is_ancestor(verified.commit, tip)?,
                Coverage::Partial => false,
            };
            match statuses.first() {
                Some(_) if statuses.iter().any(|status| settled.contains(&status.as_str())) => {}
                Some(status) => {
                    let words = format!("the last record of session '{session}' about it says '{status}'");
                    self.result.problem(check, task, Some(verified.commit), words);
                }
                None if is_covered => {
                    let words = format!(
                        "session '{session}' has no record of it; if the records in this clone are old, fetch them again"
                    );
                    self.result.problem(check, task, Some(verified.commit), words);
                }
                None => {
                    self.result.unchecked(check, task, format!("session '{session}' has no record of it"));
                }
            }
        }
        Ok(())
    }

    /// The log of the queue must name the landings that are in history.
    fn check_log(&mut self, run: &Run) -> Result<(), VerifyError> {
        let log = Store::new(self.repository).load_logs(&run.scope.branch, Some(LOG_ENTRIES))?;
        let events = run.tasks.iter().flat_map(|task| &task.events);
        // The log of a worker's queue stays in its clone.
        let is_landing = |event: &&Event| {
            event.status() == Status::Merge
                && self.within.contains(&event.commit)
                && event.trailers.get(Key::Worker).is_none()
        };
        let is_logged = |event: &&Event| log.iter().any(|entry| entry.commit == Some(event.commit));
        let unknown = events.filter(is_landing).filter(|event| !is_logged(event));
        let mut unknown: Vec<String> =
            unknown.filter_map(|event| event.task()).map(ToString::to_string).collect();
        unknown.sort();
        unknown.dedup();
        if !unknown.is_empty() {
            let why =
                format!("the merge queue's log has no entry for the landings of {}", unknown.join(", "));
            // A landing that was parked is logged when the queue next runs.
            match self.repository.find_commit(&run.scope.branch.landing_ref())? {
                Some(_) => self.result.unrecorded(VerifyCheck::Records, &run.scope.branch, why),
                None => self.result.missing(VerifyCheck::Records, LOGS, why),
            }
        }
        for entry in log.iter().filter(|entry| entry.outcome == LoggedOutcome::Landed) {
            let Some(commit) = entry.commit else { continue };
            let mut events = run.tasks.iter().flat_map(|task| &task.events);
            let Some(landing) = events.find(|event| event.commit == commit) else { continue };
            let is_same = landing.task() == Some(&entry.task)
                && landing.trailers.source() == Some(entry.source)
                && landing.status() == Status::Merge;
            if !is_same {
                let words = format!(
                    "the log of the queue says that it landed {} of '{}'",
                    entry.source.short(),
                    entry.task
                );
                self.result.problem(VerifyCheck::Records, Some(&entry.task), Some(commit), words);
            }
        }
        Ok(())
    }
}
