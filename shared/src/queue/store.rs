//! Stores tickets and outcomes in refs. Each change is a commit on top of the previous one, so nothing is ever lost.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{QueueError, ResolvedBy, Ticket};
use crate::{
    git::{Ownership, Ref, RefMove, Repository, add_notice},
    mutex::MutexExt,
    name::{BranchName, Oid, TaskId, saved_ref},
    words::words,
};

/// The prefix of the refs of tickets.
pub const TICKETS: &str = "refs/arborist/queue/tickets/";
/// The prefix of the refs of logs, one for each target.
pub const LOGS: &str = "refs/arborist/queue/log/";
/// Up to this many tickets are looked up one by one.
const FEW: usize = 4;

/// A ticket and the ref that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTicket {
    /// The content.
    pub ticket: Ticket,
    /// The ref's name.
    pub name: String,
    /// The commit of the ref.
    pub commit: Oid,
}

words! {
    /// What became of a ticket, as the log of outcomes says it. It is serialised into git as one word.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LoggedOutcome {
        /// It landed.
        Landed = "landed",
        /// Its changes were on the target already.
        NoChange = "no-change",
        /// The change of another task was chosen.
        NotChosen = "not-chosen",
        /// A gate failed.
        Red = "red",
        /// It conflicts with the target, and an agent may resolve it.
        Conflict = "conflict",
        /// It conflicts with the target, and a person has to resolve it.
        Escalated = "escalated",
        /// Its task is done again.
        Withdrawn = "withdrawn",
        /// A person took it out of the queue.
        Dropped = "dropped",
        /// A newer version wrote another word.
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl LoggedOutcome {
    /// Whether the gates ran and decided.
    #[must_use]
    pub fn is_try(self) -> bool {
        matches!(self, Self::Landed | Self::Red)
    }
}

/// One entry of the log of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The task.
    pub task: TaskId,
    /// The branch of its run.
    pub scope: BranchName,
    /// The commit that was to land.
    pub source: Oid,
    /// What became of the ticket.
    pub outcome: LoggedOutcome,
    /// Its merge commit, or the commit that was tested.
    pub commit: Option<Oid>,
    /// When it was written: seconds since 1970.
    pub time: i64,
    /// Details, in words.
    #[serde(default)]
    pub words: String,
}

impl LogEntry {
    /// An entry for a ticket.
    #[must_use]
    pub fn new(ticket: &Ticket, outcome: LoggedOutcome, commit: Option<Oid>, time: i64) -> Self {
        Self {
            task: ticket.task.clone(),
            scope: ticket.scope.clone(),
            source: ticket.source,
            outcome,
            commit,
            time,
            words: String::new(),
        }
    }
}

/// Whether an outcome may have been logged before a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeWritten {
    /// It has just happened.
    New,
    /// It may have been. Then it is not logged again.
    Perhaps,
}

/// Reads and writes tickets and outcomes.
#[derive(Debug)]
pub struct Store<'a> {
    repository: &'a Repository,
}

impl<'a> Store<'a> {
    /// The store of this repository.
    #[must_use]
    pub fn new(repository: &'a Repository) -> Self {
        Self { repository }
    }

    /// Loads all tickets, or those of one run. Unreadable ones are left out, see [`take_unreadable_tickets`].
    pub fn load(&self, scope: Option<&BranchName>) -> Result<Vec<StoredTicket>, QueueError> {
        let folder = scope.map_or_else(|| TICKETS.to_owned(), folder_of);
        Ok(read_tickets(self.repository.start_listing_notes(&[&folder])?.finish()?))
    }

    /// Finds the ticket of one task. An unreadable one is an error.
    pub fn find(&self, scope: &BranchName, task: &TaskId) -> Result<Option<StoredTicket>, QueueError> {
        let name = format!("{}{task}", folder_of(scope));
        self.repository.find_note(&name)?.map(|(found, body)| read_ticket(found, &body)).transpose()
    }

