//! The states of a session's tasks right after a turn, and how they are recorded again.

use std::collections::{BTreeSet, HashSet};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Merge, Repository},
    history::{Event, Run, RunStart, TaskState},
    message::{PlanRef, Status},
    name::{Oid, SessionId, TaskId},
    record::{RunRecorder, TaskEvent},
    session::{SessionPoint, StoredRecord},
};

use super::open::OpenSessions;

/// The state of a task at that time.
pub(super) struct PastTask {
    pub(super) task: TaskId,
    /// Its name, from its commits.
    pub(super) name: String,
    /// The events from which its attempts were counted.
    pub(super) events: Vec<Event>,
}

impl PastTask {
    pub(super) fn state(&self) -> TaskState {
        self.events.iter().collect()
    }

    /// Records again the steps that its last attempt passed: a task is complete only after them.
    pub(super) fn repeat_passed(&self, recorder: &mut RunRecorder<'_>) -> Result<(), Failure> {
        let attempt = self.state().attempt;
        let steps = [Status::ImplementPass, Status::TestPass, Status::ReviewApproved];
        let is_passed = |event: &&Event| steps.contains(&event.status()) && event.attempt() == attempt;
        repeat(self.events.iter().filter(is_passed), recorder)
    }

    /// Records again what had happened to it, with the same messages and without costs.
    pub(super) fn repeat(&self, recorder: &mut RunRecorder<'_>) -> Result<(), Failure> {
        repeat(self.events.iter(), recorder)
    }
}

fn repeat<'e>(
    events: impl Iterator<Item = &'e Event>,
    recorder: &mut RunRecorder<'_>,
) -> Result<(), Failure> {
    for entry in events.filter_map(TaskEvent::repeating) {
        let tree = recorder.tree();
        recorder.record(entry, tree)?;
    }
    Ok(())
}

/// The state of a session right after a turn.
pub(super) struct Moment {
    /// A commit that has everything: that of the turn, joined with what had landed by then.
    pub(super) commit: Oid,
    pub(super) point: SessionPoint,
}

impl Moment {
    /// Joins the work of a task in a lane with what had landed next to it.
    pub(super) fn of(opened: &OpenSessions, newest: &StoredRecord, turn: u32) -> Result<Self, Failure> {
        let point = opened.session_reader().point(newest, turn)?;
        let SessionPoint { head, tip, .. } = point;
        let repository = &opened.repository;
        if repository.is_ancestor(tip, head)? {
            return Ok(Self { commit: head, point });
        }
        let commit = merge_at(repository, tip, head, turn, &newest.record.session)?;
        Ok(Self { commit, point })
    }
}

/// Joins the work of a turn's task with what had landed by then.
pub(super) fn merge_at(
    repository: &Repository,
    tip: Oid,
    head: Oid,
    turn: u32,
    session: &SessionId,
) -> Result<Oid, Failure> {
    let tree = match repository.merge(tip, head)? {
        Merge::Clean(tree) => tree,
        Merge::Conflicted(_, conflicts) => {
            let paths = conflicts.iter().flat_map(|conflict| conflict.paths.clone());
            let paths = paths.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
            let words = format!(
                "turn {turn} of session '{session}' conflicts with the tasks that had landed by then, in {paths}"
            );
            return Err(Failure::new(Exit::Person, words)
                .hint(format!("see another turn to go back to: git arborist session turns {session}")));
        }
    };
    let message = format!("Merge turn {turn} of session {session} with the tasks that had landed by then\n");
    Ok(repository.write_commit_with_parents(tree, &[tip, head], &message, repository.signing()?)?)
}

/// The plan that the session had frozen by then, if its run had started.
pub(super) fn frozen_plan(
    opened: &OpenSessions,
    newest: &StoredRecord,
    moment: &Moment,
) -> Result<Option<PlanRef>, Failure> {
    Ok(start_at(opened, newest, moment)?.and_then(|start| start.plan))
}

/// The plan that is in force when the session continues from a moment. If the run had not used its plan by then, that is
/// the version with which the run began: agents may have edited the file since.
pub(super) fn restored_plan(
    opened: &OpenSessions,
    newest: &StoredRecord,
    history: &Run,
    moment: &Moment,
) -> Result<Option<PlanRef>, Failure> {
    let Some(start) = start_at(opened, newest, moment)? else { return Ok(None) };
    let later = history.frozen_plan();
    let (None, Some(PlanRef { path, .. })) = (&start.plan, later) else { return Ok(start.plan) };
    let blob = opened.repository.find_path(start.accepted, path)?;
    Ok(blob.map(|blob| PlanRef { path: path.clone(), blob }))
}

fn start_at(
    opened: &OpenSessions,
    newest: &StoredRecord,
    moment: &Moment,
) -> Result<Option<RunStart>, Failure> {
    let run = opened.run_at(newest, moment.commit)?;
    Ok(run.start.filter(|start| start.session == newest.record.session))
}

/// The commit with the configuration of a replay from this moment. If it precedes the start of the run, that is the
/// start: it may have committed configuration that was not tracked before.
pub(super) fn configured_in(
    opened: &OpenSessions,
    newest: &StoredRecord,
    turn: u32,
    moment: &Moment,
) -> Result<Oid, Failure> {
    if turn > 0 {
        return Ok(moment.commit);
    }
    let run = opened.run_at(newest, newest.record.context.tip)?;
    let start = run.start.filter(|start| start.session == newest.record.session);
    Ok(start.map_or(moment.commit, |start| start.commit))
}

/// The tasks with events by then. If the turn belongs to a failed attempt, that attempt is to be tried again.
pub(super) fn past_tasks(
    opened: &OpenSessions,
    newest: &StoredRecord,
    moment: &Moment,
) -> Result<Vec<PastTask>, Failure> {
    let Moment { commit, point } = moment;
    let run = opened.run_at(newest, *commit)?;
    // The records of a clone that continued the run begin later than the run: its first tasks were done elsewhere.
    let base = match run.start.as_ref().filter(|start| start.session == newest.record.session) {
        Some(start) => start.commit,
        None => opened.session_reader().start_of(newest)?.record.context.head,
    };
    let mut before: HashSet<Oid> = opened.repository.list_between(&[*commit], &[base])?.into_iter().collect();
    point.failed.map(|failed| before.remove(&failed));
    // Events on a task's own branch may be newer.
    let events = |events: &[Event]| {
        events.iter().filter(|event| before.contains(&event.commit)).cloned().collect::<Vec<_>>()
    };
    let tasks = run.tasks.iter().map(|task| PastTask {
        task: task.id.clone(),
        name: task.name().unwrap_or(task.id.as_str()).to_owned(),
        events: events(task.current()),
    });
    Ok(tasks.filter(|past| !past.events.is_empty()).collect())
}
