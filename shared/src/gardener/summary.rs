//! What a whole run came to.

use super::{Needs, Unlanded};
use crate::{failure::Exit, name::TaskId};

/// How a whole run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Completed in this call.
    pub completed: Vec<TaskId>,
    /// Failed in this call.
    pub failed: Vec<TaskId>,
    /// Left undone because something they wait for is.
    pub left: Vec<TaskId>,
    /// Complete, but not on the run's branch.
    pub unlanded: Vec<Unlanded>,
    /// What a person has to type so that landings reach their checkout.
    pub parked: Option<String>,
    /// The option whose limit is used up, and a value that lets what is left go on.
    pub raise: Option<(&'static str, String)>,
}

impl Summary {
    /// Whether everything that was wanted is done and in its place.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.failed.is_empty() && self.left.is_empty() && self.unlanded.is_empty() && self.parked.is_none()
    }

    /// What a command exits with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let needs_person = self.unlanded.iter().any(|unlanded| unlanded.needs == Needs::Person);
        match (needs_person || self.parked.is_some(), self.is_well()) {
            (true, _) => Exit::Person,
            (false, true) => Exit::Done,
            (false, false) => Exit::No,
        }
    }
}
