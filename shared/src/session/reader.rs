//! Reads sessions: their records, states and options. One git command lists the newest record of each; other records are read only when they are needed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Driver, Record, RecordKind, Resumed, SESSIONS, SessionEnd, SessionError, SessionVerdict, Turn, record,
    ref_of,
};
use crate::{
    agent::redact::{Redactor, Secrets},
    git::{CommitStream, RawCommit, Ref, Repository, list_skipped_refs, skip_ref},
    message::{self, Key, Message, MessageReading},
    name::{Oid, SessionId, TaskId},
    process::FileLock,
    words::words,
};

/// A record and its commit.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// The commit.
    pub commit: Oid,
    /// The content of the record.
    pub record: Record,
}

/// All sessions, each by its newest record.
#[derive(Debug, Default)]
pub struct SessionList {
    /// The readable ones, most recently written first.
    pub sessions: Vec<StoredRecord>,
}

/// Where a commit comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitOrigin {
    /// The session that the commit names.
    pub session: SessionId,
    /// The task that it names.
    pub node: Option<TaskId>,
    /// The turn that it names.
    pub number: Option<u32>,
    /// The record of that turn, if it names this commit.
    pub proof: Option<Turn>,
    /// Whether the session is in this repository.
    pub is_known: bool,
}

impl CommitOrigin {
    /// Whether the session's records confirm it.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.proof.is_some() || (self.number.is_none() && self.is_known)
    }
}

/// The sessions of a repository.
#[derive(Debug, Clone, Copy)]
pub struct SessionReader<'a> {
    pub(super) repository: &'a Repository,
}

impl<'a> SessionReader<'a> {
    /// The sessions of this repository.
    #[must_use]
    pub fn new(repository: &'a Repository) -> Self {
        Self { repository }
    }

    /// All sessions, each by its newest record.
    pub fn list(&self) -> Result<SessionList, SessionError> {
        let mut session_list = SessionList::default();
        for (found, body) in self.repository.start_listing_notes(&[SESSIONS])?.finish()? {
            match read_note(&found, &body) {
                Ok(stored) => session_list.sessions.push(stored),
                Err(error) => skip_ref(&found.name, &error.to_string()),
            }
        }
        session_list.sessions.sort_by(|a, b| newest_first(&b.record).cmp(&newest_first(&a.record)));
        Ok(session_list)
    }

    /// The newest record of a session. One that cannot be read is left out, and the user is told so at the end: history
    /// says what was done, and the next record begins a new chain.
    pub fn newest(&self, session: &SessionId) -> Result<Option<StoredRecord>, SessionError> {
        let name = ref_of(session);
        Ok(self.repository.find_note(&name)?.and_then(|(found, body)| match read_note(&found, &body) {
            Ok(stored) => Some(stored),
            Err(error) => {
                skip_ref(&found.name, &error.to_string());
                None
            }
        }))
    }

    /// The first record of the session of `newest`.
    pub fn start_of(&self, newest: &StoredRecord) -> Result<StoredRecord, SessionError> {
        match newest.record.context.start {
            Some(start) => self.load(start, &newest.record.session),
            None => Ok(newest.clone()),
        }
    }

    /// The last checkpoint of the session of `newest`, which may be that record itself.
    pub fn checkpoint_of(&self, newest: &StoredRecord) -> Result<Option<StoredRecord>, SessionError> {
        if let RecordKind::Checkpoint(_) = newest.record.kind {
            return Ok(Some(newest.clone()));
        }
        let checkpoint = newest.record.context.checkpoint;
        checkpoint.map(|commit| self.load(commit, &newest.record.session)).transpose()
    }

