//! The events of a run: one type for everything that it reports.
//!
//! Workers send a [`RunEvent`]. `--json` prints it ([`RunEvent::line`]); the live view and the plain lines describe it.
//! So the fields of an event are public: renaming one changes `schemas/run-event.schema.json`.

mod account;

pub use account::{
    FailedTask, ForeignCommit, LeftTask, LeftTaskKind, RepoBranch, ResolvedConflict, RunAccount, UnlandedTask,
};

use std::{collections::BTreeMap, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    agent::limits::{Chosen, Spent},
    history::Event,
    message::{Status, Step, escape_json, one_line, plain_text},
    name::{Attempt, BranchName, Oid, RepoName, SessionId, TaskId},
    progress::RunTotals,
};

/// How many characters of an agent's text are printed at once.
const LONGEST_WORDS: usize = 500;

/// The heads of a session's repositories, by name.
pub type Snapshot = BTreeMap<String, Oid>;

/// An event of a run. Lines of several tasks may be interleaved; each names its task. The last line of a run that has
/// started is `run-ended`; errors are on standard error and in the exit code.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// The task; `None` for what concerns the whole run.
    pub task: Option<TaskId>,
    /// What happened.
    pub kind: EventKind,
}

/// What an implement step changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepChanges {
    /// How many files the agent changed in the plan's repository, if one commit has all of them.
    pub files: Option<usize>,
    /// Whether the task has changed no file, in this attempt or an earlier one.
    pub has_nothing: bool,
}

