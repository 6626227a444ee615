//! What became of an attempt's turns, in one repository.

use super::Expense;
use crate::{agent::Usage, history::Event, record::Index};

/// What became of an attempt's turns.
pub(super) struct Kept {
    /// What was written down.
    pub(super) events: Vec<Event>,
    /// What the agent did that it may not do; it has been undone.
    pub(super) noticed: Vec<String>,
    /// Whether the index knows of all of it.
    pub(super) index: Index,
    /// What was spent on messages.
    pub(super) expense: Expense,
    /// What the turns themselves tell to have spent.
    pub(super) told: Usage,
}

impl Default for Kept {
    fn default() -> Self {
        let (events, noticed) = (Vec::new(), Vec::new());
        let (expense, told) = (Expense::default(), Usage::default());
        Self { events, noticed, index: Index::There, expense, told }
    }
}