    /// The records of the session of `newest`, starting with that one.
    pub fn walk(&self, newest: &StoredRecord) -> Result<RecordWalk<'a>, SessionError> {
        let count = newest.record.sequence.saturating_add(1);
        let revisions = ["--first-parent".into(), format!("-n{count}"), newest.commit.to_string()];
        let stream = self.repository.stream_commits(&revisions)?;
        Ok(RecordWalk { repository: self.repository, session: newest.record.session.clone(), stream })
    }

    /// The record of one turn. Skips others by their subjects; only one is parsed.
    pub fn turn(&self, newest: &StoredRecord, number: u32) -> Result<StoredRecord, SessionError> {
        let session = &newest.record.session;
        let missing =
            || SessionError::NoTurn { session: session.clone(), number, turns: newest.record.totals.turns };
        if number == 0 || number > newest.record.totals.turns {
            return Err(missing());
        }
        let mut walk = self.walk(newest)?;
        let begin = format!("session {session}: turn {number} of ");
        while let Some(commit) = walk.stream.next().transpose()? {
            if commit.message().starts_with(begin.as_bytes()) {
                let stored = walk.read(commit)?;
                if stored.record.turn().is_some_and(|turn| turn.number == number) {
                    return Ok(stored);
                }
            }
        }
        Err(missing())
    }

    /// Where a commit of this repository, or of another one of its workspace, comes from: according to its message,
    /// with proof from the records. `None` if it names no session.
    pub fn origin(&self, place: &Repository, commit: Oid) -> Result<Option<CommitOrigin>, SessionError> {
        let Some((session, message)) = message_of(place, commit)? else {
            return Ok(None);
        };
        let named = number_in(&message);
        let newest = self.newest(&session)?;
        let proof = match (&newest, named) {
            (Some(newest), Some(number)) => match self.turn(newest, number) {
                Ok(stored) => stored.record.turn().filter(|turn| turn.made(commit)).cloned(),
                Err(SessionError::NoTurn { .. }) => None,
                Err(error) => return Err(error),
            },
            (Some(newest), None) => self.turn_of(newest, commit)?,
            (None, _) => None,
        };
        let number = named.or_else(|| proof.as_ref().map(|turn| turn.number));
        let node = message.trailers.get(Key::Node).and_then(|node| node.parse().ok());
        let node = node.or_else(|| message.subject.task.clone());
        Ok(Some(CommitOrigin { session, node, number, proof, is_known: newest.is_some() }))
    }

    /// Whether a commit that the record of a turn names agrees with it. Records alone are no proof.
    pub fn is_proven(
        place: &Repository,
        commit: Oid,
        session: &SessionId,
        turn: &Turn,
    ) -> Result<bool, SessionError> {
        let words = message_of(place, commit)?;
        Ok(words.is_some_and(|(named, message)| {
            let is_turn = number_in(&message).is_none_or(|number| number == turn.number);
            named == *session && is_turn && turn.made(commit)
        }))
    }

    /// The turn whose record names this commit. The work of an agent that reports no turns is committed with its step.
    fn turn_of(&self, newest: &StoredRecord, commit: Oid) -> Result<Option<Turn>, SessionError> {
        for stored in self.walk(newest)? {
            match stored?.record.kind {
                RecordKind::Turn(turn) if turn.made(commit) => return Ok(Some(turn)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The record of a session that this commit is.
    pub fn load(&self, commit: Oid, session: &SessionId) -> Result<StoredRecord, SessionError> {
        let name = ref_of(session);
        let unknown = || SessionError::Unknown(session.to_string());
        let loaded = self.repository.load_commits(&[commit])?.pop().ok_or_else(unknown)?;
        let record = record::read_json(&name, &loaded)?;
        checked(&name, session, StoredRecord { commit, record })
    }
}

/// The session that a commit names, and its message.
pub(super) fn message_of(
    place: &Repository,
    commit: Oid,
) -> Result<Option<(SessionId, Box<Message>)>, SessionError> {
    let loaded = place.load_commits(&[commit])?;
    let Some(MessageReading::WellFormed(message)) =
        loaded.first().map(|commit| message::read(commit.message()))
    else {
        return Ok(None);
    };
    Ok(message.trailers.session().map(|session| (session, message)))
}

fn number_in(message: &Message) -> Option<u32> {
    message.trailers.get(Key::Turn).and_then(|number| number.parse().ok())
}

/// The newest record of a session, if it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRecord {
    /// The session.
    pub session: SessionId,
    /// The ref.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl DamagedRecord {
    /// Those that were found when the sessions were listed.
    #[must_use]
    pub fn list() -> Vec<Self> {
        let damaged = |(name, why): (String, String)| {
            let session = name.strip_prefix(SESSIONS)?.parse().ok()?;
            Some(Self { session, name, why })
        };
        list_skipped_refs(SESSIONS).into_iter().filter_map(damaged).collect()
    }

    /// The only one whose session has this prefix.
    fn find(prefix: &str) -> Option<Self> {
        let mut found = Self::list();
        found.retain(|damaged| !prefix.is_empty() && damaged.session.as_str().starts_with(prefix));
        if found.len() == 1 { found.pop() } else { None }
    }

    /// How the session can be continued.
    #[must_use]
    pub fn advice(&self) -> String {
        format!(
            "continue session '{}' from the commits of its run with: git arborist gardener --session-branch
if it ran in your checkout, with: git arborist gardener",
            self.session
        )
    }
}

impl SessionList {
    /// The session with this id, or the only one with this prefix.
    pub fn require(&self, prefix: &str) -> Result<&StoredRecord, SessionError> {
        let begins = |stored: &&StoredRecord| stored.record.session.as_str().starts_with(prefix);
        let found: Vec<&StoredRecord> = self.sessions.iter().filter(begins).collect();
        let exact = found.iter().find(|stored| stored.record.session.as_str() == prefix);
        match (exact, found.as_slice()) {
            (Some(stored), _) => Ok(stored),
            (None, [stored]) if !prefix.is_empty() => Ok(stored),
            (None, []) => Err(match DamagedRecord::find(prefix) {
                Some(damaged) => SessionError::Damaged(damaged),
                None => SessionError::Unknown(prefix.to_owned()),
            }),
            (None, several) => Err(SessionError::Ambiguous {
                prefix: prefix.to_owned(),
                found: several.iter().map(|stored| stored.record.session.clone()).collect(),
            }),
        }
    }
}

/// Iterates over records, newest first.
#[derive(Debug)]
pub struct RecordWalk<'a> {
    repository: &'a Repository,
    session: SessionId,
    pub(super) stream: CommitStream,
}

impl RecordWalk<'_> {
    /// The number and the task of the turn that a record is about, from its subject.
    pub(super) fn turn_in_subject(&self, commit: &RawCommit) -> Option<(u32, TaskId)> {
        let subject = commit.message().split(|byte| *byte == b'\n').next()?;
        let rest = std::str::from_utf8(subject).ok()?.strip_prefix("session ")?;
        let rest = rest.strip_prefix(self.session.as_str())?.strip_prefix(": turn ")?;
        let (number, node) = rest.split_once(" of ")?;
        Some((number.parse().ok()?, node.parse().ok()?))
    }

    pub(super) fn read(&self, commit: RawCommit) -> Result<StoredRecord, SessionError> {
        let commit = self.repository.exact(commit)?;
        let name = ref_of(&self.session);
        let record = record::read_json(&name, &commit)?;
        checked(&name, &self.session, StoredRecord { commit: commit.id, record })
    }
}

