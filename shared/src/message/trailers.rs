//! The trailers of a sound message.

use super::{Key, PlanRef};
use crate::name::{Attempt, Oid, SessionId};

/// Our trailers in the order in which they stand, each key at most once, each value legal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    entries: Vec<(Key, String)>,
}

impl Trailers {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&str> {
        self.entries.iter().find(|(k, _)| *k == key).map(|(_, value)| value.as_str())
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &str)> {
        self.entries.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Adds a trailer. `Err` with what is expected if the value is illegal; a key that stands is replaced.
    pub fn set(&mut self, key: Key, value: impl Into<String>) -> Result<(), &'static str> {
        let value = value.into();
        key.check(&value)?;
        self.entries.retain(|(k, _)| *k != key);
        self.entries.push((key, value));
        Ok(())
    }

    /// The attempt, where the status has one.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.get(Key::Retry)?.parse().ok().map(Attempt)
    }

    /// The session of the run.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.get(Key::Session)?.parse().ok()
    }

    /// The frozen plan, where one is named.
    #[must_use]
    pub fn plan(&self) -> Option<PlanRef> {
        PlanRef::parse(self.get(Key::Plan)?)
    }

    /// The commit that was landed.
    #[must_use]
    pub fn source(&self) -> Option<Oid> {
        self.get(Key::Source)?.parse().ok()
    }
}
