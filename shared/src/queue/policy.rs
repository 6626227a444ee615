//! Which of several tasks land together. Pure.

use std::{fmt, str::FromStr};

/// Which of the wanted tasks land.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FanIn {
    /// All that can.
    #[default]
    KeepClean,
    /// All of them at once, or none.
    AllOrNothing,
    /// The first `n` that can. The others are closed.
    Choose(usize),
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLanding {
    /// Stack and test at most this many tickets.
    Try(usize),
    /// Stop: enough have landed.
    Enough,
}

/// What to do with a stack that cannot land as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackSetback {
    /// Land the good tickets of it.
    Part,
    /// Land nothing of it.
    Refuse,
}

impl FanIn {
    /// What to do next, given how many wanted tickets have landed and the size of a batch.
    #[must_use]
    pub fn turn(self, landed: usize, size: usize) -> NextLanding {
        match self {
            Self::KeepClean => NextLanding::Try(size),
            Self::AllOrNothing => NextLanding::Try(usize::MAX),
            Self::Choose(count) if landed >= count => NextLanding::Enough,
            Self::Choose(_) => NextLanding::Try(1),
        }
    }

    /// What to do with a stack if a ticket of it conflicts, waits or fails a gate.
    #[must_use]
    pub fn setback(self) -> StackSetback {
        if self == Self::AllOrNothing { StackSetback::Refuse } else { StackSetback::Part }
    }
}

impl fmt::Display for FanIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepClean => f.pad("keep-clean"),
            Self::AllOrNothing => f.pad("all-or-nothing"),
            Self::Choose(count) => write!(f, "{count}"),
        }
    }
}

impl FromStr for FanIn {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "keep-clean" => Ok(Self::KeepClean),
            "all-or-nothing" => Ok(Self::AllOrNothing),
            "first" => Ok(Self::Choose(1)),
            count => match count.parse() {
                Ok(count) if count > 0 => Ok(Self::Choose(count)),
                _ => Err("it must be keep-clean, all-or-nothing, first, or a number from 1"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_says_what_comes_next() {
        for (word, landed, turn, setback) in [
            ("keep-clean", 3, NextLanding::Try(8), StackSetback::Part),
            ("all-or-nothing", 0, NextLanding::Try(usize::MAX), StackSetback::Refuse),
            ("first", 0, NextLanding::Try(1), StackSetback::Part),
            ("first", 1, NextLanding::Enough, StackSetback::Part),
            ("2", 1, NextLanding::Try(1), StackSetback::Part),
            ("2", 2, NextLanding::Enough, StackSetback::Part),
        ] {
            let policy: FanIn = word.parse().unwrap();
            assert_eq!((policy.turn(landed, 8), policy.setback()), (turn, setback), "{word} {landed}");
        }
        assert!("0".parse::<FanIn>().is_err() && "all".parse::<FanIn>().is_err());
    }
}