    /// Queues tickets of one run. They replace older tickets of the same tasks.
    pub fn add(&self, tickets: Vec<Ticket>) -> Result<(), QueueError> {
        let Some(first) = tickets.first() else {
            return Ok(());
        };
        let known = if self.are_new(&tickets)? { Vec::new() } else { self.load(Some(&first.scope))? };
        let with_old = |ticket: Ticket| (known.iter().find(|old| old.ticket.task == ticket.task), ticket);
        let writes: Vec<(Option<&StoredTicket>, Ticket)> = tickets.into_iter().map(with_old).collect();
        self.write(&writes).map(drop)
    }

    /// Whether these tickets, if they are few, replace none.
    fn are_new(&self, tickets: &[Ticket]) -> Result<bool, QueueError> {
        if tickets.len() > FEW {
            return Ok(false);
        }
        for ticket in tickets {
            let name = format!("{}{}", folder_of(&ticket.scope), ticket.task);
            if self.repository.find_ref(&name)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the ticket of a task that cannot be read, so that a new one can be written. If it leads to a
    /// commit, it is saved under another ref. A warning names it.
    fn clear_unreadable(&self, scope: &BranchName, task: &TaskId) -> Result<(), QueueError> {
        let name = format!("{}{task}", folder_of(scope));
        let repository = self.repository;
        if repository.remove_broken_ref(&name)? {
            add_notice(format!("the queue entry '{name}' was damaged and has been replaced"));
        }
        let Some(found) = repository.find_ref(&name)? else { return Ok(()) };
        let why = match self.find(scope, task) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => "its commit is missing or damaged".to_owned(),
            Err(QueueError::Unreadable { why, .. }) => why,
            Err(error) => return Err(error),
        };
        let saved = saved_ref(&format!("{}/{task}", scope.component()), "ticket", found);
        let is_commit = repository.load_commits(&[found]).is_ok_and(|commits| !commits.is_empty());
        let mut moves = vec![RefMove { name: &name, new: None, old: Some(found) }];
        if is_commit && repository.find_ref(&saved)?.is_none() {
            moves.push(RefMove { name: &saved, new: Some(found), old: None });
        }
        repository.move_refs_with_default_reason(&moves)?;
        UNREADABLE.hold().retain(|(other, _)| *other != name);
        let kept = if is_commit { format!("it is kept as '{saved}'") } else { format!("it was {found}") };
        add_notice(format!("the queue entry '{name}' could not be read ({why}), and was replaced; {kept}"));
        Ok(())
    }

    /// Writes tickets, each on top of its previous version if there is one.
    pub fn write(
        &self,
        tickets: &[(Option<&StoredTicket>, Ticket)],
    ) -> Result<Vec<StoredTicket>, QueueError> {
        for (_, ticket) in tickets.iter().filter(|(old, _)| old.is_none()) {
            self.clear_unreadable(&ticket.scope, &ticket.task)?;
        }
        let mut written = Vec::new();
        for (old, ticket) in tickets {
            let commit = self.write_commit(*old, ticket)?;
            let name = format!("{}{}", folder_of(&ticket.scope), ticket.task);
            written.push(StoredTicket { ticket: ticket.clone(), name, commit });
        }
        let moves: Vec<RefMove<'_>> = written
            .iter()
            .zip(tickets)
            .map(|(new, (old, _))| RefMove {
                name: &new.name,
                new: Some(new.commit),
                old: old.map(|old| old.commit),
            })
            .collect();
        if !moves.is_empty() {
            self.repository.move_refs_with_default_reason(&moves)?;
        }
        Ok(written)
    }

    /// Writes the commit of a ticket. Its parents are the previous version and the commits that the ticket mentions, so
    /// that git keeps them.
    fn write_commit(&self, old: Option<&StoredTicket>, ticket: &Ticket) -> Result<Oid, QueueError> {
        let parents: Vec<Oid> =
            old.map(|old| old.commit).into_iter().chain([ticket.source]).chain(ticket.resolved).collect();
        let subject = format!("queue: {} is {}", ticket.task, ticket.state.as_str());
        let signing = self.repository.record_signing()?;
        Ok(self.repository.write_json_commit(&subject, &[ticket], &parents, signing)?)
    }

    /// Logs outcomes, and deletes the tickets in `closed` in the same transaction.
    pub fn log(
        &self,
        into: &BranchName,
        entries: &[LogEntry],
        closed: &[StoredTicket],
        written: OutcomeWritten,
    ) -> Result<(), QueueError> {
        let name = log_of(into);
        let old = self.repository.find_ref(&name)?;
        let mut moves = Vec::new();
        let known = match (written, old) {
            (OutcomeWritten::Perhaps, Some(tip)) => self.read_log(tip, Some(1))?,
            _ => Vec::new(),
        };
        let entries: Vec<&LogEntry> = entries.iter().filter(|entry| !is_known(&known, entry)).collect();
        if let Some(first) = entries.first() {
            let parents: Vec<Oid> =
                old.into_iter().chain(closed.iter().map(|ticket| ticket.commit)).collect();
            let words = match entries.len() {
                1 => format!("{} {}", first.task, first.outcome.as_str()),
                more => format!("{more} tickets"),
            };
            let signing = self.repository.record_signing()?;
            let subject = format!("queue: {words}");
            let commit = self.repository.write_json_commit(&subject, &entries, &parents, signing)?;
            moves.push(RefMove { name: &name, new: Some(commit), old });
        }
        moves.extend(closed.iter().map(|ticket| RefMove {
            name: &ticket.name,
            new: None,
            old: Some(ticket.commit),
        }));
        if !moves.is_empty() {
            self.repository.move_refs_with_default_reason(&moves)?;
        }
        Ok(())
    }

    /// Takes a ticket out of the queue. Commits that it alone keeps are saved first: those of a task whose branch is gone
    /// or was rewritten, and a resolution. Returns the names of their refs.
    pub fn take_out(&self, stored: &StoredTicket, time: i64) -> Result<Vec<String>, QueueError> {
        let ticket = &stored.ticket;
        let branch = self.repository.find_branch(&ticket.branch())?;
        let has = |tip: Oid| self.repository.is_ancestor(ticket.source, tip);
        let target = self.repository.find_branch(&ticket.into)?;
        let is_kept =
            branch.into_iter().chain(target).map(has).collect::<Result<Vec<bool>, _>>()?.contains(&true);
        let kept = (!is_kept).then_some(("branch", ticket.source));
        let unit = format!("{}/{}", ticket.scope.component(), ticket.task);
        let mut saved = Vec::new();
        for (kind, commit) in kept.into_iter().chain(ticket.resolved.map(|commit| ("conflict", commit))) {
            let name = saved_ref(&unit, kind, commit);
            self.repository.save_commit(&name, commit)?;
            saved.push(name);
        }
        let entry = LogEntry::new(ticket, LoggedOutcome::Dropped, None, time);
        self.log(&ticket.into, &[entry], std::slice::from_ref(stored), OutcomeWritten::New)?;
        Ok(saved)
    }

    /// Loads the log of a target, newest first, from at most `count` commits.
    pub fn load_log(&self, into: &BranchName, count: usize) -> Result<Vec<LogEntry>, QueueError> {
        match self.repository.find_ref(&log_of(into))? {
            Some(tip) => self.read_log(tip, Some(count)),
            None => Ok(Vec::new()),
        }
    }

    /// Loads the log entries of a run, newest first: all of them, or those in at most `count` commits for each target.
    pub fn load_logs(&self, scope: &BranchName, count: Option<usize>) -> Result<Vec<LogEntry>, QueueError> {
        let mut entries = Vec::new();
        for log in self.repository.list_refs(&[LOGS])? {
            entries.extend(self.read_log(log.target, count)?);
        }
        entries.retain(|entry| entry.scope == *scope);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.time));
        Ok(entries)
    }

    fn read_log(&self, tip: Oid, count: Option<usize>) -> Result<Vec<LogEntry>, QueueError> {
        let mut revisions = vec!["--first-parent".into(), tip.to_string()];
        revisions.extend(count.map(|count| format!("-n{count}")));
        let mut entries = Vec::new();
        for commit in self.repository.stream_commits(&revisions)? {
            let commit = self.repository.exact(commit?)?;
            let text = String::from_utf8_lossy(commit.message()).into_owned();
            let lines = text.lines().skip(2).filter_map(|line| serde_json::from_str(line).ok());
            let mut of_commit: Vec<LogEntry> = lines.collect();
            of_commit.reverse();
            entries.append(&mut of_commit);
        }
        Ok(entries)
    }
}

