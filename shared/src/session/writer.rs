//! Writes the records of one session. Several threads may share a writer, and other processes may write to the same
//! session: each record is put on top of the newest one by compare-and-swap, and written again if another process was
//! faster.

use std::sync::Mutex;

use super::{
    Record, RecordKind, SessionError, SessionReader, SessionStart, Spending, StoredRecord, Transcript,
    ref_of, transcript_ref_of,
};
use crate::{
    agent::Usage,
    git::{GitError, RefMove, Repository, add_notice},
    mutex::MutexExt,
    name::{Oid, SAVED, SessionId},
};

/// How often a record is written again before we give up.
const MAX_RECORD_TRIES: usize = 64;

/// The writer of one session.
#[derive(Debug)]
pub struct SessionWriter {
    repository: Repository,
    session: SessionId,
    tips: Mutex<Tips>,
}

/// The ends of both chains, as far as we know.
#[derive(Debug)]
struct Tips {
    newest: StoredRecord,
    /// `None` if not read yet.
    transcript: Option<Option<Oid>>,
    /// What was spent and is in no record yet.
    unreported: Option<Usage>,
}

/// A record to be written.
#[derive(Debug)]
pub struct DraftRecord<'a> {
    /// What happened.
    pub kind: RecordKind,
    /// The code that it is about; `None` if that has not changed.
    pub about: Option<Oid>,
    /// The tip of the session's own branch; `None` if it has not moved.
    pub tip: Option<Oid>,
    /// The transcript, if transcripts are kept.
    pub transcript: Option<Transcript>,
    /// Refs that move in the same transaction: the branch of a turn's commit.
    pub moves: Vec<RefMove<'a>>,
}

impl DraftRecord<'_> {
    /// A record about the tip of the session's own branch.
    #[must_use]
    pub fn at(tip: Oid, kind: RecordKind) -> Self {
        Self { about: Some(tip), tip: Some(tip), ..Self::of(kind) }
    }

    /// A record about code that has not changed.
    #[must_use]
    pub fn of(kind: RecordKind) -> Self {
        Self { kind, about: None, tip: None, transcript: None, moves: Vec::new() }
    }
}

impl Tips {
    fn new(newest: StoredRecord) -> Self {
        Self { newest, transcript: None, unreported: None }
    }
}

impl SessionWriter {
    /// Starts a session at the base of its first repository.
    pub fn begin(
        repository: &Repository,
        session: SessionId,
        start: SessionStart,
        time: i64,
    ) -> Result<Self, SessionError> {
        Self::begin_with(repository, session, start, time, &[])
    }

    /// Like [`Self::begin`], with refs that are created in the same transaction: the session's own branch.
    pub fn begin_with(
        repository: &Repository,
        session: SessionId,
        start: SessionStart,
        time: i64,
        others: &[RefMove<'_>],
    ) -> Result<Self, SessionError> {
        let strange =
            || GitError::UnexpectedOutput { command: "session".into(), what: "no repository".into() };
        let base = start.repositories.first().ok_or_else(strange)?.base;
        let record = Record::first(session.clone(), start, base, time).ok_or_else(strange)?;
        let name = ref_of(&session);
        let signing = repository.record_signing()?;
        let commit = repository.write_json_commit(&record.subject(), &[&record], &[base], signing)?;
        let old = find_unreadable(repository, &session)?;
        let saved = old.map(|old| format!("{SAVED}{session}/{}", old.short()));
        let mut moves = vec![RefMove { name: &name, new: Some(commit), old }];
        // A record whose object is damaged cannot be saved.
        let is_saved =
            old.is_some_and(|old| repository.load_commits(&[old]).is_ok_and(|loaded| !loaded.is_empty()));
        if let (Some(saved), Some(old), true) = (&saved, old, is_saved)
            && repository.find_ref(saved)?.is_none()
        {
            moves.push(RefMove { name: saved, new: Some(old), old: None });
        }
        moves.extend_from_slice(others);
        if let Err(error) = repository.move_refs_with_default_reason(&moves) {
            let is_there = repository.find_ref(&name)?.is_some();
            return Err(if is_there { SessionError::Exists(session) } else { error.into() });
        }
        if let Some(old) = old {
            let kept = match (is_saved, &saved) {
                (true, Some(saved)) => format!("it is kept as '{saved}'"),
                _ => format!("it was {old}"),
            };
            add_notice(format!(
                "session '{session}' has a new record, because '{name}' could not be read; {kept}"
            ));
        }
        let tips = Mutex::new(Tips::new(StoredRecord { commit, record }));
        Ok(Self { repository: repository.clone(), session, tips })
    }

    /// Continues a session, if there is one of this name.
    pub fn find(repository: &Repository, session: &SessionId) -> Result<Option<Self>, SessionError> {
        let newest = SessionReader::new(repository).newest(session)?;
        Ok(newest.map(|newest| Self::after(repository, newest)))
    }

    /// Continues a session whose newest record was just read.
    #[must_use]
    pub fn after(repository: &Repository, newest: StoredRecord) -> Self {
        let (repository, session) = (repository.clone(), newest.record.session.clone());
        let tips = Mutex::new(Tips::new(newest));
        Self { repository, session, tips }
    }

    /// The id of the session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The newest record that it knows.
    #[must_use]
    pub fn newest(&self) -> StoredRecord {
        self.tips.hold().newest.clone()
    }

    /// Adds costs that no turn reports. They are recorded with the next record, whatever that is about.
    pub fn add_unreported(&self, usage: Usage) {
        let mut tips = self.tips.hold();
        if usage != Usage::default() {
            tips.unreported = Some(tips.unreported.unwrap_or_default().plus(usage));
        }
    }

    /// Writes a record. `draft` is called with the number that a turn would have, which no other record gets; it is
    /// called again with another number if another process was faster. Returns the commit of the record.
    pub fn append<'a, E: From<SessionError>>(
        &self,
        time: i64,
        mut draft: impl FnMut(u32) -> Result<DraftRecord<'a>, E>,
    ) -> Result<Oid, E> {
        // Held during the transaction, which takes the table of owned refs.
        let mut tips = self.tips.hold();
        for _ in 0..MAX_RECORD_TRIES {
            let drafted = draft(tips.newest.record.totals.turns.saturating_add(1))?;
            match self.try_append(&mut tips, drafted, time).map_err(E::from)? {
                Some(commit) => return Ok(commit),
                None => *tips = Tips { unreported: tips.unreported, ..Tips::new(self.read_newest()?) },
            }
        }
        Err(SessionError::Busy(self.session.clone()).into())
    }