/// An event of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub enum EventKind {
    /// The run starts or continues.
    #[schemars(skip)]
    RunBegins(Box<RunOpening>),
    /// A step of a task starts.
    StepBegins {
        /// Its name.
        #[serde(serialize_with = "plain")]
        name: String,
        /// The step.
        #[schemars(schema_with = "steps")]
        step: Step,
        /// The attempt, from 0.
        #[serde(serialize_with = "number")]
        #[schemars(with = "u32")]
        attempt: Attempt,
        /// Who does it: a runner, or a command.
        #[serde(serialize_with = "plain")]
        by: String,
        /// Whether these are the tests of a phase: they have one attempt, and no other step follows.
        #[serde(skip)]
        is_phase: bool,
    },
    /// The agent said or did something.
    Said {
        /// Its words, without control characters; at most 500 characters.
        #[serde(serialize_with = "cut")]
        #[schemars(length(max = 500))]
        words: String,
    },
    /// The agent has ended a turn.
    TurnEnded,
    /// What the agent changed in a turn was committed.
    TurnCommitted {
        /// The repository of the workspace, if it is not the one that has the plan.
        repo: Option<RepoName>,
        /// The number of the turn in its session.
        turn: u64,
        /// The commit's full id.
        commit: Oid,
        /// The subject of the commit.
        #[serde(serialize_with = "in_one_line")]
        words: String,
    },
    /// A checkpoint was recorded.
    Checkpoint {
        /// The full id of the record.
        record: Oid,
        /// The newest commit of the work.
        commit: Oid,
        /// The head of each repository of the workspace. Best effort: they are read one after the other, and one that
        /// could not be read is left out.
        snapshot: Snapshot,
    },
    /// A repository of the workspace was cloned.
    Cloned {
        /// Its name.
        repo: RepoName,
        /// Where from, without secrets.
        remote: String,
    },
    /// A repository was fetched.
    Fetched {
        /// Its name.
        repo: RepoName,
        /// The remote, without secrets.
        remote: String,
    },
    /// A session has a branch in a repository.
    BranchCreated {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
        /// The commit at which it starts.
        base: Oid,
    },
    /// Refs of a repository were pushed.
    Pushed {
        /// The repository.
        repo: RepoName,
        /// The remote, without secrets.
        remote: String,
        /// The full names of the refs.
        refs: Vec<String>,
    },
    /// A push failed. It is retried during the run.
    PushFailed {
        /// The repository.
        repo: RepoName,
        /// Why, in one line.
        why: String,
    },
    /// A commit was made.
    Recorded {
        /// The status in its subject.
        #[serde(serialize_with = "word")]
        #[schemars(schema_with = "statuses")]
        status: Status,
        /// Its full id.
        commit: Oid,
        /// Why the step failed, in one line; null if it did not.
        #[serde(serialize_with = "reason")]
        #[schemars(with = "Option<String>")]
        why: Option<StepReason>,
        /// What the step cost; null if the agent did not report it.
        #[serde(serialize_with = "totals")]
        #[schemars(with = "Option<RunTotals>")]
        spent: Spent,
        /// What an implement step changed.
        #[serde(skip)]
        changes: StepChanges,
    },
    /// A task got a worktree, or a session got one in a repository.
    WorktreeCreated {
        /// The repository; null for a task's worktree in the repository with the plan.
        repo: Option<RepoName>,
        /// Its top.
        #[serde(serialize_with = "shown_path")]
        path: PathBuf,
        /// The branch that is checked out there.
        branch: BranchName,
        /// Whether an existing worktree is reused.
        recycled: bool,
    },
    /// The branch of a task has landed on its target.
    Merged {
        /// The branch.
        branch: BranchName,
        /// The branch that it landed on.
        target: BranchName,
        /// The merge commit's full id.
        commit: Oid,
        /// Whether it merged without conflicts.
        auto: bool,
        /// Who resolved the conflict: `person`, or `agent` and its name; null if there was none.
        resolved_by: Option<String>,
        /// The text for people.
        #[serde(skip)]
        resolution: String,
        /// Whether the landing waits until the user's checkout can be updated.
        #[serde(skip)]
        is_parked: bool,
    },
    /// The branch of a task conflicts with its target.
    Conflict {
        /// The branch.
        branch: BranchName,
        /// The branch that it was to land on.
        target: BranchName,
        /// How many conflicts there are.
        conflicts: usize,
        /// The files in conflict.
        #[serde(serialize_with = "all_plain")]
        paths: Vec<String>,
    },
    /// A conflict needs a person.
    Escalated {
        /// The branch.
        branch: BranchName,
        /// The branch that it was to land on.
        target: BranchName,
        /// How many conflicts there are.
        conflicts: usize,
        /// The files in conflict.
        #[serde(skip)]
        paths: Vec<String>,
    },
    /// The agent's provider is overloaded, and the task waits. No attempt is used up.
    Waits {
        /// How long.
        seconds: u64,
        /// Where that time comes from.
        chosen_by: Chosen,
    },
    /// Commits that the run did not make were added to its branch.
    ForeignCommits {
        /// A sentence.
        #[serde(serialize_with = "plain")]
        words: String,
        /// All of them.
        commits: Vec<ForeignCommit>,
    },
    /// Something of the user's was deleted, moved or added while the run was at work: a branch, a tag, a stash, a detached
    /// head, a remote-tracking ref, a name that hides a branch, reflogs, uncommitted changes, or the index or `HEAD` of a
    /// checkout. What was lost is kept, as the sentence says.
    RefMoved {
        /// A sentence.
        #[serde(serialize_with = "plain")]
        words: String,
    },
    /// Any other message.
    Note {
        /// Its severity.
        level: NoteLevel,
        /// A sentence.
        #[serde(serialize_with = "plain")]
        words: String,
        /// Whether it is printed only once for all remotes.
        #[serde(skip)]
        once: bool,
        /// Whether something failed, so that it is printed with `--quiet` too.
        #[serde(skip)]
        is_failure: bool,
        /// Whether it is about a step, so that its line is indented and names the task.
        #[serde(skip)]
        is_of_step: bool,
    },
    /// A task is complete, or its attempts are used up.
    TaskEnded {
        /// How.
        state: EndState,
    },
    /// All tasks have ended: the session is closed, and the last pushes are running. This is not printed.
    #[serde(skip)]
    RunEnds,
    /// The run has ended.
    RunEnded {
        /// The summary.
        summary: Box<RunAccount>,
    },
}

