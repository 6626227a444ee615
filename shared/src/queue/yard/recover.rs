//! The queue as git tells it, and what a crash or a person left to be put right.

use std::collections::{HashMap, HashSet};

use super::Yard;
use crate::{
    history::{Event, Reading, Run, Scope, State},
    message::Status,
    name::{Oid, TaskId},
    queue::{
        LogEntry, Parking, Position, QueueError, Standing, Stored, Ticket, View, store::read_tickets,
        target::Moving,
    },
};

/// The tries that the size of batches follows.
const RECENT: usize = 50;

impl Yard<'_> {
    /// Reads the queue anew, closes what has landed, and brings tickets up to date with their branches and tasks.
    pub(super) fn recover(&mut self) -> Result<View, QueueError> {
        let tickets = self.store.start_loading(Some(self.scope))?;
        let branches = self.repository.start_listing_refs(&[&self.scope.task_refs()])?;
        let position = self.target().require()?;
        let scope = Scope { branch: self.scope.clone(), tip: Some(position.tip()) };
        let run = Run::scan(self.repository, scope, Reading::Fresh)?;
        let prefix = self.scope.task_refs();
        let tips: HashMap<String, Oid> = branches
            .finish()?
            .into_iter()
            .filter_map(|found| Some((found.name.strip_prefix(&prefix)?.to_owned(), found.target)))
            .collect();
        let is_ours = |stored: &Stored| stored.ticket.into == *self.into;
        self.stored = read_tickets(tickets)?
            .into_iter()
            .filter(is_ours)
            .map(|stored| (stored.ticket.task.clone(), stored))
            .collect();
        let landed: HashSet<TaskId> = run
            .tasks
            .iter()
            .filter(|history| history.is_landed && history.state.state == State::Complete)
            .map(|history| history.id.clone())
            .collect();
        let record = self.record()?;
        let mut view = View { tip: Some(position.tip()), landed, record, ..View::default() };
        let tickets: Vec<Ticket> = self.stored.values().map(|stored| stored.ticket.clone()).collect();
        for ticket in tickets {
            match Self::landing_of(&run, &ticket) {
                Some(commit) if self.is_parked(commit, &position)? => {
                    let parked = Ticket { standing: Standing::Parked { commit }, ..ticket.clone() };
                    view.tickets.push(self.settle(&ticket, parked)?);
                }
                Some(commit) => view.done.push((ticket, commit)),
                None => {
                    let tip = tips.get(ticket.task.as_str()).copied();
                    let fresh = self.refreshed(&ticket, tip, &run)?;
                    view.tickets.push(self.settle(&ticket, fresh)?);
                }
            }
        }
        view.tickets.sort_by(|a, b| a.task.cmp(&b.task));
        self.close_all(&view.done, "landed")?;
        Ok(view)
    }

    /// Brings the branch up to what is parked for it, if its checkout lets it now.
    pub(in crate::queue) fn bring_up(&mut self) -> Result<Option<Parking>, QueueError> {
        self.target().clear_stale()?;
        let position = self.target().require()?;
        let Some(parked) = position.parked else {
            return Ok(None);
        };
        match self.target().advance(position.branch, parked)? {
            Moving::Refused(parking) => Ok(Some(parking)),
            Moving::Done | Moving::Elsewhere => Ok(None),
        }
    }

    /// What is on the target of a ticket that a crash may have left, by the target's own commits.
    fn landing_of(run: &Run, ticket: &Ticket) -> Option<Oid> {
        let history = run.find(&ticket.task).filter(|history| history.is_landed)?;
        let is_it = |event: &&Event| {
            event.status() == Status::Merge && event.trailers.source() == Some(ticket.source)
        };
        history.events.iter().rev().find(is_it).map(|event| event.commit)
    }

    /// A ticket as it must be now: its branch may have grown, or its task may be complete no more.
    fn refreshed(&self, ticket: &Ticket, tip: Option<Oid>, run: &Run) -> Result<Ticket, QueueError> {
        let state = run.find(&ticket.task).map_or(State::Pending, |history| history.state.state);
        let mut fresh = ticket.clone();
        let why = match tip {
            None => Some("its branch is gone".to_owned()),
            Some(tip) if tip != ticket.source && !self.repository.is_ancestor(ticket.source, tip)? => {
                Some("its branch was rewritten".to_owned())
            }
            _ if state != State::Complete && !ticket.forced => {
                Some(format!("its task is {}, not complete", state.as_str()))
            }
            _ => None,
        };
        match (why, tip) {
            (Some(why), _) => fresh.standing = Standing::Withheld { why },
            (None, Some(tip)) if tip != ticket.source => {
                fresh = Ticket {
                    source: tip,
                    standing: Standing::Waiting,
                    tries: Vec::new(),
                    resolved: None,
                    ..fresh
                };
            }
            _ if matches!(ticket.standing, Standing::Parked { .. } | Standing::Withheld { .. }) => {
                fresh.standing = Standing::Waiting;
            }
            _ => {}
        }
        Ok(fresh)
    }

    fn is_parked(&self, commit: Oid, position: &Position) -> Result<bool, QueueError> {
        Ok(position.parked.is_some() && !self.repository.is_ancestor(commit, position.branch)?)
    }

    /// How many of the last tries there were, and how many of them were red.
    fn record(&self) -> Result<(usize, usize), QueueError> {
        if self.options.gates.is_empty() {
            return Ok((0, 0));
        }
        let log = self.store.load_log(self.into, RECENT)?;
        let is_try = |entry: &&LogEntry| matches!(entry.outcome.as_str(), "landed" | "red");
        let tries: Vec<&LogEntry> = log.iter().filter(is_try).take(RECENT).collect();
        Ok((tries.len(), tries.iter().filter(|entry| entry.outcome == "red").count()))
    }

    /// Whether a ticket has gates of its own.
    pub(in crate::queue) fn has_gated_tickets(&self) -> Result<bool, QueueError> {
        let stored = self.store.load(Some(self.scope))?;
        Ok(stored.iter().any(|stored| !stored.ticket.gates.is_empty()))
    }
}