    /// Returns `None` if another process was faster.
    fn try_append(
        &self,
        tips: &mut Tips,
        draft: DraftRecord<'_>,
        time: i64,
    ) -> Result<Option<Oid>, SessionError> {
        let DraftRecord { kind, about, tip, transcript, moves: others } = draft;
        let before = &tips.newest;
        let head = about.unwrap_or(before.record.context.head);
        let tip = tip.unwrap_or(before.record.context.tip);
        let unreported = tips.unreported.map(Spending::from);
        let record = before.record.next(before.commit, kind, unreported, head, tip, time);
        let mut parents = vec![before.commit, head];
        parents.extend((tip != head).then_some(tip));
        let signing = self.repository.record_signing()?;
        let commit = self.repository.write_json_commit(&record.subject(), &[&record], &parents, signing)?;
        let (name, transcript_ref) = (ref_of(&self.session), transcript_ref_of(&self.session));
        let transcript_move = match &transcript {
            Some(transcript) => {
                let before = match tips.transcript {
                    Some(known) => known,
                    None => self.repository.find_ref(&transcript_ref)?,
                };
                let parents: Vec<Oid> = before.into_iter().collect();
                let subject = transcript.subject(&self.session);
                let commit = self.repository.write_json_commit(&subject, &[transcript], &parents, signing)?;
                Some(RefMove { name: &transcript_ref, new: Some(commit), old: before })
            }
            None => None,
        };
        // In the order in which a kill may cut them off. The transcript comes first: if a turn has no record, its
        // number is given again, and then the newest transcript of that number counts. A record without its branch is
        // repaired by the next run.
        let mut moves: Vec<RefMove<'_>> = transcript_move.into_iter().collect();
        moves.push(RefMove { name: &name, new: Some(commit), old: Some(before.commit) });
        moves.extend(others);
        if let Err(error) = self.repository.move_refs_with_default_reason(&moves) {
            // If the run owns its records, no other process writes them: what is there now was forged, and is saved and
            // undone.
            if self.repository.restore_ref(&name)? | self.repository.restore_ref(&transcript_ref)? {
                return Ok(None);
            }
            // Transcripts are written only with records, so a faster process has moved both.
            let is_elsewhere = self.read_newest()?.commit != before.commit;
            return if is_elsewhere { Ok(None) } else { Err(error.into()) };
        }
        tips.newest = StoredRecord { commit, record };
        tips.unreported = None;
        tips.transcript = transcript_move.map(|moved| moved.new).or(tips.transcript);
        Ok(Some(commit))
    }

    fn read_newest(&self) -> Result<StoredRecord, SessionError> {
        let unknown = || SessionError::Unknown(self.session.to_string());
        SessionReader::new(&self.repository).newest(&self.session)?.ok_or_else(unknown)
    }
}

/// The commit of a record that cannot be read and that a new chain replaces. A damaged ref is removed.
fn find_unreadable(repository: &Repository, session: &SessionId) -> Result<Option<Oid>, SessionError> {
    let name = ref_of(session);
    repository.remove_broken_ref(&name)?;
    match repository.find_ref(&name)? {
        Some(old) if SessionReader::new(repository).newest(session)?.is_none() => Ok(Some(old)),
        _ => Ok(None),
    }
}
