//! What was meant by the configuration, for everything that a queue does.

use super::{Afterwards, Batch, Gate, RedTarget};
use crate::{process::Cancel, settings::Settings};

/// What a drain works with.
#[derive(Debug)]
pub struct Options {
    /// What has to be passed by everything that lands.
    pub gates: Vec<Gate>,
    /// How many are tested at once.
    pub batch: Batch,
    /// Whether what is red on the target too may land.
    pub red_target: RedTarget,
    /// Whether a task's branch goes when it has landed.
    pub afterwards: Afterwards,
    /// The wish to stop.
    pub cancel: Cancel,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
}

impl Options {
    /// What these settings say.
    #[must_use]
    pub fn new(settings: &Settings, cancel: Cancel, clock: fn() -> i64) -> Self {
        let deletes = settings.switch("merge.delete-branches") == Some(true);
        Self {
            gates: Vec::new(),
            batch: Batch::Auto,
            red_target: RedTarget::Hold,
            afterwards: if deletes { Afterwards::Delete } else { Afterwards::Keep },
            cancel,
            clock,
        }
    }
}
