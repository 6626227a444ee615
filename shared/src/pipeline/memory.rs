//! What is remembered while a process lives, and may be forgotten: who cannot work just now.

use jiff::Timestamp;

use super::Crew;
use crate::agent::limits::Chain;

/// Who cannot work just now.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    absent: Vec<Absence>,
}

#[derive(Debug, Clone)]
struct Absence {
    crew: Crew,
    /// `None`: for as long as this process lives.
    until: Option<Timestamp>,
}

impl Memory {
    /// The first of a chain who can work; the last, if nobody can.
    #[must_use]
    pub fn choose<'c>(&self, chain: &'c Chain<Crew>, now: Timestamp) -> &'c Crew {
        let is_absent = |crew: &Crew| {
            let of_crew = self.absent.iter().filter(|absence| absence.crew == *crew);
            of_crew.into_iter().any(|absence| absence.until.is_none_or(|until| until > now))
        };
        let last = chain.iter().last().unwrap_or(chain.first());
        chain.iter().find(|crew| !is_absent(crew)).unwrap_or(last)
    }

    /// Remembers that somebody cannot work, and until when if that is known.
    pub fn miss(&mut self, crew: &Crew, until: Option<Timestamp>) {
        self.absent.push(Absence { crew: crew.clone(), until });
    }
}
