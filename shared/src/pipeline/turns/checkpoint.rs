//! Writes a session's records during a run: its turns, and a checkpoint after each step that changed something.

use crate::{
    agent::Usage,
    event::{EventKind, Snapshot},
    git::Repository,
    history::Event,
    message::Status,
    name::{BranchName, Oid, PipelineName, TaskId},
    pipeline::Expense,
    record::RunRecorder,
    session::{Checkpoint, DraftRecord, RecordKind, SessionError, SessionWriter},
    settings::TranscriptMode,
};

/// Writes the records of a session.
#[derive(Debug, Clone)]
pub struct CheckpointWriter<'a> {
    /// Appends to the session's ref.
    pub session_writer: &'a SessionWriter,
    /// The name of the run.
    pub pipeline: PipelineName,
    /// Whether transcripts are kept.
    pub words: TranscriptMode,
    /// Returns the current time in seconds since 1970.
    pub clock: fn() -> i64,
    /// The tree at the last checkpoint.
    last: Option<Oid>,
    /// The other repositories of the workspace.
    others: Vec<SessionRepo>,
    /// The tips of their branches at the last checkpoint.
    seen: Snapshot,
}

/// Another repository that a session works in.
#[derive(Debug, Clone)]
pub struct SessionRepo {
    /// The configured name.
    pub name: String,
    /// The repository.
    pub repository: Repository,
    /// The session's branch there, or that of a task in its lane.
    pub branch: BranchName,
}

impl<'a> CheckpointWriter<'a> {
    /// For the run with this name.
    #[must_use]
    pub fn new(
        session_writer: &'a SessionWriter,
        pipeline: PipelineName,
        words: TranscriptMode,
        clock: fn() -> i64,
    ) -> Self {
        let (others, seen) = (Vec::new(), Snapshot::new());
        Self { session_writer, pipeline, words, clock, last: None, others, seen }
    }

    /// Adds other repositories that the session works in.
    #[must_use]
    pub fn beside(self, others: Vec<SessionRepo>) -> Self {
        let seen = heads_of(&others);
        Self { others, seen, ..self }
    }

    /// Replaces repositories by the lanes that a task has there, so that its checkpoints name its own commits.
    pub fn follow_checkouts(&mut self, checkouts: impl Iterator<Item = SessionRepo>) {
        for checkout in checkouts {
            if let Some(known) = self.others.iter_mut().find(|known| known.name == checkout.name) {
                *known = checkout;
            }
        }
        self.seen = heads_of(&self.others);
    }

    /// Sets the tree at which work begins.
    pub fn begin(&mut self, tree: Oid) {
        self.last = Some(tree);
    }

    /// Adds the cost of a call that its turns did not report, so that the next record contains it.
    pub(in crate::pipeline) fn add_unreported(&self, expense: &Expense, reported: Usage) {
        self.session_writer.add_unreported(expense.usage.unwrap_or_default().minus(reported));
    }

    /// A step has ended. If it changed something in any repository, a checkpoint is written.
    pub fn step(&mut self, recorder: &RunRecorder<'_>, event: &Event) -> Option<EventKind> {
        let others = heads_of(&self.others);
        if self.last == Some(recorder.tree()) && self.seen == others {
            return None;
        }
        let mut snapshot = others.clone();
        snapshot.insert(repository_name(recorder.repository()), event.commit);
        match self.checkpoint(recorder, event, snapshot.clone()) {
            Ok(record) => {
                (self.last, self.seen) = (Some(recorder.tree()), others);
                Some(EventKind::Checkpoint { record, commit: event.commit, snapshot })
            }
            Err(error) => Some(not_written(&error)),
        }
    }

    /// Writes a checkpoint if the session's branch moved without a task, because the run began there or something
    /// landed. So everything on the branch is reachable from the records alone.
    pub fn follow(&self, repository: &Repository, branch: &BranchName, by: Status) -> Option<EventKind> {
        let tip = repository.find_branch(branch).ok().flatten()?;
        if self.session_writer.newest().record.context.tip == tip {
            return None;
        }
        let mut snapshot = heads_of(&self.others);
        snapshot.insert(repository_name(repository), tip);
        Some(match self.write(None, by, tip, Some(tip), snapshot.clone()) {
            Ok(record) => EventKind::Checkpoint { record, commit: tip, snapshot },
            Err(error) => not_written(&error),
        })
    }

    fn checkpoint(
        &self,
        recorder: &RunRecorder<'_>,
        event: &Event,
        snapshot: Snapshot,
    ) -> Result<Oid, SessionError> {
        let tip = recorder.is_on_run_branch().then_some(event.commit);
        self.write(event.task().cloned(), event.status(), event.commit, tip, snapshot)
    }

    fn write(
        &self,
        node: Option<TaskId>,
        status: Status,
        commit: Oid,
        tip: Option<Oid>,
        snapshot: Snapshot,
    ) -> Result<Oid, SessionError> {
        let (step, status) = (status.step().as_str().to_owned(), status.to_string());
        let checkpoint = Checkpoint { node, step, status, snapshot };
        self.session_writer.append((self.clock)(), |_| {
            let kind = RecordKind::Checkpoint(checkpoint.clone());
            Ok(DraftRecord { about: Some(commit), tip, ..DraftRecord::of(kind) })
        })
    }
}

fn not_written(error: &SessionError) -> EventKind {
    EventKind::note(format!("the session could not be recorded: {error}"))
}

/// The tips of the session's branches. Several repositories share no moment, so each is read separately; one that
/// cannot be read is left out.
fn heads_of(others: &[SessionRepo]) -> Snapshot {
    let head = |other: &SessionRepo| {
        let head = other.repository.find_own_branch(&other.branch).ok().flatten()?;
        Some((other.name.clone(), head))
    };
    others.iter().filter_map(head).collect()
}

/// The name of a repository in records: the name of its folder, also for lanes.
#[must_use]
pub fn repository_name(repository: &Repository) -> String {
    let folder = repository.main_top().unwrap_or(&repository.common_dir);
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "repository".into())
}
