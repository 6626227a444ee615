//! The trailers of a sound message.

use std::ops::Range;

use super::{Key, OtherLandings, PlanRef};
use crate::name::{Attempt, Oid, SessionId};

/// Our trailers in order, each key at most once, each value legal. All values are stored in one text, because ten
/// thousand commits are read at a time.
#[derive(Debug, Clone, Default)]
pub struct Trailers {
    text: String,
    entries: Vec<(Key, Range<u32>)>,
}

impl PartialEq for Trailers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Trailers {}

impl Trailers {
    /// An empty list with this capacity.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), entries: Vec::with_capacity(count) }
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&str> {
        self.entries.iter().find(|(k, _)| *k == key).map(|(_, place)| self.at(place))
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &str)> {
        self.entries.iter().map(|(key, place)| (*key, self.at(place)))
    }

    fn at(&self, place: &Range<u32>) -> &str {
        &self.text[place.start as usize..place.end as usize]
    }

    /// The end of the text. Values are short and each key occurs once, so the number cannot overflow.
    fn end(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }

    /// Adds or replaces a trailer. `Err` says what is expected if the value is illegal.
    pub fn set(&mut self, key: Key, value: impl AsRef<str>) -> Result<(), &'static str> {
        let value = value.as_ref();
        key.check(value)?;
        self.entries.retain(|(k, _)| *k != key);
        let from = self.end();
        self.text.push_str(value);
        self.entries.push((key, from..self.end()));
        Ok(())
    }

    /// The attempt, if the status has one.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.get(Key::Retry)?.parse().ok().map(Attempt)
    }

    /// The version of the format of the run's commits.
    #[must_use]
    pub fn format(&self) -> u32 {
        self.get(Key::Format).and_then(|format| format.parse().ok()).unwrap_or(1)
    }

    /// The session of the run.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.get(Key::Session)?.parse().ok()
    }

    /// The frozen plan, if there is one.
    #[must_use]
    pub fn plan(&self) -> Option<PlanRef> {
        PlanRef::parse(self.get(Key::Plan)?)
    }

    /// What landed in other repositories.
    #[must_use]
    pub fn landed_in(&self) -> OtherLandings {
        self.get(Key::LandedIn).and_then(OtherLandings::parse).unwrap_or_default()
    }

    /// The commit that was landed.
    #[must_use]
    pub fn source(&self) -> Option<Oid> {
        self.get(Key::Source)?.parse().ok()
    }
}
