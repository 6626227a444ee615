//! Writes a session's records while its run goes on: its turns, and how far each step brought it.

use std::path::Path;

use crate::{
    agent::Usage,
    event::{EventKind, Snapshot},
    git::Repository,
    history::Event,
    message::Status,
    name::{BranchName, Oid, PipelineName, TaskId},
    pipeline::Expense,
    record::RunRecorder,
    session::{Checkpoint, DraftRecord, RecordKind as Record, SessionError, SessionWriter},
    settings::Settings,
};

/// Who writes a session down.
#[derive(Debug, Clone)]
pub struct CheckpointWriter<'a> {
    /// Where to.
    pub session_writer: &'a SessionWriter,
    /// What the run is called.
    pub pipeline: PipelineName,
    /// Whether what is said is kept.
    pub words: Words,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
    /// The tree at the last checkpoint.
    last: Option<Oid>,
    /// The other repositories of the workspace.
    others: Vec<SessionRepo>,
    /// Where these were at the last checkpoint.
    seen: Snapshot,
}

/// Another repository that a session works in.
#[derive(Debug, Clone)]
pub struct SessionRepo {
    /// What it is called.
    pub name: String,
    /// It itself.
    pub repository: Repository,
    /// The session's branch there.
    pub branch: BranchName,
}

/// Whether what agents say and hear is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// It is.
    Kept,
    /// It is not.
    Forgotten,
}

impl Words {
    /// As it is configured.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        if settings.text("session.transcripts") == Some("off") { Self::Forgotten } else { Self::Kept }
    }
}

impl<'a> CheckpointWriter<'a> {
    /// For a run that is called so.
    #[must_use]
    pub fn new(
        session_writer: &'a SessionWriter,
        pipeline: PipelineName,
        words: Words,
        clock: fn() -> i64,
    ) -> Self {
        let (others, seen) = (Vec::new(), Snapshot::new());
        Self { session_writer, pipeline, words, clock, last: None, others, seen }
    }

    /// The same for a session that works in other repositories too.
    #[must_use]
    pub fn beside(self, others: Vec<SessionRepo>) -> Self {
        let seen = heads_of(&others);
        Self { others, seen, ..self }
    }

    /// Work begins at this tree.
    pub fn begin(&mut self, tree: Oid) {
        self.last = Some(tree);
    }

    /// What calls have spent beyond what their turns tell is owed to the session.
    pub(in crate::pipeline) fn owe(&self, expense: &Expense, told: Usage) {
        self.session_writer.owe(expense.usage.unwrap_or_default().minus(told));
    }

    /// A step has ended. Where it changed something in any repository, that is a checkpoint.
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

    /// The session's branch has moved, and no task has moved it: the run began there, or something landed. That is a
    /// checkpoint unless it is known already, so that the records alone lead to all that is on the branch.
    pub fn follow(&self, repository: &Repository, branch: &BranchName, by: Status) -> Option<EventKind> {
        let tip = repository.find_branch(branch).ok().flatten()?;
        if self.session_writer.newest().record.context.tip == tip {
            return None;
        }
        let mut snapshot = heads_of(&self.others);
        snapshot.insert(repository_name(repository), tip);
        Some(match self.write((None, by), (tip, Some(tip)), snapshot.clone()) {
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
        let tip = (recorder.branch() == recorder.run()).then_some(event.commit);
        self.write((event.task().cloned(), event.status()), (event.commit, tip), snapshot)
    }

    fn write(
        &self,
        (node, status): (Option<TaskId>, Status),
        (commit, tip): (Oid, Option<Oid>),
        snapshot: Snapshot,
    ) -> Result<Oid, SessionError> {
        let (step, status) = (status.step().as_str().to_owned(), status.to_string());
        let checkpoint = Checkpoint { node, step, status, snapshot };
        self.session_writer.append((self.clock)(), |_| {
            let kind = Record::Checkpoint(checkpoint.clone());
            Ok(DraftRecord { about: Some(commit), tip, ..DraftRecord::of(kind) })
        })
    }
}

fn not_written(error: &SessionError) -> EventKind {
    EventKind::note(format!("the session could not be written down: {error}"))
}

/// Where the session's branches are. There is no moment that several repositories share, so each is asked by itself; one
/// that cannot be asked is left out.
fn heads_of(others: &[SessionRepo]) -> Snapshot {
    let head = |other: &SessionRepo| {
        let head = other.repository.find_own_branch(&other.branch).ok().flatten()?;
        Some((other.name.clone(), head))
    };
    others.iter().filter_map(head).collect()
}

/// What a repository is called in records: as its folder, also in lanes.
#[must_use]
pub fn repository_name(repository: &Repository) -> String {
    let common = &repository.common_dir;
    let folder = if common.ends_with(".git") { common.parent() } else { Some(common.as_path()) };
    let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "repository".into())
}
