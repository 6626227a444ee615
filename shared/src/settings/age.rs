//! Ages in the form that people write: `0`, `12h`, `7d`, `2w`, `1d 12h`.

use std::{fmt, str::FromStr};

/// How long ago something must have been, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub i64);

/// The error about a text that is no age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an age")]
pub struct AgeError(String);

/// The syntax of an age, for hints.
pub const AGES: &str = "0, or numbers followed by m, h, d, w or y, such as 12h, 7d, 2w or 1d 12h";

const DAY: i64 = 86_400;

/// The date from which months and years are counted, so that a year always has 365 days.
const REFERENCE: jiff::civil::Date = jiff::civil::date(2001, 1, 1);

impl Age {
    /// This many days.
    #[must_use]
    pub const fn days(count: i64) -> Self {
        Self(count * DAY)
    }
}

impl FromStr for Age {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<Self, AgeError> {
        let fail = || AgeError(text.escape_debug().to_string());
        let plain = text.trim().to_ascii_lowercase();
        if plain == "0" {
            return Ok(Self(0));
        }
        let span: jiff::Span = plain.parse().map_err(|_| fail())?;
        let seconds = span.to_duration(REFERENCE).map_err(|_| fail())?.as_secs();
        if span.is_negative() { Err(fail()) } else { Ok(Self(seconds)) }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(7 * DAY, "w", 2), (DAY, "d", 1), (3600, "h", 1), (60, "m", 1)];
        let suits = |(unit, _, least): &&(i64, &str, i64)| self.0 % unit == 0 && self.0 / unit >= *least;
        match units.iter().find(suits) {
            Some((unit, letter, _)) => write!(f, "{}{letter}", self.0 / unit),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_parsed_in_all_common_spellings() {
        for (text, seconds) in [
            ("0", 0),
            ("0d", 0),
            ("90m", 5_400),
            ("12h", 43_200),
            ("7d", 604_800),
            (" 2 Weeks ", 1_209_600),
            ("1 day", 86_400),
            ("1y", 31_536_000),
            ("7d3h", 615_600),
            ("1d 12h", 129_600),
        ] {
            assert_eq!(text.parse(), Ok(Age(seconds)), "{text}");
        }
        for text in ["", "7", "d", "-1d", "7x", "1.5d", "99999999999999999w", "soon"] {
            assert!(text.parse::<Age>().is_err(), "{text}");
        }
    }

    #[test]
    fn ages_are_printed_in_the_form_that_is_parsed() {
        for text in ["0", "90m", "12h", "1d", "10d", "2w", "1h", "5m"] {
            assert_eq!(text.parse::<Age>().unwrap().to_string(), text);
        }
        assert_eq!(Age::days(7).to_string(), "7d");
    }
}