impl Iterator for RecordWalk<'_> {
    type Item = Result<StoredRecord, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        let commit = self.stream.next()?;
        Some(commit.map_err(SessionError::from).and_then(|commit| self.read(commit)))
    }
}

/// Sessions that were written in the same second are sorted by when they began, and then by name.
fn newest_first(record: &Record) -> (i64, i64, &SessionId) {
    (record.time, record.context.started, &record.session)
}

fn read_note(found: &Ref, body: &str) -> Result<StoredRecord, SessionError> {
    let record: Record = record::parse_json(&found.name, found.target, body.as_bytes())?;
    let session = record.session.clone();
    if ref_of(&session) != found.name {
        return Err(strange(&found.name, found.target, &session));
    }
    Ok(StoredRecord { commit: found.target, record })
}

fn checked(name: &str, session: &SessionId, stored: StoredRecord) -> Result<StoredRecord, SessionError> {
    if stored.record.session == *session {
        return Ok(stored);
    }
    Err(strange(name, stored.commit, &stored.record.session))
}

fn strange(name: &str, commit: Oid, session: &SessionId) -> SessionError {
    SessionError::Unreadable {
        name: name.to_owned(),
        commit,
        why: format!("it belongs to session '{session}'"),
    }
}

/// Options that are replaced together with the runner, because another program has other models.
pub const OF_RUNNER: [&str; 3] = ["model", "implement-runner", "implement-model"];