/// Whether an entry is in the log already. That happens after a crash between logging and cleaning up.
fn is_known(known: &[LogEntry], entry: &LogEntry) -> bool {
    known.iter().any(|other| {
        (&other.task, other.source, other.outcome, other.commit)
            == (&entry.task, entry.source, entry.outcome, entry.commit)
    })
}

/// The refs of a run's queue: its tickets, its log, and what is parked for its branch.
pub(crate) fn queue_refs(run: &BranchName) -> Ownership {
    let names = vec![run.landing_ref(), log_of(run)];
    Ownership { names, prefixes: vec![folder_of(run)], ..Ownership::default() }
}

/// The prefix of the refs of a run's tickets.
pub(super) fn folder_of(scope: &BranchName) -> String {
    format!("{TICKETS}{}/", scope.component())
}

fn log_of(into: &BranchName) -> String {
    format!("{LOGS}{}", into.component())
}

/// The names of unreadable tickets, and what is wrong with them. One of them must not block the others, so they are
/// left out of every list, and the command says so when it ends.
static UNREADABLE: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The refs of tickets that could not be read, each once, with the reason.
#[must_use]
pub fn take_unreadable_tickets() -> Vec<(String, String)> {
    std::mem::take(&mut UNREADABLE.hold())
}

/// Parses tickets. Unreadable ones are left out and remembered.
pub(super) fn read_tickets(notes: Vec<(Ref, String)>) -> Vec<StoredTicket> {
    let mut tickets = Vec::new();
    for (found, body) in notes {
        match read_ticket(found, &body) {
            Ok(ticket) => tickets.push(ticket),
            Err(QueueError::Unreadable { name, why }) => {
                let mut known = UNREADABLE.hold();
                if known.iter().all(|(other, _)| *other != name) {
                    known.push((name, why));
                }
            }
            Err(_) => {}
        }
    }
    tickets
}