/// Why a step failed, or what is unusual about one that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReason {
    /// The kind of reason.
    pub kind: ReasonKind,
    /// The reason.
    pub words: String,
}

/// The kind of reason of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonKind {
    /// The step was interrupted, so the attempt does not count.
    Interrupted,
    /// The reviewer gave no verdict.
    NoVerdict,
    /// Another one.
    Other,
}

impl StepReason {
    /// The reason for what a commit records.
    #[must_use]
    pub fn of(event: &Event, words: &str) -> Self {
        let kind = match () {
            () if event.is_interruption() => ReasonKind::Interrupted,
            () if event.lacks_verdict() => ReasonKind::NoVerdict,
            () => ReasonKind::Other,
        };
        Self { kind, words: words.to_owned() }
    }

    /// The whole reason in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let words = one_line(&self.words);
        if self.kind == ReasonKind::Interrupted { format!("interrupted: {words}") } else { words }
    }
}

/// The state of a run when it starts or continues.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunOpening {
    /// The branch of the run.
    pub branch: BranchName,
    /// The session.
    pub session: SessionId,
    /// The commit at which it begins.
    pub head: Oid,
    /// How many tasks there are.
    pub total: usize,
    /// How many of them are already done.
    pub done: usize,
    /// How many of them have already failed.
    pub failed: usize,
    /// How many attempts each has.
    pub max_attempts: u32,
    /// What the run has cost before.
    pub spent: RunTotals,
    /// Whether tasks work on their own branches, so that they are done only when they have landed.
    #[serde(skip)]
    pub has_lanes: bool,
    /// Whether no agent is called.
    #[serde(skip)]
    pub offline: bool,
    /// The options of the command, each with a space before it.
    #[serde(skip)]
    pub options: String,
    /// The options that are not recorded, in the same form.
    #[serde(skip)]
    pub again: String,
}

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoteLevel {
    /// Information.
    Note,
    /// Something may be wrong.
    Warning,
    /// A hint.
    Hint,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndState {
    /// It is complete.
    Complete,
    /// Its attempts are used up.
    Failed,
}

/// The printed events that are about no task.
const WITHOUT_TASK: [&str; 7] =
    ["run-begins", "cloned", "fetched", "branch-created", "pushed", "push-failed", "run-ended"];

impl RunEvent {
    /// An event of a task.
    #[must_use]
    pub fn of(task: &TaskId, kind: EventKind) -> Self {
        Self { task: Some(task.clone()), kind }
    }

    /// An event of the whole run.
    #[must_use]
    pub fn of_run(kind: EventKind) -> Self {
        Self { task: None, kind }
    }

    /// The end of a task, if this event records it.
    #[must_use]
    pub fn end_of_task(&self) -> Option<Self> {
        let state = match self.kind {
            EventKind::Recorded { status: Status::Complete, .. } => EndState::Complete,
            EventKind::Recorded { status: Status::Failed, .. } => EndState::Failed,
            _ => return None,
        };
        Some(Self { task: self.task.clone(), kind: EventKind::TaskEnded { state } })
    }

    /// The event as one line of JSON; `None` if it is not printed.
    #[must_use]
    pub fn line(&self, time: &str) -> Option<String> {
        let Ok(Value::Object(fields)) = serde_json::to_value(&self.kind) else { return None };
        let mut fields = fields.into_iter();
        let (key, event) = fields.next()?;
        let has_task = !WITHOUT_TASK.contains(&event.as_str()?);
        let mut line = Map::from_iter([(key, event), ("time".to_owned(), time.into())]);
        if has_task {
            line.insert("task".to_owned(), self.task.as_ref().map(ToString::to_string).into());
        }
        line.extend(fields);
        serde_json::to_string(&line).ok().map(|json| escape_json(&json))
    }
}

impl EventKind {
    /// A message of this severity.
    pub fn message(level: NoteLevel, words: impl Into<String>) -> Self {
        Self::Note { level, words: words.into(), once: false, is_failure: false, is_of_step: false }
    }

    /// A note. It names the task itself, if it has one.
    pub fn note(words: impl Into<String>) -> Self {
        Self::message(NoteLevel::Note, words)
    }

    /// A note about a step, which does not name the task: whoever prints it does.
    pub fn step_note(words: impl Into<String>) -> Self {
        let (level, words) = (NoteLevel::Note, words.into());
        Self::Note { level, words, once: false, is_failure: false, is_of_step: true }
    }

    /// A warning about something that has not failed. It does not name the task: whoever prints it does.
    pub fn warning(words: impl Into<String>) -> Self {
        Self::message(NoteLevel::Warning, words)
    }

    /// A warning about something that failed, or that an agent was not allowed to do. It does not name the task either.
    pub fn failure(words: impl Into<String>) -> Self {
        let (level, words) = (NoteLevel::Warning, words.into());
        Self::Note { level, words, once: false, is_failure: true, is_of_step: false }
    }
}

impl JsonSchema for RunEvent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunEvent".into()
    }

    /// Each event with the time, and with its task where it is about one.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = EventKind::json_schema(generator);
        let mut begins: Value = RunOpening::json_schema(generator).into();
        begins["properties"]["event"] = json_schema!({ "type": "string", "const": "run-begins" }).into();
        begins["required"].as_array_mut().into_iter().for_each(|required| required.push("event".into()));
        let Some(events) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { return schema };
        events.insert(0, begins);
        for event in events {
            let name = event["properties"]["event"]["const"].as_str().unwrap_or_default().to_owned();
            let time = ("time", json_schema!({ "type": "string", "description": "When, in RFC 3339." }));
            let task = json_schema!({
                "type": ["string", "null"],
                "description": "The task; null for what concerns the whole run.",
            });
            let task = (!WITHOUT_TASK.contains(&name.as_str())).then_some(("task", task));
            for (key, schema) in [time].into_iter().chain(task) {
                event["properties"][key] = schema.into();
                if let Some(required) = event["required"].as_array_mut() {
                    required.push(key.into());
                }
            }
        }
        schema
    }
}

