//! What became of an attempt's turns, in one repository.

use super::{Expense, folded::Folded};
use crate::{agent::Usage, history::Event, record::IndexUpdate};

/// What became of an attempt's turns.
pub(super) struct CommittedTurns {
    /// What was written down.
    pub(super) events: Vec<Event>,
    /// What the agent did that it may not do; it has been undone.
    pub(super) noticed: Vec<String>,
    /// Commits that are not ours, and that those of the turns fold in.
    pub(super) folded: Vec<Folded>,
    /// Whether the index knows of all of it.
    pub(super) index: IndexUpdate,
    /// What was spent on messages.
    pub(super) expense: Expense,
    /// What the turns themselves tell to have spent.
    pub(super) told: Usage,
}

impl Default for CommittedTurns {
    fn default() -> Self {
        let (events, noticed, folded) = (Vec::new(), Vec::new(), Vec::new());
        let (expense, told) = (Expense::default(), Usage::default());
        Self { events, noticed, folded, index: IndexUpdate::There, expense, told }
    }
}