/// Parses the ticket in a ref. The ref's name must be that of the ticket's run and task; otherwise a ticket could land
/// under the name of another.
fn read_ticket(found: Ref, body: &str) -> Result<StoredTicket, QueueError> {
    let unreadable = |why: String| QueueError::Unreadable { name: found.name.clone(), why };
    let mut ticket: Ticket = serde_json::from_str(body).map_err(|error| unreadable(error.to_string()))?;
    // Earlier versions did not record it.
    ticket.has_persons_work |= ticket.resolver() == Some(&ResolvedBy::Person);
    if found.name != format!("{}{}", folder_of(&ticket.scope), ticket.task) {
        return Err(unreadable(format!("it is about '{}' of '{}'", ticket.task, ticket.scope)));
    }
    Ok(StoredTicket { ticket, name: found.name, commit: found.target })
}

#[cfg(test)]
mod tests {
    use super::LoggedOutcome;

    #[test]
    fn recorded_outcome_names_of_the_queue_log_never_change() {
        let words =
            ["landed", "no-change", "not-chosen", "red", "conflict", "escalated", "withdrawn", "dropped"];
        for word in words {
            let outcome: LoggedOutcome = serde_json::from_value(word.into()).unwrap();
            assert_eq!(outcome.as_str(), word);
            assert_eq!(serde_json::to_value(outcome).unwrap(), word);
        }
        let newer: LoggedOutcome = serde_json::from_value("of a newer version".into()).unwrap();
        assert_eq!(newer, LoggedOutcome::Unknown);
    }
}