/// The statuses that a subject may have.
pub fn statuses(_: &mut SchemaGenerator) -> Schema {
    one_of(Status::ALL.iter().map(|status| status.as_str()))
}

/// The steps that a commit may belong to.
pub fn steps(_: &mut SchemaGenerator) -> Schema {
    one_of(Step::ALL.iter().map(|step| step.as_str()))
}

/// One of these words.
pub fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> Schema {
    json_schema!({ "type": "string", "enum": words.collect::<Vec<_>>() })
}

// Events have raw text. Serialising it removes control characters, which a terminal could obey.

fn plain<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&plain_text(text))
}

fn cut<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let words: String = plain_text(text).trim().chars().take(LONGEST_WORDS).collect();
    serializer.serialize_str(&words)
}

fn in_one_line<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&one_line(text))
}

fn reason<S: Serializer>(why: &Option<StepReason>, serializer: S) -> Result<S::Ok, S::Error> {
    why.as_ref().map(StepReason::line).serialize(serializer)
}

fn all_plain<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(texts.iter().map(|text| plain_text(text)))
}

fn number<S: Serializer>(attempt: &Attempt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(attempt.0)
}

fn word<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

fn shown_path<S: Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn totals<S: Serializer>(spent: &Spent, serializer: S) -> Result<S::Ok, S::Error> {
    Some(spent.totals).filter(|totals| *totals != RunTotals::default()).serialize(serializer)
}
