//! A ticket that another run completed: its target was reset to before that run, or a new run was started since. It must
//! not land in this run, because its branch would bring the start of the other run along.

use super::{Ticket, TicketState};
use crate::{
    git::{GitError, Repository},
    history::{Run, State},
    message::{self, Message, MessageReading},
    name::Oid,
};

/// How many commits of a task are looked at to find the one that it started from.
const MAX_COMMITS: usize = 1000;

/// Why a ticket does not land even by force.
pub(super) const REWRITTEN: &str = "its branch was rewritten";
/// The beginnings of the other reasons in this file.
const GONE: &str = "the run that completed it is no longer in";
const FOREIGN: &str = "the run that completed it was never in";
const EARLIER: &str = "it was completed in an earlier run of";
const INCOMPLETE: &str = "its task is";

/// The run that completed a ticket, if it is not the run that the ticket is to land in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherRun {
    /// The commit of that run that the task started from.
    base: Oid,
    /// Whether that commit is no longer in the target.
    pub is_gone: bool,
    /// Whether the target was once at that commit, in this clone.
    was_here: bool,
    /// Whether the target has a run.
    has_run: bool,
}

impl OtherRun {
    /// Finds it by the session that the ticket's commit names.
    pub fn find(repository: &Repository, ticket: &Ticket, run: &Run) -> Result<Option<Self>, GitError> {
        let Some((last, _)) = read(repository, ticket.source)? else { return Ok(None) };
        let Some(session) = last.trailers.session() else { return Ok(None) };
        if run.start.as_ref().is_some_and(|start| start.session == session) {
            return Ok(None);
        }
        let base = find_base(repository, ticket)?;
        let is_gone = run.scope.tip.map(|tip| repository.is_ancestor(base, tip)).transpose()? != Some(true);
        // A remote may have put anything before the start of its run, so a merge of that is not advised.
        let was_here = is_gone && repository.is_in_reflog(&ticket.into.to_ref(), base)?;
        Ok(Some(Self { base, is_gone, was_here, has_run: run.start.is_some() }))
    }

    /// Why the ticket does not land.
    #[must_use]
    pub fn words(&self, ticket: &Ticket) -> String {
        let why = match (self.is_gone, self.was_here) {
            (true, true) => GONE,
            (true, false) => FOREIGN,
            (false, _) => EARLIER,
        };
        format!("{why} '{}'", ticket.into)
    }

    /// What a person can do. Two runs on two sides of a merge cannot be continued, so a run is brought back only where
    /// there is no other.
    #[must_use]
    pub fn advice(&self, ticket: &Ticket) -> String {
        let give_up = format!("git arborist merge drop {}", ticket.task);
        match self.was_here && !self.has_run {
            true => format!(
                "to bring that run back, run: git merge {}\nor remove the task from the queue: {give_up}",
                self.base.short()
            ),
            false => format!("to remove the task from the queue, run: {give_up}"),
        }
    }
}

impl Ticket {
    /// Whether it was withheld for a reason that [`Ticket::find_withheld`] gives, and that may not be true any more.
    #[must_use]
    pub fn may_be_free(&self) -> bool {
        let is_known = |why: &str| {
            [REWRITTEN, GONE, FOREIGN, EARLIER, INCOMPLETE].iter().any(|known| why.starts_with(known))
        };
        matches!(&self.standing, TicketState::Withheld { why } if is_known(why))
    }

    /// Why it must not land, as far as its branch, its task and its run tell. `tip` is the commit of its branch.
    pub fn find_withheld(
        &self,
        repository: &Repository,
        run: &Run,
        tip: Option<Oid>,
    ) -> Result<Option<String>, GitError> {
        if let Some(tip) = tip
            && tip != self.source
            && !repository.is_ancestor(self.source, tip)?
        {
            return Ok(Some(REWRITTEN.to_owned()));
        }
        if let Some(other) = OtherRun::find(repository, self, run)? {
            return Ok(Some(other.words(self)));
        }
        let state = run.state_of(&self.task);
        if state == State::Complete {
            return Ok(None);
        }
        let how = self
            .forced
            .then(|| format!("; to land it anyway, run: git arborist merge {} --force", self.task));
        Ok(Some(format!("{INCOMPLETE} {}, not complete{}", state.as_str(), how.unwrap_or_default())))
    }
}

/// The commit before the first one of the ticket's task.
fn find_base(repository: &Repository, ticket: &Ticket) -> Result<Oid, GitError> {
    let mut base = ticket.source;
    for _ in 0..MAX_COMMITS {
        match read(repository, base)? {
            Some((message, Some(parent))) if message.subject.task.as_ref() == Some(&ticket.task) => {
                base = parent;
            }
            _ => break,
        }
    }
    Ok(base)
}

/// A commit of a run, and its first parent.
fn read(repository: &Repository, commit: Oid) -> Result<Option<(Message, Option<Oid>)>, GitError> {
    let commits = repository.load_commits(&[commit])?;
    let Some(commit) = commits.first() else { return Ok(None) };
    Ok(match message::read(commit.message()) {
        MessageReading::Sound(message) => Some((*message, commit.parents().next())),
        _ => None,
    })
}