/// The options of a run. Records are pushed, so options with secrets are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedOptions {
    /// The values, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The names of options that contain a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

impl RecordedOptions {
    /// Separates options that may be recorded from those that hold a secret.
    #[must_use]
    pub fn without_secrets(given: BTreeMap<String, String>, secrets: &Secrets) -> Self {
        let (options, withheld): (BTreeMap<_, _>, BTreeMap<_, _>) =
            given.into_iter().partition(|(_, value)| Redactor::redact(secrets, value) == *value);
        Self { options, withheld: withheld.into_keys().collect() }
    }
}

impl SessionReader<'_> {
    /// The options that the session of `newest` was last given.
    pub fn recorded_options_of(&self, newest: &StoredRecord) -> Result<RecordedOptions, SessionError> {
        let record = match (&newest.record.kind, newest.record.context.asked) {
            (RecordKind::Resume(Resumed { asked: Some(_), .. }), _) => newest.clone(),
            (_, Some(commit)) => self.load(commit, &newest.record.session)?,
            (_, None) => self.start_of(newest)?,
        };
        Ok(match record.record.kind {
            RecordKind::Start(start) => RecordedOptions { options: start.options, withheld: start.withheld },
            RecordKind::Resume(resumed) => resumed.asked.unwrap_or_default(),
            _ => RecordedOptions::default(),
        })
    }
}

words! {
    /// The state of a session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum SessionState {
        /// A run is active.
        Running = "running",
        /// Another program runs it, and it has not ended.
        Open = "open",
        /// It was paused.
        Paused = "paused",
        /// It crashed: no process is working on it, and no end is recorded.
        Crashed = "crashed",
        /// It ended with a failure.
        Failed = "failed",
        /// It is done.
        Complete = "complete",
    }
}

impl SessionList {
    /// The state of a session in this list. A run's lock is that of its branch, so of several sessions on one branch
    /// only the last one can be at work.
    #[must_use]
    pub fn state_of(&self, repository: &Repository, stored: &StoredRecord) -> SessionState {
        let record = &stored.record;
        let is_last = || {
            let same =
                self.sessions.iter().filter(|other| other.record.context.branch == record.context.branch);
            same.map(|other| (other.record.context.started, &other.record.session)).max()
                == Some((record.context.started, &record.session))
        };
        let lock = || repository.run_lock(&record.context.branch);
        if record.context.driver == Driver::Run && FileLock::find_holder(&lock()).is_some() && is_last() {
            return SessionState::Running;
        }
        match &record.kind {
            RecordKind::End(SessionEnd { result: SessionVerdict::Complete, .. }) => SessionState::Complete,
            RecordKind::End(SessionEnd { result: SessionVerdict::Failed, .. }) => SessionState::Failed,
            RecordKind::Pause(_) => SessionState::Paused,
            _ if record.context.driver == Driver::Other => SessionState::Open,
            _ => SessionState::Crashed,
        }
    }
}
