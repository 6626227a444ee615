//! Writes one session down. Several threads may share a chronicle, and other processes may write the same session: each
//! record follows the newest by compare-and-swap, and is made anew where somebody else was faster.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::{
    Archive, Happening, Record, SessionError, Start, Stored, Transcript, chain, ref_of, transcript_ref_of,
};
use crate::{
    git::{GitError, RefMove, Repository, Signing},
    name::{Oid, SessionId},
};

/// How often a record is made anew before we give up.
const TRIES: usize = 64;

/// The writer of one session.
#[derive(Debug)]
pub struct Chronicle {
    repository: Repository,
    session: SessionId,
    /// What our commits hold, once it is known.
    nothing: OnceLock<Oid>,
    tips: Mutex<Tips>,
}

/// Where the chains end, as far as we know.
#[derive(Debug)]
struct Tips {
    newest: Stored,
    transcript: Option<Oid>,
}

/// A record to be written.
#[derive(Debug)]
pub struct Draft<'a> {
    /// What happened.
    pub happening: Happening,
    /// The code that it is about; `None` if that has not changed.
    pub about: Option<Oid>,
    /// What was said, if that is kept.
    pub transcript: Option<Transcript>,
    /// Refs that move with it, or not at all: the branch of a turn's commit.
    pub moves: Vec<RefMove<'a>>,
}

impl Draft<'_> {
    /// A record about code that has not changed, alone.
    #[must_use]
    pub fn of(happening: Happening) -> Self {
        Self { happening, about: None, transcript: None, moves: Vec::new() }
    }
}

impl Chronicle {
    /// Begins a session at the commit that its first repository starts from.
    pub fn begin(
        repository: &Repository,
        session: SessionId,
        start: Start,
        time: i64,
    ) -> Result<Self, SessionError> {
        let strange = || GitError::Strange { command: "session".into(), what: "no repository".into() };
        let base = start.repositories.first().ok_or_else(strange)?.base;
        let record = Record::first(session.clone(), start, base, time).ok_or_else(strange)?;
        let name = ref_of(&session);
        let tree = repository.empty_tree()?;
        let message = chain::message(&record.subject(), &record)?;
        let commit = repository.write_joint(tree, &[base], &message, Signing::No)?;
        if let Err(error) =
            repository.move_refs_again(&[RefMove { name: &name, new: Some(commit), old: None }])
        {
            let is_there = repository.find_ref(&name)?.is_some();
            return Err(if is_there { SessionError::Exists(session) } else { error.into() });
        }
        let tips = Mutex::new(Tips { newest: Stored { commit, record }, transcript: None });
        Ok(Self { repository: repository.clone(), session, nothing: OnceLock::from(tree), tips })
    }

    /// Goes on with a session, if there is one of this name.
    pub fn find(repository: &Repository, session: &SessionId) -> Result<Option<Self>, SessionError> {
        let Some(tips) = Tips::read(repository, session)? else {
            return Ok(None);
        };
        let (repository, session) = (repository.clone(), session.clone());
        Ok(Some(Self { repository, session, nothing: OnceLock::new(), tips: Mutex::new(tips) }))
    }

    /// The session that it writes.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The newest record that it knows of.
    #[must_use]
    pub fn newest(&self) -> Record {
        self.tips.lock().unwrap_or_else(PoisonError::into_inner).newest.record.clone()
    }

    /// Writes a record. `draft` is told the number that a turn would have now, which nobody else gets; it is asked again,
    /// with another number, if another process was faster. Gives the commit of the record.
    pub fn append<'a, E: From<SessionError>>(
        &self,
        time: i64,
        mut draft: impl FnMut(u32) -> Result<Draft<'a>, E>,
    ) -> Result<Oid, E> {
        let mut tips = self.tips.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            let drafted = draft(tips.newest.record.totals.turns.saturating_add(1))?;
            match self.try_append(&mut tips, drafted, time).map_err(E::from)? {
                Some(commit) => return Ok(commit),
                None => *tips = self.read_tips()?,
            }
        }
        Err(SessionError::Busy(self.session.clone()).into())
    }

    /// `None` if somebody else was faster.
    fn try_append(&self, tips: &mut Tips, draft: Draft<'_>, time: i64) -> Result<Option<Oid>, SessionError> {
        let Draft { happening, about, transcript, moves: others } = draft;
        let before = &tips.newest;
        let head = about.unwrap_or(before.record.context.head);
        let record = before.record.next(before.commit, happening, head, time);
        let commit = self.write(&[before.commit, head], &record.subject(), &record)?;
        let said = match &transcript {
            Some(said) => {
                let parents: Vec<Oid> = tips.transcript.into_iter().collect();
                Some(self.write(&parents, &said.subject(&self.session), said)?)
            }
            None => None,
        };
        let (name, spoken) = (ref_of(&self.session), transcript_ref_of(&self.session));
        let mut moves = vec![RefMove { name: &name, new: Some(commit), old: Some(before.commit) }];
        moves.extend(others);
        moves.extend(said.map(|said| RefMove { name: &spoken, new: Some(said), old: tips.transcript }));
        if let Err(error) = self.repository.move_refs_again(&moves) {
            let now = self.read_tips()?;
            let is_elsewhere = now.newest.commit != before.commit || now.transcript != tips.transcript;
            return if is_elsewhere { Ok(None) } else { Err(error.into()) };
        }
        tips.newest = Stored { commit, record };
        tips.transcript = said.or(tips.transcript);
        Ok(Some(commit))
    }

    fn write(
        &self,
        parents: &[Oid],
        subject: &str,
        value: &impl serde::Serialize,
    ) -> Result<Oid, SessionError> {
        let tree = match self.nothing.get() {
            Some(tree) => *tree,
            None => {
                let tree = self.repository.empty_tree()?;
                *self.nothing.get_or_init(|| tree)
            }
        };
        let message = chain::message(subject, value)?;
        Ok(self.repository.write_joint(tree, parents, &message, Signing::No)?)
    }

    fn read_tips(&self) -> Result<Tips, SessionError> {
        let unknown = || SessionError::Unknown(self.session.to_string());
        Tips::read(&self.repository, &self.session)?.ok_or_else(unknown)
    }
}

impl Tips {
    fn read(repository: &Repository, session: &SessionId) -> Result<Option<Self>, SessionError> {
        let transcript = repository.find_ref(&transcript_ref_of(session))?;
        let newest = Archive::new(repository).newest(session)?;
        Ok(newest.map(|newest| Self { newest, transcript }))
    }
}
